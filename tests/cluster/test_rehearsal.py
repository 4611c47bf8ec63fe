"""A rehearsal on real servers: what it tells, that the cluster does not notice it, and that nothing of it is left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient

from activities.adapters.check_runner import EngineRunner
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.rehearsal_room import UnsharedRooms
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.rehearsing import RehearsalPorts, rehearse
from activities.workplace import sweep
from domain.cluster import ClusterSpec, ZooKeeperMemberSpec
from domain.drift.report import Verdict
from domain.records import ClusterRecord
from playground.cluster import CHROOT, PlaygroundCluster
from playground.ensemble import four_letter_word
from playground.processes import wait_until
from playground.seed import ACLS, SCRAM_USERS, TOPICS, seed

pytestmark = pytest.mark.cluster

DIGEST_KEY = "KEEPERLESS_TEST_REHEARSAL_KEY"

BY_ITSELF = """
import asyncio, sys
from pathlib import Path
from tests.cluster.test_rehearsal import ports_of, record_of
from activities.rehearsing import rehearse
from domain.cluster import ClusterSpec

spec = ClusterSpec.model_validate_json(Path(sys.argv[1]).read_text())
told = lambda number, stage: print(number, stage, flush=True)
asyncio.run(rehearse(record_of(spec), ports_of(), Path(sys.argv[2]), on_progress=told))
"""


def record_of(spec: ClusterSpec) -> ClusterRecord:
    now = datetime.now(UTC)
    return ClusterRecord(spec=spec, revision=1, generation=1, created_at=now, updated_at=now)


def ports_of() -> RehearsalPorts:
    os.environ.setdefault(DIGEST_KEY, "0123456789abcdef0123456789abcdef")
    ensembles = KazooEnsembles(EnvironmentAndFileSecrets())
    return RehearsalPorts(SpecDrivers(), SpecDrivers(), ensembles, UnsharedRooms(), EngineRunner(f"env:{DIGEST_KEY}"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlaygroundCluster]:
    with PlaygroundCluster(tmp_path_factory.mktemp("rehearsed"), announce=print) as up:
        seed(up.bootstrap_servers)
        yield up


@pytest.fixture
def zookeeper(cluster: PlaygroundCluster) -> Iterator[KazooClient]:
    client = KazooClient(cluster.ensemble.connect(CHROOT), timeout=10)
    client.start(timeout=10)
    yield client
    client.stop()
    client.close()


def written(client: KazooClient, path: str = "/") -> dict[str, tuple[int, int]]:
    """Of every znode the transaction that wrote it last, and its owner."""
    _, stat = client.get(path)
    found = {path: (stat.mzxid, stat.ephemeralOwner)}
    for name in client.get_children(path):
        found |= written(client, f"{path.rstrip('/')}/{name}")
    return found


def sessions(cluster: PlaygroundCluster) -> set[str]:
    """Of all servers: `dump` lists them on the leader."""
    told = "\n".join(four_letter_word(server, "cons") for server in cluster.ensemble.servers)
    return {part for line in told.split(",") for part in line.split() if part.startswith("sid=0x")}


def of_rehearsals(work: Path) -> list[psutil.Process]:
    """Processes with the work directory in their command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        is_dead = process.info["status"] == psutil.STATUS_ZOMBIE
        if not is_dead and any(str(work) in part for part in process.info["cmdline"] or ()):
            found.append(process)
    return found


def assert_nothing_left(work: Path) -> None:
    wait_until(lambda: not of_rehearsals(work), "every process of the rehearsal to be gone", 20)
    assert list(work.rglob("*")) == []


async def test_a_rehearsal_tells_what_the_copy_is_and_the_cluster_does_not_notice_it(
    cluster: PlaygroundCluster, zookeeper: KazooClient, tmp_path: Path
) -> None:
    before, sessions_before = await asyncio.to_thread(written, zookeeper), sessions(cluster)
    began = time.monotonic()
    stages: list[tuple[int, str]] = []
    report = await rehearse(record_of(cluster.spec), ports_of(), tmp_path, on_progress=lambda *told: stages.append(told))
    print(f"{time.monotonic() - began:.1f} s: {report.seconds}; {report.advice}")
    assert await asyncio.to_thread(written, zookeeper) == before
    assert sessions(cluster) == sessions_before
    assert_nothing_left(tmp_path)
    assert (report.refused, report.has_passed, report.rounds, report.findings) == ("", True, 1, ())
    assert report.records == {
        "TOPIC_RECORD": len(TOPICS),
        "PARTITION_RECORD": sum(topic.partitions for topic in TOPICS),
        "CONFIG_RECORD": 14,
        "USER_SCRAM_CREDENTIAL_RECORD": len(SCRAM_USERS),
        "CLIENT_QUOTA_RECORD": 7,
        "ACCESS_CONTROL_ENTRY_RECORD": len(ACLS),
    }
    assert report.equality.verdict is Verdict.CLEAN
    assert report.equality.counts["partition"].equal == report.records["PARTITION_RECORD"]
    assert 0 < report.copy_seconds <= report.seconds_without_controller < 30
    assert 5 < report.controller.heap_mib < report.controller.rss_mib < 1024
    assert "-Xmx256m" in report.advice
    assert stages[-1] == (1, "comparing")


