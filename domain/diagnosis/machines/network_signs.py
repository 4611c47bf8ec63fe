"""Of `VitalSigns`, what keeps a process from others: its connections, and its links."""

from collections.abc import Collection, Iterator, Mapping

from domain.diagnosis.machines.vital_signs import Sign, VitalSigns

MANY_UNREAD = 3
"""Connections. Of who waits for an answer Kafka reads no second request meanwhile."""
KEEP_AWAY = "If these are a flood (`ss -tn` there), first block what makes it. "
ELSEWHERE = "Check the way there from its machine: a firewall, a route, a link that loses packets, a machine that is gone."


def of_unaccepted(signs: VitalSigns) -> Iterator[Sign]:
    stands = len(signs.unaccepted) > 1 or (signs.unread >= MANY_UNREAD and bool(signs.unaccepted))
    if stands:
        makers = sorted({host for *_, host in signs.unaccepted if host})
        most = f", most of them from {', '.join(makers)}" if makers else ""
        yield Sign(
            f"it accepts no connections at its ports {', '.join(str(port) for port, _, _ in signs.unaccepted)}, where "
            f"{sum(count for _, count, _ in signs.unaccepted)} wait{most}: it is unresponsive as a whole",
            f"{KEEP_AWAY if makers else ''}Check what its threads wait for (`jstack PID`, twice within seconds; `kill -QUIT "
            "PID` prints them into its log): a lock, a plug-in, a library that blocks garbage collection. If it does not "
            "answer that either, only ending its process helps.",
        )
    for port, count, host in () if stands else signs.unaccepted:
        yield Sign(
            f"{count} connections wait at its port {port}, and it accepts them too slowly, or not at all"
            f"{f', most of them from {host}' if host else ''}",
            f"Find what makes them (`ss -tnp` there, dport {port}): a port scanner, a health check, a flood of clients; block "
            "it. If the listener is at its limit (max.connections in the broker's file or /config/brokers; maxCnxns of a "
            "ZooKeeper server), raise that. A ZooKeeper server accepts connections at its election port one by one, waiting "
            "up to ten seconds for each.",
        )


NEARER = (
    "Find what made the way so long: a full queue on a link, a tunnel or a modem (`ping` there, now and when little is sent). "
    "Or another route (`tracepath`), traffic shaping on either machine (`tc -s qdisc`), a proxy that holds traffic back. "
    "Connections need as long to open, and each request to be answered. Longer timeouts only hide it, and a restarted broker "
    "opens all its connections again."
)


def of_far(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    found = [(f"{names[where]} at {where}" if where in names else where, seconds) for where, seconds in signs.far]
    if found:
        told = ", ".join(f"{where} ({seconds:.1f} s)" for where, seconds in found[:4])
        yield Sign(
            f"what it sends takes long to get there and be acknowledged, by TCP's own clock: {told}",
            NEARER,
        )


def of_unheard(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    if signs.unheard:
        found = [f"{names[where]} at {where}" if where in names else where for where in signs.unheard]
        yield Sign(f"what it sends to {', '.join(found[:4])} is not acknowledged", ELSEWHERE)


def of_unsent(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    if found := queues_to({address.rpartition(":")[0] for address in names}, signs, names):
        more = f" and {len(found) - 4} more" if len(found) > 4 else ""
        yield Sign(
            f"what it sends to {', '.join(found[:4])}{more} waits in its machine's queues all the time",
            "Check its link: slow or full (`ip -s link`, ethtool; traffic shaping: `tc -s qdisc`; another program that sends "
            "much). Otherwise the peer does not read.",
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
