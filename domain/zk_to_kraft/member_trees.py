"""Whether the members of an ensemble have one tree: members that are equally far have the same number of znodes. Pure.

One that was started alone, and changed, joins the others again by what they have done since (ZOOKEEPER-3911, ZOOKEEPER-2832):
nothing compares the trees. A server prints its zxid first and counts its znodes after that (StatCommand.java), so what one
answer says may be of two moments: one difference may be a transaction between, and only the same one twice is told.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MemberTree:
    """`zxid`: of the last transaction that it has applied. `znodes`: how many it has, ephemeral ones as well."""

    zxid: int
    znodes: int
    is_leader: bool = False


Trees = Mapping[str, MemberTree]
"""By `host:port`."""


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
