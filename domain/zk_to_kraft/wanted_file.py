"""The text that a node's file must have at a stage, made from what there is, in both directions.

| to        | a broker's file                                  | a controller's file                                  |
|-----------|--------------------------------------------------|------------------------------------------------------|
| zookeeper | its archived original, byte for byte             | -                                                    |
| migration | as it is, with what the stage adds; in stage     | as archived, if nobody has edited it since; else the |
|           | `kraft` the original, with what the stage adds   | flag and what is missing are put in, and all is kept |
| kraft     | as it is, edited                                 | as it is, edited                                     |

Without an original what a migration adds is taken back key by key, and what it took away is put back: the connection from the
specification, the rest as another broker has it. The original is never one of an earlier migration: whatever is found in stage
`zookeeper` is the operators' own.

Sources: Kafka's migration guide (3.9), "Reverting to ZooKeeper mode"; reference, sections 1.7 to 1.9.
"""

from collections.abc import Mapping

from domain.checks.check import SUPPORTED_RELEASE
from domain.cluster import ClusterSpec, ControllerSpec, NodeSpec, Role
from domain.configuration.properties import edit, parse, rename
from domain.configuration.protocol_map import DEFAULT_PROTOCOL_MAP, PROTOCOL_MAP, without_listeners
from domain.errors import Permanent
from domain.rolling.change import Making, Sources, WantedFile
from domain.zk_to_kraft.node_config import (
    AUTHORIZERS_IN_KRAFT,
    KRAFT_AUTHORIZER,
    MIGRATION_FLAG,
    ZOOKEEPER_ONLY_KEYS,
    ZOOKEEPER_PREFIXES,
    controller_file,
    node_file,
    stage_of,
)
from domain.zk_to_kraft.steps import NodeStage

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"

FIRST_STAGE = {Role.BROKER: NodeStage.ZOOKEEPER, Role.CONTROLLER: NodeStage.MIGRATION}
"""The stage of a node's original: as the operators had it, or as a controller was made."""


def is_in_first_stage(text: str, role: Role) -> bool:
    """Whether a file is an original itself."""
    return stage_of(parse(text), role) is FIRST_STAGE[role]


def files_ahead(properties: Mapping[str, str], spec: ClusterSpec, node: NodeSpec) -> dict[str, str]:
    """What the file of a node will say at the stages that follow its own, on the way forward. None, where it fits no stage."""
    at, text, found = stage_of(properties, spec.role(node.id)), edit("", properties), dict[str, str]()
    for stage in list(NodeStage)[list(NodeStage).index(at) + 1 :] if at is not None else ():
        text = node_file(text, spec, node, stage)
        found[stage] = text
    return found


def files_of_new(
    spec: ClusterSpec, controller: ControllerSpec, base: Mapping[str, str], broker: Mapping[str, str]
) -> dict[str, str]:
    """The same of a controller that is to be made, its first file included. `base`: of its `base_properties`; `broker`: of the
    broker that the file is made from."""
    made = controller_file(spec, controller, edit("", base), edit("", broker))
    return {NodeStage.MIGRATION: made, **files_ahead(parse(made), spec, controller)}


def needs_sibling(sources: Sources, spec: ClusterSpec, node: NodeSpec, stage: str) -> bool:
    """Whether another broker's file would say what this one has lost."""
    stage = NodeStage(stage)
    if stage is NodeStage.KRAFT or "zookeeper.connect" in parse(sources.current):
        return False
    is_controller = spec.role(node.id) is Role.CONTROLLER
    return _archived_controller(sources, spec, node) is None if is_controller else sources.original is None


def wanted_file(sources: Sources, spec: ClusterSpec, node: NodeSpec, stage: str) -> WantedFile:
    """The file of a node at a stage, as the table above says."""
    stage = NodeStage(stage)
    role = spec.role(node.id)
    if stage is NodeStage.KRAFT:
        return WantedFile(node_file(sources.current, spec, node, stage), Making.EDIT)
    if role is Role.BROKER:
        in_zookeeper = stage is NodeStage.ZOOKEEPER
        return _off_the_quorum(sources, spec, node) if in_zookeeper else _hybrid(sources, spec, node)
    if stage is NodeStage.MIGRATION:
        return _with_flag(sources, spec, node)
    raise Permanent(f"{spec.node_name(node.id)}: a controller has no stage {stage}")


def _hybrid(sources: Sources, spec: ClusterSpec, node: NodeSpec) -> WantedFile:
    found = stage_of(parse(sources.current), Role.BROKER)
    if found in {NodeStage.ZOOKEEPER, NodeStage.MIGRATION}:
        return WantedFile(node_file(sources.current, spec, node, NodeStage.MIGRATION), Making.EDIT)
    if sources.original is not None:
        return WantedFile(node_file(sources.original, spec, node, NodeStage.MIGRATION), Making.ARCHIVE)
    return WantedFile(_with_zookeeper(sources, spec, node), Making.INVERSE_EDIT)


