"""What Temporal says of a migration's run, asked of a real server: what somebody has paused, and code that does not fit."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio import activity, workflow
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState, TaskQueueType, TimeoutType
from temporalio.api.history.v1 import WorkflowTaskFailedEventAttributes
from temporalio.api.workflow.v1 import PendingActivityInfo, VersioningOverride, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    PauseActivityRequest,
    PauseWorkflowExecutionRequest,
    RespondActivityTaskCompletedByIdRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    UnpauseActivityRequest,
    UnpauseWorkflowExecutionRequest,
    UpdateTaskQueueConfigRequest,
    UpdateWorkflowExecutionOptionsRequest,
)
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, VersioningBehavior, WorkerDeploymentVersion
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkerDeploymentConfig
from temporalio.worker._workflow import _DeadlockError

from api.diagnosis import pending
from api.diagnosis.pending import RunSeen, run_seen
from api.diagnosis.pending_activities import task_of
from api.diagnosis.workflow_task_failures import words_of
from api.running.observing import ObservationFailed, _told
from domain.contracts import WORKFLOW_TYPE, ActivityName, MigrationInput, StepOutcome, TaskQueue
from domain.diagnosis import pending_tasks
from domain.diagnosis.blocker import STEP_FAILING, Blocker
from domain.errors import Transient
from domain.records import MigrationRecord
from ledger.errors import LedgerUnavailable

NOW = datetime(2026, 3, 1, 3, 0, 7, tzinfo=UTC)
IDENTITY = "anna@office"
SOON = timedelta(seconds=30)


@activity.defn(name=ActivityName.WATCH)
async def watch() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(0.2)


@workflow.defn(name=WORKFLOW_TYPE)
class Watching:
    """Has an activity in work for ever."""

    @workflow.run
    async def run(self, request: MigrationInput) -> None:
        await workflow.execute_activity(
            watch, task_queue=TaskQueue.WATCH, start_to_close_timeout=timedelta(hours=1), heartbeat_timeout=timedelta(seconds=3)
        )

    @workflow.signal
    def look(self) -> None:
        """A task for the workflow."""

    @workflow.query
    def status(self) -> str:
        return "it watches"


@workflow.defn(name=WORKFLOW_TYPE)
class OfAnotherRelease(Watching):
    """What cannot continue what `Watching` began."""

    @workflow.run
    async def run(self, request: MigrationInput) -> None:
        await workflow.sleep(1)

    @workflow.signal
    def look(self) -> None:
        """A task for the workflow."""

    @workflow.query
    def status(self) -> str:
        return "it sleeps"


@workflow.defn(name=WORKFLOW_TYPE)
class Attributed(Watching):
    """Sets an attribute that nobody has made."""

    @workflow.run
    async def run(self, request: MigrationInput) -> None:
        workflow.upsert_search_attributes([SearchAttributeKey.for_keyword("Forgotten").value_set("x")])
        await workflow.sleep(1)


@workflow.defn(name=WORKFLOW_TYPE)
class Buggy(Watching):
    @workflow.run
    async def run(self, request: MigrationInput) -> None:
        raise ValueError("secret=hunter2")


@workflow.defn(name=WORKFLOW_TYPE)
class Beaten:
    """What finds that another one holds the cluster."""

    @workflow.run
    async def run(self, request: MigrationInput) -> str:
        return "superseded"


@workflow.defn(name=WORKFLOW_TYPE)
class Asking(Watching):
    """Reads what its activity gives."""

    @workflow.run
    async def run(self, request: MigrationInput) -> None:
        await workflow.execute_activity(
            ActivityName.WATCH,
            task_queue=TaskQueue.WATCH,
            start_to_close_timeout=timedelta(hours=1),
            heartbeat_timeout=timedelta(seconds=3),
            result_type=StepOutcome,
        )


@workflow.defn
class Other:
    """Somebody else's."""

    @workflow.run
    async def run(self) -> None: ...


