"""Whether a node's process serves, is starting or stopping, or is gone, and whether that was our doing."""

from enum import StrEnum

from domain.cluster import Role
from domain.health.files import is_startable
from domain.observed.observation import NodeMetrics, NodeView, RollMark

BROKER_STATE_RUNNING = 3
"""Kafka's BrokerState RUNNING (BrokerState.java)."""


class Liveness(StrEnum):
    """What a node's process is, whatever code it runs."""

    SERVING = "serving"
    IN_TRANSITION = "in-transition"
    """Runs, and is starting or stopping."""
    INTERRUPTED = "interrupted"
    """Not running: a roll of ours stopped it and did not get to start it."""
    FENCED = "fenced"
    """A controller that is stopped and unable to start: its storage has been put aside."""
    ABSENT = "absent"
    """A controller that we have not provisioned yet."""
    DOWN = "down"
    """Not running, for a reason that is not ours, or it died after we started it."""
    UNKNOWN = "unknown"


GONE = frozenset({Liveness.DOWN, Liveness.INTERRUPTED})
"""The process has ended and the node should run."""


def is_serving(metrics: NodeMetrics, role: Role) -> bool:
    """What its own gauges say: a broker's state, or that a controller has the gauge `ActiveControllerCount`."""
    if role is Role.BROKER:
        return metrics.broker_state == BROKER_STATE_RUNNING
    return metrics.active_controller_count is not None


def broker_liveness(node: NodeView) -> Liveness:
    """Classify a broker's process by its broker state."""
    if node.process is None or node.disk is None or node.is_unowned:
        return Liveness.UNKNOWN
    if not node.process.is_running:
        return Liveness.INTERRUPTED if is_interrupted(node) else Liveness.DOWN
    if node.metrics is None:
        return Liveness.UNKNOWN
    return Liveness.SERVING if is_serving(node.metrics, Role.BROKER) else Liveness.IN_TRANSITION


def controller_liveness(node: NodeView) -> Liveness:
    """Classify a controller's process."""
    if node.process is None or node.disk is None or node.is_unowned:
        return Liveness.UNKNOWN
    if not node.process.is_running:
        return _liveness_of_stopped_controller(node)
    if node.metrics is None:
        return Liveness.UNKNOWN
    return Liveness.SERVING if is_serving(node.metrics, Role.CONTROLLER) else Liveness.IN_TRANSITION


def _liveness_of_stopped_controller(node: NodeView) -> Liveness:
    assert node.process is not None  # noqa: S101 - the caller has looked
    assert node.disk is not None  # noqa: S101
    if any(log_dir.is_fenced for log_dir in node.disk.log_dirs) and not is_startable(node.disk):
        return Liveness.FENCED
    if node.disk.file is None:
        return Liveness.ABSENT
    mark = node.disk.file.mark
    has_run = node.process.last_identity is not None or is_known_to_have_run(mark)
    if not has_run and mark is None:
        return Liveness.ABSENT
    return Liveness.INTERRUPTED if not has_run or is_interrupted(node) else Liveness.DOWN


def is_known_to_have_run(mark: RollMark | None) -> bool:
    """By its mark, whatever has become of its storage and of what tells of its process: a reboot empties `/run`, and the volume
    may not be mounted.

    Empty storage of such a controller is never formatted: with a majority of those an empty quorum would find `/migration`,
    go on from it, and delete what ZooKeeper has (internals, finding 7).
    """
    return mark is not None and (mark.is_proven or mark.has_run)


def is_interrupted(node: NodeView) -> bool:
    """A roll of ours stopped the process it had found, and nobody has started another since.

    A roll writes the file before it stops the process: with another file the process ended by itself, unless it had been
    stopped before the roll.
    """
    file = node.disk.file if node.disk is not None else None
    mark = file.mark if file is not None else None
    return (
        file is not None
        and mark is not None
        and not mark.is_proven
        and (file.sha256 == mark.written_sha256 or (mark.was_stopped and file.sha256 == mark.before_sha256))
        and node.process is not None
        and mark.before_identity == node.process.last_identity
    )
