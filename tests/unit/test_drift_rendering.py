"""Reports as people read them: the same words in a terminal and in a browser, nothing secret, nothing that a value can break.

`python tests/unit/test_drift_rendering.py` writes the golden pages anew: look at the diff.
"""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from domain.drift.explaining import DUPLICATE_RULE, explanation_of, verdict_in_words
from domain.drift.messages import SEVERITY as MESSAGE_SEVERITY
from domain.drift.messages import MessageRule
from domain.drift.records import KINDS, Severity
from domain.drift.rendering import EXPLAINED, REDACTED, as_html, as_text
from domain.drift.report import CheckName, Cut, DriftFinding, DriftReport, FindingKind, RecordCounts, Verdict

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 3, 1, 3, 0, 7, tzinfo=UTC)
SECRET = "3d5f2a9c41"
NASTY = '<script>alert(1)</script>\n\x1b[2J\u202egnp.\ud800 & "quotes"'


ASKS_FOR_A_BACKUP = {
    MessageRule.END,
    MessageRule.START,
    MessageRule.MISSING,
    MessageRule.UNREADABLE,
    MessageRule.BATCH,
    MessageRule.CHECKSUM,
}


def finding_of(**fields: Any) -> DriftFinding:
    given: dict[str, Any] = {
        "record": "topic-config",
        "finding": FindingKind.DIFFERS,
        "severity": Severity.BLOCK,
        "rule": "exact",
        "key": "orders/retention.ms",
        "field": "value",
        "left": "86400000",
        "right": "604800000",
        "left_at": "/config/topics/orders mzxid 0x1000002ff",
        "right_at": "00000000000000000000.log at byte 8123, offset 812",
    }
    return DriftFinding.model_validate(given | fields)


MISSING = finding_of(
    record="acl",
    finding="missing_right",
    rule="",
    key="Topic/orders/LITERAL/User:ann/*/READ/ALLOW",
    field="",
    left=None,
    right=None,
    left_at="/kafka-acl/Topic/orders mzxid 0x4d",
    right_at="",
)
SALTED = finding_of(
    record="scram", rule="digest", key="ann/SCRAM-SHA-256", field="salt", is_redacted=True, left=SECRET, right=None
)
UNKNOWN = finding_of(record="broker-config", finding="unverifiable", rule="digest", key="1/ssl.key.password", field="digest")
TOLERATED = finding_of(finding="tolerated", key="audit/retention.ms", tolerated_by="Ada: set by hand, goes with the topic")


def report_of(**fields: Any) -> DriftReport:
    given: dict[str, Any] = {
        "id": "01a1f903-3505-72c4-97b0-3c79d6c47662",
        "cluster": "orders",
        "migration_id": "01a1f902-0000-7000-8000-000000000000",
        "check": CheckName.METADATA,
        "verdict": Verdict.DRIFT,
        "started_at": NOW - timedelta(seconds=2.25),
        "ended_at": NOW,
        "cut": Cut(migration_offset=812, high_watermark=840, claim="3001@5", looks=2),
        "counts": {
            "topic": RecordCounts(left=7, right=7, equal=7),
            "topic-config": RecordCounts(left=12, right=12, equal=10, differs=1, tolerated=1),
            "acl": RecordCounts(left=4, right=3, equal=3, missing_right=1),
            "scram": RecordCounts(left=1, right=1, differs=1),
            "broker-config": RecordCounts(left=1, right=1, unverifiable=1),
        },
        "first": (finding_of(), MISSING, SALTED, UNKNOWN, TOLERATED),
        "not_read": ("the log of controller-3002: it does not answer",),
        "tolerated": ("topic-config audit/retention.ms: Ada: set by hand, goes with the topic",),
        "rules_fingerprint": "f" * 64,
        "content_hash": "c" * 64,
        "findings": "a" * 64,
        "engine": "local",
    }
    return DriftReport.model_validate(given | fields)


