"""Hashes of reports and rules: what changes them, and what must not."""

from dataclasses import replace
from typing import Any

import pytest

from domain.drift.hashing import content_hash, rules_fingerprint
from domain.drift.records import KINDS, Severity
from domain.drift.report import CheckName, DriftFinding, FindingKind, RecordCounts, Verdict

RULES = rules_fingerprint()
DIFFERENCE = DriftFinding(
    record="topic-config",
    finding=FindingKind.DIFFERS,
    severity=Severity.BLOCK,
    rule="exact",
    key="orders retention.ms",
    field="value",
    left="1",
    right="2",
    left_at="/config/topics/orders at 7",
    right_at="00000000000000000000.log at byte 10, offset 12",
)
TOLERATED = DIFFERENCE.model_copy(update={"finding": FindingKind.TOLERATED, "tolerated_by": "Ada: a test of ours"})
OTHER = DIFFERENCE.model_copy(update={"key": "payments retention.ms"})


def hash_of(**changed: Any) -> str:
    told: dict[str, Any] = {
        "check": CheckName.METADATA,
        "verdict": Verdict.DRIFT,
        "counts": {"topic": RecordCounts(left=3, right=3, equal=3), "topic-config": RecordCounts(differs=2)},
        "findings": [DIFFERENCE, OTHER],
        "not_read": ["the log of broker-2"],
        "rules": RULES,
    }
    return content_hash(**{**told, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"check": CheckName.COPY},
        {"verdict": Verdict.INCONCLUSIVE},
        {"counts": {"topic": RecordCounts(), "topic-config": RecordCounts(differs=3)}},
        {"counts": {"topic": RecordCounts(), "topic-config": RecordCounts(differs=2, tolerated=1)}},
        {"counts": {"topic-config": RecordCounts(differs=2)}},
        {"findings": [DIFFERENCE]},
        {"findings": [DIFFERENCE, OTHER.model_copy(update={"right": "3"})]},
        {"findings": [DIFFERENCE, OTHER.model_copy(update={"right": None})]},
        {"findings": [DIFFERENCE, OTHER, OTHER]},
        {"not_read": []},
        {"rules": "other rules"},
    ],
    ids=lambda changed: " ".join(changed),
)
def test_what_is_material_changes_a_reports_hash(changed: dict[str, Any]) -> None:
    assert hash_of(**changed) != hash_of()


@pytest.mark.parametrize(
    "changed",
    [
        {"counts": {"topic": RecordCounts(left=9, right=8, equal=7), "topic-config": RecordCounts(differs=2)}},
        {"findings": [OTHER, DIFFERENCE]},
        {"findings": iter([OTHER, DIFFERENCE])},
        {"findings": [DIFFERENCE, OTHER.model_copy(update={"left_at": "elsewhere", "right_at": "later"})]},
        {"findings": [TOLERATED, DIFFERENCE, OTHER]},
        {"not_read": ["the log of broker-2", "the log of broker-2"]},
    ],
)
def test_what_moves_without_a_difference_leaves_the_hash_alone(changed: dict[str, Any]) -> None:
    assert hash_of(**changed) == hash_of()


def test_a_name_that_is_no_valid_unicode_has_a_hash_too() -> None:
    assert hash_of(findings=[OTHER.model_copy(update={"key": "\ud800"})]) != hash_of(findings=[OTHER])


def test_the_rules_are_those_of_the_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A severity that somebody softens is another set of rules: approvals of before do not carry over."""
    acl = KINDS["acl"]
    monkeypatch.setitem(KINDS, "acl", replace(acl, znode="elsewhere"))
    assert rules_fingerprint() == RULES
    monkeypatch.setitem(KINDS, "acl", replace(acl, missing=Severity.WARN))
    assert rules_fingerprint() != RULES
