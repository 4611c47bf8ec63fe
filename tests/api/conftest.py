"""The API on a ledger of its own and a real Temporal, with a stand-in for the migration's workflow."""

import asyncio
import sysconfig
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import structlog
import uuid_utils
import uvicorn
from fastapi import FastAPI
from google.protobuf.duration_pb2 import Duration
from temporalio import workflow
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from api.app import create_app
from api.running.temporal import Temporal, TemporalRefused, TemporalUnavailable
from api.settings import ApiSettings
from api.wiring import Wiring
from domain.cluster import ClusterSpec
from domain.contracts import (
    WORKFLOW_TYPE,
    ApprovalMessage,
    HoldMessage,
    MigrationInput,
    RollbackMessage,
    TaskQueue,
    workflow_id,
)
from domain.records import MigrationRecord, MigrationState, Progress
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from ledger.database import Timeouts
from playground.example import example_cluster
from playground.wanted import before, wanted_json, wanted_of

BASE_URL = "http://127.0.0.1"
EVIDENCE = "e" * 64
PREVIEW = "f" * 64
LOSS = "edits-of-broker-1"
LOOK = timedelta(seconds=3)
"""How long the stand-in looks at its cluster where the reason says `slowly`: longer than a caller waits."""
PATIENT = timedelta(seconds=30)
"""For calls whose callers else hear within two seconds that they take too long."""
ASKED: dict[str, Any] = {"kind": "zk-to-kraft", "wanted": wanted_json(example_cluster())}
"""Of the body of `POST /plans` and `POST /migrations`."""
SEARCH_ATTRIBUTES = ("Cluster", "MigrationKind", "Phase", "MigrationId", "Waiting")
NEVER = timedelta(hours=1)


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """structlog's default paints tracebacks with all local variables, which takes seconds."""
    structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()])


# ---- Temporal ----


MAY_PAUSE = ("--dynamic-config-value", "frontend.WorkflowPauseEnabled=true")
"""Of a whole run: servers refuse it by default, as yet."""


@pytest.fixture(scope="session")
async def temporal_server() -> AsyncIterator[WorkflowEnvironment]:
    """A dev server. The path is this environment's: the lock pins the program."""
    attributes = [part for name in SEARCH_ATTRIBUTES for part in ("--search-attribute", f"{name}=Keyword")]
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(Path(sysconfig.get_path("scripts")) / "temporal"),
        dev_server_extra_args=[*attributes, "--log-level", "error", *MAY_PAUSE],
        data_converter=pydantic_data_converter,
    ) as server:
        yield server


@pytest.fixture
def temporal_client(temporal_server: WorkflowEnvironment) -> Client:
    return temporal_server.client


@pytest.fixture
def temporal_address(temporal_client: Client) -> str:
    return str(temporal_client.service_client.config.target_host)


@pytest.fixture
async def elsewhere(temporal_client: Client, temporal_address: str) -> Temporal:
    """Another namespace that is there, and in which nobody works."""
    name = f"elsewhere-{uuid4()}"
    asked = RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=Duration(seconds=86400))
    await temporal_client.workflow_service.register_namespace(asked)
    found = Temporal({"target_host": temporal_address, "namespace": name})
    async with asyncio.timeout(30):
        while True:
            with suppress(TemporalRefused, TemporalUnavailable):
                await found.ping()
                return found
            await asyncio.sleep(0.1)


