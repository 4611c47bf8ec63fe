"""Which files of a ZooKeeper server are copied, and that a copy is sparse, whole, and begun anew when files are purged."""

from pathlib import Path

import pytest

from activities import on_node
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.nodes.local import LocalMachine
from activities.diagnosis.machines import member_files
from activities.observing.member_copy import copy_member, needed_logs, newest_snapshots
from domain.cluster import ZooKeeperMemberSpec, ZooKeeperSpec
from domain.diagnosis.causes.hints import MemberFiles, Serving
from domain.errors import Permanent, Transient

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("names", "snapshots", "logs"),
    [
        (("snapshot.0", "log.1"), ("snapshot.0",), ("log.1",)),
        (("log.1", "log.2b"), (), ("log.1", "log.2b")),
        (
            ("snapshot.5", "snapshot.1f", "snapshot.a", "snapshot.ff", "log.1", "log.6", "log.b", "log.20", "currentEpoch"),
            ("snapshot.a", "snapshot.1f", "snapshot.ff"),
            ("log.6", "log.b", "log.20"),
        ),
        (("snapshot.a.gz", "log.a"), ("snapshot.a.gz",), ("log.a",)),
    ],
)
def test_the_newest_snapshots_and_what_follows_the_oldest_of_them(
    names: tuple[str, ...], snapshots: tuple[str, ...], logs: tuple[str, ...]
) -> None:
    assert newest_snapshots(names) == snapshots
    assert needed_logs(names, snapshots) == logs


@pytest.fixture
def member(tmp_path: Path) -> ZooKeeperMemberSpec:
    data, logs = tmp_path / "data" / "version-2", tmp_path / "logs" / "version-2"
    data.mkdir(parents=True)
    logs.mkdir(parents=True)
    (data / "snapshot.5").write_bytes(b"ZKSN" * 100_000)
    with (logs / "log.6").open("wb") as log:
        log.write(b"ZKLG" + bytes(5 * MIB) + b"last")
        log.truncate(64 * MIB)
    return ZooKeeperMemberSpec(host="here", data_dir=str(tmp_path / "data"), data_log_dir=str(tmp_path / "logs"))


async def test_a_copy_is_the_same_and_takes_no_more_room(member: ZooKeeperMemberSpec, tmp_path: Path) -> None:
    copied = await copy_member(LocalMachine(), member, tmp_path / "copy")
    assert copied == 400_000 + 64 * MIB
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {"snapshot.5", "log.6"}
    for name, folder in (("snapshot.5", "data"), ("log.6", "logs")):
        assert (tmp_path / "copy" / name).read_bytes() == (tmp_path / folder / "version-2" / name).read_bytes()
    assert sum(path.stat().st_blocks * 512 for path in (tmp_path / "copy").iterdir()) < 2 * MIB
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700


async def test_no_files_of_zookeeper_is_said_with_the_place(tmp_path: Path) -> None:
    nowhere = ZooKeeperMemberSpec(host="here", data_dir=str(tmp_path / "no"))
    with pytest.raises(Permanent, match="version-2 on here has no files of ZooKeeper"):
        await copy_member(LocalMachine(), nowhere, tmp_path / "copy")


class Purging(LocalMachine):
    """The first file that is read is gone, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None:
        if self.left:
            self.left -= 1
            return None
        return await super().read_part(path, offset, length)


async def test_files_that_are_purged_meanwhile_are_listed_anew(member: ZooKeeperMemberSpec, tmp_path: Path) -> None:
    assert await copy_member(Purging(4), member, tmp_path / "copy") > 0
    with pytest.raises(Transient, match="were purged while they were copied"):
        await copy_member(Purging(5), member, tmp_path / "copy")


async def test_of_a_member_that_does_not_serve_it_is_said_whether_more_can_be_written(
    member: ZooKeeperMemberSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ZooKeeperSpec(connect="here:2181", members=(member,))
    (Path(member.data_dir) / "myid").write_text("3\n")
    silent: list[str] = []
    (files,) = (await member_files(SpecDrivers(), spec, {"here:2181": Serving.REFUSED}, silent)).values()
    assert (files, silent) == (MemberFiles("3"), [])
    told = 'print(\'{"full": ["/zk"], "read_only": []}\')'
    monkeypatch.setattr(on_node, "program", lambda _: told)
    (files,) = (await member_files(SpecDrivers(), spec, {"here:2181": Serving.REFUSED}, silent)).values()
    assert files == MemberFiles("3", full=("/zk",))
    (files,) = (await member_files(SpecDrivers(), spec, {"here:2181": Serving.YES}, silent)).values()
    assert files == MemberFiles("3")
