"""`ZooKeepers.ask` and `ZooKeeperTree.access`: a real ensemble, a server with a whitelist of its own, and the fake."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.ports.zookeeper import Access, ZooKeepers
from activities.zk_to_kraft.zookeeper_survey import sessions_in, survey_servers
from domain.cluster import ClusterSpec, ZooKeeperSpec
from domain.errors import Transient
from domain.records import ClusterRecord
from playground import processes
from playground.cache import silent
from playground.cluster import prepared_runtime, stop_everything_in
from playground.ensemble import Ensemble, mode_of, plan_ensemble, write_configuration
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import CONNECT, fake_spec
from playground.ports import PortLease

AsRecord = Callable[[ClusterSpec], ClusterRecord]


@dataclass
class Subject:
    """An ensemble of three that has one client with this session."""

    zookeepers: ZooKeepers
    connect: str
    session: int


def kazoo(call_seconds: float = 5.0) -> KazooEnsembles:
    return KazooEnsembles(EnvironmentAndFileSecrets(), call_seconds=call_seconds)


@pytest.fixture(params=[pytest.param("servers", marks=pytest.mark.cluster), "fake"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    if request.param == "fake":
        cluster = FakeCluster()
        cluster.faults.foreign_clients[0x77] = "10.9.9.9:4000"
        yield Subject(cluster, CONNECT, 0x77)
        return
    ensemble: Ensemble = request.getfixturevalue("ensemble")
    client = KazooClient(ensemble.connect(""))
    client.start()
    yield Subject(kazoo(), ensemble.connect(""), client.client_id[0])
    client.stop()
    client.close()


async def test_each_server_tells_its_mode_load_and_clients(subject: Subject) -> None:
    servers = await survey_servers(subject.zookeepers, subject.connect)
    assert sorted(server.mode or "" for server in servers) == ["follower", "follower", "leader"]
    assert all(server.problem is None and server.outstanding is not None for server in servers)
    assert all(server.latency is not None and server.latency < 1000 for server in servers)
    clients = [client for server in servers for client in server.sessions or ()]
    assert subject.session in {client.id for client in clients}
    assert all(client.client.rpartition(":")[2].isdecimal() for client in clients), clients


async def test_a_server_that_is_not_there_is_transient_and_told(subject: Subject) -> None:
    nowhere = "127.0.0.1:1"
    if isinstance(subject.zookeepers, FakeCluster):
        subject.zookeepers.faults.silent_servers.add(nowhere)
    with pytest.raises(Transient):
        await subject.zookeepers.ask(nowhere, "srvr")
    (server,) = await survey_servers(subject.zookeepers, nowhere)
    assert server.problem is not None
    assert server.mode is None


@pytest.fixture(params=[pytest.param("server", marks=pytest.mark.cluster), "fake"])
def tight(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    """Only `srvr` is whitelisted, as it is by default."""
    if request.param == "fake":
        cluster = FakeCluster()
        cluster.faults.words = {"srvr"}
        yield Subject(cluster, CONNECT.partition(",")[0], 0)
        return
    lease = PortLease(3)
    try:
        ensemble = plan_ensemble(tmp_path, lease, prepared_runtime(tmp_path, silent), size=1)
        (server,) = ensemble.servers
        write_configuration(server, ())
        path = server.directory / "zoo.cfg"
        path.write_text(path.read_text().replace("4lw.commands.whitelist=*", "4lw.commands.whitelist=srvr"))
        processes.start(ensemble.launch(server))
        processes.wait_until(lambda: mode_of(server) == "standalone", "a single server", 60.0)
        yield Subject(kazoo(), ensemble.connect(""), 0)
    finally:
        stop_everything_in(tmp_path)
        lease.close()


async def test_a_word_that_is_not_whitelisted_is_no_answer_and_no_error(tight: Subject) -> None:
    assert await tight.zookeepers.ask(tight.connect, "srvr") is not None
    assert await tight.zookeepers.ask(tight.connect, "cons") is None
    (server,) = await survey_servers(tight.zookeepers, tight.connect)
    assert server.mode in {"standalone", "leader"}
    assert server.sessions is None


@pytest.mark.cluster
@pytest.mark.parametrize("tight", ["server"], indirect=True)
async def test_a_server_of_several_that_is_standalone_is_not_believed(tight: Subject) -> None:
    """It has a tree of its own. A cluster that has but one server may be so."""
    tree = await kazoo().connect_to(ZooKeeperSpec(connect=tight.connect))
    await tree.close()
    with pytest.raises(Transient, match="standalone"):
        await kazoo().connect_to(ZooKeeperSpec(connect=f"{tight.connect},127.0.0.1:1"))


@pytest.mark.cluster
async def test_access_lists_of_a_real_tree(ensemble: Ensemble, as_record: AsRecord) -> None:
    chroot = f"/words/{uuid4().hex}"
    client = KazooClient(ensemble.connect(""))
    client.start()
    mine, readers = make_digest_acl("kafka", "secret", all=True), make_acl("world", "anyone", read=True)
    client.create(f"{chroot}/open", b"", makepath=True)
    client.create(f"{chroot}/protected", b"", acl=[mine, readers])
    client.stop()
    client.close()
    spec = fake_spec().model_copy(update={"zookeeper": ZooKeeperSpec(connect=ensemble.connect(chroot))})
    tree = await kazoo().connect(as_record(spec))
    assert await tree.access("/open") == (Access("world", "anyone", True),)
    found = await tree.access("/protected") or ()
    assert {replace(entry, identity="") for entry in found} == {Access("digest", "", True), Access("world", "", False)}
    assert await tree.access("/absent") is None
    await tree.close()


async def test_access_lists_of_the_fake_tree() -> None:
    cluster = FakeCluster()
    cluster.faults.forbidden_znodes.add("/controller_epoch")
    tree = await cluster.connect(cluster.record())
    assert await tree.access("/controller") == (Access("world", "anyone", True),)
    protected = await tree.access("/controller_epoch") or ()
    assert [entry.scheme for entry in protected] == ["digest"]
    assert await tree.access("/absent") is None


def test_only_connections_with_a_session_are_clients() -> None:
    answer = (
        " /127.0.0.1:43210[0](queued=0,recved=1,sent=0)\n"
        " /10.0.0.7:51000[1](queued=0,recved=12,sent=12,sid=0x100032032060004,lop=PING,est=1,to=6000)\n"
        " /0:0:0:0:0:0:0:1:51001[1](queued=0,recved=3,sent=3,sid=0xff00000000000001,lop=NA)\n"
    )
    assert [(found.id, found.client) for found in sessions_in(answer)] == [
        (0x100032032060004, "10.0.0.7:51000"),
        (0xFF00000000000001, "0:0:0:0:0:0:0:1:51001"),
    ]
