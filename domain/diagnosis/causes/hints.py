"""What is looked up only for people, because no decision needs it: data, as causes read it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.diagnosis.machines.node_output import Deleted, NodeOutput
from domain.diagnosis.machines.notes import MachineChanges
from domain.diagnosis.machines.start import StartPlace
from domain.diagnosis.machines.vital_signs import PortHolder, VitalSigns
from domain.errors import Obstacle
from domain.observed.coordinators import Miscount
from domain.observed.ensemble import Trees

LIMITS = re.compile(
    r"(?:listener\.name\.[^.]{1,80}\.)?(connection_creation_rate|max\.connection\.creation\.rate|max\.connections(?:\.per\.ip(?:\.overrides)?)?)"
)
RATES = frozenset({"connection_creation_rate", "max.connection.creation.rate"})
FEW = 10
"""New connections in a second, below which brokers, their clients and a tool that looks may lack some: a restart makes all of
them connect anew at once."""


@dataclass(frozen=True)
class ConnectionLimit:
    """`where`: a znode, or a node's file."""

    key: str
    value: str
    where: str

    @property
    def in_words(self) -> str:
        return f"{self.key}={self.value} in {self.where}"

    @property
    def of_whom(self) -> str:
        whose = self.where.removeprefix("/config/ips/")
        if whose == self.where:
            return "at each listener" if self.key.startswith("listener.name.") else "at a broker"
        return "from any one address" if whose == "<default>" else f"from {whose}"

    @property
    def is_of_addresses(self) -> bool:
        """Also at a listener that brokers have for themselves, which the others spare (ConnectionQuotas.protectedListener)."""
        return self.where.startswith("/config/ips/")

    @property
    def is_tight(self) -> bool:
        """Of rates only: how many connections there are nobody sees here."""
        return LIMITS.sub(r"\1", self.key) in RATES and self.value.replace(".", "", 1).isdigit() and float(self.value) < FEW


def limits_in(where: str, config: Mapping[str, str]) -> Iterator[ConnectionLimit]:
    for key, value in config.items():
        if LIMITS.fullmatch(key):
            yield ConnectionLimit(key, str(value), where)


def how_to_lift(limit: ConnectionLimit) -> str:
    """Without a restart, which would make everybody connect anew."""
    whose = limit.where.rsplit("/", 1)[-1]
    kind = {"ips": "ips", "brokers": "brokers"}.get(limit.where.removeprefix("/config/").split("/")[0])
    entity = "--entity-default" if whose == "<default>" else f"--entity-name {whose}"
    if kind is None:
        change = f"--entity-type brokers --entity-default --add-config {limit.key}=NUMBER, which counts before the file"
    else:
        change = f"--entity-type {kind} {entity} --delete-config {limit.key}"
    return (
        f"Raise or remove it: kafka-configs.sh --bootstrap-server … --alter {change}. That has to connect too, "
        "and may need some tries. Do not restart a broker: all clients would connect again. If the limit was "
        "meant for one client, set it for that address alone (--entity-type ips --entity-name ADDRESS)."
    )


@dataclass(frozen=True)
class Pace:
    """Of what is written to the partitions of a topic that lag."""

    topic: str
    bytes_per_second: float


class Serving(StrEnum):
    """What one ZooKeeper server says when it is asked whether it serves."""

    YES = "serves"
    LEADS = "serves, and leads the others"
    ALONE = "is standalone: it serves a tree of its own, and answers who asks it as if that were the cluster's"
    NO = "answers, and serves no client: it has no quorum"
    SILENT = "accepts connections and does not answer: its process or its disk is unresponsive"
    BUSY = "answers, and has over a hundred requests waiting: its disk, or the network between the members, does not keep up"
    STUCK = (
        "answers, and has committed nothing for a second, though requests wait: its disk hangs, or the disks of "
        "a majority, or a thread of the leader"
    )
    REFUSED = "accepts no connection"
    UNREACHED = "is not reached: a firewall, a route, a name, or its machine"
    UNKNOWN = "does not let itself be asked"


