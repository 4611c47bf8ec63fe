"""Why a process gets no connection to another one: by the exception below what it warns of while it tries. Pure.

It lives on with that and tries again, or gives up with words that only say so. From NetworkClient of Kafka 3.9, and ClientCnxn,
QuorumCnxManager and Learner of ZooKeeper 3.8.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from domain.diagnosis.logs.kafka_deaths import KEYS
from domain.diagnosis.logs.lines import OF_OTHERS, THEN_START, Found, Told, first_of
from domain.diagnosis.logs.machine_deaths import MACHINE_OUT_OF_FILES, UNKNOWN_HOST
from domain.diagnosis.logs.said import Said, blocks, in_short
from domain.diagnosis.logs.silence_lines import TOO_MANY_OPEN_FILES

TRIES = re.compile(
    r"Error connecting to node |Session 0x\w{1,20} for \w{5,6} |future isn't success|Unexpected throwable|"
    r"Cannot open (?:secure )?channel to |Failed connect to |connecting to \S|Exception when (?:follow|observ)ing the leader"
)
TURNED_AWAY = Told(
    "connection-closed-by-zookeeper",
    re.compile(r"Unable to read additional data from server sessionid 0x0, likely server has closed socket"),
    "servers of ZooKeeper that keep the connections that they take",
    "Something accepts its connections and closes them at once. A server without a quorum does so: look at the ensemble first. "
    "One that serves says in its own log why: `Too many connections from` (maxClientCnxns, 60 for each address by default), or "
    "`Refusing session request` (it is behind what this node has seen). Else zookeeper.connect names a port with TLS, and the "
    "node speaks without, or a proxy's.",
)
NO_LOCAL_PORT = Told(
    "no-local-port",
    re.compile(r"(?:Bind|Socket)Exception: Cannot assign requested address"),
    "a machine with ports left for connections of its own",
    "Its host has no local port left for that, or not the address that it is to come from: `ss -s` and `ss -tan` say who has "
    "so many (TIME-WAIT, or open to one place), net.ipv4.ip_local_port_range how many there are. End what opens them one "
    "after the other; a wider range helps at once.",
)
FORBIDDEN = Told(
    "connection-forbidden",
    re.compile(r"(?:Bind|Socket|Connect)Exception: (?:Permission denied|Operation not permitted)"),
    "a machine that lets the node connect",
    "Its own host forbids the connection: a firewall's rule for what goes out, a security module (dmesg: avc: denied "
    "name_connect), or the unit that it runs in (IPAddressDeny=, RestrictAddressFamilies=). Take that back.",
)
NO_ROUTE = Told(
    "no-route",
    re.compile(r"Exception: (?:No route to host|Network is unreachable|Host is unreachable)"),
    "a way from its host to the one that it asks",
    "`ip route get ADDRESS` on its host says whether it knows a way: a route or an interface that has gone, a firewall that "
    "rejects, or nobody there who answers for that address.",
)
NO_FAMILY = Told(
    "no-address-family",
    re.compile(r"UnsupportedAddressTypeException|Protocol family unavailable|Address family not supported by protocol"),
    "names that lead to addresses of a kind that its host and its JVM have",
    "The name leads to an address of IPv6, and its host or its JVM has only IPv4, or the other way: `getent ahosts NAME` there "
    "says which come first. IPv6 may be off (sysctl net.ipv6.conf.all.disable_ipv6, ipv6.disable=1), or "
    "-Djava.net.preferIPv4Stack=true be set in its options; or its unit forbids it (RestrictAddressFamilies=). Switch it on "
    "again, or have the name lead to an address of the other kind (DNS, /etc/hosts).",
)
UNCONNECTED = (TURNED_AWAY, NO_LOCAL_PORT, FORBIDDEN, NO_ROUTE, NO_FAMILY)
BY_THEMSELVES = (*UNCONNECTED, MACHINE_OUT_OF_FILES, UNKNOWN_HOST)
"""Who runs tries again, and needs no restart once that is mended."""
KINDS = (*BY_THEMSELVES, TOO_MANY_OPEN_FILES, *KEYS)


def unconnected(block: Sequence[Said]) -> Found | None:
    """Of one complaint with the exceptions below it."""
    if not TRIES.search(block[0].text) or OF_OTHERS.search(block[0].text) or len(block) == 1:
        return None
    found = first_of(" | ".join(one.text for one in block[1:]), KINDS)
    return replace(found, quote=in_short(block)) if found is not None else None


def unconnected_in(said: Sequence[Said]) -> Found | None:
    """The last that is known."""
    known = [found for block in blocks(said) if (found := unconnected(block)) is not None]
    return known[-1] if known else None


def of_the_dead(found: Found) -> Found:
    return replace(found, told=replace(found.told, fix=f"{found.told.cure}{THEN_START}"))


def fix_of_the_living(found: Found) -> str:
    told = found.told
    return told.cure if told in BY_THEMSELVES or told.cure == told.fix else f"{told.cure} Then restart it."
