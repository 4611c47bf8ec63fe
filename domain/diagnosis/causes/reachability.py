"""Addresses and networks: names that do not resolve, ports where nobody listens, lost addresses, proxies, a worker that is in
the wrong place. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from domain.checks.check import some
from domain.cluster import address_at, address_in, addresses_of, host_and_port, host_of, servers_in
from domain.configuration.listener_security import LISTENERS
from domain.diagnosis.blocker import MACHINE
from domain.diagnosis.causes.case import Case, Cause
from domain.diagnosis.logs.catalogue import KAFKA
from domain.diagnosis.logs.lines import all_found, lately
from domain.diagnosis.machines.notes import APART, OURS
from domain.errors import Obstacle
from domain.health.visibility import SEES_NOTHING, WHERE_IT_BELONGS, is_elsewhere
from domain.waits import WaitReason

HOW_TO_CORRECT = (
    "hold the migration (POST /migrations/{id}/hold). While it is held, PUT /clusters/{name} takes another `kafka`, `metrics`, "
    "`zookeeper.members` and `session_timeout_seconds`; then resume it. Where it cannot be held, because it is at work on a "
    'node, terminate its run in Temporal, PUT /clusters/{name}, and POST /migrations with "hold": true, which looks where '
    "the cluster is."
)
"""How to change the specification of a cluster whose migration waits for that."""
OF_OTHERS = (
    WaitReason.CONTROLLERS_NOT_READY,
    WaitReason.QUORUM_TOO_THIN,
    WaitReason.PARTITIONS_NOT_IN_SYNC,
    WaitReason.BROKERS_NOT_REGISTERED,
)
"""What is not known of who cannot be asked."""


def _said(case: Case, obstacle: Obstacle) -> list[str]:
    """By what did not answer, and by brokers that were asked by themselves."""
    parts = [part.why for part in case.observation.unanswered if part.obstacle is obstacle]
    asked = [f"{found.address}: {found.why}" for found in case.hints.asked.values() if found.obstacle is obstacle]
    return [*parts, *asked]


def unresolved_cause(case: Case) -> Cause:
    """One entry, whatever is asked at names that are not resolved here: nothing is known of who has them."""
    parts = _said(case, Obstacle.UNRESOLVED)
    known = case.hints.unresolved
    names = "; ".join(f"{host}: {words}" for host, words in sorted(known.items()))
    more = [why for why in parts if not any(host in why.lower() for host in known)]
    told = ". ".join(filter(None, [f"names are not resolved there: {names}" if names else "", *more]))
    nodes = [*(node.metrics.url for node in case.spec.nodes), *(f"{c.host}:{c.port}" for c in case.spec.controllers)]
    return case.cause(
        MACHINE,
        OURS,
        *([WaitReason.PART_UNKNOWN] if case.observation.unanswered else []),
        *(OF_OTHERS if parts or any(map(case.is_unresolved, nodes)) else ()),
        observed=told[:1000],
        expected="its machine resolves every name that it needs, without delay",
        fix="Restart no node: its state is not known. On the machine of keeperless-activities check `getent hosts "
        "NAME`, `resolvectl status`, /etc/resolv.conf (a dead first nameserver makes every name late), "
        "/etc/hosts, the zone. Clients and nodes may have the same trouble. If the name in the specification is "
        f"wrong: {HOW_TO_CORRECT}",
    )


def lacking_cause(case: Case) -> Cause:
    """One entry, whomever it could not ask for that."""
    parts = _said(case, Obstacle.OURS)
    return case.cause(
        MACHINE,
        OURS,
        WaitReason.PART_UNKNOWN,
        *OF_OTHERS,
        observed="; ".join(parts)[:1000],
        expected="it can connect to every node",
        fix="Restart none of them: their state is not known. Find what uses up what keeperless-activities lacks on "
        "its machine. It continues by itself when it has that.",
    )


def cause_of_ours(case: Case, obstacle: Obstacle | None, *addresses: str) -> Cause | None:
    """Where it lies with us that nobody answers at any of these."""
    if obstacle is Obstacle.UNRESOLVED or all(map(case.is_unresolved, addresses)):
        return unresolved_cause(case)
    return lacking_cause(case) if obstacle is Obstacle.OURS else None


CORRECT_ENDPOINT = f"Where its address is wrong: {HOW_TO_CORRECT}"
ENDPOINTS = {
    Obstacle.TLS: (
        "comes to no TLS with us",
        "Where its certificate is not trusted, give the authority that has signed it to keeperless-activities (the system's "
        "store, or SSL_CERT_FILE; read when it starts); renew one that has expired, or has not the host's name. Where the "
        "agent speaks plain HTTP now, its configuration has lost its TLS (httpServer.ssl of the JMX exporter): put it back. "
        f"{CORRECT_ENDPOINT}",
    ),
    Obstacle.FORBIDDEN: (
        "answers, and refuses us",
        "Let keeperless-activities read it, which has no login for it: take authentication off for that address "
        "(httpServer.authentication of the JMX exporter, user and password of Jolokia's agent), or allow its host and the "
        "MBean in Jolokia's access rules (jolokia-access.xml). It only reads.",
    ),
    Obstacle.ANOTHERS: (
        "answers with what are not its gauges",
        "Look who has that port and path (`curl` the address): another node's agent, another program, a proxy before it, or "
        "an agent whose path has changed. Put back the agent's configuration of before. "
        f"{CORRECT_ENDPOINT}",
    ),
}
"""How the endpoint of a node's metrics behaves where nobody hangs, and what to do."""
SLOW_PAGE = (
    "If the page takes long, limit what the agent reads to what is asked (includeObjectNames of the JMX "
    "exporter: kafka.server:type=KafkaServer,*, kafka.server:type=ReplicaManager,*, "
    "kafka.server:type=raft-metrics, kafka.server:type=app-info,*, kafka.controller:type=KafkaController,*). "
    "Let fewer clients read it at the same time (`ss -tn` shows them). If most of the page is client ids, "
    "let the application use one id for all connections, or remove the quota of all clients. If the page is "
    "short, the node may hang: check its log, and whether its heap is full."
)
NOBODY_THERE = (
    "Look whether it hangs (its log, a heap that is full), and whether the exporter's port is open from the host of "
    f"keeperless-activities. {CORRECT_ENDPOINT}"
)
Number = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Door:
    """What is known of an address where a node is asked and does not answer. `observed`: a further sentence; `fix`: what to do
    before anything else."""

    observed: str
    fix: str


