"""`ArtefactStore`: a directory, and memory."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from activities.adapters.artefacts import DirectoryArtefacts
from activities.ports.stores import ArtefactStore
from domain.errors import Permanent
from playground.fakes.artefacts import FakeArtefacts


@pytest.fixture(params=["directory", "fake"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtefactStore:
    return DirectoryArtefacts(tmp_path / "artefacts") if request.param == "directory" else FakeArtefacts()


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"x" * 1_000_000])
async def test_what_is_put_comes_back_by_its_hash(store: ArtefactStore, content: bytes) -> None:
    name = await store.put(content)
    assert name == hashlib.sha256(content).hexdigest()
    assert await store.get(name) == content


async def test_putting_again_is_fine_also_at_once(store: ArtefactStore) -> None:
    names = await asyncio.gather(*(store.put(b"same") for _ in range(20)))
    assert len(set(names)) == 1
    assert await store.get(names[0]) == b"same"


@pytest.mark.parametrize("name", ["0" * 64, "../../etc/passwd", "", "A" * 64, "0" * 63])
async def test_what_is_not_there_is_permanent(store: ArtefactStore, name: str) -> None:
    with pytest.raises(Permanent):
        await store.get(name)


async def test_of_one_that_was_cleaned_away_it_is_told_what_goes_on_without_it(tmp_path: Path) -> None:
    store = DirectoryArtefacts(tmp_path)
    name, _ = await store.put(b"evidence"), await store.put(b"another")
    (tmp_path / name[:2] / name).unlink()
    with pytest.raises(Permanent, match=r"it has others\. If it was cleaned.*restore that file.*compare_messages"):
        await store.get(name)


async def test_of_one_that_another_process_has_put_elsewhere_the_setting_is_told(tmp_path: Path) -> None:
    """As where a program was started by another user, below whose HOME it looks."""
    name = await DirectoryArtefacts(tmp_path / "kafka").put(b"evidence")
    with pytest.raises(Permanent, match=r"not in \S+root; it has none at all: .* KEEPERLESS_ARTEFACTS .* HOME"):
        await DirectoryArtefacts(tmp_path / "root").get(name)


async def test_a_changed_file_is_noticed_and_can_be_put_again(tmp_path: Path) -> None:
    store = DirectoryArtefacts(tmp_path)
    name = await store.put(b"evidence")
    (tmp_path / name[:2] / name).write_bytes(b"forged")
    with pytest.raises(Permanent, match="another hash"):
        await store.get(name)
    await store.put(b"evidence")
    assert await store.get(name) == b"evidence"


async def test_a_put_leaves_nothing_else_behind(tmp_path: Path) -> None:
    store = DirectoryArtefacts(tmp_path)
    names = [await store.put(bytes([n])) for n in range(10)]
    assert sorted(_files_below(tmp_path)) == sorted(names)


def _files_below(directory: Path) -> list[str]:
    return [path.name for path in directory.rglob("*") if path.is_file()]