@workflow.defn(name=WORKFLOW_TYPE)
class StandIn:
    """Answers updates as the real workflow does: one gate, open until it is approved, which ends the run."""

    def __init__(self) -> None:
        self._applied: list[str] = []
        self._is_held = False
        self._is_approved = False

    @workflow.run
    async def run(self, request: MigrationInput) -> list[str]:
        self._is_held = self._is_held or request.is_held
        await workflow.wait_condition(lambda: self._is_approved and workflow.all_handlers_finished())
        return self._applied

    @workflow.update
    def approve(self, message: ApprovalMessage) -> None:
        self._apply(message.command_id)
        self._is_approved = True

    @workflow.update
    def reject(self, message: ApprovalMessage) -> None:
        self._apply(message.command_id)
        self._is_held = True

    @approve.validator
    def _may_approve(self, message: ApprovalMessage) -> None:
        if message.evidence_hash != EVIDENCE:
            raise ApplicationError("the evidence has changed", type="GateNotOpen")

    @reject.validator
    def _may_reject(self, message: ApprovalMessage) -> None:
        self._may_approve(message)

    @workflow.update
    def hold(self, message: HoldMessage) -> None:
        self._apply(message.command_id)
        self._is_held = True

    @workflow.update
    def resume(self, message: HoldMessage) -> None:
        self._apply(message.command_id)
        self._is_held = False

    @resume.validator
    def _may_resume(self, message: HoldMessage) -> None:
        if not self._is_held:
            raise ApplicationError("not held", type="NotHeld")

    @workflow.update
    async def rollback(self, message: RollbackMessage) -> None:
        if "slowly" in message.reason:
            await workflow.sleep(LOOK)
        if message.preview_hash not in {"", PREVIEW}:
            raise ApplicationError("the preview is not what it was", type="RollbackRefused", non_retryable=True)
        if not message.preview_hash and LOSS not in message.accept_loss:
            raise ApplicationError(f"this would be lost: {LOSS}", type="RollbackRefused", non_retryable=True)
        self._apply(message.command_id)
        self._is_approved = "to the end" in message.reason

    @workflow.query
    def applied(self) -> list[str]:
        return self._applied

    def _apply(self, command_id: str | None) -> None:
        if command_id is not None and command_id not in self._applied:
            self._applied.append(command_id)


@asynccontextmanager
async def running_worker(client: Client) -> AsyncIterator[None]:
    async with Worker(
        client, task_queue=TaskQueue.MIGRATIONS, workflows=[StandIn], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        yield


@pytest.fixture
def start_worker(temporal_client: Client) -> Callable[[], AbstractAsyncContextManager[None]]:
    """For tests in which there is no worker at first."""
    return lambda: running_worker(temporal_client)


@pytest.fixture
async def worker(temporal_client: Client) -> AsyncIterator[None]:
    """A workflow worker, all the time."""
    async with running_worker(temporal_client):
        yield


# ---- The API ----


@dataclass(frozen=True)
class Api:
    """A running API and a client of it."""

    app: FastAPI
    http: httpx.AsyncClient

    @property
    def wiring(self) -> Wiring:
        wiring: Wiring = self.app.state.wiring
        return wiring

    async def registered(self, name: str | None = None) -> ClusterSpec:
        """A cluster that no other test knows."""
        spec = a_spec(name)
        answer = await self.http.put(f"/clusters/{spec.name}", json=spec.model_dump(mode="json"))
        assert answer.status_code == 201, answer.text
        return spec

    async def post_migration(self, cluster: str, **more: Any) -> httpx.Response:
        asked = {"kind": "zk-to-kraft"} if "plan_id" in more else ASKED
        return await self.http.post("/migrations", json={"cluster": cluster} | asked | more)

    async def started(self) -> str:
        """A migration of a new cluster: its id."""
        answer = await self.post_migration((await self.registered()).name)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    async def approve(self, migration_id: str, **changes: Any) -> httpx.Response:
        body = {"gate": "finalize", "decision": "approve", "reason": "it is well", "evidence_hash": EVIDENCE} | changes
        return await self.http.post(f"/migrations/{migration_id}/approvals", json=body)

    async def roll_back(self, migration_id: str, **body: Any) -> httpx.Response:
        asked = body or {"preview_hash": PREVIEW}
        return await self.http.post(f"/migrations/{migration_id}/rollback", json={"reason": "it hurts"} | asked)

    async def ask(self, migration_id: str, what: str) -> httpx.Response:
        return await self.http.post(f"/migrations/{migration_id}/{what}", json={"reason": "lunch"})

    async def event_kinds(self, migration_id: str) -> list[str]:
        events = (await self.http.get(f"/migrations/{migration_id}/events")).json()["items"]
        return [event["kind"] for event in events]


def a_spec(name: str | None = None) -> ClusterSpec:
    unique = uuid4().hex[:12]
    return before(example_cluster()).model_copy(update={"name": name or f"c-{unique}", "cluster_id": unique})


def a_migration(spec: ClusterSpec, age: timedelta = timedelta(0), **changes: Any) -> MigrationRecord:
    """A migration whose run was not started."""
    record = MigrationRecord(
        id=str(uuid_utils.uuid7()),
        cluster=spec.name,
        cluster_id=spec.cluster_id,
        kind="zk-to-kraft",
        policy=ZkToKraftPolicy(),
        wanted=wanted_of(example_cluster()),
        spec_revision=1,
        requested_by="tests",
        created_at=datetime.now(UTC) - age,
        workflow_id=workflow_id(spec.cluster_id),
        progress=Progress(state=MigrationState.PLANNING),
    )
    return record.model_copy(update=changes)


def is_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Asserts that an answer is this problem, and nothing but a problem: its body."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["type"] == f"urn:problem-type:keeperless:{code}"
    assert body["code"] == code
    assert body["title"]
    assert body["detail"]
    assert (status == 503) == ("retry-after" in answer.headers)
    assert answer.headers["x-request-id"]
    return body


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[Api]:
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE_URL) as http,
    ):
        yield Api(app, http)


