"""Who listens: the real adapter's answer for a process that runs, one that stands still, and none; and the simulated one's."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from activities.adapters.listeners import TcpListeners
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
    assert not await TcpListeners(seconds=0.5).is_answering("no-such-host.invalid", 9093)


async def test_a_simulated_controller_answers_while_it_runs() -> None:
    cluster = FakeCluster()
    first, second, _ = cluster.spec.controllers
    listeners = FakeListeners(cluster, strangers=(second.id,))
    assert not await listeners.is_answering(first.host, first.port)
    assert await listeners.is_answering(second.host, second.port)