def leading(client: Client, kind: type, **settings: Any) -> Worker:
    return Worker(
        client,
        task_queue=TaskQueue.MIGRATIONS,
        workflows=[kind],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_cached_workflows=0,
        **settings,
    )


@pytest.fixture
async def watcher(temporal_client: Client) -> AsyncIterator[None]:
    async with Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[watch]):
        yield


async def migrating(api: Any) -> MigrationRecord:
    answer = await api.post_migration((await api.registered()).name)
    record = await api.wiring.ledger.migration(answer.json()["id"])
    assert isinstance(record, MigrationRecord)
    return record


async def told(api: Any, record: MigrationRecord, until: Callable[[list[tuple[str, str]]], bool]) -> list[Blocker]:
    """What is told of the run, once it is what is waited for."""
    entries: list[Blocker] = []
    async with asyncio.timeout(60):
        while True:
            entries = [*pending_tasks.of_tasks((await seen(api, record)).tasks, datetime.now(UTC))]
            if until([(entry.code, entry.object) for entry in entries]):
                return entries
            await asyncio.sleep(0.2)


async def seen(api: Any, record: MigrationRecord) -> RunSeen:
    return await run_seen(api.wiring.temporal, record)


async def in_work(api: Any, record: MigrationRecord) -> None:
    async with asyncio.timeout(60):
        while True:
            if any(task.taken_at for task in (await seen(api, record)).tasks if task.what == ActivityName.WATCH):
                return
            await asyncio.sleep(0.1)


@pytest.mark.usefixtures("watcher")
async def test_an_activity_that_somebody_completed_by_hand_is_told_with_who_did(api: Any, temporal_client: Client) -> None:
    """The run stumbles over what was given for it, again and again, until it is reset."""
    async with leading(temporal_client, Asking):
        record = await migrating(api)
        await in_work(api, record)
        given = RespondActivityTaskCompletedByIdRequest(
            namespace=temporal_client.namespace, workflow_id=record.workflow_id, activity_id="1", identity=IDENTITY
        )
        given.result.payloads.add(metadata={"encoding": b"json/plain"}, data=b'{"ok": true}')
        await temporal_client.workflow_service.respond_activity_task_completed_by_id(given)
        (entry,) = await told(api, record, lambda keys: (STEP_FAILING, "the migration's workflow") in keys)
        assert f"completed by {IDENTITY}" in entry.observed
        assert f"temporal workflow reset --workflow-id '{record.workflow_id}'" in entry.fix


@activity.defn(name=ActivityName.WATCH)
async def of_a_newer_release() -> dict[str, str]:
    return {"nodes": "in a form that an older one does not know"}


async def test_a_result_that_the_runs_worker_cannot_read_is_one_of_another_release(api: Any, temporal_client: Client) -> None:
    newer = Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[of_a_newer_release], identity="7@upgraded")
    async with leading(temporal_client, Asking, identity="8@forgotten"), newer:
        record = await migrating(api)
        (entry,) = await told(api, record, lambda keys: (STEP_FAILING, "the migration's workflow") in keys)
    assert "the result of an activity that ran on 7@upgraded cannot be read by 8@forgotten" in entry.observed
    assert "did not restart keeperless-workflows" in entry.fix


@pytest.mark.usefixtures("watcher")
async def test_an_activity_that_somebody_paused_is_no_missing_worker(api: Any, temporal_client: Client) -> None:
    async with leading(temporal_client, Watching):
        record = await migrating(api)
        await in_work(api, record)
        run = WorkflowExecution(workflow_id=record.workflow_id)
        await temporal_client.workflow_service.pause_activity(
            PauseActivityRequest(namespace="default", execution=run, identity=IDENTITY, type="watch", reason="lunch")
        )
        (entry,) = await told(api, record, lambda found: found == [("paused", "watch")])
        assert entry.observed == "paused in Temporal by anna@office: lunch"
        assert "temporal activity unpause" in entry.fix
        assert record.workflow_id in entry.fix
        assert datetime.now(UTC) - entry.since < SOON
        await temporal_client.workflow_service.unpause_activity(
            UnpauseActivityRequest(namespace="default", execution=run, type="watch")
        )
        assert await told(api, record, lambda found: not found) == []


