"""Looking and deciding: `assess` once, `watch` until the decision changes, `observe_cluster` for people."""

import asyncio
import time

from temporalio import activity

from activities.claims import cluster_of, registered_with_migration
from activities.diagnosis.machine_notes import MachineNotes
from activities.heartbeat import heartbeating
from activities.looking import look_and_decide
from activities.observing.observe import observe_for
from activities.ports.ports import Ports
from domain.contracts import ActivityName, Assessment, AssessRequest
from domain.decisions import Revert
from domain.errors import KeeperlessError
from domain.policy import MigrationPolicy
from domain.questions import ClusterSight, ObserveRequest
from domain.records import Sample

SAMPLE_SECONDS = 10.0
"""Between two samples of the numbers while nothing changes: the ledger thins them out."""

SPARED = 9
"""For one second of looking before the start, those in which nobody looks."""


class Assessing:
    """Activities that only look. They may run as often as anybody likes."""

    def __init__(self, ports: Ports, notes: MachineNotes) -> None:
        self._ports, self._notes = ports, notes

    @activity.defn(name=ActivityName.ASSESS)
    async def assess(self, request: AssessRequest) -> Assessment:
        """Observe, store, classify, decide."""
        async with heartbeating():
            assessment, observation, content = await look_and_decide(request, self._ports, _seconds_for_names(request))
            await self._keep(request, assessment, content)
            if request.revert is None:
                self._notes.begin(request.migration_id, await cluster_of(request, self._ports), observation)
            return assessment

    @activity.defn(name=ActivityName.WATCH)
    async def watch(self, request: AssessRequest) -> Assessment:
        """Assess again and again until the decision's digest is not `request.seen` any more."""
        async with heartbeating():
            sampled = time.monotonic()  # what the wait began with was recorded with the progress
            while True:
                begun = time.monotonic()
                assessment, observation, content = await look_and_decide(request, self._ports, _seconds_for_names(request))
                if assessment.digest != request.seen:
                    await self._keep(request, assessment, content)
                    return assessment
                request = request.model_copy(update={"memory": assessment.memory})
                if begun - sampled >= SAMPLE_SECONDS:
                    await self._sample(request, assessment)
                    sampled = begun
                seconds, is_surveyed = time.monotonic() - begun, observation.survey is not None
                await asyncio.sleep(pause_after(seconds, request.policy, is_surveyed=is_surveyed))

    async def _sample(self, request: AssessRequest, assessment: Assessment) -> None:
        """No wait depends on it: a ledger that does not answer leaves a gap in the plot."""
        try:
            sample = Sample(at=assessment.observed_at, numbers=assessment.numbers)
            await self._ports.ledger.add_sample(request.migration_id, sample)
        except KeeperlessError as error:
            activity.logger.warning("a sample is not kept: %s", error)

    async def _keep(self, request: AssessRequest, assessment: Assessment, content: bytes) -> None:
        """Store what was seen; the way back needs no store, nor does what turns us round."""
        try:
            await self._ports.artefacts.put(content)
        except (KeeperlessError, OSError) as error:
            if request.revert is None and not isinstance(assessment.decision, Revert):
                raise
            activity.logger.warning("an observation of the rollback is not kept: %s", error)

    @activity.defn(name=ActivityName.OBSERVE)
    async def observe_cluster(self, request: ObserveRequest) -> ClusterSight:
        """What is seen now, for people. Stores nothing."""
        cluster, migration = await registered_with_migration(request.cluster, self._ports)
        name = next(iter(self._ports.kinds)) if migration is None else migration.kind
        policy, kind = MigrationPolicy(), self._ports.kinds[name]
        return kind.sight(await observe_for(name, cluster, self._ports, policy), cluster.spec, policy)


def pause_after(seconds: float, policy: MigrationPolicy, *, is_surveyed: bool) -> float:
    """Seconds until the next look. `seconds`: what this one took.

    Before the start it reads all that the copy will read, of an ensemble that serves, while people mend what was found.
    """
    pause = policy.poll_interval.total_seconds()
    return max(pause, SPARED * seconds) if is_surveyed else pause


def _seconds_for_names(request: AssessRequest) -> float | None:
    """People want to know which znode kills a copy, until the way back has begun. No effect waits for it."""
    return None if request.revert is None else 0.0
