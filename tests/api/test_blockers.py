"""Why is nothing happening? In every state, with a worker and without, with Temporal and without: always an answer."""

import asyncio
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import httpx
import pytest
from temporalio import activity, workflow
from temporalio.api.common.v1 import GrpcStatus
from temporalio.api.enums.v1 import ResourceExhaustedCause, TaskQueueType
from temporalio.api.errordetails.v1 import ResourceExhaustedFailure
from temporalio.api.taskqueue.v1 import TaskQueue as TaskQueueName
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from api.app import create_app
from api.diagnosis import pending, pollers, unattended
from api.diagnosis.pending import RunSeen
from api.diagnosis.pollers import Poller
from api.diagnosis.temporal_causes import Door, without_temporal
from api.running import observing
from api.running.commands import Answer, CommandStatus, send
from api.running.temporal import Temporal, TemporalRefused, TemporalUnavailable
from api.settings import ApiSettings
from api.wiring import LEDGER_TIMEOUTS
from domain.contracts import ActivityName, HoldMessage, TaskQueue
from domain.decisions import Finding
from domain.diagnosis import pending_tasks
from domain.diagnosis.blocker import blocker
from domain.diagnosis.machines.vital_signs import Sign
from domain.diagnosis.pending_tasks import PendingTask
from domain.questions import BlockersRequest, BlockersSeen
from domain.records import Command, CommandKind, EventDraft, MigrationRecord, MigrationState, Progress, Waiting
from domain.worker_health import WorkerHealth
from ledger.errors import LedgerDamaged, LedgerUnavailable
from playground.ports import PortLease
from playground.processes import Launch
from playground.temporal import TemporalPorts, TemporalServer

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
NOW = datetime(2026, 3, 1, 3, 0, 7, tzinfo=UTC)
DOWN = blocker("node-down", "broker-2", observed="it does not run", expected="it runs", fix="start it", since=NOW)
CHANGED = blocker("machine", "broker-3", observed="mount /data: rw → ro", expected="-", fix="look", since=NOW)
LATE = blocker("part-unknown", "kafka", observed="no answer within 5 s", expected="-", fix="wait", since=NOW)
HELD = Waiting(reason="held", means="-", since=NOW, detail="held by anna: lunch", for_people=True)
NODE_DOWN = Waiting(reason="node-down", means="Start it.", since=NOW, objects=("broker-2",))


@activity.defn(name=ActivityName.FIND_BLOCKERS)
async def find_blockers(request: BlockersRequest) -> BlockersSeen:
    if request.policy.stable_samples == 7:
        raise ApplicationError("ZooKeeper: wrong credentials; correct digest_auth", type="Permanent", non_retryable=True)
    if request.policy.stable_samples == 8:
        raise ValueError("secret=hunter2")
    if request.policy.stable_samples == 9:
        await asyncio.Event().wait()
    found = () if "broker-2" in request.in_hand or request.policy.stable_samples in {5, 6} else (DOWN,)
    return BlockersSeen(
        observed_at=NOW,
        phase="SOAK",
        blockers=found,
        explained=("node-down",) if found else (),
        unlooked=("log of broker-1: no",),
        late=(LATE,) if request.policy.stable_samples == 6 else (),
        changed=(CHANGED,) if request.policy.stable_samples == 4 else (),
    )


@pytest.fixture
async def watcher(temporal_client: Client) -> AsyncIterator[None]:
    async with Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[find_blockers]):
        yield


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "SOON", timedelta(seconds=1))
    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(hours=1))
    monkeypatch.setattr(pending, "QUESTION_LIMIT", timedelta(seconds=2))
    monkeypatch.setattr(pollers, "QUESTION", timedelta(0))  # Workers of the tests before are remembered.


async def migrating(api: Any, stable_samples: int = 3) -> str:
    """A migration whose policy tells the stand-in what to answer."""
    answer = await api.post_migration((await api.registered()).name, policy={"stable_samples": stable_samples})
    return str(answer.json()["id"])


async def shown(api: Any, migration_id: str, state: MigrationState, waiting: Waiting | None = None, **more: Any) -> None:
    """What the migration's run would have written."""
    await api.wiring.ledger.record(migration_id, [], Progress(state=state, waiting=waiting, **more))


async def blockers(api: Any, migration_id: str) -> dict[str, Any]:
    answer = await api.http.get(f"/migrations/{migration_id}/blockers")
    assert answer.status_code == 200, answer.text
    assert answer.json()["migration_id"] == migration_id
    return dict(answer.json())


def keys(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item["code"], item["object"]) for item in answer["items"]]


@pytest.mark.usefixtures("watcher", "worker")
@pytest.mark.parametrize(("since", "told"), [(NOW, [("node-down", "broker-2")]), (NOW - timedelta(minutes=1), [])])
async def test_a_wait_that_is_as_new_as_a_look_that_found_nothing_is_told(
    since: datetime, told: list[tuple[str, str]], api: Any
) -> None:
    """The node has died while it was looked at; what is over is no entry, though the migration has not gone on yet."""
    migration_id = await migrating(api, stable_samples=5)
    await shown(api, migration_id, MigrationState.WAITING, NODE_DOWN.model_copy(update={"since": since}))
    assert keys(await blockers(api, migration_id)) == told


@pytest.mark.usefixtures("watcher", "worker")
async def test_a_look_and_what_the_ledger_knows_are_one_answer(api: Any) -> None:
    migration_id = await migrating(api)
    await shown(api, migration_id, MigrationState.HELD, HELD)
    answer = await blockers(api, migration_id)
    assert keys(answer) == [("node-down", "broker-2"), ("held", "the migration")]
    assert answer["items"][0] == DOWN.model_dump(mode="json")
    assert set(answer["items"][0]) == {"code", "object", "observed", "expected", "fix", "since", "docs"}
    assert (answer["state"], answer["phase"], answer["observed_at"]) == ("held", "SOAK", "2026-03-01T03:00:07Z")
    assert answer["unlooked"] == ["log of broker-1: no"]
    assert await api.event_kinds(migration_id) == ["call-accepted"], "looking is no event"


