"""Plans: published once, with their event; and what migrations before tell of how long restarts take. On both databases."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.plans import Basis, Estimate, MeasuredStep, Plan
from domain.records import EventDraft, MigrationRecord, MigrationState, Progress
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from ledger.errors import NoSuchCluster
from ledger.ledger import SqlLedger
from playground.fakes.spec import fake_spec
from playground.wanted import wanted_of

NOW = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)


def plan_of(plan_id: str = "p1", minutes: float = 0, **fields: Any) -> Plan:
    """A plan for the cluster `orders`, made so many minutes after the first."""
    given: dict[str, Any] = {
        "id": plan_id,
        "cluster": "orders",
        "cluster_id": "c",
        "kind": "zk-to-kraft",
        "policy": ZkToKraftPolicy(stable_samples=4),
        "wanted": wanted_of(fake_spec()),
        "spec_revision": 1,
        "requested_by": "ann",
        "requested_at": NOW,
        "made_at": NOW + timedelta(minutes=minutes),
        "observation": "a" * 64,
        "phase": "PREFLIGHT",
        "is_blocked": True,
        "findings": [{"code": "PF12", "object": "broker 9", "observed": "été", "expected": "live", "fix": "start it"}],
        "rolls": (),
        "nodes": (),
        "restarts": {"broker-1": 2},
        "irreversible": (),
        "gates": (),
        "controllerless_seconds": 0.2,
        "estimate": Estimate(seconds=1.5, basis=Basis.GUESS, parts=()),
        "not_migrated": ("a",),
        "changes_for_people": ("b",),
        "basis": {"/migration": "absent"},
        "plan_hash": f"hash of {plan_id}",
    }
    return Plan.model_validate(given | fields)


@pytest.fixture
async def orders(ledger: SqlLedger, migration: MigrationRecord) -> MigrationRecord:
    """The migration of the cluster `orders`."""
    assert migration.cluster == "orders"
    return migration


@pytest.mark.usefixtures("orders")
async def test_a_plan_is_read_as_it_was_published_and_told_of(ledger: SqlLedger) -> None:
    assert await ledger.add_plan(plan_of()) == plan_of()
    assert await ledger.plan("p1") == plan_of()
    told = [event for event in await ledger.events() if event.kind == "plan-made"]
    assert [(event.cluster, event.data["plan_hash"], event.data["by"]) for event in told] == [("orders", "hash of p1", "ann")]
    assert await ledger.verify_chain() is None


@pytest.mark.usefixtures("orders")
async def test_the_first_plan_with_an_id_stands(ledger: SqlLedger) -> None:
    both = await asyncio.gather(ledger.add_plan(plan_of()), ledger.add_plan(plan_of(plan_hash="another")))
    assert both[0] == both[1] == await ledger.plan("p1")
    assert len([event for event in await ledger.events() if event.kind == "plan-made"]) == 1


async def test_there_is_no_plan_for_nobodys_cluster(ledger: SqlLedger) -> None:
    with pytest.raises(NoSuchCluster):
        await ledger.add_plan(plan_of(cluster="nobody"))
    assert await ledger.plan("p1") is None


@pytest.mark.usefixtures("orders")
async def test_plans_are_listed_newest_first_page_by_page(ledger: SqlLedger) -> None:
    for number in range(4):
        await ledger.add_plan(plan_of(f"p{number}", minutes=number // 2))
    assert [plan.id for plan in await ledger.plans("orders")] == ["p3", "p2", "p1", "p0"]
    assert [plan.id for plan in await ledger.plans(limit=2, before="p3")] == ["p2", "p1"]
    assert await ledger.plans("nobody") == []
    assert await ledger.plans(before="nothing") == []


def step(orders: MigrationRecord, number: int, **data: Any) -> EventDraft:
    given = {"step": number, "action": "roll-node", "node": "broker-1", "stage": "kraft", "seconds": float(number)} | data
    return EventDraft(key=f"step/{number}", kind="step-done", cluster=orders.cluster, at=NOW, data=given)


async def test_how_long_restarts_took_is_read_from_the_events_of_that_cluster(
    ledger: SqlLedger, orders: MigrationRecord
) -> None:
    of_cluster = EventDraft(
        key="check", kind="step-done", cluster="orders", at=NOW, data={"action": "compare-metadata", "node": "cluster"}
    )
    blocked = EventDraft(
        key="b", kind="step-blocked", cluster="orders", at=NOW, data={"node": "broker-1", "seconds": 9.0, "action": "x"}
    )
    events = [step(orders, 1), step(orders, 2, node="controller-3001", stage="migration"), of_cluster, blocked]
    await ledger.record(orders.id, events, None)
    assert await ledger.measured_steps("orders") == [
        MeasuredStep(action="roll-node", role="controller", stage="migration", seconds=2),
        MeasuredStep(action="roll-node", role="broker", stage="kraft", seconds=1),
    ]
    assert await ledger.measured_steps("payments") == []


async def test_a_migration_keeps_the_plan_that_it_was_started_with(ledger: SqlLedger, orders: MigrationRecord) -> None:
    assert orders.plan_id is None
    await ledger.end_unstarted(orders.id, MigrationState.FAILED, "made room", NOW)
    planned = orders.model_copy(update={"id": "planned", "plan_id": "p1", "progress": Progress(state=MigrationState.PLANNING)})
    await ledger.create_migration(planned)
    found = await ledger.migration("planned")
    assert found is not None
    assert found.plan_id == "p1"
