"""`look_at_disk`: what lies on a node, seen through its driver."""

import pytest

from activities.node_files import (
    FENCED_META,
    META,
    archive_original,
    look_at_disk,
    mark_path,
    sha256_of,
    write_mark,
)
from activities.ports.nodes import FileContent
from domain.cluster import original_path
from domain.observed.observation import LogDir, NodeDisk, PropertiesFile, RollMark, StorageState
from playground.fakes.cluster import FakeCluster
from playground.fakes.machine import text_file
from playground.fakes.node import FakeDriver

FILE = "/etc/broker-1/server.properties"
DATA = "/var/lib/broker-1"
META_DIR = "/meta/broker-1"
OURS = "version=1\ncluster.id=abc\nnode.id=1\n"
THEIRS = "version=1\ncluster.id=xyz\nnode.id=1\n"


@pytest.fixture
def driver() -> FakeDriver:
    cluster = FakeCluster()
    return cluster.driver(cluster.spec.brokers[0])


async def look(driver: FakeDriver) -> NodeDisk:
    return await look_at_disk(driver, FILE, (DATA,), "abc", 1)


async def data_dir(driver: FakeDriver, **files: str) -> LogDir:
    """The directory with these files alone, if any; `meta` and `fenced` stand for their names."""
    await driver.remove_tree(DATA)
    for name, text in files.items():
        path = {"meta": META, "fenced": FENCED_META}.get(name, name)
        await driver.write_file(f"{DATA}/{path}", text_file(text))
    return (await look(driver)).log_dirs[0]


async def file_of(driver: FakeDriver) -> PropertiesFile:
    found = (await look(driver)).file
    assert found is not None
    return found


def mark(original: str | None) -> RollMark:
    return RollMark(
        step_id="s", generation=1, stage="kraft", before_identity=None, before_sha256="b", written_sha256="w",
        original_sha256=original,
    )  # fmt: skip


# ---- log directories ----


async def test_a_fenced_directory_stays_whose_it_is(driver: FakeDriver) -> None:
    ours, theirs = await data_dir(driver, fenced=OURS, log="x"), await data_dir(driver, fenced=THEIRS)
    assert (ours.state, ours.cluster_id, ours.node_id, ours.is_fenced) == (StorageState.OURS, "abc", 1, True)
    assert (theirs.state, theirs.cluster_id, theirs.is_fenced) == (StorageState.FOREIGN, "xyz", True)


async def test_a_fence_with_a_way_around_it_is_none(driver: FakeDriver) -> None:
    """Formatted anew beside the fence: a controller can start there."""
    found = await data_dir(driver, fenced=OURS, meta=THEIRS)
    assert (found.state, found.cluster_id, found.is_fenced) == (StorageState.FOREIGN, "xyz", False)


async def test_an_unfenced_directory(driver: FakeDriver) -> None:
    assert (await data_dir(driver, meta=OURS)).is_fenced is False
    assert (await data_dir(driver, meta=OURS)).state is StorageState.OURS
    assert (await data_dir(driver, log="x")).state is StorageState.FOREIGN
    assert (await data_dir(driver)).state is StorageState.ABSENT
    await driver.make_dir(DATA)
    assert (await look(driver)).log_dirs[0].state is StorageState.EMPTY


async def test_the_quorums_log_is_seen_with_and_without_an_owner(driver: FakeDriver) -> None:
    assert not (await data_dir(driver, meta=OURS)).has_metadata_log
    await driver.make_dir(f"{DATA}/__cluster_metadata-0")
    assert (await look(driver)).log_dirs[0].has_metadata_log
    await driver.remove_file(f"{DATA}/{META}")
    assert (await look(driver)).log_dirs[0].has_metadata_log


async def test_a_directory_of_its_own_for_the_quorums_log_is_looked_at_too(driver: FakeDriver) -> None:
    await driver.write_file(FILE, text_file(f"broker.id=1\nmetadata.log.dir={META_DIR}\n"))
    assert [d.path for d in (await look(driver)).log_dirs] == [DATA], "nothing is in it"
    await driver.write_file(f"{META_DIR}/{META}", text_file(OURS))
    await driver.make_dir(f"{META_DIR}/__cluster_metadata-0")
    found = (await look(driver)).log_dirs
    assert [(d.path, d.has_metadata_log) for d in found] == [(DATA, False), (META_DIR, True)]
    await driver.write_file(FILE, text_file(f"broker.id=1\nmetadata.log.dir={DATA}\n"))
    assert [d.path for d in (await look(driver)).log_dirs] == [DATA], "one of the others is not counted twice"


# ---- the original ----


async def test_an_original_is_found_by_the_mark_among_several(driver: FakeDriver) -> None:
    first, second = text_file("first=1\n"), text_file("second=2\n")
    for file in (first, second):
        await archive_original(driver, FILE, file)
    assert (await file_of(driver)).original_sha256 is None, "nothing says which of the two it is"
    for file in (first, second):
        await write_mark(driver, FILE, mark(sha256_of(file.content)), file)
        assert (await file_of(driver)).original_sha256 == sha256_of(file.content)


async def test_the_only_original_is_the_one_also_without_a_mark(driver: FakeDriver) -> None:
    file = text_file("first=1\n")
    assert (await file_of(driver)).original_sha256 is None
    await archive_original(driver, FILE, file)
    assert (await file_of(driver)).original_sha256 == sha256_of(file.content)
    await write_mark(driver, FILE, mark(None), file)
    assert (await file_of(driver)).original_sha256 == sha256_of(file.content)
    await driver.write_file(mark_path("/etc/broker-1/other.properties"), text_file("{}"))
    await archive_original(driver, "/etc/broker-1/other.properties", text_file("other"))
    assert (await file_of(driver)).original_sha256 == sha256_of(file.content), "another file's is not this one's"


async def test_an_original_that_does_not_read_back_is_none(driver: FakeDriver) -> None:
    file, other = text_file("first=1\n"), text_file("second=2\n")
    sha256 = await archive_original(driver, FILE, file)
    await archive_original(driver, FILE, other)
    await write_mark(driver, FILE, mark(sha256), file)
    await driver.write_file(original_path(FILE, sha256), FileContent(b"first=2\n", 0o600, 0, 0))
    assert (await file_of(driver)).original_sha256 is None
    await driver.remove_file(original_path(FILE, sha256))
    assert (await file_of(driver)).original_sha256 is None, "the one that is left is not the one that the mark names"
