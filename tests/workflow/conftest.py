"""A simulated cluster under a real Temporal server, the real workers and a real ledger: `world` is where to start.

At the end of a test each run is replayed from its history, whole, in the sandbox that production has.
"""

import asyncio
import copy
import gzip
import itertools
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Browser, async_playwright
from temporalio.api.enums.v1 import EventType
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.api.update.v1 import UpdateRef
from temporalio.api.workflowservice.v1 import PollWorkflowExecutionUpdateRequest
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment, WorkflowEnvironment
from temporalio.worker import Replayer, Worker
from uuid_utils import uuid7

from activities.adapters.machine_doctor import LinuxDoctor
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adopting import Adopting
from activities.assessing import Assessing
from activities.canaries.trying import Canaries
from activities.diagnosis.machine_notes import MachineNotes
from activities.failures import FailureTranslator
from activities.looking import look_and_decide
from activities.planning import Planning
from activities.ports.kafka import LookedUp
from activities.ports.ports import Ports
from activities.previewing import Previewing
from activities.recording import Recording
from activities.rolling.configuration_management import ConfigurationManaging
from activities.rolling.roll import Rolling
from activities.settings import ActivitySettings
from activities.shipped_kinds import SHIPPED_KINDS
from activities.worker import cluster_activities, watch_activities
from activities.zk_to_kraft.provisioning import Provisioning
from activities.zk_to_kraft.starting import Starting
from activities.zk_to_kraft.window.leaving import Leaving
from activities.zk_to_kraft.window.pace import Pace as WindowPace
from activities.zk_to_kraft.window.wiping import Wiping
from api.app import create_app
from api.running.temporal import Temporal
from api.settings import ApiSettings
from domain.contracts import (
    WORKFLOW_TYPE,
    ApprovalMessage,
    AssessRequest,
    HoldMessage,
    MigrationInput,
    MigrationStatus,
    RollbackMessage,
    StepRequest,
    TaskQueue,
    workflow_id,
)
from domain.decisions import Step
from domain.kinds import Kinds
from domain.observed.observation import PartitionFault
from domain.plans import Plan
from domain.policy import AcceptedFinding
from domain.questions import PlanRequest
from domain.records import (
    Command,
    CommandKind,
    Event,
    MigrationRecord,
    MigrationState,
    OpenGate,
    Progress,
)
from domain.shipped_kinds import SHIPPED_KINDS as SHIPPED_TO_API
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import GateName, StepAction
from ledger.database import Database
from ledger.errors import LedgerUnavailable
from ledger.ledger import SqlLedger, open_ledger
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.checks import FakeChecks
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from playground.temporal import SEARCH_ATTRIBUTES, temporal_program
from playground.wanted import before, wanted_json, wanted_of
from workflows.migration import Migration
from workflows.worker import CACHED_WORKFLOWS, RUNNER

T = TypeVar("T")

FAST = ZkToKraftPolicy(
    poll_interval=timedelta(milliseconds=20),
    stable_samples=2,
    restart_deadline=timedelta(seconds=20),
    stop_deadline=timedelta(seconds=2),
    accepted_findings=(
        AcceptedFinding(code="PF06", object="controllers", by="tests", reason="one is enough for most of them"),
    ),
)
DEADLINE = 90.0
"""Seconds until a test gives up waiting: for two cores that do much else."""

LED: dict[tuple[Phase, int, int], dict[str, Any]] = {}
"""Simulated clusters that were led to a phase before, by their size: leading one there takes a while."""

HISTORIES = Path(__file__).parents[1] / "replay" / "histories"


@dataclass
class Pause:
    """Stops every call of one name at its door until it is opened: what a test uses to be in the middle of something."""

    is_reached: asyncio.Event = field(default_factory=asyncio.Event)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)


class Switched:
    """A port with switches. `faults`: errors to raise, by method name; `pauses`: where to stop; `changes`: what
    to make of an answer; `calls`: what was asked.
    """

    def __init__(self, port: object) -> None:
        self.port = port
        self.faults: dict[str, Exception] = {}
        self.pauses: dict[str, Pause] = {}
        self.changes: dict[str, Callable[[Any], Any]] = {}
        self.calls: list[str] = []

    def pause(self, name: str) -> Pause:
        return self.pauses.setdefault(name, Pause())

    def release(self, name: str) -> None:
        self.pauses.pop(name).may_go_on.set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.port, name)
        return partial(self._call, name, found) if asyncio.iscoroutinefunction(found) else found

    async def _call(self, name: str, method: Callable[..., Awaitable[Any]], *arguments: Any, **named: Any) -> Any:
        self.calls.append(name)
        pause = self.pauses.get(name)
        if pause is not None:
            pause.is_reached.set()
            await pause.may_go_on.wait()
        fault = self.faults.get(name, self.faults.get("*"))
        if fault is not None:
            raise fault
        answer = await method(*arguments, **named)
        return self.changes.get(name, lambda same: same)(answer)


