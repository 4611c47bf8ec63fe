"""A migration on a simulated cluster, step by step, as the workflow would take it; and workers that are cut off on the way."""

import asyncio
import copy
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

from temporalio.testing import ActivityEnvironment

from activities.adapters.machine_doctor import LinuxDoctor
from activities.canaries.trying import Canaries
from activities.looking import look_and_decide
from activities.node_files import mark_path
from activities.ports.ports import Ports
from activities.rolling.configuration_management import ConfigurationManaging
from activities.rolling.roll import Rolling
from activities.shipped_kinds import SHIPPED_KINDS
from activities.zk_to_kraft.provisioning import Provisioning
from domain.approvals import Attempt, Rules, why_not_consumed
from domain.contracts import AssessRequest, RevertOrder, StepOutcome, StepRequest
from domain.decisions import Decision, Gate, Step
from domain.diagnosis.machines.notes import MachineNote
from domain.drift.report import CheckName, DriftReport, Verdict
from domain.errors import Transient
from domain.observed.observation import RollMark
from domain.records import ClusterRecord, Command, CommandKind, MigrationRecord
from domain.zk_to_kraft.described import CHECKS
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.checks import FakeChecks
from playground.fakes.cluster import FakeCluster
from playground.fakes.listeners import FakeListeners
from tests.unit.fake_way_back import leave_kraft, order, start_node, wipe

POLICY = ZkToKraftPolicy(poll_interval=timedelta(microseconds=1), stable_samples=2, restart_deadline=timedelta(seconds=20))
NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
RULES = Rules(POLICY, requested_by="tests", requested_at=NOW)


Found = dict[str, tuple[FakeCluster, StepRequest, str]]
"""By a step's name: the cluster right before it, the step, and the hash of the evidence at the last gate."""


class Killed(BaseException):
    """The worker is gone: nobody catches this."""


class Watched:
    """A port whose every call passes `after`, with its name, once it is done."""

    def __init__(self, port: object, label: str, after: Callable[[str], Awaitable[None]]) -> None:
        self._port, self._label, self._after = port, label, after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return partial(self._call, name, found) if asyncio.iscoroutinefunction(found) else found

    async def _call(self, name: str, method: Callable[..., Awaitable[Any]], *arguments: Any, **named: Any) -> Any:
        answer = await method(*arguments, **named)
        await self._after(f"{self._label} {name}")
        return answer


class WatchedKafka(Watched):
    """Its clients are watched as well."""

    async def open_client(self, cluster: ClusterRecord) -> Any:
        return Watched(await self._call("open_client", self._port.open_client, cluster), "client", self._after)  # type: ignore[attr-defined]


class Drivers:
    """Only the targets' drivers are watched: a look at others changes nothing, and every look is watched by `kafka view`."""

    def __init__(self, cluster: FakeCluster, node_ids: tuple[int, ...], after: Callable[[str], Awaitable[None]]) -> None:
        self._cluster, self._node_ids, self._after = cluster, node_ids, after

    def driver(self, node: Any) -> Any:
        found = self._cluster.driver(node)
        return Watched(found, "node", self._after) if node.id in self._node_ids else found


@dataclass(frozen=True)
class Scene:
    """A cluster right before a step, and the step."""

    cluster: FakeCluster
    ledger: Any
    request: StepRequest

    def copy(self) -> FakeCluster:
        spec = self.cluster.spec
        return copy.deepcopy(self.cluster, {id(spec): spec})

    async def attempt(self, cluster: FakeCluster, after: Callable[[str], Awaitable[None]], approval: str = "") -> StepOutcome:
        """One attempt at the step by a worker of its own."""
        ports = Ports(
            ledger=cast("Any", Watched(self.ledger, "ledger", after)),
            drivers=Drivers(cluster, self.request.step.nodes, after),
            zookeepers=cluster,
            kafka=cast("Any", WatchedKafka(cluster, "kafka", after)),
            metrics=cluster,
            artefacts=FakeArtefacts(),
            kinds=SHIPPED_KINDS,
            doctor=LinuxDoctor(),
        )
        activities: dict[str, Any] = {
            StepAction.ROLL_NODE: Rolling(ports, FakeListeners(cluster)).roll_node,
            StepAction.PROVISION_CONTROLLER: Provisioning(ports).provision_controller,
            StepAction.TRY_CANARIES: Canaries(ports).try_canaries,
            StepAction.REMOVE_CANARIES: Canaries(ports).remove_canaries,
        }
        activity = activities[self.request.step.action]
        request = self.request.model_copy(update={"approvals": {GateName.FINALIZE: approval}}) if approval else self.request
        try:
            outcome: StepOutcome = await ActivityEnvironment().run(activity, request)
        finally:
            await watches_are_over()
        return outcome


