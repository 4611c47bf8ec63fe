"""Keys, sessions, answered calls and four eyes in the ledger, on SQLite and on a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import pytest

from domain.approvals import Attempt
from domain.principals import ApiKey, Role, Session, Via
from domain.records import ApprovalState, Command, CommandKind, EventDraft, MigrationRecord, MigrationState
from domain.zk_to_kraft.steps import GateName
from ledger.answered_calls import ABANDONED_AFTER, KEPT_FOR, Begun, KeptAnswer, KeyedCall
from ledger.database import Database, Timeouts
from ledger.ledger import SqlLedger
from ledger.people import SqlPeople

EVIDENCE = "e" * 64
DAY = timedelta(days=1)


@pytest.fixture
async def people(ledger: SqlLedger, database_url: str) -> AsyncIterator[SqlPeople]:
    database = Database(database_url, Timeouts(call=timedelta(seconds=30), lock=timedelta(seconds=30)))
    yield SqlPeople(database)
    await database.close()


def a_key(name: str = "k1", life: timedelta = DAY, **fields: object) -> ApiKey:
    now = datetime.now(UTC)
    given = {"id": name, "principal": "anna", "secret_hash": "0" * 64, "roles": (Role.ADMIN,), "created_by": "tests"}
    return ApiKey.model_validate(given | {"created_at": now, "expires_at": now + life} | fields)


def made(key: ApiKey) -> EventDraft:
    return EventDraft(key=f"key/{key.id}", kind="key-made", cluster="", at=key.created_at)


async def test_a_key_is_read_as_it_was_written_and_revoked_once(people: SqlPeople) -> None:
    key = a_key(clusters=("orders",), roles=(Role.VIEWER,))
    await people.add_key(key, made(key))
    assert await people.key("k1") == key
    revoked = await people.revoke("k1", "zoe")
    assert revoked is not None
    assert (revoked.revoked_by, revoked.is_valid(datetime.now(UTC))) == ("zoe", False)
    assert await people.revoke("k1", "berta") == revoked
    assert await people.revoke("nobody's", "zoe") is None
    assert [one.id for one in await people.all_keys()] == ["k1"]


async def test_of_copies_that_start_together_one_makes_the_first_key(people: SqlPeople) -> None:
    candidates = [a_key(f"k{number}") for number in range(6)]
    taken = await asyncio.gather(*(people.add_first_key(key, made(key)) for key in candidates))
    assert sum(taken) == 1
    assert len(await people.all_keys()) == 1


@pytest.mark.parametrize(
    "change", [{"life": timedelta(0)}, {"revoked_at": datetime(2026, 1, 1, tzinfo=UTC)}, {"roles": ["viewer"]}]
)
async def test_a_first_key_is_made_again_where_no_admin_has_a_valid_one(people: SqlPeople, change: dict[str, object]) -> None:
    key = a_key("old", **change)  # type: ignore[arg-type]
    await people.add_key(key, made(key))
    assert not await people.has_admin()
    new = a_key("new")
    assert await people.add_first_key(new, made(new))
    assert await people.has_admin()


async def test_a_session_lives_as_long_as_its_key(people: SqlPeople) -> None:
    key, now = a_key(), datetime.now(UTC)
    await people.add_key(key, made(key))
    given = {"principal": "anna", "roles": (Role.VIEWER,), "created_at": now}
    lasting = Session(id="a", key_id="k1", expires_at=now + DAY, **given)
    for session in (lasting, Session(id="b", expires_at=now + DAY, **given), Session(id="c", expires_at=now, **given)):
        await people.add_session(session)
    assert await people.session("a") == lasting
    assert [await people.session(name) for name in ("c", "nobody's")] == [None, None]
    await people.end_session("b")
    assert await people.session("b") is None
    await people.revoke("k1", "zoe")
    assert await people.session("a") is None


async def test_of_equal_calls_that_race_one_has_the_key(people: SqlPeople) -> None:
    call = KeyedCall("mine", "anna", "hash")
    begun = await asyncio.gather(*(people.begin_call(call) for _ in range(6)))
    assert [isinstance(one, Begun) for one in begun].count(True) == 1
    await people.end_call("mine", 202, "/migrations/1", "{}")
    kept = await people.begin_call(KeyedCall("mine", "olga", "other"))
    assert isinstance(kept, KeptAnswer)
    assert (kept.call, kept.status, kept.location, kept.body) == (call, 202, "/migrations/1", "{}")
    await people.forget_call("mine")
    assert isinstance(await people.begin_call(call), Begun)


async def test_a_call_whose_process_died_gives_its_key_back_and_an_answer_is_kept_for_a_day(
    database_url: str, ledger: SqlLedger, people: SqlPeople
) -> None:
    call = KeyedCall("mine", "anna", "hash")
    begun = await people.begin_call(call)
    assert isinstance(await people.begin_call(call), KeptAnswer)
    database = Database(database_url, Timeouts(call=timedelta(seconds=30), lock=timedelta(seconds=30)))
    try:
        later = SqlPeople(database, lambda: datetime.now(UTC) + ABANDONED_AFTER * 2)
        assert await later.begin_call(call) == begun
        assert isinstance(await later.begin_call(KeyedCall("mine", "anna", "other")), KeptAnswer)
        await later.end_call("mine", 201, None, "{}")
        assert isinstance(await later.begin_call(call), KeptAnswer)
        much_later = SqlPeople(database, lambda: datetime.now(UTC) + KEPT_FOR * 2)
        assert await much_later.begin_call(call) not in (begun, None)
    finally:
        await database.close()


async def test_a_call_that_may_have_happened_is_repeated_as_the_same_one(people: SqlPeople) -> None:
    call = KeyedCall("mine", "anna", "hash")
    begun = await people.begin_call(call)
    await people.lose_call("mine")
    assert await people.begin_call(call) == begun
    assert isinstance(await people.begin_call(KeyedCall("mine", "anna", "other")), KeptAnswer)


# ---- Four eyes ----


def an_approval(migration_id: str, by: str, via: Via = Via.KEY) -> Command:
    given = {"gate": GateName.FINALIZE, "evidence_hash": EVIDENCE, "reason": "why", "at": datetime.now(UTC)}
    return Command(id=by, migration_id=migration_id, kind=CommandKind.APPROVE, by=by, via=via, **given)


async def test_with_the_first_key_only_identities_count(
    ledger: SqlLedger, people: SqlPeople, migration: MigrationRecord
) -> None:
    await ledger.claim(migration.id, "run-1", datetime.now(UTC))
    await ledger.add_command(an_approval(migration.id, "local", Via.LOCAL))
    key = a_key()
    await people.add_first_key(key, made(key))
    before = await ledger.command("local")
    assert before is not None
    assert before.closed_as is ApprovalState.VOID
    (told,) = [event for event in await ledger.events(migration.id) if event.kind == "approval-void"]
    assert (told.data["command"], told.data["why"]) == ("local", before.closed_because)
    refused = await ledger.add_command(an_approval(migration.id, "signalled", Via.SIGNAL))
    assert "without authentication" in (refused.refused_because or "")
    own = await ledger.add_command(an_approval(migration.id, migration.requested_by))
    assert "another person" in (own.refused_because or "")
    await ledger.add_command(an_approval(migration.id, "berta"))
    attempt = Attempt("s1", migration.id, "orders", 1, GateName.FINALIZE, "berta", EVIDENCE)
    assert await ledger.consume_approval(attempt) is None


async def test_of_two_people_that_a_gate_needs_both_are_closed_with_it(
    ledger: SqlLedger, people: SqlPeople, migration: MigrationRecord, make_migration: Callable[..., MigrationRecord]
) -> None:
    key = a_key()
    await people.add_first_key(key, made(key))
    two = migration.policy.model_copy(update={"approvers": {GateName.FINALIZE: 2}})
    await ledger.end_unstarted(migration.id, MigrationState.FAILED, "made way", datetime.now(UTC))
    record = make_migration(policy=two, requested_by="olga")
    await ledger.create_migration(record)
    await ledger.claim(record.id, "run-1", datetime.now(UTC))
    for name in ("anna", "berta"):
        assert (await ledger.add_command(an_approval(record.id, name))).refused_because is None
    attempt = Attempt("s1", record.id, "orders", 1, GateName.FINALIZE, "berta", EVIDENCE)
    assert await ledger.consume_approval(attempt) is None
    over = EventDraft(key="done", kind="approval-done", cluster="orders", at=datetime.now(UTC), data={"command": "berta"})
    await ledger.record(record.id, [over.model_copy(update={"migration_id": record.id})], record.progress)
    assert [one.closed_as for one in await ledger.commands(record.id)] == [ApprovalState.DONE, ApprovalState.DONE]
