"""What a node's properties file must contain at each stage. The table is the code: `FEATURES` says what, `_KEYS` how.

| stage     | broker                             | controller                              |
|-----------|------------------------------------|-----------------------------------------|
| zookeeper | ZOOKEEPER                          | -                                       |
| migration | ZOOKEEPER, MIGRATION_FLAG, QUORUM  | ZOOKEEPER, MIGRATION_FLAG, QUORUM, ROLE |
| kraft     | QUORUM, ROLE                       | QUORUM, ROLE                            |

Sources: the property matrix of Kafka's migration guide (3.9) and KafkaConfig.validateValues; reference section 1.9.
"""

from collections.abc import Mapping
from enum import StrEnum

from domain.cluster import ClusterSpec, ControllerSpec, NodeSpec, Role
from domain.configuration.properties import edit, parse, rename
from domain.configuration.protocol_map import DEFAULT_PROTOCOL_MAP, PROTOCOL_MAP, merged_map, with_listener
from domain.errors import Permanent
from domain.zk_to_kraft.steps import NodeStage


class Feature(StrEnum):
    """A group of keys that come and go together."""

    ZOOKEEPER = "zookeeper"
    """Connects to ZooKeeper, and whatever only a node with ZooKeeper may have."""
    MIGRATION_FLAG = "migration-flag"
    """`zookeeper.metadata.migration.enable=true`."""
    QUORUM = "quorum"
    """Knows the controllers: voters, listener name, its security protocol."""
    ROLE = "role"
    """`process.roles` and `node.id`: runs the KRaft code."""


FEATURES: dict[tuple[NodeStage, Role], frozenset[Feature]] = {
    (NodeStage.ZOOKEEPER, Role.BROKER): frozenset({Feature.ZOOKEEPER}),
    (NodeStage.MIGRATION, Role.BROKER): frozenset({Feature.ZOOKEEPER, Feature.MIGRATION_FLAG, Feature.QUORUM}),
    (NodeStage.KRAFT, Role.BROKER): frozenset({Feature.QUORUM, Feature.ROLE}),
    (NodeStage.MIGRATION, Role.CONTROLLER): frozenset(Feature),
    (NodeStage.KRAFT, Role.CONTROLLER): frozenset({Feature.QUORUM, Feature.ROLE}),
}

MIGRATION_FLAG = "zookeeper.metadata.migration.enable"

VOTERS = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
"""One of them is enough."""

KEYS_OF_MODE = {
    MIGRATION_FLAG: Feature.MIGRATION_FLAG,
    **dict.fromkeys((*VOTERS, "controller.listener.names"), Feature.QUORUM),
    "process.roles": Feature.ROLE,
    "zookeeper.connect": Feature.ZOOKEEPER,
}
"""What decides in which mode a node starts; the values of all are shown to people."""

ZOOKEEPER_ONLY_KEYS = frozenset(
    {
        "broker.id.generation.enable",
        "control.plane.listener.name",
        "inter.broker.protocol.version",
        "reserved.broker.max.id",
    }
)
"""Keys without the prefix `zookeeper.` that a process with a role of KRaft refuses or ignores."""

ZOOKEEPER_PREFIXES = ("zookeeper.", "password.encoder.")
"""Needed as long as there is ZooKeeper: it keeps dynamic passwords encrypted, the quorum's log does not."""

KRAFT_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZERS_IN_KRAFT = {
    "kafka.security.authorizer.AclAuthorizer": KRAFT_AUTHORIZER,
    "kafka.security.auth.SimpleAclAuthorizer": KRAFT_AUTHORIZER,
    KRAFT_AUTHORIZER: KRAFT_AUTHORIZER,
}
"""ZooKeeper's authorizers and what replaces each. Others need a KRaft version of their own: the preflight refuses them."""

INHERITED_PREFIXES = (
    "config.providers",
    "zookeeper.",
    "password.encoder.",
    "delegation.token.",
    "ssl.",
    "sasl.",
    "listener.name.",
    "principal.",
)
INHERITED_KEYS = frozenset(
    {
        "allow.everyone.if.no.acl.found",
        "alter.config.policy.class.name",
        "authorizer.class.name",
        "auto.leader.rebalance.enable",
        "create.topic.policy.class.name",
        "default.replication.factor",
        "inter.broker.listener.name",
        "leader.imbalance.check.interval.seconds",
        "leader.imbalance.per.broker.percentage",
        "min.insync.replicas",
        "num.partitions",
        "security.inter.broker.protocol",
        "super.users",
        "unclean.leader.election.enable",
    }
)
"""What a controller takes over from the brokers: with KRaft it is the controllers that apply these."""


STORAGE_KEYS = frozenset({"log.dir", "log.dirs", "metadata.log.dir"})
"""Where a node's data is: its specification says so too."""
STAGED_KEYS = ZOOKEEPER_ONLY_KEYS | {
    "authorizer.class.name",
    "broker.id",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "node.id",
    "process.roles",
    PROTOCOL_MAP,
}
"""Without those that begin with one of `ZOOKEEPER_PREFIXES`."""


