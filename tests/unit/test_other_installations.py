"""Two installations that lead one cluster: whoever sees the other's mark on a node touches nothing more."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from activities.looking import ensure_sole_leader
from domain.contracts import AssessRequest
from domain.errors import Unsafe
from domain.observed.observation import Observation
from domain.records import CommandKind
from tests.unit.blocked import DUAL
from tests.unit.conftest import NOW, mark_of, with_part

REQUEST = AssessRequest(kind="zk-to-kraft", migration_id="ours", cluster="orders", generation=1)
MINUTE = timedelta(minutes=1)


class Book:
    """A ledger that knows of `ours`, which began a minute ago, and of `before`. `resumed`: minutes since."""

    def __init__(self, *resumed: int) -> None:
        self._resumed = resumed

    async def migration(self, migration_id: str) -> Any:
        known = {"ours": SimpleNamespace(started_at=NOW - MINUTE), "before": SimpleNamespace(started_at=None)}
        return known.get(migration_id)

    async def commands(self, _: str) -> list[Any]:
        return [SimpleNamespace(kind=CommandKind.RESUME, refused_because=None, at=NOW - n * MINUTE / 60) for n in self._resumed]


async def asked(seen: Observation, request: AssessRequest = REQUEST, book: Book | None = None) -> None:
    await ensure_sole_leader(request, seen, cast("Any", book or Book()))


def seen_with(owner: str, seconds_ago: int | None) -> Observation:
    at = NOW - timedelta(seconds=seconds_ago) if seconds_ago is not None else None
    disk = DUAL.node(2).disk
    assert disk is not None
    assert disk.file is not None
    mark = mark_of(disk.file.sha256).model_copy(update={"step_id": f"{owner}/7", "marked_at": at})
    return with_part(DUAL, 2, disk=disk.model_copy(update={"file": disk.file.model_copy(update={"mark": mark})}))


async def test_a_mark_of_a_migration_that_nobody_here_knows_stops_ours() -> None:
    with pytest.raises(Unsafe, match=r"node 2 was marked at .* by migration theirs, which this ledger does not know"):
        await asked(seen_with("theirs", 10))


@pytest.mark.parametrize(
    ("owner", "seconds_ago"),
    [("theirs", 61), ("theirs", None), ("before", 10), ("ours", 10)],
    ids=["before ours began", "by an older release", "of this installation", "our own"],
)
async def test_no_other_mark_does(owner: str, seconds_ago: int | None) -> None:
    await asked(seen_with(owner, seconds_ago))


async def test_whoever_resumes_has_seen_to_it() -> None:
    await asked(seen_with("theirs", 10), book=Book(5))
    with pytest.raises(Unsafe):
        await asked(seen_with("theirs", 10), book=Book(20))


async def test_half_a_way_back_is_no_place_to_rest() -> None:
    order: Any = SimpleNamespace()
    await asked(seen_with("theirs", 10), REQUEST.model_copy(update={"revert": order}))
