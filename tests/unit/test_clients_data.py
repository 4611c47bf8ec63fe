"""What the looks at clients' data are worth: when they are taken, what keeps the gate closed, what an approval binds to."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.contracts import Assessment
from domain.decisions import Gate, Step, Wait
from domain.drift.messages import MessageRule, rules_fingerprint
from domain.drift.records import Severity
from domain.drift.report import CheckName, DriftFinding, DriftReport, FindingKind, RecordCounts, Verdict
from domain.observed.observation import MigrationZnode, Observation
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.evidence import NO_BASELINE
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import NodeStage, StepAction
from domain.zk_to_kraft.waits import ZkWait
from tests.unit.conftest import Point, cluster_spec, observation, report_of, with_zookeeper

SPEC, POLICY = cluster_spec(), ZkToKraftPolicy(min_soak=timedelta(0))
BEFORE, SOAK = observation(Point.CONTROLLERS_UP), observation(Point.SOAK)
SECOND = timedelta(seconds=1)


def look(check: CheckName, verdict: Verdict = Verdict.CLEAN, age: timedelta = SECOND, **fields: object) -> DriftReport:
    kept = {"baseline": "artefact"} if verdict is not Verdict.INCONCLUSIVE else {}
    given = {"id": f"{check} {verdict}", "check": check, "rules_fingerprint": rules_fingerprint()} | kept
    return report_of(SOAK, verdict, age, **(given | fields))


def found(severity: Severity = Severity.BLOCK, kind: FindingKind = FindingKind.DIFFERS) -> DriftFinding:
    return DriftFinding(record="batch", finding=kind, severity=severity, rule="checksum", key="orders-0 broker-1 offset 10")


BASELINE = look(CheckName.BASELINE)


def judged(
    seen: Observation,
    baseline: DriftReport | None = None,
    messages: DriftReport | None = None,
    policy: ZkToKraftPolicy = POLICY,
    ruling: Ruling | None = None,
) -> Assessment:
    ruled = replace(ruling or Ruling(), reports=(report_of(seen),), baseline=baseline, messages=messages)
    return assess(seen, SPEC, policy, ruled, "artefact")


def reason_of(assessment: Assessment) -> str:
    assert isinstance(assessment.decision, Wait)
    return assessment.decision.reason


CAPTURES = Step(action=StepAction.CAPTURE_BASELINE, stage=NodeStage.MIGRATION)
COMPARES = Step(action=StepAction.COMPARE_MESSAGES, stage=NodeStage.MIGRATION)


# ---- before the first restart ----


def test_clients_data_is_looked_at_before_the_first_broker_is_restarted_and_once() -> None:
    assert judged(BEFORE).decision == CAPTURES
    decision = judged(BEFORE, BASELINE).decision
    assert isinstance(decision, Step)
    assert decision.action == StepAction.ROLL_NODE
    ages = look(CheckName.BASELINE, age=timedelta(days=90))
    assert judged(BEFORE, ages).decision == decision, "before is before"


def test_what_keeps_the_first_broker_from_its_restart_comes_first() -> None:
    left = MigrationZnode(controller_id=9, controller_epoch=1, offset=105)
    assert reason_of(judged(with_zookeeper(BEFORE, migration=left))) == ZkWait.COPY_LEFT_OVER


def test_a_look_in_vain_is_waited_for_by_name_and_taken_again() -> None:
    vain = look(CheckName.BASELINE, Verdict.INCONCLUSIVE, not_read=("segments of broker-2: no answer",))
    waiting = judged(BEFORE, vain)
    assert reason_of(waiting) == WaitReason.CHECK_INCONCLUSIVE
    assert waiting.decision.objects == ("segments of broker-2: no answer",)
    old = look(CheckName.BASELINE, Verdict.INCONCLUSIVE, POLICY.recheck_interval)
    assert judged(BEFORE, old).decision == CAPTURES


def test_without_its_worker_nothing_is_restarted() -> None:
    missed = Ruling(unchecked_since=BEFORE.ended_at - SECOND)
    assert reason_of(judged(BEFORE, ruling=missed)) == WaitReason.CHECKS_WORKER_MISSING
    later = Ruling(unchecked_since=BEFORE.ended_at - POLICY.recheck_interval)
    assert judged(BEFORE, ruling=later).decision == CAPTURES


def test_a_policy_that_asks_for_none_gets_none() -> None:
    policy = ZkToKraftPolicy(min_soak=timedelta(0), compare_messages=False)
    decision = judged(BEFORE, policy=policy).decision
    assert isinstance(decision, Step)
    assert decision.action == StepAction.ROLL_NODE
    assert isinstance(judged(SOAK, BASELINE, policy=policy).decision, Gate)


@pytest.mark.parametrize("point", [Point.HYBRID, Point.DUAL_WRITE])
def test_once_a_broker_was_restarted_it_is_too_late_for_a_baseline(point: Point) -> None:
    decision = judged(observation(point)).decision
    assert decision != CAPTURES


# ---- before the end ----


def test_the_gate_opens_when_clients_data_is_what_it_was() -> None:
    assert judged(SOAK, BASELINE).decision == COMPARES
    assert isinstance(judged(SOAK, BASELINE, look(CheckName.MESSAGES)).decision, Gate)


def test_where_there_is_nothing_to_compare_with_the_evidence_says_so() -> None:
    gate = judged(SOAK).gate
    assert gate is not None
    assert gate.evidence["messages"] == NO_BASELINE
    vain = look(CheckName.BASELINE, Verdict.INCONCLUSIVE)
    assert isinstance(judged(SOAK, vain).decision, Gate), "somebody else has restarted the brokers"


def test_what_is_lost_closes_the_gate_and_is_named() -> None:
    lost = look(CheckName.MESSAGES, Verdict.DRIFT, first=(found(),))
    waiting = judged(SOAK, BASELINE, lost)
    assert reason_of(waiting) == WaitReason.MESSAGES_DIFFER
    assert waiting.decision.objects == ("batch orders-0 broker-1 offset 10",)
    assert judged(SOAK, BASELINE, replace_age(lost, POLICY.recheck_interval)).decision == COMPARES


def test_what_is_lost_is_counted_by_kind_and_told_with_what_it_means() -> None:
    gone = found().model_copy(update={"record": "group-offset", "rule": MessageRule.GROUP_GONE, "key": "billing orders-0"})
    counts = {"group-offset": RecordCounts(missing_right=240_096, differs=1)}
    waiting = judged(SOAK, BASELINE, look(CheckName.MESSAGES, Verdict.DRIFT, first=(gone,), counts=counts))
    assert isinstance(waiting.decision, Wait)
    told = waiting.decision.detail
    assert "240,097 differences (240,096 committed offsets only before, 1 committed offset differs). The group's" in told
    assert "it has expired (`offsets.retention.minutes`), or was deleted" in told
    assert "find out who reset or deleted it" in told


def replace_age(report: DriftReport, age: timedelta) -> DriftReport:
    return report.model_copy(update={"started_at": SOAK.ended_at - age, "ended_at": SOAK.ended_at - age})


HARMLESS = (
    found(Severity.WARN),
    found(Severity.INFO),
    found(kind=FindingKind.TOLERATED),
    found(kind=FindingKind.UNVERIFIABLE),
)


@pytest.mark.parametrize("harmless", HARMLESS)
def test_what_happens_in_any_week_does_not_close_the_gate(harmless: DriftFinding) -> None:
    """A topic was deleted, a group has expired. The approval binds to it all the same."""
    report = look(CheckName.MESSAGES, Verdict.DRIFT, first=(harmless,))
    opened = judged(SOAK, BASELINE, report)
    assert isinstance(opened.decision, Gate)
    assert opened.decision.evidence_hash != judged(SOAK, BASELINE, look(CheckName.MESSAGES)).decision.evidence_hash


def test_a_look_that_could_not_be_had_closes_the_gate() -> None:
    vain = look(CheckName.MESSAGES, Verdict.INCONCLUSIVE, not_read=("now: segments of broker-1: no answer",))
    waiting = judged(SOAK, BASELINE, vain)
    assert reason_of(waiting) == WaitReason.CHECK_INCONCLUSIVE
    assert waiting.decision.objects == ("now: segments of broker-1: no answer",)


def test_a_drift_of_the_metadata_is_named_before_anything_else() -> None:
    drift = report_of(SOAK, Verdict.DRIFT)
    ruled = Ruling(reports=(drift,), baseline=BASELINE)
    assert reason_of(assess(SOAK, SPEC, POLICY, ruled, "artefact")) == ZkWait.DRIFT_FOUND


def test_an_old_look_is_taken_anew_and_whoever_sees_the_gate_goes_on_seeing_it() -> None:
    young, old = (look(CheckName.MESSAGES, age=POLICY.max_messages_age - timedelta(seconds=s)) for s in (1, 0))
    opened, again = judged(SOAK, BASELINE, young), judged(SOAK, BASELINE, old)
    assert again.decision == COMPARES
    assert (again.stands, again.gate) == (opened.decision, opened.gate)


# ---- what a look is worth ----


def test_a_look_that_found_everyday_changes_only_and_did_not_see_everything_opens_nothing() -> None:
    """Replicas of a machine that is silent look as if they were moved away."""
    silent = ("now: segments of broker-2: no answer",)
    report = look(CheckName.MESSAGES, Verdict.DRIFT, first=(found(Severity.WARN),), not_read=silent)
    waiting = judged(SOAK, BASELINE, report)
    assert reason_of(waiting) == WaitReason.CHECK_INCONCLUSIVE
    assert waiting.decision.objects == silent


def test_a_clean_look_by_other_rules_is_none() -> None:
    foreign = look(CheckName.MESSAGES, rules_fingerprint="another version's")
    waiting = judged(SOAK, BASELINE, foreign)
    assert reason_of(waiting) == WaitReason.CHECK_INCONCLUSIVE
    assert "other rules" in waiting.decision.detail


def test_who_takes_over_compares_with_what_was_kept_before() -> None:
    ruled = Ruling(reports=(report_of(SOAK),), inherited=BASELINE)
    assert assess(SOAK, SPEC, POLICY, ruled, "artefact").decision == COMPARES
    untouched = Ruling(reports=(report_of(BEFORE),), inherited=BASELINE)
    assert assess(BEFORE, SPEC, POLICY, untouched, "artefact").decision == CAPTURES, (
        "before the first restart one's own is kept"
    )


def test_a_look_that_takes_long_is_not_taken_again_at_once() -> None:
    lost = look(CheckName.MESSAGES, Verdict.DRIFT, first=(found(),))
    ended_at = SOAK.ended_at - timedelta(minutes=50)
    slow = lost.model_copy(update={"started_at": ended_at - timedelta(minutes=10), "ended_at": ended_at})
    assert reason_of(judged(SOAK, BASELINE, slow)) == WaitReason.MESSAGES_DIFFER
    later = slow.model_copy(
        update={"started_at": slow.started_at - timedelta(hours=1), "ended_at": ended_at - timedelta(hours=1)}
    )
    assert judged(SOAK, BASELINE, later).decision == COMPARES


def test_a_missing_worker_is_explained_with_the_report_that_is_due() -> None:
    old = report_of(SOAK, age=POLICY.max_report_age)
    missed = Ruling(
        reports=(old,), baseline=BASELINE, messages=look(CheckName.MESSAGES), unchecked_since=SOAK.ended_at - SECOND
    )
    waiting = assess(SOAK, SPEC, POLICY, missed, "artefact")
    assert reason_of(waiting) == WaitReason.CHECKS_WORKER_MISSING
    assert old.id in waiting.decision.detail
