"""`find_blockers`: why nothing happens, from a fresh look and from what only logs, machines and assignments tell.

Looks only, and within the time in which somebody waits for an answer: what does not come in time is named, and left out.
"""

import asyncio
from collections.abc import Iterable
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import timedelta

from temporalio import activity

from activities.claims import registered
from activities.diagnosis.lookups import Hinting
from activities.diagnosis.nodes_to_ask import Look
from activities.heartbeat import heartbeating
from activities.observing.in_time import all_within
from activities.observing.observe import Early, observe_for
from activities.ports.kafka import Listeners
from activities.ports.kinds import ActivityKind
from activities.ports.nodes import ZooKeeperMembers
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperServers
from activities.rulings import ruling_of
from domain.cluster import ClusterSpec
from domain.contracts import ActivityName, AssessRequest
from domain.decisions import Decision, Intent, Label
from domain.diagnosis.blockers import blockers_of
from domain.diagnosis.causes.case import USUAL_RESTART, Case
from domain.diagnosis.causes.hints import Hints, Serving
from domain.diagnosis.causes.with_signs import changed_besides
from domain.errors import OtherLedger
from domain.health.liveness import GONE
from domain.observed.observation import Observation, Unanswered
from domain.questions import BlockersRequest, BlockersSeen
from domain.records import ClusterRecord, Command, CommandKind, MigrationRecord, MigrationState
from domain.rolling.configuration_management import part_name
from domain.rulings import Ruling
from domain.waits import WaitReason

PART_SECONDS = 5.0
"""For ZooKeeper, and for Kafka: a broker that stands still keeps whoever asks it waiting for as long as it may."""
OBSERVATION_SECONDS = 5.5
"""For all of it, where one part follows another."""
EARLY_SECONDS = 2.0
"""After that what may explain it is looked up beside the look, where that has no answer yet: whoever stands still keeps it
waiting until its end."""
ALL_SECONDS = 9.5
"""For the whole answer: observation and hints. The caller waits a second longer (`api.running.observing`)."""
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
        asked = Question(request, record, cluster, self._ports.kinds[request.kind])
        ruling = await self._ruling(request, record)
        servers = asyncio.create_task(self._hinting.ask_servers(cluster))
        early: list[tuple[Observation, asyncio.Task[Hints]]] = []
        context = copy_context()  # of all that is asked: the look's own deadline does not hold for the hints

        def begin(seen: Observation) -> None:
            hinting = self._hints(asked, asked.judged(seen)[1], servers)
            early.append((seen, asyncio.create_task(hinting, context=context)))

        try:
            with all_within(OBSERVATION_SECONDS):
                seen = await observe_for(
                    request.kind,
                    cluster,
                    self._ports,
                    request.policy,
                    POISON_SECONDS,
                    PART_SECONDS,
                    Early(EARLY_SECONDS, begin),
                )
            slow, observation = asked.judged(seen)
            begun = [hints for before, hints in early if not _has_come_since(before, seen)]
            hints = await (begun[0] if begun else self._hints(asked, observation, servers))
        finally:
            tasks = [servers, *(hints for _, hints in early)]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        awaited = [part for part in slow if part.what != "kafka" or _is_each_answering(asked.case(observation), hints)]
        return asked.without(awaited, asked.told(ruling, observation, hints))

    async def _hints(self, asked: "Question", observation: Observation, servers: "asyncio.Task[dict[str, Serving]]") -> Hints:
        request = asked.request
        look = Look(asked.record.id, asked.cluster, asked.case(observation), request.in_hand, await servers)
        return await self._hinting.hints(look, asked.kind.lookups)

    async def _ruling(self, request: BlockersRequest, record: MigrationRecord) -> Ruling:
        """What people have ruled, but for the hold: what lies behind it is wanted as well."""
        commands = [c for c in await self._ports.ledger.commands(record.id) if c.refused_because is None and c.delivered_at]
        asked = AssessRequest(
            migration_id=record.id,
            kind=record.kind,
            cluster=record.cluster,
            generation=record.generation or 0,
            approvals=_approvals(commands),
            policy=request.policy,
        )
        ruling = await ruling_of(asked, self._ports)
        is_back = record.progress.intent is Intent.REVERT
        accepted = {name for c in commands if c.kind is CommandKind.ROLLBACK for name in c.accept_loss}
        return replace(ruling, accepted_losses=tuple(sorted(accepted))) if is_back else ruling


