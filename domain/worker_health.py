"""What each worker process writes down of itself with its heartbeat, and what that says where work is not taken. Pure."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from pydantic import BaseModel, ConfigDict

from domain.clocks import is_over
from domain.diagnosis.blocker import MACHINE, MOST_OBSERVED, Blocker, blocker

FRESH = timedelta(seconds=30)
"""A worker that has not beaten for longer has ended, is cut off from the ledger, or its event loop is blocked."""
KEPT = timedelta(days=1)
"""After its last beat a row says nothing any more."""
LATELY = timedelta(minutes=1)
MOST_TOLD = 3


class WorkerHealth(BaseModel):
    """One process of a worker program, at its last beat. `settings_fingerprint`: of the settings that copies must share.

    `last_error`: what it last logged as an error about itself, without values. `stopped_at`: set by a clean stop only.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    program: str
    host: str
    pid: int
    release: str
    settings_fingerprint: str
    started_at: datetime
    beat_at: datetime
    last_error: str | None = None
    last_error_at: datetime | None = None
    stopped_at: datetime | None = None

    @property
    def identity(self) -> str:
        """Its name in Temporal, as the SDK makes it."""
        return f"{self.pid}@{self.host}"

    def is_alive(self, now: datetime) -> bool:
        return self.stopped_at is None and not is_over(self.beat_at, now, FRESH)

    def in_words(self, now: datetime, asking: Collection[str]) -> str:
        """One sentence. `asking`: the identities that poll the task queue in question."""
        who = f"{self.program} (process {self.pid} on {self.host}, release {self.release})"
        beat = f"last beat at {self.beat_at:%Y-%m-%d %H:%M:%S} UTC, {max((now - self.beat_at).total_seconds(), 0):.0f} s ago"
        if self.stopped_at is not None:
            end = f", and stopped cleanly at {self.stopped_at:%H:%M:%S} UTC"
        elif not self.is_alive(now):
            end = ", and did not report a clean stop"
        else:
            end = "" if self.identity in asking else ": it runs and does not poll this task queue"
        error = f"; its last error, at {self.last_error_at:%H:%M:%S} UTC: {self.last_error}" if self.last_error_at else ""
        return f"{who} {beat}{end}{error}"


def of_program(workers: Sequence[WorkerHealth], program: str, asking: Collection[str], now: datetime) -> str:
    """Describe the workers of a queue that takes no task: live ones, else the last to beat. `workers`: newest beat last."""
    ours = [worker for worker in workers if worker.program == program]
    alive = [worker for worker in ours if worker.is_alive(now)]
    told = ". ".join(worker.in_words(now, asking) for worker in (alive or ours[-1:])[-MOST_TOLD:])
    return told or f"No {program} has written a heartbeat to this ledger within a day"


def of_unlike_copies(workers: Sequence[WorkerHealth], now: datetime) -> Iterator[Blocker]:
    """Of live copies of one program that differ: what one of them does fails at the other."""
    alive = sorted((worker for worker in workers if worker.is_alive(now)), key=lambda one: (one.program, one.identity))
    for program, copies in groupby(alive, key=lambda one: one.program):
        by_kind: dict[tuple[str, str], list[str]] = {}
        for copy in copies:
            by_kind.setdefault((copy.release, copy.settings_fingerprint), []).append(copy.identity)
        kinds = [f"release {kind[0]} with settings {kind[1]}: {', '.join(who)}" for kind, who in by_kind.items()]
        if len(kinds) > 1:
            yield blocker(
                MACHINE,
                f"copies of {program}",
                observed="; ".join(kinds)[:MOST_OBSERVED],
                expected="all copies of a program have one release, and the same ledger, Temporal and artefacts",
                fix=f"Stop, in order, the copy of {program} that is not as it is to be: its tasks come to the others. Compare "
                "its release and its KEEPERLESS_… and TEMPORAL_… variables with those of the others, correct them, start it.",
                since=now,
            )


def ended_lately(workers: Sequence[WorkerHealth], program: str, now: datetime) -> list[str]:
    """Processes of a program that beat within the last minute and a half, and no more."""
    return [
        worker.identity
        for worker in workers
        if worker.program == program and not worker.is_alive(now) and not is_over(worker.beat_at, now, FRESH + LATELY)
    ]
