"""The fence and what belongs to it: an effect happens only for the run that holds the cluster, and where its nodes are."""

from datetime import UTC, datetime
from socket import gethostname

from temporalio import activity

from activities.ports.ports import Ports
from domain.contracts import AssessRequest, StepRequest
from domain.errors import KeeperlessError, OtherLedger, Permanent, Superseded, Transient
from domain.health.visibility import SEES_NOTHING, WHERE_IT_BELONGS
from domain.questions import PlanRequest
from domain.records import ClusterRecord, EventDraft, MigrationRecord
from domain.restored_history import KIND, why_set_back


def elsewhere() -> Transient:
    """Another worker, which may take the task next, may be where the nodes are."""
    return Transient(f"keeperless-activities on {gethostname()}: {SEES_NOTHING}. {WHERE_IT_BELONGS}")


async def ensure_here(cluster: ClusterRecord, ports: Ports) -> None:
    """Before anything is done to nodes: whoever sees none would take their files for lost, and controllers for gone. What does
    not answer is not nothing."""
    for broker in cluster.spec.brokers:
        driver = ports.drivers.driver(broker)
        try:
            if await driver.read_file(broker.properties_file) is not None or (await driver.process()).is_running:
                return
        except KeeperlessError:
            return
    raise elsewhere()


async def cluster_to_change(request: StepRequest, ports: Ports) -> ClusterRecord:
    """The cluster, for an effect on its nodes."""
    cluster = await cluster_of(request, ports)
    await ensure_here(cluster, ports)
    return cluster


async def cluster_of(request: AssessRequest | StepRequest, ports: Ports) -> ClusterRecord:
    """The cluster as it is registered; an accepted way back carries it along."""
    return request.revert.cluster if request.revert is not None else await registered(request.cluster, ports)


async def registered(name: str, ports: Ports) -> ClusterRecord:
    """The cluster as it is registered; while a migration is active, as that one sees it."""
    return (await registered_with_migration(name, ports))[0]


async def registered_with_migration(name: str, ports: Ports) -> tuple[ClusterRecord, MigrationRecord | None]:
    """The same, and the active migration."""
    cluster = await _as_registered(name, ports)
    migration = await ports.ledger.active_migration(name)
    if migration is None:
        return cluster, None
    spec = ports.kinds[migration.kind].kind.seen_by(migration, cluster.spec)
    return cluster.model_copy(update={"spec": spec}), migration


async def cluster_to_plan(request: PlanRequest, ports: Ports) -> ClusterRecord:
    """The cluster as the planned migration would see it. Raises `Permanent` if it was changed since the plan was asked for, and
    cannot get what is wanted any more."""
    cluster = await _as_registered(request.cluster, ports)
    try:
        spec = ports.kinds[request.kind].kind.aimed(cluster.spec, request.wanted)
    except ValueError as error:
        raise Permanent(f"cluster {request.cluster}: {error}") from error
    return cluster.model_copy(update={"spec": spec})


async def _as_registered(name: str, ports: Ports) -> ClusterRecord:
    cluster = await ports.ledger.cluster(name)
    if cluster is None:
        raise OtherLedger(f"cluster {name}", ports.ledger.place)
    return cluster


async def ensure_not_superseded(request: AssessRequest | StepRequest, ports: Ports) -> None:
    """The fence: an effect of a run that has lost the cluster must not happen. On the way back a silent ledger is no reason
    to wait, nor is one that was restored from a backup: Temporal lets one run of the cluster live, and half a way back is the
    worst place to rest. Only a later generation stops it."""
    try:
        held = await ports.ledger.generation(request.cluster)
    except (Transient, Permanent) as error:
        if request.revert is None:
            raise
        activity.logger.warning("continuing the rollback although the ledger does not know the cluster: %s", error)
        return
    if held > request.generation or (held != request.generation and request.revert is None):
        raise Superseded(
            f"cluster {request.cluster} is held by generation {held}, this run is generation {request.generation}: it stops"
        )


async def ensure_not_set_back(request: AssessRequest | StepRequest, ports: Ports) -> None:
    """What the run decides, it decides without what it knew: asked before anything is touched, and not once a node is stopped.
    People find in the ledger why it has ended. On the way back nothing is asked: half of it is the worst place to rest.
    """
    position = request.position
    if position is None or request.revert is not None:
        return
    step = int(request.step_id.rpartition("/")[2]) if isinstance(request, StepRequest) else None
    why = why_set_back(position, await ports.ledger.told_by_runs(request.migration_id, position.at), step)
    if why is None:
        return
    said = EventDraft(
        key=f"{position.run_id}/{KIND}",
        kind=KIND,
        cluster=request.cluster,
        migration_id=request.migration_id,
        at=datetime.now(UTC),
        data={"why": why},
    )
    await ports.ledger.record(request.migration_id, [said], None)
    raise Superseded(f"{why}: it stops")