@pytest.mark.usefixtures("watcher")
async def test_a_run_that_somebody_paused_is_told_and_still_one_that_runs(api: Any, temporal_client: Client) -> None:
    async with leading(temporal_client, Watching):
        record = await migrating(api)
        await in_work(api, record)
        await temporal_client.workflow_service.pause_workflow_execution(
            PauseWorkflowExecutionRequest(
                namespace="default", workflow_id=record.workflow_id, identity=IDENTITY, reason="lunch", request_id="1"
            )
        )
        (entry,) = await told(api, record, lambda found: ("paused", "the migration's workflow") in found)
        assert entry.observed == "paused in Temporal by anna@office: lunch"
        assert "temporal workflow unpause" in entry.fix
        found = await seen(api, record)
        assert (found.is_running, found.is_led) == (True, True)
        answer = await api.http.get(f"/migrations/{record.id}/blockers")
        assert "paused" in [item["code"] for item in answer.json()["items"]]
        await temporal_client.workflow_service.unpause_workflow_execution(
            UnpauseWorkflowExecutionRequest(namespace="default", workflow_id=record.workflow_id, request_id="2")
        )
        assert await told(api, record, lambda found: not found) == []


async def test_a_run_that_the_ledger_does_not_know_any_more_says_so(api: Any, temporal_client: Client) -> None:
    """As after the ledger was restored from a backup of before its claim."""
    async with leading(temporal_client, Beaten):
        record = await migrating(api)
        await temporal_client.get_workflow_handle(record.workflow_id).result()
    found = await seen(api, record)
    assert found.is_running is False
    assert "was restored from a backup" in found.ended


@pytest.mark.usefixtures("watcher")
async def test_a_worker_of_another_release_is_told_as_such(api: Any, temporal_client: Client) -> None:
    async with leading(temporal_client, Watching):
        record = await migrating(api)
        await in_work(api, record)
    async with leading(temporal_client, OfAnotherRelease):
        await temporal_client.get_workflow_handle(record.workflow_id).signal("look")
        (entry,) = await told(api, record, lambda found: ("step-failing", "the migration's workflow") in found)
        assert "another release" in entry.observed
        assert '"hold": true' in entry.fix
        assert (await seen(api, record)).is_led, "nobody is missing"
    async with leading(temporal_client, Watching):
        assert await told(api, record, lambda found: not found) == []


@activity.defn(name="something-else")
async def something_else() -> None:
    """What an older worker has in place of `watch`."""


async def test_a_worker_of_another_service_is_told_as_such(api: Any, temporal_client: Client) -> None:
    async with leading(temporal_client, Watching):
        record = await migrating(api)
        async with Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[something_else], identity="qa@ci-17"):
            (entry,) = await told(api, record, lambda found: ("step-failing", ActivityName.WATCH) in found)
        assert "a worker of another service" in entry.observed
        assert "qa@ci-17" in entry.observed
        assert "a task queue of its own" in entry.fix
        async with Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[watch]):
            assert await told(api, record, lambda found: not found) == []


async def test_a_queue_that_somebody_has_limited_is_no_missing_worker(
    api: Any, temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(seconds=1))

    async def limit(per_second: float | None) -> None:
        change = UpdateTaskQueueConfigRequest.RateLimitUpdate(reason="too much")
        if per_second is not None:
            change.rate_limit.requests_per_second = per_second
        await temporal_client.workflow_service.update_task_queue_config(
            UpdateTaskQueueConfigRequest(
                namespace=temporal_client.namespace,
                identity=IDENTITY,
                task_queue=TaskQueue.WATCH,
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
                update_queue_rate_limit=change,
            )
        )

    await limit(0.0)
    async with (
        leading(temporal_client, Watching),
        Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[watch]),
    ):
        record = await migrating(api)
        (entry,) = await told(api, record, lambda found: ("paused", ActivityName.WATCH) in found)
        assert f"a limit of 0 tasks a second on task queue watch, set by {IDENTITY}: too much" in entry.observed
        assert "--queue-rps-limit default" in entry.fix
        await limit(None)
        await in_work(api, record)
        assert await told(api, record, lambda found: not found) == []


