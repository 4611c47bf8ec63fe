"""`keeperless-api` as a process: where it listens, what it says, how it leaves."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from playground.example import example_cluster
from playground.ports import LOOPBACK, PortLease
from tests.api.conftest import ASKED

STREAM = {"accept": "text/event-stream"}
REPOSITORY = Path(__file__).parents[2]


@contextmanager
def process(directory: Path, **settings: str) -> Iterator["subprocess.Popen[str]"]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONPATH": str(REPOSITORY)} | settings
    started = subprocess.Popen(
        [sys.executable, "-m", "api.server"], env=environment, cwd=directory, stderr=subprocess.PIPE, text=True
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@pytest.fixture
def port() -> Iterator[int]:
    lease = PortLease(1)
    yield lease.take()
    lease.close()


def await_answer(url: str) -> httpx.Response:
    deadline = time.monotonic() + 30
    while True:
        try:
            return httpx.get(url, trust_env=False)
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise


def a_migration(base: str) -> str:
    """The address of a migration, which has failed for lack of a Temporal."""
    spec = example_cluster()
    httpx.put(f"{base}/clusters/{spec.name}", json=spec.model_dump(mode="json"), trust_env=False).raise_for_status()
    httpx.post(f"{base}/migrations", json={"cluster": spec.name, **ASKED}, trust_env=False)
    (migration,) = httpx.get(f"{base}/migrations", trust_env=False).json()["items"]
    return str(migration["links"]["self"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_says_that_it_is_open_and_leaves_cleanly_with_a_stream_open(
    tmp_path: Path, port: int, number: signal.Signals
) -> None:
    base = f"http://{LOOPBACK}:{port}"
    with process(tmp_path, KEEPERLESS_PORT=str(port), TEMPORAL_ADDRESS="127.0.0.1:1") as api:
        assert await_answer(f"{base}/livez").status_code == 200
        missing = httpx.get(f"{base}/readyz", trust_env=False)
        assert (missing.status_code, missing.json()["missing"]) == (503, ["temporal"])
        assert (tmp_path / ".local" / "state" / "keeperless" / "ledger.db").exists()
        with httpx.stream("GET", f"{base}{a_migration(base)}/events", headers=STREAM, trust_env=False, timeout=20) as stream:
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("id: "))
            began = time.monotonic()
            api.send_signal(number)
            list(lines)
        _, output = api.communicate(timeout=20)
    print(f"left after {time.monotonic() - began:.1f} s")
    assert api.returncode == 0, output
    log = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    warning = next(entry for entry in log if "authentication is off" in entry["event"])
    assert (warning["address"], warning["principal"]) == (LOOPBACK, "local (unauthenticated)")


def test_it_refuses_to_be_reachable_from_elsewhere(tmp_path: Path) -> None:
    with process(tmp_path, KEEPERLESS_BIND_ADDRESS="192.0.2.7") as api:
        _, log = api.communicate(timeout=30)
    assert api.returncode == 2
    assert "KEEPERLESS_BIND_ADDRESS: without authentication" in json.loads(log.splitlines()[-1])["error"]


def test_a_wrong_ledger_url_is_said_without_its_password(tmp_path: Path) -> None:
    with process(tmp_path, KEEPERLESS_LEDGER_URL="mysql://keeper:hunter2@db/ledger") as api:
        _, log = api.communicate(timeout=30)
    assert api.returncode == 2
    assert "expected sqlite" in log
    assert "hunter2" not in log


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken, process(tmp_path, KEEPERLESS_PORT=str(taken.getsockname()[1])) as api:
        _, log = api.communicate(timeout=30)
    assert api.returncode == 1, log
    assert "address already in use" in log


def test_logs_are_json_and_show_no_local_variables() -> None:
    program = (
        "import structlog; from console.logs import configure_logs; configure_logs('x'); log = structlog.get_logger('x')\n"
        "def fail():\n    password = 'hunter' + str(2)\n    raise ValueError('wrong')\n"
        "try:\n    fail()\nexcept ValueError:\n    log.exception('it failed', cluster='orders')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    entry = json.loads(line)
    assert (entry["event"], entry["cluster"], entry["level"]) == ("it failed", "orders", "error")
    assert "ValueError: wrong" in entry["exception"]
    assert "hunter2" not in line
