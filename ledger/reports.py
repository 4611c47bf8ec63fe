"""Reports of checks, published once. All functions work in the caller's transaction."""

from sqlalchemy import ColumnElement, Select, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.drift.explaining import verdict_in_words
from domain.drift.report import CheckName, DriftReport, Verdict
from domain.records import EventDraft
from ledger import chain, clusters, migrations
from ledger.errors import NoSuchCluster, NoSuchMigration
from ledger.tables import reports

PUBLISHED = "report-published"
"""Kind of the event."""


async def publish(connection: AsyncConnection, report: DriftReport) -> DriftReport:
    """Store the report and tell of it. The first with an id stands: the lock on the cluster makes a second one wait for it."""
    if await clusters.lock(connection, report.cluster) is None:
        raise NoSuchCluster(report.cluster)
    if report.migration_id is not None and await migrations.find(connection, report.migration_id) is None:
        raise NoSuchMigration(report.migration_id)
    present = await find(connection, report.id)
    if present is not None:
        return present
    searched = ("id", "cluster", "migration_id", "check", "verdict", "content_hash", "ended_at")
    values = {name: getattr(report, name) for name in searched}
    await connection.execute(reports.insert().values(report=report, **values))
    await chain.append(connection, [_event(report)])
    return report


async def find(connection: AsyncConnection, report_id: str) -> DriftReport | None:
    return await _first(connection, select(reports.c.report).where(reports.c.id == report_id))


async def find_newest(connection: AsyncConnection, cluster: str, check: CheckName) -> list[DriftReport]:
    """Those of which one has looked last, and those of which one has done so and came to something."""
    wanted = _of_check(cluster, check)
    last = await _that_may_have_looked_last(connection, wanted)
    if last and last[0].verdict is not Verdict.INCONCLUSIVE:
        return last
    conclusive = await _that_may_have_looked_last(connection, wanted & (reports.c.verdict != Verdict.INCONCLUSIVE))
    return list({report.id: report for report in (*last, *conclusive)}.values())


async def _that_may_have_looked_last(connection: AsyncConnection, wanted: ColumnElement[bool]) -> list[DriftReport]:
    """The one that ended last, and all that went on while it did: whoever ended before it began looked before it too."""
    last = await _first(connection, _newest_first(1).where(wanted))
    if last is None:
        return []
    meanwhile = wanted & (reports.c.ended_at >= last.started_at) & (reports.c.id != last.id)
    return [last, *await connection.scalars(select(reports.c.report).where(meanwhile))]


async def find_last(connection: AsyncConnection, migration_id: str, check: CheckName) -> DriftReport | None:
    """The one of this check that this migration has had last."""
    return await _first(
        connection, _newest_first(1).where((reports.c.migration_id == migration_id) & (reports.c.check == check))
    )


async def find_baseline(connection: AsyncConnection, cluster: str, migration_id: str | None) -> DriftReport | None:
    """The first one that a migration has kept, however late another attempt ends; without a migration, the cluster's newest.

    Where none is usable, the newest that is not.
    """
    kept = _of_check(cluster, CheckName.BASELINE)
    if migration_id is not None:
        kept &= reports.c.migration_id == migration_id
    usable = kept & (reports.c.verdict == Verdict.CLEAN)
    first = select(reports.c.report).where(usable).order_by(reports.c.ended_at, reports.c.id).limit(1)
    found = await _first(connection, first if migration_id is not None else _newest_first(1).where(usable))
    return found or await _first(connection, _newest_first(1).where(kept))


async def count_drifts(connection: AsyncConnection, cluster: str, check: CheckName) -> int:
    """Ever. A report is never removed, so it tells whether one came between, whatever the clocks say."""
    wanted = _of_check(cluster, check) & (reports.c.verdict == Verdict.DRIFT)
    return await connection.scalar(select(func.count()).select_from(reports).where(wanted)) or 0


def _of_check(cluster: str, check: CheckName) -> ColumnElement[bool]:
    return (reports.c.cluster == cluster) & (reports.c.check == check)


async def find_all(
    connection: AsyncConnection,
    cluster: str | None,
    migration_id: str | None,
    content_hash: str | None,
    limit: int,
    before: str | None,
) -> list[DriftReport]:
    """Newest first. Nothing comes before a report that is not there."""
    query = _newest_first(limit)
    wanted = ((reports.c.cluster, cluster), (reports.c.migration_id, migration_id), (reports.c.content_hash, content_hash))
    for column, value in wanted:
        query = query if value is None else query.where(column == value)
    if before is not None:
        place = select(reports.c.ended_at, reports.c.id).where(reports.c.id == before).scalar_subquery()
        query = query.where(tuple_(reports.c.ended_at, reports.c.id) < place)
    return list(await connection.scalars(query))


def _newest_first(limit: int) -> Select[tuple[DriftReport]]:
    return select(reports.c.report).order_by(reports.c.ended_at.desc(), reports.c.id.desc()).limit(limit)


async def _first(connection: AsyncConnection, query: Select[tuple[DriftReport]]) -> DriftReport | None:
    found: DriftReport | None = await connection.scalar(query)
    return found


def _event(report: DriftReport) -> EventDraft:
    return EventDraft(
        key=f"report/{report.id}",
        kind=PUBLISHED,
        cluster=report.cluster,
        migration_id=report.migration_id,
        at=report.ended_at,
        data={
            "report_id": report.id,
            "check": report.check,
            "verdict": report.verdict,
            "says": verdict_in_words(report),
            "content_hash": report.content_hash,
            "rules_fingerprint": report.rules_fingerprint,
        },
    )