async def watches_are_over() -> None:
    """A proof begins them for the next restart, and waits for none. Where a test holds one, it is not waited for."""
    watches = [task for task in asyncio.all_tasks() if "Watched.signs" in repr(task)]
    if watches:
        await asyncio.wait(watches, timeout=1.0)


class KillAfter:
    """Lets `count` calls pass, and no other. Keeps their names."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count
        self.calls: list[str] = []

    async def __call__(self, name: str) -> None:
        self.calls.append(name)
        if self.count is not None and len(self.calls) > self.count:
            raise Killed


def is_roll(step: Step, stage: NodeStage, *, of_controller: bool = False) -> bool:
    return step.action == StepAction.ROLL_NODE and step.stage == stage and (step.node >= 3000) is of_controller


class UntilMarked(KillAfter):
    """Cut off as soon as one node has the mark of the step."""

    def __init__(self, cluster: FakeCluster, request: StepRequest) -> None:
        super().__init__()
        self._cluster, self._request = cluster, request

    async def __call__(self, name: str) -> None:
        await super().__call__(name)
        for node_id in self._request.step.nodes:
            node = self._cluster.nodes[node_id]
            mark = node.machine.read(mark_path(node.spec.properties_file))
            if mark is not None and RollMark.model_validate_json(mark.content).step_id == self._request.step_id:
                raise Killed


async def create_all_but_the_last(walk: "Walk", prefix: str = "m1") -> None:
    """Controllers one by one: each time a worker is cut off that has begun one of them, and its retry finishes that one."""
    while isinstance(step := await walk.to("step"), Step) and step.companions:
        request = walk.request(step, f"{prefix}/{next(walk.numbers)}")
        scene = Scene(walk.cluster, walk.ledger, request)
        with suppress(Killed):
            await scene.attempt(walk.cluster, UntilMarked(walk.cluster, request))
        outcome = await scene.attempt(walk.cluster, KillAfter())
        assert sum([outcome.is_done, *(companion.is_done for companion in outcome.companions)]) == 1, outcome


async def approve(ledger: Any, command_id: str, evidence_hash: str) -> str:
    await ledger.add_command(
        Command(
            id=command_id,
            migration_id="m1",
            kind=CommandKind.APPROVE,
            gate=GateName.FINALIZE,
            evidence_hash=evidence_hash,
            by="anna",
            via="api",
            at=NOW,
        )
    )
    return command_id


class LedgerInMemory:
    """What a step asks of the ledger. `is_silent`: it does not answer."""

    place = "memory"

    def __init__(self, cluster: FakeCluster) -> None:
        self.held_by = 1
        self.is_silent = False
        self._cluster = cluster.record()
        self._commands: dict[str, Command] = {}
        self._reports: list[DriftReport] = []
        self.notes: dict[str, MachineNote] = {}
        self.is_noted = asyncio.Event()

    def _answering(self) -> "LedgerInMemory":
        if self.is_silent:
            raise Transient("the ledger does not answer")
        return self

    async def generation(self, cluster: str) -> int:
        return self._answering().held_by

    async def cluster(self, name: str) -> ClusterRecord:
        return self._answering()._cluster

    async def migration(self, _: str) -> MigrationRecord | None:
        """Nobody has written down when it began."""
        return None

    async def active_migration(self, _: str) -> MigrationRecord | None:
        """Nor what it wants: the cluster has it."""
        return None

    async def command(self, command_id: str) -> Command | None:
        return self._answering()._commands.get(command_id)

    async def commands(self, migration_id: str) -> list[Command]:
        return list(self._answering()._commands.values())

    async def add_command(self, command: Command) -> Command:
        self._answering()._commands[command.id] = command
        return command

    async def consume_approval(self, attempt: Attempt) -> str | None:
        known, now = self._answering()._commands, datetime.now(UTC)
        why_not = why_not_consumed(attempt, list(known.values()), RULES, self.held_by, now)
        approval = known.get(attempt.command_id)
        if why_not is None and approval is not None and approval.consumed_at is None:
            known[approval.id] = approval.model_copy(update={"consumed_at": now, "consumed_by": attempt.id})
        return why_not

    async def add_report(self, report: DriftReport) -> DriftReport:
        self._answering()._reports.append(report)
        return report

    async def report(self, report_id: str) -> DriftReport | None:
        return next((report for report in self._answering()._reports if report.id == report_id), None)

    async def newest_reports(self, cluster: str, check: CheckName) -> list[DriftReport]:
        return [report for report in self._answering()._reports if report.check is check]

    async def newest_report(self, migration_id: str, check: CheckName) -> DriftReport | None:
        found = [
            report for report in self._answering()._reports if (report.migration_id, report.check) == (migration_id, check)
        ]
        return found[-1] if found else None

    async def baseline(self, cluster: str, migration_id: str | None = None) -> DriftReport | None:
        kept = [report for report in self._answering()._reports if report.check is CheckName.BASELINE]
        if migration_id is not None:
            return next((report for report in kept if report.migration_id == migration_id), None)
        return kept[-1] if kept else None

    async def put_note(self, migration_id: str, note: MachineNote) -> None:
        self._answering().notes[note.about] = note
        self.is_noted.set()

    async def note(self, migration_id: str, about: str) -> MachineNote | None:
        return self._answering().notes.get(about)

    async def noted(self, migration_id: str) -> dict[str, str | None]:
        return {about: note.identity for about, note in self._answering().notes.items()}

    async def drifts_found(self, cluster: str, check: CheckName) -> int:
        return sum(report.verdict is Verdict.DRIFT for report in self._answering()._reports)


@dataclass
class Walk:
    """A migration, step by step, on one simulated cluster."""

    ledger: Any
    cluster: FakeCluster
    is_back: bool = False
    accepted: tuple[str, ...] = ()
    generation: int = 1
    approvals: dict[str, str] = field(default_factory=dict)
    evidence_hash: str = ""
    found: Found = field(default_factory=dict)
    artefacts: FakeArtefacts = field(default_factory=FakeArtefacts)
    policy: ZkToKraftPolicy = POLICY
    outcomes: list[StepOutcome] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    """Of steps: none is used twice, whoever goes on."""

    def copy(self, **changes: Any) -> "Walk":
        """The same migration on a cluster of its own, from here on."""
        cluster = copy.deepcopy(self.cluster, {id(self.cluster.spec): self.cluster.spec})
        return replace(self, **{"cluster": cluster, "approvals": dict(self.approvals), "found": {}, **changes})

    @property
    def revert(self) -> RevertOrder | None:
        return order(self.cluster, *self.accepted) if self.is_back else None

    @property
    def ports(self) -> Ports:
        return Ports(
            self.ledger, self.cluster, self.cluster, self.cluster, self.cluster, self.artefacts, SHIPPED_KINDS, LinuxDoctor()
        )

    async def decision(self) -> Decision:
        asked = AssessRequest(
            kind="zk-to-kraft",
            migration_id="m1",
            cluster="orders",
            generation=self.generation,
            approvals=self.approvals,
            policy=self.policy,
            revert=self.revert,
        )
        return (await look_and_decide(asked, self.ports))[0].decision

    async def to(self, end: str, steps: Mapping[str, Callable[[Step], bool]] | None = None, prefix: str = "m1") -> Decision:
        """Go on until a decision of the kind `end`, or with `step` until all named steps are found. Approves every gate."""
        wanted = steps or {}
        for number in itertools.count(1):
            decision = await self.decision()
            if isinstance(decision, Gate):
                self.evidence_hash = decision.evidence_hash
                self.approvals[decision.name] = await approve(self.ledger, "approval", decision.evidence_hash)
            if decision.decision == end and (end != "step" or self.found.keys() >= wanted.keys()):
                return decision
            assert number < 300, decision
            if isinstance(decision, Step):
                request = self.request(decision, f"{prefix}/{next(self.numbers)}")
                name = next((name for name, is_it in wanted.items() if name not in self.found and is_it(decision)), None)
                if name is not None:
                    self.found[name] = (self.copy().cluster, request, self.evidence_hash)
                await self.take(request)
        raise AssertionError

    def request(self, step: Step, step_id: str) -> StepRequest:
        return StepRequest(
            kind="zk-to-kraft",
            migration_id="m1",
            cluster="orders",
            generation=self.generation,
            step_id=step_id,
            step=step,
            approvals=dict(self.approvals),
            policy=self.policy,
            revert=self.revert,
        )

    async def take(self, request: StepRequest) -> None:
        match request.step.action:
            case StepAction.LEAVE_KRAFT:
                await leave_kraft(self.cluster)
            case StepAction.WIPE:
                await wipe(self.cluster)
            case action if action in CHECKS:
                await FakeChecks(self.ports).publish("orders", request.step_id, "m1", check=CHECKS[action][0])
            case StepAction.RELEASE_CONFIGURATION:
                released = await ActivityEnvironment().run(ConfigurationManaging(self.ports).release_configuration, request)
                assert released.is_done, released.blocked
            case StepAction.START_NODE:
                await start_node(self.cluster, request.step.node)
            case _:
                outcome = await Scene(self.cluster, self.ledger, request).attempt(self.cluster, KillAfter())
                assert outcome.is_done, outcome.blocked
                self.outcomes.append(outcome)


def add_coordinating_partitions(cluster: FakeCluster) -> None:
    """Somebody has given __consumer_offsets a second partition, after all brokers had started."""
    cluster.znodes["/brokers/topics/__consumer_offsets"] = b'{"topic_id": "Zm9vYmFyZm9vYmFyZm9vYg"}'
    for partition, days in ((0, -9), (1, 9)):
        path = f"/brokers/topics/__consumer_offsets/partitions/{partition}"
        cluster.znodes[path] = b""
        cluster.znodes.age(path, datetime.now(UTC) + timedelta(days=days))
