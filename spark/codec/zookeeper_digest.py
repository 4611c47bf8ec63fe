"""ZooKeeper's own digest of a tree, recomputed: the sum of a CRC-32 of every node's path, data and stat.

Source: DigestCalculator (version 2), AdHash and DataTree of ZooKeeper 3.8 and 3.9. Nodes below `/zookeeper/` do not count,
`/zookeeper` itself does. In the digest pzxid is third of the stat's numbers, in the file it is last. Access lists are in
neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark.codec.zookeeper_snapshot import ACCESS_LIST, LENGTH, Flags, Nodes

VERSION = 2
UNCOUNTED = b"/zookeeper/"
_PARTS, _DIGESTED = 8, (0, 2, 4, 6, 5)
"""Path, length, data, access list, czxid and mzxid, the rest, pzxid, what is before the next path. And those digested."""
_WRAP = 2**64


@dataclass(frozen=True)
class Digest:
    """`as_ascii`: by a server whose Java took ASCII for the platform's charset (before 18, without a locale): it digests `?`
    for every letter beyond it.
    """

    value: int = 0
    as_ascii: int = 0
    count: int = 0

    def __add__(self, other: "Digest") -> "Digest":
        return Digest(self.value + other.value, self.as_ascii + other.as_ascii, self.count + other.count)

    def equals(self, value: int) -> bool:
        return value % _WRAP in (self.value % _WRAP, self.as_ascii % _WRAP)


def digest_of(nodes: Nodes) -> Digest:
    """Of these nodes alone, each of which begins where the one before it ends. Digests of parts add up to the whole's."""
    parts = _parts_of(nodes)
    told, ends = _joined(parts, _DIGESTED)
    sums = np.fromiter((crc32(told[begin:end]) for begin, end in pairwise(ends)), np.int64, len(nodes))
    is_counted = np.ones(len(nodes), np.bool_)
    odd = np.flatnonzero(nodes.window[nodes.path + 1] == UNCOUNTED[1])
    is_counted[odd] = [not path.startswith(UNCOUNTED) for path in nodes.taken(odd).paths()]
    value, as_ascii = int(sums[is_counted].sum()), 0
    for row in np.flatnonzero(is_counted & ~_are_ascii(parts)).tolist():
        path, rest = np.split(np.frombuffer(told, np.uint8)[ends[row] : ends[row + 1]], [nodes.path_length[row]])
        as_ascii += crc32(_ascii(path.tobytes()) + rest.tobytes()) - int(sums[row])
    return Digest(value, value + as_ascii, len(nodes))


def _parts_of(nodes: Nodes) -> pa.Array:
    """The window, as it lies there: of each node `_PARTS`, one after another."""
    ends = (nodes.path, nodes.path_length, np.int64(LENGTH), nodes.data_length, ACCESS_LIST, 16, 36, 8)
    cuts = np.cumsum(np.stack(np.broadcast_arrays(*ends), axis=1), axis=1).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), cuts.size - 1, [None, pa.py_buffer(cuts), pa.py_buffer(nodes.window)])


def _joined(parts: pa.Array, wanted: Sequence[int]) -> tuple[bytes, list[int]]:
    """The wanted ones of each node, and where those of a node end, after a 0."""
    rows = (np.arange(0, len(parts), _PARTS)[:, None] + np.array(wanted)).ravel()
    _, ends, content = parts.take(pa.array(rows)).buffers()
    return content.to_pybytes(), np.frombuffer(ends, np.int32)[:: len(wanted)].tolist()


def _are_ascii(parts: pa.Array) -> Flags:
    paths = parts.take(pa.array(np.arange(0, len(parts), _PARTS)))
    return np.asarray(pc.string_is_ascii(pa.Array.from_buffers(pa.string(), len(paths), paths.buffers())))


def _ascii(path: bytes) -> bytes:
    return path.decode(errors="replace").encode("ascii", errors="replace")
