"""Whether a ZooKeeper server serves: the adapter's answer for everything that can be at a port."""

import asyncio
import errno
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from activities.adapters import four_letter_words
from activities.adapters.four_letter_words import FourLetterWords
from activities.observing.member_trees import differing_trees
from domain.cluster import host_and_port
from domain.diagnosis.causes.hints import Serving
from domain.observed.ensemble import MemberTree, Trees
from playground import processes
from playground.cache import silent
from playground.cluster import prepared_runtime, stop_everything_in
from playground.ensemble import Ensemble, ZooKeeperServer, mode_of, plan_ensemble, write_configuration
from playground.ports import PortLease

SECONDS = 0.3
SERVES = b"Zookeeper version: 3.8.4\nLatency min/avg/max: 0/0.4/5\nZxid: 0x100000003\nMode: follower\nNode count: 5\n"
IDLE = b"This ZooKeeper instance is not currently serving requests\n"
FORBIDDEN = b"srvr is not executed because it is not in the whitelist.\n"


@asynccontextmanager
async def answering(*said: bytes) -> AsyncIterator[int]:
    """A server that says this, and closes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(4))
        for part in said:
            writer.write(part)
        await writer.drain()
        writer.close()

    asked: list[bytes] = []
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])
    assert asked == [b"srvr"]


def ask(port: int) -> Awaitable[Serving]:
    return FourLetterWords(SECONDS).serving("127.0.0.1", port)


@pytest.mark.parametrize(
    ("said", "serving"),
    [
        (SERVES, Serving.YES),
        (SERVES.replace(b"follower", b"leader"), Serving.LEADS),
        (SERVES.replace(b"follower", b"read-only"), Serving.NO),
        (SERVES.replace(b"follower", b"standalone"), Serving.ALONE),
        (SERVES.replace(b"Zxid", b"Outstanding: 0\nZxid"), Serving.YES),
        (IDLE, Serving.NO),
        (FORBIDDEN, Serving.UNKNOWN),
        (b"", Serving.UNKNOWN),
    ],
    ids=[
        "serves",
        "leads",
        "only lets read",
        "serves alone",
        "is well",
        "has no quorum",
        "forbids the word",
        "closes without a word",
    ],
)
async def test_what_a_server_says_is_understood(said: bytes, serving: Serving) -> None:
    async with answering(said) as port:
        assert await ask(port) is serving


@pytest.mark.parametrize(
    ("said", "tree"),
    [
        (SERVES, MemberTree(0x100000003, 5)),
        (SERVES.replace(b"follower", b"leader"), MemberTree(0x100000003, 5, is_leader=True)),
        (SERVES.replace(b"follower", b"observer"), MemberTree(0x100000003, 5)),
        (SERVES.replace(b"follower", b"read-only"), None),
        (SERVES.replace(b"follower", b"standalone"), MemberTree(0x100000003, 5, is_alone=True)),
        (SERVES.removesuffix(b"\n"), None),
        (IDLE, None),
        (FORBIDDEN, None),
        (b"", None),
    ],
)
async def test_how_much_a_member_of_a_quorum_has_is_understood(said: bytes, tree: MemberTree | None) -> None:
    async with answering(said) as port:
        assert await FourLetterWords(SECONDS).tree("127.0.0.1", port) == tree


async def test_who_is_not_there_has_no_tree() -> None:
    assert await FourLetterWords(SECONDS).tree("no-such-host.invalid", 2181) is None


@pytest.mark.parametrize(
    ("waiting", "moves", "serving"),
    [
        ((3, 3), True, Serving.YES),
        ((3, 0), False, Serving.YES),
        ((3, 4), False, Serving.STUCK),
        ((900, 1200), True, Serving.BUSY),
        ((900, 1200), False, Serving.STUCK),
    ],
)
async def test_requests_that_wait_are_looked_at_twice(
    waiting: tuple[int, int], moves: bool, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once more a moment later: by then one that is well has answered them, or others."""
    monkeypatch.setattr(four_letter_words, "MEANWHILE_SECONDS", 0.01)
    said: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        zxid = b"0x10000000" + (b"%d" % len(said) if moves else b"0")
        said.append(SERVES.replace(b"Zxid: 0x100000003", b"Outstanding: %d\nZxid: %s" % (waiting[len(said)], zxid)))
        writer.write(said[-1])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        assert await ask(server.sockets[0].getsockname()[1]) is serving
    assert len(said) == 2


