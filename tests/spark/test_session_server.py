"""The embedded Spark as a process: it lets in whoever has its token, is one for all, comes back, and ends with its owner."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from domain.errors import Permanent, Transient
from playground.processes import wait_until
from spark.session.connect import interrupt_attempt, is_answering, new_session_id, session
from spark.session.embedded import EmbeddedSpark
from spark.session.endpoint import Endpoint
from tests.spark.slow_jobs import REPOSITORY, plan

OWNER = """
import sys, time
from pathlib import Path
from tests.spark.slow_jobs import plan
from spark.session.connect import is_answering, new_session_id, session
from spark.session.embedded import EmbeddedSpark
spark = EmbeddedSpark(plan(Path(sys.argv[1])), is_answering)
with session(spark.endpoint(), new_session_id()) as found:
    found.range(2).mapInArrow(lambda batches: batches, "id long").count()
print(spark.pid, flush=True)
time.sleep(600)
"""


def group_of(pid: int) -> list[psutil.Process]:
    """All living processes of its process group, and below them: Spark's Python processes make a group of their own."""
    found = [process for process in psutil.process_iter() if _group(process.pid) == pid]
    below = [child for process in found for child in process.children(recursive=True)]
    return list({process.pid: process for process in (*found, *below)}.values())


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_it_answers_and_listens_on_loopback_only(embedded: EmbeddedSpark, spark: Any) -> None:
    assert spark.range(1000).count() == 1000
    listening = [c for c in psutil.Process(embedded.pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert listening
    assert {connection.laddr.ip.removeprefix("::ffff:") for connection in listening} == {"127.0.0.1"}


@pytest.mark.parametrize("token", ["", "wrong"])
def test_without_its_token_nobody_gets_in(endpoint: Endpoint, token: str) -> None:
    stranger = Endpoint(endpoint.url, token)
    assert not is_answering(stranger, 10)
    with pytest.raises(Permanent, match="KEEPERLESS_SPARK_TOKEN"), session(stranger, new_session_id()) as spark:
        spark.range(1).count()
    with pytest.raises(Permanent, match="KEEPERLESS_SPARK_TOKEN"):
        interrupt_attempt(stranger, new_session_id())
    assert is_answering(endpoint, 10)


def test_its_token_is_in_no_command_line_log_or_name(embedded: EmbeddedSpark, endpoint: Endpoint, spark: Any) -> None:
    assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
    assert len(endpoint.token) >= 32
    assert endpoint.token not in repr(endpoint)
    lines = [" ".join(process.cmdline()) for process in group_of(embedded.pid)]
    assert len(lines) >= 3, "the JVM, its watcher, Spark's Python processes"
    assert not [line for line in lines if endpoint.token in line]
    directory = embedded._plan.directory
    holders = [path for path in directory.rglob("*") if path.is_file() and endpoint.token.encode() in path.read_bytes()]
    assert holders == [directory / "endpoint.json"]
    assert holders[0].stat().st_mode & 0o077 == 0


def test_a_second_worker_uses_the_one_that_runs(embedded: EmbeddedSpark, endpoint: Endpoint) -> None:
    second = EmbeddedSpark(embedded._plan, is_answering)
    began = time.monotonic()
    assert second.endpoint() == endpoint
    assert second.pid is None
    print(f"found in {time.monotonic() - began:.2f} s")
    second.close()
    assert is_answering(endpoint, 10), "it stops what it has started, and nothing else"


def test_dead_it_is_started_again_and_closed_it_leaves_nothing(tmp_path: Path) -> None:
    spark = EmbeddedSpark(plan(tmp_path), is_answering)
    try:
        first, pid = spark.endpoint(), spark.pid
        assert spark.endpoint() == first
        os.kill(pid, signal.SIGKILL)
        second = spark.endpoint()
        assert spark.pid != pid
        assert second.token != first.token
        assert is_answering(second, 10)
        everything = group_of(spark.pid)
    finally:
        spark.close()
    assert everything
    wait_until(lambda: all(is_gone(process) for process in everything), "all of it has ended", 5)
    assert not (tmp_path / "scratch").exists()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    spark = EmbeddedSpark(plan(tmp_path, driver_memory="1k"), is_answering)
    with pytest.raises(Transient, match="Too small maximum heap"):
        spark.endpoint()
    assert spark.pid is None or not psutil.pid_exists(spark.pid)
    spark.close()


def test_it_ends_with_its_owner(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as owner:
        server = int(owner.stdout.readline())
        everything = group_of(server)
        assert len(everything) >= 3
        owner.kill()
    seconds = wait_until(lambda: all(is_gone(p) for p in everything), "Spark ends with its owner", 5)
    print(f"{len(everything)} processes gone {seconds:.2f} s after their owner")
    log = (tmp_path / "server.log").read_text()
    assert re.search(r"server started at", log)
    assert "stopping" not in log.lower(), "killed, not asked"
