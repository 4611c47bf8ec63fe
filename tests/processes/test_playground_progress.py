"""A process that lives and works is waited for; one that has ended or stands still is a failure, with its last output."""

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from domain.errors import Transient
from playground import processes, progress
from playground.processes import Launch
from playground.progress import wait_while_working

STILL = 1.0
"""Short, so that work has to show in it: a twentieth of it on the processor, or a line."""
START = Callable[[str], Launch]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[START]:
    """Starts a Python program, which is killed at the end."""
    made: list[Launch] = []

    def run(program: str) -> Launch:
        command = (sys.executable, "-u", "-c", program, str(tmp_path))
        made.append(Launch("server", command, tmp_path / "server.pid", tmp_path / "server.log", {}, str(tmp_path)))
        processes.start(made[-1])
        processes.wait_until(lambda: b"up" in made[-1].output_file.read_bytes(), "its first words", 60)
        return made[-1]

    yield run
    for launch in made:
        processes.kill(launch)


def after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


@pytest.mark.parametrize(
    "program",
    ["print('up')\nwhile True: pass", "import time\nwhile True: print('up'); time.sleep(0.2)"],
    ids=["uses the processor", "writes to its log"],
)
def test_a_process_that_works_is_given_time(start: START, program: str) -> None:
    assert wait_while_working(after(4 * STILL), "it", [start(program)], STILL) > 3 * STILL


def test_a_process_that_stands_still_is_told_with_its_last_output(start: START) -> None:
    launch = start("import time; print('up'); print('waiting for a lock'); time.sleep(600)")
    with pytest.raises(Transient, match=r"(?s)nothing has moved for 1 s, awaited was: it.*waiting for a lock"):
        wait_while_working(lambda: False, "it", [launch], STILL)


def test_a_process_that_has_ended_is_told_immediately(start: START) -> None:
    launch = start("print('up'); print('no such port'); raise SystemExit(1)")
    with pytest.raises(Transient, match=r"(?s)server has ended, awaited was: it.*no such port"):
        wait_while_working(lambda: False, "it", [launch], 600)


def test_what_is_there_counts_though_its_process_has_ended(start: START) -> None:
    launch = start("print('up')")
    processes.wait_until(lambda: processes.running(launch) is None, "its end", 60)
    wait_while_working(lambda: True, "it", [launch], STILL)


def test_a_measure_that_moves_is_progress() -> None:
    count = itertools.count()
    assert wait_while_working(after(3 * STILL), "it", [], STILL, measure=lambda: next(count)) > 2 * STILL
    with pytest.raises(Transient, match="nothing has moved"):
        wait_while_working(lambda: False, "it", [], STILL, measure=lambda: 7)


def test_work_without_an_end_is_given_up(start: START, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LONGEST_SECONDS", 2 * STILL)
    with pytest.raises(Transient, match="waited 2 s in vain: it"):
        wait_while_working(lambda: False, "it", [start("print('up')\nwhile True: pass")], STILL)
