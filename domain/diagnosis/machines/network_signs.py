"""Of `VitalSigns`, what keeps a process from others: its connections, its links, packets that are thrown away."""

from collections.abc import Collection, Iterator, Mapping

from domain.diagnosis.machines.drops import dropped
from domain.diagnosis.machines.vital_signs import Sign, VitalSigns

MANY_CONNECTED = 50
"""Connections at one port from which on it is told who has most: far fewer than any limit that somebody would set."""
MANY_UNREAD = 3
"""Connections. Of who waits for an answer Kafka reads no second request meanwhile."""
KEEP_AWAY = "Where these are a flood (`ss -tn` there), keep who makes it away first. "


def of_unaccepted(signs: VitalSigns) -> Iterator[Sign]:
    stands = len(signs.unaccepted) > 1 or (signs.unread >= MANY_UNREAD and bool(signs.unaccepted))
    if stands:
        makers = sorted({host for *_, host in signs.unaccepted if host})
        most = f", most of them from {', '.join(makers)}" if makers else ""
        yield Sign(
            f"it takes no connections at its ports {', '.join(str(port) for port, _, _ in signs.unaccepted)}, where "
            f"{sum(count for _, count, _ in signs.unaccepted)} wait{most}: it stands still as a whole",
            f"{KEEP_AWAY if makers else ''}Look what its threads stand in (`jstack PID`, twice within seconds; `kill -QUIT "
            "PID` prints them into its log): a lock, a plug-in, a library that keeps its JVM from collecting garbage. Where it "
            "does not even answer that, only an end of its process helps.",
        )
    connected = {port: (count, has, who) for port, count, has, who in signs.connected if count >= MANY_CONNECTED}
    for port, count, host in () if stands else signs.unaccepted:
        most = f", most of them from {host}" if host else ""
        if port in connected:
            yield of_connected(port, count, *connected[port])
            continue
        yield Sign(
            f"{count} connections wait at its port {port}, and it accepts them too slowly, or not at all{most}",
            f"Find who makes them (`ss -tnp` there, dport {port}): a port scanner, a health check, a flood of clients; keep it "
            "away. A server of ZooKeeper takes those at its election port one by one, and waits up to ten seconds for each.",
        )


def of_connected(port: int, waiting: int, taken: int, has: int, who: str) -> Sign:
    """It may have as many as it takes: a broker at its limit accepts nobody, and says nothing of it (ConnectionQuotas)."""
    return Sign(
        f"{waiting} connections wait at its port {port}, and it accepts them too slowly, or not at all; it has {taken} there, "
        f"of which {who} has {has}",
        f"If {who} is one that leaks connections, end it, or what it does. Where {taken} is what that listener may have "
        "(max.connections in the broker's file, in /config/brokers, or with the listener's name before it; of a server of "
        "ZooKeeper maxCnxns), it takes the next one only when one goes: raise that limit, a restart helps for a moment only. "
        f"Else find who makes those that wait (`ss -tnp` there, dport {port}): a port scanner, a health check, a flood of "
        "clients; keep it away.",
    )


NEARER = (
    "Connections need as long to open, and each request to be answered. Look what has made the way so long: a queue that is "
    "full on a link, a tunnel or a modem (`ping` there, now and when little is sent), a route that leads elsewhere by now "
    "(`tracepath`), what shapes or delays it on either machine (`tc -s qdisc`), a proxy that holds back what passes. Longer "
    "timeouts only hide it, and a restart of a broker makes all its connections open anew."
)


