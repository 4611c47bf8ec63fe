"""How the comparison of ZooKeeper with KRaft binds the gate `finalize`: a clean report opens it, and a drift closes it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from domain.drift.hashing import rules_fingerprint
from domain.drift.report import Verdict
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from tests.workflow.conftest import FAST


def quickly(**fields: Any) -> ZkToKraftPolicy:
    return FAST.model_copy(update={"recheck_interval": timedelta(seconds=3), **fields})


@pytest.fixture
async def soaking(make_world: Callable[..., Any]) -> Any:
    """All brokers in KRaft mode, nothing compared yet; looks again soon after what was not clean."""
    world = make_world(controllers=1, policy=quickly())
    await world.lead_to(Phase.SOAK)
    return world


async def test_the_evidence_names_the_report(soaking: Any) -> None:
    await soaking.begin()
    gate = await soaking.until_gate()
    assert gate.evidence["report"] == {
        "verdict": "clean",
        "content_hash": "content of clean",
        "rules_fingerprint": rules_fingerprint(),
        "tolerated": [],
    }
    assert soaking.checks.asked == [f"{soaking.migration_id}.1"]


async def test_a_drift_keeps_the_gate_closed_until_it_is_repaired(soaking: Any) -> None:
    soaking.checks.verdict = Verdict.DRIFT
    await soaking.begin()
    waiting = (await soaking.until_waiting("drift-found")).waiting
    assert waiting.objects == ("topic-config orders retention.ms",)
    assert "1 difference (" in waiting.detail
    soaking.checks.verdict = Verdict.CLEAN
    await soaking.until_gate()
    *before, last = [event.data["verdict"] for event in await soaking.events("report-published")]
    assert (set(before), last) == ({"drift"}, "clean"), "asked anew until it is clean, and no more"
    assert len(await soaking.events("waiting")) == 2, "the wait stood while it was compared anew"


async def test_a_drift_that_somebody_else_finds_closes_the_open_gate(soaking: Any) -> None:
    """And an approval given before comes to nothing, also after the repair: who approved did not know of it."""
    await soaking.begin()
    gate = await soaking.until_gate()
    soaking.checks.verdict = Verdict.DRIFT
    await soaking.checks.publish(soaking.cluster.spec.name, "by-hand")
    progress = await soaking.until_waiting("drift-found")
    assert progress.gate is None
    with pytest.raises(WorkflowUpdateFailedError):
        await soaking.approve(gate.evidence_hash)
    assert soaking.cluster.restarts["controller-3001"] == 1


async def test_an_inconclusive_comparison_is_no_clean_one(soaking: Any) -> None:
    soaking.checks.verdict = Verdict.INCONCLUSIVE
    await soaking.begin()
    waiting = (await soaking.until_waiting("check-inconclusive")).waiting
    assert waiting.objects == ("zookeeper did not answer",)


async def test_a_report_that_grows_old_is_taken_anew_under_an_open_gate(make_world: Callable[..., Any]) -> None:
    """The gate stays open, with the same hash and age, and an approval that comes in the middle of a comparison counts."""
    world = make_world(controllers=1, policy=quickly(max_report_age=timedelta(seconds=4)))
    await world.lead_to(Phase.SOAK)
    await world.begin()
    gate = await world.until_gate()
    world.checks.is_begun.clear()
    world.checks.is_free.clear()
    await world.checks.is_begun.wait()
    again = await world.until_gate()
    assert (again.evidence_hash, again.since) == (gate.evidence_hash, gate.since)
    assert await world.approve(gate.evidence_hash) == "approved"
    assert world.cluster.restarts["controller-3001"] == 1
    world.checks.is_free.set()
    assert await world.result() == "succeeded"
    assert len(await world.events("gate-opened")) == 1
    assert len(world.checks.asked) >= 2


async def test_a_drift_found_after_the_approval_stops_the_end(make_world: Callable[..., Any]) -> None:
    world = make_world(controllers=1, policy=quickly(max_report_age=timedelta(seconds=4)))
    await world.lead_to(Phase.SOAK)
    await world.begin()
    gate = await world.until_gate()
    world.checks.is_begun.clear()
    world.checks.is_free.clear()
    await world.checks.is_begun.wait()
    world.checks.verdict = Verdict.DRIFT
    assert await world.approve(gate.evidence_hash) == "approved"
    world.checks.is_free.set()
    await world.until_waiting("drift-found")
    world.checks.verdict = Verdict.CLEAN
    await world.until_gate()
    assert world.cluster.restarts["controller-3001"] == 1


async def test_an_approval_does_not_outlive_a_drift_that_nobody_was_shown(make_world: Callable[..., Any]) -> None:
    """Found and repaired while the migration is held: the gate opens again, and the end waits for another approval."""
    world = make_world(controllers=1, policy=quickly(max_report_age=timedelta(seconds=4)))
    await world.lead_to(Phase.SOAK)
    await world.begin()
    gate = await world.until_gate()
    world.checks.is_begun.clear()
    world.checks.is_free.clear()
    await world.checks.is_begun.wait()
    assert await world.approve(gate.evidence_hash) == "approved"
    await world.hold()
    await world.until_waiting("held")
    world.checks.is_free.set()
    for verdict in (Verdict.DRIFT, Verdict.CLEAN):
        world.checks.verdict = verdict
        await world.checks.publish(world.cluster.spec.name, f"by-hand-{verdict}")
    await world.resume()
    again = await world.until_gate()
    assert again.evidence_hash != gate.evidence_hash
    assert again.evidence["report"] == gate.evidence["report"]
    assert world.cluster.restarts["controller-3001"] == 1
    assert not [event for event in await world.events("waiting") if event.data["reason"] == "drift-found"]
    assert await world.approve(again.evidence_hash) == "approved"
    assert await world.result() == "succeeded"


async def test_a_missing_checks_worker_is_named(soaking: Any) -> None:
    await soaking.register()
    await soaking.start_workflow_worker()
    await soaking.start_activity_workers()
    await soaking.start()
    waiting = (await soaking.until_waiting("checks-worker-missing")).waiting
    assert "keeperless-checks" in waiting.means
    await soaking.start_checks_worker()
    await soaking.until_gate()


@pytest.mark.parametrize("order", ["hold", "rollback"])
async def test_an_order_does_not_wait_for_a_comparison(soaking: Any, order: str) -> None:
    soaking.checks.is_free.clear()
    await soaking.begin()
    await soaking.checks.is_begun.wait()
    if order == "hold":
        await soaking.hold()
        await soaking.until_waiting("held")
        soaking.checks.is_free.set()
        await soaking.resume()
        await soaking.until_gate()
    else:
        await soaking.roll_back()
        assert await soaking.result() == "reverted"
    told = await soaking.until_told("step-blocked")
    assert told.data["action"] == "compare-metadata"


async def test_the_comparison_that_an_order_dropped_is_cancelled(soaking: Any) -> None:
    soaking.checks.is_free.clear()
    await soaking.begin()
    await soaking.checks.is_begun.wait()
    await soaking.hold()

    async def is_cancelled() -> bool:
        return bool(soaking.checks.is_cancelled)

    await soaking.until(is_cancelled)
