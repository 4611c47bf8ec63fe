"""Causes of this kind that lie with a node, or with what the quorum counts: its file, its flag, its mode, its registration."""

from collections.abc import Iterator
from hashlib import sha256

from domain.checks.check import some
from domain.diagnosis.causes.case import MAX_NAMED, Cause, strangers
from domain.diagnosis.causes.quotes import complaints, leaders_word
from domain.diagnosis.logs.lines import found_in
from domain.observed.observation import PropertiesFile
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import MigrationCase
from domain.zk_to_kraft.guards import is_edited, may_finalize_by_itself
from domain.zk_to_kraft.migration_lines import CONTROLLER_WITHOUT_FLAG
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.pending_restart import edit_of
from domain.zk_to_kraft.phases import Phase, phase_of
from domain.zk_to_kraft.situation import BrokerSituation, ControllerSituation, QuorumState, Registration
from domain.zk_to_kraft.waits import WAITS, ZkWait

EMPTY = sha256(b"").hexdigest()
UNTOUCHED = "the file as it was when the migration began"
ORIGINAL = "Its original lies beside it in .keeperless, if it has been changed by this migration."
WRITE_AGAIN = (
    "It is not overwritten. Put back what this migration wrote, or ask for a rollback; `changes` of the node's last step-done "
    "event says what that was, against its original, which lies beside it in .keeperless."
)
ENDING = frozenset({Phase.FINALIZING, Phase.KRAFT, Phase.FINALIZED_EARLY})
"""Phases in which a controller without the flag is what is wanted, or can be mended no more."""


def node_causes(case: MigrationCase) -> Iterator[Cause]:
    for broker in case.situation.brokers:
        yield from left_behind(case, broker)
    for node in case.situation.nodes:
        yield from file_cause(case, node)


def left_behind(case: MigrationCase, node: BrokerSituation) -> Iterator[Cause]:
    """Somebody has restarted it with its file from before the migration: it serves what it had then, and hears of nothing."""
    if node.id not in case.facts.left_behind:
        return
    name, path = case.name(node.id), case.spec.node(node.id).properties_file
    yield case.cause(
        WaitReason.BROKERS_NOT_REGISTERED,
        name,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        WaitReason.PART_UNKNOWN,
        observed="it runs in ZooKeeper mode, while KRaft has the cluster's metadata: it hears of no change, its replicas lag",
        expected="every broker in migration mode, or in KRaft mode, since the copy",
        fix=f"Put back into {path} what this migration wrote (`changes` of the node's step-done events), and restart {name}. "
        "Or ask for a rollback.",
    )


def file_cause(case: MigrationCase, node: BrokerSituation | ControllerSituation) -> Iterator[Cause]:
    name = case.name(node.id)
    if name in case.in_hand:
        return
    path = case.spec.node(node.id).properties_file
    disk = case.observation.node(node.id).disk
    if _has_lost_flag(case, node):
        runs = "runs without it" if node.mode is ControllerMode.FINAL else "would start without it"
        yield case.cause(
            ZkWait.CONTROLLER_LOST_ITS_FLAG,
            name,
            observed=f"zookeeper.metadata.migration.enable is not in force: it {runs}",
            expected="every controller has the migration flag until finalize was approved",
            fix=f"Put zookeeper.metadata.migration.enable=true back into {path} and restart {name} now: if it becomes active, "
            "the migration is final.",
        )
    elif node.stage is None and disk is not None and node.mode is not ControllerMode.ABSENT:
        observed, expected, fix = _foreign(path, disk.file)
        yield case.cause(WaitReason.FILE_CHANGED, name, observed=observed, expected=expected, fix=fix)
    elif isinstance(node, BrokerSituation) and node.stage is not None and is_edited(node):
        edit = edit_of(node, case.observation, case.spec, is_copied=case.situation.is_copy_made)
        yield case.cause(WaitReason.FILE_CHANGED, name, observed=edit.observed, expected=edit.expected, fix=edit.fix)


def _foreign(path: str, file: PropertiesFile | None) -> tuple[str, str, str]:
    """Of a file that fits no stage: what is seen of it, what would be right, and what to do."""
    mark = file.mark if file is not None else None
    if file is None:
        missing = f"{path} does not exist, or is a link to nothing"
        return missing, "the file is there, as it was", f"Restore the file, or what it links to. {ORIGINAL}"
    expected = UNTOUCHED if mark is None else "the file as this migration left it"
    is_empty, short = file.sha256 == EMPTY, f"sha256 {file.sha256[:12]}…"
    if mark is None:
        seen = "is empty" if is_empty else f"fits neither ZooKeeper mode nor a stage of the migration: {short}"
        observed = f"{path} {seen}. This migration has not written it: it was changed by other means"
        again = "Restore it" if is_empty else "It is not overwritten. Undo that edit, or restore the file"
        return observed, expected, f"{again} from your configuration management or a backup. {ORIGINAL}"
    seen = "is empty: it was emptied by other means" if is_empty else f"was changed by other means: {short}"
    return f"{path} {seen}, this migration left {mark.written_sha256[:12]}…", expected, WRITE_AGAIN


