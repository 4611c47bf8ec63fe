"""`ZooKeepers` and `ZooKeeperTree`: a real ensemble behind kazoo, and the fake."""

import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.ports.zookeeper import CreateZnode, DeleteZnode, SetZnode, Znode, ZooKeeperTree
from domain.cluster import ClusterSpec, ZooKeeperSpec
from domain.errors import Permanent, Transient
from domain.records import ClusterRecord
from playground.ensemble import Ensemble
from playground.fakes.faults import Faults
from playground.fakes.spec import fake_spec
from playground.fakes.tree import FakeTree
from playground.processes import wait_until

AsRecord = Callable[[ClusterSpec], ClusterRecord]

MANY = 250
"""More than what is in flight at once."""


@pytest.fixture
def chroot() -> str:
    return f"/conformance/{uuid4().hex}"


@pytest.fixture
def user(ensemble: Ensemble) -> Iterator[KazooClient]:
    """A client that writes what the tests read. Its session owns the ephemeral znode."""
    client = KazooClient(ensemble.connect(""))
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def zookeeper(as_record: AsRecord, ensemble: Ensemble, chroot: str) -> ClusterRecord:
    return as_record(spec_with(ensemble.connect(chroot)))


def spec_with(connect: str, digest_auth: str | None = None) -> ClusterSpec:
    return fake_spec().model_copy(update={"zookeeper": ZooKeeperSpec(connect=connect, digest_auth=digest_auth)})


@pytest.fixture(params=[pytest.param("kazoo", marks=pytest.mark.cluster), "fake"])
async def tree(request: pytest.FixtureRequest) -> AsyncIterator[ZooKeeperTree]:
    """A tree with `/a` written twice, `/a/x` and `/a/y`, the ephemeral `/session`, and `/many/0…`."""
    if request.param == "fake":
        opened: ZooKeeperTree = FakeTree(
            {
                "/a": Znode(b"second", 1, 0, datetime.now(UTC)),
                "/a/y": Znode(b"", 0, 0),
                "/a/x": Znode(b"x", 0, 0),
                "/session": Znode(b"", 0, 7),
            }
            | {f"/many/{n}": Znode(str(n).encode(), 0, 0) for n in range(MANY)}
        )
    else:
        record = request.getfixturevalue("zookeeper")
        write_tree(request.getfixturevalue("user"), request.getfixturevalue("chroot"))
        opened = await ensembles().connect(record)
    yield opened
    await opened.close()


def ensembles(connect_seconds: float = 5.0, call_seconds: float = 5.0) -> KazooEnsembles:
    return KazooEnsembles(EnvironmentAndFileSecrets(), connect_seconds, call_seconds)


def write_tree(user: KazooClient, chroot: str) -> None:
    user.create(f"{chroot}/a", b"first", makepath=True)
    user.set(f"{chroot}/a", b"second")
    user.create(f"{chroot}/a/y", None)  # as Kafka makes parents: no data at all, which is less than empty
    user.create(f"{chroot}/a/x", b"x")
    user.create(f"{chroot}/session", ephemeral=True)
    user.create(f"{chroot}/many")
    for pending in [user.create_async(f"{chroot}/many/{n}", str(n).encode()) for n in range(MANY)]:
        pending.get(timeout=10)


def timeless(znode: Znode | None) -> Znode | None:
    return None if znode is None else replace(znode, created_at=None, modified_zxid=-1)


async def test_a_znode_has_data_version_owner_and_the_time_of_its_creation(tree: ZooKeeperTree) -> None:
    found = await tree.get("/a")
    assert timeless(found) == Znode(b"second", 1, 0)
    assert found is not None
    assert found.created_at is not None
    assert timedelta(seconds=-1) < datetime.now(UTC) - found.created_at < timedelta(minutes=5)
    session = await tree.get("/session")
    assert session is not None
    assert session.ephemeral_owner != 0


