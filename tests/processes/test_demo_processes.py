"""No process is left behind, and no stranger's is touched: real processes, real signals."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from domain.errors import Permanent
from playground import processes
from playground.demo.__main__ import start
from playground.demo.cast import Cast
from playground.demo.census import Census, node_of
from playground.demo.directory import Busy, DemoDirectory
from playground.demo.leftovers import PYTHON_MODULES, QUIET_SECONDS, is_ours, processes_of, stop_all

REPOSITORY = Path(__file__).parent.parent.parent
DEMO = Path("/somewhere/.demo")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[DemoDirectory]:
    directory = DemoDirectory(tmp_path / "demo")
    directory.path.mkdir()
    yield directory
    stop_all(directory.path)


def a_node(directory: DemoDirectory) -> "subprocess.Popen[bytes]":
    """Like a worker. Not a shell that sleeps: its `sleep` is for a moment a process with the shell's own command line."""
    path = str(directory.path / "cluster/kafka.pid")
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", min(PYTHON_MODULES), path])


@pytest.mark.parametrize(
    "command",
    [
        ["/jre/bin/java", "-Xmx96m", "kafka.Kafka", "/somewhere/.demo/cluster/broker-1/server.properties"],
        ["/jre/bin/java", "kafka.tools.StorageTool", "format", "-c", "/somewhere/.demo/cluster/controller-3001/x"],
        ["/venv/bin/temporal", "server", "start-dev", "--db-filename", "/somewhere/.demo/temporal/temporal.db"],
        ["/venv/bin/python3.11", "-m", "activities.worker", "/somewhere/.demo/services"],
        ["/venv/bin/python3.11", "-m", "activities.checks_worker", "/somewhere/.demo/services"],
        ["/venv/bin/python", "-m", "playground.load_process", "/somewhere/.demo/load", "200.0"],
        ["/venv/bin/python", "-m", "setup", "--checks", "/somewhere/.demo/checks-setup.log"],
        ["setsid", "sh", "-c", "exec …", "start", "/somewhere/.demo/cluster/broker-1/kafka.pid"],
    ],
)
def test_ours_are_known_by_their_command_line(command: list[str]) -> None:
    assert is_ours(command, DEMO)
    assert not is_ours(command, Path("/somewhere/.demo-2"))
    assert not is_ours(command, Path("/elsewhere"))


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["tail", "-f", "/somewhere/.demo/cluster/broker-1/kafka.log"],
        ["vim", "/somewhere/.demo/report.json"],
        ["sh", "-c", "tail -f /somewhere/.demo/cluster/broker-1/kafka.log"],
        ["python", "-m", "json.tool", "/somewhere/.demo/report.json"],
        ["python", "-m", "playground.demo", "--directory", "/somewhere/.demo"],
        ["/jre/bin/java", "kafka.Kafka", "/etc/kafka/server.properties"],
        ["/jre/bin/java", "kafka.Kafka", "/backup/somewhere/.demo/cluster/broker-1/server.properties"],
    ],
)
def test_strangers_are_left_alone(command: list[str]) -> None:
    assert not is_ours(command, DEMO)


def test_everything_is_stopped_and_a_stranger_lives(directory: DemoDirectory) -> None:
    ours = [a_node(directory), a_node(directory)]
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", str(directory.path / "report.json")])
    try:
        assert stop_all(directory.path) == len(ours)
        assert not [process for process in ours if psutil.pid_exists(process.pid)]
        assert [process.wait(10) for process in ours]  # reaped by psutil, so their exit codes are not known here
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_programs_that_somebody_started_on_the_demos_ledger_are_stopped_too(directory: DemoDirectory, tmp_path: Path) -> None:
    """By another command line, as after a kill: only their settings tell."""
    script = tmp_path / "keeperless-activities"
    script.write_text("import time; time.sleep(600)")

    def by_hand(ledger: Path) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, str(script)], env={"KEEPERLESS_LEDGER_URL": f"sqlite:///{ledger}"})

    ours, strangers = by_hand(directory.services / "ledger.db"), by_hand(tmp_path / "another" / "ledger.db")
    try:
        processes.wait_until(lambda: bool(processes_of(directory.path)), "its command line to be seen", 5)
        assert stop_all(directory.path) == 1
        assert not psutil.pid_exists(ours.pid)
        assert strangers.poll() is None
    finally:
        strangers.kill()
        strangers.wait()
        ours.wait()


