"""A rehearsal on real servers: what it tells, that the cluster does not notice it, and that nothing of it is left behind."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kazoo.client import KazooClient

from activities.adapters.check_runner import EngineRunner
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.check_directories import sweep
from activities.observing.present_ensemble import said_of_itself, zxid_in
from activities.ports.zookeeper import ZooKeepers
from activities.zk_to_kraft.rehearsal import trial
from activities.zk_to_kraft.rehearsal.messages import COPY, Order
from activities.zk_to_kraft.rehearsal.program import new_cluster_id
from activities.zk_to_kraft.rehearsal.rehearsing import LIMITS, RehearsalPorts, rehearse
from activities.zk_to_kraft.rehearsal.room import UnsharedRooms
from activities.zk_to_kraft.rehearsal.servers import Servers
from domain.cluster import ClusterSpec, ZooKeeperMemberSpec
from domain.drift.report import Verdict
from domain.records import ClusterRecord
from domain.rehearsal import RehearsalLimits
from playground import processes
from playground.cache import silent
from playground.clients import admin_client
from playground.cluster import CHROOT, PlaygroundCluster, prepared_runtime, stop_everything_in
from playground.ensemble import four_letter_word, mode_of, plan_ensemble, write_configuration
from playground.ports import PortLease
from playground.processes import wait_until
from playground.seed import ACLS, SCRAM_USERS, TOPICS, Topic, create_topics, seed
from playground.wire_requests import Quota, alter_quotas

pytestmark = pytest.mark.cluster

DIGEST_KEY = "KEEPERLESS_TEST_REHEARSAL_KEY"

BY_ITSELF = """
import asyncio, sys
from pathlib import Path
from tests.cluster.test_rehearsal import ports_of, record_of
from activities.zk_to_kraft.rehearsal.rehearsing import rehearse
from playground.wanted import read_parts

spec = read_parts(Path(sys.argv[1]))
told = lambda number, stage, *_: print(number, stage, flush=True)
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
        up.await_in_sync()
        seed(up.bootstrap_servers)
        seed_odd_names(up.bootstrap_servers)
        yield up


ODD_TOPICS = (Topic("a.b_c-d.", 2, config={"retention.ms": "77"}), Topic("...", 1), Topic("x" * 249, 1))
ODD_USERS = ("CN=Zoë Ö,OU=a b*,O=%/+", "東京", "a:b;c=d")
ODD_QUOTAS = tuple(Quota({"user": user, "client-id": "é %2F/ü"}, {"request_percentage": 5.5}) for user in ODD_USERS)


def seed_odd_names(bootstrap_servers: Sequence[str]) -> None:
    """Names as people have them, which ZooKeeper has URL-encoded in its paths."""
    admin = admin_client(bootstrap_servers)
    create_topics(admin, ODD_TOPICS)
    for user in ODD_USERS:
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        upsertion = UserScramCredentialUpsertion(user, credential, b"of the odd")
        for future in admin.alter_user_scram_credentials([upsertion]).values():
            future.result(60)
    bindings = [
        AclBinding(ResourceType.GROUP, "Gruppe é %41", pattern, f"User:{user}", "*", AclOperation.READ, AclPermissionType.ALLOW)
        for user in ODD_USERS
        for pattern in (ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED)
    ]
    for created in admin.create_acls(bindings).values():
        created.result(60)
    alter_quotas(bootstrap_servers, ODD_QUOTAS)


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


PROGRAM = "activities.zk_to_kraft.rehearsal.program"


