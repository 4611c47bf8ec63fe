"""What the counters of a machine's network say that its kernel throws away, and why. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Drops = Sequence[tuple[str, int]]
"""Of counters that stand still where all is well, by how much each has risen."""


@dataclass(frozen=True)
class Dropped:
    """`what`: as `12 packets …`. `is_common`: by any program of that machine, and none need have been of Kafka's."""

    counters: re.Pattern[str]
    what: str
    fix: str
    is_common: bool = False


KINDS = (
    Dropped(
        re.compile(r"Xfrm:(OutNoStates|AcquireError|OutBundle\w+)"),
        "for which an IPsec policy has no state",
        "Look at `ip xfrm policy` and `ip xfrm state` there: a policy holds back all that it fits until there is a state. "
        "Start the IKE daemon that makes those (strongSwan, Libreswan), or take the policy away (`ip xfrm policy delete`).",
    ),
    Dropped(
        re.compile(r"Xfrm:"),
        "that IPsec does not let through",
        "Look at `ip xfrm policy`, `ip xfrm state` and /proc/net/xfrm_stat there, and at the other end's.",
    ),
    Dropped(
        re.compile(r"TcpExt:IPReversePathFilter"),
        "that came by a way on which it would not answer",
        "Make the routes of both ways the same (`ip route get ADDRESS` at both ends), or set net.ipv4.conf.*.rp_filter to 2.",
    ),
    Dropped(
        re.compile(r".*(MD5|TCPAO(?!Good))"),
        "that are not signed as one end wants it (TCP-MD5, TCP-AO)",
        "Take the key away at that end, or give it to the other one: Kafka and ZooKeeper sign nothing.",
    ),
    Dropped(
        re.compile(r".*CsumErrors"),
        "that came broken",
        "Look at its network card and what is between (ethtool -S; a driver's offloads: ethtool -K).",
    ),
    Dropped(
        re.compile(r".*NoRoutes"),
        "to which no route leads",
        "Look at its routes (`ip route get ADDRESS`).",
        is_common=True,
    ),
    Dropped(
        re.compile(r"Ip:InAddrErrors"),
        "to an address that is not its own",
        "Look who has that address (`ip addr`), and where the route to it leads.",
    ),
    Dropped(
        re.compile(r"Ip:(FragFails|OutDiscards)"),
        "that could not be sent: too large for the way, or without room in the queue",
        "Compare the MTU of both ends and what is between (`tracepath ADDRESS`), and look at `ip -s link`.",
    ),
    Dropped(
        re.compile(r"Neighbours:table_fulls"),
        "because its table of neighbours is full",
        "Raise net.ipv4.neigh.default.gc_thresh3 (and gc_thresh2), or find who asks for so many addresses (`ip neigh`).",
    ),
    Dropped(
        re.compile(r"TcpExt:PFMemallocDrop"),
        "because it has no memory for them",
        "Look what uses its memory (free -m), and raise vm.min_free_kbytes.",
    ),
    Dropped(
        re.compile(r""),
        "",
        "Look what that counter of its kernel means (nstat -az), and who sends so much there.",
    ),
)
"""The first that fits a counter counts."""


def dropped(drops: Drops) -> Iterator[tuple[str, Dropped]]:
    """In words, each with its kind. Of several counters of one kind the sum."""
    for kind, counted in _by_kind(drops).items():
        count = sum(risen for _, risen in counted)
        names = ", ".join(name for name, _ in counted)
        yield " ".join(filter(None, [f"{count} packet{'s' if count > 1 else ''}", kind.what, f"({names})"])), kind


def _by_kind(drops: Drops) -> dict[Dropped, list[tuple[str, int]]]:
    found: dict[Dropped, list[tuple[str, int]]] = {}
    for name, risen in drops:
        found.setdefault(next(kind for kind in KINDS if kind.counters.match(name)), []).append((name, risen))
    return {kind: found[kind] for kind in KINDS if kind in found}
