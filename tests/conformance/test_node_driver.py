"""`NodeDriver`: what every implementation does. `local` runs real processes; `fake` is the simulated cluster's."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psutil
import pytest

from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.nodes.local import LocalMachine
from activities.adapters.nodes.scripts import SIGNAL, START
from activities.ports.nodes import Completed, FileContent, NodeDriver
from domain.cluster import BrokerSpec, ClusterSpec
from domain.errors import Permanent, Transient
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from playground.processes import wait_until

T = TypeVar("T")

DEADLINE = timedelta(seconds=5)
LAST_WORDS = ("cannot bind", "giving up")


class Nodes(Protocol):
    """Makes nodes whose process behaves in a certain way, and looks behind the driver's back."""

    @property
    def folder(self) -> str: ...

    def serving(self) -> NodeDriver: ...

    def dying_at_start(self) -> NodeDriver: ...

    def deaf_to_stop(self) -> NodeDriver: ...

    def processes_started(self) -> int: ...


@dataclass
class LocalNodes:
    directory: Path

    @property
    def folder(self) -> str:
        return str(self.directory)

    def serving(self) -> NodeDriver:
        return self.running("tail", "-f", "{properties}")

    def dying_at_start(self) -> NodeDriver:
        return self.running("sh", "-c", "; ".join(f"echo {line}" for line in LAST_WORDS), "sh", "{properties}")

    def deaf_to_stop(self) -> NodeDriver:
        return self.running("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done", "sh", "{properties}")

    def running(self, *command: str) -> NodeDriver:
        self.properties.write_text("\n".join(f"line={n}" for n in range(20)) + "\n")
        return SpecDrivers().driver(local_node(self.directory, *command))

    @property
    def properties(self) -> Path:
        return self.directory / "server.properties"

    def processes_started(self) -> int:
        return len(self.alive())

    def alive(self) -> list[psutil.Process]:
        """Processes that have our file among their arguments; the directory is this test's alone."""
        return [p for p in psutil.process_iter(["cmdline"]) if str(self.properties) in (p.info["cmdline"] or ())]


def local_node(directory: Path, *command: str) -> BrokerSpec:
    spec: ClusterSpec = fake_spec()
    service = {
        "start_command": command,
        "pid_file": str(directory / "run" / "node.pid"),
        "output_file": str(directory / "logs" / "node.out"),
    }
    fields = {
        "driver": {"service": service},
        "properties_file": str(directory / "server.properties"),
        "environment": {"GREETING": "hello"},
    }
    return BrokerSpec.model_validate(spec.brokers[0].model_dump() | fields)


class FakeNodes:
    """A broker of a simulated cluster that has not been started yet."""

    folder = "/srv/node"

    def __init__(self) -> None:
        self._cluster = FakeCluster()
        node = self._cluster.nodes[1]
        node.process, node.last_identity, node.starts, node.output = None, None, 0, []

    def serving(self) -> NodeDriver:
        return self._cluster.driver(self._cluster.spec.node(1))

    def dying_at_start(self) -> NodeDriver:
        self._cluster.faults.dies_at_start[1] = LAST_WORDS
        return self.serving()

    def deaf_to_stop(self) -> NodeDriver:
        self._cluster.faults.ignores_stop.add(1)
        return self.serving()

    def processes_started(self) -> int:
        return self._cluster.nodes[1].starts


@pytest.fixture(params=["local", "fake"])
async def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Nodes]:
    if request.param == "fake":
        yield FakeNodes()
        return
    local = LocalNodes(tmp_path)
    yield local
    for process in local.alive():
        process.kill()


# ---- files ----


async def test_what_is_not_there_is_none(nodes: Nodes) -> None:
    driver = nodes.serving()
    assert await driver.read_file(f"{nodes.folder}/absent") is None
    assert await driver.list_dir(f"{nodes.folder}/absent") is None
    await driver.remove_file(f"{nodes.folder}/absent")


