"""What names another cluster than the specification does: its id is the lock of a migration, and what storage is made for.

Before the start PF03 tells it. In flight nothing is done until it is mended: a controller of another cluster is in no quorum
of ours, and a migration under another id works on nodes that somebody else's may work on.
"""

from collections.abc import Iterator

from domain.cluster import ClusterSpec, ControllerSpec
from domain.decisions import Finding
from domain.observed.observation import LogDir, Observation
from domain.zk_to_kraft.situation import QuorumState

IDENTITY = "PF03"
META = "meta.properties"
CORRECT_SPEC = "Correct cluster_id, or the addresses and directories, in the cluster's specification."


def foreign(observation: Observation, spec: ClusterSpec, quorum: QuorumState) -> tuple[Finding, ...]:
    """All that says so in flight. After the end only forward leads out."""
    storage = () if quorum is QuorumState.POST_MIGRATION else foreign_storage(observation, spec)
    return (*foreign_cluster(observation, spec, quorum), *storage)


def foreign_cluster(observation: Observation, spec: ClusterSpec, quorum: QuorumState) -> tuple[Finding, ...]:
    """The brokers say that they are another cluster; where they are silent, ZooKeeper does, until nobody needs it.

    Where only /cluster/id says so, somebody has written it: then no broker is stopped (`startable`).
    """
    kafka = observation.kafka.cluster_id if observation.kafka is not None else None
    seen = observation.zookeeper if quorum is not QuorumState.POST_MIGRATION else None
    zookeeper = seen.cluster_id if seen is not None else None
    what, found = ("the brokers' answer", kafka) if kafka is not None else ("/cluster/id", zookeeper)
    if found is None or found == spec.cluster_id:
        return ()
    return (Finding(code=IDENTITY, object=what, observed=found, expected=spec.cluster_id, fix=CORRECT_SPEC),)


def foreign_storage(observation: Observation, spec: ClusterSpec) -> tuple[Finding, ...]:
    """Controllers that were formatted for another cluster."""
    return tuple(
        Finding(
            code=IDENTITY,
            object=f"{spec.node_name(controller.id)} {found.path}/{META}",
            observed=f"cluster.id={found.cluster_id}",
            expected=f"cluster.id={spec.cluster_id}",
            fix="Correct cluster_id or log_dirs in the cluster's specification. If this controller was set up by mistake, "
            f"stop it, and move {found.path} and {controller.properties_file} away.",
        )
        for controller, found in _controllers_dirs(observation, spec)
        if found.cluster_id not in {None, spec.cluster_id}
    )


def why_not_removed(observation: Observation, spec: ClusterSpec, controllers: frozenset[int]) -> str:
    """What the last step of the way back would not remove, of these controllers, and what to do; empty when it would all."""
    return " ".join(
        f"{found.path}/{META} of {spec.node_name(controller.id)} says node {found.node_id} of cluster {found.cluster_id}, "
        f"not node {controller.id} of cluster {spec.cluster_id}. It would not be removed, and the rollback could not end. "
        f"Restore that file, or take the directory out of {controller.properties_file}, or stop this controller and move "
        "both away. Then ask again."
        for controller, found in _controllers_dirs(observation, spec)
        if controller.id in controllers and found.is_anothers
    )


def _controllers_dirs(observation: Observation, spec: ClusterSpec) -> Iterator[tuple[ControllerSpec, LogDir]]:
    for controller in spec.controllers:
        disk = observation.node(controller.id).disk
        for found in disk.log_dirs if disk is not None else ():
            yield controller, found
