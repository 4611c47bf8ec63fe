"""A broker's file that somebody has edited, and whose process was not restarted since. What runs decides; the edit waits for
the next restart, also for one after a crash.

Told before the start (PF37) and in flight (`file-changed`). What a roll of ours has written is no such edit.
"""

from collections.abc import Mapping

from domain.cluster import ClusterSpec, Role
from domain.decisions import Finding, Severity
from domain.observed.observation import Observation
from domain.rolling.own_file import role_and_ids
from domain.zk_to_kraft.guards import STAGE_OF_MODE, STAGE_ORDER, is_edited
from domain.zk_to_kraft.node_config import FEATURES, KEYS_OF_MODE, MIGRATION_FLAG, VOTERS, has_migration_flag
from domain.zk_to_kraft.situation import BrokerSituation, Situation
from domain.zk_to_kraft.steps import NodeStage

CODE = "PF37"
MODE_OF = {NodeStage.ZOOKEEPER: "ZooKeeper mode", NodeStage.MIGRATION: "hybrid mode", NodeStage.KRAFT: "KRaft mode"}
EXPECTED = "the file that its process was started from"
PUT_BACK = "Put {path} back as it was, in the file and in whatever writes it. "
NO_RESTART = "Do not restart {name} with this file: {why}. "
SEEN_IN_A_PLAN = "To see that it worked, make a new plan: this finding is gone. "
BY_HAND = "If you run the migration by hand and the edit is meant, first start its controllers, then restart {name} yourself."
RESTART = "If the edit is meant, restart {name} yourself, and check that it serves in {mode}. "
GOES_ON = "The migration continues by itself when file and process agree."
NO_QUORUM = "no controller quorum has the metadata copy yet, so it would not start"
BACKWARDS = "it would leave the mode to which the migration has moved it. To do that, ask for a rollback"


def differing_keys(properties: Mapping[str, str], runs: NodeStage) -> list[str]:
    """The keys that make a broker's mode: those that the file has and its process cannot have, and the other way round."""
    wanted = FEATURES[runs, Role.BROKER]
    found = {key: has_migration_flag(properties) if key == MIGRATION_FLAG else key in properties for key in KEYS_OF_MODE}
    has_voters = any(found[key] for key in VOTERS)
    added = [f"{key}={properties[key]}" for key, feature in KEYS_OF_MODE.items() if found[key] and feature not in wanted]
    lacking = [key for key, feature in KEYS_OF_MODE.items() if feature in wanted and not found[key]]
    return [*added, *(f"no {key}" for key in lacking if key not in VOTERS or not has_voters)]


def seen_of(name: str, path: str, properties: Mapping[str, str], runs: NodeStage, says: NodeStage | None) -> str:
    """What is seen of it, in words."""
    next_start = f"would start it in {MODE_OF[says]}" if says is not None else "would be from half-made settings"
    keys = ", ".join(differing_keys(properties, runs))
    return (
        f"{name} runs in {MODE_OF[runs]}. {path} was edited since: its next restart, also after a crash, {next_start}. "
        f"It has {role_and_ids(properties)}. Keys that differ: {keys}"
    )


def fix_before_start(name: str, path: str, says: NodeStage | None) -> str:
    """Nothing leads a migration yet: of the two ways out the restart needs a quorum first."""
    second = NO_RESTART.format(name=name, why=NO_QUORUM) if says is NodeStage.KRAFT else BY_HAND.format(name=name)
    return PUT_BACK.format(path=path) + SEEN_IN_A_PLAN + (second if says is not None else "").strip()


def fix_in_flight(name: str, path: str, runs: NodeStage, says: NodeStage, *, is_copied: bool) -> str:
    if STAGE_ORDER.index(says) < STAGE_ORDER.index(runs):
        second = NO_RESTART.format(name=name, why=BACKWARDS)
    elif says is NodeStage.KRAFT and not (is_copied and runs is NodeStage.MIGRATION):
        second = NO_RESTART.format(name=name, why=NO_QUORUM)
    else:
        second = RESTART.format(name=name, mode=MODE_OF[says])
    return PUT_BACK.format(path=path) + second + GOES_ON


def edits_in_flight(s: Situation, observation: Observation, spec: ClusterSpec) -> tuple[Finding, ...]:
    """One finding for each broker whose file was edited while it runs. A migration waits for that by itself."""
    return tuple(edit_of(broker, observation, spec, is_copied=s.is_copy_made) for broker in s.brokers if is_edited(broker))


def edit_of(broker: BrokerSituation, observation: Observation, spec: ClusterSpec, *, is_copied: bool) -> Finding:
    node, disk = spec.node(broker.id), observation.node(broker.id).disk
    properties = disk.file.properties if disk is not None and disk.file is not None else {}
    name, path, runs, says = spec.node_name(node.id), node.properties_file, STAGE_OF_MODE[broker.mode], broker.stage
    return Finding(
        code=CODE,
        severity=Severity.WARNING,
        object=name,
        observed=seen_of(name, path, properties, runs, says),
        expected=EXPECTED,
        fix=fix_in_flight(name, path, runs, says or runs, is_copied=is_copied),
    )