class NobodyElse:
    """`Listeners` where nobody starts controllers behind our back."""

    async def is_answering(self, host: str, port: int) -> bool:
        return False

    async def is_cut_off(self, host: str, port: int) -> bool:
        return False

    async def look_up(self, host: str) -> LookedUp:
        return LookedUp()


class Drivers:
    """`NodeDrivers` whose drivers are `Switched`, one for each node."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.of = {node.id: Switched(cluster.driver(node)) for node in cluster.spec.nodes}

    def reach(self, cluster: FakeCluster) -> None:
        """The nodes have been replaced; what is switched stays so."""
        for node in cluster.spec.nodes:
            self.of[node.id].port = cluster.driver(node)

    def driver(self, node: Any) -> Any:
        return self.of[node.id]


class World:
    """One cluster with one migration, and all that a person can do and see."""

    def __init__(self, client: Client, ledger: SqlLedger, cluster: FakeCluster, policy: ZkToKraftPolicy) -> None:
        self.client = client
        self.book = ledger
        """The ledger as tests see it: always up."""
        self.ledger = Switched(ledger)
        self.cluster = cluster
        self.drivers = Drivers(cluster)
        self.kafka = Switched(cluster)
        self.artefacts = FakeArtefacts()
        self.policy = policy
        self.migration_id = str(uuid7())
        self.plan_id: str | None = None
        self.workers = AsyncExitStack()
        self.handles: list[WorkflowHandle[Any, str]] = []
        self.ports = Ports(
            ledger=cast("Any", self.ledger),
            drivers=self.drivers,
            zookeepers=cluster,
            kafka=cast("Any", self.kafka),
            metrics=cluster,
            artefacts=self.artefacts,
            kinds=SHIPPED_KINDS,
            doctor=LinuxDoctor(),
        )
        self.checks = FakeChecks(self.ports)

    # ---- the processes ----

    async def start_workers(self, *, are_signals_trusted: bool = False) -> None:
        """Workflow, activity and checks workers, as `keeperless-workflows` and its like run them."""
        await self.start_workflow_worker()
        await self.start_activity_workers(are_signals_trusted=are_signals_trusted)
        await self.start_checks_worker()

    async def start_checks_worker(self) -> None:
        worker = Worker(
            self.client,
            task_queue=TaskQueue.CHECKS,
            activities=[self.checks.run_check],
            interceptors=[FailureTranslator()],
            max_heartbeat_throttle_interval=timedelta(seconds=1),
        )
        await self.workers.enter_async_context(worker)

    async def start_workflow_worker(self) -> None:
        await self.workers.enter_async_context(self.make_workflow_worker())

    def make_workflow_worker(self) -> Worker:
        return Worker(
            self.client,
            task_queue=TaskQueue.MIGRATIONS,
            workflows=[Migration],
            workflow_runner=RUNNER,
            max_cached_workflows=CACHED_WORKFLOWS,
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),  # a worker that is replaced is not waited for
        )

    async def start_activity_workers(self, *, are_signals_trusted: bool = False, is_asked: bool = False) -> None:
        """`is_asked`: they also answer what people ask through the API."""
        notes = await self.workers.enter_async_context(MachineNotes(self.ports, SpecDrivers()))
        looking, recording = Assessing(self.ports, notes), Recording(self.ports)
        effects = [
            looking.assess,
            Provisioning(self.ports).provision_controller,
            Rolling(self.ports, NobodyElse()).roll_node,
            Canaries(self.ports).try_canaries,
            Canaries(self.ports).remove_canaries,
            Starting(self.ports, NobodyElse()).start_node,
            Starting(self.ports, NobodyElse()).fail_over,
            Leaving(self.ports, NobodyElse(), WindowPace(poll=0.01, watch=0.05)).leave_kraft,
            Wiping(self.ports).wipe_kraft,
            ConfigurationManaging(self.ports).release_configuration,
            Previewing(self.ports).accept_rollback,
            recording.claim_cluster,
            recording.record_progress,
            Adopting(self.ports, are_signals_trusted).adopt_message,
        ]
        watching = watch_activities(self.ports, notes) if is_asked else [looking.watch, looking.observe_cluster]
        for queue, activities in ((TaskQueue.CLUSTER, effects), (TaskQueue.WATCH, watching)):
            worker = Worker(
                self.client,
                task_queue=queue,
                activities=activities,
                interceptors=[FailureTranslator()],
                max_heartbeat_throttle_interval=timedelta(seconds=1),
            )
            await self.workers.enter_async_context(worker)

    async def start_product_workers(self) -> None:
        """Workflow and activity workers that serve all that the product's do, for the kinds of the ports."""
        await self.start_workflow_worker()
        notes = await self.workers.enter_async_context(MachineNotes(self.ports, SpecDrivers()))
        for queue, activities in (
            (TaskQueue.CLUSTER, cluster_activities(self.ports, ActivitySettings(), notes)),
            (TaskQueue.WATCH, watch_activities(self.ports, notes)),
        ):
            worker = Worker(self.client, task_queue=queue, activities=activities, interceptors=[FailureTranslator()])
            await self.workers.enter_async_context(worker)

    async def close(self) -> None:
        for handle in self.handles:
            with suppress(RPCError):  # It has ended.
                await handle.terminate("the test is over")
        await self.workers.aclose()
        for handle in self.handles:
            await self._replay(handle.id)

    async def _replay(self, workflow: str) -> None:
        """Every run of it comes to the same again. Raises where it does not."""
        replayer = Replayer(workflows=[Migration], workflow_runner=RUNNER, data_converter=pydantic_data_converter)
        async for run in self.client.list_workflows(f"WorkflowId = '{workflow}'"):
            history = await self.client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
            await replayer.replay_workflow(history)

    # ---- the migration ----

    @property
    def asked(self) -> dict[str, Any]:
        """The body of `POST /migrations`."""
        spec, policy = self.cluster.spec, self.policy.model_dump(mode="json")
        return {"cluster": spec.name, "kind": "zk-to-kraft", "policy": policy, "wanted": wanted_json(spec)}

    async def register(self, migration_id: str | None = None) -> MigrationRecord:
        """The cluster and a new migration of it, as the API writes them."""
        now = datetime.now(UTC)
        cluster, _ = await self.book.put_cluster(before(self.cluster.spec), now)
        record = MigrationRecord(
            id=migration_id or self.migration_id,
            cluster=cluster.spec.name,
            cluster_id=cluster.spec.cluster_id,
            kind="zk-to-kraft",
            policy=self.policy,
            wanted=wanted_of(self.cluster.spec),
            spec_revision=cluster.revision,
            requested_by="olga",
            created_at=now,
            workflow_id=workflow_id(cluster.spec.cluster_id),
            progress=Progress(state=MigrationState.PLANNING),
        )
        await self.book.create_migration(record)
        return record

    async def start(self, workflow: str | None = None, *, is_held: bool = False) -> WorkflowHandle[Any, str]:
        """Start the migration's workflow as the API does; the handle follows the chain of its runs."""
        spec = self.cluster.spec
        attributes = {"Cluster": spec.name, "MigrationKind": "zk-to-kraft", "MigrationId": self.migration_id}
        handle = await self.client.start_workflow(
            WORKFLOW_TYPE,
            MigrationInput(
                kind="zk-to-kraft",
                migration_id=self.migration_id,
                cluster=spec.name,
                policy=self.policy,
                is_held=is_held,
                plan_id=self.plan_id,
            ),
            id=workflow or f"cluster/{uuid4().hex}",
            task_queue=TaskQueue.MIGRATIONS,
            result_type=str,
            task_timeout=timedelta(seconds=3),
            search_attributes=TypedSearchAttributes(
                [SearchAttributePair(SearchAttributeKey.for_keyword(k), v) for k, v in attributes.items()]
            ),
        )
        self.handles.append(self.client.get_workflow_handle(handle.id, result_type=str))
        return self.handles[-1]

    async def plan(self) -> Plan:
        """A plan made now, which the migration will name."""
        cluster, _ = await self.book.put_cluster(before(self.cluster.spec), datetime.now(UTC))
        request = PlanRequest(
            plan_id=str(uuid7()),
            cluster=cluster.spec.name,
            kind="zk-to-kraft",
            policy=self.policy,
            wanted=wanted_of(self.cluster.spec),
            requested_by="olga",
            requested_at=datetime.now(UTC),
        )
        self.plan_id = (await ActivityEnvironment().run(Planning(self.ports).make_plan, request)).plan_id
        return cast("Plan", await self.book.plan(self.plan_id))

    @property
    def handle(self) -> WorkflowHandle[Any, str]:
        return self.handles[-1]

    async def begin(self, *, are_signals_trusted: bool = False, is_held: bool = False) -> WorkflowHandle[Any, str]:
        """Register, start the workers, start the migration."""
        await self.register()
        await self.start_workers(are_signals_trusted=are_signals_trusted)
        return await self.start(is_held=is_held)

    async def result(self, seconds: float = DEADLINE) -> str:
        async with asyncio.timeout(seconds):
            return await self.handle.result()

    async def lead_to(self, phase: Phase) -> None:
        """Bring the cluster to a phase beforehand, as an earlier migration did that is gone: without Temporal."""
        now = datetime.now(UTC)
        earlier = await self.register(str(uuid7()))
        generation = await self.book.claim(earlier.id, "earlier", now)
        key = (phase, len(self.cluster.spec.brokers), len(self.cluster.spec.controllers))
        if key not in LED:
            request = AssessRequest(
                kind="zk-to-kraft",
                migration_id=earlier.id,
                cluster=earlier.cluster,
                generation=generation or 0,
                policy=self.policy_of_leading,
            )
            await self._lead(request, phase)
            LED[key] = copy.deepcopy(vars(self.cluster))
        led, faults = LED[key], self.cluster.faults
        vars(self.cluster).update(copy.deepcopy(led, {id(led["faults"]): faults}))
        self.drivers.reach(self.cluster)
        await self.book.record(earlier.id, [], earlier.progress.model_copy(update={"state": MigrationState.CANCELLED}))
        for port in (self.ledger, self.kafka, *self.drivers.of.values()):
            port.calls.clear()

    @property
    def policy_of_leading(self) -> ZkToKraftPolicy:
        """Nobody makes checks yet."""
        return self.policy.model_copy(update={"compare_messages": False, "compare_copy": False})

    async def _lead(self, request: AssessRequest, phase: Phase) -> None:
        for number in range(1000):
            assessment, _, _ = await look_and_decide(request, self.ports)
            if assessment.phase == phase:
                break
            if isinstance(assessment.decision, Step):
                await self._take(assessment.decision, request, f"{request.migration_id}/{number}")
        assert assessment.phase == phase

    async def _take(self, step: Step, request: AssessRequest, step_id: str) -> None:
        asked = StepRequest(
            kind="zk-to-kraft",
            migration_id=request.migration_id,
            cluster=request.cluster,
            generation=request.generation,
            step_id=step_id,
            step=step,
            policy=self.policy_of_leading,
        )
        is_new = step.action == StepAction.PROVISION_CONTROLLER
        activity = Provisioning(self.ports).provision_controller if is_new else Rolling(self.ports, NobodyElse()).roll_node
        outcome = await ActivityEnvironment().run(activity, asked)
        assert outcome.is_done, outcome.blocked

    # ---- what people see ----

    async def until_answer(
        self, look: Callable[[], Awaitable[dict[str, Any]]], is_right: Callable[[dict[str, Any]], bool]
    ) -> dict[str, Any]:
        """Ask over HTTP until an answer is right."""
        deadline = time.monotonic() + DEADLINE
        while not is_right(seen := await look()):
            assert time.monotonic() < deadline, seen
            await asyncio.sleep(0.1)
        return seen

    async def until(self, what: Callable[[], Awaitable[T]], seconds: float = DEADLINE) -> T:
        """Poll until `what` gives something true. A disk that many share may keep the ledger waiting in between."""
        deadline = time.monotonic() + seconds
        while True:
            with suppress(LedgerUnavailable):
                if found := await what():
                    return found
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s; {await self.story()}")
            await asyncio.sleep(0.02)

    async def story(self) -> str:
        """For a test's failure message: what has been told so far."""
        told = [f"{e.kind} {json.dumps(e.data)[:150]}" for e in await self.events()]
        return "\n".join([(await self.progress()).model_dump_json()[:600], *told])

    async def record(self) -> MigrationRecord:
        record = await self.book.migration(self.migration_id)
        assert record is not None
        return record

    async def progress(self) -> Progress:
        return (await self.record()).progress

    async def events(self, kind: str | None = None) -> list[Event]:
        return [e for e in await self.book.events(self.migration_id) if kind in {None, e.kind}]

    async def status(self) -> MigrationStatus:
        return await self.handle.query("status", result_type=MigrationStatus)

    async def has_ended_inside(self, state: str) -> bool:
        """The workflow knows, whether or not it could tell the ledger."""
        return (await self.status()).progress.state == state

    async def until_told(self, kind: str, count: int = 1, **data: Any) -> Event:
        """The last of `count` events of a kind that carry these data."""

        async def found() -> list[Event]:
            matching = [e for e in await self.events(kind) if data.items() <= e.data.items()]
            return matching if len(matching) >= count else []

        return (await self.until(found))[-1]

    async def until_waiting(self, reason: str) -> Progress:
        async def found() -> Progress | None:
            progress = await self.progress()
            return progress if progress.waiting is not None and progress.waiting.reason == reason else None

        return cast("Progress", await self.until(found))

    async def until_gate(self) -> OpenGate:
        """The gate, open in the ledger and so in the workflow."""
        gate = (await self.until_waiting("approval")).gate
        assert gate is not None
        return gate

    async def until_evidence(self, is_meant: Callable[[str], bool]) -> None:
        """The gate is open on evidence whose hash is meant: a look under way may still have seen what was before."""

        async def found() -> bool:
            gate = (await self.progress()).gate
            return gate is not None and is_meant(gate.evidence_hash)

        await self.until(found)

    # ---- what people do ----

    async def command(self, kind: CommandKind, **fields: Any) -> Command:
        """Written into the ledger, as the API does before it sends anything."""
        given = {"id": str(uuid7()), "migration_id": self.migration_id, "by": "anna", "via": "api", "at": datetime.now(UTC)}
        command = Command.model_validate(given | {"kind": kind} | fields)
        return await self.book.add_command(command)

    async def say(self, update: str, message: ApprovalMessage | HoldMessage | RollbackMessage) -> str:
        async with asyncio.timeout(DEADLINE):
            return await self.handle.execute_update(update, message, id=message.command_id, result_type=str)

    async def approve(self, evidence_hash: str, gate: GateName = GateName.FINALIZE) -> str:
        """Approve a gate, written down first."""
        fields = {"gate": gate, "evidence_hash": evidence_hash, "reason": "looks good"}
        command = await self.command(CommandKind.APPROVE, **fields)
        return await self.say("approve", approval(evidence_hash, command_id=command.id, gate=gate))

    async def approve_gate(self) -> str:
        return await self.approve((await self.until_gate()).evidence_hash)

    async def hold(self, reason: str = "lunch", command_id: str = "") -> str:
        command = await self.command(CommandKind.HOLD, id=command_id or str(uuid7()), reason=reason)
        message = HoldMessage(by="olga", reason=reason, after=command.gate or "", command_id=command.id)
        return await self.say("hold", message)

    async def resume(self, begin: GateName | None = None) -> str:
        """Why the ledger refuses it, or what the migration answers."""
        command = await self.command(CommandKind.RESUME, reason="back", gate=begin)
        if command.refused_because is not None:
            return command.refused_because
        return await self.say("resume", HoldMessage(by="olga", reason="back", begin=begin or "", command_id=command.id))

    async def reject(self, gate: OpenGate) -> str:
        command = await self.command(CommandKind.REJECT, gate=gate.name, evidence_hash=gate.evidence_hash)
        return await self.say("reject", approval(gate.evidence_hash, command_id=command.id, gate=gate.name))

    async def roll_back(self, **fields: Any) -> str:
        """Ask for the way back, written down first."""
        command = await self.command(CommandKind.ROLLBACK, **{"reason": "too slow"} | fields)
        return await self.say("rollback", rollback(command_id=command.id, **fields))

    async def supersede(self) -> None:
        """Somebody declares this migration dead and starts another one, which claims the cluster."""
        await self.book.record(self.migration_id, [], Progress(state=MigrationState.FAILED))
        later = await self.register(str(uuid7()))
        await self.book.claim(later.id, "later", datetime.now(UTC))

    def flicker(self) -> None:
        """From now on every second look finds a partition out of sync."""
        looks = itertools.count()
        fault = PartitionFault(partition="orders-0", missing=(3,))
        self.kafka.changes["view"] = lambda view: (
            view.model_copy(update={"under_replicated": (fault,)}) if next(looks) % 2 else view
        )

    # ---- what Temporal keeps ----

    async def search_attribute(self, name: str) -> str | None:
        description = await self.handle.describe()
        return description.typed_search_attributes.get(SearchAttributeKey.for_keyword(name))

    async def current_details(self) -> str:
        """The page that Temporal's UI shows."""
        metadata = await self.handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        return metadata.current_details

    async def is_cancel_requested(self) -> bool:
        events = (await self.handle.fetch_history()).events
        return any(e.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED for e in events)

    async def has_watch_ended(self) -> bool:
        """The last activity that ended is a watch, and the workflow has not heard of it: no worker is there."""
        events = (await self.handle.fetch_history()).events
        completed = [i for i, e in enumerate(events) if e.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED]
        tasks = [i for i, e in enumerate(events) if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
        return bool(completed) and completed[-1] > tasks[-1]

    async def has_task_without_commands(self, because_of: "EventType.ValueType") -> bool:
        """History ends with one, which was given out for such an event."""
        *_, before, scheduled, started, completed = [e.event_type for e in (await self.handle.fetch_history()).events]
        return (before, scheduled, started, completed) == (
            because_of,
            EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
            EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
            EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
        )

    async def has_updates(self, count: int) -> bool:
        """So many updates have been accepted by their validators."""
        events = (await self.handle.fetch_history()).events
        accepted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
        return sum(e.event_type == accepted for e in events) >= count

    async def is_update_waiting(self, update_id: str) -> bool:
        """The server has the update and no worker has taken it yet."""
        reference = UpdateRef(workflow_execution={"workflow_id": self.handle.id}, update_id=update_id)
        request = PollWorkflowExecutionUpdateRequest(namespace=self.client.namespace, update_ref=reference)
        try:
            await self.client.workflow_service.poll_workflow_execution_update(request)
        except RPCError:
            return False
        return True

    async def is_quiet(self, seconds: float) -> bool:
        """Nothing is added to the history for a while."""
        before = len((await self.handle.fetch_history()).events)
        await asyncio.sleep(seconds)
        return len((await self.handle.fetch_history()).events) == before

    async def has_phase(self, phase: str) -> bool:
        """The workflow knows, whether or not it could tell the ledger."""
        return await self.search_attribute("Phase") == phase

    async def has_runs(self, count: int) -> bool:
        return len(await self.histories()) >= count

    async def has_state(self, state: str) -> Progress | None:
        progress = await self.progress()
        return progress if progress.state == state else None

    def summaries(self, history: WorkflowHistory) -> list[str]:
        """The lines that Temporal's UI shows for a run's activities."""
        told = [event.user_metadata.summary for event in history.events if event.HasField("user_metadata")]
        return [self.client.data_converter.payload_converter.from_payload(summary, str) for summary in told]

    async def has_asked(self, port: Switched, name: str, times: int) -> bool:
        return (len(port.calls) if name == "*" else port.calls.count(name)) >= times

    async def histories(self) -> list[WorkflowHistory]:
        """Every run of the migration's chain, first to last."""
        query = f"WorkflowId = '{self.handle.id}'"

        async def all_runs() -> list[Any]:
            found = sorted([run async for run in self.client.list_workflows(query)], key=lambda run: run.start_time)
            last = await self.handle.describe()
            return found if last.run_id in {run.run_id for run in found} else []

        runs = await self.until(all_runs)
        return [await self.client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history() for run in runs]


def rollback(**fields: Any) -> RollbackMessage:
    return RollbackMessage.model_validate({"by": "anna", "reason": "too slow"} | fields)


def approval(evidence_hash: str, *, command_id: str | None = None, gate: str = "finalize") -> ApprovalMessage:
    return ApprovalMessage(gate=gate, by="anna", reason="looks good", evidence_hash=evidence_hash, command_id=command_id)


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """Fails where there is none: whoever runs these tests wants a browser."""
    async with async_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest.fixture(scope="session")
def temporal_path() -> str:
    return str(temporal_program())


@pytest.fixture
async def temporal(temporal_path: str) -> AsyncIterator[WorkflowEnvironment]:
    """A real server, in memory, with our search attributes.

    One for each test (0.3 s): task queues have fixed names, and a server hands tasks to workers that have just left.
    """
    attributes = [part for name in SEARCH_ATTRIBUTES for part in ("--search-attribute", f"{name}=Keyword")]
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_path,
        dev_server_extra_args=attributes,
        dev_server_startup_timeout=timedelta(seconds=60),
        data_converter=pydantic_data_converter,
    ) as environment:
        yield environment


