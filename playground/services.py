"""Keeperless itself on this machine: workers and API, each a process of its own, as they would run in earnest.

with Services(directory, temporal_address, api_port=…) as services:
    services.api_url
    services.kill(Program.ACTIVITIES)
    services.start(Program.ACTIVITIES)
"""

import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from playground import processes
from playground.ports import LOOPBACK
from playground.processes import Launch
from playground.progress import wait_while_working

REPOSITORY = Path(__file__).parent.parent
READY_SECONDS = 10.0
"""For one answer of the API, which itself answers within two, on a machine that does much else."""


class Program(StrEnum):
    """Our programs; the value is the module that is run."""

    WORKFLOWS = "workflows.worker"
    ACTIVITIES = "activities.worker"
    CHECKS = "activities.checks_worker"
    API = "api.server"


@dataclass(frozen=True)
class Services:
    """All our programs on one ledger, SQLite unless `ledger_url` says otherwise. `directory` takes the rest."""

    directory: Path
    temporal_address: str
    api_port: int
    temporal_ui_url: str = ""
    ledger_url: str = ""
    extra_environment: dict[str, str] = field(default_factory=dict)

    @property
    def api_url(self) -> str:
        return f"http://{LOOPBACK}:{self.api_port}"

    def __enter__(self) -> Self:
        try:
            self.start(*Program)
            self.await_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self, *programs: Program) -> None:
        """Start programs that do not run. Does not wait."""
        for program in programs:
            if processes.running(self.launch(program)) is None:
                processes.start(self.launch(program))

    def await_ready(self) -> None:
        """Wait until the API reports ready: ledger and Temporal answer. Workers that are late only make things wait."""
        wait_while_working(self._is_ready, f"the API at {self.api_url}", [self.launch(Program.API)])

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.api_url}/readyz", timeout=READY_SECONDS, trust_env=False).is_success
        except httpx.TransportError:
            return False

    def kill(self, program: Program) -> None:
        """As a crash would: SIGKILL; returns when the process is gone."""
        processes.kill(self.launch(program), signal.SIGKILL)

    def stop(self, programs: Iterable[Program] = Program, grace_seconds: float = 30.0) -> None:
        """Stop programs cleanly, the API first: nobody asks for what is going away."""
        running = [processes.running(self.launch(program)) for program in reversed(list(programs))]
        processes.stop([process for process in running if process is not None], grace_seconds)

    def pids(self) -> list[int]:
        running = [processes.running(self.launch(program)) for program in Program]
        return [process.pid for process in running if process is not None]

    def launch(self, program: Program) -> Launch:
        """How a program is started. The directory is a word that the program ignores, and by which we know it as ours."""
        directory = self.directory.absolute()
        name = program.name.lower()
        return Launch(
            name=f"keeperless-{name}",
            command=(sys.executable, "-m", program.value, str(directory)),
            pid_file=directory / f"{name}.pid",
            output_file=directory / f"{name}.log",
            environment={
                "PATH": os.environ.get("PATH", ""),
                "PYTHONPATH": str(REPOSITORY),
                "HOME": str(directory),
                "TEMPORAL_ADDRESS": self.temporal_address,
                "KEEPERLESS_LEDGER_URL": self.ledger_url or f"sqlite:///{directory / 'ledger.db'}",
                "KEEPERLESS_ARTEFACTS": str(directory / "artefacts"),
                "KEEPERLESS_CHECKS_DIRECTORY": str(directory / "checks"),
                "KEEPERLESS_RUNTIME_DIRECTORY": str(directory / "run"),
                "KEEPERLESS_SIGNAL_APPROVALS": "true",
                "KEEPERLESS_PORT": str(self.api_port),
                "KEEPERLESS_TEMPORAL_UI_URL": self.temporal_ui_url,
                **self.extra_environment,
            },
            mark=str(directory),
        )
