"""A node has one process: none is started beside one that serves, and one that does not stop in time is never killed."""

from activities.ports.kafka import ClusterMetrics
from activities.ports.nodes import NodeDriver
from domain.cluster import NodeSpec
from domain.errors import Transient, Unsafe
from domain.policy import RollPolicy


async def ensure_nobody_serves(node: NodeSpec, name: str, driver: NodeDriver, metrics: ClusterMetrics) -> None:
    """Raise where a node that is not known to run answers all the same: its pid file is lost, and it must not get a second
    process beside the first.

    Any answer counts, gauges of Kafka or none: a second process beside a node that starts would cost more than a start too few.
    Asked in this order: what answered before we look at the process was started before.
    """
    try:
        await metrics.read(node.metrics)
    except Transient:
        return
    if (await driver.process()).is_running:
        return
    raise Unsafe(
        f"{name} answers at its metrics endpoint, and {node.driver.service.pid_file} names no process that runs. It is not "
        "started again. Write the pid of its process there, or stop that process."
    )


def does_not_stop(name: str, policy: RollPolicy, error: Transient) -> Unsafe:
    """Nobody kills it: it may be about to end."""
    limit = f"policy.stop_deadline, {policy.stop_deadline.total_seconds():g} s"
    return Unsafe(
        f"{name} does not stop within {limit}, and is never killed: {error}. Wait until it has ended, or stop it, then "
        "resume. If other nodes need longer too, that policy is too short for this cluster"
    )
