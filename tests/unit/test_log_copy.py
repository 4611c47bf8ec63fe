"""The copy of a controller's log: which files, how private, and what happens when Kafka deletes them meanwhile."""

import stat
from pathlib import Path
from typing import Any

import pytest

from activities.adapters.nodes.local import LocalMachine
from activities.comparison.log_copy import LISTINGS, copy_log, wanted
from domain.errors import Transient


def segment(offset: int) -> str:
    return f"{offset:020}.log"


def checkpoint(offset: int) -> str:
    return f"{offset:020}-0000000003.checkpoint"


BOTH = (segment(0), segment(50), segment(100), checkpoint(50), checkpoint(120), "leader-epoch-checkpoint")


@pytest.mark.parametrize(
    ("cut", "needed"),
    [
        (49, (segment(0), segment(50), segment(100))),
        (50, (checkpoint(50), segment(50), segment(100))),
        (119, (checkpoint(50), segment(50), segment(100))),
        (120, (checkpoint(120), segment(100))),
        (500, (checkpoint(120), segment(100))),
    ],
)
def test_the_newest_checkpoint_before_the_cut_and_what_follows_it(cut: int, needed: tuple[str, ...]) -> None:
    assert wanted(BOTH, cut) == needed


@pytest.mark.parametrize("names", [(), (checkpoint(50),), (segment(50),), (segment(51), checkpoint(50))])
def test_what_is_deleted_already_is_looked_for_again_further_on(names: tuple[str, ...]) -> None:
    with pytest.raises(Transient):
        wanted(names, 60)


def written(directory: Path) -> Path:
    directory.mkdir()
    for name in BOTH:
        (directory / name).write_bytes(name.encode() * 1000)
    return directory


async def test_the_copy_is_private_and_the_same(tmp_path: Path) -> None:
    log, target = written(tmp_path / "log"), tmp_path / "copy"
    size = await copy_log(LocalMachine(), str(log), 60, target)  # type: ignore[arg-type]
    found = {path.name: path.read_bytes() for path in target.iterdir()}
    assert found == {name: (log / name).read_bytes() for name in (checkpoint(50), segment(50), segment(100))}
    assert size == sum(map(len, found.values()))
    assert stat.S_IMODE(target.stat().st_mode) == 0o700


class Deleting(LocalMachine):
    """Kafka, which deletes its oldest files while they are read: `times` times."""

    def __init__(self, log: Path, times: int) -> None:
        super().__init__()
        self._log, self.left = log, times

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None:
        if self.left and path.endswith(segment(50)):
            self.left -= 1
            return None
        return await super().read_part(path, offset, length)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


async def test_a_file_that_is_deleted_meanwhile_has_the_listing_taken_again(tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    await copy_log(Deleting(log, LISTINGS - 1), str(log), 60, tmp_path / "copy")  # type: ignore[arg-type]
    assert len(list((tmp_path / "copy").iterdir())) == 3
    with pytest.raises(Transient, match="deleted while they were copied"):
        await copy_log(Deleting(log, LISTINGS), str(log), 60, tmp_path / "again")  # type: ignore[arg-type]
    assert not (tmp_path / "again").exists()
