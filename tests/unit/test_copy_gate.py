"""When Kafka's copy is verified, what keeps brokers from depending on it, and what an approval binds to."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.contracts import Assessment
from domain.decisions import Gate, Step, Wait
from domain.drift.records import Severity
from domain.drift.report import CheckName, DriftFinding, DriftReport, FindingKind, Verdict
from domain.observed.observation import ControllerZnode, Observation
from domain.policy import MigrationPolicy
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.comparison import CopyReports
from domain.zk_to_kraft.evidence import NO_BASELINE
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import NodeStage, StepAction
from domain.zk_to_kraft.waits import ZkWait
from tests.unit.conftest import Point, cluster_spec, observation, report_of, with_metrics, with_zookeeper
from tests.unit.test_clients_data import BASELINE, reason_of

POLICY = ZkToKraftPolicy(min_soak=timedelta(0), compare_messages=False)
ONE, SEVERAL = cluster_spec(brokers=1), cluster_spec()
LAST = observation(Point.CONTROLLERS_UP, brokers=1)
"""One broker is left in ZooKeeper mode, and there is no other."""
COPIED, SOAK = observation(Point.DUAL_WRITE), observation(Point.SOAK)
SECOND = timedelta(seconds=1)
NOTHING = CopyReports()

KEEPS = Step(action=StepAction.KEEP_METADATA, stage=NodeStage.MIGRATION)
COMPARES = Step(action=StepAction.COMPARE_COPY, stage=NodeStage.MIGRATION)


def kept(seen: Observation = LAST, verdict: Verdict = Verdict.CLEAN, age: timedelta = SECOND, **fields: Any) -> DriftReport:
    artefact = {"baseline": "rows"} if verdict is Verdict.CLEAN else {}
    return report_of(seen, verdict, age, **({"id": "kept", "check": CheckName.BEFORE_COPY} | artefact | fields))


def copied(verdict: Verdict = Verdict.CLEAN, age: timedelta = SECOND, **fields: Any) -> DriftReport:
    return report_of(COPIED, verdict, age, **({"id": "copy", "check": CheckName.COPY} | fields))


LOST = DriftFinding(
    record="topic", finding=FindingKind.MISSING_RIGHT, severity=Severity.BLOCK, rule="missing-row", key="orders", left="id"
)
LACKS = copied(Verdict.DRIFT, first=(LOST,))


def judged(
    seen: Observation,
    policy: ZkToKraftPolicy = POLICY,
    kept: DriftReport | None = None,
    copy: DriftReport | None = None,
    others: CopyReports = NOTHING,
    **ruled: Any,
) -> Assessment:
    spec = ONE if len(seen.nodes) == len(LAST.nodes) else SEVERAL
    known = replace(Ruling(reports=(report_of(seen),), baseline=BASELINE), **ruled)
    return assess(seen, spec, policy, replace(known, of_copy=replace(others, kept=kept, copy=copy)), "artefact")


def action_of(assessment: Assessment) -> str:
    assert isinstance(assessment.decision, Step), assessment.decision
    return assessment.decision.action


# ---- before the copy ----


def test_zookeepers_metadata_is_kept_right_before_the_last_broker_is_restarted() -> None:
    assert judged(LAST).decision == KEEPS
    assert action_of(judged(LAST, kept=kept())) == StepAction.ROLL_NODE
    assert action_of(judged(observation(Point.CONTROLLERS_UP))) == StepAction.ROLL_NODE, "the first of three starts no copy"


def test_clients_data_comes_first() -> None:
    policy = MigrationPolicy(min_soak=timedelta(0))
    assert action_of(judged(LAST, policy, baseline=None)) == StepAction.CAPTURE_BASELINE


def test_what_was_kept_long_ago_is_kept_anew() -> None:
    old = kept(age=POLICY.max_report_age)
    assert judged(LAST, kept=old).decision == KEEPS


def test_what_could_not_be_kept_is_waited_for_by_name() -> None:
    vain = kept(verdict=Verdict.INCONCLUSIVE, not_read=("/config/topics/orders is no JSON",))
    waiting = judged(LAST, kept=vain)
    assert reason_of(waiting) == WaitReason.CHECK_INCONCLUSIVE
    assert waiting.decision.objects == ("/config/topics/orders is no JSON",)
    again = kept(verdict=Verdict.INCONCLUSIVE, age=POLICY.recheck_interval)
    assert judged(LAST, kept=again).decision == KEEPS


def test_without_its_worker_the_copy_is_not_started() -> None:
    assert reason_of(judged(LAST, unchecked_since=LAST.ended_at - SECOND)) == WaitReason.CHECKS_WORKER_MISSING


# ---- after it ----


def test_the_copy_is_compared_before_any_broker_depends_on_it_and_once() -> None:
    assert judged(COPIED, kept=kept(COPIED)).decision == COMPARES
    assert action_of(judged(COPIED, kept=kept(COPIED), copy=copied())) == StepAction.ROLL_NODE
    ages = copied(age=timedelta(days=90))
    long_ago = kept(COPIED, age=timedelta(days=91))
    assert action_of(judged(COPIED, kept=long_ago, copy=ages)) == StepAction.ROLL_NODE, "it does not change any more"


def test_dual_write_that_died_is_mended_first() -> None:
    dead = with_metrics(COPIED, 3002, write_behind_lag=0)
    dead = with_zookeeper(dead, migration=None)
    assert judged(dead, kept=kept(COPIED)).decision != COMPARES


def test_what_the_copy_has_lost_keeps_all_brokers_where_they_can_go_back_from() -> None:
    waiting = judged(COPIED, kept=kept(COPIED), copy=LACKS)
    assert reason_of(waiting) == ZkWait.COPY_DIFFERS
    assert waiting.decision.objects == ("topic orders",)
    assert "topic orders" in waiting.decision.detail
    old = LACKS.model_copy(update={"started_at": LACKS.started_at - timedelta(days=1), "ended_at": LACKS.ended_at})
    assert reason_of(judged(COPIED, kept=kept(COPIED, age=timedelta(days=2)), copy=old)) == ZkWait.COPY_DIFFERS


def test_it_closes_finalize_as_well_and_whoever_began_later_sees_it() -> None:
    assert reason_of(judged(SOAK, copy=LACKS)) == ZkWait.COPY_DIFFERS
    assert isinstance(judged(SOAK, kept=kept(SOAK), copy=copied()).decision, Gate)


def test_a_copy_that_could_not_be_compared_is_compared_again() -> None:
    vain = copied(Verdict.INCONCLUSIVE, not_read=("no controller reports that it is active; controller-3001: refused",))
    waiting = judged(COPIED, kept=kept(COPIED), copy=vain)
    assert reason_of(waiting) == WaitReason.CHECK_INCONCLUSIVE
    assert waiting.decision.objects == ("no controller reports that it is active",)
    later = copied(Verdict.INCONCLUSIVE, age=POLICY.recheck_interval)
    assert judged(COPIED, kept=kept(COPIED), copy=later).decision == COMPARES


def test_where_nothing_was_kept_nothing_is_compared_and_the_evidence_says_so() -> None:
    assert action_of(judged(COPIED)) == StepAction.ROLL_NODE
    gate = judged(SOAK).gate
    assert gate is not None
    assert gate.evidence["copy"] == NO_BASELINE


def test_an_approval_binds_to_the_report_on_the_copy() -> None:
    clean, tolerated = copied(), copied(content_hash="another", tolerated=("topic: Ann: deleted meanwhile",))
    gates = [judged(SOAK, kept=kept(SOAK), copy=one).gate for one in (clean, tolerated)]
    assert len({gate.evidence_hash for gate in gates if gate is not None}) == 2


def test_a_policy_that_asks_for_none_gets_none() -> None:
    policy = POLICY.model_copy(update={"compare_copy": False})
    assert action_of(judged(LAST, policy)) == StepAction.ROLL_NODE
    assert action_of(judged(COPIED, policy, kept=kept(COPIED))) == StepAction.ROLL_NODE


# ---- with what it is compared ----


CLAIM = ControllerZnode(broker_id=3002, kraft_epoch=7, is_ephemeral=False, claimed_at=COPIED.ended_at - timedelta(hours=1))


def before_claim(by: timedelta, **fields: Any) -> DriftReport:
    return kept(COPIED, age=timedelta(hours=1) + by, **fields)


def test_who_takes_over_compares_with_what_was_kept_right_before_the_claim() -> None:
    theirs, newer = before_claim(timedelta(minutes=5)), before_claim(timedelta(minutes=1))
    assert CopyReports(others_kept=(theirs,)).baseline(CLAIM, POLICY) is theirs
    assert CopyReports(others_kept=(theirs, newer)).baseline(CLAIM, POLICY) is newer
    own = before_claim(timedelta(days=2))
    assert CopyReports(own, others_kept=(theirs,)).baseline(CLAIM, POLICY) is own, "its own comes first"


@pytest.mark.parametrize(
    "useless",
    [
        before_claim(POLICY.max_report_age + SECOND),
        before_claim(timedelta(minutes=-5)),
        before_claim(SECOND, rules_fingerprint="of another version"),
        before_claim(SECOND, verdict=Verdict.INCONCLUSIVE),
    ],
)
def test_what_was_kept_long_before_or_afterwards_or_by_other_rules_is_none(useless: DriftReport) -> None:
    assert CopyReports(others_kept=(useless,)).baseline(CLAIM, POLICY) is None


def test_without_a_time_of_the_claim_only_ones_own_counts() -> None:
    theirs = before_claim(SECOND)
    assert CopyReports(others_kept=(theirs,)).baseline(None, POLICY) is None
    assert CopyReports(theirs).baseline(None, POLICY) is theirs


def test_what_another_migration_has_found_is_not_forgotten_by_who_takes_over() -> None:
    """Also after a failover, which makes the claim new, and what was kept before it old."""
    theirs = copied(Verdict.DRIFT, age=timedelta(hours=30), first=(LOST,), baseline="rows", migration_id="before")
    others = CopyReports(others_kept=(kept(COPIED, age=timedelta(hours=31)),), others_copies=(theirs,))
    assert judged(COPIED, others=others).decision == COMPARES, "by the policy of its own"
    assert judged(SOAK, others=others).decision == COMPARES, "also where brokers were led on by hand"
    own = copied(content_hash="tolerated")
    assert isinstance(judged(SOAK, others=others, copy=own).decision, Gate)
    without = POLICY.model_copy(update={"compare_copy": False})
    gate = judged(SOAK, without, others=others).gate
    assert gate is not None
    assert gate.evidence["copy"] == {
        "verdict": "drift",
        "content_hash": "content of drift",
        "rules_fingerprint": theirs.rules_fingerprint,
        "tolerated": [],
    }


def test_what_was_clean_for_others_is_compared_once_more_where_that_costs_least() -> None:
    theirs = copied(baseline="rows")
    others = CopyReports(others_copies=(theirs,))
    assert judged(COPIED, others=others).decision == COMPARES
    assert isinstance(judged(SOAK, others=others).decision, Gate)


def test_a_report_on_the_copy_before_is_none() -> None:
    """Somebody went back by hand and wiped the quorum; this migration went on, and kept anew before the second copy."""
    first, again = copied(Verdict.DRIFT, age=timedelta(hours=2), first=(LOST,)), kept(COPIED, age=timedelta(minutes=2))
    assert judged(COPIED, kept=again, copy=first).decision == COMPARES
    reports = CopyReports(others_kept=(again,), others_copies=(first,))
    assert reports.newest is None


def test_while_the_copy_does_not_come_what_was_kept_for_it_is_kept_anew() -> None:
    waiting = observation(Point.HYBRID)
    young = judged(waiting, kept=kept(waiting))
    assert reason_of(young) == ZkWait.COPY_NOT_COMPLETE
    assert judged(waiting, kept=kept(waiting, age=POLICY.max_report_age)).decision == KEEPS
    assert reason_of(judged(waiting, POLICY.model_copy(update={"compare_copy": False}))) == ZkWait.COPY_NOT_COMPLETE


def test_the_verdict_stands_by_whatever_rules_it_was_made() -> None:
    """The copy does not change any more, and what was kept cannot be read by others."""
    old_rules = {"rules_fingerprint": "of another version"}
    rolls = judged(COPIED, kept=kept(COPIED, age=timedelta(hours=1), **old_rules), copy=copied(**old_rules))
    assert action_of(rolls) == StepAction.ROLL_NODE


def test_a_drift_of_what_changes_by_itself_is_named_too() -> None:
    leader = LOST.model_copy(update={"severity": Severity.WARN, "record": "partition", "key": "orders-0"})
    waiting = judged(COPIED, kept=kept(COPIED, age=timedelta(hours=1)), copy=copied(Verdict.DRIFT, first=(leader,)))
    assert isinstance(waiting.decision, Wait)
    assert waiting.decision.objects == ("partition orders-0",)
