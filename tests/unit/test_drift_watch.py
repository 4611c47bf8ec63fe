"""GF14 and GF15: what moved under us, and that nothing moves. Told once, and nothing else follows."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.decisions import Intent, Wait
from domain.observed.observation import Observation, RollMark
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import alerts_of, assess
from domain.zk_to_kraft.causes.case import case_of
from domain.zk_to_kraft.drift_watch import drift_causes, drifts
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import (
    NOW,
    Point,
    cluster_spec,
    mark_of,
    observation,
    seen_file,
    text_at,
    with_file,
    with_kafka,
    with_metrics,
)

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy(compare_copy=False, compare_messages=False)
DUAL = observation(Point.DUAL_WRITE)


def objects(seen: Observation) -> list[str]:
    return [drift.object for drift in drifts(seen, SPEC, NOW)]


def rolled(seen: Observation, node_id: int = 1, *, is_proven: bool = True, proven: str | None = "pid-1") -> Observation:
    """A broker as our roll left it."""
    text = text_at(SPEC, node_id, NodeStage.MIGRATION)
    mark = mark_of(seen_file(text).sha256, before="b" * 64, is_proven=is_proven)
    return with_file(seen, node_id, text, mark.model_copy(update={"stage": "migration", "proven_identity": proven}))


def edited(seen: Observation, node_id: int = 1) -> Observation:
    file = seen.node(node_id).disk
    assert file is not None
    assert file.file is not None
    mark: RollMark | None = file.file.mark
    return with_file(seen, node_id, text_at(SPEC, node_id, NodeStage.MIGRATION) + "\n# somebody\n", mark)


def with_original(seen: Observation, node_id: int = 1) -> Observation:
    view = seen.node(node_id)
    assert view.disk is not None
    assert view.disk.file is not None
    file = view.disk.file.model_copy(update={"original_sha256": "a" * 64})
    kept = view.model_copy(update={"disk": view.disk.model_copy(update={"file": file})})
    return seen.model_copy(update={"nodes": tuple(kept if node.id == node_id else node for node in seen.nodes)})


def test_nothing_has_moved() -> None:
    assert objects(rolled(DUAL)) == []


def test_an_edit_beside_our_keys_is_told() -> None:
    assert objects(edited(rolled(DUAL))) == ["file of broker-1"]


def test_another_nodes_file_is_told_as_such_for_this_node_does_not_survive_a_restart_with_it() -> None:
    seen = rolled(DUAL)
    disk = seen.node(1).disk
    assert disk is not None
    assert disk.file is not None
    text = text_at(SPEC, 2, NodeStage.MIGRATION)
    (found,) = drifts(with_file(seen, 1, text, disk.file.mark), SPEC, NOW)
    assert "has the log directory /data/2 of broker-2" in found.observed
    assert "Restore its own" in found.fix


def test_an_edit_that_is_waited_for_is_not_told_twice() -> None:
    seen = rolled(DUAL)
    mark = seen.node(1).disk.file.mark  # type: ignore[union-attr]
    assert objects(with_file(seen, 1, "process.roles=nonsense\n", mark)) == []


def test_in_the_middle_of_a_roll_nothing_is_told() -> None:
    assert objects(edited(rolled(DUAL, is_proven=False))) == []


def test_what_was_never_rolled_is_nobodys_drift() -> None:
    assert objects(with_file(DUAL, 1, text_at(SPEC, 1, NodeStage.MIGRATION) + "\n# somebody\n")) == []


@pytest.mark.parametrize(("proven", "told"), [("pid-1", []), ("another", ["process of broker-1"]), (None, [])])
def test_a_restart_that_was_not_ours_is_told(proven: str | None, told: list[str]) -> None:
    assert objects(rolled(DUAL, proven=proven)) == told


def test_another_version_is_told_of_whoever_has_it() -> None:
    assert objects(with_metrics(DUAL, 3002, kafka_version="3.9.1")) == ["version of controller-3002"]
    assert objects(with_metrics(DUAL, 3002, kafka_version=None)) == []


def originals_gone(seen: Observation, *rolled_nodes: str, in_hand: str = "") -> list[tuple[str, str]]:
    looked = replace(case_of(seen, SPEC, POLICY), rolled=frozenset(rolled_nodes), in_hand=frozenset({in_hand}))
    return [found.key for found in drift_causes(looked) if found.blocker.object.startswith("original")]


def test_an_original_that_is_gone_is_told_of_a_broker_that_we_have_rolled() -> None:
    seen, told = rolled(DUAL), [("GF14", "original of broker-1")]
    assert originals_gone(seen, "broker-1") == told
    without_mark = with_file(DUAL, 1, text_at(SPEC, 1, NodeStage.MIGRATION))
    assert originals_gone(without_mark, "broker-1") == told, "all that was kept is gone"
    assert originals_gone(seen) == [], "somebody else began with it"
    assert originals_gone(seen, "broker-1", in_hand="broker-1") == []


def test_an_original_that_is_there_or_that_nobody_needs_is_no_entry() -> None:
    assert originals_gone(with_original(rolled(DUAL)), "broker-1") == []
    assert originals_gone(observation(Point.BEFORE), "broker-1") == [], "it has its original file"
    assert originals_gone(observation(Point.FINAL), "broker-1") == [], "there is no way back any more"


def test_on_the_way_back_nodes_change_and_that_is_meant() -> None:
    seen = edited(rolled(DUAL))
    assert len(alerts_of(seen, SPEC, POLICY, Intent.FORWARD, None)) == 1
    assert alerts_of(seen, SPEC, POLICY, Intent.REVERT, None) == ()


def test_an_alert_changes_the_digest_so_that_a_watch_returns() -> None:
    seen = rolled(DUAL)
    assert assess(seen, SPEC, POLICY, Ruling(), "").digest != assess(edited(seen), SPEC, POLICY, Ruling(), "").digest


# --- nothing moves ---------------------------------------------------------------------------------------------------

HYBRID = observation(Point.HYBRID)


def at(seen: Observation, minutes: float) -> Observation:
    return seen.model_copy(update={"ended_at": NOW + timedelta(minutes=minutes)})


def followed(looks: list[Observation], ruling: Ruling | None = None, policy: ZkToKraftPolicy = POLICY) -> list[list[datetime]]:
    """Look after look, each knowing what the one before knew: since when nothing moves, as far as that is told."""
    memory: dict[str, Any] = {}
    told = []
    for seen in looks:
        assessment = assess(seen, SPEC, policy, ruling or Ruling(), "", memory)
        memory = assessment.memory
        told.append([alert.since for alert in assessment.alerts if alert.code == "GF15"])
    return told


def test_a_wait_without_progress_is_told_after_the_deadline() -> None:
    assert followed([at(HYBRID, minutes) for minutes in (0, 14, 15, 60)]) == [[], [], [NOW], [NOW]]


def test_progress_begins_anew() -> None:
    seen = with_metrics(HYBRID, 3002, active_broker_count=2)
    assert followed([at(seen, 0), at(HYBRID, 14), at(HYBRID, 28), at(HYBRID, 29)])[-1] == [NOW + timedelta(minutes=14)]
    assert followed([at(seen, 0), at(HYBRID, 14), at(HYBRID, 28)])[-1] == []


def test_a_replica_that_catches_up_is_progress() -> None:
    lagging = [with_kafka(HYBRID, offline=tuple(f"t-{n}" for n in range(left))) for left in (3, 2, 1)]
    assert followed([at(seen, 10 * n) for n, seen in enumerate(lagging)]) == [[], [], []]


def test_a_hold_may_last() -> None:
    assert followed([at(HYBRID, minutes) for minutes in (0, 60, 600)], Ruling(is_held=True)) == [[], [], []]


def test_a_soak_and_a_gate_may_last() -> None:
    soak = observation(Point.SOAK)
    policy = POLICY.model_copy(update={"min_soak": timedelta(days=7)})
    assessment = assess(soak, SPEC, policy, Ruling(), "")
    assert assessment.decision == Wait(reason=WaitReason.SOAK_NOT_OVER)
    assert followed([at(soak, minutes) for minutes in (0, 60, 600)], policy=policy) == [[], [], []]


def test_nothing_follows_from_a_standstill_but_the_alert() -> None:
    before = assess(HYBRID, SPEC, POLICY, Ruling(), "")
    after = assess(at(HYBRID, 60 * 24), SPEC, POLICY, Ruling(), "", before.memory)
    assert after.alerts
    assert after.decision == before.decision
