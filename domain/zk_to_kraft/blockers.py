"""`blockers_of`: all causes why nothing happens, at once, not only the first that `decide` waits for. Pure.

One entry for a cause: what a dead broker makes lag, go unregistered or wait is no entry beside it. What `decide` waits for and
no search explains is told in the wait's own words, so that no wait is ever without an entry.
"""

import re
from collections.abc import Collection, Iterable, Iterator

from domain.checks.acceptance import blockers_in
from domain.checks.seen import some
from domain.decisions import Decision, Revert, Wait
from domain.diagnosis.blocker import Blocker
from domain.diagnosis.machines.notes import ZOOKEEPER
from domain.health.liveness import BROKER_STATE_RUNNING
from domain.observed.observation import NodeView, Observation
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.another_network import without_those_of_another_network
from domain.zk_to_kraft.causes.case import Cause, Looked, cause, complaints, leaders_threads
from domain.zk_to_kraft.causes.claim import claim_causes
from domain.zk_to_kraft.causes.cluster import forgotten_causes, pending_causes, quorum_causes, zookeeper_causes
from domain.zk_to_kraft.causes.copy import copy_causes, dual_write_causes
from domain.zk_to_kraft.causes.elsewhere import without_those_of_elsewhere
from domain.zk_to_kraft.causes.finding import coordinator_causes, of_finding
from domain.zk_to_kraft.causes.kafka import kafka_causes
from domain.zk_to_kraft.causes.lost_tree import without_those_of_a_lost_tree
from domain.zk_to_kraft.causes.machine_signs import with_signs
from domain.zk_to_kraft.causes.node import flagless, node_causes
from domain.zk_to_kraft.causes.topic_ids import topic_id_causes
from domain.zk_to_kraft.drift_watch import drift_causes
from domain.zk_to_kraft.foreign import foreign
from domain.zk_to_kraft.phases import Phase, phase_of
from domain.zk_to_kraft.preflight import MET_BY_CONTROLLERS, preflight
from domain.zk_to_kraft.proof import why_not_proven
from domain.zk_to_kraft.situation import QuorumState
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.waits import WAITS, ZkWait

SEARCHES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "suspects": (
        "what a failover would fail on",
        "the leader's log and ZooKeeper's topics can be searched",
        (ZkWait.FAILOVER_WOULD_HURT,),
    ),
    "registrations": ("which controllers have registered", "the active controller's metadata log can be read", ()),
}
"""By the part that did not answer: what is not known then, what is expected, and the waits that it explains."""


def blockers_of(looked: Looked, *decisions: Decision | None) -> tuple[tuple[Blocker, ...], frozenset[str]]:
    """The entries, and the reasons of waits that they explain. `decisions`: what is decided now, and what stands besides.

    While a step of ours has a node in its hands, what would be decided of this moment is of no interest.
    """
    searched = without_those_of_another_network(looked, without_those_of_a_lost_tree(looked, _searches(looked)))
    searched = without_those_of_elsewhere(looked, searched)
    causes = _without_counts(looked, list(_unique(searched)))
    for wait in (d for d in decisions if isinstance(d, Wait | Revert) and not looked.in_hand):
        explained = frozenset().union(*(found.explains for found in causes))
        if wait.reason == WaitReason.PREFLIGHT_BLOCKERS:
            causes += list(_findings(looked))
        elif wait.reason not in explained:
            causes += _of_wait(looked, wait)
    causes += list(_unproven(looked, frozenset().union(*(found.explains for found in causes))))
    found = with_signs(looked, list(_unique(causes)))
    reasons = {str(reason) for entry in found for reason in entry.explains}
    told = _without_restarts(looked, causes, found)
    return tuple(entry.blocker for entry in told), frozenset(reasons)


def _without_restarts(looked: Looked, causes: Iterable[Cause], signed: Iterable[Cause]) -> list[Cause]:
    """Leave out a restart of ours that takes its usual time, whatever the log complains of meanwhile. If its machine shows a
    sign as well, it stays an entry."""
    late = [found.blocker for found in causes if found.is_only_late and looked.is_restarting(found.blocker.object)]
    return [found for found in signed if found.blocker not in late]


def _without_counts(looked: Looked, causes: list[Cause]) -> list[Cause]:
    """How many brokers a controller counts says nothing more where one of them is named, with why it is not registered."""
    controllers = {looked.name(controller.id) for controller in looked.spec.controllers}
    of_registration = [found for found in causes if found.blocker.code == WaitReason.BROKERS_NOT_REGISTERED]
    counts = [found for found in of_registration if found.blocker.object in controllers]
    return causes if len(counts) == len(of_registration) else [found for found in causes if found not in counts]