def started(cluster: PlaygroundCluster, work: Path) -> "subprocess.Popen[str]":
    """A rehearsal in a process of its own, at the moment when its servers begin a copy."""
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), DIGEST_KEY: "0123456789abcdef0123456789abcdef"}
    spec = cluster.directory / "cluster.json"
    process = subprocess.Popen(
        [sys.executable, "-c", BY_ITSELF, str(spec), str(work)], stdout=subprocess.PIPE, text=True, env=environment
    )
    while "1 copying" not in process.stdout.readline():
        assert process.poll() is None
    return process


def java_of(work: Path) -> list[psutil.Process]:
    return [process for process in of_rehearsals(work) if "java" in process.name()]


def test_a_worker_that_is_killed_in_a_rehearsal_leaves_nothing(cluster: PlaygroundCluster, tmp_path: Path) -> None:
    worker = started(cluster, tmp_path)
    wait_until(lambda: len(java_of(tmp_path)) == 2, "both servers to run", 60)
    assert list(tmp_path.rglob("snapshot.*"))
    worker.kill()
    worker.wait()
    worker.stdout.close()
    assert_nothing_left(tmp_path)


def test_what_the_program_leaves_when_it_is_killed_itself_is_removed_by_its_worker(
    cluster: PlaygroundCluster, tmp_path: Path
) -> None:
    worker = started(cluster, tmp_path)
    wait_until(lambda: len(java_of(tmp_path)) == 2, "both servers to run", 60)
    for process in of_rehearsals(tmp_path):
        if "activities.rehearsal.program" in process.cmdline() and "unshare" not in process.name():
            process.send_signal(signal.SIGKILL)
    assert worker.wait(30) == 0
    worker.stdout.close()
    assert_nothing_left(tmp_path)


def test_when_everything_is_killed_at_once_the_next_sweep_removes_the_files(cluster: PlaygroundCluster, tmp_path: Path) -> None:
    worker = started(cluster, tmp_path)
    unshare = [process for process in of_rehearsals(tmp_path) if "unshare" in process.name()]
    worker.send_signal(signal.SIGSTOP)  # It cannot let go of the leash before the other end is dead.
    for process in unshare:
        process.kill()
    wait_until(lambda: [p.pid for p in of_rehearsals(tmp_path)] == [worker.pid], "the kernel to end what was in the room", 20)
    worker.kill()
    worker.wait()
    worker.stdout.close()
    assert list(tmp_path.rglob("snapshot.*"))
    sweep(tmp_path)
    assert_nothing_left(tmp_path)


async def test_a_rehearsal_that_is_cancelled_leaves_nothing(cluster: PlaygroundCluster, tmp_path: Path) -> None:
    begun = asyncio.Event()
    rehearsing = asyncio.create_task(
        rehearse(record_of(cluster.spec), ports_of(), tmp_path, on_progress=lambda number, _: number and begun.set())
    )
    await begun.wait()
    rehearsing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rehearsing
    assert_nothing_left(tmp_path)


@pytest.fixture
def old_member(cluster: PlaygroundCluster, tmp_path: Path) -> ZooKeeperMemberSpec:
    """A server whose newest file is a snapshot of before the brokers came."""
    member = cluster.spec.zookeeper.members[0]
    folder = tmp_path / "old" / "version-2"
    folder.mkdir(parents=True)
    first = min(Path(member.data_dir, "version-2").glob("snapshot.*"), key=lambda path: int(path.name.split(".")[1], 16))
    (folder / first.name).write_bytes(first.read_bytes())
    return member.model_copy(update={"data_dir": str(folder.parent)})


async def test_the_files_of_a_member_that_does_not_follow_are_refused(
    cluster: PlaygroundCluster, old_member: ZooKeeperMemberSpec, tmp_path: Path
) -> None:
    zookeeper = cluster.spec.zookeeper.model_copy(update={"members": (old_member,)})
    spec = cluster.spec.model_copy(update={"zookeeper": zookeeper})
    report = await rehearse(record_of(spec), ports_of(), tmp_path / "work")
    assert "this member does not follow" in report.refused
    assert_nothing_left(tmp_path / "work")