async def test_a_znode_without_data_is_empty(tree: ZooKeeperTree) -> None:
    assert timeless(await tree.get("/a/y")) == Znode(b"", 0, 0)


async def test_what_is_not_there_is_none(tree: ZooKeeperTree) -> None:
    assert await tree.get("/absent") is None
    assert await tree.children("/absent") is None
    found = await tree.get_many(["/absent", "/a/x", "/absent/too"])
    assert [timeless(znode) for znode in found] == [None, Znode(b"x", 0, 0), None]


async def test_children_are_names_in_order(tree: ZooKeeperTree) -> None:
    assert await tree.children("/a") == ("x", "y")
    assert await tree.children("/a/x") == ()
    assert await tree.children("/") == ("a", "many", "session")


async def test_many_come_in_the_order_asked_for(tree: ZooKeeperTree) -> None:
    numbers = list(reversed(range(MANY)))
    znodes = await tree.get_many([f"/many/{n}" for n in numbers])
    assert [znode.data for znode in znodes if znode is not None] == [str(n).encode() for n in numbers]
    assert await tree.get_many([]) == ()


async def test_each_write_has_a_later_zxid(tree: ZooKeeperTree) -> None:
    before = await tree.get("/a")
    assert await tree.commit([SetZnode("/a", b"third", 1)])
    await tree.sync()
    after = await tree.get("/a")
    assert after.modified_zxid > before.modified_zxid


async def test_a_closed_tree_does_not_sync(tree: ZooKeeperTree) -> None:
    await tree.close()
    with pytest.raises(Transient):
        await tree.sync()


async def test_a_closed_tree_is_transient_and_may_be_closed_again(tree: ZooKeeperTree) -> None:
    await tree.close()
    await tree.close()
    with pytest.raises(Transient):
        await tree.get("/a")


# ---- transactions ----


async def test_a_transaction_makes_all_its_changes(tree: ZooKeeperTree) -> None:
    assert await tree.commit([SetZnode("/a", b"third", 1), DeleteZnode("/a/x", 0), DeleteZnode("/a/y", 0)])
    assert timeless(await tree.get("/a")) == Znode(b"third", 2, 0)
    assert await tree.children("/a") == ()


@pytest.mark.parametrize(
    "stale",
    [SetZnode("/a/y", b"never", 7), DeleteZnode("/a/y", 7), SetZnode("/absent", b"never", 0), DeleteZnode("/absent", 0)],
)
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_one_stale_version_or_missing_znode_changes_nothing(
    tree: ZooKeeperTree, stale: SetZnode | DeleteZnode, place: int
) -> None:
    before = await tree.get_many(["/a", "/a/x", "/a/y"])
    changes: list[SetZnode | DeleteZnode] = [SetZnode("/a", b"never", 1), DeleteZnode("/a/x", 0)]
    assert not await tree.commit([*changes[:place], stale, *changes[place:]])
    assert await tree.get_many(["/a", "/a/x", "/a/y"]) == before


async def test_a_transaction_said_twice_happens_once(tree: ZooKeeperTree) -> None:
    changes = [SetZnode("/a", b"third", 1), DeleteZnode("/a/x", 0)]
    assert [await tree.commit(changes), await tree.commit(changes)] == [True, False]
    assert timeless(await tree.get("/a")) == Znode(b"third", 2, 0)


async def test_a_transaction_may_change_a_znode_more_than_once(tree: ZooKeeperTree) -> None:
    """Each change sees what those before it did."""
    assert await tree.commit([SetZnode("/a", b"same", 1), SetZnode("/a/x", b"x", 0), SetZnode("/a", b"same", 2)])
    assert timeless(await tree.get("/a")) == Znode(b"same", 3, 0)
    assert not await tree.commit([SetZnode("/a", b"never", 3), SetZnode("/a", b"never", 3)])
    assert timeless(await tree.get("/a")) == Znode(b"same", 3, 0)


