"""What people ask for later: migrations, commands, events. The ledger keeps them; API and activities exchange them."""

import hashlib
import json
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from domain.cluster import ClusterSpec
from domain.decisions import Finding, Intent, Label
from domain.diagnosis.blocker import Blocker
from domain.of_kind import AnyWanted
from domain.policy import AnyPolicy


class Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class MigrationState(StrEnum):
    """A migration's life. The first five are active: a cluster has at most one active migration."""

    PLANNING = "planning"
    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"
    REVERTING = "reverting"
    REFUSED = "refused"
    SUCCEEDED = "succeeded"
    REVERTED = "reverted"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE_STATES = frozenset(
    {
        MigrationState.PLANNING,
        MigrationState.RUNNING,
        MigrationState.WAITING,
        MigrationState.HELD,
        MigrationState.REVERTING,
    }
)


class CommandKind(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    HOLD = "hold"
    RESUME = "resume"
    ROLLBACK = "rollback"


class ApprovalState(StrEnum):
    """The life of an approval. `domain.approvals` has the rules, the ledger applies them."""

    COUNTED = "counted"
    """It counts, and the gate needs approvals of more people."""
    ARMED = "armed"
    """It counts, and nothing irreversible has begun under it."""
    CONSUMED = "consumed"
    """An attempt has taken it, and what it allows is under way: nothing takes that back."""
    DONE = "done"
    """What it allowed has ended."""
    WITHDRAWN = "withdrawn"
    """Rejected while it was armed."""
    VOID = "void"
    """A hold, a rollback, another approval or other evidence came before it was consumed."""
    EXPIRED = "expired"
    """Nothing consumed it in time."""


HOLDING = frozenset({CommandKind.HOLD, CommandKind.REJECT})
"""These count from the moment at which they are written."""

DECIDING = frozenset({CommandKind.APPROVE, CommandKind.REJECT})
LIFTING = frozenset({CommandKind.RESUME, CommandKind.ROLLBACK})
"""These count once the migration has applied them: before it knows that it is held, what it had decided is not wanted."""


class Command(Record):
    """What a person asked for. Written before it is sent.

    `gate`: of an approval or a rejection its gate; of a resume the one that it may begin; of a hold the one whose
    irreversible section it came into, and after which it takes effect. A rollback is bound to the preview that was looked
    at, by its hash, or names the losses that it accepts.

    Of an approval: `expires_at`; `consumed_at` and `consumed_by`, the attempt (a step's id) that was the first to need it;
    `closed_at`, `closed_as` and `closed_because` once it counts no more. `waits_for_others`: the gate needs more people, of
    whom this was not the last. `break_glass`: an admin takes four eyes on themselves.
    """

    id: str
    migration_id: str
    kind: CommandKind
    gate: Label | None = None
    evidence_hash: str | None = None
    preview_hash: str | None = None
    accept_loss: tuple[str, ...] = ()
    reason: str = ""
    by: str
    via: str
    at: datetime
    delivered_at: datetime | None = None
    refused_because: str | None = None
    expires_at: datetime | None = None
    consumed_at: datetime | None = None
    consumed_by: str | None = None
    closed_at: datetime | None = None
    closed_as: ApprovalState | None = None
    closed_because: str | None = None
    waits_for_others: bool = False
    break_glass: bool = False


class HoldEffect(StrEnum):
    """When an accepted hold takes effect."""

    NOW = "now"
    AFTER_STEP = "after-step"
    """The step in hand is finished first."""
    AFTER_SECTION = "after-section"
    """An irreversible section has begun, and is finished first: half of it is worse than either end."""


class Hold(Record):
    """A hold, from the moment at which it was accepted until it is lifted."""

    by: str
    reason: str
    since: datetime
    takes_effect: HoldEffect


class ApprovalSeen(Record):
    """An approval as the ledger has it now. `until`: when it expires. `evidence_hash`: what it is bound to."""

    command_id: str
    gate: Label
    state: ApprovalState
    by: str
    at: datetime
    until: datetime | None = None
    consumed_at: datetime | None = None
    evidence_hash: str | None = None


class Waiting(Record):
    """Why a migration waits, since when, and for whom (`people`, or the parts of the cluster in `objects`)."""

    reason: str
    means: str
    since: datetime
    objects: tuple[str, ...] = ()
    detail: str = ""
    for_people: bool = False


class NodeStatus(Record):
    """One node as people see it. `stage` is its file's, `mode` its running process's. `unknown` where nothing answered.

    `configuration_management`: `runs`, `paused`, `paused-by-us` (by a migration, which resumes it at its end) or `unknown`;
    `None` where the specification names none. `original`: where the node keeps its properties file from before the migration.
    `restarts` and `last_restart`: those of this migration.
    """

    name: str
    role: str
    mode: str
    stage: str
    is_ready: bool
    restarts: int = 0
    last_restart: datetime | None = None
    configuration_management: str | None = None
    original: str | None = None


class OpenGate(Record):
    """A gate that waits for a person, and what the approval binds to. `caution`: what to try before an approval."""

    name: Label
    evidence_hash: str
    since: datetime
    evidence: dict[str, Any]
    caution: str = ""


class PhaseStep(Record):
    """One phase of the way that a kind of migration goes. `is_irreversible`: from here on there is no rollback."""

    name: str
    title: str
    is_irreversible: bool = False


class Measured(Record):
    """One number of a moment, under the name that its kind of migration gives it. `None`: unknown. `says`: its meaning, where
    the number stands for a state.
    """

    name: str
    value: float | None
    says: str = ""


class Sample(Record):
    """The numbers of one observation, to be plotted over time."""

    at: datetime
    numbers: tuple[Measured, ...]


OBSERVE = "observe"
"""What is in hand while the cluster is observed and nothing else is done; before the start with all checks."""


class InHand(Record):
    """What is being done: a step, or an observation, which has no stage. `nodes`: by name, all of a wave; `cluster` where it is
    cluster-wide. `does`: in one line for people. It has no number: events number every attempt, and `steps_total` counts what
    the nodes need.
    """

    action: Label
    nodes: tuple[str, ...]
    stage: Label | None
    does: str = ""
    since: datetime

    @classmethod
    def observing(cls, since: datetime) -> "InHand":
        return cls(action=OBSERVE, nodes=("cluster",), stage=None, since=since)


class Progress(Record):
    """Where a migration stands: the part of its record that changes while it runs. `steps_total`: 0 before the first
    observation. `run_id`: of the run that says so; a migration continues in a new run after each phase. `phases`: the kind's
    way, in order; empty before the first observation. `sample`: the numbers of the observation that this rests on."""

    state: MigrationState
    intent: Intent = Intent.FORWARD
    phase: str | None = None
    waiting: Waiting | None = None
    hold: Hold | None = None
    in_hand: InHand | None = None
    nodes: tuple[NodeStatus, ...] = ()
    gate: OpenGate | None = None
    steps_done: int = 0
    steps_total: int = 0
    findings: tuple[Finding, ...] = ()
    outcome: str | None = None
    alerts: tuple[Blocker, ...] = ()
    run_id: str | None = None
    phases: tuple[PhaseStep, ...] = ()
    sample: Sample | None = None

    def ended(self, state: MigrationState, outcome: str | None = None) -> "Progress":
        """The same at its end: nothing is waited for or in hand."""
        over = {"waiting": None, "gate": None, "in_hand": None}
        return self.model_copy(update={"state": state, "outcome": outcome, **over})


class MigrationRecord(Record):
    """One run of one kind on one cluster. `generation` is the fence: an effect of an older generation is refused.

    `plan_id`: the plan that it was started with, if any. `run_id`: the first run, which names the whole chain of them.
    """

    id: str
    cluster: str
    cluster_id: str
    kind: str
    policy: AnyPolicy
    wanted: AnyWanted
    spec_revision: int
    generation: int | None = None
    requested_by: str
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    workflow_id: str
    run_id: str | None = None
    plan_id: str | None = None
    progress: Progress

    @property
    def newest_run_id(self) -> str | None:
        """The newest run that has recorded anything."""
        return self.progress.run_id or self.run_id


class ClusterRecord(Record):
    """A registered cluster. `revision` counts changes of the spec, `generation` the migrations that claimed it."""

    spec: ClusterSpec
    revision: int
    generation: int
    created_at: datetime
    updated_at: datetime


SPECIFICATION_REVISED = "specification-revised"
"""The event of a migration that has succeeded, and has registered what the cluster is now: `revision`."""


class EventDraft(Record):
    """Something worth telling, before the ledger gives it its place. Drafts with the same `key` are one event."""

    key: str = Field(max_length=200)
    kind: str
    cluster: str
    migration_id: str | None = None
    at: datetime
    data: dict[str, Any] = Field(default_factory=dict)


class Event(Record):
    """An entry of the append-only log. `hash` covers the entry and `prev_hash`, so that a change shows."""

    seq: int
    key: str
    kind: str
    cluster: str
    migration_id: str | None
    at: datetime
    data: dict[str, Any]
    prev_hash: str
    hash: str


GENESIS_HASH = "0" * 64


def event_hash(seq: int, draft: EventDraft, prev_hash: str) -> str:
    """Sha256 over the canonical JSON of an event's place, content and predecessor, as hex."""
    body = {"seq": seq, "prev_hash": prev_hash, **draft.model_dump(mode="json")}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
