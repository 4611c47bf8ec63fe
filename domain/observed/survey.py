"""`Survey`: the deep look that an assessment before the start takes, and a plan. Only the preflight reads it.

A part that we may never have, for want of access, is `None` here and named in `missing` with why. One that just did not answer
is named in the observation's `unanswered`, as everything else: then it is asked again.

Of properties only those in `SURVEYED_PROPERTIES` are kept with their values. Of all others there is a digest, keyed with a
number of this one survey that is never stored: two nodes' values can be compared, and nothing can be told from them.
"""

from datetime import datetime

from pydantic import Field

from domain.canaries import Leftovers
from domain.configuration.odd_characters import OddCharacter
from domain.diagnosis.machines.file_owners import Sign
from domain.diagnosis.machines.start import JavaTrial, Override, StartUnit
from domain.observed.parts import ObservedPart, Suspect, Unanswered
from domain.observed.topic_directories import DiskIds, TopicZnode

SURVEYED_PROPERTIES = frozenset(
    {
        "allow.everyone.if.no.acl.found",
        "alter.config.policy.class.name",
        "auto.leader.rebalance.enable",
        "controlled.shutdown.enable",
        "create.topic.policy.class.name",
        "default.replication.factor",
        "leader.imbalance.check.interval.seconds",
        "leader.imbalance.per.broker.percentage",
        "log.message.format.version",
        "min.insync.replicas",
        "num.partitions",
        "principal.builder.class",
        "reserved.broker.max.id",
        "sasl.enabled.mechanisms",
        "sasl.mechanism.controller.protocol",
        "sasl.mechanism.inter.broker.protocol",
        "security.inter.broker.protocol",
        "super.users",
        "unclean.leader.election.enable",
    }
)
"""Values that people have to see to understand a finding. None holds a secret."""


class Directory(ObservedPart):
    """A directory of a node, or where it is not there yet the nearest one above it. Sizes in bytes."""

    path: str
    filesystem: str | None
    free: int
    total: int
    is_writable: bool


class Reached(ObservedPart):
    """A listener that was tried from a node. `problem`: why it was not reached. `certificate_until`: where it has TLS."""

    what: str
    protocol: str
    problem: str | None
    certificate_until: datetime | None = None


class NodeLook(ObservedPart):
    """What a program on the node's own machine saw. `None`: it may not look there, or there is no such process.

    `open_files`, `maps`: those of the node's process now, with the most that it may have. `sockets`: both ends of
    its TCP connections, its own first, as `10.0.0.1:40000`. `topic_ids`: of partitions' directories that lack a topic's id, or
    have another one than ZooKeeper. `memory`: the machine's, in bytes.
    `absent_classes`: of those that the node would have to load, the ones that no jar in `libs` and no class path has.
    `is_port_taken`: somebody listens where this controller is to listen. `unit`: in whose control group whatever is started
    there by us would be; `None` where that is none of systemd's services. `unopened`: files that a start appends to, and could
    not open, and why. `held_by`: processes that have its log directories open, where that of its pid file has none.
    `denied`: what whoever starts as it may not use, and why. `unheld`: log directories whose lock its process does not hold;
    `elsewhere`: others whose lock it holds; `unseen`: of these it could not be seen.
    `trials`: of its java, where the node runs, with the files that the migration will write.
    """

    kafka_versions: tuple[str, ...]
    log_dirs: tuple[Directory, ...]
    archive: Directory | None
    memory: int | None
    open_files: int | None
    most_open_files: int | None
    maps: int | None
    most_maps: int | None
    sockets: tuple[tuple[str, str], ...] | None
    topic_ids: DiskIds
    absent_classes: tuple[str, ...]
    is_port_taken: bool | None
    unit: StartUnit | None
    unopened: tuple[tuple[str, str], ...] = ()
    held_by: tuple[str, ...] = ()
    denied: tuple[tuple[str, str], ...] = ()
    unheld: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    trials: tuple[JavaTrial, ...] = ()
    reached: tuple[Reached, ...]


class Certificate(ObservedPart):
    """What a node shows to others. `names`: DNS names and addresses that it is for. Times: of the whole chain.

    `can_serve`, `can_call`: whether its extended key usage is for servers, and for clients.
    """

    subject: str
    since: datetime
    until: datetime
    names: tuple[str, ...]
    can_serve: bool
    can_call: bool


class PlainLogin(ObservedPart):
    """A login of PLAIN, and whom a server with it lets in: by user's name a digest of the password, of this survey only."""

    user: str
    password: str
    accepts: dict[str, str] = Field(default_factory=dict)


class ListenerSecurity(ObservedPart):
    """What one node has for the controllers' listener, as a client and, a controller, as the server.

    `problems`: what does not open or is not set. `unknown`: what could not be looked at, and why.
    `believed`: ids of the nodes whose certificate its truststore leads to; `None`: it could not be read.
    `mechanism`: of its own logins; `enabled`: those that it offers. `principal`: as whom it comes; `None`: nothing tells.
    """

    problems: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    certificate: Certificate | None = None
    believed: tuple[int, ...] | None = None
    checks_names: bool = True
    client_auth: str = "none"
    mechanism: str = ""
    enabled: tuple[str, ...] = ()
    login: PlainLogin | None = None
    principal: str | None = None


