"""ZooKeeper's files, byte for byte as its servers write them, from znodes of ours: for tests and measurements.

Written node by node and slowly, with nothing shared with `spark.codec`, so that it may judge it.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

TOPIC_ID = "AAAAAAAAAAAAAAAA{:05x}A"


@dataclass(frozen=True)
class FileZnode:
    """One node with its stat. `data` `None`: none at all, as Kafka creates parents."""

    path: str
    data: bytes | None = None
    czxid: int = 1
    mzxid: int = 2
    pzxid: int = 3
    ctime: int = 1_700_000_000_000
    mtime: int = 1_700_000_000_001
    version: int = 0
    cversion: int = 0
    aversion: int = 0
    owner: int = 0

    def stored(self) -> bytes:
        stat = struct.pack(
            ">qqqqiiiqq",
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.version,
            self.cversion,
            self.aversion,
            self.owner,
            self.pzxid,
        )
        return text(self.path) + buffer(self.data) + struct.pack(">q", 1) + stat

    def digest(self) -> int:
        if self.path.startswith("/zookeeper/"):
            return 0
        times = (self.czxid, self.mzxid, self.pzxid, self.ctime, self.mtime)
        stat = struct.pack(">qqqqqiiiq", *times, self.version, self.cversion, self.aversion, self.owner)
        return zlib.crc32(self.path.encode() + (self.data or b"") + stat)


@dataclass(frozen=True)
class Trimmings:
    """What else a snapshot may have."""

    sessions: Mapping[int, int] = field(default_factory=lambda: {0x1000: 18000})
    digest: int | None = None
    """Instead of the right one."""
    has_digest: bool = True
    digest_zxid: int = 77
    has_last_zxid: bool = True
    last_zxid: int = 77


def text(value: str) -> bytes:
    return buffer(value.encode())


def buffer(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def snapshot_bytes(znodes: Iterable[FileZnode], trimmings: Trimmings | None = None) -> bytes:
    """`znodes` in the order they are to have; the root's path is empty and comes first."""
    trimmings, digest = trimmings or Trimmings(), 0
    out = bytearray(b"ZKSN" + struct.pack(">iq", 2, -1) + _sessions(trimmings.sessions) + _access_lists())
    for znode in znodes:
        out += znode.stored()
        digest += znode.digest()
    out += text("/")
    out += _seal(out)
    if trimmings.has_digest:
        value = digest % 2**64 if trimmings.digest is None else trimmings.digest
        out += struct.pack(">qiQ", trimmings.digest_zxid, 2, value)
        out += _seal(out)
    if trimmings.has_last_zxid:
        out += struct.pack(">q", trimmings.last_zxid)
        out += _seal(out)
    return bytes(out)


def _sessions(sessions: Mapping[int, int]) -> bytes:
    return struct.pack(">i", len(sessions)) + b"".join(struct.pack(">qi", *session) for session in sessions.items())


def _access_lists() -> bytes:
    """One, that lets everybody do everything."""
    return struct.pack(">iqii", 1, 1, 1, 31) + text("world") + text("anyone")


def _seal(before: bytes | bytearray) -> bytes:
    return struct.pack(">q", zlib.adler32(before)) + text("/")


def in_file_order(data: Mapping[str, bytes | None]) -> Iterator[FileZnode]:
    """These znodes, the parents that they lack, and the root, each parent with all that is below it before its sibling."""
    known: dict[str, bytes | None] = {"": None, "/zookeeper": b"", "/zookeeper/config": b"", "/zookeeper/quota": b""}
    for path in data:
        for parent in _parents(path):
            known.setdefault(parent, None)
    known.update(data)
    for number, path in enumerate(sorted(known, key=lambda path: path.split("/")), start=1):
        yield FileZnode(path, known[path], czxid=number, mzxid=1000 + number, pzxid=number)


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def many_topics(topics: int, partitions: int, brokers: int = 6) -> Iterator[FileZnode]:
    """A tree of nothing but topics, with three replicas each, as Kafka writes them."""
    for path in ("", "/brokers", "/brokers/topics"):
        yield FileZnode(path)
    for number in range(topics):
        folder = f"/brokers/topics/topic-{number:06d}"
        replicas = {n: [(number + n + k) % brokers for k in range(3)] for n in range(partitions)}
        yield FileZnode(folder, topic_json(TOPIC_ID.format(number), replicas))
        yield FileZnode(f"{folder}/partitions")
        for partition, assigned in replicas.items():
            yield FileZnode(f"{folder}/partitions/{partition}")
            state = state_json(assigned[0], assigned[::-1] if number % 7 == 0 else assigned)
            yield FileZnode(f"{folder}/partitions/{partition}/state", state, mzxid=number)


def topic_json(topic_id: str, replicas: Mapping[int, list[int]]) -> bytes:
    """In the order of keys that Kafka's map of Scala gives."""
    content = {
        "removing_replicas": {},
        "partitions": {str(partition): assigned for partition, assigned in replicas.items()},
        "topic_id": topic_id,
        "adding_replicas": {},
        "version": 3,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def state_json(leader: int, isr: list[int], leader_epoch: int = 0) -> bytes:
    content = {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": leader_epoch, "isr": isr}
    return json.dumps(content, separators=(",", ":")).encode()
