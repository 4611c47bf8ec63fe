"""Of which nodes to look up what may explain an observation: whose log, whose machine."""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from domain.cluster import ClusterSpec
from domain.diagnosis.causes.case import Case
from domain.diagnosis.causes.hints import Serving
from domain.health.liveness import GONE, Liveness
from domain.health.quorum import quorum_leader
from domain.observed.observation import LogDir, Observation, StorageState
from domain.records import ClusterRecord

MOST_LAGGING = 6
"""Followers whose log is read where replicas lag, leaders, and brokers that do not answer: what one says holds for others."""


@dataclass(frozen=True)
class Look:
    """What hints are wanted of; and in `silent`, what has not come in time."""

    migration_id: str
    cluster: ClusterRecord
    case: Case
    in_hand: Container[str]
    servers: Mapping[str, Serving]
    silent: list[str] = field(default_factory=list)

    @property
    def observation(self) -> Observation:
        return self.case.observation

    @property
    def spec(self) -> ClusterSpec:
        return self.cluster.spec

    @property
    def theirs(self) -> tuple[str, ClusterRecord, Observation]:
        return self.migration_id, self.cluster, self.observation

    @cached_property
    def down(self) -> list[int]:
        return [node.id for node in self.spec.nodes if self.case.liveness(node.id) in GONE]

    @cached_property
    def watched(self) -> list[int]:
        """Whose machines are asked."""
        return worth_watching(self.case, self.in_hand)


def worth_reading(case: Case, in_hand: Container[str] = ()) -> list[int]:
    """Whose log may tell a cause: the active controller's, or all controllers' where none is active, of what is dead, silent,
    unready, behind, not registered, unable to apply metadata, or in our hands, of brokers between which replicas lag, and of
    some where Kafka as a whole does not answer, or none of them becomes the controller."""
    leader = quorum_leader(case.observation, case.spec)
    made = [c.id for c in case.spec.controllers if case.liveness(c.id) is not Liveness.ABSENT]
    found = [*([leader.id] if leader is not None else made), *_troubled(case), *in_hand_ids(case.spec, in_hand)]
    return list(dict.fromkeys(found))


def worth_watching(case: Case, in_hand: Container[str]) -> list[int]:
    """Whom its machine may keep from its work: who runs, and is in trouble, or in the hands of a step of ours; and who leads
    the quorum, where it does not get on, or a node asks it for something as it stops and starts."""
    leader, ours = quorum_leader(case.observation, case.spec), in_hand_ids(case.spec, in_hand)
    is_wanted = leader is not None and (case.facts.is_leader_stuck or bool(ours))
    wanted = [*_troubled(case), *ours, *([leader.id] if leader is not None and is_wanted else [])]
    wanted += [c.id for c in case.spec.controllers if leader is None and case.liveness(c.id) is Liveness.SERVING]
    return [node_id for node_id in dict.fromkeys(wanted) if is_watchable(case.observation, node_id)]


def is_awaited(case: Case, in_hand: Container[str]) -> bool:
    """Whether a broker is down that needs ZooKeeper to come up, and nobody is about to start it."""
    down = (i for i in case.facts.started_with_zookeeper if case.liveness(i) is Liveness.DOWN)
    return any(case.name(node_id) not in in_hand for node_id in down)


def in_hand_ids(spec: ClusterSpec, in_hand: Container[str]) -> list[int]:
    return [node.id for node in spec.nodes if spec.node_name(node.id) in in_hand]


def is_watchable(observation: Observation, node_id: int) -> bool:
    """Its process runs, and it is known which it is."""
    process = observation.node(node_id).process if any(view.id == node_id for view in observation.nodes) else None
    return process is not None and process.identity is not None


def _troubled(case: Case) -> list[int]:
    observation, facts = case.observation, case.facts
    unready = {*GONE, Liveness.UNKNOWN, Liveness.IN_TRANSITION}
    wanted = [node.id for node in case.spec.nodes if case.liveness(node.id) in unready]
    wanted += [c.id for c in case.spec.controllers if c.id in facts.not_caught_up and case.liveness(c.id) is Liveness.SERVING]
    wanted += [
        node.id for node in observation.nodes if node.metrics and node.metrics.zookeeper_session not in {None, "CONNECTED"}
    ]
    wanted += [node.id for node in observation.nodes if node.metrics and node.metrics.metadata_error_count]
    lost = (node.id for node in observation.nodes if node.disk and any(map(_is_lost, node.disk.log_dirs)))
    wanted += [node_id for node_id in lost if is_watchable(observation, node_id)]
    brokers = [broker.id for broker in case.spec.brokers]
    if facts.is_registration_wrong:
        wanted += [broker_id for broker_id in brokers if broker_id in facts.in_quorum]
    if observation.kafka is None or facts.is_leaderless:
        wanted += brokers[:MOST_LAGGING]
    down = frozenset(node.id for node in case.spec.nodes if case.liveness(node.id) in GONE)
    return [*wanted, *lagging_brokers(case.spec, observation, down)]


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
