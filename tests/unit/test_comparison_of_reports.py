"""What a report is worth now: of which dual write it is, how old, and what it does to gate, evidence, waits and a rollback."""

from datetime import timedelta
from typing import Any

import pytest

from domain.contracts import Assessment
from domain.decisions import Gate, Step, Wait
from domain.drift.records import Severity
from domain.drift.report import Cut, DriftFinding, DriftReport, FindingKind, RecordCounts, Verdict
from domain.drift.tolerations import Toleration
from domain.observed.observation import ControllerZnode, Observation
from domain.rulings import GivenApproval, Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.comparison import NO_REPORT, claim_of, names_of
from domain.zk_to_kraft.losses import DRIFT
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preview import preview_of
from domain.zk_to_kraft.steps import GateName, StepAction
from domain.zk_to_kraft.waits import ZkWait
from tests.unit.conftest import LEADER, NOW, Point, cluster_spec, observation, report_of, with_zookeeper

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy()
SOAK = observation(Point.SOAK)
COMPARES = Step(action=StepAction.COMPARE_METADATA, stage="migration")
FINDING = DriftFinding(
    record="acl", finding=FindingKind.MISSING_LEFT, severity=Severity.BLOCK, rule="missing-row", key="Topic orders User:anna"
)


def drifted(seen: Observation = SOAK, age: timedelta = timedelta(seconds=1), **fields: Any) -> DriftReport:
    counts = {"acl": RecordCounts(right=1, missing_left=1)}
    return report_of(seen, Verdict.DRIFT, age, **({"first": (FINDING,), "counts": counts} | fields))


def judged(report: DriftReport | None, seen: Observation = SOAK, policy: ZkToKraftPolicy = POLICY, **ruled: Any) -> Assessment:
    return judged_by([report] if report is not None else [], seen, policy, **ruled)


def judged_by(
    reports: list[DriftReport], seen: Observation = SOAK, policy: ZkToKraftPolicy = POLICY, **ruled: Any
) -> Assessment:
    return assess(seen, SPEC, policy, Ruling(reports=tuple(reports), **ruled), "artefact")


def cut_at(offset: int, verdict: Verdict, began: int, ended: int, seen: Observation = SOAK, **fields: Any) -> DriftReport:
    """A report whose cut is at that offset; it began and ended so many seconds before the look."""
    given = {"started_at": SOAK.ended_at - timedelta(seconds=began), "ended_at": SOAK.ended_at - timedelta(seconds=ended)}
    cut = Cut(migration_offset=offset, claim=claim_of(seen.zookeeper))
    return report_of(seen, verdict, **(given | {"id": f"{verdict}@{offset}", "cut": cut} | fields))


def claimed(broker: int = LEADER, epoch: int = 7, **fields: Any) -> Observation:
    claim = ControllerZnode(broker_id=broker, kraft_epoch=epoch, is_ephemeral=False, **fields)
    return with_zookeeper(SOAK, controller=claim)


# ---- of which dual write ----


def test_a_claim_is_told_by_controller_epoch_and_time() -> None:
    sights = [
        claimed(),
        claimed(epoch=8),
        claimed(broker=3001),
        claimed(claimed_at=NOW),
        claimed(claimed_at=NOW + timedelta(1)),
    ]
    assert len({claim_of(seen.zookeeper) for seen in sights}) == len(sights)
    ephemeral = with_zookeeper(SOAK, controller=ControllerZnode(broker_id=1, kraft_epoch=None, is_ephemeral=True))
    nobody = with_zookeeper(SOAK, controller=None)
    assert {claim_of(seen.zookeeper) for seen in (ephemeral, nobody)} | {claim_of(None)} == {""}


@pytest.mark.parametrize("report", [None, report_of(claimed(epoch=6)), drifted(claimed(epoch=6))])
def test_without_a_report_of_this_dual_write_it_is_compared(report: DriftReport | None) -> None:
    assessment = judged(report)
    assert (assessment.decision, assessment.stands, assessment.gate) == (COMPARES, None, None)


def test_a_failover_makes_a_clean_report_worth_nothing() -> None:
    report = report_of(SOAK)
    assert isinstance(judged(report).decision, Gate)
    assert judged(report, claimed(epoch=8)).decision == COMPARES


# ---- how old ----


def test_a_clean_report_opens_the_gate_until_it_is_old() -> None:
    young, old = (report_of(SOAK, age=POLICY.max_report_age - timedelta(seconds=s)) for s in (1, 0))
    opened, again = judged(young), judged(old)
    assert isinstance(opened.decision, Gate)
    assert again.decision == COMPARES
    assert again.stands == opened.decision, "whoever sees the gate goes on seeing it, with the same hash"
    assert again.gate == opened.gate


