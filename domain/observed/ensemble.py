"""Whether the members of an ensemble have one tree: members that are equally far have the same number of znodes. Pure.

One that was started alone, and changed, joins the others again by what they have done since (ZOOKEEPER-3911, ZOOKEEPER-2832):
nothing compares the trees. A server prints its zxid first and counts its znodes after that (StatCommand.java), so what one
answer says may be of two moments: one difference may be a transaction between, and only the same one twice is told.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ZXID = re.compile(rb"^Zxid: (0x[0-9a-f]+)", re.MULTILINE)
MODE = re.compile(rb"^Mode: (leader|follower|observer|standalone)\r?$", re.MULTILINE)
"""Who only lets read lags."""
RECEIVED = re.compile(rb"^Received: (\d+)\r?\n", re.MULTILINE)
ZNODES = re.compile(rb"^Node count: (\d+)\r?\n", re.MULTILINE)
"""With its end: of an answer that is cut short it would be another number."""


@dataclass(frozen=True)
class MemberTree:
    """`zxid`: of the last transaction that it has applied. `znodes`: how many it has, ephemeral ones as well. `is_alone`: it is
    standalone, with a tree of its own. `received`: packets of its clients, since it was started."""

    zxid: int
    znodes: int
    is_leader: bool = False
    is_alone: bool = False
    received: int = 0

    @property
    def epoch(self) -> int:
        """Of the leader that it follows, once that has made a transaction."""
        return self.zxid >> 32


Trees = Mapping[str, MemberTree]
"""By `host:port`."""


def tree_in(answer: bytes) -> MemberTree | None:
    """Of what a server says to `srvr`."""
    mode, zxid, znodes, received = (part.search(answer) for part in (MODE, ZXID, ZNODES, RECEIVED))
    if mode is None or zxid is None or znodes is None:
        return None
    return MemberTree(
        zxid=int(zxid[1], 16),
        znodes=int(znodes[1]),
        is_leader=mode[1] == b"leader",
        is_alone=mode[1] == b"standalone",
        received=int(received[1]) if received is not None else 0,
    )


def equally_far(trees: Trees) -> Trees:
    """The zxid at which most are; of as many, those that are further."""
    met = Counter(tree.zxid for tree in trees.values())
    zxid = max(met, key=lambda each: (met[each], each), default=0)
    return {address: tree for address, tree in trees.items() if tree.zxid == zxid}


def are_alike(trees: Trees) -> bool:
    """All of them: equally far, and as many znodes."""
    return len({(tree.zxid, tree.znodes) for tree in trees.values()}) <= 1


def is_seen_before(trees: Trees, earlier: Iterable[Trees]) -> bool:
    """Whether these members, equally far, differed by as many znodes before."""
    return not are_alike(trees) and any(_differences(trees) == _differences(other) for other in earlier)


def _differences(trees: Trees) -> dict[str, int]:
    least = min((tree.znodes for tree in trees.values()), default=0)
    return {address: tree.znodes - least for address, tree in trees.items()}


def counts_of(trees: Trees) -> str:
    """In words: how far they are, and how many znodes each has."""
    counts = [f"{address}{' (leader)' if tree.is_leader else ''} has {tree.znodes}" for address, tree in trees.items()]
    return f"of as many transactions (zxid {next(iter(trees.values())).zxid:#x}) {', '.join(counts)} znodes"
