"""Addresses that answers point to."""

from urllib.parse import quote

from domain.drift.report import DriftReport
from domain.records import MigrationRecord


def cluster_url(name: str) -> str:
    return f"/clusters/{name}"


def migration_url(migration_id: str) -> str:
    return f"/migrations/{migration_id}"


def plan_url(plan_id: str) -> str:
    return f"/plans/{plan_id}"


def check_url(cluster: str, report_id: str) -> str:
    return f"{cluster_url(cluster)}/checks/{report_id}"


def report_url(report: DriftReport) -> str:
    """A migration's report is found at the migration, too; every one at its cluster."""
    if report.migration_id is None:
        return check_url(report.cluster, report.id)
    return f"{migration_url(report.migration_id)}/reports/{report.id}"


def temporal_ui_url(base: str | None, namespace: str, record: MigrationRecord) -> str | None:
    """The migration's run in Temporal's web UI.

    An active migration continues as new now and then, so its link names no run: the UI shows the newest. The workflow id is
    shared by all migrations of a cluster, so the link of an ended one names its last run.
    """
    if base is None:
        return None
    workflow = f"{base.rstrip('/')}/namespaces/{quote(namespace, safe='')}/workflows/{quote(record.workflow_id, safe='')}"
    run_id = record.newest_run_id
    return workflow if record.ended_at is None or run_id is None else f"{workflow}/{run_id}"
