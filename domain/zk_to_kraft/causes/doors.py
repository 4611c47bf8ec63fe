"""Where a process listens, held against where it is asked: who is turned away at one address may find it at another. Pure.

Looked at a moment after it was asked: it may have opened a port since.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from domain.checks.seen import some
from domain.cluster import address_in, host_and_port, host_of
from domain.zk_to_kraft.causes.case import Looked

Number = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Door:
    """What is known of an address where a node is asked and does not answer. `observed`: a further sentence; `fix`: what to do
    before anything else."""

    observed: str
    fix: str


def door_of(looked: Looked, name: str, url: str, *, is_agent: bool = False) -> Door | None:
    """Of a URL, or of `host:port`; `is_agent`: of that of its metrics. `None` where nobody knows where its process listens, or
    where that host leads to."""
    signs, address = looked.hints.signs.get(name), address_in(url) if "://" in url else url
    if signs is None or not signs.listens or not address.rpartition(":")[2].isdecimal():
        return None
    host, port = host_of(address), host_and_port(address)[1]
    there = [one for one in signs.listens if host_and_port(one)[1] == port]
    if not there:
        return _nowhere(some(signs.listens), port)
    at, leads_to = some(there), _numbers(looked, host)
    listening = {ip_address(host_and_port(one)[0]) for one in there}
    if listening & leads_to or any(number.is_unspecified for number in listening):
        return _there(at, host)
    if not leads_to:
        return None
    if all(number.is_loopback for number in listening):
        return _loopback(at, host, is_agent=is_agent)
    return _another(at, host, some(sorted(map(str, leads_to))))


def _numbers(looked: Looked, host: str) -> set[Number]:
    """Of a host's name as keeperless-activities resolves it; nothing where it was not asked for that."""
    try:
        return {ip_address(host)}
    except ValueError:
        return {ip_address(number) for number in looked.hints.numbers.get(host, ())}


def _nowhere(listens: str, port: int) -> Door:
    return Door(
        f". Its process listens at {listens}, and at no port {port}",
        "Who answered there before may never have been that process: a proxy, a sidecar or a forwarded port before it that has "
        "ended is to be started again, and there is nothing to mend in the node. Else it has not opened that port yet, or was "
        "started with another: put that back. ",
    )


def _there(at: str, host: str) -> Door:
    return Door(
        f". Its process does listen there by now ({at}), so that its own machine takes connections",
        "Ask again first: it may have begun only just now. Else look at the way to it, and not at the process: a firewall that "
        f"turns away, or another machine that has {host} too (`ip neigh show` on the host of keeperless-activities says which "
        "network card answers for it, `arping -D` on its own machine whether somebody else does). ",
    )


def _loopback(at: str, host: str, *, is_agent: bool) -> Door:
    fix = (
        "The agent of its metrics was given a host to listen at that leads to loopback (the option of its -javaagent, "
        "com.sun.management.jmxremote.host): start it with another, or have something on its machine pass that on. "
        if is_agent
        else "A name in `listeners` of its file (or none at all: the machine's own name) leads to loopback there: a line of "
        f"/etc/hosts, as installers, cloud-init and configuration tools write it (127.0.1.1 …). Give {host} its own address "
        "there, then restart the node, which takes its address as it starts. "
    )
    return Door(f". Its process listens at {at} only, which its own machine alone reaches", fix)


def _another(at: str, host: str, leads_to: str) -> Door:
    return Door(
        f". Its process listens at {at} only, and {host} leads to {leads_to} from here",
        "Where something passes that address on (NAT, a published port, a balancer), look there: nothing is wrong with the "
        f"node. Else let {host} lead to where it listens (DNS, /etc/hosts). ",
    )