def is_staged(key: str, role: Role) -> bool:
    """Whether some stage sets or removes this key in a node's file, or it says where the node's data is. A controller's file
    also has its address from the specification."""
    is_of_controller = role is Role.CONTROLLER and key == "listeners"
    return key in STAGED_KEYS | STORAGE_KEYS or key.startswith(ZOOKEEPER_PREFIXES) or is_of_controller


def stage_of(properties: Mapping[str, str], role: Role) -> NodeStage | None:
    """The stage that a file is in, or `None` when it fits none: half-edited, or for another purpose."""
    if _has_voters(properties) != ("controller.listener.names" in properties):
        return None
    present = frozenset(feature for feature, is_present in _presence(properties).items() if is_present)
    return next((stage for (stage, r), features in FEATURES.items() if r is role and features == present), None)


def has_migration_flag(properties: Mapping[str, str]) -> bool:
    """Whether a process that starts from this file runs with the migration flag."""
    return properties.get(MIGRATION_FLAG, "false").strip().lower() == "true"


def _presence(properties: Mapping[str, str]) -> dict[Feature, bool]:
    return {
        Feature.ZOOKEEPER: "zookeeper.connect" in properties,
        Feature.MIGRATION_FLAG: has_migration_flag(properties),
        Feature.QUORUM: _has_voters(properties),
        Feature.ROLE: "process.roles" in properties,
    }


def _has_voters(properties: Mapping[str, str]) -> bool:
    return any(key in properties for key in VOTERS)


def node_file(text: str, spec: ClusterSpec, node: NodeSpec, stage: str) -> str:
    """A node's file at a stage, made from its file at the stage before (or at the same: then nothing changes).

    Forward only: the way back, which needs more than the file itself, is in `wanted_file`.
    """
    stage = NodeStage(stage)
    role = spec.role(node.id)
    if (stage, role) not in FEATURES or stage is NodeStage.ZOOKEEPER:
        raise Permanent(f"{spec.node_name(node.id)}: there is no forward edit to stage {stage}")
    features = FEATURES[stage, role]
    properties = parse(text)
    assignments = _quorum_keys(properties, spec) | ({MIGRATION_FLAG: "true"} if Feature.MIGRATION_FLAG in features else {})
    removals: set[str] = set()
    if Feature.ZOOKEEPER not in features:
        removals |= {key for key in properties if key.startswith(ZOOKEEPER_PREFIXES)}
    if Feature.ROLE in features:
        removals |= ZOOKEEPER_ONLY_KEYS & properties.keys()
        assignments |= {"process.roles": role.value} | _authorizer(properties)
        text = rename(text, "broker.id", "node.id", str(node.id))
    return edit(text, assignments, frozenset(removals))


def _quorum_keys(properties: Mapping[str, str], spec: ClusterSpec) -> dict[str, str]:
    protocols = properties.get(PROTOCOL_MAP, DEFAULT_PROTOCOL_MAP)
    return {
        "controller.quorum.voters": spec.quorum_voters,
        "controller.listener.names": spec.controller_listener,
        PROTOCOL_MAP: with_listener(protocols, spec.controller_listener, spec.controller_security_protocol),
    }


def _authorizer(properties: Mapping[str, str]) -> dict[str, str]:
    name = properties.get("authorizer.class.name", "").strip()
    return {"authorizer.class.name": AUTHORIZERS_IN_KRAFT.get(name, name)} if name else {}


def controller_file(spec: ClusterSpec, controller: ControllerSpec, base: str | None, broker: str) -> str:
    """A new controller's file in stage `migration`: from the operator's base file, else from a broker's file.

    The result holds what the broker's holds, secrets included: it goes to the controller's node and nowhere else.
    """
    theirs, own_base = parse(broker), parse(base or "")
    inherited = {key: value for key, value in theirs.items() if is_inherited(key) and key not in own_base}
    protocols = merged_map(own_base.get(PROTOCOL_MAP, ""), theirs.get(PROTOCOL_MAP, DEFAULT_PROTOCOL_MAP))
    own = {
        "process.roles": Role.CONTROLLER.value,
        "node.id": str(controller.id),
        "listeners": f"{spec.controller_listener}://{controller.host}:{controller.port}",
        "log.dirs": ",".join(controller.log_dirs),
        "zookeeper.connect": spec.ensemble.connect,
        PROTOCOL_MAP: protocols,
    }
    start = f"# Controller {controller.id}, made by Keeperless for the migration of this cluster to KRaft.\n"
    text = edit(start if base is None else base, own | inherited | own)
    return node_file(edit(text, _authorizer(parse(text))), spec, controller, NodeStage.MIGRATION)


def is_inherited(key: str) -> bool:
    return key in INHERITED_KEYS or key.startswith(INHERITED_PREFIXES)
