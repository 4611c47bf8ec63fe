"""ZooKeeper's transaction logs, as far as a comparison needs them: which transactions a log has, and which znodes they touch.

    header  (adler32 length transaction "B")…  zeros

A server reserves space ahead, so a log ends where zeros begin; a crash leaves a last transaction that is not whole. Source:
FileTxnLog, SerializeUtils and zookeeper.jute of ZooKeeper 3.8 and 3.9.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from domain.errors import Permanent
from spark.codec.jute import Archive, damaged

MAGIC, VERSION = b"ZKLG", 2
HEADER = 4 + 4 + 8
END_OF_RECORD = b"B"
ZXID_AT = 8 + 4
"""In a transaction: after the session and its request's number."""

TYPES = {
    -11: "close-session",
    -10: "create-session",
    -1: "error",
    1: "create",
    2: "delete",
    5: "set-data",
    7: "set-acl",
    13: "check",
    14: "multi",
    15: "create",
    16: "set-data",
    19: "create",
    20: "delete",
    21: "create",
}
"""With those that a first field names the znode: all but sessions, errors and multi."""
WITHOUT_PATH = frozenset({-11, -10, -1})
MULTI = 14


@dataclass(frozen=True)
class Change:
    """`path`: empty where a transaction is of no znode."""

    zxid: int
    type: str
    path: str


def last_zxid(path: Path) -> int | None:
    """Of the newest whole transaction; `None` where there is none."""
    found = None
    for zxid, _ in _transactions(path.read_bytes(), str(path)):
        found = zxid
    return found


def changes_after(path: Path, zxid: int) -> Iterator[Change]:
    """What happened after that transaction, in order; each part of a multi by itself."""
    for found, content in _transactions(path.read_bytes(), str(path)):
        if found > zxid:
            archive = Archive(memoryview(content), f"{path}, transaction {found:#x}", ZXID_AT + 8 + 8)
            yield from _changes(found, archive.integer(), archive)


def _transactions(content: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    if content[:4] != MAGIC or int.from_bytes(content[4:8], "big") != VERSION:
        raise Permanent(f"{name} is no transaction log of ZooKeeper that is known: it begins with {content[:8].hex()}")
    at = HEADER
    while (length := int.from_bytes(content[at + 8 : at + 12], "big")) > 0:
        begin, end = at + 12, at + 12 + length
        if content[end : end + 1] != END_OF_RECORD:
            return  # being written, or cut off by a crash: ZooKeeper stops here, too
        found = content[begin:end]
        if zlib.adler32(found) != int.from_bytes(content[at : at + 8], "big"):
            raise damaged(name, at, "the checksum of this transaction is another")
        yield int.from_bytes(found[ZXID_AT : ZXID_AT + 8], "big", signed=True), found
        at = end + 1


def _changes(zxid: int, type_: int, archive: Archive) -> Iterator[Change]:
    if type_ == MULTI:
        for _ in range(archive.count()):
            part = archive.integer()
            yield from _changes(zxid, part, Archive(memoryview(archive.buffer()), archive.name))
    elif type_ not in TYPES:
        raise Permanent(f"{archive.name} is of type {type_}, which is not known")
    else:
        yield Change(zxid, TYPES[type_], "" if type_ in WITHOUT_PATH else archive.text())