CLEAN = report_of(
    verdict="clean", first=(), not_read=(), tolerated=(), counts={"topic": RecordCounts(left=7, right=7, equal=7)}
)


class Words(HTMLParser):
    """What a browser shows, and every tag on the way."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.shown: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.shown += data.split()


def pages() -> dict[str, str]:
    report = report_of()
    return {"drift-report.txt": as_text(report), "drift-report.html": as_html(report), "clean-report.txt": as_text(CLEAN)}


@pytest.mark.parametrize("name", pages())
def test_a_page_is_as_it_was_when_somebody_looked_at_it(name: str) -> None:
    assert (GOLDEN / name).read_text(encoding="utf-8") == pages()[name], f"python {Path(__file__).name}"


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("check", CheckName)
def test_both_pages_say_the_same(check: CheckName, verdict: Verdict) -> None:
    report = report_of(check=check, verdict=verdict)
    page = Words(as_html(report))
    assert not page.open
    said = set(re.findall(r"[A-Za-z0-9.-]{4,}", as_text(report))) - {"Means", "DRIFT", "CLEAN", "INCONCLUSIVE", "Report"}
    shown = " ".join(page.shown)
    missing = {word for word in said if word not in shown and word.replace("_", " ") not in shown}
    assert missing == set()


def test_what_was_kept_is_told_in_plain_words_and_what_there_is_none_of_is_not() -> None:
    many = {"batch": RecordCounts(left=51_253), "of tomorrow": RecordCounts(left=2)}
    counts = {"token": RecordCounts(), "acl": RecordCounts(left=1), **many}
    kept = report_of(check=CheckName.BASELINE, verdict="clean", first=(), not_read=(), counts=counts)
    assert verdict_in_words(kept) == "Kept: 1 ACL, 51,253 record batches, 2 of tomorrow."
    assert "nothing" in verdict_in_words(kept.model_copy(update={"counts": {}}))


def test_columns_are_called_by_what_is_compared_and_stay_below_their_heads() -> None:
    counts = {"batch": RecordCounts(left=1_000_000, right=1_000_001, equal=1_000_000, missing_left=1)}
    head, row = (
        line
        for line in as_text(report_of(check=CheckName.MESSAGES, counts=counts)).splitlines()
        if line.startswith(("  kind", "  batch"))
    )
    assert re.split(r"\s{2,}", head.strip()) == [
        *("kind", "before", "now", "equal", "only now", "only before", "differs", "tolerated", "unverifiable")
    ]
    assert len(head) == len(row)
    kept = as_text(report_of(check=CheckName.BASELINE, counts={"batch": RecordCounts(left=3)}))
    assert "\n  kind   before\n  batch       3\n" in kept


def test_what_is_redacted_is_never_shown_whatever_a_finding_holds() -> None:
    report = report_of(first=(SALTED, finding_of(left=SECRET, right=SECRET, is_redacted=True)))
    for page in (as_text(report), as_html(report)):
        assert SECRET not in page
        assert page.count(REDACTED) == 3


def test_what_is_none_is_told_from_what_is_empty_and_from_what_is_missing() -> None:
    """An empty digest says that it is no secret, which is no secret either."""
    text = as_text(
        report_of(first=(finding_of(left="", right=SECRET, is_redacted=True), finding_of(left=None, right=""), MISSING))
    )
    values = re.findall(r"^   (?:ZooKeeper|KRaft): +(\(\w+\))", text, re.MULTILINE)
    assert values == ["(empty)", REDACTED, "(none)", "(empty)", "(there)", "(missing)"]


def test_a_key_that_is_there_twice_asks_for_no_repair() -> None:
    explained = explanation_of(finding_of(rule=DUPLICATE_RULE), CheckName.METADATA)
    assert "more than once" in explained.means


def test_what_was_made_between_the_two_looks_at_the_copy_asks_for_nothing() -> None:
    made = explanation_of(finding_of(finding=FindingKind.MISSING_LEFT), CheckName.COPY)
    assert made.advice == "Nothing."
    assert "roll back" in explanation_of(finding_of(finding=FindingKind.MISSING_RIGHT), CheckName.COPY).advice


def test_of_a_compacted_topic_nobody_is_asked_to_make_anything_readable() -> None:
    finding = finding_of(finding=FindingKind.UNVERIFIABLE, severity=Severity.INFO, rule=MessageRule.COMPACTED)
    explained = explanation_of(finding, CheckName.MESSAGES)
    assert "cleaner" in explained.means
    assert explained.advice == "Nothing."


@pytest.mark.parametrize("rule", MessageRule)
def test_what_clients_do_themselves_is_not_called_a_loss(rule: MessageRule) -> None:
    kind = FindingKind.UNVERIFIABLE if MESSAGE_SEVERITY[rule] is Severity.INFO else FindingKind.DIFFERS
    explained = explanation_of(finding_of(finding=kind, rule=rule), CheckName.MESSAGES)
    assert ("restore" in explained.advice) == (rule in ASKS_FOR_A_BACKUP)


def test_what_others_wrote_is_neither_markup_nor_a_command_to_a_terminal() -> None:
    nasty = finding_of(record=NASTY, key=NASTY, field=NASTY, left=NASTY, right=NASTY, left_at=NASTY, rule=NASTY, right_at=NASTY)
    tolerated = finding_of(finding="tolerated", tolerated_by=NASTY)
    report = report_of(
        **dict.fromkeys(("id", "cluster", "migration_id", "engine", "content_hash", "rules_fingerprint", "findings"), NASTY),
        first=(nasty, tolerated),
        not_read=(NASTY,),
        tolerated=(NASTY,),
        cut=Cut(high_watermark=1, claim=NASTY),
        counts={NASTY: RecordCounts()},
    )
    text, plain = as_text(report), as_text(report_of(first=(nasty, tolerated), counts={"topic": RecordCounts()}))
    assert text.isprintable() or set(re.findall(r"[^\x20-\x7e…]", text)) == {"\n"}
    assert text.count("\n") == plain.count("\n"), "no value begins a line"
    html = as_html(report)
    html.encode()
    known = Words(as_html(report_of()))
    page = Words(html)
    assert page.tags <= known.tags
    assert page.attributes <= known.attributes


def test_a_huge_value_has_an_end() -> None:
    text = as_text(report_of(first=(finding_of(left="x" * 100_000),)))
    assert len(text) < 5000
    assert "… (100000 characters)" in text


def test_a_page_explains_the_first_and_says_how_many_there_are() -> None:
    first = tuple(finding_of(key=f"t{n}") for n in range(EXPLAINED + 5))
    report = report_of(first=first, counts={"topic-config": RecordCounts(differs=700)})
    text = as_text(report)
    assert f"What was found: the first {EXPLAINED} of 700" in text
    assert f"\n{EXPLAINED}. " in text
    assert f"\n{EXPLAINED + 1}. " not in text
    assert as_html(report).count("<article>") == EXPLAINED


@pytest.mark.parametrize("record", KINDS)
@pytest.mark.parametrize("found", FindingKind)
def test_every_finding_of_every_kind_is_explained(record: str, found: FindingKind) -> None:
    explained = explanation_of(finding_of(record=record, finding=found), CheckName.METADATA)
    assert explained.means.endswith(".")
    assert explained.advice.endswith(".")


def test_a_row_that_one_side_lacks_and_one_that_differs_ask_for_different_things() -> None:
    kinds = (FindingKind.MISSING_LEFT, FindingKind.MISSING_RIGHT, FindingKind.DIFFERS)
    assert len({explanation_of(finding_of(finding=kind), CheckName.METADATA) for kind in kinds}) == 3
    assert "kafka-acls.sh" in explanation_of(MISSING, CheckName.METADATA).advice


if __name__ == "__main__":
    for golden, content in pages().items():
        (GOLDEN / golden).write_text(content, encoding="utf-8")
