"""The files of a rehearsal's throw-away servers. Pure.

The controller gets what our controllers get (`node_config.controller_file`), with another address of ZooKeeper, and without
what only makes sense at its real place: its listeners, and whatever is needed to be let in somewhere. All of it is on
loopback, in a network of its own.
"""

from domain.cluster import ClusterSpec, ControllerSpec
from domain.configuration.properties import edit, parse
from domain.configuration.protocol_map import DEFAULT_PROTOCOL_MAP, PROTOCOL_MAP, protocols_in
from domain.connect_string import read
from domain.zk_to_kraft.node_config import controller_file
from domain.zk_to_kraft.rehearsal.copy_log import LAYOUT

HOST = "127.0.0.1"
ZOOKEEPER_PORT, CONTROLLER_PORT = 2181, 9093
"""Every port is free in a network of its own."""

NOT_HERE = ("ssl.", "sasl.", "listener.name.", "principal.", "zookeeper.ssl.")
"""Keystores, logins, and classes that name who comes: nobody else comes."""
NOT_HERE_EITHER = frozenset(
    {
        "advertised.listeners",
        "metadata.log.dir",
        "security.inter.broker.protocol",
        "zookeeper.clientCnxnSocket",
        "zookeeper.set.acl",
    }
    | {"controller.quorum.bootstrap.servers", "metric.reporters", "metrics.reporters"}
)
STAND_INS = "User:ANONYMOUS"
"""Whom the stand-ins are to the controller's authorizer."""
SESSION_MS = 6000


def chroot_of(connect: str) -> str:
    """`/kafka` of `a:2181,b:2181/kafka`; empty where there is none."""
    return read(connect).chroot


def connect_of(spec: ClusterSpec) -> str:
    """What the throw-away controller has in `zookeeper.connect`."""
    return f"{HOST}:{ZOOKEEPER_PORT}{chroot_of(spec.ensemble.connect)}"


def throw_away(spec: ClusterSpec, log_dir: str) -> tuple[ClusterSpec, ControllerSpec]:
    """The cluster as the throw-away controller is to see it: its ZooKeeper, and itself as the only controller."""
    first = spec.controllers[0]
    controller = first.model_copy(update={"host": HOST, "port": CONTROLLER_PORT, "log_dirs": (log_dir,)})
    zookeeper = spec.ensemble.model_copy(update={"connect": connect_of(spec)})
    here = spec.model_copy(update={"zookeeper": zookeeper})
    return here.with_quorum_changed(controllers=(controller,)), controller


def controller_properties(spec: ClusterSpec, base: str | None, broker: str, log_dir: str) -> str:
    """The throw-away controller's file, from the operator's base file and a broker's. Holds secrets, as the real one does."""
    here, controller = throw_away(spec, log_dir)
    text = controller_file(here, controller, base, broker)
    properties = parse(text)
    removed = frozenset(key for key in properties if key.startswith(NOT_HERE) or key in NOT_HERE_EITHER)
    inter_broker = inter_broker_listener(properties)
    users = [user for user in properties.get("super.users", "").split(";") if user.strip()]
    own = {
        "listeners": f"{spec.controller_listener}://{HOST}:{CONTROLLER_PORT}",
        PROTOCOL_MAP: _plain(properties, inter_broker, spec.controller_listener),
        "inter.broker.listener.name": inter_broker,
        "zookeeper.connect": here.ensemble.connect,
        "zookeeper.session.timeout.ms": str(SESSION_MS),
        "super.users": ";".join(dict.fromkeys((*users, STAND_INS))),
        "log.dirs": log_dir,
    }
    return edit(text, own, removed - own.keys())


def inter_broker_listener(properties: dict[str, str]) -> str:
    """The name by which controllers look for a broker's endpoint (KafkaConfig.interBrokerListenerName)."""
    return properties.get("inter.broker.listener.name") or properties.get("security.inter.broker.protocol") or "PLAINTEXT"


def _plain(properties: dict[str, str], *names: str) -> str:
    """The names of all listeners, each without encryption and login."""
    known = protocols_in(properties.get(PROTOCOL_MAP, DEFAULT_PROTOCOL_MAP))
    return ",".join(f"{name}:PLAINTEXT" for name in dict.fromkeys((*known, *names)))


def zookeeper_configuration(data: str) -> str:
    """`data`: the folder above `version-2`."""
    return f"""\
dataDir={data}
clientPort={ZOOKEEPER_PORT}
clientPortAddress={HOST}
tickTime=1000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr
"""


def logging_configuration() -> str:
    """Everything on standard output. What the copy does in detail, and no value of anybody's."""
    return f"""\
log4j.rootLogger=WARN, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern={LAYOUT}
log4j.logger.org.apache.kafka.metadata.migration=DEBUG
log4j.logger.org.apache.kafka.server.fault=INFO
"""
