"""Reports: published once, with their event, and found by whoever looks for them. On SQLite and on PostgreSQL."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.cluster import ClusterSpec
from domain.drift.records import Severity
from domain.drift.report import CheckName, Cut, DriftFinding, DriftReport, FindingKind, RecordCounts, Verdict
from domain.records import MigrationRecord
from ledger.errors import NoSuchCluster, NoSuchMigration
from ledger.ledger import SqlLedger

NOW = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)
FINDING = DriftFinding(
    record="topic-config",
    finding=FindingKind.DIFFERS,
    severity=Severity.BLOCK,
    rule="exact",
    key="orders/été\u0000",
    field="value",
    left="1",
    right=None,
)


def report_of(report_id: str = "r1", minutes: float = 0, **fields: Any) -> DriftReport:
    """A report of the cluster `orders` that ended so many minutes after the first."""
    given: dict[str, Any] = {
        "id": report_id,
        "cluster": "orders",
        "check": CheckName.METADATA,
        "verdict": Verdict.DRIFT,
        "started_at": NOW,
        "ended_at": NOW + timedelta(minutes=minutes),
        "cut": Cut(migration_offset=7, high_watermark=12, claim="3001@5", looks=2),
        "counts": {"topic-config": RecordCounts(left=3, right=3, equal=2, differs=1)},
        "first": (FINDING,),
        "not_read": ("the log of broker-2",),
        "rules_fingerprint": "f" * 64,
        "content_hash": f"hash of {report_id}",
        "findings": "a" * 64,
        "seconds": {"compare": 0.25},
    }
    return DriftReport.model_validate(given | fields)


@pytest.fixture
async def orders(ledger: SqlLedger, migration: MigrationRecord) -> MigrationRecord:
    """The migration of the cluster `orders`."""
    assert migration.cluster == "orders"
    return migration


async def test_a_report_is_read_as_it_was_published(ledger: SqlLedger, orders: MigrationRecord) -> None:
    published = report_of(migration_id=orders.id)
    assert await ledger.add_report(published) == published
    assert await ledger.report("r1") == published
    assert await ledger.report("r2") is None


async def test_the_first_report_with_an_id_stands(ledger: SqlLedger, orders: MigrationRecord) -> None:
    first = await ledger.add_report(report_of(migration_id=orders.id))
    second = report_of(migration_id=orders.id, verdict=Verdict.CLEAN, content_hash="other")
    assert await ledger.add_report(second) == first
    assert await ledger.report("r1") == first
    assert [e.kind for e in await ledger.events(orders.id)] == ["report-published"]


async def test_of_many_that_publish_at_once_one_wins_and_all_hear_of_it(ledger: SqlLedger, orders: MigrationRecord) -> None:
    attempts = [ledger.add_report(report_of(content_hash=f"attempt {n}")) for n in range(8)]
    answers = await asyncio.gather(*attempts)
    assert len({answer.content_hash for answer in answers}) == 1
    assert await ledger.report("r1") == answers[0]
    assert len(await ledger.events()) == 1


async def test_its_event_says_what_an_approval_names(ledger: SqlLedger, orders: MigrationRecord) -> None:
    await ledger.add_report(report_of(migration_id=orders.id))
    await ledger.add_report(report_of("r2"))
    told = (await ledger.events(orders.id))[0]
    assert (told.cluster, told.at) == ("orders", NOW)
    assert told.data == {
        "report_id": "r1",
        "check": "metadata",
        "verdict": "drift",
        "says": "Both sides (ZooKeeper, KRaft) disagree: 1 difference.",
        "content_hash": "hash of r1",
        "rules_fingerprint": "f" * 64,
    }
    assert [event.data["report_id"] for event in await ledger.events()] == ["r1", "r2"]
    assert await ledger.verify_chain() is None


async def test_a_report_of_what_is_not_there_leaves_nothing_behind(ledger: SqlLedger, orders: MigrationRecord) -> None:
    with pytest.raises(NoSuchCluster):
        await ledger.add_report(report_of(cluster="payments"))
    with pytest.raises(NoSuchMigration):
        await ledger.add_report(report_of(migration_id="another"))
    assert await ledger.report("r1") is None
    assert await ledger.events() == []


async def test_the_last_report_of_a_migration_is_that_of_its_check(ledger: SqlLedger, orders: MigrationRecord) -> None:
    for report in (
        report_of("r1", minutes=1, migration_id=orders.id, check=CheckName.BASELINE),
        report_of("r2", minutes=3, migration_id=orders.id, check=CheckName.BASELINE, verdict=Verdict.INCONCLUSIVE),
        report_of("r3", minutes=2, migration_id=orders.id, check=CheckName.MESSAGES),
        report_of("r4", minutes=9, check=CheckName.BASELINE),
    ):
        await ledger.add_report(report)
    last = [await ledger.newest_report(orders.id, check) for check in (CheckName.BASELINE, CheckName.MESSAGES, CheckName.COPY)]
    assert [report.id if report is not None else None for report in last] == ["r2", "r3", None]
    assert await ledger.newest_report("another", CheckName.BASELINE) is None


async def test_the_first_usable_baseline_of_a_migration_stays_its_baseline(ledger: SqlLedger, orders: MigrationRecord) -> None:
    """An attempt that was cut off may publish its own much later. Who takes over has the cluster's newest."""
    assert await ledger.baseline("orders", orders.id) is None
    kept = {"migration_id": orders.id, "check": CheckName.BASELINE}
    await ledger.add_report(report_of("vain", minutes=1, verdict=Verdict.INCONCLUSIVE, **kept))
    found = await ledger.baseline("orders", orders.id)
    assert found is not None
    assert found.id == "vain"
    for name, minutes, verdict in (
        ("first", 2, Verdict.CLEAN),
        ("late", 9, Verdict.CLEAN),
        ("later", 10, Verdict.INCONCLUSIVE),
    ):
        await ledger.add_report(report_of(name, minutes=minutes, verdict=verdict, **kept))
    own, newest = await ledger.baseline("orders", orders.id), await ledger.baseline("orders")
    assert own is not None
    assert newest is not None
    assert (own.id, newest.id) == ("first", "late")
    assert await ledger.baseline("orders", "another") is None