@pytest.mark.usefixtures("watcher", "worker")
async def test_what_only_the_look_had_no_time_for_is_told_where_nothing_else_is(api: Any) -> None:
    migration_id = await migrating(api, stable_samples=6)
    await shown(api, migration_id, MigrationState.HELD, HELD)
    assert keys(await blockers(api, migration_id)) == [("held", "the migration")]
    await shown(api, migration_id, MigrationState.RUNNING)
    assert keys(await blockers(api, migration_id)) == [("part-unknown", "kafka")]


@pytest.mark.usefixtures("watcher", "worker")
async def test_a_wait_that_the_look_explains_is_told_once(api: Any) -> None:
    migration_id = await migrating(api)
    await shown(api, migration_id, MigrationState.WAITING, NODE_DOWN)
    assert keys(await blockers(api, migration_id)) == [("node-down", "broker-2")]


@pytest.mark.usefixtures("watcher", "worker")
async def test_what_has_changed_on_a_machine_is_told_beside_trouble_and_is_none_by_itself(api: Any) -> None:
    """As for a migration that is held, or waits for an approval, while a step of ours has the other node in its hands."""
    migration_id = await migrating(api, stable_samples=4)
    assert keys(await blockers(api, migration_id)) == [("node-down", "broker-2"), ("machine", "broker-3")]
    cluster = (await api.wiring.ledger.migration(migration_id)).cluster
    begun = EventDraft(key="1", kind="step-started", cluster=cluster, at=datetime.now(UTC), data={"node": "broker-2"})
    await api.wiring.ledger.record(migration_id, [begun], Progress(state=MigrationState.HELD, waiting=HELD))
    assert keys(await blockers(api, migration_id)) == [("held", "the migration")]


@pytest.mark.usefixtures("watcher", "worker")
async def test_a_node_in_hand_is_no_blocker_and_a_standstill_is_told(api: Any) -> None:
    migration_id = await migrating(api)
    cluster = (await api.wiring.ledger.migration(migration_id)).cluster
    begun = EventDraft(key="1", kind="step-started", cluster=cluster, at=datetime.now(UTC), data={"node": "broker-2"})
    still = blocker("GF15", "progress", observed="nothing moves", expected="it does", fix="look", since=NOW)
    await api.wiring.ledger.record(migration_id, [begun], Progress(state=MigrationState.RUNNING, alerts=(still,)))
    answer = await blockers(api, migration_id)
    assert keys(answer) == [("GF15", "progress")]
    assert answer["items"][0]["docs"] == "docs/guards.md#gf15"


@pytest.mark.usefixtures("watcher", "worker")
@pytest.mark.parametrize(("samples", "says"), [(7, "wrong credentials"), (8, "in an unexpected way (ValueError)")])
async def test_a_look_that_fails_is_an_entry_beside_what_the_ledger_knows(api: Any, samples: int, says: str) -> None:
    migration_id = await migrating(api, samples)
    await shown(api, migration_id, MigrationState.WAITING, NODE_DOWN)
    answer = await blockers(api, migration_id)
    assert keys(answer) == [("observation-failed", "the observation of the cluster"), ("node-down", "broker-2")]
    assert says in answer["items"][0]["observed"]
    assert "hunter2" not in str(answer)
    assert answer["observed_at"] is None


def worker_on(host: str, pid: int = 7, ago: float = 2, **more: Any) -> WorkerHealth:
    """What keeperless-activities has written down there so many seconds ago."""
    now = datetime.now(UTC)
    return WorkerHealth(
        **{
            "id": f"{pid}@{host}",
            "program": "keeperless-activities",
            "host": host,
            "pid": pid,
            "release": "0.1.0",
            "settings_fingerprint": "abc",
            "started_at": now - timedelta(hours=1),
            "beat_at": now - timedelta(seconds=ago),
            **more,
        }
    )


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("ago", "says"), [(2, "it runs and does not poll this task queue"), (40, "and did not report a clean stop")]
)
async def test_the_worker_that_beat_last_is_named_where_no_task_is_taken(api: Any, ago: float, says: str) -> None:
    error = {"last_error": "tcp connect error", "last_error_at": NOW}
    await api.wiring.ledger.beat(worker_on("kafka-1", ago=ago, **error))
    migration_id = await migrating(api)
    await shown(api, migration_id, MigrationState.WAITING, NODE_DOWN)
    entry = (await blockers(api, migration_id))["items"][0]
    assert (entry["code"], entry["object"]) == ("no-worker", "task queue watch")
    assert "keeperless-activities (process 7 on kafka-1, release 0.1.0) last beat at " in entry["observed"]
    assert says in entry["observed"]
    assert entry["observed"].endswith("its last error, at 03:00:07 UTC: tcp connect error")


@pytest.mark.usefixtures("worker")
async def test_a_worker_that_is_restarted_again_and_again_is_told_as_that(api: Any) -> None:
    for pid in (7, 8):
        await api.wiring.ledger.beat(worker_on("kafka-1", pid, ago=40))
    migration_id = await migrating(api)
    await shown(api, migration_id, MigrationState.WAITING, NODE_DOWN)
    entries = (await blockers(api, migration_id))["items"]
    (entry,) = [one for one in entries if one["object"] == "keeperless-activities"]
    assert "2 processes of it have ended recently (7@kafka-1, 8@kafka-1)" in entry["observed"]
    assert "what ends it" in entry["fix"]


@pytest.mark.usefixtures("watcher", "worker")
async def test_copies_with_other_settings_are_told_beside_trouble(api: Any) -> None:
    await api.wiring.ledger.beat(worker_on("kafka-1"))
    await api.wiring.ledger.beat(worker_on("kafka-2", settings_fingerprint="def"))
    assert keys(await blockers(api, await migrating(api))) == [
        ("node-down", "broker-2"),
        ("machine", "copies of keeperless-activities"),
    ]


@pytest.mark.usefixtures("watcher", "worker")
async def test_copies_that_differ_are_no_trouble_by_themselves(api: Any) -> None:
    await api.wiring.ledger.beat(worker_on("kafka-1"))
    await api.wiring.ledger.beat(worker_on("kafka-1", 8, release="0.2.0"))
    assert keys(await blockers(api, await migrating(api, stable_samples=5))) == []


