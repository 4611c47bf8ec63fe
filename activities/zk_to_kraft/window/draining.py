"""Whether ZooKeeper has all that the quorum has, while the quorum lives."""

import asyncio
import time
from dataclasses import dataclass

from activities.observing.epochs import rule_of
from activities.ports.kafka import ClusterMetrics
from activities.ports.zookeeper import ZooKeeperTree
from activities.zk_to_kraft.fence import Member
from domain.errors import Transient
from domain.observed.observation import MigrationGauge


@dataclass(frozen=True)
class Drain:
    """`poll`: seconds between two looks."""

    members: list[Member]
    tree: ZooKeeperTree
    metrics: ClusterMetrics
    poll: float

    async def comes_to_rest(self, seconds: float) -> bool:
        """Two looks in a row at which the offset in /migration is the end of the leader's log."""
        deadline, times = time.monotonic() + seconds, 0
        while time.monotonic() < deadline:
            times = times + 1 if await self._is_at_rest() else 0
            if times == 2:
                return True
            await asyncio.sleep(self.poll)
        return False

    async def _is_at_rest(self) -> bool:
        """The znode is read first: then the log's end, read later, was in ZooKeeper before."""
        rule = await rule_of(self.tree)
        leader = next((member for member in self.members if member.node.id == rule.leader), None)
        if leader is None or not rule.is_krafts or rule.offset is None:
            return False
        try:
            seen = await self.metrics.read(leader.node.metrics)
        except Transient:
            return False
        is_leading = seen.active_controller_count == 1 and seen.raft_leader == leader.node.id
        is_writing = seen.migration_gauge is MigrationGauge.MIGRATION and seen.raft_log_end is not None
        return is_leading and is_writing and seen.raft_log_end == rule.offset + 1
