"""`/clusters`: what people tell us about their clusters, and what is seen there now."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response

from api.answers.links import cluster_url
from api.answers.problems import FieldError, invalid_request
from api.answers.resources import ClusterAnswer, ClusterList
from api.answers.spec_errors import spec_errors
from api.people.access import may, principal_of
from api.requests import NamedCluster
from api.running.audit import call_of
from api.running.observing import observe
from api.wiring import UsableWiring
from domain.cluster import ClusterSpec
from domain.principals import Permission
from domain.questions import ClusterSight
from domain.records import ClusterRecord, MigrationRecord
from ledger.errors import ActiveMigration, NoSuchCluster

router = APIRouter(prefix="/clusters", tags=["clusters"])


@router.put(
    "/{name}",
    responses={201: {"model": ClusterAnswer, "description": "The cluster is new."}},
    dependencies=[may(Permission.OPERATE)],
)
async def put_cluster(
    name: NamedCluster, spec: ClusterSpec, request: Request, response: Response, wiring: UsableWiring
) -> ClusterAnswer:
    """Register a cluster, or change its spec: each change is a revision. The cluster is not contacted. While a migration is
    held, only how the cluster is looked at may change: `kafka`, `metrics`, `zookeeper.members` and `session_timeout_seconds`.
    For the `metrics` of controllers that it creates, add them as `quorum`.
    """
    call_of(request).cluster = name
    if spec.name != name:
        raise invalid_request([FieldError(where="body", field="name", message="It differs from the name in the path")])
    present = await wiring.ledger.cluster(name)
    if errors := spec_errors(spec, present.spec if present is not None else None):
        raise invalid_request(errors)
    record, is_new = await _put(wiring, spec)
    if is_new:
        response.status_code = 201
        response.headers["Location"] = cluster_url(name)
    return ClusterAnswer.of(record)


async def _put(wiring: UsableWiring, spec: ClusterSpec) -> tuple[ClusterRecord, bool]:
    """A migration whose run is gone keeps no spec as it is."""

    def aimed(migration: MigrationRecord, spec: ClusterSpec) -> ClusterSpec:
        return wiring.kinds[migration.kind].aimed(spec, migration.wanted)

    try:
        return await wiring.ledger.put_cluster(spec, datetime.now(UTC), aimed)
    except ActiveMigration as busy:
        if not await wiring.starter.settle(busy.migration_id):
            raise
        return await wiring.ledger.put_cluster(spec, datetime.now(UTC), aimed)


@router.get("")
async def list_clusters(request: Request, wiring: UsableWiring) -> ClusterList:
    """All registered clusters in the principal's scope, by name."""
    principal = principal_of(request)
    seen = [record for record in await wiring.ledger.clusters() if principal.is_in_scope(record.spec.name)]
    return ClusterList(items=[ClusterAnswer.of(record) for record in seen])


@router.get("/{name}")
async def get_cluster(name: NamedCluster, wiring: UsableWiring) -> ClusterAnswer:
    """A cluster with its newest spec."""
    return ClusterAnswer.of(await registered(wiring, name))


@router.get("/{name}/observation")
async def observe_cluster(name: NamedCluster, wiring: UsableWiring) -> ClusterSight:
    """What is seen now, by a worker. What did not answer is named in `unknown`, and is no error."""
    await registered(wiring, name)
    return await observe(wiring.temporal, name)


async def registered(wiring: UsableWiring, name: str) -> ClusterRecord:
    """The cluster, or `NoSuchCluster`."""
    record = await wiring.ledger.cluster(name)
    if record is None:
        raise NoSuchCluster(name)
    return record