async def test_nobody_there_is_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert await ask(port) is Serving.REFUSED


async def test_a_process_that_stands_still_is_silent_in_time() -> None:
    """Its kernel accepts, and nobody reads."""
    with socket.create_server(("127.0.0.1", 0)) as standing_still:
        began = asyncio.get_running_loop().time()
        assert await ask(standing_still.getsockname()[1]) is Serving.SILENT
        assert asyncio.get_running_loop().time() - began < 10 * SECONDS


async def test_who_has_no_file_left_knows_nothing_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio, "open_connection", connect)
    assert await ask(2181) is Serving.UNKNOWN


async def test_a_way_that_is_shut_is_no_refusal() -> None:
    """A name that nobody knows; and a queue of connections that is full, which lets whoever knocks wait as a firewall does."""
    assert await FourLetterWords(SECONDS).serving("no-such-host.invalid", 2181) is Serving.UNREACHED
    with socket.socket() as full, ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(6):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        assert await ask(full.getsockname()[1]) is Serving.UNREACHED


# ---- real members with different trees ----


@pytest.fixture
def own_ensemble(tmp_path: Path) -> Iterator[Ensemble]:
    """Of three, for one test: its members are stopped, and set apart."""
    with PortLease(9) as lease:
        ensemble = plan_ensemble(tmp_path, lease, prepared_runtime(tmp_path, silent))
        try:
            ensemble.start()
            yield ensemble
        finally:
            stop_everything_in(tmp_path)


def do(connect: str, change: Callable[[KazooClient], object]) -> None:
    client = KazooClient(connect, timeout=10)
    client.start(timeout=30)
    try:
        change(client)
    finally:
        client.stop()
        client.close()


def restart(ensemble: Ensemble, server: ZooKeeperServer, members: tuple[ZooKeeperServer, ...], mode: str) -> None:
    processes.kill(ensemble.launch(server), signal.SIGTERM)
    write_configuration(server, members)
    processes.start(ensemble.launch(server))
    processes.wait_until(lambda: mode_of(server) == mode, f"{server.name} as {mode}", 60)


async def differing(ensemble: Ensemble) -> Trees:
    """After a write that all have: members that have done nothing since an election say different zxids."""
    do(ensemble.connect(""), lambda client: client.set("/orders", b""))
    words = FourLetterWords()
    return await differing_trees(
        lambda address: words.tree(*host_and_port(address)), [server.address for server in ensemble.servers]
    )


@pytest.mark.cluster
async def test_a_member_that_was_changed_alone_and_joined_again_is_found(own_ensemble: Ensemble) -> None:
    ensemble, follower = own_ensemble, next(s for s in own_ensemble.servers if mode_of(s) == "follower")
    do(ensemble.connect(""), lambda client: [client.create(f"/orders/{n}", makepath=True) for n in range(9)])
    assert await differing(ensemble) == {}

    restart(ensemble, follower, (), "standalone")
    do(follower.address, lambda client: client.delete("/orders/3"))
    others = ",".join(server.address for server in ensemble.servers if server != follower)
    do(others, lambda client: [client.set("/orders/4", b"x") for _ in range(50)])
    restart(ensemble, follower, ensemble.servers, "follower")
    trees = await differing(ensemble)
    print(f"--- {trees}")
    assert set(trees) == {server.address for server in ensemble.servers}
    alone = trees[follower.address].znodes
    assert [tree.znodes - alone for address, tree in trees.items() if address != follower.address] == [1, 1]
    assert sum(tree.is_leader for tree in trees.values()) == 1

    processes.kill(ensemble.launch(follower), signal.SIGTERM)
    (follower.data / "version-2").rename(follower.directory / "aside")
    restart(ensemble, follower, ensemble.servers, "follower")
    assert await differing(ensemble) == {}
