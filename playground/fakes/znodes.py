"""A ZooKeeper tree in memory, and how a simulated cluster looks in it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from activities.ports import Znode
from domain.errors import Transient
from playground.fakes.faults import Faults
from playground.fakes.quorum import Quorum
from playground.fakes.topics import FakeTopic

SESSION = 0x1000_0000_0000_0001


class FakeTree:
    """A `ZooKeeperTree` over a frozen set of znodes. Parents exist without being named."""

    def __init__(self, znodes: Mapping[str, Znode], faults: Faults | None = None) -> None:
        parents = {p: Znode(b"", 0, 0) for path in znodes for p in _parents(path)}
        self._znodes = {**parents, "/": Znode(b"", 0, 0), **znodes}
        self._faults = faults or Faults()
        self.is_closed = False

    async def get(self, path: str) -> Znode | None:
        return self._found(path)

    async def get_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        return tuple(self._found(path) for path in paths)

    async def children(self, path: str) -> tuple[str, ...] | None:
        if self._found(path) is None:
            return None
        prefix = path.rstrip("/") + "/"
        below = {p[len(prefix) :].partition("/")[0] for p in self._znodes if p.startswith(prefix) and p != prefix}
        return tuple(sorted(below))

    async def close(self) -> None:
        self.is_closed = True

    def _found(self, path: str) -> Znode | None:
        if self.is_closed or self._faults.silent_zookeeper:
            raise Transient(f"{path} in ZooKeeper: no answer")
        return self._znodes.get(path)


def _parents(path: str) -> list[str]:
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:length]) for length in range(1, len(parts))]


@dataclass(frozen=True)
class ZooKeeperSide:
    """What ZooKeeper itself keeps of a cluster. `controller`: the broker whose ephemeral claim stands, if any."""

    cluster_id: str
    controller: int | None
    controller_epoch: int
    broker_ids: tuple[int, ...]
    topics: tuple[FakeTopic, ...]


def znodes_of(side: ZooKeeperSide, quorum: Quorum, further: Mapping[str, bytes]) -> dict[str, Znode]:
    """Layouts as kafka.zk.ZkData writes them. `further` adds znodes or replaces them."""
    found = {
        "/cluster/id": _json({"version": "1", "id": side.cluster_id}),
        "/controller_epoch": Znode(str(side.controller_epoch).encode(), side.controller_epoch, 0),
        "/brokers/ids": Znode(b"", 0, 0),
        "/brokers/topics": Znode(b"", 0, 0),
        "/admin/delete_topics": Znode(b"", 0, 0),
    }
    found |= {f"/brokers/ids/{i}": _json({"version": 5, "host": f"broker-{i}", "port": 9092}, SESSION) for i in side.broker_ids}
    found |= {f"/brokers/topics/{topic.name}": _topic(topic) for topic in side.topics}
    found |= _controller(side, quorum) | _migration(quorum)
    return found | {path: Znode(data, 0, 0) for path, data in further.items()}


def _json(content: Mapping[str, object], owner: int = 0) -> Znode:
    return Znode(json.dumps(content).encode(), 0, owner)


def _topic(topic: FakeTopic) -> Znode:
    partitions = {str(p): list(replicas) for p, replicas in enumerate(topic.assignment)}
    content: dict[str, object] = {"version": 3, "partitions": partitions, "adding_replicas": {}, "removing_replicas": {}}
    return _json(content | ({} if topic.topic_id is None else {"topic_id": topic.topic_id}))


def _controller(side: ZooKeeperSide, quorum: Quorum) -> dict[str, Znode]:
    """KRaft's claim is persistent; a broker's is bound to its session."""
    if quorum.claimed_by is not None:
        claim = {"version": 2, "brokerid": quorum.claimed_by, "timestamp": "0", "kraftControllerEpoch": quorum.claim_epoch}
        return {"/controller": _json(claim)}
    if side.controller is None:
        return {}
    claim = {"version": 2, "brokerid": side.controller, "timestamp": "0", "kraftControllerEpoch": -1}
    return {"/controller": _json(claim, SESSION)}


def _migration(quorum: Quorum) -> dict[str, Znode]:
    if quorum.zookeeper_offset is None:
        return {}
    has_copied = quorum.zookeeper_offset >= 0
    content = {
        "version": 0,
        "kraft_controller_id": quorum.claimed_by if has_copied else -1,
        "kraft_controller_epoch": quorum.claim_epoch if has_copied else -1,
        "kraft_metadata_offset": quorum.zookeeper_offset,
        "kraft_metadata_epoch": quorum.claim_epoch if has_copied else -1,
    }
    return {"/migration": _json(content)}
