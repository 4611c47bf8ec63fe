"""`MigrationPolicy`: what people may tune about one migration. Every duration is here, so that tests run in milliseconds."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import SchemaError

from domain.drift.tolerations import Toleration

FLUSHES = 3
"""How often the revert window starts the controllers again, so that they write what ZooKeeper lacks."""


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
            "it is no regular expression (of Rust's syntax, which has neither look-around nor references)"
        ) from error
    return pattern


Gated = Literal["finalize", "finalize-without-return", "fail-over"]
"""Gates that can be held to more than one approver."""


class AcceptedFinding(BaseModel):
    """A blocker of the preflight that somebody accepts, e.g. `PF06` with the object `*`, or of one object only."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str = Field(
        pattern=r"^(PF|RH)\d\d$", description="Of a check or of a rehearsal. Not of one that tells which cluster this is."
    )
    object: str = Field(min_length=1, max_length=300, description="As the finding names it; `*` means every object.")
    by: str = Field(min_length=1, max_length=200)
    reason: str = Field(min_length=1, max_length=1000)

    def covers(self, code: str, thing: str) -> bool:
        return self.code == code and self.object in {"*", thing}


class MigrationPolicy(BaseModel):
    """Travels with the migration from its start: a running migration keeps its policy. Durations are ISO 8601 or seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_soak: Duration = Field(
        default=timedelta(0),
        ge=timedelta(0),
        description="How long all brokers must have run in KRaft mode, in dual write, before finalize can be approved. "
        "The upstream guide mentions weeks; zero leaves the moment to the approver.",
    )
    poll_interval: Duration = Field(
        default=timedelta(seconds=1),
        gt=timedelta(0),
        description="Pause between two observations while something is awaited. "
        "Before the start, nine times what a look takes where that is longer.",
    )
    stable_samples: StrictInt = Field(
        default=3,
        ge=1,
        le=1000,
        description="Consecutive good observations that prove a restarted node well. One sample can be luck.",
    )
    restart_deadline: Duration = Field(
        default=timedelta(minutes=1),
        gt=timedelta(0),
        description="After this time a node that was restarted and is not yet proven is reported as a wait that names what is "
        "missing. Nothing else happens at the deadline: it is how long we look before we say so.",
    )
    stop_deadline: Duration = Field(
        default=timedelta(minutes=6),
        gt=timedelta(0),
        description="How long a clean stop may take. Kafka's own controlled shutdown may use five minutes. "
        "A broker that has not stopped by then is left alone and reported: it is never killed. A controller is, after half a "
        "minute, because that costs it nothing; only a failover waits for it.",
    )
    max_parallel: StrictInt = Field(
        default=1,
        ge=1,
        description="How many brokers may restart together on the way forward: such as share no partition, of one rack, and "
        "never the first of a roll. After each wave the partitions' preferred leaders lead again. One is one at a time.",
    )
    max_offset_distance: StrictInt = Field(
        default=16,
        ge=2,
        description="How far the offset in `/migration` may be behind the quorum's log for dual write to count as current. "
        "An idle quorum writes two records a second.",
    )
    may_be_unavailable: tuple[str, ...] = Field(
        default=(),
        description="Topics whose partitions may be without enough replicas while one of their brokers restarts: those that "
        "cannot spare one, such as topics with a replication factor of 1. Every other such topic stops the migration.",
    )
    cure_dual_write: StrictBool = Field(
        default=False,
        description="Whether dual write that has died silently is cured without asking, by a failover of the active "
        "controller. Otherwise the gate `fail-over` asks a person. Never done where the failover would make things worse.",
    )
    revert_failed_copy: StrictBool = Field(
        default=True,
        description="Whether a copy that cannot finish, and leaves the cluster without any controller, is reverted at once. "
        "The one way back that is taken without asking.",
    )
    min_zookeeper_silence: Duration = Field(
        default=timedelta(minutes=5),
        ge=timedelta(0),
        description="How long ZooKeeper must have been silent, without an answer to any look, before the gate "
        "`finalize-without-return` asks whether it is lost for good. A restart of the ensemble, or a broken link that somebody "
        "mends, is no such loss.",
    )
    copy_deadline: Duration = Field(
        default=timedelta(seconds=30),
        gt=timedelta(0),
        description="How long after KRaft's claim the copy may be without an active controller before it counts as failed.",
    )
    drain_deadline: Duration = Field(
        default=timedelta(seconds=30),
        gt=timedelta(0),
        description="How long the way back waits for ZooKeeper to have all that the quorum has, before it stops the "
        "controllers. What is not there by then is flushed afterwards.",
    )
    election_deadline: Duration = Field(
        default=timedelta(seconds=30),
        gt=timedelta(0),
        description="How long a broker may take to become ZooKeeper controller after the KRaft controllers have given way. "
        "Measured: 0.04 s. Afterwards it is an alarm.",
    )
    max_report_age: Duration = Field(
        default=timedelta(minutes=15),
        gt=timedelta(0),
        description="How old the newest report of the comparison of ZooKeeper with KRaft may be for finalize to be open. "
        "An older one is taken anew before anybody can approve. What is kept before Kafka's copy may be as old when it begins.",
    )
    compare_copy: StrictBool = Field(
        default=True,
        description="Whether ZooKeeper's metadata is kept before the last broker is restarted into the migration, which starts "
        "Kafka's copy, and the copy compared with it before any broker goes into KRaft mode.",
    )
    compare_messages: StrictBool = Field(
        default=True,
        description="Whether clients' data is looked at before the first broker is restarted, and compared with that before "
        "finalize is open: partitions' ends, committed offsets, and the newest record batches on each broker's disk.",
    )
    max_messages_age: Duration = Field(
        default=timedelta(days=1),
        gt=timedelta(0),
        description="How old the newest report of the comparison of clients' data may be for finalize to be open.",
    )
    approval_expires_after: Duration | None = Field(
        default=timedelta(days=1),
        gt=timedelta(0),
        description="How long an unused approval counts, for instance while the migration is held. Afterwards the gate asks "
        "again. `null`: it counts until a person holds or rejects.",
    )
    approvers: dict[Gated, Annotated[StrictInt, Field(ge=1, le=9)]] = Field(
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
    request_expires_after: Duration | None = Field(
        default=None,
        gt=timedelta(0),
        description="How long after somebody asked (started the migration, or resumed it last) its gates can be approved. "
        "Afterwards an operator asks again, by a hold and a resume. `null`: without an end.",
    )
    recheck_interval: Duration = Field(
        default=timedelta(minutes=1),
        gt=timedelta(0),
        description="After a report with drift, or one that was inconclusive: how long until the comparison is made again.",
    )
    stage_deadline: Duration = Field(
        default=timedelta(minutes=15),
        gt=timedelta(0),
        description="How long nothing measurable may move (no step done, no replica caught up, no broker registered) before an "
        "alert says so. Waiting for a person, a hold and the soak do not count. Nothing else happens at the deadline.",
    )
    canaries: StrictBool = Field(
        default=False,
        description="Whether after each restart of a broker it is tried what clients do: a topic, messages, a config, an ACL "
        "and a SCRAM credential, made under a reserved prefix, seen through Kafka and in ZooKeeper, and removed. As long as "
        "one of these fails, no other broker is restarted.",
    )
    max_client_pause: Duration | None = Field(
        default=None,
        gt=timedelta(0),
        description="The longest that a client's write may wait for its acknowledgement while a broker restarts. It is "
        "measured by writes of ours; a longer one holds the migration once that broker is well. `null`: it is not measured.",
    )
    accepted_findings: tuple[AcceptedFinding, ...] = Field(
        default=(),
        description="Blockers of the preflight that are accepted, by code and object, each with who accepted it and why. "
        "They are still shown.",
    )
    tolerated: tuple[Toleration, ...] = Field(
        default=(),
        description="Differences between ZooKeeper and KRaft that are accepted, by name, each with who accepted it and why.",
    )


def longest_window(policy: MigrationPolicy) -> timedelta:
    """How long the revert window may take: all its own deadlines, and a margin."""
    flushes = FLUSHES * (policy.restart_deadline + policy.drain_deadline)
    return policy.drain_deadline + flushes + policy.election_deadline + STEP_MARGIN


def is_reason_enough(reason: str, policy: MigrationPolicy) -> bool:
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


def why_not_to_be_met(policy: MigrationPolicy) -> str:
    """Why no restart could ever be proven well in time under a policy; empty where it could. For those who ask for one: what
    is under way keeps the policy that it has, whatever that is.
    """
    if policy.poll_interval > LONGEST_POLL:
        return "poll_interval: expected one minute or less; a number means seconds, so 0.5 is half a second"
    if (policy.stable_samples - 1) * policy.poll_interval >= policy.restart_deadline:
        return (
            "restart_deadline: expected more than poll_interval times (stable_samples - 1): of so many looks in a row the last "
            "comes that long after the first, and none is made after the deadline"
        )
    return ""
