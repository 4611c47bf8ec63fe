"""How a simulated cluster looks in ZooKeeper."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from activities.ports import Znode
from playground.fakes.quorum import Quorum
from playground.fakes.topics import FakeTopic

SESSION = 0x1000_0000_0000_0001


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
