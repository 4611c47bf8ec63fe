"""A migration's reports: in every form, page by page, bound to a gate, and never with what is redacted."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyarrow import parquet

from activities.adapters.artefacts import DirectoryArtefacts
from api.answers.negotiation import preferred
from domain.drift.hashing import content_hash, rules_fingerprint
from domain.drift.records import Severity
from domain.drift.rendering import as_html, as_text
from domain.drift.report import CheckName, DriftFinding, DriftReport, FindingKind, RecordCounts, Verdict
from domain.records import MigrationRecord, MigrationState, OpenGate, Progress
from domain.zk_to_kraft.steps import GateName
from spark.findings import FINDINGS_SCHEMA

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
SECRET = "hunter2"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def finding_of(key: str, **fields: Any) -> DriftFinding:
    given: dict[str, Any] = {
        "record": "topic-config",
        "finding": FindingKind.DIFFERS,
        "severity": Severity.BLOCK,
        "rule": "exact",
        "key": key,
        "field": "value",
        "left": "1",
        "right": "<b>2</b>",
    }
    return DriftFinding.model_validate(given | fields)


HIDDEN = finding_of("ann SCRAM-SHA-256", record="scram", field="salt", rule="digest", left=SECRET, right=None, is_redacted=True)
ROWS = [
    finding_of("orders", record="acl", finding="missing_left", field="", left=None, right=None),
    HIDDEN,
    *(finding_of(f"topic-{n} x") for n in range(7)),
    finding_of("topic-9 x", finding="tolerated", tolerated_by="Ada"),
]


def report_of(record: MigrationRecord, report_id: str = "r1", minutes: float = 0, **fields: Any) -> DriftReport:
    given: dict[str, Any] = {
        "id": report_id,
        "cluster": record.cluster,
        "migration_id": record.id,
        "check": CheckName.METADATA,
        "verdict": Verdict.DRIFT,
        "started_at": NOW,
        "ended_at": NOW + timedelta(minutes=minutes),
        "counts": {"topic-config": RecordCounts(left=9, right=9, equal=2, differs=7)},
        "first": tuple(ROWS[:3]),
        "rules_fingerprint": rules_fingerprint(),
        "content_hash": content_hash(CheckName.METADATA, Verdict.DRIFT, {}, ROWS, (), rules_fingerprint()),
    }
    return DriftReport.model_validate(given | fields)


def as_parquet(rows: list[DriftFinding], rows_in_a_group: int = 3) -> bytes:
    """As the engine writes it, but in small groups, so that pages cross them."""
    table = pa.Table.from_pylist([row.model_dump(mode="json") for row in rows], FINDINGS_SCHEMA)
    parquet.write_table(table, sink := io.BytesIO(), row_group_size=rows_in_a_group)
    return sink.getvalue()


@pytest.fixture
async def record(api: Any, make_migration: Callable[..., MigrationRecord]) -> MigrationRecord:
    """A migration without a run: reports ask nothing of it."""
    migration = make_migration(await api.registered())
    await api.wiring.ledger.create_migration(migration)
    return migration


@pytest.fixture
async def artefacts(api: Any) -> DirectoryArtefacts:
    return DirectoryArtefacts(api.wiring.settings.artefacts)


@pytest.fixture
async def published(api: Any, record: MigrationRecord, artefacts: DirectoryArtefacts) -> DriftReport:
    """A report with all its rows."""
    report: DriftReport = await api.wiring.ledger.add_report(report_of(record, findings=await artefacts.put(as_parquet(ROWS))))
    return report


def url_of(report: DriftReport) -> str:
    return f"/migrations/{report.migration_id}/reports/{report.id}"


# ---- Lists and single reads ----


async def test_reports_are_listed_newest_first_page_by_page(api: Any, record: MigrationRecord) -> None:
    for number in range(5):
        await api.wiring.ledger.add_report(report_of(record, f"r{number}", minutes=number))
    await api.wiring.ledger.add_report(report_of(record, "of-no-migration", migration_id=None))
    seen, cursor = [], None
    for size in (2, 2, 1):
        asked = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = (await api.http.get(f"/migrations/{record.id}/reports", params=asked)).json()
        assert len(page["items"]) == size
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert (seen, cursor) == (["r4", "r3", "r2", "r1", "r0"], None)


async def test_a_report_is_the_same_in_a_list_and_alone(api: Any, published: DriftReport) -> None:
    single = (await api.http.get(url_of(published))).json()
    listed = (await api.http.get(f"/migrations/{published.migration_id}/reports")).json()
    assert listed == {"items": [single], "next_cursor": None}
    assert DriftReport.model_validate(single | {"first": ()}) == published.model_copy(update={"first": ()})
    assert single["says"].endswith("disagree: 7 differences.")
    assert single["links"]["self"] == url_of(published)
    assert (await api.http.get(single["links"]["findings"])).status_code == 200
    migration = (await api.http.get(single["links"]["migration"])).json()
    assert (await api.http.get(migration["links"]["reports"])).json() == listed


async def test_what_is_not_there_or_of_another_migration_is_not_found(
    api: Any, published: DriftReport, make_migration: Any, expect_problem: Expect
) -> None:
    other = make_migration(await api.registered())
    await api.wiring.ledger.create_migration(other)
    for path in ("/nobody", f"/{published.id}", f"/{published.id}/findings"):
        expect_problem(await api.http.get(f"/migrations/{other.id}/reports{path}"), 404, "report-not-found")
    unknown = make_migration(await api.registered())
    expect_problem(await api.http.get(f"/migrations/{unknown.id}/reports"), 404, "migration-not-found")
    expect_problem(await api.http.get(f"/migrations/{other.id}/reports/a%00b"), 422, "invalid-request")


def test_the_engine_writes_every_field_of_a_finding() -> None:
    """`from_pylist` would pass over one that its schema lacks."""
    assert set(FINDINGS_SCHEMA.names) == set(DriftFinding.model_fields)


# ---- Forms ----


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("text/plain", "text/plain; charset=utf-8"),
        ("text/*;q=0.5", "text/plain; charset=utf-8"),
        (BROWSER, "text/html; charset=utf-8"),
        ("application/json, text/plain, */*", "application/json"),
        ("text/plain;q=0.4, text/html;q=0.6", "text/html; charset=utf-8"),
    ],
)
async def test_a_report_comes_in_the_form_that_is_asked_for(
    api: Any, published: DriftReport, accept: str | None, media_type: str
) -> None:
    answer = await api.http.get(url_of(published), headers={} if accept is None else {"accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    assert answer.headers["vary"] == "Accept"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    if media_type != "application/json":
        assert answer.text == (as_html(published) if "html" in media_type else as_text(published))


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("image/png", "a/b"),
        ("", "a/b"),
        ("c/d", "c/d"),
        ("a/b;q=0, */*", "c/d"),
        ("a/b;q=nan, c/d;q=0.1", "c/d"),
        ("a/b;q=9", "a/b"),
        ("c/d, */*", "c/d"),
        ("c/*, */*", "c/d"),
        ("c/d, a/b", "a/b"),
    ],
)
def test_a_header_that_nobody_expects_has_an_answer_too(accept: str, form: str) -> None:
    assert preferred(accept, ("a/b", "c/d")) == form


# ---- Findings ----


async def all_pages(api: Any, report: DriftReport, limit: int, **wanted: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    for _ in range(len(ROWS) + 1):
        answer = await api.http.get(f"{url_of(report)}/findings", params={"limit": str(limit)} | wanted | cursor)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["items"]) <= limit
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        assert len(page["items"]) == limit, "only the last page is short"
        cursor = {"cursor": page["next_cursor"]}
    raise AssertionError("pages without an end")


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9, 10, 11, 1000])
async def test_pages_have_every_finding_once_in_order(api: Any, published: DriftReport, limit: int) -> None:
    items = await all_pages(api, published, limit)
    assert [item["key"] for item in items] == [row.key for row in ROWS]
    assert items[0]["to_do"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"record": "topic-config"}, 8),
        ({"record": "topic-config", "finding": "differs"}, 7),
        ({"finding": "tolerated"}, 1),
        ({"record": "quota"}, 0),
        ({"finding": "missing_left"}, 1),
    ],
)
async def test_pages_of_one_kind_skip_all_others(
    api: Any, published: DriftReport, limit: int, wanted: dict[str, str], count: int
) -> None:
    items = await all_pages(api, published, limit, **wanted)
    assert len({item["key"] for item in items}) == len(items) == count
    assert all(item[name] == value for item in items for name, value in wanted.items())


async def test_a_report_without_rows_has_the_findings_of_its_summary(api: Any, record: MigrationRecord) -> None:
    report = await api.wiring.ledger.add_report(report_of(record))
    assert [item["key"] for item in await all_pages(api, report, 2)] == [row.key for row in ROWS[:3]]
    assert [item["key"] for item in await all_pages(api, report, 1, record="scram")] == [HIDDEN.key]


async def test_a_report_that_found_nothing_has_an_empty_page(
    api: Any, record: MigrationRecord, artefacts: DirectoryArtefacts
) -> None:
    table = parquet.read_table(io.BytesIO(as_parquet(ROWS))).slice(0, 0)
    parquet.write_table(table, sink := io.BytesIO())
    stored = report_of(record, verdict="clean", first=(), findings=await artefacts.put(sink.getvalue()))
    assert await all_pages(api, await api.wiring.ledger.add_report(stored), 10) == []


async def test_a_wish_that_makes_no_sense_is_refused(api: Any, published: DriftReport, expect_problem: Expect) -> None:
    for wish in ("limit=0", "limit=1001", "cursor=-1", "cursor=x", "finding=hunter2"):
        answer = await api.http.get(f"{url_of(published)}/findings?{wish}")
        expect_problem(answer, 422, "invalid-request")
        assert "hunter2" not in answer.text
    assert (await api.http.get(f"{url_of(published)}/findings?cursor=999")).json() == {"items": [], "next_cursor": None}


async def test_without_the_store_the_report_stands_and_its_rows_are_away(
    api: Any, published: DriftReport, expect_problem: Expect
) -> None:
    with away(api.wiring.settings.artefacts):
        problem = expect_problem(await api.http.get(f"{url_of(published)}/findings"), 503, "artefacts-unavailable")
        assert str(published.findings) in problem["detail"]
        assert (await api.http.get(url_of(published))).status_code == 200
    assert (await api.http.get(f"{url_of(published)}/findings")).status_code == 200
    damage(api.wiring.settings.artefacts)
    expect_problem(await api.http.get(f"{url_of(published)}/findings"), 503, "artefacts-unavailable")


@contextmanager
def away(store: Path) -> Iterator[None]:
    elsewhere = store.rename(store.with_name("elsewhere"))
    yield
    elsewhere.rename(store)


def damage(store: Path) -> None:
    (path,) = store.glob("*/*")
    path.write_bytes(b"something else")


# ---- Secrets ----


async def test_what_is_redacted_is_in_no_answer(api: Any, published: DriftReport) -> None:
    """Findings come redacted from where they are made. Should one not be, it still says which field, and not what is in it."""
    for path in ("", "/findings", "/findings?record=scram"):
        for accept in ("application/json", "text/plain", "text/html"):
            answer = await api.http.get(url_of(published) + path, headers={"accept": accept})
            assert answer.status_code == 200
            assert SECRET not in answer.text
            assert "(redacted)" in answer.text
    assert SECRET not in (await api.http.get(f"/migrations/{published.migration_id}/reports")).text
    assert SECRET not in (await api.http.get(f"/clusters/{published.cluster}/checks")).text


# ---- The gate, and events ----


async def at_gate(api: Any, record: MigrationRecord, evidence: dict[str, Any]) -> dict[str, Any]:
    """The migration's answer, while it waits at `finalize` on this evidence."""
    gate = OpenGate(name=GateName.FINALIZE, evidence_hash="e" * 64, since=NOW, evidence=evidence)
    await api.wiring.ledger.record(record.id, [], Progress(state=MigrationState.WAITING, gate=gate))
    answer: dict[str, Any] = (await api.http.get(f"/migrations/{record.id}")).json()
    assert answer in (await api.http.get(f"/migrations?cluster={record.cluster}")).json()["items"]
    return answer


