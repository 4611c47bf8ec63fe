"""ZooKeeper's own digest of a tree, recomputed: the sum of a CRC-32 of every node's path, data and stat.

Source: DigestCalculator (version 2), AdHash and DataTree of ZooKeeper 3.8 and 3.9. Nodes below `/zookeeper/` do not count,
`/zookeeper` itself does. In the digest pzxid is third of the stat's numbers, in the file it is last. Access lists are in
neither.
"""

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from spark.codec.zookeeper_snapshot import STAT, Nodes

VERSION = 2
UNCOUNTED = b"/zookeeper/"
_IN_DIGEST_ORDER = np.r_[0:16, 52:60, 16:52]
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
    """Of these nodes alone. Digests of parts add up to the whole's."""
    stats = nodes.window[nodes.stat[:, None] + _IN_DIGEST_ORDER].tobytes()
    parts = zip(nodes.paths(), nodes.contents(), (stats[at : at + STAT] for at in range(0, len(stats), STAT)), strict=True)
    counted = [part for part in parts if not part[0].startswith(UNCOUNTED)]
    value = sum(map(crc32, map(b"".join, counted)))
    beyond = [part for part in counted if not part[0].isascii()]
    as_ascii = sum(crc32(b"".join((_ascii(path), *rest))) - crc32(b"".join((path, *rest))) for path, *rest in beyond)
    return Digest(value, value + as_ascii, len(nodes))


def _ascii(path: bytes) -> bytes:
    return path.decode(errors="replace").encode("ascii", errors="replace")