def of_rehearsals(work: Path) -> list[psutil.Process]:
    """Processes with the work directory in their command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "name", "status"]):
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
    stages: list[tuple[int, str, int, int]] = []
    report = await rehearse(record_of(cluster.spec), ports_of(), tmp_path, on_progress=lambda *told: stages.append(told))
    print(f"{time.monotonic() - began:.1f} s: {report.seconds}; {report.advice}")
    assert await asyncio.to_thread(written, zookeeper) == before
    assert sessions(cluster) == sessions_before
    assert_nothing_left(tmp_path)
    assert (report.refused, report.has_passed, report.rounds, report.findings) == ("", True, 1, ())
    assert report.records == {
        "TOPIC_RECORD": len(TOPICS) + len(ODD_TOPICS),
        "PARTITION_RECORD": sum(topic.partitions for topic in (*TOPICS, *ODD_TOPICS)),
        "CONFIG_RECORD": 15,
        "USER_SCRAM_CREDENTIAL_RECORD": len(SCRAM_USERS) + len(ODD_USERS),
        "CLIENT_QUOTA_RECORD": 7 + len(ODD_QUOTAS),
        "ACCESS_CONTROL_ENTRY_RECORD": len(ACLS) + 2 * len(ODD_USERS),
    }
    assert report.equality is not None
    assert report.equality.verdict is Verdict.CLEAN
    assert report.equality.counts["partition"].equal == report.records["PARTITION_RECORD"]
    seconds, without, usage = report.copy_seconds, report.seconds_without_controller, report.controller
    assert seconds is not None
    assert without is not None
    assert 0 < seconds <= without < 30
    assert usage.heap_mib is not None
    assert usage.rss_mib is not None
    assert 5 < usage.heap_mib < usage.rss_mib < 1024
    assert "-Xmx256m" in report.advice
    assert (1, "starting the comparison", 0, 1) in stages


def started(cluster: PlaygroundCluster, work: Path) -> "subprocess.Popen[str]":
    """A rehearsal in a process of its own, at the moment when its servers begin a copy."""
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), DIGEST_KEY: "0123456789abcdef0123456789abcdef"}
    process = subprocess.Popen(
        [sys.executable, "-c", BY_ITSELF, str(cluster.directory), str(work)], stdout=subprocess.PIPE, text=True, env=environment
    )
    while "1 copying" not in process.stdout.readline():
        assert process.poll() is None
    return process


def java_of(work: Path) -> list[psutil.Process]:
    return [process for process in of_rehearsals(work) if "java" in process.name()]


@pytest.mark.chaos
def test_a_worker_that_is_killed_in_a_rehearsal_leaves_nothing(cluster: PlaygroundCluster, tmp_path: Path) -> None:
    worker = started(cluster, tmp_path)
    wait_until(lambda: len(java_of(tmp_path)) == 2, "both servers to run", 60)
    assert list(tmp_path.rglob("snapshot.*"))
    worker.kill()
    worker.wait()
    worker.stdout.close()
    assert_nothing_left(tmp_path)


@pytest.mark.chaos
def test_what_the_program_leaves_when_it_is_killed_itself_is_removed_by_its_worker(
    cluster: PlaygroundCluster, tmp_path: Path
) -> None:
    worker = started(cluster, tmp_path)
    wait_until(lambda: len(java_of(tmp_path)) == 2, "both servers to run", 60)
    # By what was read of all before the first is killed: the others end with it.
    programs = [p for p in of_rehearsals(tmp_path) if PROGRAM in p.info["cmdline"] and "unshare" not in p.info["name"]]
    for process in programs:
        process.send_signal(signal.SIGKILL)
    assert worker.wait(30) == 0
    worker.stdout.close()
    assert_nothing_left(tmp_path)


@pytest.mark.chaos
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


@pytest.mark.chaos
async def test_a_rehearsal_that_is_cancelled_leaves_nothing(cluster: PlaygroundCluster, tmp_path: Path) -> None:
    begun = asyncio.Event()

    def on_progress(number: int, _stage: str, _done: int, _total: int) -> None:
        if number:
            begun.set()

    rehearsing = asyncio.create_task(rehearse(record_of(cluster.spec), ports_of(), tmp_path, on_progress=on_progress))
    await begun.wait()
    rehearsing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rehearsing
    assert_nothing_left(tmp_path)


@pytest.fixture
def old_member(cluster: PlaygroundCluster, tmp_path: Path) -> ZooKeeperMemberSpec:
    """A server whose newest file is a snapshot of before the brokers came."""
    member = cluster.spec.ensemble.members[0]
    folder = tmp_path / "old" / "version-2"
    folder.mkdir(parents=True)
    first = min(Path(member.data_dir, "version-2").glob("snapshot.*"), key=lambda path: int(path.name.split(".")[1], 16))
    (folder / first.name).write_bytes(first.read_bytes())
    return member.model_copy(update={"data_dir": str(folder.parent)})


async def test_the_files_of_a_member_that_does_not_follow_are_refused(
    cluster: PlaygroundCluster, old_member: ZooKeeperMemberSpec, tmp_path: Path
) -> None:
    report = await rehearse(with_member(cluster, old_member), ports_of(), tmp_path / "work")
    assert "this member does not follow" in report.refused
    assert_nothing_left(tmp_path / "work")


def at_this_moment(cluster: PlaygroundCluster, directory: Path) -> ZooKeeperMemberSpec:
    """A server that is cut off from now on: all that brokers and the controller have registered is in its files."""
    member = cluster.spec.ensemble.members[0]
    shutil.copytree(Path(member.data_dir, "version-2"), directory / "version-2")
    return member.model_copy(update={"data_dir": str(directory)})


def with_member(cluster: PlaygroundCluster, member: ZooKeeperMemberSpec) -> ClusterRecord:
    zookeeper = cluster.spec.ensemble.model_copy(update={"members": (member,)})
    return record_of(cluster.spec.model_copy(update={"zookeeper": zookeeper}))


async def test_the_files_of_a_member_that_was_cut_off_a_moment_ago_are_refused(
    cluster: PlaygroundCluster, zookeeper: KazooClient, tmp_path: Path
) -> None:
    stale = at_this_moment(cluster, tmp_path / "stale")
    await asyncio.to_thread(zookeeper.create, "/keeperless-test", b"written after the cut")
    await asyncio.to_thread(zookeeper.delete, "/keeperless-test")
    report = await rehearse(with_member(cluster, stale), ports_of(), tmp_path / "work")
    assert "this member does not follow" in report.refused
    assert_nothing_left(tmp_path / "work")


async def test_the_end_of_the_files_is_what_was_loaded_and_not_what_the_throw_away_server_did_since(
    cluster: PlaygroundCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is asked late, sessions in the copy have expired in it, each by a transaction of its own."""
    member = at_this_moment(cluster, tmp_path / "member")
    (tmp_path / COPY).symlink_to(f"{member.data_dir}/version-2")
    answers: list[int] = []

    async def late(zookeepers: ZooKeepers, address: str) -> dict[str, str] | None:
        said = await said_of_itself(zookeepers, address)
        zxid = zxid_in(said) if said else None
        if zxid is not None:
            answers.append(zxid)
        return said if zxid is not None and zxid > answers[0] else {}

    monkeypatch.setattr(trial, "said_of_itself", late)
    servers = Servers()
    trials = trial.Trials(tmp_path, order_of(cluster), servers, new_cluster_id())
    try:
        async with trials.zookeeper():
            assert 0 < trials.files_end <= answers[0] < answers[-1]
    finally:
        servers.end_all()


