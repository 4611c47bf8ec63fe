"""The flush of the revert window: the controllers run once more, so that ZooKeeper gets what their log has."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from activities.observing.epochs import rule_of
from activities.ports.kafka import ClusterMetrics
from activities.ports.zookeeper import ZooKeeperTree
from activities.rolling.marking import Target
from domain.errors import Transient
from domain.observed.observation import MigrationGauge
from domain.zk_to_kraft.policy import ZkToKraftPolicy


@dataclass(frozen=True)
class Drain:
    """`poll`: seconds between two looks."""

    members: list[Target]
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


@dataclass(frozen=True)
class Waiting:
    """`settle`: seconds that one look at rest may take. `stall`: how long a leader that has written may write nothing."""

    drain: Drain
    settle: float
    stall: float


async def until_flushed(waiting: Waiting, policy: ZkToKraftPolicy, before: int, has_claimed: Callable[[], None]) -> bool:
    """Wait until ZooKeeper has everything, which is true then; or the new leader has given up, or the time is over: of offsets
    the logs tell afterwards, and of what was refused nothing does.

    `before`: the epoch known before they were started: the next claim's is larger. `has_claimed` is called at each look since.
    """
    drain, stall = waiting.drain, Stall(waiting.stall)
    end = time.monotonic() + (policy.restart_deadline + policy.drain_deadline).total_seconds()
    while time.monotonic() < end:
        rule = await rule_of(drain.tree)
        if rule.is_krafts and rule.known_epoch > before:
            has_claimed()
            if await drain.comes_to_rest(waiting.settle):
                return True
            if stall.is_seen(rule.migration.version if rule.migration is not None else None, time.monotonic()):
                return False
        await asyncio.sleep(drain.poll)
    return False


@dataclass
class Stall:
    """A leader that has written to ZooKeeper, and writes no more: some of Kafka's errors make it give up.

    Every write of a leader touches /migration. Before the first one it compares, which in a large cluster takes long.
    """

    seconds: float
    _version: int | None = None
    _changes: int = 0
    _since: float = 0.0

    def is_seen(self, version: int | None, now: float) -> bool:
        """`version`: of /migration, as it is `now`; to be asked again and again from the claim on."""
        if version != self._version or self._since == 0.0:
            self._changes += 1
            self._version, self._since = version, now
        return self._changes > 1 and now - self._since > self.seconds
