"""The JVMs of a rehearsal, as children of its program, which is the first process of its namespace: they end with it, whatever
happens.
"""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep

KIB_IN_MIB = 1024
ENDED = 0.02
AFTER_COLLECTION = re.compile(r"->(\d+)M\(\d+M\)")
SMALL = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",  # a file in the temporary folder, by a process id that others have, too
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Duser.timezone=UTC",
)


class Ending(Exception):
    """Whoever started us is gone: nothing is started any more."""


class Server:
    """One process. `peak_rss_mib` is known when it has ended."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._lock = threading.Lock()
        self.peak_rss_mib: float | None = None

    @property
    def exit_code(self) -> int | None:
        """`None` while it runs. Reaps it: `wait4` tells what it has used, which `subprocess` does not."""
        with self._lock:
            if self._process.returncode is None:
                pid, status, used = os.wait4(self._process.pid, os.WNOHANG)
                if pid:
                    self._process.returncode = os.waitstatus_to_exitcode(status)
                    self.peak_rss_mib = used.ru_maxrss / KIB_IN_MIB
            return self._process.returncode

    def wait(self, seconds: float) -> int | None:
        """Its exit code; `None`: it runs on."""
        deadline = monotonic() + seconds
        while self.exit_code is None and monotonic() < deadline:
            sleep(ENDED)
        return self.exit_code

    def end(self) -> None:
        """Gone when this returns."""
        while self.exit_code is None:
            with self._lock:
                if self._process.returncode is None:
                    os.kill(self._process.pid, signal.SIGKILL)
            sleep(ENDED)


class Servers:
    """All that was started. After `end_all` nothing starts any more."""

    def __init__(self) -> None:
        self._all: list[Server] = []
        self._lock = threading.Lock()
        self._is_ending = False

    def start(self, command: Sequence[str], output: Path, environment: Mapping[str, str], folder: Path) -> Server:
        with self._lock, output.open("wb") as file:
            if self._is_ending:
                raise Ending
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=dict(environment), cwd=folder
            )
            server = Server(process)
            self._all.append(server)
            return server

    def end_all(self) -> None:
        with self._lock:
            self._is_ending = True
            for server in self._all:
                server.end()


def java(program: str, heap_mib: int, folder: Path, *options: str) -> tuple[str, ...]:
    """The launcher up to the class path."""
    return (program, "-Xms32m", f"-Xmx{heap_mib}m", *SMALL, f"-Djava.io.tmpdir={folder}", *options)


def peak_heap_mib(collections: Path) -> float | None:
    """The most that was left after a collection, by a log of these (`-Xlog:gc`); `None` where there was none."""
    if not collections.exists():
        return None
    found = AFTER_COLLECTION.findall(collections.read_text(encoding="utf-8", errors="replace"))
    return max(float(size) for size in found) if found else None


def linked(source: Path, target: Path) -> None:
    """The same files once more, without their bytes: ZooKeeper never writes into a file that it has not made itself."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in source.iterdir():
        (target / path.name).hardlink_to(path)
