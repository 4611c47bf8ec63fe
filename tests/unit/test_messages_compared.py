"""Messages, before and after: nothing lawful is a finding, and nothing lost is missed, on generated clusters."""

import random
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.drift.message_manifest import MessageComparison
from domain.drift.messages import (
    SEVERITY,
    MessageRule,
    ReplicaLog,
    Sight,
    Span,
    judge,
    rules_fingerprint,
)
from domain.drift.report import CheckResult, DriftFinding, FindingKind, Verdict
from domain.drift.tolerations import Toleration
from domain.offsets import PartitionOffsets
from spark.comparing.messages import compare_batches, span_table
from spark.engine.messages import run
from spark.findings import as_models
from tests.unit.message_cases import LOSSES, TOPIC_ID, Look, Story, expected_batches, looks, rows_of, stories

RELAXED = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def result_of(story: Story, **changes: object) -> CheckResult:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        before, after = ((look.write(root / f"{n}.parquet"),) for n, look in enumerate((story.before, story.after)))
        job = MessageComparison("check", story.before.sight(), story.after.sight(), before, after, root / "out")
        return run(replace(job, **changes))


def drifts(findings: tuple[DriftFinding, ...]) -> set[tuple[str, str, str, str, str]]:
    kinds = {FindingKind.MISSING_LEFT, FindingKind.MISSING_RIGHT, FindingKind.DIFFERS}
    return {(one.record, str(one.finding), str(one.severity), one.rule, one.key) for one in findings if one.finding in kinds}


@RELAXED
@given(stories())
def test_what_is_lawful_is_no_finding(story: Story) -> None:
    result = result_of(story)
    assert drifts(result.first) == set()
    assert result.verdict is Verdict.CLEAN
    assert {one.rule for one in result.first} <= {MessageRule.COMPACTED, MessageRule.REMOVED}
    for counts in result.counts.values():
        assert counts.equal <= counts.left
    assert result.counts["batch"].equal == result.counts["batch"].left == result.counts["batch"].right
    partitions = result.counts["partition-log"]
    compacted = {one.key for one in result.first if one.rule is MessageRule.COMPACTED}
    of_compacted = sum(one.topic in compacted for one in story.before.partitions.values())
    assert partitions.equal == partitions.left, of_compacted


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_every_loss_is_found_and_named_and_nothing_else(loss: object) -> None:
    met: list[bool] = []

    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(stories((loss,)))
    def holds(story: Story) -> None:
        result = result_of(story)
        assert drifts(result.first) == story.expected
        told = {one.rule for one in result.first if one.finding is FindingKind.UNVERIFIABLE}
        assert told <= {MessageRule.COMPACTED, MessageRule.REMOVED}
        assert result.verdict is (Verdict.DRIFT if story.expected else Verdict.CLEAN)
        met.append(bool(story.expected))

    holds()
    assert any(met), "the loss never happened"


@RELAXED
@given(looks(), st.randoms(use_true_random=False), st.integers(0, 12))
def test_batches_are_compared_as_a_brute_force_does(look: Look, chance: random.Random, changes: int) -> None:
    after = look.copy()
    for _ in range(changes):
        _change_anything(after, chance)
    spans = [Span(*key, chance.randint(0, 60), chance.randint(40, 120)) for key in look.replicas if chance.random() < 0.8]
    found = compare_batches(look.table(), after.table(), span_table(spans))
    told = {(one.key, str(one.finding), one.field) for one in as_models(found.findings)}
    expected = expected_batches(look.batches, after.batches, spans)
    assert told == expected
    assert found.findings.num_rows == len(told)
    keys = {(row["topic"], row["partition"], row["broker"], row["base_offset"]) for row in look.batches + after.batches}
    assert found.equal <= len(keys)


def test_what_was_removed_from_the_beginning_is_told_by_topic_and_is_no_drift() -> None:
    """As where somebody has set a short retention for a while; a compacted topic is told as such."""
    before = [
        PartitionOffsets(topic, TOPIC_ID, n, 10, 100, topic == "kept") for topic in ("orders", "kept", "whole") for n in (0, 1)
    ]
    starts = {("orders", 0): 100, ("orders", 1): 40, ("kept", 0): 50}
    after = [replace(one, start=starts.get((one.topic, one.partition), 10), end=120) for one in before]
    told = {
        (one.rule, one.key, one.left, one.right, one.severity)
        for one in judge(Sight(tuple(before)), Sight(tuple(after))).findings
    }
    assert told == {("removed", "orders", "180", "60", "info"), ("compacted", "kept", None, None, "info")}


