"""What people may tune about one migration of any kind. Every duration is here, so that tests run in milliseconds.

Generic code takes the narrowest base that has what it reads; a kind inherits `MigrationPolicy`. On the wire it is flat.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    StrictBool,
    StrictInt,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import SchemaError

from domain.drift.tolerations import Toleration
from domain.of_kind import OfKind

STEP_MARGIN = timedelta(minutes=5)
"""What a step may take beyond its own deadlines: looks, writes, a JVM that formats."""


def _refuse_bool(value: object) -> object:
    """Pydantic takes true for one second. `None` is no duration."""
    return None if isinstance(value, bool) else value


LONGEST = timedelta(days=3660)
"""Ten years: any moment that comes after such a time can be written down."""

Duration = Annotated[timedelta, BeforeValidator(_refuse_bool), Field(le=LONGEST)]


def _readable_pattern(pattern: str) -> str:
    try:
        TypeAdapter(Annotated[str, Field(pattern=pattern)])
    except SchemaError as error:
        raise ValueError(
            "it is not a regular expression (in Rust's syntax, which has neither look-around nor references)"
        ) from error
    return pattern


GateText = Annotated[str, Field(pattern=r"^[a-z]+(-[a-z]+)*$", max_length=60)]
"""Name of a gate. Which there are, the kind of migration says (`Kind.gates`)."""


class AcceptedFinding(BaseModel):
    """A blocker of the preflight that somebody accepts, e.g. `PF06` with the object `*`, or of one object only."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str = Field(
        pattern=r"^[A-Z]{2}\d\d$", description="Code of a check or of a rehearsal, except those that identify the cluster."
    )
    object: str = Field(min_length=1, max_length=300, description="The object that the finding names; `*` means every object.")
    by: str = Field(min_length=1, max_length=200)
    reason: str = Field(min_length=1, max_length=1000)

    def covers(self, code: str, thing: str) -> bool:
        return self.code == code and self.object in {"*", thing}


class RollPolicy(OfKind):
    """How nodes are observed and restarted."""

    poll_interval: Duration = Field(
        default=timedelta(seconds=1),
        gt=timedelta(0),
        description="Pause between two observations while the migration waits. Before the start, nine times the duration of "
        "an observation if that is longer.",
    )
    stable_samples: StrictInt = Field(
        default=3,
        ge=1,
        le=1000,
        description="Consecutive good observations that prove a restarted node healthy. One sample can be luck.",
    )
    restart_deadline: Duration = Field(
        default=timedelta(minutes=1),
        gt=timedelta(0),
        description="After this time a node that was restarted and is not yet proven is reported as a wait that names what "
        "is missing. Nothing else happens at the deadline: the observation continues.",
    )
    stop_deadline: Duration = Field(
        default=timedelta(minutes=6),
        gt=timedelta(0),
        description="How long a clean stop may take. Kafka's own controlled shutdown may use five minutes. A broker that "
        "has not stopped by then is left alone and reported: it is never killed. A controller is killed after "
        "half a minute, because that does it no harm; only a failover waits for it.",
    )
    stage_deadline: Duration = Field(
        default=timedelta(minutes=15),
        gt=timedelta(0),
        description="An alert follows if nothing measurable moves for this long: no step done, no replica caught up, no "
        "broker registered. Waiting for a person, a hold and the soak do not count. Nothing else happens at the "
        "deadline.",
    )
    max_parallel: StrictInt = Field(
        default=1,
        ge=1,
        description="How many brokers may restart together on the way forward: brokers of one rack that share no partition, "
        "and never the first of a roll. After each wave the partitions' preferred leaders lead again. With 1, "
        "brokers restart one at a time.",
    )
    may_be_unavailable: tuple[str, ...] = Field(
        default=(),
        description="Topics whose partitions may lack replicas while one of their brokers restarts: those that cannot do "
        "without any one replica, such as topics with a replication factor of 1. Every other such topic stops "
        "the migration.",
    )
    accepted_findings: tuple[AcceptedFinding, ...] = Field(
        default=(),
        description="Blockers of the preflight that are accepted, by code and object, each with who accepted it and why. "
        "They are still shown.",
    )


