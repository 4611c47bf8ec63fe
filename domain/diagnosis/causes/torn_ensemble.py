"""Whether the servers of zookeeper.connect are two ensembles with two trees, each well by itself. Pure.

So it is where members were given lists (server.N) that differ, as when three become five at once: three of five are a majority,
and so are two of three. A session lands in the one or the other: what is read, and what is written, is of one of two clusters.

A server with two names must not look like two: of one server whatever is asked later is at least as far, and has received as
much. Two young ensembles may have come as far as each other; they have not had the same clients.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.observed.ensemble import MemberTree, Trees

LEAST_OF_EPOCH = 1
"""Transactions of its epoch that a leader has made: before that its followers may show the last one of the epoch before."""
ARE_TWO = "the servers of zookeeper.connect are two ensembles with two trees"


@dataclass(frozen=True)
class Side:
    """Servers that follow one leader, or that one follows whom nobody named. `members`: by `host:port`."""

    members: Trees

    @property
    def names(self) -> str:
        return ", ".join(self.members)

    @property
    def in_words(self) -> str:
        return ", ".join(
            f"{address} ({_role(tree)}, zxid {tree.zxid:#x}, {tree.znodes} znodes)" for address, tree in self.members.items()
        )


def is_doubtful(trees: Trees) -> bool:
    """Whether one look lets it seem so: then another one tells."""
    return are_torn(trees, trees) or sum(_is_head(tree) for tree in trees.values()) > 1


def are_torn(first: Trees, then: Trees) -> bool:
    """`then`: asked after every answer of `first` has come."""
    heads = [address for address, tree in then.items() if _is_head(tree)]
    both = [address for address in heads if address in first and _is_head(first[address])]
    if any(then[address].is_alone for address in heads) and len(heads) < len(then):
        return True
    apart = any(one != other and _is_beyond(first[one], then[other]) for one in both for other in both)
    return apart or (len(heads) == 1 and bool(_others(first, heads[0]) & _others(then, heads[0])))


def _is_beyond(earlier: MemberTree, later: MemberTree) -> bool:
    return earlier.zxid > later.zxid or earlier.received > later.received


def _others(trees: Trees, head: str) -> set[str]:
    """Who is in another epoch than this leader."""
    if head not in trees or trees[head].zxid & 0xFFFFFFFF < LEAST_OF_EPOCH:
        return set()
    return {address for address, tree in trees.items() if tree.epoch != trees[head].epoch}


def sides_of(trees: Trees) -> list[Side]:
    """Of those that are torn, the larger one first. A follower is with the leader that it is nearest to."""
    heads = [address for address, tree in trees.items() if _is_head(tree)]
    led: dict[str, dict[str, MemberTree]] = {address: {address: trees[address]} for address in heads}
    unled: dict[str, MemberTree] = {}
    for address, tree in trees.items():
        if address in led:
            continue
        near = [head for head in heads if not trees[head].is_alone and trees[head].epoch == tree.epoch]
        nearest = min(near, key=lambda head: abs(trees[head].zxid - tree.zxid), default=None)
        (led[nearest] if nearest is not None else unled)[address] = tree
    sides = [Side(members) for members in (*led.values(), unled) if members]
    return sorted(sides, key=lambda side: -len(side.members))


def majority_of(sides: Sequence[Side], servers: int) -> Side | None:
    """The side that most of the servers are on that everybody connects to: theirs is the tree that the brokers know."""
    first = sides[0] if sides else None
    return first if first is not None and 2 * len(first.members) > servers else None


def _is_head(tree: MemberTree) -> bool:
    return tree.is_leader or tree.is_alone


def _role(tree: MemberTree) -> str:
    return "standalone" if tree.is_alone else "leader" if tree.is_leader else "follower"