async def test_a_written_file_reads_back_with_mode_and_owner(nodes: Nodes) -> None:
    driver = nodes.serving()
    path = f"{nodes.folder}/new/folders/file"
    for content in (b"first\xff\n", b""):
        file = FileContent(content, 0o640, os.getuid(), os.getgid())
        await driver.write_file(path, file)
        assert await driver.read_file(path) == file
    assert await driver.list_dir(f"{nodes.folder}/new/folders") == ("file",)


async def test_removing_and_listing(nodes: Nodes) -> None:
    driver = nodes.serving()
    folder = f"{nodes.folder}/listed"
    for name in ("b", "a"):
        await driver.write_file(f"{folder}/{name}", FileContent(b"", 0o600, os.getuid(), os.getgid()))
    await driver.make_dir(f"{folder}/c/d")
    await driver.make_dir(f"{folder}/c/d")
    assert await driver.list_dir(folder) == ("a", "b", "c")
    await driver.remove_file(f"{folder}/a")
    assert await driver.list_dir(folder) == ("b", "c")
    assert await driver.list_dir(f"{folder}/c/d") == ()


async def write(driver: NodeDriver, path: str, content: bytes = b"") -> None:
    await driver.write_file(path, FileContent(content, 0o640, os.getuid(), os.getgid()))


async def test_a_part_of_a_file(nodes: Nodes) -> None:
    driver, path = nodes.serving(), f"{nodes.folder}/log"
    await write(driver, path, b"0123456789")
    parts = [(0, 4), (4, 4), (8, 4), (10, 4), (99, 4), (3, 0), (-3, 2), (-99, 2)]
    assert [await driver.read_part(path, *part) for part in parts] == [b"0123", b"4567", b"89", b"", b"", b"", b"78", b"01"]
    assert await driver.read_part(f"{nodes.folder}/absent", 0, 4) is None
    assert await driver.read_part(f"{nodes.folder}/absent", -4, 4) is None
    with pytest.raises(Permanent):
        await driver.read_part(nodes.folder, 0, 4)


async def test_a_file_gets_another_name_once_and_again(nodes: Nodes) -> None:
    driver = nodes.serving()
    old, new = f"{nodes.folder}/data/meta.properties", f"{nodes.folder}/data/meta.properties.aside"
    await write(driver, old, b"mine")
    before = await driver.read_file(old)
    for _ in range(2):
        await driver.rename(old, new)
        assert await driver.read_file(new) == before
        assert await driver.list_dir(f"{nodes.folder}/data") == ("meta.properties.aside",)
    await write(driver, old, b"newer")
    await driver.rename(old, new)
    assert await driver.read_part(new, 0, 9) == b"newer"
    assert await driver.list_dir(f"{nodes.folder}/data") == ("meta.properties.aside",)


async def test_a_name_is_given_to_nothing(nodes: Nodes) -> None:
    driver = nodes.serving()
    with pytest.raises(Permanent, match=r"one\.properties.*two\.properties"):
        await driver.rename(f"{nodes.folder}/one.properties", f"{nodes.folder}/two.properties")
    await write(driver, f"{nodes.folder}/file")
    with pytest.raises(Permanent):
        await driver.rename(f"{nodes.folder}/file", f"{nodes.folder}/no/such/folder/file")
    assert await driver.read_file(f"{nodes.folder}/file") is not None


async def test_a_tree_goes_with_all_that_is_in_it_and_nothing_else(nodes: Nodes) -> None:
    driver = nodes.serving()
    for name in ("tree/file", "tree/deep/er/file", "tree-not/file"):
        await write(driver, f"{nodes.folder}/{name}")
    await driver.make_dir(f"{nodes.folder}/tree/empty")
    for _ in range(2):
        await driver.remove_tree(f"{nodes.folder}/tree")
        assert await driver.list_dir(f"{nodes.folder}/tree") is None
    assert await driver.list_dir(f"{nodes.folder}/tree-not") == ("file",)
    with pytest.raises(Permanent):
        await driver.remove_tree(f"{nodes.folder}/tree-not/file")