@pytest.fixture
def ledger_timeouts() -> Timeouts:
    """A busy machine is no ledger that does not answer. Tests of how long one is waited for parametrize it."""
    return Timeouts(call=PATIENT, lock=PATIENT)


@pytest.fixture(autouse=True)
def with_ledger_timeouts(ledger_timeouts: Timeouts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.wiring.LEDGER_TIMEOUTS", ledger_timeouts)


@pytest.fixture
def settings(tmp_path: Path) -> ApiSettings:
    """The caretaker does one round at the start, then only when a test says so."""
    return ApiSettings(
        ledger_url=f"sqlite:///{tmp_path}/ledger.db",
        artefacts=tmp_path / "artefacts",
        temporal_ui_url="http://127.0.0.1:8233",
        care_interval=NEVER,
        event_stream_life=timedelta(milliseconds=300),
        event_poll_interval=timedelta(milliseconds=20),
    )


@pytest.fixture
async def api(settings: ApiSettings, temporal_address: str) -> AsyncIterator[Api]:
    """The API with everything it needs."""
    async with serving(create_app(settings, Temporal({"target_host": temporal_address}, PATIENT))) as running:
        yield running


@pytest.fixture
async def api_without_temporal(settings: ApiSettings) -> AsyncIterator[Api]:
    """Nothing listens on port 1."""
    async with serving(create_app(settings, Temporal({"target_host": "127.0.0.1:1"}))) as running:
        yield running


@dataclass(frozen=True)
class Live:
    """An API with authentication that is served, and its first admin's key."""

    url: str
    key: str
    wiring: Wiring


@pytest.fixture
async def live(settings: ApiSettings, temporal_address: str, tmp_path: Path) -> AsyncIterator[Live]:
    with_auth = settings.model_copy(update={"auth": "on", "first_key_file": tmp_path / "first-key"})
    app = create_app(with_auth, Temporal({"target_host": temporal_address}, PATIENT))
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(PATIENT.total_seconds()):
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Live(f"http://127.0.0.1:{port}", (tmp_path / "first-key").read_text().strip(), app.state.wiring)
    server.should_exit = True
    await serving


@pytest.fixture
def serve() -> Callable[[FastAPI], AbstractAsyncContextManager[Api]]:
    return serving


# ---- What tests need of this file, as fixtures: with importlib mode it cannot be imported ----


@pytest.fixture
def make_spec() -> Callable[..., ClusterSpec]:
    return a_spec


@pytest.fixture
def make_migration() -> Callable[..., MigrationRecord]:
    return a_migration


@pytest.fixture
def expect_problem() -> Callable[[httpx.Response, int, str], dict[str, Any]]:
    return is_problem


@pytest.fixture
def claim(api: Api) -> Callable[[str], Awaitable[None]]:
    """Claims a migration, as its run's first activity does."""

    async def take(migration_id: str) -> None:
        record = await api.wiring.ledger.migration(migration_id)
        assert record is not None
        assert record.run_id is not None
        assert await api.wiring.ledger.claim(migration_id, record.run_id, datetime.now(UTC)) is not None

    return take


@pytest.fixture
def end(api: Api) -> Callable[..., Awaitable[None]]:
    """Ends a migration in the ledger, as its run's last activity does."""

    async def finish(migration_id: str, state: MigrationState = MigrationState.SUCCEEDED) -> None:
        await api.wiring.ledger.record(migration_id, [], Progress(state=state, outcome="KRAFT"))

    return finish