@pytest.fixture(scope="session")
async def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the newest schema, to be copied: making one takes a while."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    async with open_ledger(f"sqlite:///{path}"):
        pass
    return path


@pytest.fixture
async def ledger(empty_ledger: Path, tmp_path: Path) -> AsyncIterator[SqlLedger]:
    shutil.copy(empty_ledger, tmp_path / "ledger.db")
    database = Database(f"sqlite:///{tmp_path}/ledger.db")
    yield SqlLedger(database)
    await database.close()


@pytest.fixture
async def make_world(temporal: WorkflowEnvironment, ledger: SqlLedger) -> AsyncIterator[Callable[..., World]]:
    """Makes worlds: `make_world(phase=…)` would be a coroutine; see `World.lead_to`."""
    worlds: list[World] = []

    def make(
        *,
        brokers: int = 3,
        controllers: int = 3,
        racks: int | None = None,
        client: Client | None = None,
        policy: ZkToKraftPolicy = FAST,
        **simulated: Any,
    ) -> World:
        simulation = {"boot_looks": 1, "catch_up_looks": 1, "copy_looks": 1} | simulated
        cluster = FakeCluster(fake_spec(brokers, controllers, racks=racks), **simulation)
        worlds.append(World(client or temporal.client, ledger, cluster, policy))
        return worlds[-1]

    yield make
    for world in worlds:
        await world.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """Three brokers, three controllers to come; nothing registered, nothing started."""
    return make_world()