async def until_refused(temporal: Temporal) -> Sign:
    """As soon as a worker of the server's own polls: it has one in every namespace, a second after its start."""
    deadline = time.monotonic() + 30
    while (refused := await pollers.refusal(temporal)) is None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    return refused


class OnePoller(TemporalServer):
    """Temporal with the smallest limit of pollers at once."""

    @property
    def launch(self) -> Launch:
        usual = super().launch
        return replace(usual, command=(*usual.command, "--dynamic-config-value", "frontend.namespaceCount=1"))


async def test_a_temporal_that_refuses_whoever_asks_for_tasks_is_told(tmp_path: Path, temporal_address: str) -> None:
    lease = PortLease(4)
    with closing(lease), OnePoller(tmp_path / "temporal", TemporalPorts.leased(lease)) as server:
        temporal = Temporal({"target_host": server.address})
        refused = await until_refused(temporal)
    assert refused.observed == "Temporal refuses polls: namespace concurrent poller limit exceeded"
    assert await pollers.refusal(temporal) is None, "nobody is there"
    assert await pollers.refusal(Temporal({"target_host": temporal_address})) is None


class OneActivity(TemporalServer):
    """Temporal that lets a run have one activity at a time."""

    @property
    def launch(self) -> Launch:
        usual = super().launch
        return replace(usual, command=(*usual.command, "--dynamic-config-value", "limit.numPendingActivities.error=1"))


@workflow.defn
class Busy:
    """Has an activity in work, and takes an order that needs another."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(endless, start_to_close_timeout=timedelta(hours=1))

    @workflow.update
    async def hold(self, message: HoldMessage) -> None:
        await workflow.execute_activity(endless, start_to_close_timeout=timedelta(hours=1))


async def test_an_order_with_which_the_run_cannot_go_on_is_refused_with_what_it_failed_at(tmp_path: Path) -> None:
    lease, queue = PortLease(4), "orders"
    with closing(lease), OneActivity(tmp_path / "temporal", TemporalPorts.leased(lease)) as server:
        temporal = Temporal({"target_host": server.address})
        client = await Client.connect(server.address, data_converter=pydantic_data_converter)
        runner = UnsandboxedWorkflowRunner()
        async with Worker(client, task_queue=queue, workflows=[Busy], activities=[endless], workflow_runner=runner):
            run = await client.start_workflow(Busy.run, id="busy", task_queue=queue)
            record = SimpleNamespace(workflow_id=run.id, run_id=run.first_execution_run_id, ended_at=None)
            order = Command(
                id="1", migration_id="m", kind=CommandKind.HOLD, by="anna", via="api", reason="why", at=datetime.now(UTC)
            )
            answer = await delivered(temporal, cast("MigrationRecord", record), order)
    assert answer.status is CommandStatus.REFUSED
    assert "It failed: " in answer.because
    assert "pending activities" in answer.because
    assert "Usual causes" not in answer.because


async def delivered(temporal: Temporal, record: MigrationRecord, order: Command) -> Answer:
    """Again and again, as the courier does it: a machine may have much to do."""
    async with asyncio.timeout(90):
        while True:
            answer = await send(temporal, record, order, timedelta(seconds=30))
            if answer.status is not CommandStatus.PENDING:
                return answer


@activity.defn
async def endless() -> None:
    await asyncio.sleep(3600)


@activity.defn
async def nothing() -> None: ...


async def until_heard_of(client: Client, identity: str, queue: TaskQueue = TaskQueue.WATCH) -> None:
    asked = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueueName(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    )
    async with asyncio.timeout(60):
        while True:
            if identity in {one.identity for one in (await client.workflow_service.describe_task_queue(asked)).pollers}:
                return
            await asyncio.sleep(0.1)


@pytest.mark.usefixtures("worker")
async def test_without_a_worker_that_is_the_answer(api: Any) -> None:
    migration_id = await migrating(api)
    await shown(api, migration_id, MigrationState.WAITING, NODE_DOWN)
    began = datetime.now(UTC)
    answer = await blockers(api, migration_id)
    assert datetime.now(UTC) - began < timedelta(seconds=10)
    assert keys(answer) == [("no-worker", "task queue watch"), ("node-down", "broker-2")]
    assert "keeperless-activities" in answer["items"][0]["fix"]


@pytest.mark.usefixtures("watcher")
async def test_a_run_that_waits_and_is_led_by_nobody_is_told(api: Any) -> None:
    """No task of it waits for a worker: only a question shows it."""
    migration_id = await migrating(api)
    await shown(api, migration_id, MigrationState.HELD, HELD)
    answer = await blockers(api, migration_id)
    assert keys(answer) == [("node-down", "broker-2"), ("held", "the migration"), ("no-worker", "task queue migrations")]
    assert "keeperless-workflows" in answer["items"][2]["fix"]


async def test_a_workflow_that_nobody_leads_is_told(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No workflow worker: the run's first task lies there."""
    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(0))
    assert ("no-worker", "task queue migrations") in keys(await blockers(api, await migrating(api)))


async def waiting(api: Any, migration_id: str) -> dict[str, Any] | None:
    answer = await api.http.get(f"/migrations/{migration_id}")
    return cast("dict[str, Any] | None", answer.json()["waiting"])


async def test_a_migration_that_tells_no_wait_waits_for_who_takes_none_of_its_tasks(
    api: Any, monkeypatch: pytest.MonkeyPatch, start_worker: Any
) -> None:
    migration_id = await migrating(api)
    await shown(api, migration_id, MigrationState.RUNNING)
    assert await waiting(api, migration_id) is None, "not yet"
    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(0))
    found = await waiting(api, migration_id)
    assert found is not None
    assert (found["reason"], found["for"], found["objects"]) == ("no-worker", "people", ["keeperless-workflows"])
    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(minutes=1))
    monkeypatch.setattr(unattended, "AGAIN", timedelta(0))
    again = await waiting(api, migration_id)
    assert again is not None, "as if it had just come: Temporal hands out anew what nobody has taken"
    assert again["since"] == found["since"]
    await shown(api, migration_id, MigrationState.HELD, HELD)
    found = await waiting(api, migration_id)
    assert found is not None
    assert found["reason"] == "held", "what the migration itself has written down"
    await shown(api, migration_id, MigrationState.RUNNING)
    assert await waiting(api, migration_id) is None, "what was told before that is over"
    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(0))
    async with start_worker():
        deadline = time.monotonic() + 60
        while await waiting(api, migration_id) is not None:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
    await shown(api, migration_id, MigrationState.FAILED)
    assert await waiting(api, migration_id) is None


