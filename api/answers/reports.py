"""What goes out about checks and their reports."""

from datetime import datetime

from api.answers.links import check_url, cluster_url, migration_url, report_url
from api.answers.outgoing import Outgoing
from api.running.activity_progress import ActivityProgress, StandingState
from domain.drift.explaining import explanation_of, verdict_in_words
from domain.drift.records import Severity
from domain.drift.rendering import EXPLAINED, redacted
from domain.drift.report import CheckName, Cut, DriftFinding, DriftReport, FindingKind, RecordCounts, Verdict


class FindingAnswer(Outgoing):
    """One finding. `left` is ZooKeeper, or what was before; `right` is KRaft, or what is now. Secrets are redacted.

    `means` and `to_do`: in words, what it says about the cluster and what to do.
    """

    record: str
    finding: FindingKind
    severity: Severity
    rule: str
    key: str
    field: str
    left: str | None
    right: str | None
    left_at: str
    right_at: str
    is_redacted: bool
    tolerated_by: str
    means: str
    to_do: str

    @classmethod
    def of(cls, finding: DriftFinding, check: CheckName) -> "FindingAnswer":
        explained = explanation_of(finding, check)
        return cls(**redacted(finding).model_dump(), means=explained.means, to_do=explained.advice)


class FindingPage(Outgoing):
    """In the report's order. `next_cursor`: for the next page; `null` at the end."""

    items: list[FindingAnswer]
    next_cursor: str | None


class ReportLinks(Outgoing):
    self: str
    findings: str
    cluster: str
    migration: str | None


class ReportAnswer(Outgoing):
    """What a check found. `says`: its verdict in words. `first`: the gravest findings; `links.findings` has all.

    `content_hash`: of what is material; the evidence of a gate names it. `findings`, `manifest`: artefacts, by sha256.
    """

    id: str
    cluster: str
    migration_id: str | None
    check: CheckName
    verdict: Verdict
    says: str
    started_at: datetime
    ended_at: datetime
    cut: Cut
    counts: dict[str, RecordCounts]
    first: list[FindingAnswer]
    not_read: list[str]
    tolerated: list[str]
    rules_fingerprint: str
    content_hash: str
    findings: str | None
    manifest: str | None
    engine: str
    seconds: dict[str, float]
    links: ReportLinks

    @classmethod
    def of(cls, report: DriftReport) -> "ReportAnswer":
        return cls(
            **report.model_dump(exclude={"first"}),
            says=verdict_in_words(report),
            first=[FindingAnswer.of(finding, report.check) for finding in report.first[:EXPLAINED]],
            links=ReportLinks(
                self=report_url(report),
                findings=f"{report_url(report)}/findings",
                cluster=cluster_url(report.cluster),
                migration=None if report.migration_id is None else migration_url(report.migration_id),
            ),
        )


class ReportList(Outgoing):
    """Newest first. `next_cursor`: for the next page; `null` at the end."""

    items: list[ReportAnswer]
    next_cursor: str | None


class CheckLinks(Outgoing):
    self: str
    cluster: str


class CheckAnswer(Outgoing):
    """A check of a cluster, and its report once it has ended. `detail`: what it waits for, or why it failed."""

    id: str
    cluster: str
    state: StandingState
    detail: str
    started_at: datetime
    report: ReportAnswer | None
    links: CheckLinks

    @classmethod
    def of(cls, report: DriftReport) -> "CheckAnswer":
        return cls(
            id=report.id,
            cluster=report.cluster,
            state=StandingState.ENDED,
            detail="",
            started_at=report.started_at,
            report=ReportAnswer.of(report),
            links=_check_links(report.cluster, report.id),
        )

    @classmethod
    def without_report(cls, cluster: str, report_id: str, standing: ActivityProgress) -> "CheckAnswer":
        return cls(
            id=report_id,
            cluster=cluster,
            state=standing.state,
            detail=standing.detail,
            started_at=standing.started_at,
            report=None,
            links=_check_links(cluster, report_id),
        )


class CheckList(Outgoing):
    """Checks that have a report, newest first. `next_cursor`: for the next page; `null` at the end."""

    items: list[CheckAnswer]
    next_cursor: str | None


def _check_links(cluster: str, report_id: str) -> CheckLinks:
    return CheckLinks(self=check_url(cluster, report_id), cluster=cluster_url(cluster))