@pytest.mark.parametrize(
    ("verdict", "reason"), [(Verdict.DRIFT, ZkWait.DRIFT_FOUND), (Verdict.INCONCLUSIVE, WaitReason.CHECK_INCONCLUSIVE)]
)
def test_what_is_not_clean_is_waited_for_and_compared_again(verdict: Verdict, reason: WaitReason) -> None:
    young, old = (report_of(SOAK, verdict, POLICY.recheck_interval - timedelta(seconds=s)) for s in (1, 0))
    waiting, again = judged(young), judged(old)
    assert isinstance(waiting.decision, Wait)
    assert waiting.decision.reason == reason
    assert again.decision == COMPARES
    assert isinstance(again.stands, Wait)
    assert again.stands.reason == reason


def test_an_approval_does_not_end_it_on_an_old_report_or_a_drift() -> None:
    gate = judged(report_of(SOAK)).gate
    assert gate is not None
    ruled = {"approvals": {GateName.FINALIZE: GivenApproval(evidence_hash=gate.evidence_hash)}}
    ends = judged(report_of(SOAK), **ruled).decision
    assert isinstance(ends, Step)
    assert ends.gate == GateName.FINALIZE
    old = judged(report_of(SOAK, age=POLICY.max_report_age), **ruled)
    assert (old.decision, old.stands) == (COMPARES, None)
    assert isinstance(judged(drifted(), **ruled).decision, Wait)


# ---- which is the newest ----

CLEAN, DRIFTED, VAIN = Verdict.CLEAN, Verdict.DRIFT, Verdict.INCONCLUSIVE
LONG_AND_CLEAN = cut_at(10, CLEAN, began=50, ended=1)


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ([cut_at(11, DRIFTED, began=40, ended=30)], ZkWait.DRIFT_FOUND),
        ([cut_at(10, DRIFTED, began=40, ended=30)], ZkWait.DRIFT_FOUND),
        ([cut_at(10, DRIFTED, began=50, ended=30)], ZkWait.DRIFT_FOUND),
        ([cut_at(11, DRIFTED, began=55, ended=30)], ZkWait.DRIFT_FOUND),
        ([cut_at(-1, VAIN, began=40, ended=30)], WaitReason.CHECK_INCONCLUSIVE),
        ([cut_at(9, DRIFTED, began=40, ended=30)], None),
        ([cut_at(10, DRIFTED, began=60, ended=30)], None),
        ([cut_at(-1, VAIN, began=60, ended=30)], None),
        ([cut_at(11, DRIFTED, began=40, ended=30, seen=claimed(epoch=6))], None),
        ([cut_at(11, DRIFTED, began=40, ended=30), cut_at(12, CLEAN, began=20, ended=10)], None),
    ],
)
def test_the_newest_report_is_the_one_that_was_cut_last(others: list[DriftReport], reason: WaitReason | None) -> None:
    """A long one that ends last says how it was when it began."""
    for reports in ([LONG_AND_CLEAN, *others], [*others, LONG_AND_CLEAN]):
        decision = judged_by(reports).decision
        assert (decision.reason if isinstance(decision, Wait) else None) == reason
        assert isinstance(decision, Wait | Gate)


def test_a_clean_report_is_as_old_as_its_beginning() -> None:
    age = int(POLICY.max_report_age.total_seconds())
    assert judged(cut_at(10, CLEAN, began=age, ended=1)).decision == COMPARES
    assert isinstance(judged(cut_at(10, CLEAN, began=age - 1, ended=1)).decision, Gate)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_report_of_a_clock_that_runs_ahead_is_made_anew(verdict: Verdict) -> None:
    assert judged(cut_at(10, verdict, began=-3600, ended=-3601)).decision == COMPARES
    assert judged(cut_at(10, verdict, began=-5, ended=-6)).decision != COMPARES, "a few seconds are nothing"


def test_an_approval_does_not_outlive_a_drift_that_was_repaired() -> None:
    """Two clean reports have the same content: what was found between them tells their gates apart."""
    gate = judged(report_of(SOAK), drifts=1).gate
    assert gate is not None
    approvals = {GateName.FINALIZE: GivenApproval(evidence_hash=gate.evidence_hash)}
    assert isinstance(judged(report_of(SOAK), drifts=1, approvals=approvals).decision, Step)
    again = judged(report_of(SOAK), drifts=2, approvals=approvals)
    assert isinstance(again.decision, Gate)
    assert again.decision.evidence_hash != gate.evidence_hash


# ---- nobody compares ----


def test_a_missing_worker_is_a_wait_and_is_asked_again_later() -> None:
    missed = SOAK.ended_at - timedelta(seconds=1)
    waiting = judged(None, unchecked_since=missed).decision
    assert waiting == Wait(reason=WaitReason.CHECKS_WORKER_MISSING)
    again = judged(None, unchecked_since=SOAK.ended_at - POLICY.recheck_interval)
    assert (again.decision, again.stands) == (COMPARES, waiting)
    assert isinstance(judged(report_of(SOAK), unchecked_since=missed).decision, Gate), "somebody else had it compared"


def test_a_drift_stays_told_where_nobody_compares_any_more() -> None:
    report = drifted(age=POLICY.recheck_interval)
    decision = judged(report, unchecked_since=SOAK.ended_at - timedelta(seconds=1)).decision
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (WaitReason.CHECKS_WORKER_MISSING, ("acl Topic orders User:anna",))