def _off_the_quorum(sources: Sources, spec: ClusterSpec, node: NodeSpec) -> WantedFile:
    found = stage_of(parse(sources.current), Role.BROKER)
    if found is NodeStage.ZOOKEEPER:
        return WantedFile(sources.current, Making.EDIT)
    if sources.original is not None:
        return WantedFile(sources.original, Making.ARCHIVE)
    hybrid = sources.current if found is NodeStage.MIGRATION else _with_zookeeper(sources, spec, node)
    return WantedFile(_without_quorum(hybrid, spec), Making.INVERSE_EDIT)


def _with_flag(sources: Sources, spec: ClusterSpec, controller: NodeSpec) -> WantedFile:
    """Whoever took the flag may have changed more, on purpose: of that nothing is lost."""
    archived = _archived_controller(sources, spec, controller)
    if archived is not None:
        return WantedFile(archived, Making.ARCHIVE)
    has_zookeeper = "zookeeper.connect" in parse(sources.current)
    missing = {} if has_zookeeper else {"zookeeper.connect": spec.ensemble.connect} | _of_zookeeper(sources)
    text = edit(sources.current, _absent(missing, sources.current))
    return WantedFile(node_file(text, spec, controller, NodeStage.MIGRATION), Making.EDIT)


def _archived_controller(sources: Sources, spec: ClusterSpec, controller: NodeSpec) -> str | None:
    """The original, if the file as it is was made of it by our finalisation and of nothing else."""
    original = sources.original
    if original is None or not is_in_first_stage(original, Role.CONTROLLER):
        return None
    return original if node_file(original, spec, controller, NodeStage.KRAFT) == sources.current else None


def _with_zookeeper(sources: Sources, spec: ClusterSpec, broker: NodeSpec) -> str:
    """From KRaft back to hybrid mode without an original: what the roll to KRaft removed comes back."""
    found, theirs = parse(sources.current), parse(sources.sibling or "")
    text = rename(sources.current, "node.id", "broker.id", str(broker.id))
    release = {} if sources.sibling is not None else {"inter.broker.protocol.version": SUPPORTED_RELEASE}
    further = {key: theirs[key] for key in sorted(ZOOKEEPER_ONLY_KEYS & theirs.keys())}
    if further.get("control.plane.listener.name", "").strip().upper() not in _names(found.get("listeners", "")):
        further.pop("control.plane.listener.name", None)
    missing = {"zookeeper.connect": spec.ensemble.connect} | release | further | _of_zookeeper(sources)
    assignments = _absent(missing, text) | _authorizer(found, theirs)
    return node_file(edit(text, assignments, frozenset({"process.roles"})), spec, broker, NodeStage.MIGRATION)


def _of_zookeeper(sources: Sources) -> dict[str, str]:
    """What another broker says of ZooKeeper, but for where it is: that is in the specification."""
    theirs = parse(sources.sibling or "")
    own = {"zookeeper.connect", MIGRATION_FLAG}
    return {key: value for key, value in theirs.items() if key.startswith(ZOOKEEPER_PREFIXES) and key not in own}


def _absent(assignments: Mapping[str, str], text: str) -> dict[str, str]:
    present = parse(text)
    return {key: value for key, value in assignments.items() if key not in present}


def _authorizer(found: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """ZooKeeper's authorizer, as the other broker has it; an authorizer that is not Kafka's own stays."""
    if found.get("authorizer.class.name", "").strip() != KRAFT_AUTHORIZER:
        return {}
    name = theirs.get("authorizer.class.name", ACL_AUTHORIZER).strip()
    is_known = name in AUTHORIZERS_IN_KRAFT and name != KRAFT_AUTHORIZER
    return {"authorizer.class.name": name if is_known else ACL_AUTHORIZER}


def _without_quorum(text: str, spec: ClusterSpec) -> str:
    """From hybrid mode back to ZooKeeper's: a broker that knows a quorum without the flag does not start."""
    properties = parse(text)
    added = ("controller.quorum.", "zookeeper.metadata.migration.")
    removals = {key for key in properties if key.startswith(added)} | {"controller.listener.names"}
    controllers = {*_names(properties.get("controller.listener.names", "")), spec.controller_listener}
    found = properties.get(PROTOCOL_MAP)
    if found is None:
        return edit(text, {}, frozenset(removals))
    left = without_listeners(found, controllers)
    if left == DEFAULT_PROTOCOL_MAP:
        return edit(text, {}, frozenset(removals | {PROTOCOL_MAP}))
    return edit(text, {PROTOCOL_MAP: left}, frozenset(removals))


def _names(listed: str) -> set[str]:
    """Listeners' names in `listeners` or in `controller.listener.names`; Kafka ignores their case."""
    return {entry.partition(":")[0].strip().upper() for entry in listed.split(",") if entry.strip()}