def of_far(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    found = [(f"{names[where]} at {where}" if where in names else where, seconds) for where, seconds in signs.far]
    if found:
        told = ", ".join(f"{where} ({seconds:.1f} s)" for where, seconds in found[:4])
        yield Sign(
            f"what it sends takes long to get there and be acknowledged, by TCP's own clock: {told}",
            NEARER,
        )


SMALLER = (
    "A part of the way takes smaller packets only, and does not say so (a black hole of path MTU discovery): compare the MTU "
    "of both machines and of what is between (`ip link`; `tracepath`; `ping -M do -s 1472` there, and smaller, until it comes "
    "back): jumbo frames on one side, a new tunnel or VPN, a firewall that drops ICMP `fragmentation needed`. Also what "
    "filters packets on either machine (`tc filter show`, `nft list ruleset`). Until that is mended, `ip link set DEVICE mtu` "
    "or net.ipv4.tcp_mtu_probing=1 on the machine that sends lets TCP send smaller ones. Nobody has to be restarted."
)


ELSEWHERE = "Look at the way there from its machine: a firewall, a route, a link that loses packets, a machine that is gone."
RAISE_LOOPBACK = "Set it up (`ip link set lo up`, in the network of that process; `ip link show lo`). Nobody has to restart."
FORGOTTEN = (
    ": established connections are dropped, while new ones pass: a firewall or NAT between them has forgotten them (its "
    "session table is full or its idle timeout is short: `conntrack -S`, net.netfilter.nf_conntrack_max and "
    "nf_conntrack_count, the firewall's session table)"
)
RAISE_TABLE = (
    "Raise that table or timeout there; they come back once the old connections are given up (net.ipv4.tcp_retries2, about 15 "
    "minutes), or when the process that holds them is restarted. Where the way was cut until just now they go on by themselves "
    "within two minutes."
)
LOOK_AT_LOOPBACK = (
    "Both ends are on one machine, and no firewall, route or link beside it has part in it. Look whether lo is up there (`ip "
    "link show lo`; `ip link set lo up`), what filters or shapes it (`nft list ruleset`, `iptables -S`: rules on lo; `tc qdisc "
    "show dev lo`), and whether who listens there accepts (`ss -ltn`: Recv-Q above Send-Q)."
)


def of_unheard(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    if signs.unheard:
        yield from of_drops(signs)
    for places, (words, fix) in _apart(signs):
        found = [f"{names[where]} at {where}" if where in names else where for where in places]
        told = f"what it sends to {', '.join(found[:4])} is not acknowledged{words}"
        yield Sign(told, fix, is_cure=signs.only_large)


def _apart(signs: VitalSigns) -> Iterator[tuple[tuple[str, ...], tuple[str, str]]]:
    """What is not acknowledged, by why that may be."""
    by_why: dict[tuple[str, str], list[str]] = {}
    for where in signs.unheard:
        by_why.setdefault(why_unheard(signs, where), []).append(where)
    yield from ((tuple(places), why) for why, places in by_why.items())


def why_unheard(signs: VitalSigns, where: str) -> tuple[str, str]:
    """In words, empty where there is no more to say, and what to do."""
    if signs.only_large:
        return " where it is large, and small packets get through", SMALLER
    if where in signs.open_anew:
        return FORGOTTEN, RAISE_TABLE
    if where in signs.over_loopback:
        at_home = ": both are on one machine, and it goes over its loopback device"
        return (f"{at_home}, which is down", RAISE_LOOPBACK) if signs.is_loopback_down else (at_home, LOOK_AT_LOOPBACK)
    return "", ELSEWHERE


def of_unsent(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    if found := queues_to({address.rpartition(":")[0] for address in names}, signs, names):
        more = f" and {len(found) - 4} more" if len(found) > 4 else ""
        yield Sign(
            f"what it sends to {', '.join(found[:4])}{more} waits in its machine's queues all the time",
            "Its link is slow or full (ip -s link, ethtool; what shapes it: tc -s qdisc; another program that sends much), or "
            "who is there does not read.",
            is_slight=True,
        )


def queues_to(hosts: Collection[str], signs: VitalSigns, names: Mapping[str, str] | None = None) -> list[str]:
    """What much of what it sends waits for, at these hosts, in words."""
    return [
        f"{(names or {}).get(where, where)} ({_kilobytes(size)} wait{_paced(pace)})"
        for where, size, pace in signs.unsent
        if where.rpartition(":")[0] in hosts
    ]


def _paced(pace: float | None) -> str:
    return "" if pace is None else f", {_kilobytes(pace)} a second get through"


def _kilobytes(size: float) -> str:
    return f"{size / 1e3:.1f} kB" if size < 10e3 else f"{size / 1e3:,.0f} kB"


def of_drops(signs: VitalSigns) -> Iterator[Sign]:
    for what, kind in dropped(signs.drops):
        told = f"the network of its machine has thrown away, in that second, {what}"
        yield Sign(told, kind.fix, is_slight=True, is_common=kind.is_common)


MANY_ASKERS = 3
"""Connections to a metrics endpoint: one is kept open by whoever collects metrics."""


def of_askers(signs: VitalSigns) -> Iterator[Sign]:
    """Of a node whose metrics endpoint has not answered in time."""
    if signs.heap_dump is None and sum(count for _, count in signs.askers) >= MANY_ASKERS:
        who = ", ".join(f"{host} ({count})" for host, count in signs.askers)
        yield Sign(
            f"its metrics endpoint has connections open from {who}: others ask it, and may wait likewise",
            "Its metrics are collected anew for everybody who asks, and with thousands of partitions that takes long: let "
            "fewer ask, and less often (scrape_interval), or leave out what nobody needs (includeObjectNames), not Kafka's own "
            "gauges.",
        )
