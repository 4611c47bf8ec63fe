"""`find_blockers`: why nothing happens, from a fresh look and from what only logs, ZooKeeper's servers and assignments tell.

Looks only, and within the time in which somebody waits for an answer: what does not come in time is named, and left out.
"""

import asyncio
from collections.abc import Iterable
from contextvars import copy_context
from dataclasses import replace
from datetime import timedelta

from temporalio import activity

from activities.blockers.hints import Hinting
from activities.claims import registered
from activities.heartbeat import heartbeating
from activities.observing.in_time import all_within
from activities.observing.observe import Early, observe_for
from activities.ports.kafka import Listeners
from activities.ports.nodes import ZooKeeperMembers
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperServers
from activities.rulings import ruling_of
from domain.cluster import ClusterSpec
from domain.contracts import ActivityName, AssessRequest
from domain.decisions import Decision, Intent, Label
from domain.diagnosis.causes.hints import Hints, Serving
from domain.errors import OtherLedger
from domain.observed.observation import Observation, Unanswered
from domain.policy import MigrationPolicy
from domain.questions import BlockersRequest, BlockersSeen
from domain.records import ClusterRecord, Command, CommandKind, MigrationRecord, MigrationState
from domain.rolling.configuration_management import part_name
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.blockers import SEARCHES, blockers_of
from domain.zk_to_kraft.causes.case import DOWN_MODES, USUAL_RESTART, Looked
from domain.zk_to_kraft.causes.machine_signs import changed_besides
from domain.zk_to_kraft.phases import phase_of
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import Situation
from domain.zk_to_kraft.waits import ZkWait

PART_SECONDS = 5.0
"""For ZooKeeper, and for Kafka: a broker that stands still keeps whoever asks it waiting for as long as it may."""

OBSERVATION_SECONDS = 5.5
"""For all of it, where one part follows another."""

EARLY_SECONDS = 2.0
"""After that what may explain it is looked up beside the look, where that has no answer yet: whoever stands still keeps it
waiting until its end."""

ALL_SECONDS = 9.5
"""For the whole answer: the look, what comes after it, and the hints. Who asks waits a second longer (`api.observing`)."""

POISON_SECONDS = 2.0
"""For the search for znodes that kill the copy, which the watch makes too, with more patience."""


class Blocking:
    """The activity that answers why nothing happens."""

    def __init__(self, ports: Ports, servers: ZooKeeperServers, listeners: Listeners, members: ZooKeeperMembers) -> None:
        self._ports, self._hinting = ports, Hinting(ports, servers, listeners, members)

    @activity.defn(name=ActivityName.FIND_BLOCKERS)
    async def find_blockers(self, request: BlockersRequest) -> BlockersSeen:
        """All causes at once. For people."""
        with all_within(ALL_SECONDS):
            async with heartbeating():
                return await self._found(request)

    async def _found(self, request: BlockersRequest) -> BlockersSeen:
        cluster = await registered(request.cluster, self._ports)
        record = await self._ports.ledger.migration(request.migration_id)
        if record is None:
            raise OtherLedger(f"migration {request.migration_id}", self._ports.ledger.place)
        ruling = await self._ruling(request, record)
        servers = asyncio.create_task(self._hinting.ask_servers(cluster))
        early: list[tuple[Observation, asyncio.Task[Hints]]] = []
        context = copy_context()  # of all that is asked: the look's own deadline does not hold for the hints

        def judged(seen: Observation) -> tuple[list[Unanswered], Observation]:
            slow = _slow(request, record, seen, cluster.spec)
            return slow, _as_seen_before(seen, cluster.spec, slow)

        def begin(seen: Observation) -> None:
            hinting = self._hints(request, record, cluster, judged(seen)[1], servers)
            early.append((seen, asyncio.create_task(hinting, context=context)))

        try:
            seen = await self._observation(request.kind, cluster, request.policy, Early(EARLY_SECONDS, begin))
            slow, observation = judged(seen)
            begun = [hints for before, hints in early if not _has_come_since(before, seen)]
            hints = await (begun[0] if begun else self._hints(request, record, cluster, observation, servers))
        finally:
            tasks = [servers, *(hints for _, hints in early)]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        situation = situation_of(observation, cluster.spec, request.policy)
        awaited = [part for part in slow if part.what != "kafka" or _is_each_answering(hints, situation)]
        return _without(awaited, self._told(request, record, ruling, cluster, observation, hints))

    async def _observation(self, kind: str, cluster: ClusterRecord, policy: MigrationPolicy, early: Early) -> Observation:
        with all_within(OBSERVATION_SECONDS):
            return await observe_for(kind, cluster, self._ports, policy, POISON_SECONDS, PART_SECONDS, early)

    async def _hints(
        self,
        request: BlockersRequest,
        record: MigrationRecord,
        cluster: ClusterRecord,
        observation: Observation,
        servers: "asyncio.Task[dict[str, Serving]]",
    ) -> Hints:
        situation = situation_of(observation, cluster.spec, request.policy)
        return await self._hinting.hints(record.id, cluster, observation, situation, request.in_hand, await servers)

    def _told(
        self,
        request: BlockersRequest,
        record: MigrationRecord,
        ruling: Ruling,
        cluster: ClusterRecord,
        observation: Observation,
        hints: Hints,
    ) -> BlockersSeen:
        situation = situation_of(observation, cluster.spec, request.policy)
        assessment = assess(observation, cluster.spec, request.policy, ruling, "")
        looked = Looked(
            observation=observation,
            spec=cluster.spec,
            policy=request.policy,
            situation=situation,
            hints=hints,
            waiting=record.progress.waiting,
            alerts=record.progress.alerts,
            in_hand=frozenset(request.in_hand),
            step_since=request.step_since,
            rolled=frozenset(request.rolled),
            usual_restart=max(USUAL_RESTART, timedelta(seconds=request.restart_seconds)),
        )
        decisions = [d for d in (assessment.decision, assessment.stands) if not _is_doubtful(d, record)]
        found, explained = blockers_of(looked, *decisions)
        return BlockersSeen(
            observed_at=observation.ended_at,
            phase=phase_of(situation),
            blockers=found,
            explained=tuple(sorted(explained)),
            unlooked=hints.silent,
            changed=changed_besides(looked, found),
        )

    async def _ruling(self, request: BlockersRequest, record: MigrationRecord) -> Ruling:
        """What people have ruled, but for the hold: what lies behind it is wanted as well."""
        commands = [c for c in await self._ports.ledger.commands(record.id) if c.refused_because is None and c.delivered_at]
        asked = AssessRequest(
            migration_id=record.id,
            cluster=record.cluster,
            generation=record.generation or 0,
            approvals=_approvals(commands),
            policy=request.policy,
        )
        ruling = await ruling_of(asked, self._ports)
        is_back = record.progress.intent is Intent.REVERT
        accepted = {name for c in commands if c.kind is CommandKind.ROLLBACK for name in c.accept_loss}
        return replace(ruling, accepted_losses=tuple(sorted(accepted))) if is_back else ruling