def door_of(case: Case, name: str, url: str, *, is_agent: bool = False) -> Door | None:
    """Of a URL, or of `host:port`; `is_agent`: of that of its metrics. `None` where nobody knows where its process listens, or
    where that host leads to."""
    signs, address = case.hints.signs.get(name), address_in(url) if "://" in url else url
    if signs is None or not signs.listens or not address.rpartition(":")[2].isdecimal():
        return None
    host, port = host_of(address), host_and_port(address)[1]
    there = [one for one in signs.listens if host_and_port(one)[1] == port]
    if not there:
        return _nowhere(some(signs.listens), port)
    at, leads_to = some(there), _numbers(case, host)
    listening = {ip_address(host_and_port(one)[0]) for one in there}
    if listening & leads_to or any(number.is_unspecified for number in listening):
        return _there(at, host)
    if not leads_to:
        return None
    if all(number.is_loopback for number in listening):
        return _loopback(at, host, is_agent=is_agent)
    return _another(at, host, some(sorted(map(str, leads_to))))


def _numbers(case: Case, host: str) -> set[Number]:
    """Of a host's name as keeperless-activities resolves it; nothing where it was not asked for that."""
    try:
        return {ip_address(host)}
    except ValueError:
        return {ip_address(number) for number in case.hints.numbers.get(host, ())}


def _nowhere(listens: str, port: int) -> Door:
    return Door(
        f". Its process listens at {listens}, and at no port {port}",
        "Check what answered there before: it may have been a proxy, a sidecar or a forwarded port that has "
        "ended. Start that again; nothing is wrong with the node. If not, the node has not opened that port yet, "
        "or was started with another one: restore the former one. ",
    )


