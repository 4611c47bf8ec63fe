"""The chain's arithmetic, without a database."""

import json
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from domain.records import GENESIS_HASH, Event, EventDraft, event_hash
from ledger.chain import Verification, canonical, linked

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(TEXT, values, max_size=3),
    max_leaves=8,
)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2999, 1, 1), timezones=ZONES)  # noqa: DTZ001


def drafts(count: int) -> list[EventDraft]:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return [EventDraft(key=f"e{n}", kind="t", cluster="orders", at=at, data={"n": n}) for n in range(count)]


def first_bad(entries: list[Event], head: Event) -> int | None:
    walk = Verification(head.seq, head.hash)
    walk.follow(entries)
    walk.end()
    return walk.first_bad


@given(st.dictionaries(TEXT, JSON_VALUES, max_size=4), MOMENTS, TEXT)
def test_what_is_read_back_has_the_hash_of_what_was_appended(data: dict[str, object], at: datetime, kind: str) -> None:
    draft = canonical(EventDraft(key="k", kind=kind, cluster="orders", at=at, data=data))
    read_back = draft.model_copy(update={"data": json.loads(json.dumps(draft.data)), "at": draft.at.astimezone(UTC)})
    assert event_hash(1, read_back, GENESIS_HASH) == event_hash(1, draft, GENESIS_HASH)
    assert canonical(draft) == draft


@given(st.integers(1, 12), st.data())
def test_every_change_of_one_entry_is_found_where_it_is(count: int, choices: st.DataObject) -> None:
    entries = linked(drafts(count), 0, GENESIS_HASH)
    head = entries[-1]
    assert first_bad(entries, head) is None
    place = choices.draw(st.integers(0, count - 1))
    changes = {"key": "x", "kind": "x", "cluster": "x", "migration_id": "x", "data": {}, "at": datetime.now(UTC)}
    field = choices.draw(st.sampled_from([*changes, "hash", "prev_hash", "seq"]))
    value = changes.get(field, 99 if field == "seq" else "f" * 64)
    entries[place] = entries[place].model_copy(update={field: value})
    assert first_bad(entries, head) == place + 1


@given(st.integers(1, 12), st.data())
def test_every_missing_entry_is_found_where_it_was(count: int, choices: st.DataObject) -> None:
    entries = linked(drafts(count), 0, GENESIS_HASH)
    head = entries[-1]
    start = choices.draw(st.integers(0, count - 1))
    del entries[start : choices.draw(st.integers(start + 1, count))]
    assert first_bad(entries, head) == start + 1
