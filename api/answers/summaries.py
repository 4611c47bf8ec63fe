"""The summary of a migration that has ended, as it goes out: with the address of each report."""

from datetime import datetime

from api.answers.links import migration_url
from api.answers.outgoing import Outgoing
from domain.drift.report import CheckName, Verdict
from domain.end_compared import EndCompared, NextStep
from domain.kinds import Kinds
from domain.records import MigrationRecord
from domain.summary import KINDS, DecisionLine, LongestPause, PhaseTime, ReportLine, Summary, summary_of
from ledger.ledger import SqlLedger

MOST_REPORTS = 1000
"""Reports read for one migration. It compares every few minutes at the gate; only the newest of each check is shown."""


class SummaryReport(Outgoing):
    """The newest report of one check. `says`: its verdict in words. `link`: where the report is read."""

    report_id: str
    check: CheckName
    verdict: Verdict
    says: str
    at: datetime
    link: str

    @classmethod
    def of(cls, line: ReportLine, migration_id: str) -> "SummaryReport":
        return cls(**line.model_dump(), link=f"{migration_url(migration_id)}/reports/{line.report_id}")


class SummaryAnswer(Outgoing):
    """What a migration came to that has ended. `phases`: in the order in which they were entered. `restarts`: by node.

    `decisions`: who approved, rejected or rolled back what. `end`: whether KRaft has what ZooKeeper had at the gate; `null`
    where that was not tried. `what_now`: what to do next, in order. `specification_revision`: the revision of the cluster's
    specification that the migration has written at its end; `null` where it has not succeeded.
    """

    seconds: float
    phases: list[PhaseTime]
    restarts: dict[str, int]
    longest_pause: LongestPause | None
    reports: list[SummaryReport]
    decisions: list[DecisionLine]
    end: EndCompared | None
    what_now: list[NextStep]
    specification_revision: int | None

    @classmethod
    def of(cls, summary: Summary, migration_id: str) -> "SummaryAnswer":
        reports = [SummaryReport.of(line, migration_id) for line in summary.reports]
        return cls(**summary.model_dump(exclude={"reports"}), reports=reports)


async def summary_answer(record: MigrationRecord, ledger: SqlLedger, kinds: Kinds) -> SummaryAnswer | None:
    """From what the ledger has; `None` while the migration goes on."""
    if record.ended_at is None:
        return None
    kind = kinds[record.kind]
    spec = await ledger.cluster_spec(record.cluster, record.spec_revision)
    summary = summary_of(
        record,
        await ledger.events_of_kinds(record.id, KINDS),
        await ledger.commands(record.id),
        await ledger.reports(migration_id=record.id, limit=MOST_REPORTS),
        kind.seen_by(record, spec) if spec is not None else None,
        kind.next_steps,
    )
    return None if summary is None else SummaryAnswer.of(summary, record.id)
