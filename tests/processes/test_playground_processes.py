"""Processes: detached, known by pid file and command line, stopped for certain."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from domain.errors import Transient
from playground import processes
from playground.processes import Launch, PeakMemory

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
OBEDIENT = "import time; print('up', flush=True); time.sleep(60)"

LaunchOf = Callable[..., Launch]


@pytest.fixture
def launch_of(tmp_path: Path) -> Iterator[LaunchOf]:
    """Makes launches of a Python program; what still runs at the end is killed."""
    made: list[Launch] = []

    def make(program: str, name: str = "node", **environment: str) -> Launch:
        folder = tmp_path / name
        command = (sys.executable, "-c", program, str(folder))
        made.append(Launch(name, command, folder / "node.pid", folder / "node.log", environment, str(folder)))
        return made[-1]

    yield make
    for launch in made:
        processes.kill(launch)


def started(launch: Launch) -> psutil.Process:
    processes.start(launch)
    processes.wait_until(lambda: "up" in launch.output_file.read_text(), "its first words", 20)
    process = processes.running(launch)
    assert process is not None
    return process


def test_it_runs_in_its_own_session_and_is_known_by_its_pid_file(launch_of: LaunchOf) -> None:
    launch = launch_of(OBEDIENT)
    process = started(launch)
    assert launch.pid_file.read_text() == f"{process.pid}\n"
    assert os.getsid(process.pid) == process.pid != os.getsid(0)


def test_its_environment_is_the_given_one_and_output_is_appended(launch_of: LaunchOf) -> None:
    launch = launch_of("import os; print(sorted(os.environ), flush=True)", GREETING="hello", LC_CTYPE="C.UTF-8")
    for run in (1, 2):
        processes.start(launch)
        wanted = "['GREETING', 'LC_CTYPE']\n" * run
        processes.wait_until(lambda wanted=wanted: launch.output_file.read_text() == wanted, f"{run} lines", 20)


def test_a_dead_process_is_reaped_at_once_and_not_taken_for_alive(launch_of: LaunchOf) -> None:
    launch = launch_of(OBEDIENT)
    process = started(launch)
    os.kill(process.pid, signal.SIGKILL)
    processes.wait_until(lambda: not psutil.pid_exists(process.pid), "no zombie", 5)
    assert processes.running(launch) is None


def test_a_pid_file_that_names_somebody_else_means_not_running(launch_of: LaunchOf) -> None:
    launch = launch_of(OBEDIENT)
    launch.pid_file.parent.mkdir()
    processes.write_pid_file(launch.pid_file, os.getpid())
    assert processes.running(launch) is None
    processes.kill(launch)  # and so nothing is killed


def test_stop_takes_the_stubborn_by_force_after_the_grace(launch_of: LaunchOf) -> None:
    obedient, stubborn = started(launch_of(OBEDIENT, "a")), started(launch_of(STUBBORN, "b"))
    began = time.monotonic()
    processes.stop([stubborn, obedient], grace_seconds=1)
    assert not obedient.is_running()
    assert not stubborn.is_running()
    assert 1 <= time.monotonic() - began < 10


class Untouchable(psutil.Process):
    """Refuses its first signal, as a process of another user does."""

    def send_signal(self, sig: int) -> None:
        if sig == signal.SIGTERM:
            raise psutil.AccessDenied(self.pid)
        super().send_signal(sig)


def test_an_error_in_the_middle_does_not_spare_the_others(launch_of: LaunchOf) -> None:
    first, last = started(launch_of(STUBBORN, "a")), started(launch_of(OBEDIENT, "b"))
    with pytest.raises(ExceptionGroup, match="1 of 2 processes could not be stopped") as caught:
        processes.stop([Untouchable(first.pid), last], grace_seconds=0.5)
    assert isinstance(caught.value.exceptions[0], psutil.AccessDenied)
    assert not first.is_running()
    assert not last.is_running()


def test_stopping_what_is_gone_is_no_error(launch_of: LaunchOf) -> None:
    process = started(launch_of(OBEDIENT))
    process.kill()
    processes.stop([process], grace_seconds=1)


def test_waiting_ends_at_the_deadline_and_says_for_what() -> None:
    with pytest.raises(Transient, match="in vain: the moon"):
        processes.wait_until(lambda: False, "the moon", deadline_seconds=0.05, every_seconds=0.01)


def test_peak_memory_is_the_largest_sum_and_forgives_the_dead(launch_of: LaunchOf) -> None:
    process = started(launch_of(OBEDIENT))
    peak = PeakMemory(lambda: [process.pid, 2**22 + 1], every_seconds=0.01)
    peak.start()
    processes.wait_until(lambda: peak.peak_mib > 0, "a sample", 5)
    assert 1 < peak.stop() < 500


def test_a_process_is_known_from_its_first_moment(launch_of: LaunchOf) -> None:
    """While exec replaces the image the command line is empty: whoever looks then must not think it gone."""
    for number in range(50):
        launch = launch_of(OBEDIENT, f"node-{number}")
        processes.start(launch)
        assert processes.running(launch) is not None
        processes.kill(launch)


NEVER_WAITS = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"


def test_one_that_has_ended_and_is_not_buried_is_stopped() -> None:
    """Spark's JVM, whose parent was not told: nobody can do more to it."""
    with subprocess.Popen([sys.executable, "-c", NEVER_WAITS], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        try:
            processes.stop([child], grace_seconds=600)
            assert child.status() == psutil.STATUS_ZOMBIE, "it has not been waited for"
        finally:
            parent.kill()


WITHOUT_ITS_FIRST_THREAD = """
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print("up", flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def test_one_whose_first_thread_has_ended_lives_as_long_as_another_does() -> None:
    """Linux shows it as a zombie, and the others keep its files in use: stopped is who has no thread any more."""
    with subprocess.Popen([sys.executable, "-c", WITHOUT_ITS_FIRST_THREAD], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seen = psutil.Process(process.pid)
        processes.wait_until(lambda: seen.status() == psutil.STATUS_ZOMBIE, "its first thread to end", 10)
        assert processes.is_alive(process.pid)
        processes.stop([seen], grace_seconds=5)
        assert not processes.is_alive(process.pid)
