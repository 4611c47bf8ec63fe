"""What every search for causes gets, and what it gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from domain.checks.check import some
from domain.clocks import is_over
from domain.cluster import ClusterSpec, Role, host_of
from domain.decisions import Finding
from domain.diagnosis.blocker import Blocker, blocker
from domain.diagnosis.causes.hints import ConnectionLimit, Hints, limits_in
from domain.diagnosis.logs.lines import CLOCKS
from domain.health.liveness import GONE, Liveness
from domain.health.quorum import QuorumLeader, quorum_leader
from domain.health.replication import partitions_needing
from domain.observed.observation import NodeView, Observation
from domain.policy import MigrationPolicy
from domain.records import Waiting
from domain.waits import WaitReason

MAX_NAMED = 5
"""How many partitions, lines or znodes one entry names; the observation has them all."""
SLOW = timedelta(seconds=8)
"""From which on it is told of a node in our hands what it lacks, or that it runs still. Most have stopped, or serve, by then; a
large broker may take minutes, and who asks is told what it is waited for."""
USUAL_RESTART = timedelta(seconds=30)
"""What a healthy restart takes, from the stop to the proof, where none of the migration's own was measured."""
STOPPED_BY = timedelta(seconds=30)
"""From the beginning of a step, which looks first, on a busy machine."""


@dataclass(frozen=True)
class Cause:
    """One entry, and the waits that need none of their own because of it. `is_proved`: its own fix is the cure; what may
    hamper whom it is about besides comes after it. `is_only_late`: nothing says that anything is wrong but that it lasts."""

    blocker: Blocker
    explains: frozenset[str] = frozenset()
    is_proved: bool = False
    is_only_late: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.blocker.code, self.blocker.object


@dataclass(frozen=True)
class LostChange:
    """A change of metadata that ZooKeeper has not taken from `controller`, which leads the quorum.

    `words`: what its log says. `untold`: brokers that were not told of the change. `before_restart`: a further sentence, what
    has to hold before that controller is restarted.
    """

    controller: str
    words: str
    untold: frozenset[int]
    before_restart: str


Consequence = Literal["broker-not-registered", "controller-without-session", "no-stable-leader"]
"""What holds up the waits of one kind besides those of every kind."""


