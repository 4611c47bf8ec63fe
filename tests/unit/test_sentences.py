"""Events as sentences: every kind that is written anywhere, also with data that is missing."""

import ast
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from domain.records import Event
from domain.sentences import SENTENCES, UNTOLD, sentence_of

ROOT = Path(__file__).parents[2]


def event(kind: str, **data: Any) -> Event:
    at = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
    return Event(seq=1, key="k", kind=kind, cluster="c", migration_id="m", at=at, data=data, prev_hash="", hash="")


def kinds_told() -> set[str]:
    """Every literal first argument of `tell(…)` in the workflows."""
    calls = [
        node
        for path in (ROOT / "workflows").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tell"
    ]
    return {str(call.args[0].value) for call in calls if call.args and isinstance(call.args[0], ast.Constant)}


def test_every_kind_that_a_workflow_tells_has_a_sentence() -> None:
    told = kinds_told()
    assert len(told) > 10
    assert told <= SENTENCES.keys()


def test_a_step_is_told_with_its_node_and_its_stage() -> None:
    data = {
        "action": "roll-node",
        "node": "broker-1",
        "does": "Restart broker-1 into stage kraft",
        "seconds": 6.2,
        "attempt": 2,
    }
    assert sentence_of(event("step-started", **data)) == "Restart broker-1 into stage kraft."
    assert sentence_of(event("step-done", **data)) == "Done: Restart broker-1 into stage kraft (6.2 s, attempt 2)."


def test_a_comparison_is_told_with_its_verdict() -> None:
    told = sentence_of(event("step-done", action="compare", node="cluster", does="Compare all", verdict="drift", why="1 row."))
    assert told == "Done: Compare all. Verdict: drift. 1 row."


def test_a_call_that_another_event_repeats_has_no_sentence() -> None:
    assert [sentence_of(event(kind)) for kind in UNTOLD] == [None] * len(UNTOLD)


@pytest.mark.parametrize("kind", sorted(SENTENCES))
def test_data_that_is_missing_breaks_no_sentence(kind: str) -> None:
    assert sentence_of(event(kind, by=None))


def test_what_has_no_words_yet_is_its_own_name() -> None:
    assert sentence_of(event("moon-rises")) == "Moon rises."
    assert sentence_of(event("step-started", action="paint", node="broker-1")) == "paint broker-1."


def test_braces_that_somebody_wrote_are_text() -> None:
    assert sentence_of(event("held", by="ada", reason="{by} {0} {x.y}")) == "ada holds the migration: {by} {0} {x.y}"