@pytest.mark.usefixtures("watcher", "worker")
async def test_an_order_that_is_not_taken_is_told(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(seconds=1))
    migration_id = await migrating(api)
    order = Command(id="1", migration_id=migration_id, kind=CommandKind.RESUME, by="anna", via="api", at=NOW)
    await api.wiring.ledger.add_command(order)
    assert ("command-pending", "resume by anna") in keys(await blockers(api, migration_id))


@pytest.mark.usefixtures("watcher", "worker")
@pytest.mark.parametrize("waiting", [None, NODE_DOWN])
async def test_a_step_that_is_refused_again_and_again_is_told_unless_a_wait_says_why(api: Any, waiting: Waiting | None) -> None:
    migration_id = await migrating(api)
    await refused(api, migration_id, 2, waiting)
    failing = [("step-failing", "roll-node of broker-1")] if waiting is None else []
    assert keys(await blockers(api, migration_id)) == [("node-down", "broker-2"), *failing]


@pytest.mark.usefixtures("watcher", "worker")
@pytest.mark.parametrize(
    ("stable_samples", "told"), [(3, ("node-down", "broker-2")), (5, ("step-failing", "roll-node of broker-1"))]
)
async def test_the_first_refusal_is_told_where_a_look_finds_nothing_else(
    api: Any, stable_samples: int, told: tuple[str, str]
) -> None:
    migration_id = await migrating(api, stable_samples)
    await refused(api, migration_id, 1)
    assert keys(await blockers(api, migration_id)) == [told]


async def refused(api: Any, migration_id: str, times: int, waiting: Waiting | None = None) -> None:
    cluster = (await api.wiring.ledger.migration(migration_id)).cluster
    data = {"action": "roll-node", "node": "broker-1", "stage": "kraft", "why": "it flickers"}
    tries = [
        EventDraft(key=str(n), kind="step-blocked", cluster=cluster, at=NOW, data=data | {"step": n}) for n in range(times)
    ]
    await api.wiring.ledger.record(migration_id, tries, Progress(state=MigrationState.RUNNING, waiting=waiting))


async def test_without_temporal_that_is_the_answer(api_without_temporal: Any, make_migration: Any) -> None:
    api = api_without_temporal
    await api.wiring.ledger.create_migration(record := make_migration(await api.registered()))
    await shown(api, record.id, MigrationState.WAITING, NODE_DOWN)
    assert keys(await blockers(api, record.id)) == [("temporal-unavailable", "Temporal"), ("node-down", "broker-2")]
    await shown(api, record.id, MigrationState.RUNNING)
    found = await waiting(api, record.id)
    assert found is not None
    assert (found["reason"], found["objects"]) == ("temporal-unavailable", ["Temporal"])


async def test_of_a_temporal_that_cannot_work_it_is_told_what_it_lacks(
    settings: ApiSettings, serve: Any, make_migration: Any, tmp_path: Path
) -> None:
    """As a backup does that keeps the lock of its database."""
    lease = PortLease(5)
    with closing(lease), TemporalServer(tmp_path / "temporal", TemporalPorts.leased(lease)) as server:
        async with serve(create_app(settings, Temporal({"target_host": server.address}))) as api:
            await api.wiring.ledger.create_migration(record := make_migration(await api.registered()))
            with closing(sqlite3.connect(tmp_path / "temporal" / "temporal.db", isolation_level=None)) as backup:
                backup.execute("BEGIN EXCLUSIVE")
                found = (await blockers(api, record.id))["items"][0]
    assert (found["code"], found["object"]) == ("temporal-unavailable", "Temporal")
    assert "database is locked" in found["observed"]
    assert "locked by a backup" in found["fix"]


async def test_a_temporal_that_ends_under_the_api_is_to_be_started(tmp_path: Path) -> None:
    """The API's connection tells that as an answer of Temporal's."""
    lease = PortLease(5)
    with closing(lease):
        with TemporalServer(tmp_path / "temporal", TemporalPorts.leased(lease)) as server:
            temporal = Temporal({"target_host": server.address})
            await temporal.ping()
        entry = await without_temporal(temporal, TemporalUnavailable("no answer"), NOW)
    assert entry.fix.startswith("Start Temporal")


async def test_a_namespace_that_is_not_there_is_told_and_nothing_of_the_run(
    settings: ApiSettings, serve: Any, make_migration: Any, temporal_address: str
) -> None:
    elsewhere = Temporal({"target_host": temporal_address, "namespace": "nowhere"}, timedelta(seconds=30))
    async with serve(create_app(settings, elsewhere)) as api:
        await api.wiring.ledger.create_migration(record := make_migration(await api.registered()))
        await shown(api, record.id, MigrationState.WAITING, NODE_DOWN)
        answer = await blockers(api, record.id)
    assert keys(answer) == [("temporal-unavailable", "Temporal"), ("node-down", "broker-2")]
    assert "Namespace nowhere is not found" in answer["items"][0]["observed"]
    assert "TEMPORAL_NAMESPACE" in answer["items"][0]["fix"]


def an_activity(**more: Any) -> PendingTask:
    began = datetime.now(UTC) - timedelta(minutes=1)
    return PendingTask(**({"what": "roll_node", "queue": TaskQueue.CLUSTER, "begun_at": began, "due_at": began} | more))


async def with_a_worker_elsewhere(api: Any, monkeypatch: pytest.MonkeyPatch, task: PendingTask) -> dict[str, Any]:
    async def run_seen(*_: object) -> RunSeen:
        return RunSeen(is_running=True, tasks=(task,))

    async def pollers_of(*_: object) -> tuple[Poller, ...]:
        return (Poller("7@elsewhere", datetime.now(UTC)),)

    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(seconds=5))
    monkeypatch.setattr("api.diagnosis.blockers.run_seen", run_seen)
    monkeypatch.setattr("api.diagnosis.missing_workers.pollers_of", pollers_of)
    answer = await blockers(api, await migrating(api))
    return {item["code"]: item for item in answer["items"]}


