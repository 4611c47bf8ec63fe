"""Who leads the controller quorum, and who is behind it, by the gauges of raft."""

from dataclasses import dataclass

from domain.cluster import ClusterSpec
from domain.observed.observation import NodeMetrics, NodeView, Observation

MAX_STANDBY_LAG = 20
"""Records that a standby controller may be behind the leader and count as caught up: ten seconds of an idle quorum. Where much
is written, one that follows is looked at again until it has what the leader had (`activities.observing.standbys`)."""


@dataclass(frozen=True)
class QuorumLeader:
    """The active controller and its gauges."""

    id: int
    metrics: NodeMetrics


def quorum_leader(observation: Observation, spec: ClusterSpec) -> QuorumLeader | None:
    """The controller that says it is active and that raft names as leader; of two, the one with the higher epoch."""
    candidates = [
        QuorumLeader(c.id, metrics)
        for c in spec.controllers
        if (metrics := observation.node(c.id).metrics) is not None
        and metrics.active_controller_count == 1
        and metrics.raft_leader == c.id
    ]
    return max(candidates, key=lambda c: c.metrics.raft_epoch or 0, default=None)


def is_behind(node: NodeView, leader: QuorumLeader) -> bool:
    """It follows the leader, and seems to have too little of its log."""
    if node.metrics is None or node.metrics.raft_leader != leader.id:
        return False
    lag = lag_of(node.metrics, leader)
    return lag is not None and lag > MAX_STANDBY_LAG


def lag_of(metrics: NodeMetrics, leader: QuorumLeader) -> int | None:
    """Records that the leader had when it was looked at, and this one has not."""
    ends = (leader.metrics.raft_log_end, metrics.raft_log_end)
    return ends[0] - ends[1] if ends[0] is not None and ends[1] is not None else None
