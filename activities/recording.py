"""What people ask for later: claiming a cluster, and recording how far a migration has come."""

from datetime import UTC, datetime

from temporalio import activity

from activities.ports.ports import Ports
from domain.cluster import ClusterSpec
from domain.contracts import ActivityName, Claim, ClaimRequest, RecordRequest
from domain.errors import Permanent, Transient
from domain.records import MigrationState


class Recording:
    """Activities that write the ledger. They may run twice: claims belong to a run, events have keys."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ActivityName.CLAIM)
    async def claim_cluster(self, request: ClaimRequest) -> Claim:
        """Take the cluster for this chain of runs; a second run of the same migration is told that it is not its."""
        generation = await self._ports.ledger.claim(request.migration_id, request.first_run_id, datetime.now(UTC))
        return Claim(is_ours=generation is not None, generation=generation or 0)

    @activity.defn(name=ActivityName.RECORD)
    async def record_progress(self, request: RecordRequest) -> None:
        """Append events and set the progress.

        A ledger that refuses is like one that is down: the workflow has nothing else to say, and an attempt of this
        activity costs no history, where a new activity every so often would fill it.
        """
        try:
            # The same for every attempt: one that was given up, and wakes up late, replaces nothing newer.
            as_of = activity.info().scheduled_time
            achieved = await self._achieved(request)
            await self._ports.ledger.record(request.migration_id, request.events, request.progress, as_of, achieved)
        except Permanent as error:
            raise Transient(str(error)) from error

    async def _achieved(self, request: RecordRequest) -> ClusterSpec | None:
        """The cluster as it is registered from now on: where the migration has succeeded."""
        if request.progress is None or request.progress.state is not MigrationState.SUCCEEDED:
            return None
        migration = await self._ports.ledger.migration(request.migration_id)
        cluster = await self._ports.ledger.cluster(request.cluster)
        if migration is None or cluster is None or migration.ended_at is not None:
            return None  # `record` says what is missing; what has ended has been registered
        return self._ports.kinds[migration.kind].kind.achieved(cluster.spec, migration.wanted)
