"""What Temporal says of one activity of a run: whether it lies there, is in work, fails, or was paused by somebody."""

import json
from datetime import UTC, datetime, timedelta

from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import PendingActivityState, TimeoutType
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflow.v1 import PendingActivityInfo

from api.diagnosis.workflow_task_failures import WHERE
from api.diagnosis.wrong_workers import FIXES as FIXES_OF_WRONG_WORKERS
from api.running.observing import fix_in, unforeseen, worded
from domain.contracts import PROGRAM_OF, ActivityName, TaskQueue
from domain.decisions import CHECK_TIMEOUT
from domain.diagnosis.pending_tasks import RESET, PendingTask
from workflows.calls import LOOK_TIMEOUT, RECORD_TIMEOUT

QUEUE_OF: dict[str, TaskQueue] = {ActivityName.WATCH: TaskQueue.WATCH, ActivityName.RUN_CHECK: TaskQueue.CHECKS}
"""Of a migration's activities; every other is on the queue of effects."""

IN_WORK = frozenset(
    {
        PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
        PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
        PendingActivityState.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED,
    }
)
"""Of an activity that a worker has. One that is to end learns of it with its next heartbeat, seconds later."""

UNPAUSE = (
    "If it was not intended, resume it: `temporal {}`, or in the Temporal UI. To stop between two nodes, with a reason, "
    "POST /migrations/{{id}}/hold."
)

LOST, LOST_ATTEMPTS = "its worker stopped reporting in the middle of it, this time and before", 3
"""From how many attempts on that is no accident."""
LOST_FIX = (
    "If its process has ended, find what kills it: mostly the kernel, for its memory. Read dmesg (oom-kill), the journal of "
    "systemd-oomd, and its exit status; give it more memory. If its process still runs, do not restart it. Check what is "
    "between it and Temporal (a proxy or an ingress: its limit of concurrent HTTP/2 streams, timeouts, log), Temporal's own "
    "limits, and the CPU and swap of its machine. The activity is retried by itself."
)

USUAL: dict[str, timedelta] = {
    ActivityName.RUN_CHECK: CHECK_TIMEOUT,
    ActivityName.ASSESS: LOOK_TIMEOUT,
    ActivityName.RECORD: RECORD_TIMEOUT,
}
"""How long an attempt may take."""
SHORTENED = "This activity's time limit was shortened in Temporal: {} restores its own."
MORE = {
    TaskQueue.CHECKS: "The comparison takes longer than that: give keeperless-checks more CPU and memory, or a Spark of "
    "your own (KEEPERLESS_SPARK), or find what it hangs on: its disk, its network, its log.",
    TaskQueue.CLUSTER: "Something that it asks hangs, or its machine is overloaded. Check the file systems of the nodes and "
    "of KEEPERLESS_ARTEFACTS (`findmnt`, `ps -eo pid,stat,wchan:32,cmd | grep ' D'`), the CPU (`top`), "
    "and its log. Each attempt finds out what the ones before have done.",
}

STOPPED_IN_ORDER = "WorkerShutdown"
"""Temporal's type for: whoever was at it has ended, and could not finish it."""


