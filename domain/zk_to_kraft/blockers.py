"""Why a migration from ZooKeeper to KRaft waits: its own causes beside those of every kind, and its waits. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator

from domain.checks.acceptance import blockers_in
from domain.checks.check import some
from domain.decisions import Decision, Revert, Wait
from domain.diagnosis.blocker import Blocker
from domain.diagnosis.blockers import Diagnosis, Search, generic_causes
from domain.diagnosis.blockers import blockers_of as blockers_by
from domain.diagnosis.causes.case import Cause, of_finding
from domain.diagnosis.causes.node import coordinator_causes
from domain.diagnosis.causes.quotes import complaints
from domain.diagnosis.machines.notes import ZOOKEEPER
from domain.health.liveness import BROKER_STATE_RUNNING
from domain.observed.observation import NodeView
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import MigrationCase, case_of
from domain.zk_to_kraft.causes.copy import copy_causes, dual_write_causes
from domain.zk_to_kraft.causes.nodes import flagless, node_causes, registration_causes
from domain.zk_to_kraft.causes.znodes import claim_causes, topic_id_causes, without_those_of_a_lost_tree
from domain.zk_to_kraft.drift_watch import drift_causes
from domain.zk_to_kraft.other_clusters import foreign
from domain.zk_to_kraft.phases import Phase, phase_of
from domain.zk_to_kraft.preflight import MET_BY_CONTROLLERS, preflight
from domain.zk_to_kraft.proof import why_not_proven
from domain.zk_to_kraft.situation import QuorumState
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.waits import WAITS, ZkWait


def _causes(case: MigrationCase) -> Iterator[Cause]:
    yield from _without_counts(case, list(without_those_of_a_lost_tree(case, _searches(case))))


def _without_counts(case: MigrationCase, causes: list[Cause]) -> list[Cause]:
    """How many brokers a controller counts says nothing more where one of them is named, with why it is not registered."""
    controllers = {case.name(controller.id) for controller in case.spec.controllers}
    of_registration = [found for found in causes if found.blocker.code == WaitReason.BROKERS_NOT_REGISTERED]
    counts = [found for found in of_registration if found.blocker.object in controllers]
    return causes if len(counts) == len(of_registration) else [found for found in causes if found not in counts]


def _searches(case: MigrationCase) -> Iterator[Cause]:
    yield from node_causes(case)
    if case.situation.quorum in {QuorumState.PRE_MIGRATION, QuorumState.UNKNOWN}:
        yield from flagless(case)
    yield from generic_causes(case)
    yield from claim_causes(case)
    yield from topic_id_causes(case)
    yield from coordinator_causes(case)
    yield from registration_causes(case)
    yield from copy_causes(case)
    yield from dual_write_causes(case)
    yield from drift_causes(case)


def _findings(case: MigrationCase) -> Iterator[Cause]:
    """What names another cluster; and where somebody else began, the preflight's blockers. Each is an entry of its own."""
    found = foreign(case.observation, case.spec, case.situation.quorum)
    if phase_of(case.situation) is Phase.CONTROLLERS_UP:
        found += blockers_in(preflight(case.observation, case.spec, case.policy), case.policy)
    for finding in found:
        if finding.code not in MET_BY_CONTROLLERS:
            yield of_finding(case, finding, WaitReason.PREFLIGHT_BLOCKERS)


def _of_wait(case: MigrationCase, wait: Wait | Revert, explained: Collection[str]) -> Iterable[Cause]:
    """Findings of the preflight are entries of their own. Another wait that no cause explains is told in its own words."""
    if wait.reason == WaitReason.PREFLIGHT_BLOCKERS:
        return _findings(case)
    return () if wait.reason in explained else [_in_own_words(case, wait)]


def _in_own_words(case: MigrationCase, wait: Wait | Revert) -> Cause:
    named, text = some(list(wait.objects)), WAITS[wait.reason]
    observed = (wait.detail or (f"{named}: {text.about}" if named else text.about))[:1000]
    fix = text.means
    if wait.reason in OF_NODES:
        observed += complaints(case, *case.hints.logs)
    if wait.reason == WaitReason.PARTITIONS_WOULD_STOP and (raised := _raised_for_all(case)):
        observed += f". Set for brokers, and so for each topic that sets none of its own: {some(raised)}"
        fix = TAKE_BACK
    return case.cause(wait.reason, named or text.about, observed=observed, expected=text.expected, fix=fix)


