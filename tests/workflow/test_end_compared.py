"""The comparison after the end: tried once, told, and no reason to wait: the migration has succeeded whatever it finds."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from uuid_utils import uuid7

from domain.drift.report import CheckName, Verdict
from domain.errors import Permanent
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.steps import StepAction
from tests.workflow.conftest import FAST


@pytest.fixture
async def soaking(make_world: Callable[..., Any]) -> Any:
    world = make_world(controllers=1, policy=FAST.model_copy(update={"recheck_interval": timedelta(seconds=3)}))
    await world.lead_to(Phase.SOAK)
    return world


async def ended(world: Any) -> list[tuple[str, str]]:
    """Events of the comparison after the end, once the migration has succeeded."""
    assert await world.result() == "succeeded"
    told = [event for event in await world.events() if event.data.get("action") == StepAction.COMPARE_END]
    return [(event.kind, str(event.data.get("verdict") or event.data.get("why", ""))) for event in told]


@pytest.mark.parametrize("verdict", Verdict)
async def test_a_migration_succeeds_whatever_it_finds(soaking: Any, verdict: Verdict) -> None:
    soaking.checks.of_end = verdict
    await soaking.begin()
    await soaking.approve_gate()
    assert await ended(soaking) == [("step-started", ""), ("step-done", verdict)]
    alerts = [event.data["code"] for event in await soaking.events("alert")]
    assert alerts == (["GF22"] if verdict is Verdict.DRIFT else [])
    (report,) = [r for r in await soaking.book.reports() if r.check is CheckName.END]
    assert report.verdict == verdict


async def test_one_that_fails_for_good_is_told_and_not_tried_again(soaking: Any) -> None:
    soaking.checks.at_end = Permanent("the log before the offset is gone")
    await soaking.begin()
    await soaking.approve_gate()
    assert await ended(soaking) == [("step-started", ""), ("step-blocked", "the log before the offset is gone")]
    assert not await soaking.events("held")


async def test_an_order_does_not_drop_it(soaking: Any) -> None:
    """It has no effect that could be held. The hold takes effect after it, and once resumed nothing is compared again."""
    await soaking.begin()
    gate = await soaking.until_gate()
    soaking.checks.is_begun.clear()
    soaking.checks.is_free.clear()
    await soaking.approve(gate.evidence_hash)
    await soaking.checks.is_begun.wait()
    await soaking.hold()
    soaking.checks.is_free.set()
    await soaking.until_waiting("held")
    await soaking.resume()
    assert await ended(soaking) == [("step-started", ""), ("step-done", "clean")]


async def test_who_finds_the_end_there_compares_nothing(soaking: Any) -> None:
    await soaking.begin()
    await soaking.approve_gate()
    assert await soaking.result() == "succeeded"
    soaking.migration_id = str(uuid7())
    await soaking.register()
    await soaking.start()
    assert await ended(soaking) == []