def settled(answers: Mapping[str, Serving]) -> dict[str, Serving]:
    """Whether each serves. A leader that is told to serve no client (zookeeper.leaderServes=no) says no: it is whom all others
    follow."""
    found = [answer for answer in answers.values() if answer is not Serving.NO]
    leads_unseen = set(found) == {Serving.YES} and 2 * len(found) >= len(answers) == len(found) + 1
    well = {Serving.YES, Serving.LEADS, *([Serving.NO] if leads_unseen else [])}
    return {address: Serving.YES if answer in well else answer for address, answer in answers.items()}


@dataclass(frozen=True)
class MemberFiles:
    """What lies in a ZooKeeper server's dataDir. `myid`: what that file says, where it is there. `is_there`: whether the
    directory is; its path may be one inside a container. Of one that does not serve, which of its directories lie on volumes
    without room (`full`), and what others have open there that was `deleted`, or whose file systems can only be read
    (`read_only`)."""

    myid: str | None = None
    is_there: bool = True
    has_snapshot: bool = True
    full: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    deleted: Deleted = ()


@dataclass(frozen=True)
class Asked:
    """One broker, asked by itself, and at which address. `why`: what it does in place of an answer; `None` where it answers."""

    address: str
    why: str | None = None
    obstacle: Obstacle | None = None


@dataclass(frozen=True)
class Hints:
    """What is looked up only for people, because no decision needs it.

    `logs`: by node id, the last lines of its output; `outputs`: by its name, the same with where they go. `servers`: by
    `host:port`; `server_logs`: their last lines, as far as somebody has said where they are; `server_files`: of these.
    `trees`: of members that do not agree, at one zxid; `torn`: of all, where they are two ensembles.
    `unresolved`: names that the machine of keeperless-activities does not resolve, and why; `numbers`: of the others.
    `throttles`: znodes of brokers whose replication is throttled; `limits`: what is set of connections; both where Kafka is
    silent or replicas lag. `shut`: listeners of Kafka, as `host:port`, that accept no connection from us. `unheard`: by broker
    id the addresses that it gives to others and that accept no connection from us, while another broker's listener of that name
    does; `partly`: those that accept some of the connections that were begun at once, and how many of how many; `cut`: of both,
    those at which connections are reset as soon as they are made.
    `set_dynamically`: by broker id the addresses that somebody has set in ZooKeeper in place of those in its file.
    `asked`: by broker id, where Kafka as a whole gives no answer.
    `forgotten`: topics that brokers serve and ZooKeeper has not got.
    `miscounts`: brokers that count fewer partitions of a topic that coordinates than it has.
    `missing`: znodes without which Kafka does not work. `busiest`: where a server does not keep up, or the quorum's leader does
    not get on, which clients ask most.
    `written`: topics that lag, by how fast they grow.
    `signs`: by name, of processes in trouble, what their machines say; `places`: of those that are down, in what they would be
    that are started from there;
    `begun`: nodes that did not run, and did once their output was read;
    `holders`: by name, of who could not bind its ports, who has them;
    `own_signs`: the same of keeperless-activities, where something did not answer it. `changes`: by what a cause is about,
    what is different on its machine since it was noted. `silent`: hints that were asked for and did not come, in words.
    `of_kind`: what only the kind of migration looks up, as it knows it.
    """

    logs: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    outputs: Mapping[str, NodeOutput] = field(default_factory=dict)
    servers: Mapping[str, Serving] = field(default_factory=dict)
    server_logs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    server_files: Mapping[str, MemberFiles] = field(default_factory=dict)
    trees: Trees = field(default_factory=dict)
    torn: Trees = field(default_factory=dict)
    shut: frozenset[str] = frozenset()
    unresolved: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unheard: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    partly: Mapping[int, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    cut: frozenset[str] = frozenset()
    set_dynamically: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    asked: Mapping[int, Asked] = field(default_factory=dict)
    throttles: tuple[str, ...] = ()
    limits: tuple[ConnectionLimit, ...] = ()
    forgotten: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    miscounts: tuple[Miscount, ...] = ()
    busiest: tuple[str, ...] = ()
    written: tuple[Pace, ...] = ()
    signs: Mapping[str, VitalSigns] = field(default_factory=dict)
    places: Mapping[str, StartPlace] = field(default_factory=dict)
    begun: frozenset[int] = frozenset()
    holders: Mapping[str, tuple[PortHolder, ...]] = field(default_factory=dict)
    own_signs: VitalSigns | None = None
    changes: Mapping[str, MachineChanges] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    of_kind: object = None
