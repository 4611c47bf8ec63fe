"""What every search for causes gets, and what it gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from domain.clocks import is_over
from domain.cluster import ClusterSpec, Role, host_of
from domain.diagnosis.blocker import Blocker, blocker
from domain.diagnosis.causes.connection_limits import ConnectionLimit, limits_in
from domain.diagnosis.causes.hints import Hints
from domain.diagnosis.logs.complaints import complaint_in, trouble_with
from domain.diagnosis.logs.lines import CLOCKS, said_by_new
from domain.health.quorum import quorum_leader
from domain.observed.observation import NodeView, Observation
from domain.policy import MigrationPolicy
from domain.records import Waiting
from domain.waits import WaitReason
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import QuorumState, Situation

MAX_NAMED = 5
"""How many partitions, lines or znodes one entry names; the observation has them all."""

Mode = BrokerMode | ControllerMode
DOWN_MODES: frozenset[Mode] = frozenset(
    {BrokerMode.DOWN, BrokerMode.INTERRUPTED, ControllerMode.DOWN, ControllerMode.INTERRUPTED}
)
UNKNOWN_MODES: frozenset[Mode] = frozenset({BrokerMode.UNKNOWN, ControllerMode.UNKNOWN})


SLOW = timedelta(seconds=8)
"""From which on it is told of a node in our hands what it lacks, or that it runs still. Most have stopped, or serve, by then; a
large broker may take minutes, and who asks is told what it is waited for."""


USUAL_RESTART = timedelta(seconds=30)
"""What a healthy restart takes, from the stop to the proof, where none of the migration's own was measured."""


STOPPED_BY = timedelta(seconds=30)
"""From the beginning of a step, which looks first, on a busy machine."""


@dataclass(frozen=True)
class Looked:
    """One look with all that it is judged by. `in_hand`: nodes that a step of ours works on, `step_since` when it began: what
    they lack is no blocker as long as they are `excused`. `rolled`: nodes that the migration has given another file.
    `usual_restart`: for so long a node in our hands that is merely not well yet is no blocker.
    """

    observation: Observation
    spec: ClusterSpec
    policy: MigrationPolicy
    situation: Situation
    hints: Hints = field(default_factory=Hints)
    waiting: Waiting | None = None
    alerts: tuple[Blocker, ...] = ()
    in_hand: frozenset[str] = frozenset()
    step_since: datetime | None = None
    rolled: frozenset[str] = frozenset()
    usual_restart: timedelta = USUAL_RESTART

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

    def ids(self, role: Role, modes: frozenset[Mode]) -> frozenset[int]:
        return frozenset(n.id for n in self.situation.nodes if n.mode in modes and self.spec.role(n.id) is role)

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
        return self.ids(Role.BROKER, frozenset({*DOWN_MODES, *UNKNOWN_MODES, BrokerMode.IN_TRANSITION})) | ours

    @property
    def left_behind(self) -> frozenset[int]:
        """Brokers in ZooKeeper mode although KRaft has the metadata: they get none, and what they list is nothing."""
        is_ours = self.situation.quorum is QuorumState.MIGRATION
        return self.ids(Role.BROKER, frozenset({BrokerMode.ZOOKEEPER})) if is_ours else frozenset()

    @property
    def cluster_of_all(self) -> str | None:
        """Another cluster's id than the specification's, where all nodes that should have storage have it of that one: then it
        is not their files that are wrong. Where one is not known, the others' may be."""
        absent = {controller.id for controller in self.situation.controllers if controller.mode is ControllerMode.ABSENT}
        views = [self.observation.node(node.id) for node in self.spec.nodes if node.id not in absent]
        said = [{found.cluster_id for found in view.disk.log_dirs} if view.disk is not None else {None} for view in views]
        agreed: set[str | None] = set().union(*said)
        return agreed.pop() if len(views) > 1 and len(agreed) == 1 and self.spec.cluster_id not in agreed else None

    @property
    def lasts(self) -> timedelta:
        """For how long the migration has waited for something else than people, or been at the step in hand, and a moment
        more."""
        waiting = self.waiting
        is_ill = waiting is not None and not waiting.for_people and waiting.reason != WaitReason.SOAK_NOT_OVER
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


def strangers(looked: Looked) -> list[int]:
    """Brokers that Kafka lists, or one broker of it, and nobody has told us of; of those in ZooKeeper `copy_causes` tells."""
    kafka, zookeeper = looked.observation.kafka, looked.observation.zookeeper
    told = [part.listed for part in looked.observation.unanswered if part.what == "kafka"]
    listed = {*kafka.broker_ids} if kafka is not None else {broker_id for ids in told for broker_id in ids}
    if zookeeper is None:
        return []
    return sorted(listed - {*zookeeper.broker_ids} - {broker.id for broker in looked.spec.brokers})


MOST_COMPLAINTS = 2
"""Logs of which the last complaint is quoted."""


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


def cause(
    looked: Looked,
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
    begun = since if since is not None else looked.since(code, about, reasons)
    entry = blocker(code, about, observed=observed, expected=expected, fix=fix, since=begun)
    return Cause(entry, reasons, is_proved, is_only_late)


def said_since_started(looked: Looked, view: NodeView) -> Sequence[str] | None:
    """What its last process has printed below the lines of the one before it, as far as that is to be told."""
    started_at = view.process.started_at if view.process is not None else None
    if started_at is None:
        return None
    now = looked.observation.ended_at
    return said_by_new(looked.hints.logs.get(view.id, ()), now - started_at, now)


def complaints(looked: Looked, *node_ids: int) -> str:
    """Where nothing known explains what is seen: what the logs of these nodes complained of last, as further sentences.

    It may have nothing to do with it; a person sees that at once, and is spared the search where it has.
    """
    known, since = {node.id for node in looked.spec.nodes}, looked.lasts
    told = {i: complaint_in(_of_its_process(looked, i), since) for i in node_ids if i in known}
    quotes = [f". The last complaint in the log of {looked.name(i)}: {quote}" for i, quote in told.items() if quote]
    return "".join(quotes[:MOST_COMPLAINTS])


def _of_its_process(looked: Looked, node_id: int) -> Sequence[str]:
    """Of one that has printed nothing yet the last lines are those of the process before it."""
    new = said_since_started(looked, looked.observation.node(node_id))
    return new if new is not None else looked.hints.logs.get(node_id, ())


def leaders_word(looked: Looked, broker_id: int) -> str:
    """What the active controller's log has to say of a broker, as a further sentence."""
    leader = quorum_leader(looked.observation, looked.spec)
    if leader is None:
        return ""
    quote = trouble_with(looked.hints.logs.get(leader.id, ()), f"broker {broker_id}", f"id: {broker_id} rack", "registerBroker")
    return f". The log of {looked.name(leader.id)}, which leads, says: {quote}" if quote else ""


def leaders_threads(looked: Looked) -> str:
    """What the threads of who leads the quorum stand in, as a further sentence; where they are at their work, nothing."""
    leader = quorum_leader(looked.observation, looked.spec)
    name = looked.name(leader.id) if leader is not None else ""
    standing = looked.hints.threads.get(name)
    return f". Of {name}, which leads: {standing.words}" if standing is not None else ""
