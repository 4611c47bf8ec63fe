"""Plans: made from one fresh look, published once. Nothing is changed."""

from collections.abc import Awaitable, Callable

from temporalio import activity

from activities.claims import cluster_to_plan
from activities.heartbeat import heartbeating
from activities.node_files import sha256_of
from activities.observing.node_texts import read_files
from activities.observing.observe import observe_for
from activities.ports.ports import Ports
from domain.contracts import ActivityName
from domain.errors import Permanent
from domain.observed.observation import Observation
from domain.plans import Asked, Plan
from domain.policy import MigrationPolicy
from domain.questions import PlanOutcome, PlanRequest
from domain.records import ClusterRecord
from domain.rehearsal import RehearsalReport
from domain.rulings import NOTHING_RULED

Rehearse = Callable[[ClusterRecord], Awaitable[RehearsalReport]]
"""Rehearses the copy, and beats meanwhile."""


class Planning:
    """Activities that say what would be done. `rehearse`: of a worker that can."""

    def __init__(self, ports: Ports, rehearse: Rehearse | None = None) -> None:
        self._ports, self._rehearse = ports, rehearse

    @activity.defn(name=ActivityName.MAKE_PLAN)
    async def make_plan(self, request: PlanRequest) -> PlanOutcome:
        """Look, plan, publish. The same request again gives the plan that is there."""
        async with heartbeating():
            plan = await self._ports.ledger.plan(request.plan_id)
            if plan is None:
                plan = await self._ports.ledger.add_plan(await self._made(request))
            return _outcome(plan)

    @activity.defn(name=ActivityName.REHEARSE_PLAN)
    async def rehearse_plan(self, request: PlanRequest) -> PlanOutcome:
        """The same, with a rehearsal of the copy before the look."""
        if self._rehearse is None:
            raise Permanent("this worker cannot rehearse: keeperless-checks does")
        plan = await self._ports.ledger.plan(request.plan_id)
        if plan is None:
            copied = await self._phase_after_the_copy(request)
            rehearsal = await self._rehearse(await cluster_to_plan(request, self._ports)) if copied is None else None
            async with heartbeating():
                plan = await self._ports.ledger.add_plan(await self._made(request, rehearsal, copied))
        return _outcome(plan)

    async def _phase_after_the_copy(self, request: PlanRequest) -> str | None:
        """`None` where the copy is still to come, or nobody knows."""
        async with heartbeating():
            cluster = await cluster_to_plan(request, self._ports)
            observation = await observe_for(request.kind, cluster, self._ports, request.policy)
        return self._ports.kinds[request.kind].why_not_rehearsed(observation, cluster.spec, request.policy)

    async def _made(self, request: PlanRequest, rehearsal: RehearsalReport | None = None, copied: str | None = None) -> Plan:
        cluster = await cluster_to_plan(request, self._ports)
        observation = await self._look(request.kind, cluster, request.policy)
        content = observation.model_dump_json().encode()
        active = await self._ports.ledger.active_migration(request.cluster)
        asked = Asked(
            id=request.plan_id,
            kind=request.kind,
            policy=request.policy,
            wanted=request.wanted,
            requested_by=request.requested_by,
            requested_at=request.requested_at,
            measured=await self._ports.ledger.measured_steps(request.cluster),
            rehearsal=rehearsal,
            is_copied_in=copied,
            migration=None if active is None else active.id,
        )
        files = await read_files(cluster, observation, self._ports)
        await self._ports.artefacts.put(content)
        return self._ports.kinds[request.kind].plan(observation, cluster.spec, files, asked, sha256_of(content))

    async def _look(self, kind: str, cluster: ClusterRecord, policy: MigrationPolicy) -> Observation:
        """As thorough as the look at which a migration starts. Where something does not answer, a second one: Java is late with
        the first answer after its start, and that alone blocks no plan."""
        first = await self._look_once(kind, cluster, policy)
        return await self._look_once(kind, cluster, policy) if first.unanswered else first

    async def _look_once(self, kind: str, cluster: ClusterRecord, policy: MigrationPolicy) -> Observation:
        asked = self._ports.kinds[kind]
        observation = await observe_for(kind, cluster, self._ports, policy)
        is_start = asked.needs_survey(observation, cluster.spec, policy, NOTHING_RULED)
        return await asked.survey(observation, cluster, policy, self._ports) if is_start else observation


def _outcome(plan: Plan) -> PlanOutcome:
    return PlanOutcome(plan_id=plan.id, plan_hash=plan.plan_hash, is_blocked=plan.is_blocked)
