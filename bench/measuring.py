"""Rounds of one contender, measured from outside: its process with all that it starts."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from bench.contenders import Contender
from bench.packages import FOLDER
from setup.environment import REPOSITORY

LOOK_EVERY = 0.2
GONE = (psutil.Error, ProcessLookupError, FileNotFoundError)


class BenchError(Exception):
    """A contender failed, or found something else than there is: then nothing that it does is worth a figure."""


@dataclass(frozen=True)
class Round:
    """`cpu_seconds`: of all its processes. Where others load the machine it says more than `seconds`."""

    seconds: float
    cpu_seconds: float


@dataclass
class Runner:
    """A contender's process. `peak_bytes`: of memory, with all that it has started; what they share counts once."""

    contender: Contender
    process: "subprocess.Popen[str]"
    log: Path
    truth: Mapping[str, int]
    peak_bytes: int = 0
    rounds: list[Round] = field(default_factory=list)

    def play(self, *, counts: bool = True) -> None:
        """One round, whose result must be right."""
        before = self._cpu_seconds()
        with self._watched():
            _pipe(self.process.stdin).write("round\n")
            _pipe(self.process.stdin).flush()
            answer = self.answer()
        told = answer["told"]
        if not told or any(self.truth[name] != found for name, found in told.items()):
            raise BenchError(f"{self.contender.name} found {told}, which is wrong: there is {dict(self.truth)}")
        if counts:
            self.rounds.append(Round(answer["seconds"], self._cpu_seconds() - before))

    def answer(self) -> dict[str, Any]:
        line = _pipe(self.process.stdout).readline()
        if not line:
            raise BenchError(f"{self.contender.name} has ended:\n{self.log.read_text(errors='replace')[-3000:]}")
        return dict(json.loads(line))

    def _tree(self) -> list[psutil.Process]:
        with suppress(psutil.Error):
            own = psutil.Process(self.process.pid)
            return [own, *own.children(recursive=True)]
        return []

    def _cpu_seconds(self) -> float:
        """Of those that live, and of those that they have waited for."""
        total = 0.0
        for process in self._tree():
            with suppress(*GONE):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    @contextmanager
    def _watched(self) -> Iterator[None]:
        is_over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(is_over,))
        watcher.start()
        try:
            yield
        finally:
            is_over.set()
            watcher.join()

    def _watch(self, is_over: threading.Event) -> None:
        while not is_over.wait(LOOK_EVERY):
            self._look()
        self._look()

    def _look(self) -> None:
        """A short peak of a single process is in its own account; of several, it may be missed between two looks."""
        shared_out = 0
        for process in self._tree():
            with suppress(*GONE):
                shared_out += _kibibytes(Path(f"/proc/{process.pid}/smaps_rollup"), "Pss:")
        own = 0
        with suppress(*GONE):
            own = _kibibytes(Path(f"/proc/{self.process.pid}/status"), "VmHWM:")
        self.peak_bytes = max(self.peak_bytes, 1024 * max(shared_out, own))


@contextmanager
def running(contender: Contender, inputs: Path, own: Path, truth: Mapping[str, int]) -> Iterator[Runner]:
    """Ready, and ended at the end. It sees the packages of the bench, and nobody else does."""
    own.mkdir(parents=True)
    log = own / "log"
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY}{os.pathsep}{FOLDER}"}
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.contender", contender.name, str(inputs), str(own)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=REPOSITORY,
            env=environment,
            text=True,
        )
    with process:
        runner = Runner(contender, process, log, truth)
        try:
            runner.answer()
            yield runner
        except BaseException:
            process.terminate()
            raise
        finally:
            _pipe(process.stdin).close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise BenchError("a contender was started without pipes")
    return pipe


def _kibibytes(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0