async def give_to(client: Client, build_id: str) -> None:
    """All queues of a deployment to this version of it; to workers without one where it is empty."""
    await client.workflow_service.set_worker_deployment_current_version(
        SetWorkerDeploymentCurrentVersionRequest(
            namespace=client.namespace,
            deployment_name="pipeline",
            build_id=build_id,
            identity=IDENTITY,
            ignore_missing_task_queues=True,
            allow_no_pollers=True,
        )
    )


def versioned(client: Client, version: WorkerDeploymentVersion) -> Worker:
    """A worker of somebody else's at our queue."""
    deployment = WorkerDeploymentConfig(
        version=version, use_worker_versioning=True, default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE
    )
    return leading(client, Other, deployment_config=deployment)


@pytest.mark.parametrize("has_a_task", [True, False])
async def test_a_queue_that_is_given_to_another_deployment_is_no_missing_worker(
    api: Any, temporal_client: Client, monkeypatch: pytest.MonkeyPatch, has_a_task: bool
) -> None:
    """Whose workers are gone: ours poll, and get nothing."""
    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(seconds=1))
    monkeypatch.setattr(pending, "QUESTION_LIMIT", timedelta(seconds=2))
    version = WorkerDeploymentVersion(deployment_name="pipeline", build_id="2.0.0")
    async with leading(temporal_client, Watching), Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[watch]):
        record = await migrating(api)
        await in_work(api, record)
        async with versioned(temporal_client, version):
            await until_known(temporal_client, version)
        await give_to(temporal_client, version.build_id)
        try:
            if has_a_task:
                await temporal_client.get_workflow_handle(record.workflow_id).signal("look")
            (entry,) = await told(api, record, lambda found: ("paused", "the migration's workflow") in found)
            assert "task queue migrations is assigned to version 2.0.0 of the Worker Deployment pipeline" in entry.observed
            assert "--deployment-name pipeline --unversioned" in entry.fix
            assert (await seen(api, record)).is_led, "no worker is missing"
        finally:
            await give_to(temporal_client, "")
        assert await told(api, record, lambda found: not found) == []


