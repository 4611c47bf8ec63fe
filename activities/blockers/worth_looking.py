"""Of whom to look up what may explain an observation: whose log, whose machine, whose threads."""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from domain.cluster import ClusterSpec
from domain.diagnosis.causes.hints import Serving
from domain.health.quorum import quorum_leader
from domain.observed.observation import LogDir, Observation, StorageState
from domain.records import ClusterRecord
from domain.zk_to_kraft.causes.case import DOWN_MODES, UNKNOWN_MODES
from domain.zk_to_kraft.causes.claim import OF_ZOOKEEPER
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import Claim, DualWrite, QuorumState, Registration, Situation
from domain.zk_to_kraft.steps import NodeStage

ACTIVE = frozenset({ControllerMode.MIGRATING, ControllerMode.FINAL})
"""Controllers one of which should lead."""
MOST_LAGGING = 6
"""Followers whose log is read where replicas lag, leaders, and brokers that do not answer: what one says holds for others."""


def is_write_behind(situation: Situation) -> bool:
    """Dual write, by the quorum that ZooKeeper knows."""
    is_ours = situation.quorum is QuorumState.MIGRATION and situation.claim is Claim.KRAFT
    return is_ours and situation.dual_write is not DualWrite.CURRENT


@dataclass(frozen=True)
class Look:
    """What hints are wanted of; and in `silent`, what has not come in time."""

    migration_id: str
    cluster: ClusterRecord
    observation: Observation
    situation: Situation
    in_hand: Container[str]
    servers: Mapping[str, Serving]
    silent: list[str] = field(default_factory=list)

    @property
    def spec(self) -> ClusterSpec:
        return self.cluster.spec

    @property
    def theirs(self) -> tuple[str, ClusterRecord, Observation]:
        return self.migration_id, self.cluster, self.observation

    @cached_property
    def down(self) -> list[int]:
        return [node.id for node in self.situation.nodes if node.mode in DOWN_MODES]

    @cached_property
    def watched(self) -> list[int]:
        """Whose machines are asked."""
        return worth_watching(self.spec, self.observation, self.situation, self.in_hand)

    @cached_property
    def questioned(self) -> list[int]:
        """Whose threads are asked."""
        return worth_asking(self.spec, self.observation, self.situation, self.in_hand)


def worth_reading(spec: ClusterSpec, observation: Observation, situation: Situation, in_hand: Container[str] = ()) -> list[int]:
    """Whose log may tell a cause: the active controller's, or all controllers' where none is active, of what is dead, silent,
    unready, behind, not registered, unable to apply metadata, or in our hands, of brokers between which replicas lag, and of
    some where Kafka as a whole does not answer, or none of them becomes the controller."""
    leader = quorum_leader(observation, spec)
    made = [c.id for c in situation.controllers if c.mode is not ControllerMode.ABSENT]
    return list(
        dict.fromkeys([leader.id] if leader is not None else made)
        | dict.fromkeys(_troubled(spec, observation, situation))
        | dict.fromkeys(in_hand_ids(spec, in_hand))
    )


def worth_watching(spec: ClusterSpec, observation: Observation, situation: Situation, in_hand: Container[str]) -> list[int]:
    """Whom its machine may keep from its work: who runs, and is in trouble, or in the hands of a step of ours; and who leads
    the quorum, where dual write is behind, or a node asks it for something as it stops and starts."""
    leader = quorum_leader(observation, spec)
    is_behind = situation.quorum is QuorumState.MIGRATION and situation.dual_write is not DualWrite.CURRENT
    wanted, ours = _troubled(spec, observation, situation), in_hand_ids(spec, in_hand)
    wanted += [*ours, *([leader.id] if leader is not None and (is_behind or ours) else [])]
    wanted += [c.id for c in situation.controllers if leader is None and c.mode in ACTIVE]
    return [node_id for node_id in dict.fromkeys(wanted) if is_watchable(observation, node_id)]


def is_awaited(spec: ClusterSpec, situation: Situation, in_hand: Container[str]) -> bool:
    """Whether a broker is down that needs ZooKeeper to come up, and nobody is about to start it."""
    down = (broker for broker in situation.brokers if broker.mode is BrokerMode.DOWN and broker.stage is not NodeStage.KRAFT)
    return any(spec.node_name(broker.id) not in in_hand for broker in down)


