"""`move_replicas`: begin what may begin now. `restore_throttles`: give back what was there before. Safe to run any number of
times: each looks first, and comes to the same from whatever an attempt before has left.

    1. look again: the fence holds, and a fresh decision is this very step    (else: blocked, nothing touched)
    2. consume the approval of the plan                                        (else: blocked, nothing touched)
    3. look at replicas once more; every change that begins is judged          (else: an error, nothing touched)
    4. set the throttles of all that moves then, and read them back            (else: an error, nothing moves)
    5. ask the controller to begin; the outcome names what it refuses
"""

import asyncio
import time
from collections.abc import Mapping

from temporalio import activity

from activities.claims import cluster_to_change, ensure_not_superseded
from activities.heartbeat import heartbeating
from activities.looking import last_look, outcome, why_not_approved
from activities.observing.observe import observe_for
from activities.ports.ports import Ports
from domain.contracts import StepOutcome, StepRequest
from domain.errors import Transient
from domain.observed.replicas import Throttles
from domain.records import ClusterRecord
from domain.replication_factor.assessment import ReplicaActivity, about, next_of, planned_changes
from domain.replication_factor.change import Change
from domain.replication_factor.decide import BACK
from domain.replication_factor.sight import ReplicaSight, sight
from domain.replication_factor.throttling import left_over, wanted_while
from domain.replication_factor.wanted import ReplicationFactorWanted

READ_BACK_SECONDS, READ_BACK_PAUSE = 30.0, 0.5
MOST_TOLD = 20


class Moving:
    """The activities that move replicas."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ReplicaActivity.MOVE_REPLICAS)
    async def move_replicas(self, request: StepRequest) -> StepOutcome:
        """As the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            look = await last_look(request.model_copy(update={"looks": 1}), self._ports)
            blocked = look.why_not or await why_not_approved(request, look.evidence_hash, self._ports)
            if blocked is not None:
                return outcome(blocked)
            cluster = await cluster_to_change(request, self._ports)
            seen = await self._look(request, cluster)
            batch, moving = next_of(seen, request.policy, is_back=request.step.stage == BACK)
            if not batch:
                return outcome("nothing can begin any more: observe again")
            await self._throttle(request, cluster, seen, [*moving, *batch])
            await ensure_not_superseded(request, self._ports)
            targets = {(change.partition.topic, change.partition.number): change.after for change in batch}
            refused = await self._ports.replicas.reassign(cluster, targets)
            return _told(batch, refused, begun)

    @activity.defn(name=ReplicaActivity.RESTORE_THROTTLES)
    async def restore_throttles(self, request: StepRequest) -> StepOutcome:
        """Once nothing moves any more."""
        async with heartbeating():
            begun = time.monotonic()
            look = await last_look(request.model_copy(update={"looks": 1}), self._ports)
            if look.why_not is not None:
                return outcome(look.why_not)
            cluster = await cluster_to_change(request, self._ports)
            seen = await self._look(request, cluster)
            if seen.now is None or seen.throttles is None or seen.throttled_before is None:
                return outcome("what throttles are set is not known: observe again")
            left = left_over(seen.throttles, seen.throttled_before, *about(planned_changes(seen), seen.now))
            await ensure_not_superseded(request, self._ports)
            await self._set(cluster, left)
            return outcome(None, begun, (f"throttles as before: {_names(left)}",))

    async def _look(self, request: StepRequest, cluster: ClusterRecord) -> ReplicaSight:
        return sight(await observe_for(request.kind, cluster, self._ports, request.policy))

    async def _throttle(self, request: StepRequest, cluster: ClusterRecord, seen: ReplicaSight, moving: list[Change]) -> None:
        rate = None if seen.wanted is None else ReplicationFactorWanted.of(seen.wanted).bytes_per_second
        if rate is None or seen.throttled_before is None or seen.now is None:
            return
        wanted = wanted_while(moving, rate, seen.throttled_before)
        alive = {broker.id for broker in seen.now.brokers}
        await ensure_not_superseded(request, self._ports)
        await self._set(cluster, Throttles({i: of for i, of in wanted.brokers.items() if i in alive}, {}, wanted.topics))

    async def _set(self, cluster: ClusterRecord, wanted: Throttles) -> None:
        """And read back: a broker applies its own later, and a rate that is not in force slows nothing."""
        await self._ports.replicas.set_throttles(cluster, wanted)
        deadline = time.monotonic() + READ_BACK_SECONDS
        while True:
            seen = await self._ports.replicas.throttles(cluster, wanted.brokers.keys(), wanted.topics.keys())
            missing = [str(one) for one, values in wanted.brokers.items() if not _are_in(values, seen.brokers.get(one, {}))]
            missing += [one for one, values in wanted.topics.items() if not _are_in(values, seen.topics.get(one, {}))]
            if not missing:
                return
            if time.monotonic() > deadline:
                raise Transient(f"throttles of {', '.join(missing[:MOST_TOLD])} were set and do not read back")
            await asyncio.sleep(READ_BACK_PAUSE)


def _are_in(wanted: Mapping[str, str], seen: Mapping[str, str]) -> bool:
    return all(seen.get(key, "") == value for key, value in wanted.items())


def _names(throttles: Throttles) -> str:
    return ", ".join([*(f"broker-{i}" for i in throttles.brokers), *throttles.topics][:MOST_TOLD]) or "nothing"


def _told(batch: list[Change], refused: dict[tuple[str, int], str], begun: float) -> StepOutcome:
    """One that is refused is decided again, and named by then; the others have begun."""
    changes = tuple(
        f"{change.partition.name}: {list(change.partition.replicas)} → {list(change.after)}"
        for change in batch
        if (change.partition.topic, change.partition.number) not in refused
    )
    if refused and not changes:
        (topic, number), why = next(iter(refused.items()))
        return outcome(f"the controller refuses {len(refused)} reassignments, {topic}-{number}: {why}")
    more = (f"and {len(changes) - MOST_TOLD} more",) if len(changes) > MOST_TOLD else ()
    told = tuple(f"refused {topic}-{number}: {why}" for (topic, number), why in sorted(refused.items()))[:MOST_TOLD]
    return outcome(None, begun, (*changes[:MOST_TOLD], *more, *told))