class ApprovalPolicy(OfKind):
    """Who approves, with which reason, and for how long."""

    approvers: dict[GateText, Annotated[StrictInt, Field(ge=1, le=9)]] = Field(
        default={},
        description='How many people have to approve a gate, such as `{"finalize": 2}`; one if it is not named. The '
        "requester of the migration never counts. Applies if authentication is on.",
    )
    reason_pattern: Annotated[str, AfterValidator(_readable_pattern)] | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="A regular expression that the reason of an approval has to contain, such as `CHANGE-[0-9]+`. "
        "`null`: any reason.",
    )
    approval_expires_after: Duration | None = Field(
        default=timedelta(days=1),
        gt=timedelta(0),
        description="How long an unused approval counts, for instance while the migration is held. Afterwards the gate asks "
        "again. `null`: it counts until a person holds or rejects.",
    )
    request_expires_after: Duration | None = Field(
        default=None,
        gt=timedelta(0),
        description="How long gates can be approved after the migration was requested (started, or last resumed). "
        "Afterwards an operator asks again, by a hold and a resume. `null`: for ever.",
    )


class ClientPolicy(OfKind):
    """What is tried as clients do it, while brokers restart."""

    canaries: StrictBool = Field(
        default=False,
        description="Whether Keeperless does after each restart of a broker what clients do: a topic, messages, a config, "
        "an ACL and a SCRAM credential are created under a reserved prefix, checked through Kafka and in "
        "ZooKeeper, and removed. While one of these fails, no other broker restarts.",
    )
    max_client_pause: Duration | None = Field(
        default=None,
        gt=timedelta(0),
        description="Longest time that a client's write may wait for its acknowledgement while a broker restarts. "
        "Keeperless measures it with writes of its own; a longer one holds the migration once that broker is "
        "healthy. `null`: it is not measured.",
    )


class CheckPolicy(OfKind):
    """Comparisons: which are made, how old their reports may be, and what they may differ in."""

    max_report_age: Duration = Field(
        default=timedelta(minutes=15),
        gt=timedelta(0),
        description="Maximum age of the newest comparison of ZooKeeper with KRaft when finalize is approved. If it is "
        "older, the comparison is repeated first. The metadata that is kept before Kafka's copy may be as old "
        "when the copy begins.",
    )
    compare_messages: StrictBool = Field(
        default=True,
        description="Whether clients' data is recorded before the first broker restarts, and compared with that before "
        "finalize opens: partitions' ends, committed offsets, and the newest record batches on each broker's "
        "disk.",
    )
    max_messages_age: Duration = Field(
        default=timedelta(days=1),
        gt=timedelta(0),
        description="Maximum age of the newest comparison of clients' data when finalize is approved.",
    )
    recheck_interval: Duration = Field(
        default=timedelta(minutes=1),
        gt=timedelta(0),
        description="Pause before a comparison is repeated that found drift or was inconclusive.",
    )
    tolerated: tuple[Toleration, ...] = Field(
        default=(),
        description="Differences between ZooKeeper and KRaft that are accepted, by name, each with who accepted it and why.",
    )


class MigrationPolicy(CheckPolicy, ClientPolicy, ApprovalPolicy, RollPolicy):
    """What every kind's policy has. A kind's own fields ride along unread until `of` reads them.

    Travels with the migration from its start: a running migration keeps its policy. Durations are ISO 8601 or seconds.
    """


AnyPolicy = SerializeAsAny[MigrationPolicy]
"""A field for the policy of any kind: written with all that it has."""


def is_reason_enough(reason: str, policy: ApprovalPolicy) -> bool:
    """Whether a reason has the form that a policy demands. Matched by pydantic, in linear time whatever the pattern is."""
    if policy.reason_pattern is None:
        return True
    try:
        TypeAdapter(Annotated[str, Field(pattern=policy.reason_pattern)]).validate_python(reason)
    except ValidationError:
        return False
    return True


MOST_DOUBLINGS = 8
"""Of the pause after refused steps: from one poll interval up to 256 of them, about four minutes."""


def pause_after(refused: int, poll_interval: timedelta) -> timedelta:
    """Before a step is tried again that was refused so many times in a row, once at least."""
    return poll_interval * (1 << min(refused - 1, MOST_DOUBLINGS))


LONGEST_POLL = timedelta(minutes=1)


def why_not_to_be_met(policy: RollPolicy) -> str:
    """Why no restart could ever be proven well in time under a policy; empty where it could. For those who ask for one: what
    is under way keeps the policy that it has, whatever that is.
    """
    if policy.poll_interval > LONGEST_POLL:
        return "poll_interval: expected one minute or less; a number means seconds, so 0.5 is half a second"
    if (policy.stable_samples - 1) * policy.poll_interval >= policy.restart_deadline:
        return (
            "restart_deadline: expected more than poll_interval times (stable_samples - 1): the last of that many "
            "observations in a row comes that long after the first, and none is made after the deadline"
        )
    return ""
