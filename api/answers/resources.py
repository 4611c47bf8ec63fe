"""What goes out. Every field is always there: `null` says that there is nothing, absence is never an answer."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from api.answers.links import cluster_url, migration_url, plan_url, report_url, temporal_ui_url
from api.answers.outgoing import Outgoing
from api.answers.summaries import SummaryAnswer
from api.running.commands import CommandStatus, status_of
from api.wiring import Wiring
from domain.approvals import seen, state_of
from domain.cluster import ClusterSpec
from domain.decisions import Finding, Intent, Label
from domain.drift.report import CheckName, DriftReport, Verdict
from domain.of_kind import AnyWanted
from domain.policy import AnyPolicy
from domain.records import (
    ApprovalSeen,
    ApprovalState,
    ClusterRecord,
    Command,
    CommandKind,
    Event,
    Hold,
    InHand,
    MigrationRecord,
    MigrationState,
    NodeStatus,
    OpenGate,
    Progress,
    Sample,
    Waiting,
)


class ClusterLinks(Outgoing):
    self: str
    observation: str
    migrations: str


class ClusterAnswer(Outgoing):
    """A registered cluster. `revision` counts changes of the spec, `generation` the migrations that claimed the cluster."""

    name: str
    cluster_id: str
    revision: int
    generation: int
    created_at: datetime
    updated_at: datetime
    spec: ClusterSpec
    links: ClusterLinks

    @classmethod
    def of(cls, record: ClusterRecord) -> "ClusterAnswer":
        url = cluster_url(record.spec.name)
        return cls(
            name=record.spec.name,
            cluster_id=record.spec.cluster_id,
            revision=record.revision,
            generation=record.generation,
            created_at=record.created_at,
            updated_at=record.updated_at,
            spec=record.spec,
            links=ClusterLinks(
                self=url, observation=f"{url}/observation", migrations=f"/migrations?cluster={record.spec.name}"
            ),
        )


class ClusterList(Outgoing):
    """By name."""

    items: list[ClusterAnswer]


class ProgressAnswer(Outgoing):
    """How many of the steps that the nodes need are done. `total` and `percent`: `null` before the first observation.

    Comparisons, canaries and refused attempts are no such steps: events number them too.
    """

    done: int
    total: int | None
    percent: int | None

    @classmethod
    def of(cls, progress: Progress) -> "ProgressAnswer":
        done, total = progress.steps_done, progress.steps_total
        return cls(done=done, total=total or None, percent=100 * done // total if total else None)


class PhaseAnswer(Outgoing):
    """One phase of the migration's way. `is_irreversible`: from here on there is no rollback."""

    name: str
    title: str
    is_irreversible: bool
    status: Literal["done", "current", "ahead"]

    @classmethod
    def way_of(cls, progress: Progress) -> "list[PhaseAnswer]":
        """In order. A phase off the path (somebody's mistake) has no status."""
        names = [phase.name for phase in progress.phases]
        here = names.index(progress.phase) if progress.phase in names else -1
        here += progress.state is MigrationState.SUCCEEDED
        statuses: list[Literal["done", "current", "ahead"]] = [
            "done" if place < here else "current" if place == here else "ahead" for place in range(len(names))
        ]
        return [cls(**phase.model_dump(), status=status) for phase, status in zip(progress.phases, statuses, strict=True)]


class WaitingAnswer(Outgoing):
    """Why nothing happens. `for`: `people` (somebody must decide or act) or `cluster` (it goes on by itself)."""

    reason: str
    means: str
    since: datetime
    waits_for: Literal["people", "cluster"] = Field(serialization_alias="for")
    objects: list[str]
    detail: str

    @classmethod
    def of(cls, waiting: Waiting) -> "WaitingAnswer":
        return cls(
            reason=waiting.reason,
            means=waiting.means,
            since=waiting.since,
            waits_for="people" if waiting.for_people else "cluster",
            objects=list(waiting.objects),
            detail=waiting.detail,
        )


class GateReport(Outgoing):
    """A comparison that the evidence of a gate names, and where it is read."""

    check: CheckName
    verdict: Verdict
    url: str


class GateAnswer(Outgoing):
    """A gate that waits for a person. An approval names `evidence_hash`. `reports`: all comparisons that the evidence names,
    each the newest of those that say the same."""

    name: Label
    evidence_hash: str
    since: datetime
    evidence: dict[str, Any]
    reports: list[GateReport]

    @classmethod
    def of(cls, gate: OpenGate, reports: Sequence[DriftReport]) -> "GateAnswer":
        named = [GateReport(check=one.check, verdict=one.verdict, url=report_url(one)) for one in reports]
        return cls(**gate.model_dump(), reports=named)


class MigrationLinks(Outgoing):
    self: str
    plan: str | None
    cluster: str
    blockers: str
    events: str
    reports: str
    samples: str
    commands: str
    approvals: str
    rollback_preview: str
    rollback: str
    runbook: str
    temporal_ui: str | None


