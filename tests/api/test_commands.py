"""Approvals, holds and resumes: written down first, delivered in order, refused with a reason."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import grpc
import httpx
import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from api.app import create_app
from api.running import commands
from api.running.commands import Answer, CommandStatus
from api.running.temporal import Temporal
from api.settings import ApiSettings
from domain.contracts import WORKFLOW_TYPE, MigrationInput, TaskQueue
from domain.records import Command, CommandKind, MigrationRecord
from domain.zk_to_kraft.steps import GateName

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
StartWorker = Callable[[], AbstractAsyncContextManager[None]]


async def applied(api: Any, client: Client, migration_id: str) -> list[str]:
    """The commands that the run has applied, in order."""
    record = await api.wiring.ledger.migration(migration_id)
    ids: list[str] = await client.get_workflow_handle(record.workflow_id).query("applied")
    return ids


@pytest.mark.usefixtures("worker")
async def test_an_approval_is_written_down_delivered_and_told(api: Any, temporal_client: Client) -> None:
    migration_id = await api.started()
    answer = await api.approve(migration_id)
    assert answer.status_code == 201
    command = answer.json()
    assert (command["kind"], command["gate"], command["status"]) == ("approve", "finalize", "delivered")
    assert (command["by"], command["via"], command["consumed_at"]) == ("local (unauthenticated)", "api", None)
    assert (await api.wiring.ledger.command(command["id"])).delivered_at is not None
    assert await api.event_kinds(migration_id) == ["call-accepted", "command-delivered", "call-accepted"]
    run = temporal_client.get_workflow_handle(f"cluster/{(await api.wiring.ledger.migration(migration_id)).cluster_id}")
    assert await run.result() == [command["id"]]


async def test_what_temporal_says_of_an_order_that_it_takes_from_nobody_is_kept_until_it_does(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Temporal answered RESOURCE_EXHAUSTED: limit on number of concurrent in-flight updates has been reached"
    answers = [Answer(CommandStatus.PENDING, said), Answer(CommandStatus.DELIVERED)]

    async def send(*_: object) -> Answer:
        return answers.pop(0)

    monkeypatch.setattr(commands, "send", send)
    migration_id = await api.started()
    held = (await api.ask(migration_id, "hold")).json()
    assert api.wiring.courier.unsent == {held["id"]: said}
    await api.wiring.courier.deliver(migration_id)
    assert api.wiring.courier.unsent == {}


class Refusing(grpc.GenericRpcHandler):  # type: ignore[misc]
    """A Temporal that refuses one thing: to be connected to, or orders."""

    def __init__(self, refused: str, status: grpc.StatusCode) -> None:
        self._refused, self._status = refused, status

    def service(self, asked: Any) -> Any:
        def answer(_: bytes, call: Any) -> bytes:
            if asked.method.endswith(self._refused):
                call.abort(self._status, "Request unauthorized.")
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.mark.parametrize(
    ("refused", "status", "becomes"),
    [
        ("/GetSystemInfo", grpc.StatusCode.PERMISSION_DENIED, CommandStatus.PENDING),
        ("/GetSystemInfo", grpc.StatusCode.NOT_FOUND, CommandStatus.PENDING),
        ("", grpc.StatusCode.UNAUTHENTICATED, CommandStatus.PENDING),
        ("/UpdateWorkflowExecution", grpc.StatusCode.UNIMPLEMENTED, CommandStatus.PENDING),
        ("/UpdateWorkflowExecution", grpc.StatusCode.PERMISSION_DENIED, CommandStatus.REFUSED),
    ],
)
async def test_an_order_is_refused_for_good_only_by_who_answers_otherwise(
    make_migration: Callable[..., MigrationRecord],
    api: Any,
    refused: str,
    status: grpc.StatusCode,
    becomes: CommandStatus,
) -> None:
    """A login that has run out is renewed: the rollback that was asked for meanwhile has to arrive then."""
    record = make_migration(await api.registered()).model_copy(update={"run_id": str(uuid4())})
    server = grpc.server(ThreadPoolExecutor(2), handlers=(Refusing(refused, status),))
    temporal = Temporal({"target_host": f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"})
    hold = Command(id="c1", migration_id=record.id, kind=CommandKind.HOLD, by="a", via="api", at=datetime.now(UTC))
    server.start()
    try:
        answer = await commands.send(temporal, record, hold, timedelta(seconds=1))
    finally:
        server.stop(0).wait()
    assert answer.status is becomes
    assert answer.because.startswith(f"Temporal answered {status.name}: Request unauthorized")


async def test_an_order_waits_where_the_api_may_ask_another_temporal_than_the_runs(
    make_migration: Callable[..., MigrationRecord], api: Any, elsewhere: Temporal
) -> None:
    """Nobody works in that namespace, and it does not know the run: once the API has the right one, the order is delivered."""
    record = make_migration(await api.registered()).model_copy(update={"run_id": str(uuid4())})
    hold = Command(id="c1", migration_id=record.id, kind=CommandKind.HOLD, by="a", via="api", at=datetime.now(UTC))
    answer = await commands.send(elsewhere, record, hold, timedelta(seconds=1))
    assert (answer.status, "NOT_FOUND" in answer.because) == (CommandStatus.PENDING, True)
    ended = record.model_copy(update={"ended_at": datetime.now(UTC)})
    late = await commands.send(elsewhere, ended, hold, timedelta(seconds=1))
    assert late == Answer(CommandStatus.REFUSED, commands.HAS_ENDED), "no run takes it any more, wherever it was"


@workflow.defn(name=WORKFLOW_TYPE)
class Failing:
    """Its every task fails."""

    @workflow.run
    async def run(self, _: MigrationInput) -> None:
        raise RuntimeError("a bug")


async def test_an_order_to_a_run_whose_tasks_fail_is_delivered_once_one_succeeds(
    api: Any, start_worker: StartWorker, temporal_client: Client
) -> None:
    migration_id = await api.started()
    record = await api.wiring.ledger.migration(migration_id)
    hold = Command(id="c1", migration_id=record.id, kind=CommandKind.HOLD, by="a", via="api", at=datetime.now(UTC))
    answer = Answer(CommandStatus.PENDING)
    failing = Worker(
        temporal_client, task_queue=TaskQueue.MIGRATIONS, workflows=[Failing], workflow_runner=UnsandboxedWorkflowRunner()
    )
    async with failing, asyncio.timeout(120):
        while commands.NOT_NOW not in answer.because:
            answer = await commands.send(api.wiring.temporal, record, hold, timedelta(seconds=1))
            assert answer.status is CommandStatus.PENDING, answer
    async with start_worker(), asyncio.timeout(120):
        while answer.status is CommandStatus.PENDING:
            answer = await commands.send(api.wiring.temporal, record, hold, timedelta(seconds=5))
    assert answer.status is CommandStatus.DELIVERED


async def test_a_namespace_that_is_not_there_refuses_no_order(api: Any, temporal_address: str) -> None:
    migration_id = await api.started()
    record = await api.wiring.ledger.migration(migration_id)
    hold = Command(id="c1", migration_id=record.id, kind=CommandKind.HOLD, by="a", via="api", at=datetime.now(UTC))
    elsewhere = Temporal({"target_host": temporal_address, "namespace": "nowhere"})
    answer = await commands.send(elsewhere, record, hold, timedelta(seconds=1))
    assert (answer.status, "Namespace nowhere is not found" in answer.because) == (CommandStatus.PENDING, True)


@pytest.mark.usefixtures("worker")
async def test_a_refused_approval_says_why_and_is_kept(api: Any, expect_problem: Expect) -> None:
    migration_id = await api.started()
    problem = expect_problem(await api.approve(migration_id, evidence_hash="0" * 64), 409, "command-refused")
    assert problem["detail"] == "the evidence has changed"
    assert problem["links"] == {"migration": f"/migrations/{migration_id}"}
    refused = await api.wiring.ledger.command(problem["command_id"])
    assert (refused.refused_because, refused.delivered_at) == ("the evidence has changed", None)
    assert await api.event_kinds(migration_id) == ["call-accepted", "command-refused"]
    assert (await api.approve(migration_id, decision="reject")).status_code == 201


@pytest.mark.usefixtures("worker")
async def test_hold_and_resume(api: Any, expect_problem: Expect) -> None:
    migration_id = await api.started()
    expect_problem(await api.ask(migration_id, "resume"), 409, "command-refused")
    held = await api.ask(migration_id, "hold")
    assert (held.status_code, held.json()["kind"], held.json()["status"]) == (202, "hold", "delivered")
    assert (await api.ask(migration_id, "resume")).status_code == 202


async def test_without_a_worker_commands_arrive_later_and_in_order(
    api: Any, start_worker: StartWorker, temporal_client: Client
) -> None:
    migration_id = await api.started()
    began = time.monotonic()
    answers = [await api.ask(migration_id, "hold"), await api.ask(migration_id, "resume"), await api.approve(migration_id)]
    print(f"three answers without a worker after {time.monotonic() - began:.1f} s")
    assert time.monotonic() - began < 15
    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == 3 * [(202, "pending")]
    given = [answer.json()["id"] for answer in answers]
    async with start_worker():
        await api.wiring.caretaker.round()
        assert await applied(api, temporal_client, migration_id) == given
        await api.wiring.caretaker.round()
        assert await applied(api, temporal_client, migration_id) == given, "nothing is delivered twice"
    assert (await api.event_kinds(migration_id)).count("command-delivered") == 3


async def test_a_new_command_takes_the_undelivered_ones_with_it(
    api: Any, start_worker: StartWorker, temporal_client: Client
) -> None:
    migration_id = await api.started()
    hold = (await api.ask(migration_id, "hold")).json()
    assert hold["status"] == "pending"
    async with start_worker():
        resume = (await api.ask(migration_id, "resume")).json()
        assert resume["status"] == "delivered"
        assert await applied(api, temporal_client, migration_id) == [hold["id"], resume["id"]]


async def test_a_command_that_cannot_be_delivered_holds_back_the_later_ones(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    migration_id = await api.started()
    hold = (await api.ask(migration_id, "hold")).json()
    asked = []

    async def only_the_later_one(temporal: Temporal, record: MigrationRecord, command: Command, patience: timedelta) -> Answer:
        asked.append(command.id)
        return Answer(CommandStatus.PENDING if command.id == hold["id"] else CommandStatus.DELIVERED)

    monkeypatch.setattr(commands, "send", only_the_later_one)
    assert (await api.ask(migration_id, "resume")).json()["status"] == "pending"
    assert asked == [hold["id"]]


async def test_a_delivery_that_is_cancelled_ends(api: Any) -> None:
    """The SDK turns a cancellation into an error of its own, which must not keep the caretaker alive."""
    migration_id = await api.started()
    await api.ask(migration_id, "hold")
    delivery = asyncio.create_task(api.wiring.courier.deliver(migration_id))
    await asyncio.sleep(0.3)
    delivery.cancel()
    with pytest.raises(asyncio.CancelledError):
        await delivery


async def test_what_is_refused_later_is_told_later(api: Any, start_worker: StartWorker) -> None:
    migration_id = await api.started()
    pending = (await api.approve(migration_id, evidence_hash="0" * 64)).json()
    async with start_worker():
        await api.wiring.caretaker.round()
    assert (await api.wiring.ledger.command(pending["id"])).refused_because == "the evidence has changed"
    assert "command-refused" in await api.event_kinds(migration_id)


async def test_commands_outlive_the_api_and_an_absent_temporal(
    settings: ApiSettings, temporal_address: str, serve: Any, start_worker: StartWorker, temporal_client: Client
) -> None:
    async with serve(create_app(settings, Temporal({"target_host": temporal_address}))) as before:
        migration_id = await before.started()
    async with serve(create_app(settings, Temporal({"target_host": "127.0.0.1:1"}))) as cut_off:
        command = (await cut_off.approve(migration_id)).json()
        assert command["status"] == "pending"
    async with (
        start_worker(),
        serve(create_app(settings, Temporal({"target_host": temporal_address}))) as after,
    ):
        record = await after.wiring.ledger.migration(migration_id)
        assert await temporal_client.get_workflow_handle(record.workflow_id).result() == [command["id"]]


async def test_an_ended_migration_takes_no_commands(
    api: Any, end: Callable[[str], Awaitable[None]], expect_problem: Expect, temporal_client: Client
) -> None:
    migration_id = await api.started()
    pending = (await api.ask(migration_id, "hold")).json()
    record = await api.wiring.ledger.migration(migration_id)
    await temporal_client.get_workflow_handle(record.workflow_id).terminate()
    await end(migration_id)
    problem = expect_problem(await api.approve(migration_id), 409, "migration-ended")
    assert "succeeded" in problem["detail"]
    await api.wiring.caretaker.round()
    assert "ended before" in (await api.wiring.ledger.command(pending["id"])).refused_because


async def test_a_command_that_was_taken_by_a_run_that_ended_without_an_answer_gets_one(
    api: Any, end: Callable[[str], Awaitable[None]], start_worker: StartWorker, temporal_client: Client
) -> None:
    """Temporal says for ever that the run took it and closed. While the migration lives it is asked again, then it is told."""
    migration_id = await api.started()
    record = await api.wiring.ledger.migration(migration_id)
    async with start_worker():
        taken = (await api.roll_back(migration_id, reason="slowly", preview_hash="f" * 64)).json()
        assert taken["status"] == "pending"
        await temporal_client.get_workflow_handle(record.workflow_id).terminate()
        await api.wiring.caretaker.round()
        assert (await api.wiring.ledger.command(taken["id"])).refused_because is None, "its run may have continued"
        await end(migration_id)
        await api.wiring.caretaker.round()
    assert "ended before" in (await api.wiring.ledger.command(taken["id"])).refused_because


async def test_a_run_that_is_gone_refuses_and_a_later_run_of_the_cluster_is_never_asked(
    api: Any, expect_problem: Expect, temporal_client: Client
) -> None:
    migration_id = await api.started()
    record = await api.wiring.ledger.migration(migration_id)
    await temporal_client.get_workflow_handle(record.workflow_id).terminate()
    await temporal_client.start_workflow("Migration", id=record.workflow_id, task_queue="nobody-listens")
    problem = expect_problem(await api.approve(migration_id), 409, "command-refused")
    assert "ended before" in problem["detail"]


async def test_a_migration_that_is_being_started_gets_the_command_later(
    api: Any, make_migration: Callable[..., MigrationRecord]
) -> None:
    record = make_migration(await api.registered())
    await api.wiring.ledger.create_migration(record)
    assert (await api.ask(record.id, "hold")).json()["status"] == "pending"


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("gate", GateName)
async def test_every_gate_can_be_approved(api: Any, gate: GateName) -> None:
    migration_id = await api.started()
    approved = await api.approve(migration_id, gate=gate)
    assert (approved.status_code, approved.json()["gate"]) == (201, gate)
    assert (await api.http.get(f"/migrations/{migration_id}/commands")).json()["items"] == [approved.json()]


@pytest.mark.parametrize("what", ["approvals", "hold", "resume"])
async def test_an_unknown_migration_is_not_found(api: Any, expect_problem: Expect, what: str) -> None:
    body = {"reason": "r"} | (
        {"gate": "finalize", "decision": "reject", "evidence_hash": "0" * 64} if what == "approvals" else {}
    )
    answer = await api.http.post(f"/migrations/{uuid4()}/{what}", json=body)
    expect_problem(answer, 404, "migration-not-found")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"gate": "Start now"}, "gate"),
        ({"decision": "perhaps"}, "decision"),
        ({"reason": ""}, "reason"),
        ({"reason": "a\0b"}, "reason"),
        ({"evidence_hash": "latest"}, "evidence_hash"),
        ({"by": "somebody else"}, "by"),
    ],
)
async def test_a_wrong_approval_names_its_field(api: Any, expect_problem: Expect, change: dict[str, str], field: str) -> None:
    problem = expect_problem(await api.approve(str(uuid4()), **change), 422, "invalid-request")
    assert [error["field"] for error in problem["errors"]] == [field]
