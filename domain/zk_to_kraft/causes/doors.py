"""Where a process listens, held against where it is asked: who is turned away at one address may find it at another. Pure."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from domain.cluster import host_and_port, host_of
from domain.zk_to_kraft.causes.case import Looked, some

ANYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - listened for, not listened at


@dataclass(frozen=True)
class Door:
    """What is known of an address where a node is asked and does not answer. `observed`: a further sentence; `fix`: what to do
    before anything else, or empty."""

    observed: str
    fix: str


def door_of(looked: Looked, name: str, url: str) -> Door | None:
    """Of a URL, or of `host:port`. `None` where nobody knows where the node's process listens."""
    signs, address = looked.hints.signs.get(name), urlsplit(url).netloc.rpartition("@")[2] if "://" in url else url
    if signs is None or not signs.listens or not address.rpartition(":")[2].isdecimal():
        return None
    host, port = host_of(address), host_and_port(address)[1]
    there = [one for one in signs.listens if host_and_port(one)[1] == port]
    hosts, leads_to = {host_and_port(one)[0] for one in there}, {host, *looked.hints.numbers.get(host, ())}
    at = some(there)
    if not there:
        return Door(
            f". Its process listens at {some(signs.listens)}, and at no port {port}",
            "Nothing is wrong with that process for this: a proxy, a sidecar or a forwarded port before it has ended, or is "
            "switched off (start it again); or it was started with another port (put that back, or correct the address). ",
        )
    if hosts & (ANYWHERE | leads_to):
        return Door(
            f". Its process does listen there ({at}), so that its own machine takes connections",
            f"Look at the way to it, and not at the process: a firewall that turns away, or another machine that has {host} "
            "too (`ip neigh show` on the host of keeperless-activities says which network card answers for it, `arping -D` on "
            "its own machine whether somebody else does). ",
        )
    if all(map(_is_loopback, hosts)):
        return Door(
            f". Its process listens at {at} only, which its own machine alone reaches",
            "A name in `listeners` of its file (or none at all: the machine's own name) leads to loopback there: a line of "
            f"/etc/hosts, as installers, cloud-init and configuration tools write it ({' '.join(sorted(hosts))} …). Give "
            f"{host} its own address there, then restart the node, which takes its address as it starts. ",
        )
    return Door(
        f". Its process listens at {at} only, and {host} leads to {some(sorted(leads_to))} from here",
        f"Let {host} lead to where it listens (DNS, /etc/hosts), or have it listen there (`listeners`), and restart the node. ",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
