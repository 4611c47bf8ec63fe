"""A JVM is asked what its threads are at: a real one on this machine, and the simulated one; and who is none, or not there."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.adapters.nodes.drivers import SpecDrivers
from activities.diagnosis.machines import thread_hints
from activities.observing.node_survey import run_program
from activities.observing.observe import observe
from activities.on_node import command_of
from activities.ports.nodes import NodeDriver
from domain.cluster import NodeSpec
from domain.configuration.properties import parse
from domain.diagnosis.logs.threads import OF_REQUESTS, Thread, at_work_in
from domain.observed.observation import NodeView, Process
from playground.cluster import PlaygroundCluster
from playground.fakes.cluster import FakeCluster
from playground.java import java_home
from tests.conformance.test_node_driver import local_node
from tests.unit.conftest import with_node
from tests.unit.test_surveying import ports_of

WAITS_FOR_A_PASSWORD = ("-m", "java.base/sun.security.tools.keytool.Main", "-genkeypair", "-keyalg", "EC", "-keystore")
READ, ASK = "java.io.FileInputStream.readBytes", "sun.security.util.Password.readPassword"
CONNECTS = ["java.net.Socket.connect", "com.example.OwnReporter.configure"]


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[int]:
    """Java's own program, at its question for a password."""
    command = [str(java_home() / "bin" / "java"), *WAITS_FOR_A_PASSWORD, str(tmp_path / "store.p12")]
    with (tmp_path / "said").open("wb") as said, subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said) as process:
        until = time.monotonic() + 60
        while b"password" not in (tmp_path / "said").read_bytes():
            assert time.monotonic() < until
            time.sleep(0.05)
        yield process.pid
        process.terminate()
        process.wait(30)
    places_of(process.pid)[0].unlink(missing_ok=True)


def places_of(pid: int) -> tuple[Path, Path]:
    """HotSpot's own: its socket, and the file that has it listen there."""
    return Path(f"/tmp/.java_pid{pid}"), Path(f"/tmp/.attach_pid{pid}")  # noqa: S108


STAND_IN = """
import mmap, signal, sys, time
files = [open(path, "rb") for path in sys.argv[2:]]
mapped = [mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for file in files]
signal.signal(signal.SIGQUIT, lambda *_: print("asked", flush=True))
if sys.argv[1] == "blocks":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGQUIT])
print("ready", flush=True)
while True:
    time.sleep(60)
"""


class StandIn:
    """A process that looks like a JVM, says how often it is asked, and never listens."""

    def __init__(self, folder: Path, *, maps: tuple[str, ...] = ("libjvm.so",), manner: str = "") -> None:
        for name in maps:
            (folder / name).write_bytes(b"x")
        self._said = folder / "said"
        with self._said.open("wb") as said:
            command = [sys.executable, "-c", STAND_IN, manner, *(str(folder / name) for name in maps)]
            self.process = subprocess.Popen(command, stdout=said)
        until = time.monotonic() + 10
        while b"ready" not in self._said.read_bytes():
            assert time.monotonic() < until
            time.sleep(0.02)

    @property
    def times_asked(self) -> int:
        return self._said.read_text("utf-8").count("asked")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for place in places_of(self.process.pid):
            place.unlink(missing_ok=True)


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[Callable[..., StandIn]]:
    begun: list[StandIn] = []

    def begin(**given: Any) -> StandIn:
        begun.append(StandIn(tmp_path, **given))
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


async def told_of(driver: NodeDriver, pid: int) -> dict[str, object]:
    ran = await driver.run(command_of("ask_threads", {"pid": pid}), {}, timedelta(seconds=30))
    assert ran.exit_code == 0, ran.errors
    answer: dict[str, object] = json.loads(ran.output)
    return answer


async def test_a_jvm_says_where_it_stands_and_runs_on(waiting: int, tmp_path: Path) -> None:
    driver = SpecDrivers().driver(local_node(tmp_path, "sleep", "1"))
    for _ in range(2):
        told = await told_of(driver, waiting)
        assert isinstance(told["threads"], dict)
        main = told["threads"]["main"]
        assert (main["state"], main["places"][0]) == ("RUNNABLE", READ)
        assert ASK in main["places"]
        assert told["is_deadlocked"] is False
    os.kill(waiting, 0)
    assert not places_of(waiting)[1].exists()


async def test_who_is_late_is_asked_once(stand_in: Callable[..., StandIn], tmp_path: Path) -> None:
    """Without the file it would print its threads into its log, when it comes to it."""
    late = stand_in()
    for _ in range(2):
        assert (await told_of(SpecDrivers().driver(local_node(tmp_path, "sleep", "1")), late.process.pid))["threads"] is None
    assert late.times_asked == 1
    assert places_of(late.process.pid)[1].exists()


@pytest.mark.parametrize(
    "given", [{"maps": ("libjvm.so", "libj9vm29.so")}, {"manner": "-XX:+DisableAttachMechanism"}, {"manner": "blocks"}]
)
async def test_who_would_print_it_elsewhere_is_not_asked(
    given: dict[str, Any], stand_in: Callable[..., StandIn], tmp_path: Path
) -> None:
    refusing = stand_in(**given)
    if given.get("manner") == "blocks":
        refusing.process.send_signal(signal.SIGQUIT)
    assert (await told_of(SpecDrivers().driver(local_node(tmp_path, "sleep", "1")), refusing.process.pid))["threads"] is None
    assert refusing.times_asked == 0
    assert not places_of(refusing.process.pid)[1].exists()