@dataclass(frozen=True)
class Question:
    """Why nothing happens in one migration, and what is known of it beside the cluster."""

    request: BlockersRequest
    record: MigrationRecord
    cluster: ClusterRecord
    kind: ActivityKind

    def case(self, observation: Observation) -> Case:
        case: Case = self.kind.diagnosis.case_of(observation, self.cluster.spec, self.request.policy)
        return case

    @property
    def parts(self) -> dict[str, tuple[str, str]]:
        """By what has no answer: code and object of the entry that says no more than that."""
        searches = {what: (str(WaitReason.PART_UNKNOWN), search.about) for what, search in self.kind.diagnosis.searches.items()}
        return {"kafka": (WaitReason.PART_UNKNOWN, "kafka"), "zookeeper": ("GF11", "ZooKeeper"), **searches}

    def judged(self, seen: Observation) -> tuple[list[Unanswered], Observation]:
        slow = self._slow(seen)
        return slow, _as_seen_before(seen, self.cluster.spec, slow)

    def _slow(self, observation: Observation) -> list[Unanswered]:
        """What this look alone had no time for: the migration looks on with more, and waits for something else."""
        waiting, state, spec = self.record.progress.waiting, self.record.progress.state, self.cluster.spec
        searched = {reason for search in self.kind.diagnosis.searches.values() for reason in search.explains}
        is_awaited = waiting is not None and waiting.reason in {*AWAITED, *searched}
        if state is not MigrationState.WAITING or is_awaited or self.request.in_hand:
            return []
        names = {*self.parts, *(part_name(spec.node_name(node.id)) for node in spec.nodes)}
        return [part for part in observation.unanswered if part.is_cut_short and part.what in names]

    def told(self, ruling: Ruling, observation: Observation, hints: Hints) -> BlockersSeen:
        request, progress = self.request, self.record.progress
        assessment = self.kind.assess(observation, self.cluster.spec, request.policy, ruling, "")
        case = replace(
            self.case(observation),
            hints=hints,
            waiting=progress.waiting,
            alerts=progress.alerts,
            in_hand=frozenset(request.in_hand),
            step_since=request.step_since,
            rolled=frozenset(request.rolled),
            usual_restart=max(USUAL_RESTART, timedelta(seconds=request.restart_seconds)),
        )
        decisions = [d for d in (assessment.decision, assessment.stands) if not self._is_doubtful(d)]
        found, explained = blockers_of(self.kind.diagnosis, case, *decisions)
        return BlockersSeen(
            observed_at=observation.ended_at,
            phase=assessment.phase,
            blockers=found,
            explained=tuple(sorted(explained)),
            unlooked=hints.silent,
            changed=changed_besides(case, found),
        )

    def _is_doubtful(self, decision: Decision | None) -> bool:
        """On the way back: a wait for a loss that may have been accepted by a preview's hash, of which only the migration
        knows."""
        waiting, reason = self.record.progress.waiting, getattr(decision, "reason", None)
        is_waited_for = waiting is not None and waiting.reason == reason
        is_back = self.record.progress.intent is Intent.REVERT
        return is_back and reason in self.kind.diagnosis.of_losses and not is_waited_for

    def without(self, slow: Iterable[Unanswered], seen: BlockersSeen) -> BlockersSeen:
        """What has only been too late is no blocker."""
        hidden = {self.parts[part.what] for part in slow if part.what in self.parts}
        more = "the migration's own observations have more time, and do not wait for it"
        words = (f"{part.what}: {part.why}; {more}" for part in slow)
        return seen.model_copy(
            update={
                "blockers": tuple(entry for entry in seen.blockers if (entry.code, entry.object) not in hidden),
                "late": tuple(entry for entry in seen.blockers if (entry.code, entry.object) in hidden),
                "unlooked": (*seen.unlooked, *words),
            }
        )


AWAITED = frozenset({WaitReason.PART_UNKNOWN, WaitReason.CONFIGURATION_RUNS})
"""Waits that may be because of what has no answer."""


def _has_come_since(before: Observation, after: Observation) -> bool:
    """Whether something has answered late after all: what may explain the rest is to be chosen by that, too."""

    def answered(seen: Observation) -> list[object]:
        parts = [(view.process, view.disk, view.metrics) for view in seen.nodes]
        return [part is not None for part in (seen.zookeeper, seen.kafka, *(one for three in parts for one in three))]

    return answered(before) != answered(after) or any(view.is_unowned for view in after.nodes)


def _is_each_answering(case: Case, hints: Hints) -> bool:
    """By itself: then Kafka as a whole takes its time, and no broker stands still. Who was not heard does not count as well."""
    running = {broker.id for broker in case.spec.brokers if case.liveness(broker.id) not in GONE}
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


def _approvals(commands: Iterable[Command]) -> dict[Label, str]:
    """The newest of each gate, as the workflow has accepted it."""
    return {c.gate: c.id for c in commands if c.kind is CommandKind.APPROVE and c.gate is not None}
