"""Who listens: the real adapter's answer for a process that runs, one that stands still, and none; and the simulated one's."""

import asyncio
import errno
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from activities.adapters.listeners import TcpListeners
from activities.observing.addresses import knocked_at
from activities.own_network import resolve
from activities.ports.kafka import LookedUp
from activities.zk_to_kraft.window.strangers import answering
from domain.errors import Obstacle, Transient
from playground.fakes.cluster import FakeCluster
from playground.fakes.listeners import FakeListeners

SERVER = (
    "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); time.sleep(60)"
)


@pytest.fixture
def server() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def test_a_server_answers_until_it_is_dead(server: tuple[subprocess.Popen[bytes], int]) -> None:
    process, port = server
    assert await TcpListeners().is_answering("127.0.0.1", port)
    os.kill(process.pid, signal.SIGSTOP)
    assert await TcpListeners().is_answering("127.0.0.1", port), "a frozen process is not dead: it may go on"
    process.kill()
    process.wait()
    assert not await TcpListeners().is_answering("127.0.0.1", port)


async def test_where_nothing_comes_back_nobody_answers() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        try:
            assert not await TcpListeners(seconds=0.2).is_answering("127.0.0.1", port)
        finally:
            for client in waiting:
                client.close()


async def test_where_some_connections_get_through_it_is_counted() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(2)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        silent: list[str] = []
        found = await knocked_at({2: {"PLAINTEXT": address}}, TcpListeners(seconds=0.5), silent)
    ((through, begun),) = found.partly[2].values()
    assert 0 < through < begun == 8
    assert not found.unheard
    assert silent == []


async def test_a_name_that_is_not_resolved_says_nothing_of_who_has_it() -> None:
    listeners = TcpListeners()
    with pytest.raises(Transient, match=r"no-such-host\.invalid cannot be resolved") as raised:
        await listeners.is_answering("no-such-host.invalid", 9093)
    assert raised.value.obstacle is Obstacle.UNRESOLVED
    unknown = await listeners.look_up("no-such-host.invalid")
    assert unknown.why_not
    assert not unknown.numbers
    assert "127.0.0.1" in (await listeners.look_up("localhost")).numbers
    assert [await listeners.look_up(host) for host in ("127.0.0.1", "::1")] == [LookedUp(("127.0.0.1",)), LookedUp(("::1",))]


async def test_who_has_no_thread_to_ask_with_blames_no_name() -> None:
    loop, is_over = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    hangs = loop.run_in_executor(None, is_over.wait)
    try:
        with pytest.raises(Transient, match="none was free within") as raised:
            await resolve("localhost", 0.2)
        assert raised.value.obstacle is Obstacle.OURS
    finally:
        is_over.set()
        await hangs


async def test_a_lost_host_without_a_name_keeps_nobody_from_the_way_back() -> None:
    spec = FakeCluster().spec
    lost = spec.controllers[0].model_copy(update={"host": "no-such-host.invalid"})
    assert await answering(spec.with_quorum_changed(controllers=(lost,)), TcpListeners()) == []


async def test_a_host_that_cannot_ask_does_not_take_others_for_dead(server: tuple[subprocess.Popen[bytes], int]) -> None:
    """Who counts on the answer may wipe what he takes for dead."""
    _, port = server
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        with pytest.raises(Transient, match=r"Too many open files.*ulimit -n"):
            await TcpListeners().is_answering("127.0.0.1", port)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert await TcpListeners().is_answering("127.0.0.1", port)


@pytest.mark.parametrize(
    ("said", "is_ours"),
    [
        ([errno.EADDRNOTAVAIL], True),
        ([errno.EADDRNOTAVAIL, errno.EADDRNOTAVAIL], True),
        ([errno.EADDRNOTAVAIL, errno.ECONNREFUSED], False),
        ([errno.EHOSTUNREACH], False),
    ],
)
async def test_of_several_addresses_one_that_refuses_is_an_answer(
    said: list[int], is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        errors = [OSError(number, f"Connect call failed ('::1', {number})") for number in said]
        raise errors[0] if len(errors) == 1 else OSError(f"Multiple exceptions: {', '.join(map(str, errors))}")

    monkeypatch.setattr(asyncio, "open_connection", fails)
    if is_ours:
        with pytest.raises(Transient, match="Cannot assign requested address"):
            await TcpListeners().is_answering("localhost", 9093)
    else:
        assert not await TcpListeners().is_answering("localhost", 9093)


async def test_a_simulated_controller_answers_while_it_runs() -> None:
    cluster = FakeCluster()
    first, second, _ = cluster.spec.controllers
    listeners = FakeListeners(cluster, strangers=(second.id,))
    assert not await listeners.is_answering(first.host, first.port)
    assert await listeners.is_answering(second.host, second.port)


@contextmanager
def cutting_off(*, is_orderly: bool) -> Iterator[int]:
    """A port at which each connection is accepted and closed at once: by a reset, or in order."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = server.accept()
                    if not is_orderly:
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    client.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


async def test_connections_that_are_reset_are_told_from_others(server: tuple[subprocess.Popen[bytes], int]) -> None:
    """A broker that closes in order has a limit of connections; nobody at all is refused by the kernel."""
    listeners = TcpListeners()
    with cutting_off(is_orderly=False) as port:
        assert await listeners.is_cut_off("127.0.0.1", port)
    assert not await listeners.is_cut_off("127.0.0.1", port), "refused"
    with cutting_off(is_orderly=True) as port:
        assert not await listeners.is_cut_off("127.0.0.1", port)
    assert not await listeners.is_cut_off("127.0.0.1", server[1])