async def test_the_file_for_one_that_has_gone_keeps_nobody_from_asking(
    stand_in: Callable[..., StandIn], tmp_path: Path
) -> None:
    """In a container Kafka is the first process at each start."""
    later = stand_in()
    places_of(later.process.pid)[1].write_text("42", "utf-8")
    await told_of(SpecDrivers().driver(local_node(tmp_path, "sleep", "1")), later.process.pid)
    assert later.times_asked == 1


async def test_the_file_of_somebody_elses_question_is_left_alone(stand_in: Callable[..., StandIn], tmp_path: Path) -> None:
    asked = stand_in()
    places_of(asked.process.pid)[1].touch()
    assert (await told_of(SpecDrivers().driver(local_node(tmp_path, "sleep", "1")), asked.process.pid))["threads"] is None
    assert asked.times_asked == 0
    assert places_of(asked.process.pid)[1].exists()


async def test_a_link_to_another_socket_is_not_followed(stand_in: Callable[..., StandIn], tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "other"))
        other.listen()
        other.setblocking(False)
        process = stand_in().process
        places_of(process.pid)[0].symlink_to(tmp_path / "other")
        assert (await told_of(SpecDrivers().driver(local_node(tmp_path, "sleep", "1")), process.pid))["threads"] is None
        with pytest.raises(BlockingIOError):
            other.accept()


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


async def test_who_is_no_jvm_is_sent_nothing(other: subprocess.Popen[bytes], tmp_path: Path) -> None:
    driver = SpecDrivers().driver(local_node(tmp_path, "sleep", "1"))
    assert (await told_of(driver, other.pid))["threads"] is None
    assert other.poll() is None
    other.kill()
    other.wait()
    assert (await told_of(driver, other.pid))["threads"] is None


@pytest.mark.parametrize(("age", "is_asked"), [(5, False), (30, True)])
async def test_only_who_is_slow_is_asked(age: int, is_asked: bool) -> None:
    cluster = FakeCluster()
    node = cluster.spec.brokers[0]
    cluster.nodes[node.id].machine.threads = {"main": {"state": "RUNNABLE", "places": CONNECTS}}
    seen = await observe(cluster.record(), ports_of(cluster))
    started = {"started_at": seen.ended_at - timedelta(seconds=age)}
    seen = with_node(seen, node.id, lambda view: view.model_copy(update={"process": _changed(view, started)}))
    silent: list[str] = []
    found = await thread_hints(ports_of(cluster), cluster.record(), seen, [node.id], silent)
    told = found.get(cluster.spec.node_name(node.id))
    assert (told is not None and "com.example.OwnReporter.configure" in told.words and told.is_of_plugin) is is_asked
    assert silent == []


async def test_a_process_that_nobody_can_ask_is_named_and_one_that_is_slow_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = FakeCluster()
    node = cluster.spec.brokers[0]
    cluster.nodes[node.id].machine.threads = {"main": {"state": "RUNNABLE", "places": CONNECTS}}
    seen = await observe(cluster.record(), ports_of(cluster))
    started = {"started_at": seen.ended_at - timedelta(minutes=1)}
    seen = with_node(seen, node.id, lambda view: view.model_copy(update={"process": _changed(view, started)}))
    monkeypatch.setattr("activities.observing.in_time.HINT_SECONDS", 0.0)
    silent: list[str] = []
    assert await thread_hints(ports_of(cluster), cluster.record(), seen, [node.id], silent)
    assert silent == []
    odd = with_node(seen, node.id, lambda view: view.model_copy(update={"process": _changed(view, {"identity": "one@1"})}))
    assert await thread_hints(ports_of(cluster), cluster.record(), odd, [node.id], silent) == {}
    assert [said.partition(":")[0] for said in silent] == [f"threads of {cluster.spec.node_name(node.id)}"]


def _changed(view: NodeView, given: dict[str, object]) -> Process:
    assert view.process is not None
    return view.process.model_copy(update=given)


def text_of(node: NodeSpec) -> str:
    return Path(node.properties_file).read_text(encoding="utf-8")


@pytest.mark.cluster
@pytest.mark.timeout(300)
async def test_a_broker_that_is_well_is_found_at_rest_by_its_own_threads(real_cluster: PlaygroundCluster) -> None:
    """By the names that Kafka gives them: what half of them are at is what the broker is at."""
    node = real_cluster.spec.brokers[0]
    driver = SpecDrivers().driver(node)
    pid = (await driver.process()).pid
    answer = await run_program(driver, command_of("ask_threads", {"pid": int(pid)}))
    threads = {name: Thread(found["state"], found["places"]) for name, found in json.loads(answer)["threads"].items()}
    kinds = [found[1] for name in threads if (found := OF_REQUESTS.match(name))]
    config = parse(text_of(node))
    assert kinds.count("network-thread") == int(config["num.network.threads"])
    assert kinds.count("request-handler") == int(config["num.io.threads"])
    assert at_work_in(threads).words == ""
