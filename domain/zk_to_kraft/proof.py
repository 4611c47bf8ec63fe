"""When a restarted node is proven well, seen from outside: the judgement that `roll_node` polls."""

from domain.cluster import ClusterSpec
from domain.decisions import WAIT_MEANS, NodeStage, WaitReason
from domain.observation import Observation
from domain.policy import MigrationPolicy
from domain.zk_to_kraft.situation import (
    BrokerMode,
    ControllerMode,
    QuorumState,
    Registration,
    Replication,
    situation_of,
)

MODE_OF_STAGE = {
    NodeStage.MIGRATION: {BrokerMode.HYBRID, ControllerMode.MIGRATING},
    NodeStage.KRAFT: {BrokerMode.KRAFT, ControllerMode.FINAL},
}


def why_not_proven(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, node_id: int, stage: NodeStage) -> str:
    """What is still missing, in words; empty when nothing is.

    A broker is proven by its registration and its replicas, not by its own state: it can reach RUNNING, serve, and never
    register (proven-facts, section 4).
    """
    situation = situation_of(observation, spec, policy)
    node = next(node for node in situation.nodes if node.id == node_id)
    behind = [spec.node_name(c.id) for c in situation.controllers if not c.is_caught_up]
    if node.mode not in MODE_OF_STAGE[stage]:
        return f"{spec.node_name(node_id)} is {node.mode}, expected {' or '.join(sorted(MODE_OF_STAGE[stage]))}"
    if behind or situation.quorum in {QuorumState.UNKNOWN, QuorumState.ABSENT}:
        return f"{WAIT_MEANS[WaitReason.CONTROLLERS_NOT_READY]} ({', '.join(behind) or 'no active controller'})"
    if situation.registration is not Registration.AGREES:
        return WAIT_MEANS[WaitReason.BROKERS_NOT_REGISTERED]
    if situation.replication is not Replication.IN_SYNC:
        return WAIT_MEANS[WaitReason.PARTITIONS_NOT_IN_SYNC]
    return ""
