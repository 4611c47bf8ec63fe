"""One look at a cluster, by a worker: a standalone activity, so that Temporal's list of workflows stays readable.

Who asks while a look is under way gets the same one. What the look is for: to see, to preview the way back, to write down
the way by hand, or to say why nothing happens.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeGuard, TypeVar

from temporalio.client import ActivityFailureError
from temporalio.common import ActivityIDConflictPolicy, RetryPolicy
from temporalio.exceptions import ApplicationError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

from activities.failures import FIX
from api.answers.links import cluster_url, migration_url
from api.diagnosis.wrong_workers import OF_ITS_FILES, replaced, wrong_worker_behind
from api.running.temporal import CALL_LIMIT, Temporal, TemporalRefused, TemporalUnavailable
from domain.contracts import PROGRAM_OF, ActivityName, Payload, TaskQueue
from domain.diagnosis.recorded_causes import InHand
from domain.errors import KeeperlessError, Permanent, Transient
from domain.questions import (
    BlockersRequest,
    BlockersSeen,
    ClusterSight,
    ObserveRequest,
    PreviewRequest,
    RollbackPreview,
    Runbook,
)
from domain.records import MigrationRecord
from ledger.errors import LedgerMarked, LedgerUnavailable

Seen = TypeVar("Seen", bound=Payload)

WORKER_LIMIT = timedelta(seconds=10)
"""Until a worker takes the task."""

LOOK_LIMIT = timedelta(seconds=30)
"""For the look itself. Every part of it has a shorter limit of its own, and is unknown after that."""


WATCHER = PROGRAM_OF[TaskQueue.WATCH]

CAUSE_LIMIT = timedelta(seconds=14)
"""In which a cause is named, all in all: who asks why nothing happens is told before a quarter of a minute is over."""

SOON = timedelta(seconds=3.5)
"""Until a worker takes that task: there are threads enough, so that one who does not is not there."""


TEMPORALS_OWN = timedelta(seconds=1)
"""For Temporal itself to find out that a limit is over."""


class NoWorker(Transient):
    """No activity worker took the task in time, or the one that did is gone (`was_taken`)."""

    def __init__(self, *, was_taken: bool = False) -> None:
        self.was_taken = was_taken
        super().__init__("No activity worker answered on the task queue `watch`. Start keeperless-activities, and ask again.")


MEND = "Fix what is named. The log of keeperless-activities has the whole error."


class ObservationFailed(Permanent):
    """A worker looked, and failed as a whole. (What does not answer is no failure, but unknown.) `fix`: what mends it."""

    def __init__(self, said: str, fix: str = "") -> None:
        super().__init__(said)
        self.fix = fix or MEND


async def observe(temporal: Temporal, cluster: str) -> ClusterSight:
    """What is seen now. All three raise `NoWorker`, `ObservationFailed`, `TemporalUnavailable` or `TemporalRefused`."""
    asked = ObserveRequest(cluster=cluster)
    call = f"{cluster_url(cluster)}/observation"
    return await look(temporal, ActivityName.OBSERVE, asked, ClusterSight, f"observe/{cluster}", call)


async def preview(temporal: Temporal, migration: MigrationRecord) -> RollbackPreview:
    """What a rollback would do to the migration's cluster, and what it would lose."""
    asked = PreviewRequest(kind=migration.kind, cluster=migration.cluster, policy=migration.policy)
    call = f"{migration_url(migration.id)}/rollback-preview"
    return await look(temporal, ActivityName.PREVIEW, asked, RollbackPreview, f"preview/{migration.id}", call)


async def runbook(temporal: Temporal, migration: MigrationRecord) -> Runbook:
    """The way by hand from where the migration's cluster is, forward and back."""
    asked = PreviewRequest(kind=migration.kind, cluster=migration.cluster, policy=migration.policy)
    call = f"{migration_url(migration.id)}/runbook"
    return await look(temporal, ActivityName.RUNBOOK, asked, Runbook, f"runbook/{migration.id}", call)


async def blockers(
    temporal: Temporal, migration: MigrationRecord, step: InHand | None, rolled: tuple[str, ...], restart_seconds: float
) -> BlockersSeen:
    """Why nothing happens, within the time in which a cause must be named."""
    asked = BlockersRequest(
        migration_id=migration.id,
        kind=migration.kind,
        cluster=migration.cluster,
        policy=migration.policy,
        in_hand=step.nodes if step is not None else (),
        step_since=step.began_at if step is not None else None,
        rolled=rolled,
        restart_seconds=restart_seconds,
    )
    call = f"{migration_url(migration.id)}/blockers"
    limits = (SOON, CAUSE_LIMIT - SOON)
    return await look(temporal, ActivityName.FIND_BLOCKERS, asked, BlockersSeen, blockers_id(migration.id), call, limits)


def blockers_id(migration_id: str) -> str:
    return f"blockers/{migration_id}"


