"""Clients' data in a whole migration: kept before the first restart, compared before the end."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from domain.drift.report import CheckName, Verdict
from domain.zk_to_kraft.phases import Phase
from tests.workflow.conftest import FAST


async def test_it_is_kept_before_the_first_restart_and_compared_before_the_gate(make_world: Callable[..., Any]) -> None:
    world = make_world(controllers=1)
    await world.begin()
    gate = await world.until_gate()
    actions = [event.data["action"] for event in await world.events("step-started")]
    assert actions.index("capture-baseline") == actions.index("roll-node") - 1
    rolls = [number for number, action in enumerate(actions) if action == "roll-node"]
    brokers = len(world.cluster.spec.brokers)
    assert actions.index("keep-metadata") == rolls[brokers - 1] - 1, "as late as can be"
    assert actions.index("compare-copy") == rolls[brokers] - 1, "before any broker depends on it"
    assert actions[-2:] == ["compare-metadata", "compare-messages"]
    baseline = await world.book.newest_report(world.migration_id, CheckName.BASELINE)
    assert baseline is not None
    assert gate.evidence["messages"]["content_hash"] == "content of clean"
    assert await world.approve(gate.evidence_hash) == "approved"
    assert await world.result() == "succeeded"
    assert len(world.checks.asked) == 6, "one more after the end"


async def test_what_is_lost_keeps_the_gate_closed(make_world: Callable[..., Any]) -> None:
    world = make_world(controllers=1, policy=FAST.model_copy(update={"recheck_interval": timedelta(seconds=3)}))
    await world.begin()
    await world.until_told("phase-entered", phase=Phase.DUAL_WRITE)
    world.checks.of_messages = Verdict.DRIFT
    waiting = (await world.until_waiting("messages-differ")).waiting
    assert waiting.objects == ("topic-config orders retention.ms",)
    world.checks.of_messages = Verdict.CLEAN
    gate = await world.until_gate()
    assert await world.approve(gate.evidence_hash) == "approved"
    assert await world.result() == "succeeded"


async def test_a_migration_that_takes_over_has_nothing_to_compare_with(make_world: Callable[..., Any]) -> None:
    world = make_world(controllers=1)
    await world.lead_to(Phase.DUAL_WRITE)
    await world.begin()
    gate = await world.until_gate()
    assert gate.evidence["messages"] == "nothing to compare with"
    assert [event.data["action"] for event in await world.events("step-started")].count("compare-messages") == 0
