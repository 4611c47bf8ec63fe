"""What workflows and activities, and the API and workflows, say to each other: names and payloads, nothing else.

One model for each call, every field that may be added later with a default, so that old histories can still be read.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import to_json

from domain.decisions import Decision, Gate, Intent, Label, Step, Wait
from domain.diagnosis.blocker import Blocker
from domain.drift.report import CheckName, Verdict
from domain.policy import AnyPolicy, MigrationPolicy
from domain.records import (
    ApprovalSeen,
    ClusterRecord,
    CommandKind,
    EventDraft,
    Hold,
    Measured,
    NodeStatus,
    OpenGate,
    PhaseStep,
    Progress,
    Waiting,
)
from domain.restored_history import RunPosition


class TaskQueue(StrEnum):
    """Separate, so that many waiting migrations never starve an effect."""

    MIGRATIONS = "migrations"
    CLUSTER = "cluster"
    WATCH = "watch"
    CHECKS = "checks"


PROGRAM_OF: dict[str, str] = {
    TaskQueue.MIGRATIONS: "keeperless-workflows",
    TaskQueue.CLUSTER: "keeperless-activities",
    TaskQueue.WATCH: "keeperless-activities",
    TaskQueue.CHECKS: "keeperless-checks",
}
"""Which program takes the tasks of a queue."""


class ActivityName(StrEnum):
    """Activities that every kind has. A kind's own steps name theirs themselves."""

    CLAIM = "claim_cluster"
    ASSESS = "assess"
    WATCH = "watch"
    ROLL_NODE = "roll_node"
    RECORD = "record_progress"
    OBSERVE = "observe_cluster"
    ADOPT = "adopt_message"
    ACCEPT_ROLLBACK = "accept_rollback"
    PREVIEW = "preview_rollback"
    RUNBOOK = "write_runbook"
    TRY_CANARIES = "try_canaries"
    REMOVE_CANARIES = "remove_canaries"
    RELEASE_CONFIGURATION = "release_configuration"
    RUN_CHECK = "run_check"
    MAKE_PLAN = "make_plan"
    REHEARSE_PLAN = "rehearse_plan"
    FIND_BLOCKERS = "find_blockers"


WORKFLOW_TYPE = "Migration"


def workflow_id(cluster_id: str) -> str:
    """The mutex: Temporal lets one workflow with this id run."""
    return f"cluster/{cluster_id}"


MOST_REMEMBERED = 4096
"""Bytes of JSON that a kind of migration may hand from look to look: every run and every request carries them."""


class Payload(BaseModel):
    model_config = ConfigDict(frozen=True)