async def test_a_znode_with_children_is_not_deleted(tree: ZooKeeperTree) -> None:
    with pytest.raises(Permanent, match="children"):
        await tree.commit([DeleteZnode("/a/x", 0), DeleteZnode("/a", 1)])
    assert await tree.children("/a") == ("x", "y")


async def test_znodes_are_created_parents_first(tree: ZooKeeperTree) -> None:
    changes = [SetZnode("/a", b"third", 1), CreateZnode("/a/z", b"", "/a"), CreateZnode("/a/z/deep", b"new", "/a")]
    assert await tree.commit(changes)
    found = [timeless(znode) for znode in await tree.get_many(["/a/z", "/a/z/deep"])]
    assert found == [Znode(b"", 0, 0), Znode(b"new", 0, 0)]


@pytest.mark.parametrize(
    "impossible",
    [CreateZnode("/a/x", b"never", "/a"), CreateZnode("/absent/x", b"never", "/a"), CreateZnode("/a/z", b"never", "/absent")],
)
async def test_what_cannot_be_created_changes_nothing(tree: ZooKeeperTree, impossible: CreateZnode) -> None:
    before = await tree.get_many(["/a", "/a/x"])
    assert not await tree.commit([SetZnode("/a", b"never", 1), impossible])
    assert await tree.get_many(["/a", "/a/x"]) == before
    assert await tree.children("/a") == ("x", "y")


async def test_a_rehearsal_changes_nothing(tree: ZooKeeperTree) -> None:
    changes: list[SetZnode | DeleteZnode] = [SetZnode("/a", b"never", 1), DeleteZnode("/a/x", 0)]
    before = await tree.get_many(["/a", "/a/x"])
    for count in range(3):
        await tree.rehearse(changes[:count])
    assert await tree.get_many(["/a", "/a/x"]) == before


async def test_no_session_no_transaction(tree: ZooKeeperTree) -> None:
    await tree.close()
    with pytest.raises(Transient):
        await tree.commit([SetZnode("/a", b"never", 1)])


async def test_a_lost_answer_is_transient_and_ends_the_session() -> None:
    faults = Faults()
    tree = FakeTree({"/a": Znode(b"", 0, 0)}, faults)
    faults.loses_commit_answer = True
    for _ in range(2):
        with pytest.raises(Transient):
            await tree.commit([SetZnode("/a", b"written", 0)])


# ---- real servers only ----


@pytest.mark.cluster
async def test_a_transaction_whose_answer_is_lost_happened_whole_or_not_at_all(
    zookeeper: ClusterRecord, ensemble: Ensemble, chroot: str, user: KazooClient
) -> None:
    """The ensemble freezes under the transaction. Afterwards another session can tell, and nothing arrives any more."""
    write_tree(user, chroot)
    opened = await ensembles(call_seconds=1.0).connect(zookeeper)
    with frozen(ensemble, 3):
        with pytest.raises(Transient, match="check whether it happened"):
            await opened.commit([SetZnode("/a", b"third", 1), DeleteZnode("/a/x", 0)])
        with pytest.raises(Transient, match="nothing was sent"):
            await opened.commit([SetZnode("/a", b"third", 1)])
    again = await eventually_connected(zookeeper)
    found = [timeless(znode) for znode in await again.get_many(["/a", "/a/x"])]
    print(f"after the thaw: {'it had happened' if found[1] is None else 'it had not'}")
    assert found in ([Znode(b"third", 2, 0), None], [Znode(b"second", 1, 0), Znode(b"x", 0, 0)])
    await again.close()
    await opened.close()


@pytest.mark.cluster
async def test_opening_and_closing_is_quick_and_leaves_no_thread(zookeeper: ClusterRecord) -> None:
    before, began, rounds = set(threading.enumerate()), time.monotonic(), 20
    for _ in range(rounds):
        opened = await ensembles().connect(zookeeper)
        await opened.children("/")
        await opened.close()
    left = {t.name for t in set(threading.enumerate()) - before if not t.name.startswith("asyncio")}
    print(f"one look: {(time.monotonic() - began) / rounds * 1000:.1f} ms")
    assert not left


