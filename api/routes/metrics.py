"""`/metrics`, for Prometheus: the state of each active migration, and the age of workers' heartbeats. Read for each scrape.

Names follow Prometheus: base units, one label for one dimension. The numbers that a kind of migration names, such as its gauge
and its lag, are one metric with their name as a label, so that a new kind brings no new metric.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from api.people.access import may, principal_of
from api.wiring import UsableWiring
from domain.drift.report import CheckName, DriftReport
from domain.principals import Permission
from domain.records import ACTIVE_STATES, MigrationRecord
from domain.worker_health import WorkerHealth
from ledger.ledger import SqlLedger

MOST_MIGRATIONS = 1000
"""In one state; a cluster has one active migration at most."""
router = APIRouter(tags=["health"])
PREFIX = "keeperless"
OF_A_MIGRATION = ("cluster", "kind", "migration")


@dataclass(frozen=True)
class Standing:
    """One active migration, and the newest report of each of its checks."""

    record: MigrationRecord
    reports: Sequence[DriftReport] = ()


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


def exposition(standings: Iterable[Standing], workers: Iterable[WorkerHealth], now: datetime) -> bytes:
    """Prometheus' text format."""
    registry = CollectorRegistry()
    metrics = _Metrics(registry)
    for standing in standings:
        metrics.add(standing, now)
    for worker in workers:
        if worker.stopped_at is None:
            age = max((now - worker.beat_at).total_seconds(), 0)
            metrics.beat.labels(worker.program, worker.identity, worker.release).set(age)
    return generate_latest(registry)


class _Metrics:
    """All that there are, in a registry of their own: what has ended is not there in the next scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, meaning: str, *labels: str) -> Gauge:
            return Gauge(f"{PREFIX}_{name}", meaning, [*OF_A_MIGRATION, *labels], registry=registry)

        self.info = gauge("migration_info", "1 for the state and phase that it has now.", "state", "phase")
        self.age = gauge("migration_age_seconds", "Since it was asked for.")
        self.waiting = gauge("migration_waiting_seconds", "How long it has waited for this reason.", "reason", "waits_for")
        self.done = gauge("migration_steps_done", "Steps that are done.")
        self.total = gauge("migration_steps", "Steps that its nodes need; absent before the first observation.")
        self.gate = gauge("migration_gate_open_seconds", "How long a gate has waited for approval.", "gate")
        self.restarts = gauge("migration_node_restarts", "Restarts by this migration.", "node")
        self.ready = gauge("migration_node_ready", "1 if the node is well, else 0.", "node")
        self.number = gauge("migration_number", "A number that its kind names, as observed last; absent if unknown.", "name")
        self.verdict = gauge("migration_report_verdict", "1 for the verdict of a check's newest report.", "check", "verdict")
        self.alerts = gauge("migration_alerts", "Alerts of this code.", "code")
        workers = ["program", "worker", "release"]
        self.beat = Gauge(f"{PREFIX}_worker_beat_age_seconds", "Since its last heartbeat.", workers, registry=registry)

    def add(self, standing: Standing, now: datetime) -> None:
        record, progress = standing.record, standing.record.progress
        of = (record.cluster, record.kind, record.id)
        self.info.labels(*of, progress.state.value, progress.phase or "").set(1)
        self.age.labels(*of).set(_since(record.created_at, now))
        self.done.labels(*of).set(progress.steps_done)
        if progress.steps_total:
            self.total.labels(*of).set(progress.steps_total)
        if (waiting := progress.waiting) is not None:
            whom = "people" if waiting.for_people else "cluster"
            self.waiting.labels(*of, waiting.reason, whom).set(_since(waiting.since, now))
        if progress.gate is not None:
            self.gate.labels(*of, progress.gate.name).set(_since(progress.gate.since, now))
        self._add_parts(standing, of)

    def _add_parts(self, standing: Standing, of: tuple[str, str, str]) -> None:
        progress = standing.record.progress
        for node in progress.nodes:
            self.restarts.labels(*of, node.name).set(node.restarts)
            self.ready.labels(*of, node.name).set(node.is_ready)
        for number in progress.sample.numbers if progress.sample is not None else ():
            if number.value is not None:
                self.number.labels(*of, number.name).set(number.value)
        for report in standing.reports:
            self.verdict.labels(*of, report.check.value, report.verdict.value).set(1)
        for alert in progress.alerts:
            self.alerts.labels(*of, alert.code).inc()


def _since(moment: datetime, now: datetime) -> float:
    return max((now - moment).total_seconds(), 0)