class MigrationAnswer(Outgoing):
    """A migration, as people see it. `intent`: where it is going. `gates`: those that wait for a person now.
    `phases`: the way that its kind goes, in order; empty before the first observation.
    `in_hand`: the step that is being carried out; `observe` while the cluster is observed before the first one. `hold`: from
    the moment at which it was accepted. `approvals`: those that are armed or consumed now, as the ledger has them. `summary`:
    once it has ended.
    """

    id: str
    cluster: str
    cluster_id: str
    kind: str
    state: MigrationState
    intent: Intent
    phase: str | None
    phases: list[PhaseAnswer]
    progress: ProgressAnswer
    waiting: WaitingAnswer | None
    hold: Hold | None
    in_hand: InHand | None
    nodes: list[NodeStatus]
    gates: list[GateAnswer]
    approvals: list[ApprovalSeen]
    findings: list[Finding]
    outcome: str | None
    summary: SummaryAnswer | None
    policy: AnyPolicy
    wanted: AnyWanted
    spec_revision: int
    generation: int | None
    requested_by: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    workflow_id: str
    run_id: str | None
    plan_id: str | None
    links: MigrationLinks

    @classmethod
    def of(
        cls,
        record: MigrationRecord,
        wiring: Wiring,
        reports: Sequence[DriftReport],
        approvals: Sequence[Command],
        summary: SummaryAnswer | None,
    ) -> "MigrationAnswer":
        """`reports`: those that the open gate's evidence names. `approvals`: the open ones."""
        progress, kind = record.progress, wiring.kinds[record.kind]
        shared = record.model_dump(
            include={"id", "cluster", "cluster_id", "kind", "spec_revision", "generation", "requested_by", "created_at"}
            | {"started_at", "ended_at", "workflow_id", "plan_id"}
        )
        return cls(
            **shared,
            run_id=record.newest_run_id,
            policy=kind.policy.of(record.policy),
            wanted=kind.wanted.of(record.wanted),
            state=progress.state,
            intent=progress.intent,
            phase=progress.phase,
            phases=PhaseAnswer.way_of(progress),
            progress=ProgressAnswer.of(progress),
            waiting=None if progress.waiting is None else WaitingAnswer.of(progress.waiting),
            hold=progress.hold,
            in_hand=progress.in_hand,
            nodes=list(progress.nodes),
            gates=[] if progress.gate is None else [GateAnswer.of(progress.gate, reports)],
            approvals=[one for one in (seen(command, datetime.now(UTC)) for command in approvals) if one is not None],
            findings=list(progress.findings),
            outcome=progress.outcome,
            summary=summary,
            links=_links(record, wiring),
        )


class MigrationList(Outgoing):
    """Newest first."""

    items: list[MigrationAnswer]


class SampleList(Outgoing):
    """The numbers that the kind of migration names, over time, oldest first. A long migration's are thinned out evenly."""

    items: list[Sample]


class CommandAnswer(Outgoing):
    """What a person asked for, and what became of it. `gate`: also the one that a resume may begin.

    `takes_effect_after`: the gate whose irreversible section a hold came into, and after which it takes effect. Of an
    approval: `approval`, its state; `expires_at`; `consumed_at` and `consumed_by`, the step that used it first; `closed_at`
    and `closed_because`, once it counts no more; `break_glass`.
    """

    id: str
    migration_id: str
    kind: CommandKind
    gate: Label | None
    evidence_hash: str | None
    preview_hash: str | None
    accept_loss: list[str]
    reason: str
    by: str
    via: str
    at: datetime
    status: CommandStatus
    delivered_at: datetime | None
    refused_because: str | None
    takes_effect_after: Label | None
    approval: ApprovalState | None
    expires_at: datetime | None
    consumed_at: datetime | None
    consumed_by: str | None
    closed_at: datetime | None
    closed_because: str | None
    break_glass: bool

    @classmethod
    def of(cls, command: Command) -> "CommandAnswer":
        return cls(
            status=status_of(command),
            approval=state_of(command, datetime.now(UTC)),
            takes_effect_after=command.gate if command.kind is CommandKind.HOLD else None,
            **command.model_dump(exclude={"closed_as", "waits_for_others"}),
        )


class CommandList(Outgoing):
    """Oldest first."""

    items: list[CommandAnswer]


class EventList(Outgoing):
    """In order. Ask again with `after` set to the last item's `seq` for what comes next."""

    items: list[Event]


class Alive(Outgoing):
    status: Literal["alive"]


class Ready(Outgoing):
    status: Literal["ready"]


class Version(Outgoing):
    name: Literal["keeperless"]
    version: str


def _links(record: MigrationRecord, wiring: Wiring) -> MigrationLinks:
    url = migration_url(record.id)
    ui = wiring.settings.temporal_ui_url
    return MigrationLinks(
        self=url,
        plan=None if record.plan_id is None else plan_url(record.plan_id),
        cluster=cluster_url(record.cluster),
        blockers=f"{url}/blockers",
        events=f"{url}/events",
        reports=f"{url}/reports",
        samples=f"{url}/samples",
        commands=f"{url}/commands",
        approvals=f"{url}/approvals",
        rollback_preview=f"{url}/rollback-preview",
        rollback=f"{url}/rollback",
        runbook=f"{url}/runbook",
        temporal_ui=temporal_ui_url(None if ui is None else str(ui), wiring.temporal.namespace, record),
    )