def worth_asking(spec: ClusterSpec, observation: Observation, situation: Situation, in_hand: Container[str]) -> list[int]:
    """Whose threads may say what they wait for: who runs, and starts, ends, or gives no answer; and who leads the quorum, where
    that does not get on."""
    waiting = {*UNKNOWN_MODES, BrokerMode.IN_TRANSITION, ControllerMode.IN_TRANSITION}
    wanted = [node.id for node in situation.nodes if node.mode in waiting or spec.node_name(node.id) in in_hand]
    leader = quorum_leader(observation, spec)
    return list(dict.fromkeys([*wanted, *([leader.id] if leader is not None and _is_stuck(observation, situation) else [])]))


def _is_stuck(observation: Observation, situation: Situation) -> bool:
    """The copy though all brokers are there for it, dual write, a registration, or replicas that lag."""
    brokers, kafka = situation.brokers, observation.kafka
    copies = situation.quorum is QuorumState.PRE_MIGRATION and all(broker.mode is BrokerMode.HYBRID for broker in brokers)
    is_behind = situation.quorum is QuorumState.MIGRATION and situation.dual_write is not DualWrite.CURRENT
    lags = kafka is not None and bool(kafka.under_replicated)
    return copies or is_behind or situation.registration is Registration.DIFFERS or lags


def in_hand_ids(spec: ClusterSpec, in_hand: Container[str]) -> list[int]:
    return [node.id for node in spec.nodes if spec.node_name(node.id) in in_hand]


def is_watchable(observation: Observation, node_id: int) -> bool:
    """Its process runs, and it is known which it is."""
    process = observation.node(node_id).process if any(view.id == node_id for view in observation.nodes) else None
    return process is not None and process.identity is not None


def _troubled(spec: ClusterSpec, observation: Observation, situation: Situation) -> list[int]:
    unready = {*DOWN_MODES, *UNKNOWN_MODES, BrokerMode.IN_TRANSITION, ControllerMode.IN_TRANSITION}
    wanted = [node.id for node in situation.nodes if node.mode in unready]
    wanted += [c.id for c in situation.controllers if c.mode is ControllerMode.MIGRATING and not c.is_caught_up]
    wanted += [
        node.id for node in observation.nodes if node.metrics and node.metrics.zookeeper_session not in {None, "CONNECTED"}
    ]
    wanted += [node.id for node in observation.nodes if node.metrics and node.metrics.metadata_error_count]
    lost = (node.id for node in observation.nodes if node.disk and any(map(_is_lost, node.disk.log_dirs)))
    wanted += [node_id for node_id in lost if is_watchable(observation, node_id)]
    if situation.registration is Registration.DIFFERS:
        wanted += [node.id for node in situation.brokers if node.mode in {BrokerMode.HYBRID, BrokerMode.KRAFT}]
    is_leaderless = situation.claim is Claim.NOBODY and situation.quorum in OF_ZOOKEEPER
    if observation.kafka is None or is_leaderless:
        wanted += [node.id for node in situation.brokers][:MOST_LAGGING]
    down = frozenset(node.id for node in situation.nodes if node.mode in DOWN_MODES)
    return [*wanted, *lagging_brokers(spec, observation, down)]


def _is_lost(found: LogDir) -> bool:
    return found.state is not StorageState.OURS and not found.is_fenced


def lagging_brokers(spec: ClusterSpec, observation: Observation, down: frozenset[int]) -> list[int]:
    """Brokers at which replicas lag, or of which one should lead, and leaders, those first in which most partitions meet; and
    who writes down in ZooKeeper who is in sync. Where only who is down lags, nobody else has a part in it."""
    kafka = observation.kafka
    faults = [] if kafka is None else [one for one in kafka.under_replicated if not one.missing or set(one.missing) - down]
    known = {b.id for b in spec.brokers}
    followers = Counter(broker_id for fault in faults for broker_id in fault.missing if broker_id in known)
    wanted = observation.kafka.last_in_sync.values() if observation.kafka is not None else ()
    followers.update(broker_id for brokers in wanted for broker_id in brokers if broker_id in known)
    leaders = Counter(fault.leader for fault in faults if fault.leader in known)
    found = [broker_id for counted in (followers, leaders) for broker_id, _ in counted.most_common(MOST_LAGGING)]
    owner = observation.zookeeper.controller if observation.zookeeper is not None else None
    return [*found, *([owner.broker_id] if found and owner is not None and owner.broker_id in known else [])]
