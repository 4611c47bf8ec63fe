"""ZooKeeper's snapshot files: what is around the nodes, and the nodes as columns of positions.

    header  sessions  access lists  node…  "/"  seal  [digest seal]  [last zxid seal]

A node is its path, its data, the id of its access list, and 60 bytes of stat. Nodes come parents first, each with all that
is below it before its next sibling. A seal is the Adler-32 of everything before it, and "/". The digest came with 3.6, the
last zxid with 3.9. Source: FileSnap, DataTree.serialize and SnapStream of ZooKeeper 3.8 and 3.9.

Nodes are found by a pattern scan for "/" after a length, and believed because each ends where the next begins: reading
every length in Python would take ten times as long. So a part of a file can be read from any byte position, too.
"""

import mmap
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from domain.errors import Permanent
from spark.codec.jute import Archive, damaged
from spark.codec.octets import Bytes, Positions, numbers_at

Flags = npt.NDArray[np.bool_]
Content = bytes | mmap.mmap

MAGIC, VERSION = b"ZKSN", 2
COMPRESSED = {b"\x1f\x8b": "gzip", b"\x82SNAPPY": "snappy"}
END = b"\0\0\0\x01/"
"""The path "/": after the last node, and at the end of each seal."""
SEAL = 8 + len(END)
DIGEST, LAST_ZXID = 8 + 4 + 8, 8

ACCESS_LIST, STAT = 8, 60
AROUND_DATA = 4 + ACCESS_LIST + STAT
LENGTH = 4
LONGEST_PATH = 2**16
WINDOW = 4 * 2**20
"""Bytes that are looked at together: more do not fit into a processor's cache."""
CERTAIN = 32
"""So many nodes in a row, each beginning where the one before ended, are no accident."""


@dataclass(frozen=True)
class Sealed:
    """A seal at this position, and what it must say of everything before it is computed by `ensure_intact`."""

    at: int
    adler32: int


@dataclass(frozen=True)
class TreeDigest:
    """The sum of all nodes' digests after this transaction. `zxid` 0: the server had none yet when it wrote the file."""

    zxid: int
    version: int
    value: int


@dataclass(frozen=True)
class Frame:
    """Where the nodes of a file are: from `begin` up to `end`, both exact. `last_zxid` and `digest` where the file has them."""

    begin: int
    end: int
    seals: tuple[Sealed, ...]
    digest: TreeDigest | None
    last_zxid: int | None


@dataclass(frozen=True)
class Nodes:
    """Some consecutive nodes. Positions count from `base` in the file, and index `window`. `stop`: where the last one ends."""

    window: Bytes
    base: int
    path: Positions
    path_length: Positions
    data: Positions
    data_length: Positions

    @property
    def stat(self) -> Positions:
        return self.data + self.data_length + ACCESS_LIST

    @property
    def begin(self) -> Positions:
        """In the file."""
        return self.path - LENGTH + self.base

    @property
    def stop(self) -> int:
        """In the file."""
        return int(self.stat[-1]) + STAT + self.base if len(self.path) else self.base

    def __len__(self) -> int:
        return len(self.path)

    def taken(self, which: npt.NDArray[Any] | slice) -> "Nodes":
        columns = (self.path[which], self.path_length[which], self.data[which], self.data_length[which])
        return Nodes(self.window, self.base, *columns)

    def paths(self) -> list[bytes]:
        return slices(self.window, self.path, self.path_length)

    def contents(self) -> list[bytes]:
        return slices(self.window, self.data, self.data_length)

    def modified_zxids(self) -> Positions:
        """The second long of the stat."""
        return numbers_at(self.window, self.stat + 8, ">i8")