# ---- what it says ----


def test_a_drift_names_its_first_objects_and_stays_small() -> None:
    many = tuple(FINDING.model_copy(update={"key": f"{'long ' * 500}{i}"}) for i in range(100))
    assessment = judged(drifted(first=(FINDING, *many)))
    assert isinstance(assessment.decision, Wait)
    assert assessment.decision.objects[0] == "acl Topic orders User:anna"
    assert len(assessment.decision.objects) <= 20
    assert len(assessment.model_dump_json()) < 64 * 1024


def test_another_look_at_the_same_clusters_changes_no_evidence() -> None:
    gates = [judged(report_of(SOAK, age=timedelta(minutes=m), id=f"r{m}")).gate for m in (1, 9)]
    assert gates[0] is not None
    assert gates[1] is not None
    assert gates[0].evidence == gates[1].evidence
    assert gates[0].evidence["report"]["content_hash"] == "content of clean"


def test_a_clean_report_of_other_rules_opens_no_gate() -> None:
    """It is told, and compared again: after an upgrade, or while a worker of the checks is still an older one."""
    young, old = (
        report_of(SOAK, age=age, rules_fingerprint="others") for age in (timedelta(seconds=1), POLICY.recheck_interval)
    )
    waiting = judged(young).decision
    assert isinstance(waiting, Wait)
    assert waiting.reason == WaitReason.CHECK_INCONCLUSIVE
    assert "other rules" in waiting.detail
    assert judged(old).decision == COMPARES


def test_a_drift_of_other_rules_is_a_drift_still() -> None:
    waiting = judged(drifted(rules_fingerprint="others")).decision
    assert isinstance(waiting, Wait)
    assert waiting.reason == ZkWait.DRIFT_FOUND


def test_another_report_is_other_evidence() -> None:
    first, second = judged(report_of(SOAK)).gate, judged(report_of(SOAK, content_hash="another")).gate
    assert first is not None
    assert second is not None
    assert first.evidence_hash != second.evidence_hash


def test_a_report_that_tolerates_more_than_the_policy_does_is_none() -> None:
    toleration = Toleration(record="acl", by="anna", reason="known")
    report = report_of(SOAK, tolerated=names_of((toleration,)))
    assert judged(report).decision == COMPARES
    assert isinstance(judged(report, policy=ZkToKraftPolicy(tolerated=(toleration,))).decision, Gate)


@pytest.mark.parametrize("lax", [{}, {"key": "Topic orders User:anna"}, {"field": "host"}])
def test_a_toleration_of_more_rows_by_the_same_person_for_the_same_reason_is_another(lax: dict[str, str]) -> None:
    given = {"record": "acl", "by": "anna", "reason": "known"}
    strict = Toleration(**{**given, "key": "Topic orders User:anna", "field": "host"})
    report = report_of(SOAK, tolerated=names_of((Toleration(**{**given, **lax}),)))
    assert judged(report, policy=ZkToKraftPolicy(tolerated=(strict,))).decision == COMPARES


def test_where_zookeeper_is_given_up_the_evidence_says_that_nothing_was_compared() -> None:
    silent = SOAK.model_copy(update={"zookeeper": None})
    policy = ZkToKraftPolicy(min_zookeeper_silence=timedelta(0))
    assessment = judged(report_of(SOAK), silent, policy)
    assert isinstance(assessment.decision, Gate)
    assert assessment.decision.name == GateName.FINALIZE_WITHOUT_RETURN
    assert assessment.gate is not None
    assert assessment.gate.evidence["report"] == NO_REPORT


# ---- a rollback ----


def test_a_rollback_would_lose_what_zookeeper_lacks() -> None:
    preview = preview_of(SOAK, SPEC, POLICY, {}, [drifted()])
    (loss,) = [loss for loss in preview.losses if loss.name == DRIFT]
    assert "acl Topic orders User:anna" in loss.what
    for none in ([], [report_of(SOAK)], [drifted(claimed(epoch=6))], [drifted(age=timedelta(minutes=1)), report_of(SOAK)]):
        assert DRIFT not in {loss.name for loss in preview_of(SOAK, SPEC, POLICY, {}, none).losses}


def test_who_accepts_a_drift_has_not_accepted_the_next() -> None:
    hashes = [
        preview_of(SOAK, SPEC, POLICY, {}, report).preview_hash
        for report in ([drifted()], [drifted(age=timedelta(minutes=5), id="again")], [drifted(content_hash="more")], [])
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_a_comparison_that_came_to_nothing_does_not_take_a_known_drift_from_the_preview() -> None:
    vain = report_of(SOAK, Verdict.INCONCLUSIVE, id="later")
    known = [drifted(age=timedelta(minutes=5))]
    first, second = preview_of(SOAK, SPEC, POLICY, {}, known), preview_of(SOAK, SPEC, POLICY, {}, [*known, vain])
    assert DRIFT in {loss.name for loss in second.losses}
    assert first.preview_hash == second.preview_hash