async def test_a_gate_links_all_reports_of_its_evidence(api: Any, record: MigrationRecord) -> None:
    """Each is the newest that says what the evidence names."""
    for report_id, said in (("r1", "a"), ("r2", "b"), ("r3", "b"), ("r4", "c"), ("r5", "d")):
        check = {"c": CheckName.COPY, "d": CheckName.MESSAGES}.get(said, CheckName.METADATA)
        report = report_of(record, report_id, minutes=int(report_id[1]), content_hash=said)
        await api.wiring.ledger.add_report(report.model_copy(update={"check": check}))
    evidence = {"report": {"content_hash": "b"}, "copy": {"content_hash": "c"}, "messages": {"content_hash": "d"}}
    (gate,) = (await at_gate(api, record, evidence))["gates"]
    url = f"/migrations/{record.id}/reports"
    assert {one["check"]: one["url"] for one in gate["reports"]} == {
        CheckName.METADATA: f"{url}/r3",
        CheckName.COPY: f"{url}/r4",
        CheckName.MESSAGES: f"{url}/r5",
    }
    for one, named in zip(gate["reports"], evidence.values(), strict=True):
        read = (await api.http.get(one["url"])).json()
        assert (read["content_hash"], read["verdict"]) == (named["content_hash"], one["verdict"])


@pytest.mark.parametrize("evidence", [{}, {"report": "none of this dual write"}, {"report": {"content_hash": "of no report"}}])
async def test_a_gate_without_a_report_says_so(api: Any, record: MigrationRecord, evidence: dict[str, Any]) -> None:
    (gate,) = (await at_gate(api, record, evidence))["gates"]
    assert gate["reports"] == []
    assert gate["evidence"] == evidence


async def test_a_report_is_an_event_of_its_migration(api: Any, published: DriftReport) -> None:
    (event,) = (await api.http.get(f"/migrations/{published.migration_id}/events")).json()["items"]
    assert event["kind"] == "report-published"
    assert event["data"]["report_id"] == published.id
    assert (event["data"]["verdict"], event["data"]["content_hash"]) == ("drift", published.content_hash)