def _searches(looked: Looked) -> Iterator[Cause]:
    yield from node_causes(looked)
    if looked.situation.quorum in {QuorumState.PRE_MIGRATION, QuorumState.UNKNOWN}:
        yield from flagless(looked)
    yield from zookeeper_causes(looked)
    yield from claim_causes(looked)
    yield from kafka_causes(looked)
    yield from pending_causes(looked)
    yield from forgotten_causes(looked)
    yield from topic_id_causes(looked)
    yield from coordinator_causes(looked)
    yield from quorum_causes(looked)
    yield from copy_causes(looked)
    yield from dual_write_causes(looked)
    yield from drift_causes(looked)
    yield from _suspects(looked, looked.observation)


def _suspects(looked: Looked, observation: Observation) -> Iterator[Cause]:
    """A search that had to be made and could not be: what it is for is not known then."""
    for part in observation.unanswered:
        if part.what not in SEARCHES:
            continue
        about, expected, explains = SEARCHES[part.what]
        yield cause(
            looked,
            WaitReason.PART_UNKNOWN,
            about,
            *explains,
            observed=part.in_words,
            expected=expected,
            fix="Fix what is named; the next observation searches it again.",
        )


def _unique(causes: Iterable[Cause]) -> Iterator[Cause]:
    """The first of those with one code and one object. Later ones say the same of the same thing, less exactly."""
    seen: set[tuple[str, str]] = set()
    for found in causes:
        if found.key not in seen:
            seen.add(found.key)
            yield found


def _findings(looked: Looked) -> Iterator[Cause]:
    """What names another cluster; and where somebody else began, the preflight's blockers. Each is an entry of its own."""
    found = foreign(looked.observation, looked.spec, looked.situation.quorum)
    if phase_of(looked.situation) is Phase.CONTROLLERS_UP:
        found += blockers_in(preflight(looked.observation, looked.spec, looked.policy), looked.policy)
    for finding in found:
        if finding.code not in MET_BY_CONTROLLERS:
            yield of_finding(looked, finding, WaitReason.PREFLIGHT_BLOCKERS)


def _of_wait(looked: Looked, wait: Wait | Revert) -> list[Cause]:
    """A wait in its own words."""
    named, text = some(list(wait.objects)), WAITS[wait.reason]
    observed = (wait.detail or (f"{named}: {text.about}" if named else text.about))[:1000]
    fix = text.means
    if wait.reason in OF_NODES:
        observed += complaints(looked, *looked.hints.logs) + leaders_threads(looked)
    if wait.reason == WaitReason.PARTITIONS_WOULD_STOP and (raised := _raised_for_all(looked)):
        observed += f". Set for brokers, and so for each topic that sets none of its own: {some(raised)}"
        fix = TAKE_BACK
    return [cause(looked, wait.reason, named or text.about, observed=observed, expected=text.expected, fix=fix)]


def _raised_for_all(looked: Looked) -> list[str]:
    """What has changed of the brokers' own min.insync.replicas, as far as somebody has done that while the migration ran."""
    changes = looked.hints.changes.get(ZOOKEEPER)
    return [line for line in (changes.changes if changes is not None else ()) if OF_ALL_TOPICS.match(line)]


OF_ALL_TOPICS = re.compile(r"min\.insync\.replicas in /config/brokers/")
TAKE_BACK = (
    "Remove the setting where it was made: kafka-configs.sh --alter --entity-type brokers --entity-default (or "
    "--entity-name ID) --delete-config min.insync.replicas. Or restore the previous value (--add-config). Do not change the "
    "topics. With as many in-sync replicas required as a partition has replicas, it takes no acks=all write while any of "
    "its brokers restarts."
)


def _unproven(looked: Looked, explained: Collection[str]) -> Iterator[Cause]:
    """What the proof of a node that was restarted waits for, in the words of its log where nothing known explains that."""
    for view in looked.unproven():
        name, stage = looked.name(view.id), view.mark.stage if view.mark is not None else ""
        if stage not in set(NodeStage):
            continue
        missing = why_not_proven(looked.observation, looked.spec, looked.policy, view.id, NodeStage(stage))
        if missing is not None and missing.reason not in explained:
            yield cause(
                looked,
                missing.reason,
                name,
                observed=f"it was restarted and is not proven healthy: {missing.words}{complaints(looked, view.id)}",
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