async def test_what_would_never_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "server.properties")
    with pytest.raises(Permanent, match="no regular file"):
        await SpecDrivers().driver(local_node(tmp_path, "true")).read_file(str(tmp_path / "server.properties"))


async def test_a_directory_is_no_file_and_a_file_no_directory(nodes: Nodes) -> None:
    driver = nodes.serving()
    await driver.write_file(f"{nodes.folder}/folder/file", FileContent(b"", 0o600, os.getuid(), os.getgid()))
    with pytest.raises(Permanent):
        await driver.read_file(f"{nodes.folder}/folder")
    with pytest.raises(Permanent):
        await driver.list_dir(f"{nodes.folder}/folder/file")
    with pytest.raises(Permanent):
        await driver.write_file(f"{nodes.folder}/folder", FileContent(b"", 0o600, os.getuid(), os.getgid()))


# ---- the process ----


async def test_a_node_that_never_ran(nodes: Nodes) -> None:
    driver = nodes.serving()
    process = await driver.process()
    assert (process.is_running, process.identity, process.last_identity, process.started_at) == (False, None, None, None)
    await driver.stop((await driver.process()).identity or "", DEADLINE)
    assert await driver.output_tail(5) == ()


async def test_start_gives_one_process_with_an_identity(nodes: Nodes) -> None:
    driver = nodes.serving()
    await driver.start()
    process = await driver.process()
    assert process.is_running
    assert process.identity is not None
    assert process.identity == process.last_identity
    assert process.started_at is not None
    assert abs(datetime.now(UTC) - process.started_at) < timedelta(seconds=30)
    await driver.start()
    assert (await driver.process()).identity == process.identity


async def test_starts_at_once_give_one_process(nodes: Nodes) -> None:
    driver = nodes.serving()
    await asyncio.gather(*(driver.start() for _ in range(8)))
    assert (await driver.process()).is_running
    assert nodes.processes_started() == 1


async def test_stop_keeps_the_identity_and_a_start_changes_it(nodes: Nodes) -> None:
    driver = nodes.serving()
    await driver.start()
    before = await driver.process()
    for _ in range(2):
        await driver.stop((await driver.process()).identity or "", DEADLINE)
        stopped = await driver.process()
        assert (stopped.is_running, stopped.identity, stopped.last_identity) == (False, None, before.identity)
    await driver.start()
    after = await driver.process()
    assert after.is_running
    assert after.identity != before.identity


async def test_a_process_that_dies_at_once_has_been_started(nodes: Nodes) -> None:
    driver = nodes.dying_at_start()
    identities: list[str | None] = []
    for _ in range(2):
        await driver.start()
        identities.append(await _last_identity_of_the_dead(driver))
    assert None not in identities
    assert len(set(identities)) == 2
    assert (await driver.output_tail(2)) == LAST_WORDS


async def test_a_process_that_does_not_stop_is_left_alone(nodes: Nodes) -> None:
    driver = nodes.deaf_to_stop()
    await driver.start()
    before = await driver.process()
    await _output_of(driver)
    with pytest.raises(Transient):
        await driver.stop((await driver.process()).identity or "", timedelta(milliseconds=300))
    assert await driver.process() == before


async def test_a_kill_ends_what_no_stop_can(nodes: Nodes) -> None:
    driver = nodes.deaf_to_stop()
    await driver.start()
    before = await driver.process()
    for _ in range(2):
        await driver.kill(before.identity or "", DEADLINE)
        killed = await driver.process()
        assert (killed.is_running, killed.last_identity) == (False, before.identity)


async def test_a_kill_of_another_identity_touches_nothing(nodes: Nodes) -> None:
    """Neither a former process of the node, nor the right pid with another start, is the one that runs now."""
    driver = nodes.serving()
    await driver.start()
    former = (await driver.process()).identity or ""
    await driver.kill(former, DEADLINE)
    await driver.start()
    successor = await driver.process()
    pid = (successor.identity or "").partition("@")[0]
    for identity in (former, "", pid, f"{pid}@0", f"{pid}@unknown"):
        await driver.kill(identity, DEADLINE)
        assert await driver.process() == successor