async def test_the_newest_reports_are_the_one_that_ended_last_and_those_that_went_on_meanwhile(
    ledger: SqlLedger, orders: MigrationRecord, make_spec: Callable[..., ClusterSpec]
) -> None:
    await ledger.put_cluster(make_spec("payments", "kafka-2"), NOW)

    def at(minutes: float) -> datetime:
        return NOW + timedelta(minutes=minutes)

    async def ids() -> set[str]:
        return {report.id for report in await ledger.newest_reports("orders", CheckName.METADATA)}

    for report in (
        report_of("r1", minutes=9, started_at=at(2)),
        report_of("r2", minutes=1),
        report_of("within", minutes=5, started_at=at(4)),
        report_of("into", minutes=3, started_at=at(1)),
        report_of("r3", minutes=20, check=CheckName.COPY),
        report_of("r4", minutes=20, cluster="payments"),
    ):
        await ledger.add_report(report)
    assert await ids() == {"r1", "within", "into"}
    assert await ledger.newest_reports("orders", CheckName.MESSAGES) == []
    await ledger.add_report(report_of("vain", minutes=30, started_at=at(29), verdict=Verdict.INCONCLUSIVE))
    assert await ids() == {"vain", "r1", "within", "into"}
    await ledger.add_report(report_of("clean", minutes=32, started_at=at(31), verdict=Verdict.CLEAN))
    assert await ids() == {"clean"}


async def test_drifts_are_counted_whatever_their_clocks_say(
    ledger: SqlLedger, orders: MigrationRecord, make_spec: Callable[..., ClusterSpec]
) -> None:
    await ledger.put_cluster(make_spec("payments", "kafka-2"), NOW)
    assert await ledger.drifts_found("orders", CheckName.METADATA) == 0
    for number, fields in enumerate(
        ({}, {"minutes": -60}, {"verdict": Verdict.CLEAN}, {"verdict": Verdict.INCONCLUSIVE}, {"check": CheckName.COPY})
    ):
        await ledger.add_report(report_of(f"r{number}", **fields))
    await ledger.add_report(report_of("other", cluster="payments"))
    assert await ledger.drifts_found("orders", CheckName.METADATA) == 2


async def test_a_list_is_of_a_cluster_or_a_migration_newest_first(
    ledger: SqlLedger, orders: MigrationRecord, make_spec: Callable[..., ClusterSpec]
) -> None:
    await ledger.put_cluster(make_spec("payments", "kafka-2"), NOW)
    for report in (
        report_of("r1", minutes=1, migration_id=orders.id),
        report_of("r2", minutes=3),
        report_of("r3", minutes=2, cluster="payments"),
    ):
        await ledger.add_report(report)
    assert [r.id for r in await ledger.reports()] == ["r2", "r3", "r1"]
    assert [r.id for r in await ledger.reports(cluster="orders")] == ["r2", "r1"]
    assert [r.id for r in await ledger.reports(migration_id=orders.id)] == ["r1"]
    assert [r.id for r in await ledger.reports(content_hash="hash of r3")] == ["r3"]
    assert await ledger.reports(cluster="orders", content_hash="hash of r3") == []


async def test_pages_have_each_report_once_whatever_is_published_between(ledger: SqlLedger, orders: MigrationRecord) -> None:
    """Three ended at the same moment: the page ends among them."""
    for report_id, minutes in (("a", 1), ("b", 2), ("c", 2), ("d", 2), ("e", 3)):
        await ledger.add_report(report_of(report_id, minutes))
    first = await ledger.reports(cluster="orders", limit=2)
    await ledger.add_report(report_of("f", 4))
    second = await ledger.reports(cluster="orders", limit=2, before=first[-1].id)
    third = await ledger.reports(cluster="orders", limit=2, before=second[-1].id)
    assert [r.id for r in (*first, *second, *third)] == ["e", "d", "c", "b", "a"]
    assert await ledger.reports(before="a report that is not there") == []
