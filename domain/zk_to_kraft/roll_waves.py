"""The waves of a migration's rolls: who goes along with the broker whose turn it is, and the whole list for a plan.

`decide` gives a roll one broker at a time, and each of its guards holds for the whole cluster: nobody down, all in sync, all
registered. So what may be added to its step is decided after it, by `domain.rolling.waves`, and only on the two rolls forward:

    roll 1, to hybrid    the ZooKeeper controller goes last and alone: the last registration starts Kafka's copy, and what
                         ZooKeeper has is kept right before it
    roll 2, to KRaft     nobody is last: the quorum's leader is no broker

The way back, the finishing of what was interrupted, and the way out of an end too early stay one by one.
"""

from collections.abc import Sequence

from domain.cluster import ClusterSpec, Role
from domain.decisions import Decision, Step
from domain.health.replication import partitions_needing
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.rolling.waves import Fleet, Wave, next_wave, waves_of
from domain.zk_to_kraft.guards import STAGE_OF_MODE, zookeeper_controller_last
from domain.zk_to_kraft.modes import BrokerMode
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import BrokerSituation, QuorumState, Situation
from domain.zk_to_kraft.steps import NodeStage, StepAction

MODE_AFTER = {NodeStage.MIGRATION: BrokerMode.HYBRID, NodeStage.KRAFT: BrokerMode.KRAFT}
"""What a broker runs as once the roll to a stage has restarted it."""

STATE_DURING: dict[str, QuorumState] = {NodeStage.MIGRATION: QuorumState.PRE_MIGRATION, NodeStage.KRAFT: QuorumState.MIGRATION}
"""What the quorum says while a roll to that stage goes forward."""

BEGINS_COPY = "its registration is the last one of this roll, and starts Kafka's copy"


def in_waves(
    decision: Decision, situation: Situation, observation: Observation, spec: ClusterSpec, policy: MigrationPolicy
) -> Decision:
    """The same decision; a roll of one broker becomes the roll of the next wave, which may begin with another broker.

    For a decision on the way forward: on the way back brokers roll to the same stages, one by one.
    """
    if not isinstance(decision, Step) or not _may_have_company(decision, situation, policy):
        return decision
    fleet = _fleet(NodeStage(decision.stage), situation, observation, spec, policy)
    if decision.node not in fleet.waiting:
        return decision
    wave = next_wave(fleet)
    if wave.cannot_spare:
        return decision
    return decision.model_copy(update={"node_id": wave.node_ids[0], "companions": wave.node_ids[1:]})


def planned_waves(stage: NodeStage, observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> tuple[Wave, ...]:
    """The waves in which the brokers that are not there yet would be rolled to a stage, from what is seen now."""
    return waves_of(_fleet(stage, situation_of(observation, spec, policy), observation, spec, policy))


def _may_have_company(step: Step, situation: Situation, policy: MigrationPolicy) -> bool:
    """Not beside a node whose roll has begun: whatever that is, it is finished first, alone."""
    is_forward_roll = step.action == StepAction.ROLL_NODE and STATE_DURING.get(step.stage) is situation.quorum
    return policy.max_parallel > 1 and is_forward_roll and all(_is_settled(broker) for broker in situation.brokers)


def _is_settled(broker: BrokerSituation) -> bool:
    """It runs what its file says."""
    return broker.mode in STAGE_OF_MODE and STAGE_OF_MODE[broker.mode] is broker.stage


def _fleet(
    stage: NodeStage, situation: Situation, observation: Observation, spec: ClusterSpec, policy: MigrationPolicy
) -> Fleet:
    """Racks are what brokers say they are in; the specification speaks for those that say nothing."""
    kafka, there = observation.kafka, MODE_AFTER[stage]
    is_first_roll = stage is NodeStage.MIGRATION
    done = {BrokerMode.HYBRID, BrokerMode.KRAFT} if is_first_roll else {BrokerMode.KRAFT}
    waiting = [broker for broker in situation.brokers if broker.mode not in done]
    waiting = zookeeper_controller_last(waiting) if is_first_roll else waiting
    ids = tuple(broker.id for broker in waiting)
    needed = {broker: partitions_needing(kafka, broker, policy) for broker in ids}
    needs = kafka.needs if kafka is not None else {}
    racks = {broker.id: broker.rack for broker in spec.brokers if broker.rack is not None}
    return Fleet(
        waiting=ids,
        shared=kafka.shared if kafka is not None else None,
        racks=racks | (kafka.racks if kafka is not None else {}),
        needed=needed,
        given_up={broker: tuple(p for p in needs.get(broker, ()) if p not in needed[broker]) for broker in ids},
        max_parallel=policy.max_parallel,
        is_canary_proven=any(broker.mode is there for broker in situation.brokers),
        last_because=_last_because(waiting) if is_first_roll else "",
    )


def _last_because(waiting: Sequence[BrokerSituation]) -> str:
    is_controller = bool(waiting) and waiting[-1].is_zookeeper_controller
    return f"{'it is the ZooKeeper controller, and ' if is_controller else ''}{BEGINS_COPY}"


def is_leadership_returned(step: Step, observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> bool:
    """Whether preferred leaders are elected after a wave that is proven: where brokers go in waves, forward.

    Not after the last of roll 1: with its registration the copy begins, and whoever changes metadata then is refused.
    """
    situation = situation_of(observation, spec, policy)
    is_wave = policy.max_parallel > 1 and spec.role(step.node) is Role.BROKER
    is_between = any(broker.mode is BrokerMode.ZOOKEEPER for broker in situation.brokers)
    return is_wave and STATE_DURING.get(step.stage) is situation.quorum and (is_between or step.stage == NodeStage.KRAFT)
