"""A cluster as both sides have it: KRaft's checkpoint with a tail, a ZooKeeper snapshot, and how they differ.

Of every 10,000 partitions three differ, each in one thing: so as many findings are to be found. What the tail changes,
ZooKeeper has too, so a reader that stops at the checkpoint finds more.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from domain.drift.normalise import uuid_text
from domain.quorum_log.record_types import RecordType
from playground.metadata_files import SyntheticCluster, append, message, write_checkpoint
from playground.zookeeper_files import buffer, text

KINDS = ("topic", "partition", "topic-config")
DRIFT = 0.0003
TAIL = 0.001
"""Of the partitions, how many change leader in the log after the checkpoint."""
TAIL_BATCH = 50
CHECKPOINT_END = 10_000_000
SORTS = ("leader_epoch", "replicas", "isr", "missing_left", "missing_right")
_STAT = (1, 2, 1_700_000_000_000, 1_700_000_000_001, 0, 0, 0, 0)
"""czxid, mzxid, ctime, mtime, three versions, owner; then pzxid, 3."""
_STORED = struct.pack(">q", 1) + struct.pack(">qqqqiiiqq", *_STAT, 3)
_DIGESTED = struct.pack(">qqqqqiiiq", 1, 2, 3, *_STAT[2:])
_HEAD = (
    b"ZKSN" + struct.pack(">iq", 2, -1) + struct.pack(">iqi", 1, 0x1000, 18000)
    + struct.pack(">iqii", 1, 1, 1, 31) + text("world") + text("anyone")
)  # fmt: skip
WRITE_BYTES = 1 << 20


@dataclass(frozen=True)
class RawCluster:
    """`sort_of`: of each partition that differs, by its index; `elected`: those that the tail gives another leader."""

    cluster: SyntheticCluster
    sort_of: dict[int, str] = field(repr=False)
    elected: frozenset[int] = field(repr=False)

    @classmethod
    def of(cls, partitions: int) -> "RawCluster":
        """The same for the same number."""
        per_topic = min(50, partitions)
        drifting, changed = max(len(SORTS), round(partitions * DRIFT)), max(1, round(partitions * TAIL))
        chosen = np.random.default_rng(partitions).choice(partitions, drifting + changed, replace=False).tolist()
        sorts = {index: SORTS[n % len(SORTS)] for n, index in enumerate(chosen[:drifting])}
        return cls(SyntheticCluster(partitions // per_topic, per_topic), sorts, frozenset(chosen[drifting:]))

    def truth(self) -> dict[str, int]:
        sorts = list(self.sort_of.values())
        missing = {side: sorts.count(side) for side in SORTS[3:]}
        rows = self.cluster.topics * (self.cluster.partitions + 2)
        left = rows - missing["missing_left"] + missing["missing_right"]
        return {**missing, "differs": len(sorts) - sum(missing.values()), "left": left, "right": rows}

    def write(self, folder: Path) -> None:
        write_checkpoint(folder / "kraft", self.cluster, CHECKPOINT_END)
        self._write_tail(folder / "kraft" / f"{CHECKPOINT_END:020}.log")
        write_snapshot(folder / "snapshot.4d", self.nodes())
        (folder / "digest.key").write_text("sixteen bytes or more, of no secret\n")

    def _write_tail(self, segment: Path) -> None:
        offset, changes = CHECKPOINT_END, sorted(self.elected)
        for begin in range(0, len(changes), TAIL_BATCH):
            offset = append(segment, offset, [self._election(index) for index in changes[begin : begin + TAIL_BATCH]])

    def _election(self, index: int) -> bytes:
        topic, partition = divmod(index, self.cluster.partitions)
        told = {"partitionId": partition, "topicId": self.cluster.ids[topic].tobytes()}
        return message(RecordType.PARTITION_CHANGE, 0, {**told, "leader": int(self.cluster.replicas[index][1])})

    def nodes(self) -> Iterator[tuple[str, bytes | None]]:
        """Paths and contents as ZooKeeper has them, in a snapshot's order."""
        yield from ((path, None) for path in ("", "/brokers", "/brokers/topics"))
        for topic in range(self.cluster.topics):
            yield from self._topic(topic)
        yield from ((path, None) for path in ("/config", "/config/topics"))
        for topic in range(self.cluster.topics):
            configs = dict(self.cluster.config(index) for index in range(self.cluster.configs))
            content = json.dumps({"version": 1, "config": configs}, separators=(",", ":"))
            yield f"/config/topics/{self.cluster.name(topic)}", content.encode()

    def _topic(self, topic: int) -> Iterator[tuple[str, bytes | None]]:
        size = self.cluster.partitions
        replicas = self.cluster.replicas[topic * size : (topic + 1) * size].tolist()
        epochs = self.cluster.leader_epochs[topic * size : (topic + 1) * size].tolist()
        assigned, states = [], []
        for number, of_one, epoch in zip(range(size), replicas, epochs, strict=True):
            for at, placed, state in self._partition(topic * size + number, number, of_one, epoch):
                assigned.append(f'"{at}":{str(placed).replace(" ", "")}')
                states.append((at, state))
        folder, id_ = f"/brokers/topics/{self.cluster.name(topic)}", uuid_text(self.cluster.ids[topic].tobytes())
        told = f'"partitions":{{{",".join(assigned)}}},"topic_id":"{id_}","adding_replicas":{{}},"version":3'
        yield folder, f'{{"removing_replicas":{{}},{told}}}'.encode()
        yield f"{folder}/partitions", None
        for at, state in states:
            yield f"{folder}/partitions/{at}", None
            yield f"{folder}/partitions/{at}/state", state

    def _partition(self, index: int, number: int, replicas: list[int], epoch: int) -> Iterator[tuple[int, list[int], bytes]]:
        """ZooKeeper's number, replicas and state: none, one or two of them."""
        leader, isr, sort = replicas[0], replicas, self.sort_of.get(index)
        if sort == "missing_left":
            return
        if sort == "missing_right":
            yield number + self.cluster.partitions, replicas, _state(leader, isr, epoch)
        if index in self.elected:
            leader, epoch = replicas[1], epoch + 1
        if sort == "leader_epoch":
            epoch += 1
        if sort == "isr":
            isr = replicas[:-1]
        yield number, replicas[::-1] if sort == "replicas" else replicas, _state(leader, isr, epoch)


def _state(leader: int, isr: list[int], epoch: int) -> bytes:
    in_sync = str(isr).replace(" ", "")
    return f'{{"controller_epoch":1,"leader":{leader},"version":1,"leader_epoch":{epoch},"isr":{in_sync}}}'.encode()


def write_snapshot(path: Path, nodes: Iterator[tuple[str, bytes | None]]) -> None:
    """As `playground.zookeeper_files` does, with one stat for all nodes and nothing held in memory: there are millions."""
    digest, seal = 0, 1
    with path.open("wb") as file:
        waiting = bytearray(_HEAD)
        for name, data in nodes:
            waiting += text(name) + buffer(data) + _STORED
            digest += zlib.crc32(_DIGESTED, zlib.crc32(data or b"", zlib.crc32(name.encode())))
            if len(waiting) > WRITE_BYTES:
                seal = zlib.adler32(waiting, seal)
                file.write(waiting)
                waiting.clear()
        for part in (text("/"), struct.pack(">qiQ", 77, 2, digest % 2**64), struct.pack(">q", 77)):
            waiting += part
            seal = zlib.adler32(waiting, seal)
            file.write(waiting)
            sealed = struct.pack(">q", seal) + text("/")
            file.write(sealed)
            seal = zlib.adler32(sealed, seal)
            waiting.clear()