@pytest.mark.cluster
async def test_nobody_there_is_transient_in_time(as_record: AsRecord) -> None:
    before, began = threading.active_count(), time.monotonic()
    with pytest.raises(Transient):
        await ensembles(connect_seconds=1.0).connect(as_record(spec_with("127.0.0.1:1,127.0.0.1:2/kafka")))
    assert time.monotonic() - began < 4
    assert threading.active_count() <= before + 1, "only asyncio's own thread may be new"


@pytest.mark.cluster
async def test_one_frozen_server_is_passed_by(zookeeper: ClusterRecord, ensemble: Ensemble) -> None:
    with frozen(ensemble, 1):
        for _ in range(4):
            opened = await ensembles().connect(zookeeper)
            await opened.close()


@pytest.mark.cluster
async def test_a_frozen_ensemble_is_transient_and_comes_back(zookeeper: ClusterRecord, ensemble: Ensemble) -> None:
    opened = await ensembles(call_seconds=1.0).connect(zookeeper)
    threads = threading.active_count()
    with frozen(ensemble, 3):
        began = time.monotonic()
        with pytest.raises(Transient):
            await opened.get("/")
        assert time.monotonic() - began < 3
        with pytest.raises(Transient):
            await ensembles(connect_seconds=1.0).connect(zookeeper)
        await opened.close()
        print(f"all given up {time.monotonic() - began:.1f} s after the freeze")
        assert threading.active_count() <= threads
    again = await eventually_connected(zookeeper)
    await again.close()


