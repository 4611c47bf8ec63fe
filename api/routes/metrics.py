"""`/metrics`, for Prometheus."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.metrics import Standing, exposition
from api.people.access import may, principal_of
from api.wiring import UsableWiring
from domain.drift.report import CheckName
from domain.principals import Permission
from domain.records import ACTIVE_STATES, MigrationRecord
from ledger.ledger import SqlLedger

MOST_MIGRATIONS = 1000
"""In one state; a cluster has one active migration at most."""

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    dependencies=[may(Permission.READ)],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def get_metrics(request: Request, wiring: UsableWiring) -> Response:
    """Numbers of every active migration in the principal's scope, and of all workers, in Prometheus' text format."""
    clusters = principal_of(request).clusters
    by_state = [await wiring.ledger.migrations(clusters, state=state, limit=MOST_MIGRATIONS) for state in sorted(ACTIVE_STATES)]
    standings = [await _standing(wiring.ledger, record) for records in by_state for record in records]
    body = exposition(standings, await wiring.ledger.workers(), datetime.now(UTC))
    return Response(body, media_type=CONTENT_TYPE_LATEST)


async def _standing(ledger: SqlLedger, record: MigrationRecord) -> Standing:
    newest = [await ledger.newest_report(record.id, check) for check in CheckName]
    return Standing(record, [report for report in newest if report is not None])