def test_strangers_are_not_taken_for_programs_of_ours(directory: DemoDirectory, tmp_path: Path) -> None:
    """Their environment names the demo's ledger, or their command line a program of ours: both is needed, in its place."""
    sleeps = "import time; time.sleep(600)"
    ledger = {"KEEPERLESS_LEDGER_URL": f"sqlite:///{directory.services / 'ledger.db'}"}
    elsewhere = {"KEEPERLESS_LEDGER_URL": f"sqlite:////backup{directory.services / 'ledger.db'}"}
    script = tmp_path / "keeperless-activities"
    script.write_text(sleeps)
    session = [sys.executable, "-c", sleeps, "-m", min(PYTHON_MODULES)]
    strangers = [
        subprocess.Popen(["tmux", *session[1:]], executable=sys.executable, env=ledger),
        subprocess.Popen([sys.executable, "-c", sleeps, "setup"], env=ledger),
        subprocess.Popen([sys.executable, str(script)], env=elsewhere),
    ]
    try:
        time.sleep(QUIET_SECONDS)
        assert processes_of(directory.path) == []
    finally:
        for one in strangers:
            one.kill()
            one.wait()


def test_what_is_started_while_things_are_stopped_is_stopped_too(directory: DemoDirectory) -> None:
    """A worker may start a node in the moment in which it is told to end."""
    marker = directory.path / "cluster" / "kafka.pid"
    script = """if True:
        import signal, subprocess, sys, time
        def start(*_):
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", *sys.argv[1:]])
            sys.exit()
        signal.signal(signal.SIGTERM, start)
        print("up", flush=True)
        time.sleep(600)
    """
    worker = subprocess.Popen([sys.executable, "-c", script, min(PYTHON_MODULES), str(marker)], stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"up\n"
    assert stop_all(directory.path) == 2
    assert processes_of(directory.path) == []
    worker.stdout.close()
    worker.wait(10)


def test_one_run_at_a_time_holds_the_directory(directory: DemoDirectory) -> None:
    lock_holder = directory.hold()
    with pytest.raises(Busy) as busy:
        directory.hold()
    assert busy.value.pid == os.getpid()
    lock_holder.close()
    directory.hold().close()


def test_cleaning_leaves_nothing_but_the_lock(directory: DemoDirectory) -> None:
    with directory.hold():
        (directory.path / "cluster" / "broker-1").mkdir(parents=True)
        directory.report.write_text("{}")
        (directory.path / "link").symlink_to("/")
        directory.clean()
        assert [entry.name for entry in directory.path.iterdir()] == ["demo.lock"]


def test_what_belongs_to_a_demo_of_before_is_not_started_into_the_next_one(
    directory: DemoDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for it while the next one throws that away waits, and finds another demo then."""
    kept = {"temporal": "/no/temporal", "temporal_ports": {"frontend": 1, "ui": 2, "http": 3, "metrics": 4}, "api_port": 5}
    monkeypatch.setattr(Cast, "start_missing", lambda _cast: pytest.fail("it started the programs of before"))
    with directory.hold(), ThreadPoolExecutor(1) as pool:
        directory.cast.write_text(json.dumps(kept))
        with directory.undisturbed():
            asked = pool.submit(start, directory)
            with pytest.raises(TimeoutError):
                asked.result(timeout=0.5)
            directory.clean()
        with pytest.raises(Permanent, match="another demo has just begun there"):
            asked.result(timeout=30)


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(Permanent, match="not a demo's"):
        DemoDirectory(tmp_path).hold()
    assert (tmp_path / "thesis.tex").exists()


# A demo that starts one orphan in a thread, says so, and then does what its argument says.
PLAY = """
import subprocess, sys, threading, time
from pathlib import Path
from playground.demo.directory import DemoDirectory
from playground.demo.guardian import Guardian

directory = DemoDirectory(Path(sys.argv[1]))

def act():
    command = [sys.executable, "-c", "import time; time.sleep(600)", "setup", f"{directory.path}/cluster/kafka.pid"]
    def start(): subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    threads = [threading.Thread(target=start), threading.Thread(target=lambda: time.sleep(600))]
    for thread in threads: thread.start()
    threads[0].join()
    print("up", flush=True)
    if sys.argv[2] == "keep": directory.kept.touch()
    if sys.argv[2] == "raise": raise RuntimeError("broken on purpose")
    if sys.argv[2] == "wait": time.sleep(600)
    return 7

sys.exit(Guardian(directory, act).run())
"""


def a_demo(directory: DemoDirectory, what: str) -> "subprocess.Popen[str]":
    """Returns when it has started its orphan."""
    demo = subprocess.Popen(
        [sys.executable, "-c", PLAY, str(directory.path), what],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert demo.stdout is not None
    assert demo.stdout.readline() == "up\n"
    return demo


def ended(demo: "subprocess.Popen[str]", directory: DemoDirectory) -> tuple[int, str]:
    """Its exit code and what it said; checks that nothing is left."""
    assert demo.stdout is not None
    with demo.stdout:
        said = demo.stdout.read()  # until the end: the demo's own children do not hold its output
    demo.wait(10)
    assert processes_of(directory.path) == []
    return demo.returncode, said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_demo_leaves_nothing(directory: DemoDirectory, number: signal.Signals) -> None:
    demo = a_demo(directory, "wait")
    demo.send_signal(number)
    code, said = ended(demo, directory)
    assert code == 130
    assert "Stopped: 1 processes" in said


def test_impatience_changes_nothing(directory: DemoDirectory) -> None:
    demo = a_demo(directory, "wait")
    for _ in range(5):
        demo.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert ended(demo, directory)[0] == 130


def test_a_demo_that_is_killed_leaves_nothing(directory: DemoDirectory) -> None:
    demo = a_demo(directory, "wait")
    (act,) = (child for child in psutil.Process(demo.pid).children() if "sh" not in child.name())
    act.kill()
    assert ended(demo, directory)[0] == 130


def test_a_demo_that_fails_says_why_and_leaves_nothing(directory: DemoDirectory) -> None:
    code, said = ended(a_demo(directory, "raise"), directory)
    assert code == 1
    assert "broken on purpose" in said


def test_a_demo_that_ends_gives_its_exit_code_though_a_thread_still_runs(directory: DemoDirectory) -> None:
    assert ended(a_demo(directory, "end"), directory)[0] == 7


def test_what_is_kept_goes_on_running(directory: DemoDirectory) -> None:
    demo = a_demo(directory, "keep")
    assert demo.wait(20) == 7
    if demo.stdout is not None:
        demo.stdout.close()
    assert len(processes_of(directory.path)) == 1


def test_stop_interrupts_a_demo_that_is_running(directory: DemoDirectory) -> None:
    """By the guardian's pid, which the lock file tells."""
    sleeper = "import sys, time; from pathlib import Path; from playground.demo.directory import DemoDirectory\n"
    sleeper += "lock = DemoDirectory(Path(sys.argv[1])).hold(); print('held', flush=True); time.sleep(60)"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    holder = subprocess.Popen([sys.executable, "-c", sleeper, str(directory.path)], env=environment, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    stop = subprocess.run(
        [sys.executable, "-m", "playground.demo", "stop", "--directory", str(directory.path)],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert holder.wait(10) == -signal.SIGTERM
    holder.stdout.close()
    assert stop.returncode == 0
    assert f"process {holder.pid}" in stop.stdout


ONLY_WAITS = "kill -STOP $$"
"""No `sleep`, as with `a_node`: it would look like another start of the same node."""


@pytest.fixture
def java(tmp_path: Path) -> str:
    """A program of that name, which sleeps; a copy, because a link's target may look at its own name."""
    path = tmp_path / "java"
    path.write_bytes(Path(shutil.which("bash") or "").read_bytes())
    path.chmod(0o755)
    return str(path)


def test_the_census_counts_starts_and_not_looks(directory: DemoDirectory, java: str) -> None:
    census = Census(directory.path, directory.cluster)
    properties = str(directory.cluster / "broker-1" / "server.properties")
    of_a_rehearsal = str(directory.services / "rehearsal" / "303c1da2" / "controller.properties")
    for started in (properties, of_a_rehearsal, properties, properties):
        node = subprocess.Popen([java, "-c", ONLY_WAITS, "kafka.Kafka", started])
        processes.wait_until(lambda pid=node.pid: pid in census.pids(), "the node to be seen", 5)
        assert {os.getpid(), os.getppid(), node.pid} <= set(census.pids())
        node.kill()
        node.wait()
    assert census.restarts() == {"broker-1": 2}


def test_the_census_leaves_out_what_was_started_before_the_migration(directory: DemoDirectory, java: str) -> None:
    census = Census(directory.path, directory.cluster)

    def start(name: str) -> None:
        node = subprocess.Popen([java, "-c", ONLY_WAITS, "kafka.Kafka", str(directory.cluster / name / "server.properties")])
        processes.wait_until(lambda: node.pid in census.pids(), "the node to be seen", 5)
        node.kill()
        node.wait()

    for name in ("broker-1", "broker-1", "broker-2"):
        start(name)
    census.begin()
    assert census.restarts() == {"broker-1": 0, "broker-2": 0}
    for name in ("broker-1", "controller-3001", "controller-3001"):
        start(name)
    assert census.restarts() == {"broker-1": 1, "broker-2": 0, "controller-3001": 1}


def test_only_the_clusters_own_brokers_and_controllers_are_nodes() -> None:
    cluster, file = Path("/x"), "/x/broker-1/server.properties"
    assert node_of(["/jre/bin/java", "-Xmx1g", "kafka.Kafka", file], cluster) == "broker-1"
    assert node_of(["/jre/bin/java", "kafka.tools.StorageTool", "format", "-c", file], cluster) is None
    assert node_of(["sh", "-c", "exec", "start", "java", "kafka.Kafka", file], cluster) is None
    assert node_of(["/jre/bin/java", "kafka.Kafka", "/x/services/303c1da2/controller.properties"], cluster) is None