def _there(at: str, host: str) -> Door:
    return Door(
        f". Its process does listen there by now ({at}), so that its own machine takes connections",
        "Ask again first: it may have begun only now. If not, check the way to it, and not the process. A "
        f"firewall may reject, or another machine may have {host} too: `ip neigh show` on the host of "
        "keeperless-activities shows which network card answers for it, `arping -D` on its own machine whether "
        "another one does. ",
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


def listening(case: Case) -> Iterator[tuple[str, str]]:
    """`host:port` of nodes and of ZooKeeper's servers, with their names; a kernel knows only those that are numbers."""
    places = [(server, "ZooKeeper") for server in servers_in(case.spec.ensemble.connect)]
    places += [(f"{controller.host}:{controller.port}", case.name(controller.id)) for controller in case.spec.controllers]
    for broker in case.spec.brokers:
        kept = case.properties(broker.id)
        addresses = [address for key in LISTENERS for address in addresses_of(kept.get(key, "")).values()]
        places += [(address, case.name(broker.id)) for address in addresses]
    return _with_numbers(case, places)


def owned_by(case: Case, troubled: Collection[str]) -> dict[str, str]:
    """The addresses of these, metrics endpoints too, with who it is. Of a server of ZooKeeper also where the ensemble is."""
    places = [(server, f"zookeeper {server}") for server in servers_in(case.spec.ensemble.connect)]
    places += [(address_in(node.metrics.url), case.name(node.id)) for node in case.spec.nodes]
    known = (*listening(case), *_with_numbers(case, places))
    return {address: name for address, name in known if name in troubled}


def _with_numbers(case: Case, places: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for address, name in places:
        yield address, name
        for number in case.hints.numbers.get(host_of(address), ()):
            yield address_at(number, address.rpartition(":")[2]), name


LINE = r"address (?:\d+: )?(?P<link>\S+) inet6? (?P<address>[0-9a-f.:]+)/(?P<bits>\d+)\b.*"
GONE, NEW = re.compile(f"{LINE} is gone"), re.compile(f"{LINE} is new")
"""Changes of a machine, as they are told of a line of `ip -o addr`. An address that has moved, or has another flag, is both."""


@dataclass(frozen=True)
class LostAddress:
    """`link`: that it was on."""

    address: str
    bits: str
    link: str

    @property
    def in_words(self) -> str:
        return f"{self.address} is no address of its machine any more: it was on {self.link} when this migration began"

    def fix(self, name: str) -> str:
        """`name`: of whoever listens there."""
        return (
            f"Have it back: `ip addr add {self.address}/{self.bits} dev {self.link}` there, or by what manages it (a lease of "
            "DHCP that has ended, systemd-networkd or NetworkManager that were restarted or upgraded, keepalived). Restart "
            f"nothing: {name} listens there still, and answers as soon as the address is back; started again without it, it "
            "could not bind it."
        )


def lost_address(case: Case, addresses: Collection[str]) -> LostAddress | None:
    """The first of these (`host:port`) that a machine has lost since it was noted, and that no other one has got."""
    hosts = {number for at in addresses for number in (host_of(at), *case.hints.numbers.get(host_of(at), ()))}
    lines = [line for changes in case.hints.changes.values() for line in changes.changes]
    there = {found["address"] for line in lines if (found := NEW.match(line))}
    gone = (found for line in lines if (found := GONE.match(line)) and found["address"] in hosts - there)
    return next((LostAddress(found["address"], found["bits"], found["link"]) for found in gone), None)


PROXY_HEADER = KAFKA["proxy-header"]
"""By the first four bytes of such a header, of version 2 and of version 1, as a number (InvalidReceiveException)."""


def of_proxy_header(case: Case, broker_ids: Sequence[int]) -> tuple[str, str, str] | None:
    """Of the first of them to which it happens: its name, what is seen, and the fix."""
    for broker_id in broker_ids:
        if any(all_found(lately(case.log(broker_id)), (PROXY_HEADER,))):
            name = case.broker_name(broker_id)
            return (
                name,
                f"new connections to {name} begin with a header of the PROXY protocol in place of Kafka's protocol, by "
                "the size in its log (InvalidReceiveException), and it closes them",
                PROXY_HEADER.fix,
            )
    return None


def without_those_of_elsewhere(case: Case, causes: Iterable[Cause]) -> Iterator[Cause]:
    """The causes; where nothing is seen of the nodes, that one first, and nothing that is told of what they lack."""
    if not is_elsewhere(case.observation, case.spec):
        yield from causes
        return
    found = list(causes)
    names = {case.name(node.id) for node in case.spec.nodes} | {OURS}
    hidden = [one for one in found if one.blocker.object in names or one.blocker.code == WaitReason.FILE_CHANGED]
    serving = [case.name(view.id) for view in case.observation.nodes if view.is_unowned]
    serve = f"; {', '.join(serving)} serve, by their metrics" if serving else ""
    yield case.cause(
        MACHINE,
        OURS,
        *frozenset[str]().union(*(one.explains for one in hidden)),
        *(WaitReason.PART_UNKNOWN, WaitReason.FILE_CHANGED, WaitReason.NODE_DOWN),
        observed=f"{SEES_NOTHING}{serve}",
        expected=f"{OURS} on the machine of the nodes",
        fix=WHERE_IT_BELONGS,
    )
    yield from (one for one in found if one not in hidden)


OF_SILENCE = frozenset({WaitReason.PART_UNKNOWN, WaitReason.NODE_NOT_READY, "GF11"})
"""What is told of whom does not answer."""


def without_those_of_another_network(case: Case, causes: Iterable[Cause]) -> Iterator[Cause]:
    """The causes; where all that is silent is silent for that, that one first."""
    if not _is_in_another_network(case):
        yield from causes
        return
    found = list(causes)
    hidden = [one for one in found if one.blocker.code in OF_SILENCE]
    yield case.cause(
        MACHINE,
        OURS,
        *frozenset[str]().union(*(one.explains for one in hidden)),
        WaitReason.PART_UNKNOWN,
        observed="nothing answers it, neither ZooKeeper nor Kafka nor any node's metrics, and it is in another network than "
        "before: nodes, and the members of the ensemble, may all be well",
        expected=f"{OURS} in a network from which all of them are reached",
        fix="Restart no node, and start nothing beside them.",
    )
    yield from (one for one in found if one not in hidden)


def _is_in_another_network(case: Case) -> bool:
    seen, changes = case.observation, case.hints.changes.get(OURS)
    is_deaf = seen.zookeeper is None and seen.kafka is None and all(view.metrics is None for view in seen.nodes)
    return is_deaf and changes is not None and any(line.startswith(APART) for line in changes.changes)