def _change_anything(look: Look, chance: random.Random) -> None:
    if not look.batches:
        return
    row = chance.choice(look.batches)
    match chance.choice(["drop", "move", "crc", "count", "size", "last_offset", "is_damaged", "add"]):
        case "drop":
            look.batches.remove(row)
        case "move":
            taken = {(one["topic"], one["partition"], one["broker"], one["base_offset"]) for one in look.batches}
            if (row["topic"], row["partition"], row["broker"], row["base_offset"] + 1) not in taken:
                row["base_offset"] += 1
        case "add":
            free = 1 + max(1000, *(one["base_offset"] for one in look.batches))
            look.batches.append({**row, "base_offset": free, "last_offset": row["last_offset"]})
        case "is_damaged":
            row["is_damaged"] = True
        case name:
            row[name] += 1


def one_partition(**changes: object) -> tuple[PartitionOffsets, ReplicaLog]:
    partition = PartitionOffsets("orders", TOPIC_ID, 0, 0, 20, False)
    return partition, replace(ReplicaLog("orders", TOPIC_ID, 0, 1, 0, 20, 0, 20), **changes)


def test_a_broker_that_cannot_look_is_named_and_is_no_drift() -> None:
    partition, log = one_partition()
    judged = judge(Sight((partition,), (log,)), Sight((partition,), (), offsets_only={1: "no python3"}))
    assert [(one.key, one.rule, one.finding, one.right) for one in judged.findings] == [
        ("broker-1", "offsets-only", "unverifiable", "no python3")
    ]
    assert judged.spans == ()


def test_what_was_not_walked_is_named() -> None:
    partition, log = one_partition()
    judged = judge(Sight((partition,), (log,)), Sight((partition,), (replace(log, walked_until=5, why_not="late"),)))
    assert [(one.rule, one.finding, one.right) for one in judged.findings] == [("not-walked", "unverifiable", "late")]
    assert judged.spans == (Span("orders", 0, 1, 0, 5),)


def test_damage_that_was_there_before_only_warns() -> None:
    partition, log = one_partition(broken="byte 7")
    judged = judge(Sight((partition,), (log,)), Sight((partition,), (log,)))
    assert [(one.rule, one.severity) for one in judged.findings] == [("unreadable", "warn")]
    rows = [{**row, "broker": 1, "is_damaged": True} for row in rows_of("orders", 0, [5], 0)]
    table = Look(batches=rows).table()
    found = compare_batches(table, table, span_table([Span("orders", 0, 1, 0, 20)]))
    assert [(one.rule, one.severity, one.left) for one in as_models(found.findings)] == [("checksum", "warn", "wrong")]
    assert found.equal == 0


def test_what_was_not_acknowledged_may_be_cut() -> None:
    partition, log = one_partition(end=30)
    assert judge(Sight((partition,), (log,)), Sight((partition,), (replace(log, end=20),))).findings == ()


def test_places_say_where_to_look() -> None:
    rows = [{**row, "broker": 2} for row in rows_of("orders", 3, [5, 5], 40)]
    after = [{**rows[0]}, {**rows[1], "crc": 1}]
    found = compare_batches(Look(batches=rows).table(), Look(batches=after).table(), span_table([Span("orders", 3, 2, 0, 99)]))
    (finding,) = as_models(found.findings)
    assert finding.key == "orders-3 broker-2 offset 45"
    assert finding.left_at == "00000000000000000040.log byte 100"
    assert (finding.field, finding.left, finding.right) == ("crc", str(rows[1]["crc"]), "1")


def test_a_loss_that_is_tolerated_by_name_is_no_drift() -> None:
    partition, log = one_partition()
    before = Look({("orders", 0): partition}, {("orders", 0, 1): log}, groups={("billing", "orders", 0): 5})
    story = Story(before, before.copy())
    story.after.groups = {}
    toleration = Toleration(record="group-offset", key="billing orders-0", by="ops", reason="retired")
    result = result_of(story, tolerated=(toleration,))
    assert (result.verdict, result.counts["group-offset"].tolerated) == (Verdict.CLEAN, 1)
    assert result_of(story).verdict is Verdict.DRIFT


def test_what_was_not_read_is_never_clean() -> None:
    partition, log = one_partition()
    look = Look({("orders", 0): partition}, {("orders", 0, 1): log})
    assert result_of(Story(look, look), not_read=("broker-1 did not answer",)).verdict is Verdict.INCONCLUSIVE


def test_an_empty_look_has_no_batches() -> None:
    empty = Look().table()
    found = compare_batches(empty, empty, span_table([]))
    assert (found.left, found.right, found.equal, found.findings.num_rows) == (0, 0, 0, 0)
    assert isinstance(found.findings, pa.Table)


def test_every_rule_has_a_severity_and_the_rules_a_fingerprint() -> None:
    assert set(SEVERITY) == set(MessageRule)
    assert len(rules_fingerprint()) == 64