async def test_a_run_that_is_pinned_to_a_version_is_no_missing_worker(
    api: Any, temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a canary of versioned workers leaves it, which was taken away again: ours poll, and get nothing of this run."""
    monkeypatch.setattr(pending, "QUESTION_LIMIT", timedelta(seconds=2))
    version = WorkerDeploymentVersion(deployment_name="canary", build_id="3.0.0")
    async with leading(temporal_client, Watching), Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[watch]):
        record = await migrating(api)
        await in_work(api, record)
        async with versioned(temporal_client, version):
            await until_known(temporal_client, version)
            await pin(temporal_client, record, version)
        (entry,) = await told(api, record, lambda found: ("paused", "the migration's workflow") in found)
        assert "its run is pinned to version 3.0.0 of the Worker Deployment canary" in entry.observed
        assert f"--workflow-id '{record.workflow_id}' --versioning-override-behavior unspecified" in entry.fix
        assert (await seen(api, record)).is_led, "no worker is missing"
        await pin(temporal_client, record, None)
        assert await told(api, record, lambda found: not found) == []


async def pin(client: Client, record: MigrationRecord, version: WorkerDeploymentVersion | None) -> None:
    """As `temporal workflow update-options`; `None` takes it back. Queues learn of a version later than the server."""
    asked = UpdateWorkflowExecutionOptionsRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=record.workflow_id),
        workflow_execution_options=WorkflowExecutionOptions(),
        update_mask=FieldMask(paths=["versioning_override"]),
    )
    if version is not None:
        pinned = asked.workflow_execution_options.versioning_override.pinned
        pinned.behavior = VersioningOverride.PINNED_OVERRIDE_BEHAVIOR_PINNED
        pinned.version.deployment_name, pinned.version.build_id = version.deployment_name, version.build_id
    async with asyncio.timeout(60):
        while True:
            try:
                await client.workflow_service.update_workflow_execution_options(asked)
            except RPCError as error:
                if error.status is not RPCStatusCode.FAILED_PRECONDITION:
                    raise
                await asyncio.sleep(0.2)
            else:
                return


async def until_known(client: Client, version: WorkerDeploymentVersion) -> None:
    """The server learns of a version as its worker polls."""
    asked = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=version.deployment_name)
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(RPCError):
                found = (await client.workflow_service.describe_worker_deployment(asked)).worker_deployment_info
                if any(one.deployment_version.build_id == version.build_id for one in found.version_summaries):
                    return
            await asyncio.sleep(0.2)


@pytest.mark.parametrize(("attempt", "is_told"), [(2, False), (3, False), (4, True)])
def test_a_worker_that_is_lost_again_and_again_is_no_accident(attempt: int, is_told: bool) -> None:
    found = PendingActivityInfo(attempt=attempt, state=PendingActivityState.PENDING_ACTIVITY_STATE_STARTED)
    found.activity_type.name = ActivityName.RUN_CHECK
    found.last_started_time.FromDatetime(NOW)
    found.last_failure.timeout_failure_info.timeout_type = TimeoutType.TIMEOUT_TYPE_HEARTBEAT
    entries = list(pending_tasks.of_tasks([pending_of(found)], NOW))
    assert [(entry.code, entry.object) for entry in entries] == ([("step-failing", ActivityName.RUN_CHECK)] if is_told else [])
    assert all("oom" in entry.fix for entry in entries)


@pytest.mark.parametrize(
    ("name", "seconds", "fix"),
    [
        (ActivityName.RUN_CHECK, 3600, "more CPU and memory"),
        (ActivityName.RUN_CHECK, 0, "more CPU and memory"),
        (ActivityName.RUN_CHECK, 60, "This activity's time limit was shortened in Temporal: `temporal activity reset"),
        (ActivityName.ASSESS, 120, "KEEPERLESS_ARTEFACTS"),
        (ActivityName.ROLL_NODE, 1320, "finds out what the ones before have done"),
        (ActivityName.WATCH, 86400, None),
    ],
)
def test_an_activity_whose_attempts_run_out_of_time_is_told_while_the_next_is_at_it(
    name: ActivityName, seconds: int, fix: str | None
) -> None:
    found = PendingActivityInfo(activity_id="8", attempt=3, state=PendingActivityState.PENDING_ACTIVITY_STATE_STARTED)
    found.activity_type.name = name
    found.last_started_time.FromDatetime(NOW - timedelta(minutes=1))
    found.last_failure.message = "activity StartToClose timeout"
    found.last_failure.timeout_failure_info.timeout_type = TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
    if seconds:  # else its server tells no options
        found.activity_options.start_to_close_timeout.FromSeconds(seconds)
    entries = list(pending_tasks.of_tasks([pending_of(found)], NOW))
    if fix is None:
        assert entries == []
        return
    (entry,) = entries
    told = f", {seconds} s," if seconds else ""
    assert entry.observed == f"attempt 3; the last one failed: it was not done within its time{told} and was started again"
    assert fix in entry.fix


def test_a_worker_that_has_ended_in_order_amid_something_is_no_failure_of_that() -> None:
    found = PendingActivityInfo(attempt=2, state=PendingActivityState.PENDING_ACTIVITY_STATE_STARTED)
    found.activity_type.name = ActivityName.WATCH
    found.last_started_time.FromDatetime(NOW)
    found.last_failure.application_failure_info.type = "WorkerShutdown"
    assert list(pending_tasks.of_tasks([pending_of(found)], NOW)) == []


async def test_a_search_attribute_that_is_gone_is_told_in_the_servers_words(api: Any, temporal_client: Client) -> None:
    async with leading(temporal_client, Attributed):
        record = await migrating(api)
        (entry,) = await told(api, record, lambda found: ("step-failing", "the migration's workflow") in found)
    assert "search attribute Forgotten" in entry.observed
    assert "search-attribute create" in entry.fix


async def test_a_workflow_whose_worker_fails_is_told_without_its_words(api: Any, temporal_client: Client) -> None:
    async with leading(temporal_client, Buggy):
        record = await migrating(api)
        (entry,) = await told(api, record, lambda found: ("step-failing", "the migration's workflow") in found)
    assert "in an unexpected way" in entry.observed
    assert "hunter2" not in entry.model_dump_json()


async def test_who_is_at_a_task_is_known_and_when_it_said_so_last(api: Any, temporal_client: Client) -> None:
    async with (
        leading(temporal_client, Watching),
        Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[watch], identity="7@elsewhere"),
    ):
        record = await migrating(api)
        await in_work(api, record)
        (task,) = [task for task in (await seen(api, record)).tasks if task.what == ActivityName.WATCH]
        assert task.worker == "7@elsewhere"
        assert task.heard_at is not None
        assert task.taken_at is not None
        assert task.heard_at >= task.taken_at
        gone = record.model_copy(update={"workflow_id": "cluster/gone"})
        found = await pending.in_work(api.wiring.temporal, [gone, record], TaskQueue.WATCH)
        assert [(cluster, at.what, at.worker) for cluster, at in found] == [(record.cluster, "watch", "7@elsewhere")]
        assert await pending.in_work(api.wiring.temporal, [record], TaskQueue.CLUSTER) == []


def test_a_look_by_another_release_is_told_as_such() -> None:
    assert "another release" in str(_told(ApplicationError("Failed decoding arguments")))
    unknown = "Activity function find_blockers for workflow  is not registered on this worker, available activities: watch"
    assert "another release" in str(_told(ApplicationError(unknown, type="NotFoundError")))
    for others in (
        "Activity function watch is not registered on this Worker, available activities: ['make_thumbnail']",
        "unable to find activityType=watch. Supported types: [MakeThumbnail]",
        'Activity Type "watch" is not registered with a worker. Known types are: MakeThumbnail',
    ):
        assert "A worker of another service" in str(_told(ApplicationError(others)))
    assert "in an unexpected way" in str(_told(ApplicationError("secret=hunter2", type="NotFoundError")))


def test_a_look_by_a_worker_whose_code_was_replaced_is_told_as_such() -> None:
    error = _told(ApplicationError("cannot import name 'X' from 'domain.contracts'", type="ImportError"))
    assert isinstance(error, ObservationFailed)
    assert str(error).startswith("Its code on disk differs from what it was started from (ImportError)")
    assert error.fix.startswith("Restart keeperless-activities")


def pending_of(found: PendingActivityInfo) -> pending_tasks.PendingTask:
    return task_of(found, "a workflow")


@pytest.mark.parametrize("state", ["STARTED", "CANCEL_REQUESTED", "PAUSE_REQUESTED"])
def test_a_task_that_is_to_end_is_still_in_somebodys_hands(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that a person's word has ended learns of it with its next heartbeat: until then nobody has to be missing."""
    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(seconds=1))
    found = PendingActivityInfo(state=PendingActivityState.Value(f"PENDING_ACTIVITY_STATE_{state}"))
    found.activity_type.name = ActivityName.WATCH
    found.scheduled_time.FromDatetime(NOW - timedelta(minutes=1))
    found.last_started_time.FromDatetime(NOW - timedelta(minutes=1))
    assert list(pending_tasks.of_tasks([pending_of(found)], NOW)) == []