def opened(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise Permanent(f"{path} is no snapshot that can be read: {error}") from error


def frame_of(content: Content, name: str) -> Frame:
    """Reads both ends of the file, not what is between."""
    _ensure_plain(content, name)
    archive = Archive(memoryview(content), name, at=len(MAGIC))
    if (version := archive.integer()) != VERSION:
        raise Permanent(f"{name} is a snapshot of version {version}; only version {VERSION} is known")
    archive.long()
    _skip_sessions(archive)
    _skip_access_lists(archive)
    begin = archive.at
    archive.content.release()
    return _with_tail(content, name, begin)


def _ensure_plain(content: Content, name: str) -> None:
    for magic, method in COMPRESSED.items():
        if content[: len(magic)] == magic:
            advice = "decompress it, or set zookeeper.snapshot.compression.method to none and take another"
            raise Permanent(f"{name} is compressed with {method}, which is not read: {advice}")
    if content[: len(MAGIC)] != MAGIC:
        raise Permanent(f"{name} is no snapshot of ZooKeeper: it does not begin with {MAGIC.decode()}")


def _skip_sessions(archive: Archive) -> None:
    for _ in range(archive.count()):
        archive.long()
        archive.integer()


def _skip_access_lists(archive: Archive) -> None:
    for _ in range(archive.count()):
        archive.long()
        for _ in range(archive.count()):
            archive.integer()
            archive.buffer()
            archive.buffer()


def _with_tail(content: Content, name: str, begin: int) -> Frame:
    """The longest tail that fits. Which one it is has to be guessed from its end: nothing announces it."""
    for extras in ((DIGEST, LAST_ZXID), (DIGEST,), (LAST_ZXID,), ()):
        end = len(content) - len(END) - SEAL - sum(extra + SEAL for extra in extras)
        if end >= begin and (seals := _seals_at(content, end + len(END), extras)) and content[end : end + 5] == END:
            return _framed(content, begin, end, seals, extras)
    raise damaged(name, len(content), "it does not end with a seal, so it was not written to its end")


def _seals_at(content: Content, at: int, extras: tuple[int, ...]) -> tuple[Sealed, ...]:
    found = []
    for extra in (0, *extras):
        at += extra
        if content[at + 8 : at + SEAL] != END:
            return ()
        found.append(Sealed(at, int.from_bytes(content[at : at + 8], "big")))
        at += SEAL
    return tuple(found)


def _framed(content: Content, begin: int, end: int, seals: tuple[Sealed, ...], extras: tuple[int, ...]) -> Frame:
    digest = last = None
    for seal, extra in zip(seals[1:], extras, strict=True):
        said = content[seal.at - extra : seal.at]
        if extra == DIGEST:
            zxid, version, value = (int.from_bytes(part, "big", signed=True) for part in (said[:8], said[8:12], said[12:]))
            digest = TreeDigest(zxid, version, value)
        else:
            last = int.from_bytes(said, "big", signed=True)
    return Frame(begin, end, seals, digest, last)


def ensure_intact(content: Content, name: str, frame: Frame) -> None:
    """Every seal must say what the bytes before it say. `Permanent` where one does not."""
    sum_, at = 1, 0
    for seal in frame.seals:
        sum_, at = zlib.adler32(memoryview(content)[at : seal.at], sum_), seal.at
        if sum_ != seal.adler32:
            said = f"the checksum of all before it is {sum_:#010x}, the file says {seal.adler32:#010x}"
            raise damaged(name, seal.at, said)


def nodes_from(content: Content, name: str, begin: int, end: int, size: int = WINDOW) -> Nodes:
    """The whole nodes of the next `size` bytes, at least one. A node begins at `begin`; one ends at `end`."""
    window = np.frombuffer(content, np.uint8, min(size, end - begin), begin)
    nodes = _chained(window, begin, 0)
    if len(nodes):
        return nodes
    if begin + size < end and _length_at(window, 0) in range(LONGEST_PATH):
        return nodes_from(content, name, begin, end, size * 4)
    raise damaged(name, begin, "no node begins here, or it does not end within the nodes")


def boundary_from(content: Content, position: int, end: int) -> int:
    """Where a node begins, at `position` or after it. Believed when many nodes follow without a gap."""
    size = 2**20
    while position < end:
        window = np.frombuffer(content, np.uint8, min(size, end - position), position)
        found = _candidates(window)
        for start in found.path[: 4 * CERTAIN]:
            chain = _chained(window, position, int(start) - LENGTH)
            if len(chain) >= CERTAIN or (len(chain) and chain.stop == end):
                return int(chain.begin[0])
        if position + size >= end:
            return end
        size *= 4
    return end


def _chained(window: Bytes, base: int, begin: int) -> Nodes:
    """The nodes from the one that begins at `begin`, each beginning where the one before it ends."""
    found = _candidates(window, begin)
    if len(window) > begin and _length_at(window, begin) == 0:
        found = _with_root(window, found, begin)
    follows = found.stat + STAT + LENGTH
    is_next = np.ones(len(found), np.bool_)
    is_next[1:] = follows[:-1] == found.path[1:]
    if len(found) and found.path[0] == begin + LENGTH and bool(is_next.all()):
        kept: Flags | slice = slice(0, len(found))
    else:
        kept = _followed(found.path, follows, begin + LENGTH)
    return Nodes(window, base, found.path, found.path_length, found.data, found.data_length).taken(kept)


def _followed(paths: Positions, follows: Positions, first: int) -> Flags:
    """Past what only looks like a node because some bytes look so: from one node that is not followed by the next candidate
    to the one that it is followed by, and no further than the first that is followed by none.
    """
    is_node = np.ones(len(paths), np.bool_)
    at = int(np.searchsorted(paths, first))
    if at == len(paths) or paths[at] != first:
        return ~is_node
    is_node[:at] = False
    next_ = np.searchsorted(paths, follows)
    for odd in np.flatnonzero((next_ != np.arange(1, len(paths) + 1)) | (np.append(paths, 0)[next_] != follows)).tolist():
        if odd < at:
            continue
        at = int(next_[odd])
        if at == len(paths) or paths[at] != follows[odd]:
            is_node[odd + 1 :] = False
            break
        is_node[odd + 1 : at] = False
    return is_node


def _candidates(window: Bytes, begin: int = 0) -> Nodes:
    """All places that look like a node which ends within the window."""
    path = np.flatnonzero(window == ord("/"))
    path = path[path >= begin + LENGTH]
    path = path[(window[path - 4] == 0) & (window[path - 3] == 0)]
    length = (window[path - 2].astype(np.int64) << 8) | window[path - 1]
    return _within(window, path, length)


def _within(window: Bytes, path: Positions, length: Positions) -> Nodes:
    has_data = (length > 0) & (path + length + LENGTH <= len(window))
    path, length = path[has_data], length[has_data]
    size = numbers_at(window, path + length, ">i4")
    data = path + length + LENGTH
    ends = data + np.maximum(size, 0) + ACCESS_LIST + STAT
    is_whole = (size >= -1) & (ends <= len(window))
    columns = (path, length, data, np.maximum(size, 0))
    return Nodes(window, 0, *(column[is_whole] for column in columns))


def _with_root(window: Bytes, found: Nodes, begin: int) -> Nodes:
    """Only the root's path is empty, so no scan finds it."""
    size = max(_length_at(window, begin + LENGTH), 0)
    root = np.array([begin + LENGTH]), np.array([0]), np.array([begin + 2 * LENGTH]), np.array([size])
    if begin + LENGTH + AROUND_DATA + size > len(window):
        return found
    rest = (found.path, found.path_length, found.data, found.data_length)
    return Nodes(window, 0, *(np.concatenate(pair) for pair in zip(root, rest, strict=True)))


def _length_at(window: Bytes, at: int) -> int:
    return int.from_bytes(window[at : at + LENGTH].tobytes(), "big", signed=True)


def slices(window: Bytes, begin: Positions, length: Positions) -> list[bytes]:
    if not len(begin):
        return []
    low = int(begin.min())
    content = window[low : int((begin + length).max())].tobytes()
    begins = (begin - low).tolist()
    return [content[b:e] for b, e in zip(begins, (begin + length - low).tolist(), strict=True)]
