"""What is looked up only for people, because no decision needs it: data, as causes read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.diagnosis.causes.bulk_loads import Pace
from domain.diagnosis.causes.connection_limits import ConnectionLimit
from domain.diagnosis.logs.threads import Standing
from domain.diagnosis.machines.node_output import Deleted, NodeOutput
from domain.diagnosis.machines.notes import MachineChanges
from domain.diagnosis.machines.start_place import StartPlace
from domain.diagnosis.machines.vital_signs import PortHolder, VitalSigns
from domain.errors import Obstacle
from domain.observed.coordinators import Miscount
from domain.observed.ensemble import Trees
from domain.observed.observation import Suspect
from domain.observed.topic_directories import TopicOnDisk


class Serving(StrEnum):
    """What one ZooKeeper server says when it is asked whether it serves."""

    YES = "serves"
    LEADS = "serves, and leads the others"
    ALONE = "is standalone: it serves a tree of its own, and answers who asks it as if that were the cluster's"
    NO = "answers, and serves nobody: it has no quorum"
    SILENT = "accepts connections and says nothing: its process stands still, or its disk does"
    BUSY = "answers, and has over a hundred requests waiting: its disk, or the network between the members, does not keep up"
    STUCK = (
        "answers, and has committed nothing for a second, though requests wait: its disk hangs, or those of a majority, or a "
        "thread of the leader stands"
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
class Unwritten:
    """What ZooKeeper has not got yet of the quorum's log. `changes`: counted by kind, as `300 config`; `configured`: of configs
    whose, most often changed first; `more`: how many came while it was read, in `seconds`."""

    changes: tuple[str, ...]
    configured: tuple[str, ...]
    more: int
    seconds: float


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
    `trees`: of members that do not agree, at one zxid; `torn`: of all, where they are two ensembles. `assigned`: by broker id
    that is not registered, the partitions that it is assigned to. `strays`: configs and ACLs that ZooKeeper cannot hold.
    `unreadable`: znodes that the copy could not read.
    `unresolved`: names that the machine of keeperless-activities does not resolve, and why; `numbers`: of the others.
    `throttles`: znodes of brokers whose replication is throttled; `limits`: what is set of connections; both where Kafka is
    silent or replicas lag. `shut`: listeners of Kafka, as `host:port`, that accept no connection from us. `unheard`: by broker
    id the addresses that it gives to others and that accept no connection from us, while another broker's listener of that name
    does; `partly`: those that accept some of the connections that were begun at once, and how many of how many; `cut`: of both,
    those at which connections are reset as soon as they are made.
    `set_dynamically`: by broker id the addresses that somebody has set in ZooKeeper in place of those in its file.
    `asked`: by broker id, where Kafka as a whole gives no answer.
    `forgotten`: topics that brokers serve and ZooKeeper has not got. `topics`: those without an id there, with their ids on
    brokers' disks.
    `miscounts`: brokers that count fewer partitions of a topic that coordinates than it has.
    `missing`: znodes without which Kafka does not work. `unwritten`: where dual write is behind. `crowded`: then, znodes
    that are nearly as large as ZooKeeper takes; `busiest`: then, and where a server does not keep up, which clients ask most.
    `written`: topics that lag, by how fast they grow.
    `signs`: by name, of processes in trouble, what their machines say; `places`: of those that are down, in what they would be
    that are started from there;
    `begun`: nodes that did not run, and did once their output was read;
    `holders`: by name, of who could not bind its ports, who has them;
    `own_signs`: the same of keeperless-activities, where something did not answer it. `changes`: by what a cause is about,
    what is different on its machine since it was noted. `threads`: by name of a node that starts, ends or is silent for long,
    where it stands. `silent`: hints that were asked for and did not come, in words.
    """

    logs: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    outputs: Mapping[str, NodeOutput] = field(default_factory=dict)
    servers: Mapping[str, Serving] = field(default_factory=dict)
    server_logs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    server_files: Mapping[str, MemberFiles] = field(default_factory=dict)
    trees: Trees = field(default_factory=dict)
    torn: Trees = field(default_factory=dict)
    assigned: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    strays: tuple[Suspect, ...] = ()
    unreadable: tuple[Suspect, ...] = ()
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
    topics: tuple[TopicOnDisk, ...] = ()
    missing: tuple[str, ...] = ()
    miscounts: tuple[Miscount, ...] = ()
    unwritten: Unwritten | None = None
    crowded: tuple[str, ...] = ()
    busiest: tuple[str, ...] = ()
    written: tuple[Pace, ...] = ()
    signs: Mapping[str, VitalSigns] = field(default_factory=dict)
    places: Mapping[str, StartPlace] = field(default_factory=dict)
    begun: frozenset[int] = frozenset()
    holders: Mapping[str, tuple[PortHolder, ...]] = field(default_factory=dict)
    own_signs: VitalSigns | None = None
    changes: Mapping[str, MachineChanges] = field(default_factory=dict)
    threads: Mapping[str, Standing] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