def test_of_an_activity_between_two_attempts_only_the_end_of_the_last_has_happened() -> None:
    found = PendingActivityInfo(activity_id="8", attempt=3, state=PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED)
    found.activity_type.name = ActivityName.ROLL_NODE
    for due in (found.scheduled_time, found.next_attempt_schedule_time):
        due.FromDatetime(NOW + timedelta(hours=1))
    found.last_attempt_complete_time.FromDatetime(NOW)
    task = pending_of(found)
    assert (task.begun_at, task.due_at) == (NOW, NOW + timedelta(hours=1))
    assert list(pending_tasks.of_clock([], None, [task], NOW)) == []
    (entry,) = pending_tasks.of_tasks([task], NOW)
    assert "--workflow-id 'a workflow' --activity-id '8'" in entry.fix
    found.ClearField("last_attempt_complete_time")
    assert [entry.code for entry in pending_tasks.of_tasks([pending_of(found)], NOW)] == []


def test_a_stray_worker_is_named_as_long_as_nobody_else_tries_again() -> None:
    """Temporal tells who took the task last: once that is the next attempt, it is not who has failed."""
    found = PendingActivityInfo(attempt=2, state=PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED)
    found.activity_type.name = ActivityName.ROLL_NODE
    found.last_worker_identity = "thumbnailer@media-03"
    found.last_failure.message = "unable to find activityType=roll_node. Supported types: [MakeThumbnail]"
    assert pending_of(found).error.endswith("that it does not know (it is thumbnailer@media-03)")
    assert "a task queue of its own" in pending_of(found).fix
    found.state = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    assert "thumbnailer" not in pending_of(found).error