@pytest.mark.cluster
async def test_a_protected_znode_needs_the_digest_identity(
    as_record: AsRecord, ensemble: Ensemble, chroot: str, user: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    acl = [make_digest_acl("kafka", "s3cret", all=True), make_acl("world", "anyone", create=True)]
    user.create(f"{chroot}/protected", b"seen", makepath=True, acl=acl)
    monkeypatch.setenv("ZK_AUTH", "kafka:s3cret")
    opened = await ensembles().connect(as_record(spec_with(ensemble.connect(chroot), "env:ZK_AUTH")))
    assert timeless(await opened.get("/protected")) == Znode(b"seen", 0, 0)
    monkeypatch.setenv("ZK_AUTH", "kafka:wrong")
    stranger = await ensembles().connect(as_record(spec_with(ensemble.connect(chroot), "env:ZK_AUTH")))
    for refused_call in (stranger.get("/protected"), stranger.commit([SetZnode("/protected", b"forged", 0)])):
        with pytest.raises(Permanent, match="/protected") as refused:
            await refused_call
        assert "wrong" not in str(refused.value)
    assert await opened.commit([SetZnode("/protected", b"written", 0)])
    assert timeless(await opened.get("/protected")) == Znode(b"written", 1, 0)
    await stranger.close()
    await opened.close()


@pytest.mark.cluster
@pytest.mark.parametrize(("most", "has_room"), [(4, True), (3, False)], ids=["room for one", "none"])
async def test_a_hard_quota_is_seen_and_nothing_is_made(
    as_record: AsRecord, ensemble: Ensemble, chroot: str, user: KazooClient, most: int, *, has_room: bool
) -> None:
    """On the chroot, with the two below it, as `setquota -N` writes it."""
    user.ensure_path(f"{chroot}/brokers/ids")
    limits = f"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit={most}"
    user.create(f"/zookeeper/quota{chroot}/zookeeper_limits", limits.encode(), makepath=True)
    user.create(f"/zookeeper/quota{chroot}/zookeeper_stats", b"count=3,bytes=0=;byteHardLimit=-1;countHardLimit=-1")
    opened = await ensembles().connect(as_record(spec_with(ensemble.connect(chroot))))
    try:
        assert await opened.has_room("/brokers/ids") is has_room
        assert await opened.children("/brokers/ids") == ()
    finally:
        await opened.close()
        user.delete(f"/zookeeper/quota{chroot}", recursive=True)


@pytest.mark.cluster
@pytest.mark.parametrize("protected", [None, "epoch", "folder"])
async def test_a_rehearsal_tells_of_a_permission_that_is_missing_for_any_of_the_changes(
    as_record: AsRecord, ensemble: Ensemble, chroot: str, user: KazooClient, protected: str | None
) -> None:
    readable = [make_acl("world", "anyone", read=True)]
    user.ensure_path(chroot)
    user.create(f"{chroot}/epoch", b"1", acl=readable if protected == "epoch" else None)
    for name in ("migration", "controller"):
        user.create(f"{chroot}/{name}", b"")
    if protected == "folder":
        user.set_acls(chroot, readable)
    opened = await ensembles().connect(as_record(spec_with(ensemble.connect(chroot))))
    both = [SetZnode("/epoch", b"2", 0), DeleteZnode("/migration", 0), DeleteZnode("/controller", 0)]
    for changes in (both, both[:2], both[:1]):
        if protected is None or (protected == "folder" and changes == both[:1]):
            await opened.rehearse(changes)
        else:
            with pytest.raises(Permanent, match="not allowed"):
                await opened.rehearse(changes)
    await opened.rehearse([])
    assert timeless(await opened.get("/epoch")) == Znode(b"1", 0, 0)
    assert await opened.get("/migration") is not None
    await opened.close()


@pytest.mark.cluster
async def test_a_created_znode_is_protected_like_another(
    as_record: AsRecord, ensemble: Ensemble, chroot: str, user: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    acl = [make_digest_acl("kafka", "s3cret", all=True), make_acl("world", "anyone", read=True)]
    user.ensure_path(chroot)
    user.create(f"{chroot}/topic", b"", acl=acl)
    monkeypatch.setenv("ZK_AUTH", "kafka:s3cret")
    opened = await ensembles().connect(as_record(spec_with(ensemble.connect(chroot), "env:ZK_AUTH")))
    assert await opened.commit([CreateZnode("/topic/state", b"new", "/topic")])
    stranger = await ensembles().connect(as_record(spec_with(ensemble.connect(chroot))))
    with pytest.raises(Permanent):
        await stranger.commit([SetZnode("/topic/state", b"forged", 0)])
    assert await opened.commit([SetZnode("/topic/state", b"written", 0)])
    for tree in (stranger, opened):
        await tree.close()


async def eventually_connected(zookeeper: ClusterRecord) -> ZooKeeperTree:
    deadline = time.monotonic() + 60
    while True:
        try:
            return await ensembles().connect(zookeeper)
        except Transient:
            if time.monotonic() > deadline:
                raise


class frozen:  # noqa: N801 - reads as a statement
    """Some of the ensemble's servers do not answer, and keep their connections."""

    def __init__(self, ensemble: Ensemble, count: int) -> None:
        files = [server.directory / "zookeeper.pid" for server in ensemble.servers[:count]]
        self._pids = [int(file.read_text()) for file in files]

    def __enter__(self) -> None:
        for pid in self._pids:
            assert psutil.pid_exists(pid)
            os.kill(pid, signal.SIGSTOP)
        # Each thread stops when it is next given a processor: on a busy machine others answer meanwhile.
        wait_until(lambda: all(self._stands_still(pid) for pid in self._pids), "the servers to stand still", 30)

    @staticmethod
    def _stands_still(pid: int) -> bool:
        return all(f.read_text().rpartition(")")[2].split()[0] == "T" for f in Path(f"/proc/{pid}/task").glob("*/stat"))

    def __exit__(self, *_: object) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT)