@pytest.fixture
def small(make_world: Callable[..., World]) -> World:
    """Three brokers and one controller: the same code in fewer steps."""
    return make_world(controllers=1)


@pytest.fixture
def kinds() -> Kinds:
    """What the API is given. A module may have others."""
    return SHIPPED_TO_API


@pytest.fixture
async def http(
    tmp_path: Path, temporal: WorkflowEnvironment, ledger: SqlLedger, kinds: Kinds
) -> AsyncIterator[httpx.AsyncClient]:
    """The API on the world's own ledger and Temporal."""
    settings = ApiSettings(ledger_url=f"sqlite:///{tmp_path}/ledger.db", care_interval=0.5)  # type: ignore[arg-type]
    address = temporal.client.service_client.config.target_host
    app = create_app(settings, Temporal({"target_host": address}), kinds=kinds)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=60) as client,
    ):
        yield client


@pytest.fixture
def ledger_is_down() -> LedgerUnavailable:
    return LedgerUnavailable("the ledger's database does not answer")


@pytest.fixture(scope="session")
def make_rollback() -> Callable[..., RollbackMessage]:
    return rollback


@pytest.fixture(scope="session")
def make_approval() -> Callable[..., ApprovalMessage]:
    return approval


@pytest.fixture(scope="session")
def count_events() -> Callable[[WorkflowHistory], dict[str, int]]:
    """How many events of which type a history has."""

    def count(history: WorkflowHistory) -> dict[str, int]:
        names = [EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in history.events]
        return {name: names.count(name) for name in sorted(set(names))}

    return count


@pytest.fixture(scope="session")
def keep_histories() -> Callable[[str, list[WorkflowHistory]], None]:
    """Writes histories to tests/replay/histories when KEEPERLESS_RECORD_HISTORIES is set. See tests/replay/README.md."""

    def keep(name: str, histories: list[WorkflowHistory]) -> None:
        if not os.environ.get("KEEPERLESS_RECORD_HISTORIES"):
            return
        for old in HISTORIES.glob(f"{name}-*.json.gz"):
            old.unlink()
        for number, history in enumerate(histories, 1):
            content = json.dumps(json.loads(history.to_json()), sort_keys=True).encode()
            (HISTORIES / f"{name}-{number:02}.json.gz").write_bytes(gzip.compress(content, mtime=0))

    return keep
