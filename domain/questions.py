"""What people ask, and what is answered: looks at a cluster that change nothing, by an activity each.

One model for each call, every field that may be added later with a default, so that old histories can still be read.
"""

from datetime import datetime

from pydantic import Field

from domain.contracts import Payload
from domain.diagnosis.blocker import Blocker
from domain.of_kind import AnyWanted
from domain.policy import AnyPolicy, MigrationPolicy
from domain.records import NodeStatus


class PreviewRequest(Payload):
    """A preview of the way back, or a runbook, for people. Looks at the cluster, changes nothing."""

    cluster: str
    kind: str
    policy: AnyPolicy = MigrationPolicy()


class Loss(Payload):
    """Something that the way back cannot keep. Accepted by its name, e.g. `metadata-changes`, `edits-of-broker-1`."""

    name: str
    what: str


class PreviewStep(Payload):
    """One step of the way back, in words. `node` is `None` for a step of the whole cluster."""

    what: str
    node: str | None = None
    restarts: bool = False


class FileRestoration(Payload):
    """What becomes of one node's properties file. `how`: `archive`, `inverse-edit` or `removed`.

    `changes` is the difference to the file as it is now, key by key, without any secret's value.
    """

    node: str
    path: str
    how: str
    sha256: str | None
    changes: tuple[str, ...] = ()


class RollbackPreview(Payload):
    """What a rollback would do, from what is seen now. `preview_hash` covers only what is material: what would be lost, what
    each file becomes, and the cluster's specification.

    `controllerless_seconds`: expected time without any controller, as measured. `obstacles`: what it would stop at, or goes on
    without, each with what mends it; no matter of consent.
    """

    cluster: str
    observed_at: datetime
    phase: str | None
    is_possible: bool
    why_not: str = ""
    steps: tuple[PreviewStep, ...] = ()
    restarts: dict[str, int] = Field(default_factory=dict)
    controllerless_seconds: float = 0.0
    losses: tuple[Loss, ...] = ()
    obstacles: tuple[str, ...] = ()
    files: tuple[FileRestoration, ...] = ()
    unknown: tuple[str, ...] = ()
    preview_hash: str = ""


class RunbookAction(Payload):
    """One manual action: what it does, the commands for a POSIX shell, on which node (`None`: anywhere that reaches the
    cluster), and how to see that it worked before the next one is taken.
    """

    title: str
    node: str | None
    host: str | None
    commands: tuple[str, ...]
    check: str = ""


class Runbook(Payload):
    """The manual way from this very state, with Kafka's and ZooKeeper's own tools only, forward and back."""

    cluster: str
    observed_at: datetime
    phase: str | None
    forward: tuple[RunbookAction, ...]
    back: tuple[RunbookAction, ...]
    why_no_way_back: str = ""
    unknown: tuple[str, ...] = ()


class ObserveRequest(Payload):
    """While a migration is active the cluster is seen as that one sees it."""

    cluster: str


class Gauges(Payload):
    """The numbers of a moment, for people. `None`: unknown or absent."""

    migration_state: str | None = None
    migrating_brokers: int | None = None
    write_behind_lag: int | None = None
    offset_distance: int | None = None
    under_replicated: int | None = None
    quorum_leader: str | None = None
    zookeeper_controller: str | None = None


class ClusterSight(Payload):
    """What is seen now: the answer of `GET /clusters/{name}/observation`."""

    cluster: str
    observed_at: datetime
    phase: str | None
    nodes: tuple[NodeStatus, ...]
    gauges: Gauges
    unknown: tuple[str, ...]


class PlanRequest(Payload):
    """Make a plan. Looks only. `plan_id` is the same for every attempt: a plan is published once."""

    plan_id: str
    cluster: str
    kind: str
    policy: AnyPolicy = MigrationPolicy()
    wanted: AnyWanted
    requested_by: str
    requested_at: datetime


class PlanOutcome(Payload):
    """What came of it; the whole plan is in the ledger."""

    plan_id: str
    plan_hash: str
    is_blocked: bool


class BlockersRequest(Payload):
    """Why nothing happens, from a fresh look. `in_hand`: the nodes that a step was working on when it was asked, since
    `step_since`. `rolled`: those that the migration has given another file. `restart_seconds`: the longest restart so far, 0
    where there was none.
    """

    migration_id: str
    cluster: str
    kind: str
    policy: AnyPolicy = MigrationPolicy()
    in_hand: tuple[str, ...] = ()
    step_since: datetime | None = None
    rolled: tuple[str, ...] = ()
    restart_seconds: float = 0.0


class BlockersSeen(Payload):
    """What a look found. `explained`: the reasons of waits that need no other entry. `unlooked`: what could not be looked
    up. `changed`: entries of machines on which something has changed, to be told beside one that is a trouble. `late`: of
    what this look alone had no time for, to be told where nothing else is.
    """

    observed_at: datetime
    phase: str | None
    blockers: tuple[Blocker, ...]
    explained: tuple[str, ...] = ()
    unlooked: tuple[str, ...] = ()
    changed: tuple[Blocker, ...] = ()
    late: tuple[Blocker, ...] = ()