OF_PARTS = {
    "kafka": (WaitReason.PART_UNKNOWN, "kafka"),
    "zookeeper": ("GF11", "ZooKeeper"),
    **{what: (WaitReason.PART_UNKNOWN, about) for what, (about, _, _) in SEARCHES.items()},
}
"""By what has no answer: code and object of the entry that says no more than that."""


AWAITED = frozenset(
    {
        WaitReason.PART_UNKNOWN,
        WaitReason.CONFIGURATION_RUNS,
        *(reason for _, _, explains in SEARCHES.values() for reason in explains),
    }
)
"""Waits that may be because of what has no answer."""


def _slow(request: BlockersRequest, record: MigrationRecord, observation: Observation, spec: ClusterSpec) -> list[Unanswered]:
    """What this look alone had no time for: the migration looks on with more, and waits for something else."""
    waiting, state = record.progress.waiting, record.progress.state
    is_awaited = waiting is not None and waiting.reason in AWAITED
    if state is not MigrationState.WAITING or is_awaited or request.in_hand:
        return []
    names = {*OF_PARTS, *(part_name(spec.node_name(node.id)) for node in spec.nodes)}
    return [part for part in observation.unanswered if part.is_cut_short and part.what in names]


def _has_come_since(before: Observation, after: Observation) -> bool:
    """Whether something has answered late after all: what may explain the rest is to be chosen by that, too."""

    def answered(seen: Observation) -> list[object]:
        parts = [(view.process, view.disk, view.metrics) for view in seen.nodes]
        return [part is not None for part in (seen.zookeeper, seen.kafka, *(one for three in parts for one in three))]

    return answered(before) != answered(after) or any(view.is_unowned for view in after.nodes)


def _is_each_answering(hints: Hints, situation: Situation) -> bool:
    """By itself: then Kafka as a whole takes its time, and no broker stands still. Who was not heard does not count as well."""
    running = {broker.id for broker in situation.brokers if broker.mode not in DOWN_MODES}
    answering = {broker_id for broker_id, asked in hints.asked.items() if not asked.why}
    return bool(running) and running <= answering


def _as_seen_before(observation: Observation, spec: ClusterSpec, slow: Iterable[Unanswered]) -> Observation:
    """Configuration management that runs again would be what the migration waits for."""
    late = {part.what for part in slow}
    nodes = [
        view.model_copy(update={"is_configuration_paused": True}) if part_name(spec.node_name(view.id)) in late else view
        for view in observation.nodes
    ]
    return observation.model_copy(update={"nodes": tuple(nodes)})


def _without(slow: Iterable[Unanswered], seen: BlockersSeen) -> BlockersSeen:
    hidden = {OF_PARTS[part.what] for part in slow if part.what in OF_PARTS}
    words = (
        f"{part.what}: {part.why}; the migration's own observations have more time, and do not wait for it" for part in slow
    )
    return seen.model_copy(
        update={
            "blockers": tuple(entry for entry in seen.blockers if (entry.code, entry.object) not in hidden),
            "late": tuple(entry for entry in seen.blockers if (entry.code, entry.object) in hidden),
            "unlooked": (*seen.unlooked, *words),
        }
    )


def _is_doubtful(decision: Decision | None, record: MigrationRecord) -> bool:
    """On the way back: a wait for a loss that may have been accepted by a preview's hash, of which only the migration knows."""
    waiting = record.progress.waiting
    is_waited_for = waiting is not None and waiting.reason == getattr(decision, "reason", None)
    is_of_loss = getattr(decision, "reason", None) in {WaitReason.FILE_CHANGED, ZkWait.DUAL_WRITE_NOT_CURRENT}
    return record.progress.intent is Intent.REVERT and is_of_loss and not is_waited_for


def _approvals(commands: Iterable[Command]) -> dict[Label, str]:
    """The newest of each gate, as the workflow has accepted it."""
    return {c.gate: c.id for c in commands if c.kind is CommandKind.APPROVE and c.gate is not None}
