"""When a restarted node is proven well, seen from outside: the judgement that `roll_node` polls."""

from collections.abc import Collection

from domain.cluster import ClusterSpec
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.rolling.change import Missing
from domain.waits import WaitReason
from domain.zk_to_kraft.modes import MODE_OF_STAGE, BrokerMode, ControllerMode
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import Claim, QuorumState, Registration, Replication, Situation
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.waits import WAITS, ZkWait


def why_not_proven(
    observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, node_id: int, stage: str
) -> Missing | None:
    """What is still missing; `None` when nothing is.

    A broker is proven by its registration and its replicas, not by its own state: it can reach RUNNING, serve, and never
    register (proven-facts, section 4). One that is back in ZooKeeper mode is registered there; the quorum is dead by then.
    """
    stage = NodeStage(stage)
    situation = situation_of(observation, spec, policy)
    node = next(node for node in situation.nodes if node.id == node_id)
    behind = [spec.node_name(c.id) for c in situation.controllers if not c.is_caught_up]
    if node.mode not in MODE_OF_STAGE[stage]:
        wanted = " or ".join(sorted(MODE_OF_STAGE[stage]))
        told = f"{spec.node_name(node_id)} is {node.mode}, expected {wanted}{_overwritten(observation, spec, node_id)}"
        return Missing(WaitReason.NODE_NOT_READY, told)
    if stage is NodeStage.ZOOKEEPER:
        return _why_not_back(observation, situation, node_id)
    if behind or situation.quorum in {QuorumState.UNKNOWN, QuorumState.ABSENT}:
        return _waiting(WaitReason.CONTROLLERS_NOT_READY, f" ({', '.join(behind) or 'no active controller'})")
    if situation.registration is not Registration.AGREES:
        return _waiting(WaitReason.BROKERS_NOT_REGISTERED)
    return _waiting(WaitReason.PARTITIONS_NOT_IN_SYNC) if situation.replication is not Replication.IN_SYNC else None


def _overwritten(observation: Observation, spec: ClusterSpec, node_id: int) -> str:
    """A start command may render the file: then the process has read another text than the one that was written for it."""
    disk = observation.node(node_id).disk
    file, mark = (disk.file, disk.file.mark) if disk is not None and disk.file is not None else (None, None)
    if file is None or mark is None or file.sha256 == mark.written_sha256:
        return ""
    path = spec.node(node_id).properties_file
    return (
        f". {path} is not what this step wrote: it was overwritten since. Find out what writes it (its start command, "
        "configuration management), and stop that"
    )


def _waiting(reason: str, more: str = "") -> Missing:
    return Missing(reason, WAITS[reason].means + more)


def dead_besides(
    observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, node_ids: Collection[int], stage: str
) -> str:
    """Other nodes than these that are known not to run, by name; as long as there is one, none of these is proven.

    Back in ZooKeeper mode they need no controllers: those have been stopped for good.
    """
    stage = NodeStage(stage)
    situation = situation_of(observation, spec, policy)
    needed = situation.brokers if stage is NodeStage.ZOOKEEPER else situation.nodes
    return ", ".join(spec.node_name(node.id) for node in needed if node.mode in DEAD and node.id not in node_ids)


DEAD = frozenset({BrokerMode.DOWN, BrokerMode.INTERRUPTED, ControllerMode.DOWN, ControllerMode.INTERRUPTED})


def _why_not_back(observation: Observation, situation: Situation, node_id: int) -> Missing | None:
    zookeeper = observation.zookeeper
    if zookeeper is None or node_id not in zookeeper.broker_ids:
        return Missing(WaitReason.BROKERS_NOT_REGISTERED, "It has not registered in ZooKeeper.")
    if situation.claim is not Claim.ZOOKEEPER:
        return _waiting(ZkWait.NO_CONTROLLER)
    return _waiting(WaitReason.PARTITIONS_NOT_IN_SYNC) if situation.replication is not Replication.IN_SYNC else None