def order_of(cluster: PlaygroundCluster) -> Order:
    broker, connect = cluster.spec.brokers[0], cluster.spec.ensemble.connect
    java, libs = f"{broker.environment['JAVA_HOME']}/bin/java", f"{broker.kafka_home}/libs"
    return Order(
        java=java, libs=libs, connect=connect, listener="", release="", newest_zxid=0, brokers={}, seconds=60, limits=LIMITS
    )


class MuteEnsembles(KazooEnsembles):
    """Servers that forbid `srvr`."""

    async def ask(self, server: str, word: str) -> None: ...


async def test_a_copy_of_files_whose_age_nobody_tells_is_no_pass(
    cluster: PlaygroundCluster, zookeeper: KazooClient, tmp_path: Path
) -> None:
    stale = at_this_moment(cluster, tmp_path / "stale")
    await asyncio.to_thread(zookeeper.create, "/keeperless-test", b"written after the cut")
    await asyncio.to_thread(zookeeper.delete, "/keeperless-test")
    ports = replace(ports_of(), zookeepers=MuteEnsembles(EnvironmentAndFileSecrets()))
    report = await rehearse(with_member(cluster, stale), ports, tmp_path / "work")
    (finding,) = report.findings
    assert (finding.code, finding.is_unverifiable, finding.severity) == ("RH07", True, "blocker")
    assert_nothing_left(tmp_path / "work")


# ---- poisons ----

