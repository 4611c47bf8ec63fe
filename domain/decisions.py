"""What a kind of migration can decide to do next: `Step | Wait | Gate | Revert | Refuse | Done`. The same for every kind."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, computed_field

from domain.pages import docs_of

Label = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,40}$")]
"""The name that a kind of migration gives to what is its own: an action, a stage, a gate, a wait."""

ROLL_NODE, START_NODE = "roll-node", "start-node"
TRY_CANARIES, REMOVE_CANARIES = "try-canaries", "remove-canaries"
RELEASE_CONFIGURATION, COMPARE_END = "release-configuration", "compare-end"
"""Actions that more than one kind has."""


class DecisionModel(BaseModel):
    """Frozen and comparable: a decision is compared with the last one to see whether anything changed."""

    model_config = ConfigDict(frozen=True)


class Intent(StrEnum):
    """Where a migration is going. It turns once, and never back: whoever wants forward again starts another migration."""

    FORWARD = "forward"
    REVERT = "revert"


class Step(DecisionModel):
    """Do this to that node, or to the cluster. `gate`: the approval that the step needs, because it cannot be undone.

    `companions`: brokers to which the same is done at the same time.
    """

    decision: Literal["step"] = "step"
    action: Label
    node_id: int | None = None
    stage: Label
    gate: Label | None = None
    companions: tuple[int, ...] = ()

    @property
    def node(self) -> int:
        """The node that the step is about. Asking a step of the whole cluster is a mistake of the caller's."""
        if self.node_id is None:
            raise ValueError(f"step {self.action} is about no single node")
        return self.node_id

    @property
    def nodes(self) -> tuple[int, ...]:
        """The node with all that go along; none where the step is of the whole cluster."""
        return () if self.node_id is None else (self.node_id, *self.companions)


class Wait(DecisionModel):
    """Do nothing, for a reason. `objects` are what fails to hold, e.g. `broker-2`, `orders-3`; at most twenty are named."""

    decision: Literal["wait"] = "wait"
    reason: Label
    objects: tuple[str, ...] = ()
    detail: str = ""


class Gate(DecisionModel):
    """Wait for a person to approve, on the evidence with this hash."""

    decision: Literal["gate"] = "gate"
    name: Label
    evidence_hash: str


class Revert(DecisionModel):
    """Go back now, without being asked: waiting would hurt the cluster. `objects` and `detail` as in `Wait`."""

    decision: Literal["revert"] = "revert"
    reason: Label
    objects: tuple[str, ...] = ()
    detail: str = ""


class Severity(StrEnum):
    """What a finding means for whoever wants to start."""

    BLOCKER = "blocker"
    """Nothing starts before it is mended, or accepted by name in the policy."""
    WARNING = "warning"
    """It starts, and somebody should have read this."""
    INFO = "info"
    """Worth knowing."""


class Acceptance(DecisionModel):
    """Who accepted a blocker, and why."""

    by: str
    reason: str


class Finding(DecisionModel):
    """A check's result: PF code, what it is about, what was seen, what was expected, and what to do.

    `is_unverifiable`: it could not be checked with the access that we have, which is never a pass; `observed` says what is
    missing. `accepted`: it is a blocker that the policy accepts, and stops nothing. `is_momentary`: it comes and goes by
    itself, with time or load; a plan's hash leaves it out.
    """

    code: str
    severity: Severity = Severity.BLOCKER
    is_unverifiable: bool = False
    is_momentary: bool = False
    object: str
    observed: str
    expected: str
    fix: str
    accepted: Acceptance | None = None

    @computed_field(description="Page and anchor that explain the code.")  # type: ignore[prop-decorator]
    @property
    def docs(self) -> str:
        return docs_of(self.code)


class Refuse(DecisionModel):
    """The migration does not start. Nothing has been touched."""

    decision: Literal["refuse"] = "refuse"
    findings: tuple[Finding, ...]


class Done(DecisionModel):
    """The end that was wanted has been observed."""

    decision: Literal["done"] = "done"
    outcome: str


Decision = Annotated[Step | Wait | Gate | Revert | Refuse | Done, Field(discriminator="decision")]