def _raised_for_all(case: MigrationCase) -> list[str]:
    """What has changed of the brokers' own min.insync.replicas, as far as somebody has done that while the migration ran."""
    changes = case.hints.changes.get(ZOOKEEPER)
    return [line for line in (changes.changes if changes is not None else ()) if OF_ALL_TOPICS.match(line)]


OF_ALL_TOPICS = re.compile(r"min\.insync\.replicas in /config/brokers/")
TAKE_BACK = (
    "Remove the setting where it was made: kafka-configs.sh --alter --entity-type brokers --entity-default (or "
    "--entity-name ID) --delete-config min.insync.replicas. Or restore the previous value (--add-config). Do not change the "
    "topics. With as many in-sync replicas required as a partition has replicas, it takes no acks=all write while any of "
    "its brokers restarts."
)


def _unproven(case: MigrationCase, explained: Collection[str]) -> Iterator[Cause]:
    """What the proof of a node that was restarted waits for, in the words of its log where nothing known explains that."""
    for view in case.unproven():
        name, stage = case.name(view.id), view.mark.stage if view.mark is not None else ""
        if stage not in set(NodeStage):
            continue
        missing = why_not_proven(case.observation, case.spec, case.policy, view.id, NodeStage(stage))
        if missing is not None and missing.reason not in explained:
            yield case.cause(
                missing.reason,
                name,
                observed=f"it was restarted and is not proven healthy: {missing.words}{complaints(case, view.id)}",
                expected=WAITS[missing.reason].expected,
                fix=OTHER_MODE if (is_other := missing.reason == WaitReason.NODE_NOT_READY and _serves(view)) else AWAIT_PROOF,
                since=view.process.started_at if view.process is not None else None,
                is_only_late=not is_other,
            )


OF_NODES = frozenset(
    {
        WaitReason.CONTROLLERS_NOT_READY,
        WaitReason.BROKERS_NOT_REGISTERED,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        ZkWait.COPY_NOT_COMPLETE,
        ZkWait.DUAL_WRITE_NOT_CURRENT,
        ZkWait.NO_CONTROLLER,
        ZkWait.FINALIZATION_NOT_SEEN,
    }
)
"""Waits for what nodes do: where nothing known explains one, what those complain of is worth a look."""


def _serves(view: NodeView) -> bool:
    return view.metrics is not None and view.metrics.broker_state == BROKER_STATE_RUNNING


AWAIT_PROOF = "The step waits for it and then continues by itself. If the wait lasts, read the node's log."
OTHER_MODE = (
    "Check its start command: it may give other properties than the file has (--override, another file, -D). Check its "
    "metrics: they may leave out kafka.server:type=raft-metrics, which shows the mode (auto.include.jmx.reporter=false or "
    "metrics.jmx.exclude in its file, rules of the exporter). Remove that on every node and restart this one. It serves, "
    "but not in the mode of its file."
)
SEARCHES = {
    "suspects": Search(
        "what a failover would fail on",
        "the leader's log and ZooKeeper's topics can be searched",
        (ZkWait.FAILOVER_WOULD_HURT,),
    ),
    "registrations": Search("which controllers have registered", "the active controller's metadata log can be read"),
}
ZK_TO_KRAFT_DIAGNOSIS = Diagnosis(
    case_of=case_of,
    causes=_causes,
    of_wait=_of_wait,
    unproven=_unproven,
    searches=SEARCHES,
    of_losses=frozenset({WaitReason.FILE_CHANGED, ZkWait.DUAL_WRITE_NOT_CURRENT}),
)


def blockers_of(case: MigrationCase, *decisions: Decision | None) -> tuple[tuple[Blocker, ...], frozenset[str]]:
    """All causes of one look, and the reasons of waits that they explain."""
    return blockers_by(ZK_TO_KRAFT_DIAGNOSIS, case, *decisions)
