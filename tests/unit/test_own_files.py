"""Whether the ledger's files were deleted under us: told of what stays so, and of no connection that is just closing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import own_files
from ledger.own_files import deleted_elsewhere, deleted_here


@pytest.mark.parametrize(("is_closing", "told"), [(True, ("",)), (False, ("{}-shm",))])
@pytest.mark.parametrize("ask", [deleted_here, lambda path: deleted_elsewhere(path).get(7, ())])
def test_what_the_last_who_closes_them_unlinks_is_not_lost(
    ask: Callable[[str], tuple[str, ...]],
    is_closing: bool,
    told: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SQLite unlinks -shm a moment before it closes it (unixShmUnmap), and another thread opens the ledger meanwhile."""
    path = str(tmp_path / "ledger.db")
    looks = 0

    def opened(process: str) -> set[str]:
        nonlocal looks
        looks += 1
        is_it = process == ("self" if ask is deleted_here else "7")
        return {f"{path}-shm (deleted)"} if is_it and (not is_closing or looks <= 2) else set()

    monkeypatch.setattr(own_files, "_opened", opened)
    monkeypatch.setattr(own_files, "_names", lambda _: ["7", "self"])
    monkeypatch.setattr(own_files, "_has_our_mounts", lambda _: True)
    assert ask(path) == tuple(name.format(path) for name in told if name)