ACL = {"permissionType": "Allow", "host": "*"}
TOPIC = {"version": 3, "adding_replicas": {}, "removing_replicas": {}}
STATE = {"controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 0, "isr": [2]}
ID = "AAAAAAAAAAAAAAAAAAAABQ"
BROKEN = "{broken"

POISONS: dict[str, tuple[str, object]] = {
    "/kafka-acl/Topic/typeless": ("RH01", {"version": 1, "acls": [{**ACL, "principal": "alice", "operation": "Read"}]}),
    "/config/users/fast": ("RH01", {"version": 1, "config": {"producer_byte_rate": "fast"}}),
    "/config/users/scram": ("RH01", {"version": 1, "config": {"SCRAM-SHA-256": "salt=c2FsdA==,geheim"}}),
    "/brokers/topics/no-id": ("RH02", {**TOPIC, "partitions": {"0": [1, 2]}}),
    "/config/topics/orders": ("RH03", BROKEN),
    "/brokers/topics/orders/partitions/3/state": ("RH03", BROKEN),
    "/kafka-acl/Topic/unknown": ("RH03", {"version": 1, "acls": [{**ACL, "principal": "User:a", "operation": "Fly"}]}),
    "/config/clients/odd": ("RH06", {"version": 1, "config": {"no_such_quota": "5"}}),
    "/kafka-acl/Group/team/a": ("RH06", {"version": 1, "acls": [{**ACL, "principal": "User:a", "operation": "Read"}]}),
}
"""Each with what it does to the copy."""

DEAD = {
    "/brokers/topics/dead": {**TOPIC, "topic_id": ID, "partitions": {"0": [9, 2]}},
    "/brokers/topics/dead/partitions/0/state": STATE,
}


def spec_of_copy(spec: ClusterSpec, directory: Path, znodes: dict[str, object]) -> ClusterSpec:
    """The cluster, with a member whose files have these znodes besides: written by a ZooKeeper of their own."""
    with PortLease(3) as lease:
        ensemble = plan_ensemble(directory, lease, prepared_runtime(directory, silent), size=1)
        (server,) = ensemble.servers
        write_configuration(server, ())
        shutil.copytree(f"{spec.ensemble.members[0].data_dir}/version-2", server.data / "version-2")
        try:
            processes.start(ensemble.launch(server))
            wait_until(lambda: mode_of(server) == "standalone", "a ZooKeeper of its own", 60)
            write_all(ensemble.connect(CHROOT), znodes)
        finally:
            stop_everything_in(directory)
    return spec.model_copy(update={"zookeeper": spec.ensemble.model_copy(update={"members": ensemble.members})})


def write_all(connect: str, znodes: dict[str, object]) -> None:
    client = KazooClient(connect, timeout=10)
    client.start(timeout=30)
    for path, content in znodes.items():
        data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        if client.exists(path):
            client.set(path, data)
        else:
            client.create(path, data, makepath=True)
    client.stop()
    client.close()


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_every_poison_is_named_with_what_it_does_and_the_rest_is_copied(
    cluster: PlaygroundCluster, tmp_path: Path
) -> None:
    """All in one tree, where those that stop the copy early hide the others."""
    znodes = {path: content for path, (_, content) in POISONS.items()} | DEAD
    spec = await asyncio.to_thread(spec_of_copy, cluster.spec, tmp_path / "poisoned", znodes)
    report = await rehearse(record_of(spec), ports_of(), tmp_path / "work", on_progress=print)
    print(f"{report.rounds} rounds: {report.seconds}")
    found = {finding.object: finding.code for finding in report.findings if finding.code != "RH05"}
    assert found == {path: code for path, (code, _) in POISONS.items()} | {"/brokers/ids/9": "RH02"}
    assert not [finding for finding in report.findings if "tested by itself" in finding.observed]
    assert (report.has_passed, report.has_passed_in_part) == (False, True)
    assert report.records["TOPIC_RECORD"] == len(TOPICS) + len(ODD_TOPICS) + 1
    assert "geheim" not in report.model_dump_json()
    assert_nothing_left(tmp_path / "work")


async def test_a_copy_that_never_begins_is_told_with_the_broker_that_it_waits_for(
    cluster: PlaygroundCluster, tmp_path: Path
) -> None:
    spec = await asyncio.to_thread(spec_of_copy, cluster.spec, tmp_path / "poisoned", DEAD)
    report = await rehearse(record_of(spec), ports_of(), tmp_path / "work")
    (finding,) = report.findings
    assert (finding.code, finding.object, report.rounds) == ("RH02", "/brokers/ids/9", 2)
    assert "reassign its replicas" in finding.fix
    assert report.equality is not None
    assert report.equality.verdict is Verdict.CLEAN


async def test_a_rehearsal_without_time_for_a_second_round_tells_what_it_knows_and_that_it_is_not_all(
    cluster: PlaygroundCluster, tmp_path: Path
) -> None:
    spec = await asyncio.to_thread(spec_of_copy, cluster.spec, tmp_path / "poisoned", DEAD)
    limits = RehearsalLimits(deadline=timedelta(seconds=330))
    report = await rehearse(record_of(spec), ports_of(), tmp_path / "work", limits)
    assert {(finding.code, finding.is_unverifiable) for finding in report.findings} == {("RH02", False), ("RH00", True)}
    assert (report.has_passed, report.rounds) == (False, 1)
    assert_nothing_left(tmp_path / "work")