async def test_the_output_tail_is_the_end(nodes: Nodes) -> None:
    driver = nodes.serving()
    await driver.start()
    lines = await _output_of(driver)
    assert await driver.output_tail(1) == lines[-1:]
    assert await driver.output_tail(0) == ()


async def test_what_prints_into_its_output_file_prints_nowhere_else(nodes: Nodes) -> None:
    driver = nodes.serving()
    await driver.start()
    lines = await _output_of(driver)
    output = await driver.output(10)
    assert (output.lines, output.elsewhere, output.full) == (lines, "", ())


async def _last_identity_of_the_dead(driver: NodeDriver) -> str | None:
    process = await eventually(driver.process, lambda seen: not seen.is_running)
    return process.last_identity


async def _output_of(driver: NodeDriver) -> tuple[str, ...]:
    return await eventually(lambda: driver.output_tail(10), bool)


async def eventually(look: Callable[[], Awaitable[T]], is_wanted: Callable[[T], bool]) -> T:
    """Look again and again, for five seconds at most."""
    deadline = time.monotonic() + 5
    while True:
        seen = await look()
        if is_wanted(seen):
            return seen
        assert time.monotonic() < deadline, seen
        await asyncio.sleep(0.01)


# ---- real processes only ----


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalNodes]:
    """Its nodes outlive whoever has started them: here they end with the test."""
    nodes = LocalNodes(tmp_path)
    yield nodes
    left = nodes.alive()
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, 60)