@dataclass(frozen=True)
class Facts:
    """What the kind of migration says of the cluster.

    `liveness`: by node id; unknown also of a process that the kind cannot classify. `hidden_gauges`: by node id, an MBean that
    its process had when it was proven, and that its metrics do not show any more. `in_zookeeper`: nodes that serve, and have a
    session with ZooKeeper. `in_quorum`: brokers that serve, and register with the controllers. `not_caught_up`: controllers;
    `never_registered`: those of which the leader's log has no registration.
    `started_with_zookeeper`: brokers that do not come up without ZooKeeper. `left_behind`: brokers that serve, and get no
    metadata any more. `uses_zookeeper`: whether ZooKeeper is still a part of the cluster. `is_kraft_in_charge`: whether the
    quorum's log has the cluster's metadata;
    `is_zookeeper_in_charge`: whether ZooKeeper has. `is_claim_lost`: though it has, another or nobody has `/controller`.
    `is_registration_wrong`: the quorum counts other brokers than serve. `is_leader_stuck`: its leader does not get on with the
    migration's work. `is_leaderless`: no broker has become the controller. `patience`: reasons of waits that are no sign of
    trouble. `holds_up`: waits of the kind that a generic cause explains besides.
    """

    liveness: Mapping[int, Liveness]
    hidden_gauges: Mapping[int, str] = field(default_factory=dict)
    in_zookeeper: frozenset[int] = frozenset()
    in_quorum: frozenset[int] = frozenset()
    not_caught_up: frozenset[int] = frozenset()
    never_registered: frozenset[int] = frozenset()
    started_with_zookeeper: frozenset[int] = frozenset()
    left_behind: frozenset[int] = frozenset()
    uses_zookeeper: bool = True
    is_kraft_in_charge: bool = False
    is_zookeeper_in_charge: bool = False
    is_claim_lost: bool = False
    is_registration_wrong: bool = False
    is_leader_stuck: bool = False
    is_leaderless: bool = False
    patience: frozenset[str] = frozenset()
    holds_up: Mapping[Consequence, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One look with all that it is judged by. `in_hand`: nodes that a step of ours works on, `step_since` when it began: what
    they lack is no blocker as long as they are `excused`. `rolled`: nodes that the migration has given another file.
    `usual_restart`: for so long a node in our hands that is merely not well yet is no blocker.
    """

    observation: Observation
    spec: ClusterSpec
    policy: MigrationPolicy
    facts: Facts
    hints: Hints = field(default_factory=Hints)
    waiting: Waiting | None = None
    alerts: tuple[Blocker, ...] = ()
    in_hand: frozenset[str] = frozenset()
    step_since: datetime | None = None
    rolled: frozenset[str] = frozenset()
    usual_restart: timedelta = USUAL_RESTART

    @property
    def leader(self) -> QuorumLeader | None:
        """Of the controller quorum."""
        return quorum_leader(self.observation, self.spec)

    def log(self, node_id: int) -> Sequence[str]:
        """The last lines of a node's output, as far as they were read."""
        return self.hints.logs.get(node_id, ())

    def cause(
        self,
        code: str,
        about: str,
        *explains: str,
        observed: str,
        expected: str,
        fix: str,
        since: datetime | None = None,
        is_proved: bool = False,
        is_only_late: bool = False,
    ) -> Cause:
        """`code` is a wait's reason or another stable one; it explains itself."""
        reasons = frozenset({*explains, code})
        begun = since if since is not None else self.since(code, about, reasons)
        entry = blocker(code, about, observed=observed, expected=expected, fix=fix, since=begun)
        return Cause(entry, reasons, is_proved, is_only_late)

    @property
    def lost_change(self) -> LostChange | None:
        """Of kinds in which the quorum writes to ZooKeeper."""
        return None

    def name(self, node_id: int) -> str:
        return self.spec.node_name(node_id)

    def broker_name(self, broker_id: int) -> str:
        """Also of one that the specification does not have."""
        return self.name(broker_id) if any(b.id == broker_id for b in self.spec.brokers) else f"broker {broker_id}"

    def is_unresolved(self, address: str) -> bool:
        """Of a URL, or of `host:port`: whether keeperless-activities cannot even tell where it is."""
        return host_of(address) in self.hints.unresolved

    def properties(self, node_id: int) -> Mapping[str, str]:
        """Of a node's file as it lies there; empty where it could not be read."""
        disk = self.observation.node(node_id).disk
        return disk.file.properties if disk is not None and disk.file is not None else {}

    @property
    def tight_limits(self) -> list[ConnectionLimit]:
        """Of connections: those that are set in ZooKeeper, and of files those that nobody has overridden there."""
        limits = self.hints.limits
        files = {broker.properties_file: self.properties(broker.id) for broker in self.spec.brokers}
        written = [limit for path, config in files.items() for limit in limits_in(path, config)]
        overridden = {limit.key for limit in limits}
        return [limit for limit in (*limits, *(one for one in written if one.key not in overridden)) if limit.is_tight]

    def liveness(self, node_id: int) -> Liveness:
        return self.facts.liveness.get(node_id, Liveness.UNKNOWN)

    def ids(self, role: Role, *states: Liveness) -> frozenset[int]:
        return frozenset(n.id for n in self.spec.nodes if self.liveness(n.id) in states and self.spec.role(n.id) is role)

    @property
    def unregistered(self) -> list[int]:
        """Brokers that serve, and are to be registered in ZooKeeper, and are not. No controller counts on them, and they do not
        register again by themselves. Of the controller itself the others' metadata does not show it (3.9.2)."""
        zookeeper = self.observation.zookeeper
        known = zookeeper.broker_ids if zookeeper is not None else [broker.id for broker in self.spec.brokers]
        return [b.id for b in self.spec.brokers if b.id in self.facts.in_zookeeper and b.id not in known]

    @property
    def excused(self) -> frozenset[str]:
        """Nodes in our hands that have their time still, or are to end: what they lack is what the step is there for."""
        return self.kept - {self.name(view.id) for view in self.observation.nodes if self._is_overdue(view)}

    @property
    def kept(self) -> frozenset[str]:
        """Nodes in our hands but for those whose process the step has started, and which has ended: as nobody's are they told
        of, at once, and not only when the step gives them up."""
        return self.in_hand - {self.name(view.id) for view in self.observation.nodes if self._has_fallen(view)}

    def _has_fallen(self, view: NodeView) -> bool:
        mark, process, since = view.mark, view.process, self.step_since
        if mark is None or mark.is_proven or process is None or process.is_running or process.last_identity is None:
            return False
        is_another = process.last_identity.partition("@")[0] != (mark.before_identity or "").partition("@")[0]
        is_of_step = since is not None and process.started_at is not None and process.started_at >= since - CLOCKS
        return is_another and is_of_step

    def is_restarting(self, name: str) -> bool:
        """Whether a step of ours restarts this node, for no longer than usual, and its new process has not ended."""
        views = [view for view in self.observation.nodes if self.name(view.id) == name and name in self.kept]
        begun = [view.process.started_at if _is_restarted(view) and view.process else self.step_since for view in views]
        return any(at is not None and not is_over(at, self.observation.ended_at, self.usual_restart) for at in begun)

    def unproven(self) -> list[NodeView]:
        """Nodes in our hands that run as a step of ours has started them, longer than most need to be well."""
        overdue = self.in_hand - self.excused
        return [view for view in self.observation.nodes if self.name(view.id) in overdue and _is_restarted(view)]

    def is_ending(self, view: NodeView) -> bool:
        """Of a node in our hands: whether its process is to end, or was told to, since longer ago than most take for that."""
        return _is_to_end(view) and not _is_unwritten(view) and self._is_over(self.step_since)

    def may_be_ending(self, view: NodeView) -> bool:
        """Whether a step of ours has it, has not restarted it, and may have told it to stop since its process was looked at."""
        begun, now = self.step_since, self.observation.ended_at
        is_ours = self.name(view.id) in self.in_hand and not _is_restarted(view)
        return is_ours and begun is not None and not is_over(begun, now, STOPPED_BY)

    def _is_overdue(self, view: NodeView) -> bool:
        """By when its new process was started; of one that the step has not touched yet, by when the step began."""
        process = view.process
        if _is_to_end(view) or (process is not None and not process.is_running):
            return False
        began = process.started_at if process is not None and _is_restarted(view) else None
        return self._is_over(began or self.step_since)

    def _is_over(self, begun: datetime | None) -> bool:
        return begun is not None and is_over(begun, self.observation.ended_at, SLOW)

    @property
    def absent_brokers(self) -> frozenset[int]:
        """Dead, silent, or excused, in our hands: what lacks because of them is no cause of its own."""
        excused = self.excused
        ours = {b.id for b in self.spec.brokers if self.name(b.id) in excused}
        return self.ids(Role.BROKER, *GONE, Liveness.UNKNOWN, Liveness.IN_TRANSITION) | ours

    @property
    def cluster_of_all(self) -> str | None:
        """Another cluster's id than the specification's, where all nodes that should have storage have it of that one: then it
        is not their files that are wrong. Where one is not known, the others' may be."""
        present = [node.id for node in self.spec.nodes if self.liveness(node.id) is not Liveness.ABSENT]
        views = [self.observation.node(node_id) for node_id in present]
        said = [{found.cluster_id for found in view.disk.log_dirs} if view.disk is not None else {None} for view in views]
        agreed: set[str | None] = set().union(*said)
        return agreed.pop() if len(views) > 1 and len(agreed) == 1 and self.spec.cluster_id not in agreed else None

    @property
    def lasts(self) -> timedelta:
        """For how long the migration has waited for something else than people, or been at the step in hand, and a moment
        more."""
        waiting = self.waiting
        is_ill = waiting is not None and not waiting.for_people and waiting.reason not in self.facts.patience
        waits = [waiting.since] if waiting is not None and is_ill else []
        begun = min([*waits, *([self.step_since] if self.step_since is not None else [])], default=self.observation.ended_at)
        return self.observation.ended_at - begun + STOPPED_BY

    def since(self, code: str, about: str, explains: frozenset[str]) -> datetime:
        """When it was first known: by what has been written down, or this look."""
        known = [alert.since for alert in self.alerts if (alert.code, alert.object) == (code, about)]
        waiting = self.waiting
        if waiting is not None and waiting.reason in explains and (not waiting.objects or about in waiting.objects):
            known.append(waiting.since)
        return min([*known, self.observation.ended_at])


def _is_restarted(view: NodeView) -> bool:
    """Whether another process of it runs than the one that a roll, not proven yet, has found."""
    return _is_rolled(view) and not _is_to_end(view) and view.process is not None and view.process.identity is not None


def _is_to_end(view: NodeView) -> bool:
    """Whether the process runs that a roll, not proven yet, has found: it is stopped as soon as the files are written."""
    mark, process = view.mark, view.process
    return _is_rolled(view) and mark is not None and process is not None and process.identity == mark.before_identity


def _is_unwritten(view: NodeView) -> bool:
    """Whether its file is still as the roll has found it: nothing is stopped before the roll could write it."""
    mark, file = view.mark, view.disk.file if view.disk is not None else None
    if mark is None or file is None or mark.before_sha256 == mark.written_sha256:
        return False
    return file.sha256 == mark.before_sha256


def _is_rolled(view: NodeView) -> bool:
    mark, process = view.mark, view.process
    return mark is not None and not mark.is_proven and process is not None and process.is_running


def strangers(case: Case) -> list[int]:
    """Brokers that Kafka lists, or one broker of it, and nobody has told us of; of those in ZooKeeper `copy_causes` tells."""
    kafka, zookeeper = case.observation.kafka, case.observation.zookeeper
    told = [part.listed for part in case.observation.unanswered if part.what == "kafka"]
    listed = {*kafka.broker_ids} if kafka is not None else {broker_id for ids in told for broker_id in ids}
    if zookeeper is None:
        return []
    return sorted(listed - {*zookeeper.broker_ids} - {broker.id for broker in case.spec.brokers})


def restart_of(case: Case, broker_id: int) -> str:
    """The words for a restart of a broker: whether its partitions can spare it now."""
    name = case.broker_name(broker_id)
    if name in case.in_hand:
        return f"restart {name}, but not while a step of this migration has it in hand"
    if case.observation.kafka is None:
        return f"restart {name} once its partitions can spare it"
    needing = partitions_needing(case.observation.kafka, broker_id, case.policy)
    if needing:
        return f"restart {name}, but not before {some(needing)} can spare it: they would fall below min.insync.replicas"
    return f"restart {name} (its partitions can spare it now)"


def of_finding(case: Case, finding: Finding, *explains: str) -> Cause:
    """`explains`: the waits that it is the reason of."""
    return case.cause(
        finding.code,
        finding.object,
        *explains,
        observed=finding.observed,
        expected=finding.expected,
        fix=finding.fix,
    )


EXPLAINED_BY = {
    Role.BROKER: (WaitReason.PARTITIONS_NOT_IN_SYNC, WaitReason.BROKERS_NOT_REGISTERED, WaitReason.PART_UNKNOWN),
    Role.CONTROLLER: (WaitReason.CONTROLLERS_NOT_READY, WaitReason.QUORUM_TOO_THIN),
}
"""What a node that is not there makes wait besides. Without a broker the others cannot tell everything for a while."""
