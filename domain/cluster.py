"""`ClusterSpec`: what people tell us about a cluster, and all that we believe without looking.

Paths are paths on the node itself. Credentials are references (`env:NAME`, `file:PATH`), never values.
"""

import posixpath
import re
from collections import Counter
from enum import StrEnum
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from domain import connect_string
from domain.errors import Permanent

AbsolutePath = Annotated[str, Field(pattern=r"^/[^\x00]*$", description="An absolute path on the node.")]
HostPort = Annotated[str, Field(pattern=r"^[A-Za-z0-9._\[\]:-]+:\d{1,5}$", description="host:port")]
SecretRef = Annotated[str, Field(pattern=r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$")]
NodeId = Annotated[
    int,
    Field(
        strict=True,
        ge=0,
        le=2_147_483_647,
        description="A broker's `broker.id` or `node.id`, a controller's `node.id`. Unique among all nodes.",
    ),
]
HostName = Annotated[str, Field(min_length=1)]
ControllerListener = Annotated[
    str,
    Field(pattern=r"^[A-Z][A-Z0-9_]*$", description="Name of the controllers' listener. No broker may have one of this name."),
]
ControllerSecurityProtocol = Annotated[
    Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
    Field(description="Security protocol of the controllers' listener."),
]
CLASS_PATH_OPTIONS = ("-cp", "-classpath", "--class-path")


class SpecModel(BaseModel):
    """Frozen, and strict about unknown fields: a misspelt field is an error, not a silent default."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Role(StrEnum):
    """What a node is for. Combined nodes are not supported: KIP-866 excludes them from migration."""

    BROKER = "broker"
    CONTROLLER = "controller"


class LocalTransport(SpecModel):
    """The node is the machine that the activity worker runs on."""

    kind: Literal["local"] = "local"


class PlainProcess(SpecModel):
    """The node is one process, started by a command and known by a pid file.

    The command runs in a session of its own, so the node outlives its starter. It is given as a list of
    arguments (no shell) and must stay in the foreground. `{properties}` in an argument stands for the path of the
    node's properties file.
    """

    kind: Literal["plain-process"] = "plain-process"
    start_command: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="Program and arguments that start the node in the foreground. `{properties}` stands for its file."
    )
    pid_file: AbsolutePath = Field(
        description="Holds the id of the running process. Keeperless reads it, and writes it when it starts the node."
    )
    output_file: AbsolutePath = Field(description="Standard output and error of the process are appended here.")

    @field_validator("start_command")
    @classmethod
    def _check_foreground(cls, start_command: tuple[str, ...]) -> tuple[str, ...]:
        if "-daemon" in start_command:
            raise ValueError("-daemon puts Kafka into the background, and its process would be unknown: leave it out")
        return start_command


HookCommand = Annotated[tuple[Annotated[str, Field(pattern=r"^[^\x00]+$")], ...], Field(min_length=1)]


class ConfigurationManagement(SpecModel):
    """What would write a node's files back, such as Puppet, Chef or a timer that runs Ansible, and how it is kept from it.

    Three programs with their arguments (no shell), run on the node as the user that reaches it, any number of times. `pause`
    and `resume` end within a minute, `is_paused` within ten seconds: every look at the cluster asks it.
    """

    pause: HookCommand = Field(description="Keeps it from writing files, e.g. `puppet agent --disable`.")
    is_paused: HookCommand = Field(
        description="Exit code 0: it is paused, and no run of it is under way. 1: it is not. Anything else: unknown, which "
        "never counts as paused."
    )
    resume: HookCommand = Field(description="Lets it write files again, e.g. `puppet agent --enable`.")


class NodeDriverSpec(SpecModel):
    """How a node is reached, and how its process is started and stopped."""

    transport: LocalTransport = Field(default=LocalTransport(), description="How the node's machine is reached.")
    service: PlainProcess = Field(description="How the node's process is started, stopped and found.")
    configuration_management: ConfigurationManagement | None = Field(
        default=None,
        description="Paused before the node's file first changes, released at the end. Without it nothing is paused.",
    )


class JolokiaEndpoint(SpecModel):
    """Jolokia's JVM agent, e.g. `http://127.0.0.1:7771/jolokia`."""

    kind: Literal["jolokia"] = "jolokia"
    url: Annotated[str, Field(pattern=r"^https?://")] = Field(description="Address of the agent on the node.")


class PrometheusEndpoint(SpecModel):
    """The Prometheus JMX exporter with its default rules, e.g. `http://127.0.0.1:7071/metrics`."""

    kind: Literal["prometheus"] = "prometheus"
    url: Annotated[str, Field(pattern=r"^https?://")] = Field(description="Address of the exporter's page on the node.")


MetricsEndpoint = Annotated[JolokiaEndpoint | PrometheusEndpoint, Field(discriminator="kind")]


class NodeSpec(SpecModel):
    """What brokers and controllers have in common."""

    id: NodeId
    host: HostName = Field(description="Host name or address, as the other nodes reach it.")
    rack: str | None = Field(default=None, description="Its `broker.rack`. Brokers of one wave are of one rack.")
    driver: NodeDriverSpec = Field(description="How the node is reached, started and stopped.")
    kafka_home: AbsolutePath = Field(description="Kafka's installation; its jars are in the folder libs.")
    environment: dict[str, str] = Field(default_factory=dict, description="Environment of the process: JAVA_HOME, …")
    properties_file: AbsolutePath = Field(description="The file that the start command reads. A migration edits it.")
    log_dirs: Annotated[tuple[AbsolutePath, ...], Field(min_length=1)] = Field(description="All directories of its `log.dirs`.")
    metrics: MetricsEndpoint = Field(description="Where the node's JMX metrics are read.")

    @property
    def further_classes(self) -> list[str]:
        """Besides the jars of `kafka_home`: what environment and start command name, as Kafka's scripts take them."""
        given = [after for option, after in pairwise(self.driver.service.start_command) if option in CLASS_PATH_OPTIONS]
        return [entry for part in (self.environment.get("CLASSPATH", ""), *given) for entry in part.split(":") if entry]

    @property
    def java(self) -> str:
        """The JVM of its environment."""
        home = self.environment.get("JAVA_HOME")
        return f"{home}/bin/java" if home else "java"

    @property
    def class_path(self) -> str:
        """All of it: whatever reads the node's file may have to load a plug-in."""
        libs = f"{self.kafka_home}/libs"
        others = [entry for entry in self.further_classes if posixpath.dirname(entry) != libs]
        return ":".join([f"{libs}/*", *dict.fromkeys(others)])


def path_beside(properties_file: str, suffix: str) -> str:
    """Where Keeperless keeps what belongs to a properties file, on its own node."""
    path = PurePosixPath(properties_file)
    return str(path.parent / ".keeperless" / f"{path.name}.{suffix}")


def original_path(properties_file: str, sha256: str) -> str:
    """Where the archived original of a properties file is."""
    return path_beside(properties_file, f"original-{sha256}")


class BrokerSpec(NodeSpec):
    """A broker that exists and serves."""


class ControllerSpec(NodeSpec):
    """A KRaft controller. If a migration creates it, its properties file and directories need not exist yet."""

    port: Annotated[int, Field(strict=True, ge=1, le=65535)] = Field(description="Port of its controller listener.")
    base_properties: AbsolutePath | None = Field(
        default=None,
        description="A properties file of yours to start from. Without it one is rendered from the first broker's.",
    )


class ZooKeeperMemberSpec(SpecModel):
    """One server of the ensemble: where its files are. They are read only; its data is copied for a rehearsal."""

    host: HostName = Field(description="Host name or address, as in `connect`.")
    transport: LocalTransport = Field(default=LocalTransport(), description="How the server's machine is reached.")
    data_dir: AbsolutePath = Field(description="Its `dataDir`: the folder above `version-2`.")
    data_log_dir: AbsolutePath | None = Field(default=None, description="Its `dataLogDir`, where that is another one.")
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="Its client port, as in `connect`. Needed where several servers have one host."
    )
    output_file: AbsolutePath | None = Field(
        default=None, description="Its log file. If the server does not serve, `blockers` quotes what the log says."
    )


def servers_in(connect: str) -> tuple[str, ...]:
    """`host:port` of each server that a connect string names."""
    return connect_string.read(connect).addresses


def host_and_port(address: str) -> tuple[str, int]:
    """Of `host:port`. An IPv6 address loses its brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def address_at(number: str, port: int | str) -> str:
    """`host:port` of an IP address, one of IPv6 in brackets."""
    return f"[{number}]:{port}" if ":" in number else f"{number}:{port}"


def host_of(address: str) -> str:
    """Of `host:port`, or of a URL; in small letters, as names are alike in both."""
    host = urlsplit(address).hostname or "" if "://" in address else address.rpartition(":")[0].strip("[]")
    return host.lower()


def address_in(url: str) -> str:
    """Of a URL what it is asked at, as `host:port` where it has both; without a user and password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def shown(url: str) -> str:
    """Without the user and password that one may have written into it."""
    return urlsplit(url)._replace(netloc=address_in(url)).geturl()


LISTENER = re.compile(r"\s*([^:/,\s]+)://([^,\s]*:\d+)")


def addresses_of(listeners: str) -> dict[str, str]:
    """`host:port` by name, of `NAME://host:port,…`, as Kafka's `listeners` and registrations are written."""
    return {name.upper(): address for name, address in LISTENER.findall(listeners)}


class ZooKeeperSpec(SpecModel):
    """The ensemble that the cluster uses now."""

    connect: str = Field(
        description="As in the brokers' `zookeeper.connect`: `host:port` of each server, then the chroot once, after the last."
    )
    session_timeout_seconds: Annotated[float, Field(gt=0)] = Field(
        default=10.0, description="Timeout of Keeperless's own ZooKeeper session, in seconds."
    )
    digest_auth: SecretRef | None = Field(default=None, description="Refers to `user:password` of a digest identity.")
    members: tuple[ZooKeeperMemberSpec, ...] = Field(
        default=(), description="Servers whose files can be read; a rehearsal needs one of them."
    )

    @field_validator("connect")
    @classmethod
    def _as_zookeeper_reads_it(cls, connect: str) -> str:
        """Without blanks and empty entries: other clients than ZooKeeper's own stumble over them."""
        return str(connect_string.unmistakable(connect))

    def member(self, address: str) -> ZooKeeperMemberSpec | None:
        """Of a server in `connect`, as `host:port`; `None` where nothing is said of it, or it could be several."""
        host, port = host_and_port(address)
        found = [member for member in self.members if member.host == host and member.port in {None, port}]
        return found[0] if len(found) == 1 else None


class KafkaClientSpec(SpecModel):
    """How our own clients reach the brokers. Further client properties may come from a secret file (`key=value` lines)."""

    bootstrap_servers: Annotated[tuple[HostPort, ...], Field(min_length=1)] = Field(description="Brokers to begin with.")
    client_properties: SecretRef | None = Field(
        default=None, description="A file of client properties, such as `security.protocol`, or a variable that holds them."
    )


class QuorumSpec(SpecModel):
    """The KRaft controllers of a cluster."""

    controllers: Annotated[tuple[ControllerSpec, ...], Field(min_length=1)] = Field(description="Every controller.")
    listener: ControllerListener = "CONTROLLER"
    security_protocol: ControllerSecurityProtocol = "PLAINTEXT"


MOVED = ("controllers", "controller_listener", "controller_security_protocol")
"""Fields that a cluster had in its own right, when it could only be one that is to be migrated."""

WHERE_MOVED = (
    "no longer part of a cluster. Controllers that a migration creates belong in `wanted` of POST /plans and POST /migrations, "
    "under the same names. Controllers that exist belong in `quorum`, as `controllers`, `listener` and `security_protocol`."
)


class ClusterSpec(SpecModel):
    """One Kafka cluster, as its operators describe it."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")] = Field(
        description="What you call it: lower-case letters, digits and dashes, as in the address `PUT /clusters/{name}`."
    )
    cluster_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Kafka's own `cluster.id`.")]
    kafka: KafkaClientSpec = Field(description="How Keeperless's own Kafka clients connect.")
    zookeeper: ZooKeeperSpec | None = Field(default=None, description="The ensemble that the brokers use, if they use one.")
    brokers: Annotated[tuple[BrokerSpec, ...], Field(min_length=1)] = Field(description="Every broker of the cluster.")
    quorum: QuorumSpec | None = Field(
        default=None,
        description="The KRaft controllers that the cluster has. A cluster that has only ZooKeeper has none: those that a "
        "migration creates belong in its `wanted`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_old_form(cls, given: object) -> object:
        moved = [field for field in MOVED if isinstance(given, dict) and field in given]
        if moved:
            raise ValueError(f"{', '.join(moved)}: {WHERE_MOVED}")
        return given

    @model_validator(mode="after")
    def _check_ids(self) -> "ClusterSpec":
        repeated = sorted(node_id for node_id, n in Counter(node.id for node in self.nodes).items() if n > 1)
        if repeated:
            raise ValueError(f"node ids {repeated} are used twice: brokers and controllers share one id space")
        if self.zookeeper is None and self.quorum is None:
            raise ValueError("zookeeper and quorum are missing: name the ensemble that the brokers use, or the controllers")
        return self

    @model_validator(mode="after")
    def _check_files(self) -> "ClusterSpec":
        for what, owners in (
            ("properties_file", Counter((n.host, n.properties_file) for n in self.nodes)),
            ("pid_file", Counter((n.host, n.driver.service.pid_file) for n in self.nodes)),
            ("log_dirs", Counter((n.host, path) for n in self.nodes for path in n.log_dirs)),
            ("port", Counter((c.host, str(c.port)) for c in self.controllers)),
        ):
            repeated = sorted(path for (_, path), n in owners.items() if n > 1)
            if repeated:
                raise ValueError(f"{what} {repeated} belongs to two nodes of one host: give each node its own")
        return self

    def looks_otherwise_at_the_same_as(self, other: "ClusterSpec") -> bool:
        """Whether it differs at most in how Kafka's clients, gauges and ZooKeeper's members are reached: nothing of a node's
        files follows from that, and nothing that is stopped or started."""
        return self._without_ways() == other._without_ways()

    def _without_ways(self) -> "ClusterSpec":
        nowhere = JolokiaEndpoint(url="http://nowhere")
        ways = {"members": (), "session_timeout_seconds": 1.0}
        spec = self.model_copy(
            update={
                "kafka": KafkaClientSpec(bootstrap_servers=("nowhere:1",)),
                "zookeeper": self.zookeeper and self.zookeeper.model_copy(update=ways),
                "brokers": tuple(broker.model_copy(update={"metrics": nowhere}) for broker in self.brokers),
            }
        )
        controllers = tuple(controller.model_copy(update={"metrics": nowhere}) for controller in self.controllers)
        return spec.with_quorum_changed(controllers=controllers) if controllers else spec

    def with_quorum(self, quorum: QuorumSpec) -> "ClusterSpec":
        """The same cluster with these controllers. Raises `ValidationError` if they cannot be beside its brokers."""
        return ClusterSpec(**{**dict(self), "quorum": quorum})

    def with_quorum_changed(self, **fields: object) -> "ClusterSpec":
        """A copy whose quorum differs in these fields. As `model_copy`: nothing is validated."""
        return self.model_copy(update={"quorum": self._known_quorum.model_copy(update=fields)})

    @property
    def ensemble(self) -> ZooKeeperSpec:
        """For what only a cluster with ZooKeeper is asked."""
        if self.zookeeper is None:
            raise Permanent(f"cluster {self.name} has no ZooKeeper in its specification (PUT /clusters/{self.name})")
        return self.zookeeper

    @property
    def _known_quorum(self) -> QuorumSpec:
        if self.quorum is None:
            raise Permanent(
                f"cluster {self.name} has no controllers: neither its specification nor an active migration names any"
            )
        return self.quorum

    @property
    def controllers(self) -> tuple[ControllerSpec, ...]:
        """None where the cluster has no quorum yet."""
        return self.quorum.controllers if self.quorum is not None else ()

    @property
    def controller_listener(self) -> str:
        return self._known_quorum.listener

    @property
    def controller_security_protocol(self) -> str:
        return self._known_quorum.security_protocol

    @property
    def nodes(self) -> tuple[NodeSpec, ...]:
        return (*self.brokers, *self.controllers)

    @property
    def quorum_voters(self) -> str:
        """The static `controller.quorum.voters`: with bootstrap servers alone Kafka 3.9 checks no controller for readiness."""
        return ",".join(f"{c.id}@{c.host}:{c.port}" for c in self.controllers)

    def node(self, node_id: int) -> NodeSpec:
        return next(node for node in self.nodes if node.id == node_id)

    def role(self, node_id: int) -> Role:
        return Role.CONTROLLER if any(c.id == node_id for c in self.controllers) else Role.BROKER

    def node_name(self, node_id: int) -> str:
        """`broker-1`, `controller-3001`: how a node is called in every message, report and event."""
        return f"{self.role(node_id)}-{node_id}"
