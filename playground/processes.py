"""Processes that outlive whoever started them, known by pid files, and stopped for certain.

A pid file says `<pid>\\n`. A number alone can be somebody else's by now, so a process counts as ours only when its
command line names the folder that the pid file belongs to.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from domain.errors import Transient

MIB = 1024 * 1024


@dataclass(frozen=True)
class Launch:
    """All that is needed to start a process, again and again in the same way."""

    name: str
    command: tuple[str, ...]
    pid_file: Path
    output_file: Path
    environment: Mapping[str, str]
    """The whole environment of the process: nothing is inherited."""
    mark: str
    """Part of the command line by which the process is known as ours: the path of its own configuration file."""


def start(launch: Launch) -> int:
    """Starts it in a session of its own, appends its output to `output_file`, writes the pid file; gives the pid."""
    for path in (launch.pid_file, launch.output_file):
        path.parent.mkdir(parents=True, exist_ok=True)
    with launch.output_file.open("ab") as output:
        process = subprocess.Popen(
            launch.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(launch.environment),
            start_new_session=True,
        )
    try:
        write_pid_file(launch.pid_file, process.pid)
    except BaseException:
        process.kill()
        raise
    finally:
        _reap_when_it_ends(process)
    return process.pid


def write_pid_file(pid_file: Path, pid: int) -> None:
    """By rename: a reader sees the old content or the new one, never half a number."""
    fresh = pid_file.with_name(f".{pid_file.name}.new")
    fresh.write_text(f"{pid}\n", encoding="ascii")
    fresh.replace(pid_file)


def _reap_when_it_ends(process: "subprocess.Popen[bytes]") -> None:
    """While we live the process is our child: unreaped it would stay a zombie, which others take for alive."""
    threading.Thread(target=process.wait, name=f"reap-{process.pid}", daemon=True).start()


def running(launch: Launch) -> psutil.Process | None:
    """The living process of this launch, or None."""
    return find(launch.pid_file, launch.mark)


def find(pid_file: Path, mark: str) -> psutil.Process | None:
    """The living process that `pid_file` names, if its command line contains `mark`; zombies are not alive."""
    try:
        process = psutil.Process(int(pid_file.read_text(encoding="ascii")))
        ours = any(mark in argument for argument in _command_line(process))
        return process if ours and not _has_ended(process) else None
    except (FileNotFoundError, psutil.NoSuchProcess):
        return None


def _command_line(process: psutil.Process, patience_seconds: float = 1.0) -> list[str]:
    """Linux shows an empty one for a moment after a start, while exec replaces the image: that is not somebody else."""
    deadline = time.monotonic() + patience_seconds
    while not (line := process.cmdline()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return line


def is_alive(pid: int) -> bool:
    """One that has ended is gone, also while whoever inherited it has not buried it yet."""
    try:
        return not _has_ended(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def _has_ended(process: psutil.Process) -> bool:
    """Its first thread may have ended before the others, which keep its files open until they have, too."""
    return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1


def kill(launch: Launch, number: int = signal.SIGKILL, deadline_seconds: float = 30.0) -> None:
    """Sends the signal and waits until the process is gone. Nothing to do when it is not running."""
    process = running(launch)
    if process is not None:
        process.send_signal(number)
        process.wait(deadline_seconds)


def stop(processes: Iterable[psutil.Process], grace_seconds: float) -> None:
    """SIGTERM to all at once, SIGKILL to those that are still there after `grace_seconds`.

    One loop that cannot end half-way: errors are collected and raised together when every process was dealt with.
    """
    everyone = list(processes)
    errors = [error for p in everyone if (error := _signal(p, signal.SIGTERM))]
    survivors = _left_after(grace_seconds, everyone)
    errors += [error for p in survivors if (error := _signal(p, signal.SIGKILL))]
    immortal = _left_after(30, survivors)
    errors += [Transient(f"process {p.pid} is still there 30 s after SIGKILL") for p in immortal]
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(everyone)} processes could not be stopped", errors)


def _left_after(seconds: float, processes: list[psutil.Process]) -> list[psutil.Process]:
    """Who has not ended by then. Children of ours are buried in the end; whoever else's are not needs no waiting for."""
    until = time.monotonic() + seconds
    while left := [p for p in processes if is_alive(p.pid)]:
        if time.monotonic() >= until:
            break
        time.sleep(0.1)
    psutil.wait_procs(processes, timeout=0)
    return left


def _signal(process: psutil.Process, number: int) -> Exception | None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return None
    except (psutil.Error, OSError) as error:
        return error
    return None


def wait_until(is_so: Callable[[], bool], what: str, deadline_seconds: float, every_seconds: float = 0.1) -> float:
    """Polls until `is_so()`; gives the seconds it took. Raises Transient, saying `what` was awaited, at the deadline."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > deadline_seconds:
            raise Transient(f"waited {deadline_seconds:.0f} s in vain: {what}")
        time.sleep(every_seconds)
    return time.monotonic() - began


def last_lines(path: Path, count: int = 15) -> str:
    """The end of a log, for the message of an error."""
    if not path.exists():
        return f"{path}: no such file"
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])


def resident_mib(pids: Iterable[int]) -> float:
    """Sum of the resident memory of those that are alive, in MiB. Pages shared between them count for each."""
    return sum(_resident_bytes(pid) for pid in pids) / MIB


def _resident_bytes(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


class PeakMemory:
    """Samples the resident memory of a changing set of processes in a thread; `peak_mib` is the largest sum seen."""

    def __init__(self, pids: Callable[[], Sequence[int]], every_seconds: float = 1.0) -> None:
        self.peak_mib = 0.0
        self._pids = pids
        self._every_seconds = every_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="peak-memory", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> float:
        self._ended.set()
        self._thread.join()
        return self.peak_mib

    def _sample(self) -> None:
        while not self._ended.is_set():
            self.peak_mib = max(self.peak_mib, resident_mib(self._pids()))
            self._ended.wait(self._every_seconds)


def plain_environment(java_home: Path) -> dict[str, str]:
    """A small environment that is the same whoever starts the node."""
    return {"JAVA_HOME": str(java_home), "PATH": f"{java_home}/bin{os.pathsep}/usr/bin{os.pathsep}/bin", "LANG": "C.UTF-8"}