def _has_lost_flag(case: MigrationCase, node: BrokerSituation | ControllerSituation) -> bool:
    if not isinstance(node, ControllerSituation) or phase_of(case.situation) in ENDING:
        return False
    is_final = case.situation.quorum is QuorumState.POST_MIGRATION
    return not is_final and node.mode is not ControllerMode.UNKNOWN and may_finalize_by_itself(node, case.situation.claim)


def flagless(case: MigrationCase) -> Iterator[Cause]:
    """What the active controller says of a controller that never had the flag, which shows nothing of it itself."""
    for lines in case.hints.logs.values():
        for found in found_in(lines, (CONTROLLER_WITHOUT_FLAG,)):
            known = {c.id for c in case.spec.controllers}
            about = [case.name(int(i)) if int(i) in known else f"controller {i}" for i in found.named]
            yield case.cause(
                ZkWait.CONTROLLER_LOST_ITS_FLAG,
                some(about[:MAX_NAMED]),
                WaitReason.CONTROLLERS_NOT_READY,
                ZkWait.COPY_NOT_COMPLETE,
                observed=f"the active controller says: {found.quote}",
                expected=found.told.expected,
                fix=found.told.fix,
            )


def registration_causes(case: MigrationCase) -> Iterator[Cause]:
    """A log that was begun without the flag, a broker that the specification does not have, counts that do not add up."""
    situation = case.situation
    if situation.quorum is QuorumState.NONE:
        yield case.cause(
            ZkWait.QUORUM_CANNOT_MIGRATE,
            "the quorum's log",
            WaitReason.CONTROLLERS_NOT_READY,
            observed="it says NONE: its first controller became active without the migration flag"
            + (COPY_GONE if situation.is_copy_gone else ""),
            expected="a log that was begun with zookeeper.metadata.migration.enable",
            fix=WAITS[ZkWait.QUORUM_CANNOT_MIGRATE].means,
        )
    unknown = strangers(case)
    yield from (_stranger(case, broker_id) for broker_id in unknown)
    are_ours_well = not case.absent_brokers | case.facts.left_behind
    if situation.registration is Registration.DIFFERS and are_ours_well and not unknown:
        yield from _registrations(case)


COPY_GONE = (
    ", though KRaft has /controller: the storage of a quorum that had the copy was emptied. What that one had not written to "
    "ZooKeeper is lost"
)
UNREGISTERED = (
    "A broker that serves has not registered. `Unable to register broker` in its log names the controller's answer; a wrong "
    "inter.broker.protocol.version is the usual cause."
)
STILL_REGISTERED = (
    "Check again in some seconds: a broker that has just ended, or was started with another file, counts "
    "until its session is over (broker.session.timeout.ms, 9 s). If a broker is fenced for longer, read its "
    "log. One that is not in the cluster's specification, and was stopped, stays among the fenced until "
    "kafka-cluster.sh unregister --id ID."
)


def _said_of_brokers(case: MigrationCase) -> str:
    return next(filter(None, (leaders_word(case, broker.id) for broker in case.spec.brokers)), "")


def _stranger(case: MigrationCase, broker_id: int) -> Cause:
    return case.cause(
        WaitReason.BROKERS_NOT_REGISTERED,
        f"broker {broker_id}",
        ZkWait.COPY_NOT_COMPLETE,
        observed="it has registered with the controllers, the other brokers list it, and it is not in the cluster's "
        "specification: it is in KRaft mode, and a rollback would lose what is placed on it",
        expected="no broker but those of the cluster's specification",
        fix="Find what started it (a scale-out, an autoscaler, a copied template), and stop that until the migration "
        "has ended. If replicas are on it (kafka-topics.sh --describe), reassign them to the others first "
        "(kafka-reassign-partitions.sh). Then stop it in order, and unregister it: kafka-cluster.sh unregister "
        f"--id {broker_id} (a hybrid broker says that the cluster does not support that: ask again, or one in "
        "KRaft mode). Restart none of the others.",
    )


def _registrations(case: MigrationCase) -> Iterator[Cause]:
    leader = case.leader
    if leader is None:
        return
    hybrid = sum(b.mode is BrokerMode.HYBRID for b in case.situation.brokers)
    in_kraft = sum(b.mode is BrokerMode.KRAFT for b in case.situation.brokers)
    metrics = leader.metrics
    is_one_missing = (metrics.active_broker_count or 0) < hybrid + in_kraft
    yield case.cause(
        WaitReason.BROKERS_NOT_REGISTERED,
        case.name(leader.id),
        ZkWait.COPY_NOT_COMPLETE,
        observed=f"it counts {metrics.migrating_broker_count} migrating brokers, {metrics.active_broker_count} active, "
        f"{metrics.fenced_broker_count} fenced{_said_of_brokers(case)}"
        + complaints(case, *(b.id for b in case.spec.brokers), leader.id),
        expected=f"{hybrid} migrating, {hybrid + in_kraft} active, none fenced",
        fix=UNREGISTERED if is_one_missing else STILL_REGISTERED,
    )