def test_of_several_workers_the_one_that_failed_is_named() -> None:
    """One may run as another user, or lack a secret: then every second attempt fails."""
    found = PendingActivityInfo(attempt=2, state=PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED)
    found.activity_type.name = ActivityName.ROLL_NODE
    found.last_worker_identity = "4711@c1"
    found.last_failure.message = "refuses that process something: Operation not permitted: /run/kafka/1.pid"
    found.last_failure.application_failure_info.type = Transient.__name__
    assert pending_of(found).error.endswith("/run/kafka/1.pid (at 4711@c1)")
    found.state = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    assert "4711" not in pending_of(found).error


def test_a_worker_that_gets_no_processor_is_told_as_such() -> None:
    failed = WorkflowTaskFailedEventAttributes()
    failed.failure.message = "[TMPRL1101] Potential deadlock detected: workflow didn't yield within 2 second(s)."
    failed.failure.application_failure_info.type = _DeadlockError.__name__
    error, fix = words_of(failed)
    assert "no CPU" in error
    assert "CPUQuota=" in fix


@pytest.mark.parametrize(
    "message",
    [
        "Workflow class Migration is not registered on this worker, available workflows: SchemaMigration",
        "unable to find workflow type: Migration. Supported types: [SchemaMigration]",
        'Workflow Type "Migration" is not registered with a worker. Known types are: SchemaMigration',
        "Failed to initialize workflow of type 'Migration': no such function is exported by the workflow bundle",
    ],
)
def test_a_workflow_worker_of_another_service_is_told_as_such(message: str) -> None:
    failed = WorkflowTaskFailedEventAttributes(identity="7@billing-03")
    failed.failure.message = message
    failed.failure.application_failure_info.type = "NotFoundError"
    error, fix = words_of(failed)
    assert error.startswith("a worker of another service polls this task queue")
    assert error.endswith("(it is 7@billing-03)")
    assert "a namespace of its own" in fix