@pytest.mark.usefixtures("watcher", "worker")
async def test_an_activity_between_two_attempts_is_told_with_its_error_and_misses_nobody(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=14)
    told = await with_a_worker_elsewhere(api, monkeypatch, an_activity(attempt=4, error="no answer", due_at=soon))
    assert told["step-failing"]["observed"] == "attempt 4; the last one failed: no answer"
    assert "machine" not in told


@pytest.mark.usefixtures("watcher", "worker")
async def test_the_worker_that_polled_last_is_told_for_a_task_that_lies(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told = await with_a_worker_elsewhere(api, monkeypatch, an_activity())
    assert "Temporal last heard of 7@elsewhere" in told["no-worker"]["observed"], "who is to be looked for"


@pytest.mark.usefixtures("watcher", "worker")
async def test_a_task_that_is_kept_from_a_worker_that_asks_for_it_starts_nobody(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def in_work(*_: object) -> list[tuple[str, PendingTask]]:
        now = datetime.now(UTC)
        return [("other", an_activity(taken_at=now - timedelta(seconds=30), worker="7@elsewhere", heard_at=now))]

    monkeypatch.setattr("api.diagnosis.missing_workers.QUESTION", timedelta(seconds=65))
    monkeypatch.setattr("api.diagnosis.missing_workers.in_work", in_work)
    lost = an_activity(named="--workflow-id 'w' --activity-id '8'")
    told = await with_a_worker_elsewhere(api, monkeypatch, lost)
    assert told["no-worker"]["object"] == "roll_node"
    assert "although 7@elsewhere (heard 0 s ago) polls" in told["no-worker"]["observed"]
    assert "Start" not in told["no-worker"]["fix"]


@pytest.mark.usefixtures("watcher", "worker")
@pytest.mark.parametrize(("ago", "lives"), [(0, True), (70, False), (None, True)])
async def test_a_worker_that_lives_and_does_not_end_a_look_is_not_to_be_started(
    api: Any, monkeypatch: pytest.MonkeyPatch, ago: int | None, lives: bool
) -> None:
    """`ago`: when it was heard of; `None`: Temporal does not say."""

    async def pollers_of(*_: object) -> tuple[Poller, ...]:
        return () if ago is None else (Poller("7@elsewhere", datetime.now(UTC) - timedelta(seconds=ago)),)

    monkeypatch.setattr(observing, "CAUSE_LIMIT", timedelta(seconds=2))
    monkeypatch.setattr("api.diagnosis.missing_workers.pollers_of", pollers_of)
    answer = await blockers(api, await migrating(api, stable_samples=9))
    (entry,) = [item for item in answer["items"] if item["code"] == "no-worker"]
    heard = "No keeperless-activities has written" if ago is None else "Temporal last heard of"
    assert entry["observed"].startswith(f"a worker took the task to observe the cluster, and has not returned. {heard}")
    assert entry["fix"].startswith("Check the machine of that" if lives else "Start keeperless-activities.")


class AMinuteAhead(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.now(tz) + timedelta(minutes=1)


@pytest.mark.usefixtures("watcher", "worker")
async def test_an_api_whose_clock_is_ahead_misses_no_worker_for_that(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    fresh = an_activity(begun_at=now, due_at=now, taken_at=now, worker="7@elsewhere", heard_at=now)

    async def run_seen(*_: object) -> RunSeen:
        return RunSeen(is_running=True, tasks=(fresh, replace(fresh, taken_at=None, worker="", heard_at=None)))

    monkeypatch.setattr(pending_tasks, "UNTAKEN", timedelta(seconds=30))
    monkeypatch.setattr(pending_tasks, "SILENT", timedelta(seconds=30))
    monkeypatch.setattr("api.diagnosis.blockers.run_seen", run_seen)
    monkeypatch.setattr("api.diagnosis.blockers.datetime", AMinuteAhead)
    answer = await blockers(api, await migrating(api))
    assert keys(answer) == [("node-down", "broker-2"), ("machine", "the clock of the API's machine")]
    (seconds,) = re.findall(r"it is (\d+) s ahead", answer["items"][1]["observed"])
    assert 55 < int(seconds) < 90


@pytest.mark.usefixtures("watcher", "worker")
async def test_a_worker_on_another_machine_is_told_before_what_it_takes_for_trouble(
    api: Any, temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pollers, "QUESTION", timedelta(seconds=65))
    migration_id = await migrating(api)
    async with Worker(temporal_client, task_queue=TaskQueue.CLUSTER, activities=[nothing], identity="77@laptop"):
        await until_heard_of(temporal_client, "77@laptop", TaskQueue.CLUSTER)
        answer = await blockers(api, migration_id)
    assert keys(answer) == [("machine", "keeperless-activities"), ("node-down", "broker-2")]
    assert "77@laptop" in answer["items"][0]["observed"]
    assert f"was seen by {os.getpid()}@{socket.gethostname()}" in answer["items"][0]["observed"]


def test_a_machine_that_asks_no_more_is_none_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pollers, "QUESTION", timedelta(seconds=65))
    heard = [
        Poller(f"{pid}@{host}", NOW - timedelta(seconds=ago)) for pid, host, ago in ((1, "a", 3), (2, "a", 9), (3, "b", 70))
    ]
    assert list(pollers.machines_of([*heard, Poller("keeperless", NOW)])) == ["a"]
    assert pollers.machines_of(heard)["a"].identity == "1@a"
    assert pollers.machines_of(()) == {}


@pytest.mark.usefixtures("watcher", "worker")
async def test_a_worker_that_has_all_places_taken_is_not_to_be_restarted(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def in_work(*_: object) -> list[tuple[str, PendingTask]]:
        now = datetime.now(UTC)
        return [("other", an_activity(taken_at=now, worker="7@elsewhere", heard_at=now))]

    monkeypatch.setattr("api.diagnosis.missing_workers.in_work", in_work)
    told = await with_a_worker_elsewhere(api, monkeypatch, an_activity())
    assert "has 1 task in work: 7@elsewhere at roll_node of other since" in told["no-worker"]["observed"]
    assert told["no-worker"]["fix"].startswith("Do not restart it for this")


@pytest.mark.usefixtures("watcher", "worker")
@pytest.mark.parametrize(
    ("what", "since", "told"),
    [
        ("roll_node", timedelta(minutes=3), [("slow-activity", "roll_node")]),
        ("run_check", timedelta(seconds=10), [("slow-activity", "run_check")]),
        ("roll_node", timedelta(seconds=10), [("slow-activity", "roll_node"), ("machine", "broker-3")]),
        ("roll_node", timedelta(seconds=2), []),
    ],
    ids=["much to do", "a comparison", "a JVM that hangs", "not yet"],
)
async def test_an_activity_with_much_to_do_is_no_trouble_that_a_change_would_explain(
    api: Any, monkeypatch: pytest.MonkeyPatch, what: str, since: timedelta, told: list[tuple[str, str]]
) -> None:
    """But for one that does not come to the stop of a node: what it tries there hangs, maybe by what has changed."""
    now = datetime.now(UTC)
    long = an_activity(what=what, taken_at=now, heard_at=now, at="orders-0", at_since=now - since)

    async def run_seen(*_: object) -> RunSeen:
        return RunSeen(is_running=True, tasks=(long,))

    monkeypatch.setattr("api.diagnosis.blockers.run_seen", run_seen)
    migration_id = await migrating(api, stable_samples=4)
    cluster = (await api.wiring.ledger.migration(migration_id)).cluster
    begun = EventDraft(key="1", kind="step-started", cluster=cluster, at=now - timedelta(seconds=40), data={"node": "broker-2"})
    await api.wiring.ledger.record(migration_id, [begun], Progress(state=MigrationState.RUNNING))
    assert keys(await blockers(api, migration_id)) == told


class Answering(grpc.GenericRpcHandler):  # type: ignore[misc]
    """A Temporal that refuses what it is asked, or only `method`. `limit`: of its own, that was reached."""

    def __init__(self, status: grpc.StatusCode, says: str = "Request unauthorized.", method: str = "", limit: str = "") -> None:
        self._status, self._says, self._method = status, says, method
        self._limit = f"RESOURCE_EXHAUSTED_CAUSE_{limit}" if limit else ""

    def service(self, asked: Any) -> Any:
        is_refused = not self._method or asked.method.endswith(f"/{self._method}")
        return grpc.unary_unary_rpc_method_handler(self._refuse if is_refused else lambda *_: b"")

    def _refuse(self, _: object, call: Any) -> None:
        if self._limit:
            status = GrpcStatus(code=self._status.value[0], message=self._says)
            cause = ResourceExhaustedCause.Value(self._limit)
            status.details.add().Pack(ResourceExhaustedFailure(cause=cause))
            call.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        call.abort(self._status, self._says)


class Hanging(grpc.GenericRpcHandler):  # type: ignore[misc]
    """A Temporal whose database stands still: it says only what it knows without it."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def service(self, asked: Any) -> Any:
        knows = asked.method.endswith("/GetSystemInfo")
        return grpc.unary_unary_rpc_method_handler(lambda *_: b"" if knows else self._wait())

    def _wait(self) -> bytes:
        self.ended.wait(60)
        return b""


@contextmanager
def serving(handler: grpc.GenericRpcHandler) -> Iterator[str]:
    """Its address."""
    server = grpc.server(ThreadPoolExecutor(4), handlers=(handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


STANDALONE = "Standalone activity is disabled"
STANDBY = "Namespace: orders is active in cluster: B, while current cluster A is a standby cluster."


@pytest.mark.parametrize(
    ("status", "says", "limit", "fix"),
    [
        ("UNAUTHENTICATED", "Request unauthorized.", "", "TEMPORAL_API_KEY"),
        ("PERMISSION_DENIED", "Request unauthorized.", "", "TEMPORAL_API_KEY"),
        ("RESOURCE_EXHAUSTED", "namespace rate limit exceeded", "", "frontend.namespaceRPS"),
        ("RESOURCE_EXHAUSTED", "namespace rate limit exceeded", "RPS_LIMIT", "frontend.namespaceRPS"),
        ("RESOURCE_EXHAUSTED", "Persistence Max QPS Reached.", "PERSISTENCE_LIMIT", "persistenceMaxQPS"),
        ("RESOURCE_EXHAUSTED", "Workflow is busy.", "BUSY_WORKFLOW", "more requests at the same time"),
        ("UNIMPLEMENTED", "unknown service WorkflowService", "", "it is another service, or a proxy"),
        ("FAILED_PRECONDITION", STANDBY, "", "TEMPORAL_ADDRESS"),
    ],
)
async def test_a_temporal_that_refuses_the_api_is_told_with_what_mends_just_that(
    status: str, says: str, limit: str, fix: str
) -> None:
    """Also to an API that was started after that, and never was connected."""
    refusing = Answering(grpc.StatusCode[status], says, limit=limit, method="DescribeNamespace" if limit else "")
    with serving(refusing) as address:
        entry = await without_temporal(Temporal({"target_host": address}), TemporalUnavailable("no answer"), NOW)
    assert f"Temporal answered {status}: {says.rstrip('.')}" in entry.observed
    assert fix in entry.fix
    assert ("Usual causes" in entry.observed) == (status in {"UNAUTHENTICATED", "PERMISSION_DENIED"})


async def test_a_temporal_without_standalone_activities_is_told_by_what_switches_them_on() -> None:
    """It answers all else, and the migration goes on."""
    refusing = Answering(grpc.StatusCode.UNIMPLEMENTED, STANDALONE, method="StartActivityExecution")
    with serving(refusing) as address:
        temporal = Temporal({"target_host": address})
        with pytest.raises(TemporalRefused) as error:
            await observing.observe(temporal, "orders")
        entry = await without_temporal(temporal, error.value, NOW)
    assert entry.observed.startswith("Temporal answered UNIMPLEMENTED: Standalone activity is disabled. (asked at")
    assert "activity.enableStandalone: true" in entry.fix


async def test_a_temporal_whose_database_stands_still_is_not_to_be_started() -> None:
    with serving(hanging := Hanging()) as address:
        entry = await without_temporal(Temporal({"target_host": address}), TemporalUnavailable("no answer"), NOW)
        hanging.ended.set()
    assert entry.fix.startswith("Temporal runs but cannot work. Check its database first")


SAYS_NOTHING = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(99)
"""


async def test_a_temporal_that_says_nothing_is_no_reason_to_start_a_second_one() -> None:
    """The kernel takes connections for it."""
    with subprocess.Popen([sys.executable, "-c", SAYS_NOTHING], stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - said at once
        try:
            assert process.stdout is not None
            temporal = Temporal({"target_host": f"127.0.0.1:{int(process.stdout.readline())}"})
            silent = await without_temporal(temporal, TemporalUnavailable("no answer"), NOW)
        finally:
            process.kill()
    assert silent.fix.startswith("Do not start a second one")


@pytest.mark.parametrize(("door", "fix"), [(Door.SHUT, "Start Temporal"), (Door.SILENT, "Check the host at that address")])
async def test_an_address_that_refuses_is_told_from_one_that_is_silent(
    door: Door, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise RuntimeError("Failed client connect: Server connection error: deadline has elapsed")

    async def door_of(_: str) -> Door:
        return door

    monkeypatch.setattr(Client, "connect", refused)
    monkeypatch.setattr("api.diagnosis.temporal_causes.door_of", door_of)
    temporal = Temporal({"target_host": "temporal.invalid:7233"})
    assert (await without_temporal(temporal, TemporalUnavailable("no answer"), NOW)).fix.startswith(fix)


@pytest.mark.parametrize("has_frontend", [False, True])
@pytest.mark.parametrize("address", ["127.0.0.1", "temporal.invalid", f"{'a' * 64}.invalid:7233"])
async def test_an_address_that_nobody_can_have_is_the_answer(
    address: str, has_frontend: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where its port was forgotten: Temporal's client takes that of HTTP."""

    async def why_unserved(_: Temporal) -> TemporalUnavailable | None:
        return None if has_frontend else TemporalUnavailable("deadline has elapsed")

    monkeypatch.setattr(Temporal, "why_unserved", why_unserved)
    entry = await without_temporal(Temporal({"target_host": address}), TemporalUnavailable("no answer"), NOW)
    assert f"(asked at {address}," in entry.observed
    assert has_frontend or "TEMPORAL_ADDRESS" in entry.fix


async def test_a_temporal_that_gives_nobody_tasks_is_told_and_no_worker_is_missing(
    settings: ApiSettings, serve: Any, make_migration: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Kubernetes, while the pods of its matching service are away."""

    async def nobody(*_: object) -> None:
        raise observing.NoWorker

    monkeypatch.setattr("api.diagnosis.blockers.blockers", nobody)
    away = Answering(grpc.StatusCode.UNAVAILABLE, "Not enough hosts to serve the request", method="DescribeTaskQueue")
    with serving(away) as address:
        async with serve(create_app(settings, Temporal({"target_host": address}))) as api:
            await api.wiring.ledger.create_migration(record := make_migration(await api.registered()))
            answer = await blockers(api, record.id)
    assert "no-worker" not in [code for code, _ in keys(answer)]
    (entry,) = [item for item in answer["items"] if item["code"] == "temporal-unavailable"]
    assert "Not enough hosts to serve the request" in entry["observed"]
    assert "matching service" in entry["fix"]


CUT = (
    'Failed client connect: `get_system_info` call error after connection: Status { code: Unknown, message: "transport error" }'
)


@pytest.mark.parametrize(
    ("says", "fix"),
    [
        ("InvalidCertificate(Expired)", "has expired, renew it at Temporal"),
        ("InvalidCertificate(UnknownIssuer)", "TEMPORAL_TLS_SERVER_CA_CERT_PATH"),
        ('InvalidCertificate(NotValidForNameContext { expected: DnsName("localhost") })', "TEMPORAL_TLS_SERVER_NAME"),
        ("ConnectError(Custom { error: AlertReceived(CertificateExpired) })", "openssl x509"),
        ("PrivateKeyParseError", "TEMPORAL_TLS_CLIENT_KEY_PATH"),
        ("ConnectError(Custom { kind: InvalidData, error: InvalidMessage(InvalidContentType) })", "off there"),
        ('ConnectError("dns error", "failed to lookup address information")', "getent hosts"),
        ('ConnectError("tcp connect error", Os { code: 111, kind: ConnectionRefused })', "Start Temporal"),
        (CUT, "TLS was switched on there"),
        (CUT, "openssl x509"),
    ],
)
async def test_a_connection_that_is_not_made_is_told_with_what_mends_it(
    says: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise RuntimeError(f"Failed client connect: Server connection error: tonic::transport::Error(Transport, {says})")

    monkeypatch.setattr(Client, "connect", refused)
    entry = await without_temporal(Temporal({}), TemporalUnavailable("no answer"), NOW)
    assert (says if says != CUT else "transport error") in entry.observed
    assert fix in entry.fix


@pytest.mark.usefixtures("watcher", "worker")
async def test_a_run_that_was_terminated_is_told(api: Any, temporal_client: Client) -> None:
    migration_id = await migrating(api)
    await shown(api, migration_id, MigrationState.WAITING, HELD)
    workflow_id = (await api.wiring.ledger.migration(migration_id)).workflow_id
    await temporal_client.get_workflow_handle(workflow_id).terminate(reason="too old")
    answer = await blockers(api, migration_id)
    assert ("held", "the migration") not in keys(answer), "nobody is left to take an answer"
    (gone,) = [item for item in answer["items"] if item["code"] == "run-gone"]
    assert gone["object"] == "the migration's workflow"
    assert re.search(r": terminated by \S+: too old$", gone["observed"])


async def test_a_refused_migration_tells_its_findings_without_any_look(api_without_temporal: Any, make_migration: Any) -> None:
    api = api_without_temporal
    await api.wiring.ledger.create_migration(record := make_migration(await api.registered()))
    finding = Finding(code="PF12", object="broker 9", observed="not live", expected="live", fix="start it")
    await shown(api, record.id, MigrationState.REFUSED, findings=(finding,))
    answer = await blockers(api, record.id)
    assert keys(answer) == [("PF12", "broker 9")]
    assert (answer["state"], answer["observed_at"]) == ("refused", None)


@pytest.mark.parametrize("state", [s for s in MigrationState if s in {"succeeded", "reverted", "failed", "cancelled"}])
async def test_nothing_is_in_the_way_of_what_has_ended(
    api_without_temporal: Any, make_migration: Any, state: MigrationState
) -> None:
    api = api_without_temporal
    await api.wiring.ledger.create_migration(record := make_migration(await api.registered()))
    await shown(api, record.id, state)
    assert (await blockers(api, record.id))["items"] == []


async def test_an_unknown_migration_is_a_problem(api: Any, expect_problem: Expect) -> None:
    unknown = "019fffff-ffff-7fff-bfff-ffffffffffff"
    problem = expect_problem(await api.http.get(f"/migrations/{unknown}/blockers"), 404, "migration-not-found")
    assert problem["detail"].endswith("has no such migration. GET /migrations lists those that exist.")


async def test_a_migration_that_another_ledger_has_is_told_as_such(
    api: Any, settings: ApiSettings, temporal_address: str, tmp_path: Path, serve: Any, expect_problem: Expect
) -> None:
    """The API was restarted without its settings: an empty ledger below its home, beside workers that go on."""
    migration_id = await migrating(api)
    empty = settings.model_copy(update={"ledger_url": f"sqlite:///{tmp_path}/empty.db"})
    async with serve(create_app(empty, Temporal({"target_host": temporal_address}))) as lost, asyncio.timeout(30):
        while True:  # until the list of runs has it, which comes a moment later
            problem = expect_problem(await lost.http.get(f"/migrations/{migration_id}/blockers"), 404, "migration-not-found")
            if "Temporal has a run of it, cluster/" in problem["detail"]:
                break
            await asyncio.sleep(0.1)
    assert "empty.db, has no such migration" in problem["detail"]
    assert "Compare KEEPERLESS_LEDGER_URL" in problem["detail"]


@pytest.mark.usefixtures("watcher", "worker")
@pytest.mark.parametrize("ledger_timeouts", [LEDGER_TIMEOUTS], ids=["as in production"])
async def test_a_ledger_that_nobody_can_write_is_told_although_the_migration_is_held(api: Any, tmp_path: Path) -> None:
    migration_id = await migrating(api)
    await shown(api, migration_id, MigrationState.HELD, HELD)
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = await blockers(api, migration_id)
    assert keys(answer) == [("node-down", "broker-2"), ("ledger-unavailable", "the ledger"), ("held", "the migration")]
    assert "database is locked" in answer["items"][1]["observed"]
    assert "ledger-unavailable" not in [code for code, _ in keys(await blockers(api, migration_id))]


@pytest.mark.usefixtures("watcher", "worker")
@pytest.mark.parametrize("ledger_timeouts", [LEDGER_TIMEOUTS], ids=["as in production"])
async def test_a_lock_that_is_let_go_within_a_moment_is_no_trouble(api: Any, tmp_path: Path) -> None:
    """As on a machine that is busy: whoever writes holds it for longer than a call of the API waits."""
    migration_id = await migrating(api)
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        asked = asyncio.create_task(blockers(api, migration_id))
        await asyncio.sleep(LEDGER_TIMEOUTS.lock.total_seconds() + 0.4)
        other.execute("ROLLBACK")
        assert keys(await asked) == [("node-down", "broker-2")]


@pytest.mark.usefixtures("watcher", "worker")
async def test_a_ledger_that_is_damaged_is_the_answer(
    api: Any, expect_problem: Expect, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration_id = await migrating(api)

    async def damaged(*_: object) -> None:
        raise LedgerDamaged("the ledger's database is damaged (DatabaseError: database disk image is malformed)")

    monkeypatch.setattr(type(api.wiring.ledger), "commands", damaged)
    answer = await blockers(api, migration_id)
    assert keys(answer) == [("node-down", "broker-2"), ("ledger-unavailable", "the ledger")]
    entry = answer["items"][1]
    assert "malformed" in entry["observed"]
    assert "last backup" in entry["fix"]
    monkeypatch.setattr(type(api.wiring.ledger), "migration", damaged)
    answer = await api.http.get(f"/migrations/{migration_id}/blockers")
    problem = expect_problem(answer, 503, "ledger-unavailable")
    assert "is malformed" in problem["detail"]
    assert "last backup" in problem["detail"]


@pytest.mark.usefixtures("watcher", "worker")
async def test_a_ledger_that_cannot_be_read_any_more_is_a_cause_like_others(api: Any, tmp_path: Path) -> None:
    """As after a file was moved: what the caretaker has read last stands for the migration."""
    migration_id = await migrating(api)
    await shown(api, migration_id, MigrationState.WAITING, NODE_DOWN)
    await api.wiring.caretaker.round()
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
        other.execute("PRAGMA foreign_keys = OFF")
        other.execute("PRAGMA legacy_alter_table = ON")
        other.execute("ALTER TABLE migrations RENAME TO gone")
        other.execute("ALTER TABLE events RENAME TO events_gone")
    answer = await blockers(api, migration_id)
    assert keys(answer) == [("node-down", "broker-2"), ("ledger-unavailable", "the ledger")]
    assert "no such table: events" in answer["items"][1]["observed"]
    assert "KEEPERLESS_LEDGER_URL" in answer["items"][1]["fix"]


async def test_without_the_ledger_there_is_no_answer(api: Any, expect_problem: Expect, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(*_: Any) -> None:
        raise LedgerUnavailable("the ledger does not answer")

    migration_id = await migrating(api)
    monkeypatch.setattr(api.wiring.ledger, "migration", gone)
    problem = expect_problem(await api.http.get(f"/migrations/{migration_id}/blockers"), 503, "ledger-unavailable")
    assert problem["detail"].startswith("The ledger does not answer. Fix what it says.")


@pytest.mark.usefixtures("watcher", "worker")
async def test_a_migration_says_where_its_blockers_are(api: Any) -> None:
    migration_id = await migrating(api)
    links = (await api.http.get(f"/migrations/{migration_id}")).json()["links"]
    assert links["blockers"] == f"/migrations/{migration_id}/blockers"