class LoginTried(ObservedPart):
    """Kafka's own tool, run on a controller's host with its settings. `unknown`: why it could not be tried."""

    what: str
    problem: str | None = None
    unknown: str | None = None


class StartedWith(ObservedPart):
    """What a broker has from the file that it was started with, by its own words. `values`: by key; `None`: a secret. `public`:
    keys of which it tells the value, set or not."""

    values: dict[str, str | None]
    public: frozenset[str]


class Unapplied(ObservedPart):
    """A line of a broker's file that comes into force with its next restart. `None`: there is no such line."""

    key: str
    runs: str | None
    says: str | None


class NodeSurvey(ObservedPart):
    """One node. Of a controller that is to be made the settings are those of its `base_properties`.

    `principal`: as whom it logs in to other brokers; `None`: its file does not tell. `lacks_base`: there is no such base file.
    `security`: for the controllers' listener, where it is not plain. `logins`: a controller's, to the brokers' listeners.
    `odd_characters`: what its file has that people read otherwise than Java; `malformed`: why Java cannot read it at all.
    `unapplied`: of a broker that runs, what its file has besides; `None`: it did not tell what it runs with.
    `running`: what a running broker has of settings that a configuration provider gives, as far as it says.
    `owners`: signs that something else writes its file; `None`: its start command could not be read.
    `overrides`: what its start command gives besides the file. `is_command_unread`: the command line of its process could not
    be read, so that there may be more.
    """

    id: int
    look: NodeLook | None = None
    settings: dict[str, str] = Field(default_factory=dict)
    digests: dict[str, str] = Field(default_factory=dict)
    principal: str | None = None
    lacks_base: bool = False
    security: ListenerSecurity | None = None
    logins: tuple[LoginTried, ...] = ()
    unapplied: tuple[Unapplied, ...] | None = None
    running: dict[str, str] = Field(default_factory=dict)
    odd_characters: tuple[OddCharacter, ...] = ()
    malformed: str = ""
    owners: tuple[Sign, ...] | None = ()
    overrides: tuple[Override, ...] = ()
    is_command_unread: bool = False


class ClientSession(ObservedPart):
    """A session of ZooKeeper's and the address of its client."""

    id: int
    client: str


class EnsembleServer(ObservedPart):
    """One server's own words. `None`: the word is not on its whitelist. `problem`: it does not answer at all.

    `latency`: on average, in milliseconds.
    """

    address: str
    problem: str | None = None
    mode: str | None = None
    outstanding: int | None = None
    latency: float | None = None
    sessions: tuple[ClientSession, ...] | None = None


class Registration(ObservedPart):
    """`/brokers/ids/<id>`: its session, and its listeners by name, each with address and security protocol."""

    broker_id: int
    session: int
    addresses: dict[str, str]
    protocols: dict[str, str]


class ZooKeeperSurvey(ObservedPart):
    """What the tree holds besides the view. `protected`: znodes that not everybody may change; `refused`: why we may not.

    `broker_configs`: by entity, the names of the keys. `largest`: of the znodes that were read, the one with most bytes.
    `longest_list`: the parent of most names; a server gives them as one answer. `left`: what canaries have left.
    `coordinators`: when each partition was made of the topics by which brokers find coordinators.
    """

    registrations: tuple[Registration, ...]
    protected: tuple[str, ...]
    refused: str | None
    suspects: tuple[Suspect, ...]
    single_replica_topics: tuple[str, ...]
    broker_configs: dict[str, tuple[str, ...]]
    throttled_topics: tuple[str, ...]
    orphan_configs: tuple[str, ...]
    prefixed_wildcards: tuple[str, ...]
    client_metrics: tuple[str, ...]
    tokens: int
    acls: int
    largest: str
    largest_bytes: int
    longest_list: str
    longest_list_bytes: int
    left: Leftovers = Leftovers()
    coordinators: dict[str, dict[int, datetime]] = Field(default_factory=dict)


class BrokerLogDir(ObservedPart):
    """A log directory as its broker tells it."""

    broker_id: int
    path: str
    is_offline: bool


class Survey(ObservedPart):
    """All of it. `servers` are those of `zookeeper.connect`, each asked by itself. `refused_canaries`: what Kafka would refuse
    us of what the policy has made, with why. `topics`: those without an id in ZooKeeper, or with another one on a disk."""

    nodes: tuple[NodeSurvey, ...]
    zookeeper: ZooKeeperSurvey | None
    servers: tuple[EnsembleServer, ...]
    log_dirs: tuple[BrokerLogDir, ...] | None
    refused_canaries: tuple[str, ...] | None = ()
    missing: tuple[Unanswered, ...] = ()
    topics: tuple[TopicZnode, ...] = ()

    def node(self, node_id: int) -> NodeSurvey:
        return next((node for node in self.nodes if node.id == node_id), NodeSurvey(id=node_id))

    def why_missing(self, what: str) -> str:
        """Why a part is not to be had."""
        return next((part.why for part in self.missing if part.what == what), "it was not looked at")