@pytest.fixture
async def outsider(tmp_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A node that its operators started themselves: only a plain pid file tells of it."""
    LocalNodes(tmp_path).serving()
    process = await asyncio.create_subprocess_exec("tail", "-f", "server.properties", cwd=tmp_path, stdout=-3)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "node.pid").write_text(f"{process.pid}\n")
    yield process
    if process.returncode is None:
        process.kill()
        await process.wait()


async def test_when_one_was_started_that_ran_before_the_machine_was_is_not_known(local: LocalNodes) -> None:
    driver = local.serving()
    await driver.start()
    await driver.kill((await driver.process()).identity or "", DEADLINE)
    assert (await driver.process()).started_at is not None
    os.utime(local.directory / "run" / "node.pid.identity", (0, 0))
    assert (await driver.process()).started_at is None


async def test_a_node_started_by_others_keeps_its_identity_when_stopped(
    local: LocalNodes, outsider: asyncio.subprocess.Process
) -> None:
    driver = local.serving()
    before = await driver.process()
    assert before.is_running
    assert before.identity is not None
    assert before.identity.startswith(f"{outsider.pid}@")
    assert not (local.directory / "run" / "node.pid.identity").exists(), "looking must not write"
    await driver.stop((await driver.process()).identity or "", DEADLINE)
    assert (await driver.process()).last_identity == before.identity


async def test_a_node_started_by_others_that_died_by_itself_is_known_by_its_pid(
    local: LocalNodes, outsider: asyncio.subprocess.Process
) -> None:
    driver = local.serving()
    outsider.kill()
    await outsider.wait()
    assert (await driver.process()).last_identity == f"{outsider.pid}@unknown"


async def test_what_an_outsider_prints_is_read_where_it_prints_it(local: LocalNodes) -> None:
    """Somebody has started it by hand, after an orderly stop that the output file tells of."""
    driver = local.serving()
    for folder in ("run", "logs"):
        (local.directory / folder).mkdir()
    (local.directory / "logs" / "node.out").write_text("stopped\n")
    own = local.directory / "kafkaServer.out"
    with own.open("w") as file:
        outsider = psutil.Popen(["tail", "-f", str(local.properties)], stdout=file)
    (local.directory / "run" / "node.pid").write_text(str(outsider.pid))
    try:
        output = await eventually(lambda: driver.output(3), lambda seen: bool(seen.lines))
        assert (output.lines, output.elsewhere) == (("line=17", "line=18", "line=19"), str(own))
    finally:
        outsider.kill()
        outsider.wait()
    assert await driver.output_tail(3) == ("stopped",)


async def test_of_one_that_runs_no_more_the_logs_are_read_that_are_named(local: LocalNodes) -> None:
    output = local.directory / "logs" / "node.out"
    output.parent.mkdir()
    output.write_text("[2026-11-20 03:00:00,000] INFO begun\n")
    log = local.directory / "server.log"
    log.write_text("[2026-11-20 03:00:01,000] ERROR the end\n")
    said = (await local.serving().output(9, [str(log)])).lines
    assert said == ("[2026-11-20 03:00:00,000] INFO begun", "[2026-11-20 03:00:01,000] ERROR the end")


async def test_without_python_the_output_file_is_read(local: LocalNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    run = LocalMachine.run

    async def without(self: LocalMachine, arguments: Sequence[str], *rest: Any) -> Completed:
        return await run(self, ("/no/such/program", *arguments[1:]) if arguments[0] == "python3" else arguments, *rest)

    monkeypatch.setattr(LocalMachine, "run", without)
    driver = local.serving()
    await driver.start()
    await eventually(lambda: driver.output_tail(1), lambda seen: seen == ("line=19",))
    assert (await driver.output(1)).changed_at is None


@pytest.mark.parametrize("told", [None, b"cpu  1 2\nprocesses 5\n"])
async def test_a_machine_whose_proc_does_not_say_when_it_was_booted_is_looked_at(
    local: LocalNodes, monkeypatch: pytest.MonkeyPatch, told: bytes | None
) -> None:
    read = LocalMachine.read_file

    async def hidden(self: LocalMachine, path: str) -> FileContent | None:
        if path == "/proc/stat":
            return FileContent(told, 0o444, 0, 0) if told is not None else None
        return await read(self, path)

    driver = local.serving()
    await driver.start()
    known = (await driver.process()).started_at
    monkeypatch.setattr(LocalMachine, "read_file", hidden)
    process = await driver.process()
    assert known is not None
    assert process.started_at is not None
    assert abs(process.started_at - known) < timedelta(seconds=5)


async def test_a_start_that_finds_no_room_says_so(local: LocalNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shell says no more than `I/O error`."""
    run, driver = LocalMachine.run, local.serving()

    async def full(self: LocalMachine, arguments: Sequence[str], *rest: Any) -> Completed:
        if arguments[0] == "python3":
            said = {"lines": [], "changed_at": None, "elsewhere": "", "full": ["/run/node.pid"], "read_only": [], "deleted": []}
            return Completed(0, json.dumps(said), "")
        failed = Completed(1, "", "start: 6: echo: echo: I/O error")
        return failed if START in arguments else await run(self, arguments, *rest)

    monkeypatch.setattr(LocalMachine, "run", full)
    with pytest.raises(Permanent, match=r"I/O error; no room is left for /run/node\.pid"):
        await driver.start()


WITHOUT_NULL = 'mount --bind "$0" /dev/null && mount -o remount,bind,ro /dev/null && exec "$@"'


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts something over /dev/null, in a namespace of its own")
async def test_a_start_needs_no_dev_null_that_can_be_written(local: LocalNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that root ran has left a file there: nothing is started, or it is, and never said to be when it is not."""
    run, null = LocalMachine.run, local.directory / "null"
    null.touch()

    async def without(self: LocalMachine, command: Sequence[str], *rest: Any) -> Completed:
        return await run(self, ("unshare", "-m", "sh", "-c", WITHOUT_NULL, str(null), *command), *rest)

    monkeypatch.setattr(LocalMachine, "run", without)
    driver = local.serving()
    await driver.start()
    assert (await driver.process()).is_running
    assert local.processes_started() == 1
    assert null.read_text() == ""


async def test_a_zombie_is_not_alive(local: LocalNodes) -> None:
    driver = local.serving()
    zombie = psutil.Popen(["tail", "-f", str(local.properties)], stdout=-3)
    (local.directory / "run").mkdir()
    (local.directory / "run" / "node.pid").write_text(str(zombie.pid))
    try:
        assert (await driver.process()).is_running
        zombie.kill()
        await asyncio.to_thread(os.waitid, os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        assert zombie.status() == psutil.STATUS_ZOMBIE
        assert not (await driver.process()).is_running
    finally:
        zombie.wait()


async def test_a_recycled_pid_is_neither_ours_nor_touched(local: LocalNodes) -> None:
    """A pid file that survived a reboot names whatever has that number now."""
    driver = local.serving()
    stranger = psutil.Popen(["tail", "-f", f"{local.properties}.bak", "/dev/null"], stdout=-3, stderr=-3)
    (local.directory / "run").mkdir()
    (local.directory / "run" / "node.pid").write_text(str(stranger.pid))
    try:
        assert not (await driver.process()).is_running
        await driver.stop((await driver.process()).identity or "", DEADLINE)
        assert stranger.is_running()
        await driver.start()
        assert (await driver.process()).is_running
        assert stranger.is_running()
    finally:
        stranger.kill()
        stranger.wait()
        await driver.stop((await driver.process()).identity or "", DEADLINE)


async def test_a_node_is_detached_and_sees_its_own_environment_only(local: LocalNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_PASSWORD", "hunter2")
    driver = local.serving()
    await driver.start()
    identity = (await driver.process()).identity
    assert identity is not None
    process = psutil.Process(int(identity.partition("@")[0]))
    assert os.getsid(process.pid) == process.pid
    environment = await eventually(lambda: asyncio.to_thread(process.environ), lambda seen: "GREETING" in seen)
    assert environment["GREETING"] == "hello"
    assert "LEDGER_PASSWORD" not in environment
    targets = await driver.run(("sh", "-c", f"readlink /proc/{process.pid}/fd/*"), {}, DEADLINE)
    output = local_node(local.directory, "").driver.service.output_file
    assert targets.output.split()[:3] == ["/dev/null", output, output]
    assert ".lock" not in targets.output
    await driver.stop((await driver.process()).identity or "", DEADLINE)


async def test_a_starter_killed_at_any_moment_leaves_no_lock_and_no_second_process(local: LocalNodes) -> None:
    """Whatever the killed attempts left behind, one start afterwards gives one process."""
    driver = local.serving()
    for attempt in range(12):
        start = asyncio.create_task(driver.start())
        await asyncio.sleep(attempt * 0.002)
        start.cancel()
        await asyncio.gather(start, return_exceptions=True)
    await driver.start()
    assert (await driver.process()).is_running
    await asyncio.to_thread(wait_until, lambda: len(local.alive()) == 1, "what the killed attempts left behind has ended", 60)
    await driver.stop((await driver.process()).identity or "", DEADLINE)


async def test_a_command_that_does_not_exist_is_a_start_that_died(local: LocalNodes) -> None:
    driver = local.running("/no/such/program", "{properties}")
    await driver.start()
    assert await _last_identity_of_the_dead(driver) is not None
    assert "not found" in (await driver.output_tail(1))[0]


async def test_a_command_that_does_not_name_the_properties_file_is_refused(local: LocalNodes) -> None:
    with pytest.raises(Permanent, match="start_command"):
        await local.running("sleep", "1").start()


async def test_a_symbolic_link_stays_one(local: LocalNodes) -> None:
    driver = local.serving()
    link = local.directory / "link"
    link.symlink_to(local.properties)
    await driver.write_file(str(link), FileContent(b"new", 0o600, os.getuid(), os.getgid()))
    assert link.is_symlink()
    assert local.properties.read_bytes() == b"new"


async def test_a_tree_is_removed_and_what_links_point_to_stays(local: LocalNodes) -> None:
    driver = local.serving()
    outside, tree = local.directory / "outside", local.directory / "tree"
    await write(driver, f"{outside}/precious")
    await write(driver, f"{tree}/deep/file")
    (tree / "out").symlink_to(outside)
    (tree / "deep" / "precious").symlink_to(outside / "precious")
    (link := local.directory / "link").symlink_to(tree)
    with pytest.raises(Permanent, match="symbolic link"):
        await driver.remove_tree(str(link))
    assert (tree / "deep" / "file").exists()
    await driver.remove_tree(str(tree))
    assert not tree.exists()
    assert await driver.list_dir(str(outside)) == ("precious",)


async def test_a_rename_is_on_disk_before_it_returns(local: LocalNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it was another attempt, killed before its sync, that gave the new name."""
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    driver = local.serving()
    (local.directory / "data").mkdir()
    (local.directory / "data" / "old").touch()
    for _ in range(2):
        synced.clear()
        await driver.rename(f"{local.folder}/data/old", f"{local.folder}/new")
        assert sorted(synced) == sorted([local.folder, f"{local.folder}/data"])


async def test_new_folders_are_private_and_no_temporary_file_stays(local: LocalNodes) -> None:
    driver = local.serving()
    await driver.write_file(f"{local.folder}/a/b/file", FileContent(b"", 0o600, os.getuid(), os.getgid()))
    assert [(local.directory / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700, 0o700]
    assert await driver.list_dir(f"{local.folder}/a/b") == ("file",)


async def test_run_gives_exit_code_and_outputs(local: LocalNodes) -> None:
    script = 'echo "$GREETING"; echo oops >&2; exit 3'
    done = await local.serving().run(("sh", "-c", script), {"GREETING": "hello"}, DEADLINE)
    assert (done.exit_code, done.output, done.errors) == (3, "hello\n", "oops\n")


async def test_what_a_program_is_given_can_be_opened_again_and_is_on_no_command_line(local: LocalNodes) -> None:
    script = "cat /dev/stdin; cat /dev/stdin; tr '\\0' ' ' </proc/$$/cmdline"
    done = await local.serving().run(("sh", "-c", script), {}, DEADLINE, b"s3cret")
    assert done.output == f"s3crets3cretsh -c {script} "


async def test_run_ends_a_program_and_its_children_at_the_limit(local: LocalNodes) -> None:
    children = local.directory / "child"
    driver = local.serving()
    with pytest.raises(Transient):
        await driver.run(("sh", "-c", f"sleep 600 & echo $! >{children}; wait"), {}, timedelta(milliseconds=500))
    child = children.read_text().strip()
    states = await driver.run(("ps", "-o", "stat=", "-p", child), {}, DEADLINE)
    assert states.output.strip()[:1] in {"", "Z"}


async def test_run_does_not_know_programs_that_are_not_there(local: LocalNodes) -> None:
    with pytest.raises(Permanent):
        await local.serving().run(("/no/such/program",), {}, DEADLINE)


async def test_a_stop_waits_for_the_very_process(local: LocalNodes) -> None:
    """A process that takes its time is waited for."""
    driver = local.running(
        "sh", "-c", "trap 'sleep 0.4; exit 0' TERM; echo up; while :; do sleep 0.05; done", "sh", "{properties}"
    )
    await driver.start()
    await _output_of(driver)
    began = asyncio.get_running_loop().time()
    await driver.stop((await driver.process()).identity or "", DEADLINE)
    assert asyncio.get_running_loop().time() - began > 0.3
    assert not (await driver.process()).is_running


async def test_a_signal_that_may_not_be_sent_says_whose_it_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a worker that was hardened: it may read and write all, and end nobody."""
    node = local_node(tmp_path, "sh", "-c", "sleep 60; :", "{properties}")
    driver = SpecDrivers().driver(node)
    await driver.start()
    run, process = LocalMachine.run, await driver.process()
    assert process.identity is not None

    async def refused(self: LocalMachine, arguments: Sequence[str], *rest: Any) -> Completed:
        return (
            Completed(1, "", "sh: kill: Operation not permitted") if SIGNAL in arguments else await run(self, arguments, *rest)
        )

    with monkeypatch.context() as patched:
        patched.setattr(LocalMachine, "run", refused)
        with pytest.raises(Permanent, match=r"not permitted; .* CAP_KILL"):
            await driver.stop(process.identity, timedelta(seconds=5))
    await driver.kill(process.identity, timedelta(seconds=5))