def _short(memory: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(to_json(memory)) > MOST_REMEMBERED:
        raise ValueError(f"a kind of migration remembers more than {MOST_REMEMBERED} bytes from one observation to the next")
    return memory


Memory = Annotated[dict[str, JsonValue], AfterValidator(_short)]
"""What one look hands to the next: the kind's own words. The workflow only carries it."""


class RevertOrder(Payload):
    """A way back that has been accepted, with all that its steps need of the ledger: they go on while that is down.

    `command_id` is `None` where nobody asked: then `because` says what made us turn round.
    """

    command_id: str | None
    because: str
    accepted_losses: tuple[str, ...] = ()
    cluster: ClusterRecord


class ClaimRequest(Payload):
    migration_id: str
    first_run_id: str
    """`first_execution_run_id`: the same for all runs of one chain."""


class Claim(Payload):
    """`is_ours` is false when another run holds the migration: the asking run ends without any effect."""

    is_ours: bool
    generation: int


class RunContext(Payload):
    """What every look and every step has to know of the run that asks for it.

    `approvals`: gate → id of the command that the workflow accepted; its truth is looked up in the ledger. `position`: of the
    run that asks.
    """

    migration_id: str
    kind: str
    cluster: str
    generation: int
    policy: AnyPolicy = MigrationPolicy()
    approvals: dict[Label, str] = Field(default_factory=dict)
    revert: RevertOrder | None = None
    plan_id: str | None = None
    position: RunPosition | None = None


class AssessRequest(RunContext):
    """`seen`: the decision's digest when last assessed; a watch returns when it differs. `memory`: as the last look gave it.
    `unchecked_since`: when a comparison that was asked for was not taken by any worker. `has_begun`: it has taken a step, or
    nobody says so.
    """

    is_held: bool = False
    seen: str | None = None
    memory: Memory = Field(default_factory=dict)
    unchecked_since: datetime | None = None
    has_begun: bool = True


class Assessment(Payload):
    """What one look led to. At most 64 KiB; the whole observation is the artefact named by `observation`.

    `digest` covers what matters for a decision: the phase and the decision itself, not offsets and times; in a hold the nodes
    too. `evidence_hash`: of the evidence as it is now. `approvals`: those that the workflow asked about, as the ledger has
    them. `gate`: the open one, also behind a hold. `stands`: if the step only compares again, the gate or the wait that stays
    in force, and is shown, until the comparison says otherwise. `phases` and `numbers`: the way, and what is plotted, as the
    kind of migration names them. `title`: where it goes, and `readings`: what was measured, each in one line for people.
    `is_final`: no rollback is possible any more. `withdraws`: gates whose approvals count no more, with why; `ends`: the same,
    of those whose section ends with this phase. `memory`: what the kind hands to its next look.
    """

    phase: str | None
    decision: Decision
    stands: Gate | Wait | None = None
    digest: str
    observation: str
    observed_at: datetime
    evidence_hash: str = ""
    approvals: tuple[ApprovalSeen, ...] = ()
    nodes: tuple[NodeStatus, ...] = ()
    title: str = ""
    readings: str = ""
    is_final: bool = False
    withdraws: dict[Label, str] = Field(default_factory=dict)
    ends: dict[Label, str] = Field(default_factory=dict)
    phases: tuple[PhaseStep, ...] = ()
    numbers: tuple[Measured, ...] = ()
    gate: OpenGate | None = None
    steps_done: int = 0
    steps_total: int = 0
    unknown: tuple[str, ...] = ()
    memory: Memory = Field(default_factory=dict)
    alerts: tuple[Blocker, ...] = ()


class CarriedState(Payload):
    """What a run hands to the next one when it continues as new.

    `refused_commands`: with why. `waiting` and `gate`: as people saw them last, so that the age of a wait goes on. `untold`:
    events that the ledger has not taken yet, on a way back that does not wait for it. `seen`: the look that ended the phase.
    """

    generation: int
    phase: str | None = None
    step_count: int = 0
    restarts: dict[str, int] = Field(default_factory=dict)
    restarted_at: dict[str, datetime] = Field(default_factory=dict)
    approvals: dict[Label, str] = Field(default_factory=dict)
    applied_commands: tuple[str, ...] = ()
    refused_commands: dict[str, str] = Field(default_factory=dict)
    is_held: bool = False
    held_because: str = ""
    is_settled: bool = False
    event_count: int = 0
    revert: RevertOrder | None = None
    is_final: bool = False
    is_way_back_closed: bool = False
    waiting: Waiting | None = None
    hold: Hold | None = None
    gate: OpenGate | None = None
    untold: tuple[EventDraft, ...] = ()
    memory: Memory = Field(default_factory=dict)
    alerts: tuple[Blocker, ...] = ()
    seen: Assessment | None = None


class MigrationInput(Payload):
    """Starts a migration. `carried` is set by continue-as-new only.

    `is_held`: it looks, and does nothing before somebody resumes it or asks for the way back. `plan_id`: it begins only as
    long as the cluster is what this plan rests on.
    """

    migration_id: str
    kind: str
    cluster: str
    policy: AnyPolicy = MigrationPolicy()
    is_held: bool = False
    requested_by: str = ""
    plan_id: str | None = None
    carried: CarriedState | None = None


class StepRequest(RunContext):
    """`step_id` is the same for every attempt at this step and unlike any other step's.

    `looks`: how many looks in a row must decide this very step before it is taken. One, where the step before has just been
    proven; more, where something had to be waited for. `applied_commands`: what the migration had applied when it decided.
    """

    step_id: str
    step: Step
    applied_commands: tuple[str, ...] = ()
    looks: int = 1


class CompanionOutcome(Payload):
    """What became of a node that was rolled, or created, together with its step's. As in `StepOutcome`."""

    node_id: int
    is_done: bool
    blocked: str | None = None
    did_restart: bool = False
    changes: tuple[str, ...] = ()


class StepOutcome(Payload):
    """`blocked` says why a guard did not hold, right before the effect: then nothing was touched.

    `companions`: one for each that the step names; none where nothing was touched. `leadership`: what became of it afterwards.
    `client_pause_seconds`: the longest that a write of ours waited during the restart; `None` where it was not measured.
    `hold_because`: the step is done, and a person has to look before the next one.
    """

    is_done: bool
    blocked: str | None = None
    did_restart: bool = False
    seconds: float = 0.0
    attempt: int = 1
    changes: tuple[str, ...] = ()
    companions: tuple[CompanionOutcome, ...] = ()
    leadership: str = ""
    client_pause_seconds: float | None = None
    hold_because: str | None = None

    @property
    def is_all_done(self) -> bool:
        """With everybody who went along."""
        return self.is_done and all(companion.is_done for companion in self.companions)


class RecordRequest(Payload):
    """Events and the newest progress of one migration, for the ledger."""

    migration_id: str
    cluster: str
    generation: int
    events: tuple[EventDraft, ...] = ()
    progress: Progress | None = None


class AdoptRequest(Payload):
    """An order that came as a bare signal or update: `command_id` is made from the run, so a retry is the same command.

    An approval has a gate and a hash, a resume the gate that it may begin, a rollback the hash of its preview, or the losses
    that it accepts. `refused_because`: it was written down as one that counts, and the migration has refused it since.
    """

    migration_id: str
    command_id: str
    kind: CommandKind = CommandKind.APPROVE
    gate: Label | None = None
    evidence_hash: str | None = None
    preview_hash: str | None = None
    accept_loss: tuple[str, ...] = ()
    by: str = ""
    reason: str = ""
    refused_because: str | None = None


class RollbackRequest(Payload):
    """Verify a rollback that the workflow was sent, against the ledger and against what is seen now.

    `command_id` is `None` where `decide` itself turned round, for the reason in `because`.
    """

    migration_id: str
    kind: str
    cluster: str
    generation: int
    command_id: str | None
    because: str = ""
    policy: AnyPolicy = MigrationPolicy()


class RollbackAnswer(Payload):
    """Exactly one of the two: the order, or why there is none. `is_known`: the ledger has the command that asked for it."""

    order: RevertOrder | None = None
    refused_because: str | None = None
    is_known: bool = True


class CheckRequest(Payload):
    """Compare two sides of a cluster. Looks only, so it asks for no claim.

    `report_id` is the same for every attempt: a report is published once. `is_asked_for`: a person asked for it, though it may
    name the active migration.
    """

    report_id: str
    kind: str
    cluster: str
    check: CheckName = CheckName.METADATA
    migration_id: str | None = None
    policy: AnyPolicy = MigrationPolicy()
    is_asked_for: bool = False


class CheckOutcome(Payload):
    """What a check said; the whole report is in the ledger. `why`: in words, what an approver should know first."""

    report_id: str
    verdict: Verdict
    content_hash: str
    why: str = ""


class ApprovalMessage(Payload):
    """Update `approve` or `reject`, and signal `approve`. `command_id` is missing when a person signals by hand."""

    gate: str = ""
    by: str = ""
    reason: str = ""
    evidence_hash: str = ""
    command_id: str | None = None


class HoldMessage(Payload):
    """Update `hold` or `resume`, and signal `resume`.

    `begin`: the gate whose armed approval a resume may begin. `after`: of a hold, the gate whose irreversible section it came
    into.
    """

    by: str = ""
    reason: str = ""
    begin: str = ""
    after: str = ""
    command_id: str | None = None


class RollbackMessage(Payload):
    """Update or signal `rollback`: bound to a preview by its hash, or with the losses that are accepted, by name."""

    by: str = ""
    reason: str = ""
    preview_hash: str = ""
    accept_loss: tuple[str, ...] = ()
    command_id: str | None = None


class MigrationStatus(Payload):
    """Query `status`."""

    migration_id: str
    progress: Progress
    generation: int
    intent: Intent = Intent.FORWARD
    applied_commands: tuple[str, ...] = ()
    refused_commands: dict[str, str] = Field(default_factory=dict)
