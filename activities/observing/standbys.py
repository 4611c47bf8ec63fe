"""Whether a standby that seems behind follows, while somebody writes: whether it has a moment later what the leader had.

One look reads the controllers' gauges one beside the other, not in one moment: of a quorum that is written to, hundreds of
records a second, whoever is read first seems behind.
"""

import asyncio
from contextlib import suppress

from activities.observing.in_time import time_for
from activities.ports.kafka import ClusterMetrics
from domain.cluster import ClusterSpec
from domain.errors import KeeperlessError
from domain.health.quorum import QuorumLeader, is_behind, quorum_leader
from domain.observed.observation import NodeView, Observation

A_MOMENT, PAUSE = 1.0, 0.1
"""Seconds. A standby that follows has what is written within milliseconds."""


async def with_standbys(observation: Observation, spec: ClusterSpec, metrics: ClusterMetrics) -> Observation:
    """The observation, with those that seemed behind as they are once they have what the leader had, or at the last."""
    leader = quorum_leader(observation, spec)
    if leader is None:
        return observation
    behind = [view for c in spec.controllers if is_behind(view := observation.node(c.id), leader)]
    followed = await asyncio.gather(*(_once_followed(view, spec, leader, metrics) for view in behind))
    now = {view.id: view for view in followed}
    return observation.model_copy(update={"nodes": tuple(now.get(view.id, view) for view in observation.nodes)})


async def _once_followed(view: NodeView, spec: ClusterSpec, leader: QuorumLeader, metrics: ClusterMetrics) -> NodeView:
    version = view.metrics.kafka_version if view.metrics is not None else None
    with suppress(KeeperlessError, TimeoutError):  # then as it was seen last
        async with asyncio.timeout(time_for(A_MOMENT)):
            while is_behind(view, leader):
                await asyncio.sleep(PAUSE)
                gauges = await metrics.read(spec.node(view.id).metrics)
                view = view.model_copy(update={"metrics": gauges.model_copy(update={"kafka_version": version})})
    return view