async def look(
    temporal: Temporal,
    activity: ActivityName,
    asked: Payload,
    result_type: type[Seen],
    activity_id: str,
    call: str,
    limits: tuple[timedelta, timedelta] | None = None,
) -> Seen:
    """The answer of an activity that looks. `call`: what asks for it. `limits`: until a worker takes it, and for the look.

    Raises as `observe` does.
    """
    until_taken, of_look = limits or (WORKER_LIMIT, LOOK_LIMIT)
    async with temporal.answering() as client:
        handle = await client.start_activity(
            activity.value,
            asked,
            id=activity_id,
            id_conflict_policy=ActivityIDConflictPolicy.USE_EXISTING,
            task_queue=TaskQueue.WATCH,
            result_type=result_type,
            schedule_to_start_timeout=until_taken,
            start_to_close_timeout=of_look,
            retry_policy=RetryPolicy(maximum_attempts=1),
            summary=f"GET {call}",
        )
    try:
        async with temporal.answering(until_taken + of_look + TEMPORALS_OWN):
            seen: Seen = await handle.result()
            return seen
    except ActivityFailureError as error:
        raise _told(error.cause) from error


def _names_below(kind: type[Exception]) -> set[str]:
    """The names of an error's class and of all below it: what `activities.failures` gives as a failure's type."""
    return {kind.__name__}.union(*(_names_below(child) for child in kind.__subclasses__()))


OWN_ERRORS = frozenset(_names_below(KeeperlessError))
"""Types of failures that are worded for people."""

OF_THE_LEDGER = frozenset(_names_below(LedgerUnavailable) - _names_below(LedgerMarked))
"""But for what is so for all programs."""
OWN_WAY = (
    "This is how {0} sees the ledger. If no other entry reports the same for the API, the fault is in that program's own "
    "connection. Compare KEEPERLESS_LEDGER_URL, the user, the password and the network of its process with those of the "
    "API. "
)


def is_worded(cause: BaseException | None) -> TypeGuard[ApplicationError]:
    """Whether it is one of our own errors, worded for people. Others are bugs, whose text may hold anything."""
    return isinstance(cause, ApplicationError) and cause.type in OWN_ERRORS


def fix_in(details: Sequence[object]) -> str:
    """What mends an error of ours, as `activities.failures` hands it over; empty where it says so itself."""
    fixes = [str(told[FIX]) for told in details if isinstance(told, dict) and FIX in told]
    return fixes[0] if fixes else ""


def worded(kind: str | None, message: str, program: str, fix: str) -> tuple[str, str] | None:
    """What a failed activity of a program says, and its fix where there is a better one than that of all; `None` where it is a
    bug, whose text may hold anything. `fix`: what it hands over."""
    if kind in OF_THE_LEDGER:
        return message, f"{OWN_WAY.format(program)}{fix}"
    if kind in OWN_ERRORS:
        return message, fix
    stray = replaced(kind, program) if kind in OF_ITS_FILES else wrong_worker_behind(message)
    return (stray.what, stray.fix) if stray is not None else None


def unforeseen(kind: str | None) -> str:
    """In words. Of the error itself only its class, which holds no value."""
    return "in an unexpected way" + (f" ({kind})" if kind is not None and kind.isidentifier() else "")


def _told(cause: BaseException) -> NoWorker | ObservationFailed:
    if isinstance(cause, ActivityTimeout):
        return NoWorker(was_taken=cause.type is TimeoutType.START_TO_CLOSE)
    told = worded(cause.type, cause.message, WATCHER, fix_in(cause.details)) if isinstance(cause, ApplicationError) else None
    if told is not None:
        said, fix = told
        return ObservationFailed(said if is_worded(cause) else f"{said[0].upper()}{said[1:]}", fix)
    kind = cause.type if isinstance(cause, ApplicationError) else None
    return ObservationFailed(f"The activity failed {unforeseen(kind)}: the activity worker's log has the cause.")


@dataclass(frozen=True)
class Observer:
    """`by`: the worker that took it, empty where none did. `ahead`: at most; nothing where it is not known, or behind."""

    by: str = ""
    ahead: timedelta = timedelta(0)


async def observer_of(temporal: Temporal, migration_id: str, asked_at: datetime, answered_at: datetime | None) -> Observer:
    """Of the newest look, asked for and answered by our clock: it came to Temporal after the one, and ended before the other.
    Who asks while it is under way came later than it did: so it takes both to know. Nothing without an answer.
    """
    with suppress(TemporalRefused, TemporalUnavailable):
        async with temporal.answering() as client:
            seen = await client.get_activity_handle(blockers_id(migration_id)).describe()
        if seen.close_time is None or answered_at is None:
            return Observer(seen.last_worker_identity or "")
        ahead = min(answered_at - seen.close_time, asked_at + CALL_LIMIT - seen.schedule_time)
        return Observer(seen.last_worker_identity or "", max(ahead, timedelta(0)))
    return Observer()