def task_of(activity: PendingActivityInfo, workflow_id: str) -> PendingTask:
    is_taken = activity.state in IN_WORK
    is_again = activity.HasField("next_attempt_schedule_time")
    due = activity.next_attempt_schedule_time if is_again else activity.scheduled_time
    is_between = is_again and activity.HasField("last_attempt_complete_time")
    begun = activity.last_attempt_complete_time if is_between else activity.scheduled_time
    since = activity.pause_info.pause_time if activity.paused else begun
    queue = QUEUE_OF.get(activity.activity_type.name, TaskQueue.CLUSTER)
    error, fix = failed_of(activity.last_failure, queue) if activity.HasField("last_failure") else ("", "")
    is_lost = activity.last_failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_HEARTBEAT
    if is_lost and activity.attempt > LOST_ATTEMPTS:
        error, fix = LOST, LOST_FIX
    named = f"--workflow-id '{workflow_id}' --activity-id '{activity.activity_id}'"
    if has_run_out := _has_run_out(activity):
        error, fix = _out_of_time(activity, queue, named)
    if error and not is_lost and activity.last_worker_identity and not is_taken:  # else it is who tries again
        error += f" ({'it is' if error in FIXES_OF_WRONG_WORKERS else 'at'} {activity.last_worker_identity})"
    at, at_since = progress_in(activity.heartbeat_details) if is_taken else ("", None)
    return PendingTask(
        what=activity.activity_type.name,
        queue=queue,
        begun_at=since.ToDatetime(UTC),
        due_at=due.ToDatetime(UTC),
        taken_at=activity.last_started_time.ToDatetime(UTC) if is_taken else None,
        worker=activity.last_worker_identity if is_taken else "",
        heard_at=_heard_at(activity) if is_taken else None,
        at=at,
        at_since=at_since,
        attempt=activity.attempt,
        error=error,
        paused=_pause_of(activity.pause_info) if activity.paused else "",
        fix=UNPAUSE.format(f"activity unpause {named}") if activity.paused else fix,
        named=named,
        has_run_out=has_run_out,
    )


def _has_run_out(activity: PendingActivityInfo) -> bool:
    """A watch may: it begins anew once a day, if nothing changes."""
    kind = activity.last_failure.timeout_failure_info.timeout_type
    return kind == TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE and activity.activity_type.name != ActivityName.WATCH


def _out_of_time(activity: PendingActivityInfo, queue: TaskQueue, named: str) -> tuple[str, str]:
    limit, usual = activity.activity_options.start_to_close_timeout.ToTimedelta(), USUAL.get(activity.activity_type.name)
    is_shortened = usual is not None and timedelta() < limit < usual  # an older server does not tell it
    told = f", {limit.total_seconds():g} s," if limit else ""
    error = f"it was not done within its time{told} and was started again"
    return error, SHORTENED.format(RESET.format(named)) if is_shortened else MORE.get(queue, "")


def _heard_at(activity: PendingActivityInfo) -> datetime | None:
    """When its worker said last that it is at it; `None` where it need not."""
    if not activity.activity_options.heartbeat_timeout.ToTimedelta():
        return None
    return max(at.ToDatetime(UTC) for at in (activity.last_started_time, activity.last_heartbeat_time))


def progress_in(details: Payloads) -> tuple[str, datetime | None]:
    """What an attempt is at and since when, if its heartbeat says so (`activities.check_heartbeat`); else nothing."""
    try:
        told = json.loads(details.payloads[0].data)
        words = told["at"] if "at" in told else f"{told['stage']}, {told['done']} of {told['total']}"
        since = datetime.fromisoformat(told["since"])
    except (IndexError, ValueError, TypeError, KeyError):
        return "", None
    return words, since


def _pause_of(pause: PendingActivityInfo.PauseInfo) -> str:
    """Somebody has paused this one, or a rule of the namespace has paused all that fit it."""
    if pause.HasField("rule"):
        return f"by a rule, {said_by(pause.rule.identity, pause.rule.reason)}"
    return said_by(pause.manual.identity, pause.manual.reason)


def said_by(identity: str, reason: str) -> str:
    return f"by {identity or 'an unnamed caller'}" + (f": {reason}" if reason else "")


def failed_of(failure: Failure, queue: TaskQueue) -> tuple[str, str]:
    """The error, and its fix where there is a better one than that of all.

    Our own errors are worded for people. Any other is a bug, whose text may hold anything; a lost worker is no error. Of a
    failure with a long chain of causes Temporal's server keeps the end, beneath one of its own ("exceeds size limit").
    """
    if failure.HasField("server_failure_info") and failure.HasField("cause"):
        return failed_of(failure.cause, queue)
    kind = failure.application_failure_info.type
    if failure.HasField("timeout_failure_info") or kind == STOPPED_IN_ORDER:
        return "", ""
    handed = fix_in([_read(payload.data) for payload in failure.application_failure_info.details.payloads])
    return worded(kind, failure.message, PROGRAM_OF[queue], handed) or (f"{unforeseen(kind)}: {WHERE}", "")


def _read(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return None
