"""Approvals in the ledger: of two that race one wins, on SQLite and on a real PostgreSQL."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.approvals import Attempt, state_of
from domain.records import ApprovalState, Command, CommandKind, EventDraft, MigrationRecord
from domain.zk_to_kraft.steps import GateName
from ledger.ledger import SqlLedger

NOW = datetime(2026, 3, 1, 3, 0, 0, tzinfo=UTC)
EVIDENCE = "e" * 64


def a_command(migration_id: str, kind: CommandKind, name: str, **fields: Any) -> Command:
    given = {"id": name, "migration_id": migration_id, "kind": kind, "by": "anna", "via": "api", "at": NOW, "reason": "why"}
    return Command.model_validate(given | fields)


def an_approval(migration_id: str, name: str = "a", gate: GateName = GateName.FINALIZE) -> Command:
    return a_command(migration_id, CommandKind.APPROVE, name, gate=gate, evidence_hash=EVIDENCE)


def an_attempt(migration_id: str, name: str = "a", step: str = "m1/7", generation: int = 1) -> Attempt:
    lifted = tuple(f"lift-{number}" for number in range(12))
    return Attempt(step, migration_id, "orders", generation, GateName.FINALIZE, name, EVIDENCE, lifted, is_in_section=True)


@pytest.fixture
async def claimed(ledger: SqlLedger, migration: MigrationRecord) -> MigrationRecord:
    await ledger.claim(migration.id, "run-1", NOW)
    return migration


async def state(ledger: SqlLedger, name: str = "a") -> ApprovalState | None:
    command = await ledger.command(name)
    return state_of(command, datetime.now(UTC)) if command is not None else None


async def kinds(ledger: SqlLedger, migration_id: str) -> list[str]:
    return [event.kind for event in await ledger.events(migration_id)]


async def test_an_approval_is_consumed_once_and_a_retry_goes_on(ledger: SqlLedger, claimed: MigrationRecord) -> None:
    await ledger.add_command(an_approval(claimed.id))
    for step in ("m1/7", "m1/7", "m1/8"):
        assert await ledger.consume_approval(an_attempt(claimed.id, step=step)) is None
    stored = await ledger.command("a")
    assert stored is not None
    assert (stored.consumed_by, stored.consumed_at is not None, await state(ledger)) == ("m1/7", True, "consumed")
    assert await kinds(ledger, claimed.id) == ["approval-consumed"]


@pytest.mark.parametrize(
    ("kind", "loses"), [(CommandKind.HOLD, ApprovalState.VOID), (CommandKind.REJECT, ApprovalState.WITHDRAWN)]
)
async def test_of_a_person_and_an_attempt_that_race_one_wins(
    ledger: SqlLedger, claimed: MigrationRecord, kind: CommandKind, loses: ApprovalState
) -> None:
    """The ledger tells the second one what the first did."""
    seen = set()
    for number in range(12):
        name, gate = f"a{number}", GateName.FINALIZE if kind is CommandKind.REJECT else None
        await ledger.add_command(an_approval(claimed.id, name))
        against = a_command(claimed.id, kind, f"against-{number}", gate=gate)
        both = [ledger.add_command(against), ledger.consume_approval(an_attempt(claimed.id, name))]
        both = both if number % 2 else both[::-1]
        answers = await asyncio.gather(*both)
        said, why_not = answers if number % 2 else answers[::-1]
        assert isinstance(said, Command)
        became = await state(ledger, name)
        seen.add(became)
        if became is ApprovalState.CONSUMED:
            assert why_not is None
            told = said.refused_because if kind is CommandKind.REJECT else said.gate
            assert told is not None, "the answer says that it comes too late, or takes effect afterwards"
        else:
            assert became is loses
            assert f"is {loses}" in str(why_not)
        done = EventDraft(
            key=f"d{number}", kind="approval-done", cluster="orders", at=NOW, data={"command": name, "why": "end"}
        )
        await ledger.record(claimed.id, [done], None)
        lift = a_command(claimed.id, CommandKind.RESUME, f"lift-{number}")
        assert (await ledger.add_command(lift)).refused_because is None
    print("became:", sorted(str(one) for one in seen))


async def test_a_hold_is_an_event_with_what_it_voids(ledger: SqlLedger, claimed: MigrationRecord) -> None:
    await ledger.add_command(an_approval(claimed.id))
    await ledger.add_command(a_command(claimed.id, CommandKind.HOLD, "h"))
    (told,) = await ledger.events(claimed.id)
    assert (told.kind, told.data["command"], told.data["gate"]) == ("approval-void", "a", "finalize")
    assert told.data["why"] == "held by anna: why"


async def test_a_replayed_approval_stays_withdrawn(ledger: SqlLedger, claimed: MigrationRecord) -> None:
    given = await ledger.add_command(an_approval(claimed.id))
    await ledger.add_command(a_command(claimed.id, CommandKind.REJECT, "r", gate=GateName.FINALIZE))
    again = await ledger.add_command(given)
    assert (again.closed_as, again.closed_because) == ("withdrawn", "rejected by anna: why")
    assert "is withdrawn" in str(await ledger.consume_approval(an_attempt(claimed.id)))
    assert await ledger.open_approvals([claimed.id]) == []


async def test_an_older_generation_consumes_nothing(ledger: SqlLedger, claimed: MigrationRecord) -> None:
    await ledger.add_command(an_approval(claimed.id))
    assert "generation" in str(await ledger.consume_approval(an_attempt(claimed.id, generation=0)))
    assert await state(ledger) is ApprovalState.ARMED


async def test_what_a_run_tells_closes_what_it_names(ledger: SqlLedger, claimed: MigrationRecord) -> None:
    """Told twice it is one event and one closing; of what was consumed meanwhile the section has ended."""
    for name, gate in (("a", GateName.FINALIZE), ("b", GateName.FAIL_OVER)):
        await ledger.add_command(an_approval(claimed.id, name, gate))
    await ledger.consume_approval(an_attempt(claimed.id))
    told = [
        EventDraft(key=f"run:{name}", kind="approval-void", cluster="orders", at=NOW, data={"command": name, "why": "other"})
        for name in ("a", "b")
    ]
    for _ in range(2):
        await ledger.record(claimed.id, told, None)
    assert [await state(ledger, name) for name in ("a", "b")] == ["done", "void"]
    assert (await kinds(ledger, claimed.id)).count("approval-void") == 2
