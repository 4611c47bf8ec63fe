"""What a kind of migration can decide to do next: `Step | Wait | Gate | Revert | Refuse | Done`. The same for every kind."""

import re
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, computed_field

from domain.pages import docs_of

LABEL = re.compile(r"^[a-z][a-z0-9-]{0,40}$")
Label = Annotated[str, StringConstraints(pattern=LABEL)]
"""The name that a kind of migration gives to what is its own: an action, a stage, a gate, a wait."""

ROLL_NODE, START_NODE = "roll-node", "start-node"
TRY_CANARIES, REMOVE_CANARIES = "try-canaries", "remove-canaries"
RELEASE_CONFIGURATION, COMPARE_END = "release-configuration", "compare-end"
"""Actions that more than one kind has."""


HEARTBEAT = timedelta(seconds=20)
"""How long a worker may be silent before another takes over: short, so that a killed one is missed soon."""
CHECK_TIMEOUT = timedelta(hours=1)
"""What one comparison may take, of the largest cluster, on the slowest machine."""

TOLD = frozenset({"execution", "means", "for_people"})
"""How a decision is carried out, and its words for people: never compared, and no part of its digest. So a release that tells
it in other words takes over in the middle of a step."""


class DecisionModel(BaseModel):
    """Frozen and comparable: a decision is compared with the last one to see whether anything changed."""

    model_config = ConfigDict(frozen=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._decided == other._decided

    def __hash__(self) -> int:
        return hash(self._decided)

    @property
    def _decided(self) -> tuple[object, ...]:
        return tuple(value for name, value in self if name not in TOLD)


class Intent(StrEnum):
    """Where a migration is going. It turns once, and never back: whoever wants forward again starts another migration."""

    FORWARD = "forward"
    REVERT = "revert"


class Execution(DecisionModel):
    """How a step is carried out: all that the interpreter has to know of it. A function of the step and the policy.

    `activity`, `queue`: what does it, and where. `summary`: what it does, in one line; `{node}` stands for its nodes.
    `limit`: of one attempt, all its own deadlines and a margin. `heartbeat`: how long its worker may be silent.
    `check`: the comparison that it makes, if it only looks. `given_up_after`: nothing waits for this comparison: it is tried
    for so long with all attempts, no order drops it, and its failure stops nothing.
    `is_urgent`: it is tried again immediately, because the cluster may be without a controller until it is done.
    `needs_agreement`: several looks in a row have to decide it, also right after a step that has proven its node.
    `proves`: after it one look is enough for the next step. `measures_pause`: its outcome says how long clients waited.
    `ends_approval`: why the approval of its gate is done with it; empty if further steps go on under that.
    """

    activity: str
    queue: str
    summary: str
    limit: timedelta
    heartbeat: timedelta = HEARTBEAT
    check: Label | None = None
    given_up_after: timedelta | None = None
    is_urgent: bool = False
    needs_agreement: bool = False
    proves: bool = False
    measures_pause: bool = False
    ends_approval: str = ""


class Step(DecisionModel):
    """Do this to that node, or to the cluster. `gate`: the approval that the step needs, because it cannot be undone.

    `companions`: nodes to which the same is done at the same time. `execution`: as the kind of migration describes it.
    """

    decision: Literal["step"] = "step"
    action: Label
    node_id: int | None = None
    stage: Label
    gate: Label | None = None
    companions: tuple[int, ...] = ()
    execution: Execution | None = None

    @property
    def how(self) -> Execution:
        """How it is carried out. Asking that of a step that its kind has not described is a mistake of the caller's."""
        if self.execution is None:
            raise ValueError(f"step {self.action} does not say how it is carried out")
        return self.execution

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
    """Do nothing, for a reason. `objects` are what fails to hold, e.g. `broker-2`, `orders-3`; at most twenty are named.

    `means`: in words, and what to do. `for_people`: a person ends it.
    """

    decision: Literal["wait"] = "wait"
    reason: Label
    objects: tuple[str, ...] = ()
    detail: str = ""
    means: str = ""
    for_people: bool = False


class Gate(DecisionModel):
    """Wait for a person to approve, on the evidence with this hash."""

    decision: Literal["gate"] = "gate"
    name: Label
    evidence_hash: str


class Revert(DecisionModel):
    """Go back now, without being asked: waiting would hurt the cluster. The rest as in `Wait`."""

    decision: Literal["revert"] = "revert"
    reason: Label
    objects: tuple[str, ...] = ()
    detail: str = ""
    means: str = ""
    for_people: bool = False


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