@pytest.mark.parametrize("kind", ["ImportError", "ModuleNotFoundError", "SyntaxError"])
def test_a_program_whose_code_was_replaced_under_it_is_to_be_restarted(kind: str) -> None:
    failed = WorkflowTaskFailedEventAttributes(identity="7@c1")
    failed.failure.message = "cannot import name 'X' from 'domain.contracts' (/opt/keeperless/domain/contracts.py)"
    failed.failure.application_failure_info.type = kind
    error, fix = words_of(failed)
    assert error.startswith(f"its code on disk differs from what it was started from ({kind})")
    assert "7@c1" in error
    assert fix.startswith("Restart keeperless-workflows")
    found = PendingActivityInfo(attempt=2)
    found.activity_type.name = ActivityName.RUN_CHECK
    found.last_failure.CopyFrom(failed.failure)
    assert pending_of(found).error.startswith("its code on disk differs")
    assert pending_of(found).fix.startswith("Restart keeperless-checks")


def test_a_history_that_does_not_fit_its_code_is_not_to_be_reset() -> None:
    failed = WorkflowTaskFailedEventAttributes()
    failed.failure.message = (
        "Fatal error in workflow machines: ActivityMachine in state ScheduleCommandCreated says the transition is invalid "
        "during event EventInfo { event_id: 90, event_type: ActivityTaskCancelRequested }"
    )
    error, fix = words_of(failed)
    assert error.startswith("its history is not what its worker's code produces")
    assert fix.startswith("Do not reset it")
    assert '"hold": true' in fix


def test_how_far_an_attempt_is_is_read_from_its_heartbeat() -> None:
    found = PendingActivityInfo(state=PendingActivityState.PENDING_ACTIVITY_STATE_STARTED)
    assert (pending_of(found).at, pending_of(found).at_since) == ("", None)
    details = {"sessions": ["s"], "look": 1, "stage": "compare", "done": 3, "total": 12, "since": NOW.isoformat()}
    payload = found.heartbeat_details.payloads.add(data=json.dumps(details).encode())
    assert (pending_of(found).at, pending_of(found).at_since) == ("compare, 3 of 12", NOW)
    payload.data = json.dumps({"at": "a JVM is tried", "since": NOW.isoformat()}).encode()
    assert (pending_of(found).at, pending_of(found).at_since) == ("a JVM is tried", NOW)
    payload.data = b'{"sessions": []}'
    assert pending_of(found).at_since is None


def test_a_ledger_that_only_a_worker_does_not_reach_is_told_with_what_mends_it() -> None:
    """Its password, its user and its network are its own."""
    said = 'the ledger\'s database does not answer as it should (OperationalError: password authentication failed for user "k")'
    found = PendingActivityInfo(attempt=2)
    found.activity_type.name = ActivityName.RECORD
    found.last_failure.message = said
    found.last_failure.application_failure_info.type = LedgerUnavailable.__name__
    details = found.last_failure.application_failure_info.details
    details.payloads.add(data=json.dumps({"fix": "Fix what it says."}).encode())
    fix = pending_of(found).fix
    assert fix.startswith("This is how keeperless-activities sees the ledger")
    assert fix.endswith("with those of the API. Fix what it says.")
    looked = _told(ApplicationError(said, {"fix": "Fix what it says."}, type=LedgerUnavailable.__name__))
    assert isinstance(looked, ObservationFailed)
    assert (str(looked), looked.fix) == (said, fix)
    details.payloads[0].data = b"no JSON"
    assert pending_of(found).fix.endswith("with those of the API. ")


def test_an_error_that_the_server_has_cut_keeps_our_words() -> None:
    """Temporal puts a failure of its own before one whose chain of causes is too long (seen with the ledger's)."""
    found = PendingActivityInfo(attempt=2)
    found.activity_type.name = ActivityName.RECORD
    failure = found.last_failure
    failure.message = "Failure exceeds size limit."
    failure.server_failure_info.SetInParent()
    failure.cause.message = "the ledger is locked; try again"
    failure.cause.application_failure_info.type = LedgerUnavailable.__name__
    assert pending_of(found).error == "the ledger is locked; try again"
    failure.cause.application_failure_info.type = ""
    failure.cause.message = "Failed decoding arguments"
    assert "another release" in pending_of(found).error
    failure.cause.application_failure_info.type, failure.cause.message = "ValueError", "secret=hunter2"
    assert "in an unexpected way" in pending_of(found).error
