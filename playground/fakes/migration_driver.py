"""`KRaftMigrationDriver` of the active controller, as Kafka 3.9.2 behaves (internals, section 3; proven-facts, 4 and 5).

Where it waits, loops or has given up, its gauges look the same as where all is well: they tell the state in the quorum's
log, and that there is a leader.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum

from domain.observed.observation import MigrationGauge
from playground.fakes.faults import Faults
from playground.fakes.node import FakeNode, Mode
from playground.fakes.quorum import Quorum
from playground.fakes.topics import FakeTopic
from playground.fakes.znodes import CONTROLLER, MIGRATION, claim_record, kraft_epoch, migration_record, offset_in
from playground.fakes.zookeeper_side import ZooKeeperSide

BEGINS_TO_WRITE = "INFO [KRaftMigrationDriver id=0] 0 transitioning from KRAFT_CONTROLLER_TO_BROKER_COMM to DUAL_WRITE state"
ZK_STATE_DOES_NOT = "ERROR KRaft controller indicates an active migration, but the ZK state does not."
FATAL = "ERROR Encountered fatal fault: Error in KRaftMigrationDriver: java.lang.IllegalStateException: cannot read a znode"


class DriverState(StrEnum):
    INACTIVE = "inactive"
    """Nothing to do, or given up for good."""
    WAITING = "waiting"
    """For every controller with the flag, and every broker, hybrid; and all of them registered."""
    BECOMING = "becoming"
    """About to claim; again and again while `/controller` is KRaft's of an epoch that is not older."""
    COPYING = "copying"
    SYNCING = "syncing"
    """Waits until its log is beyond what `/migration` says, then makes ZooKeeper like its log. No gauge shows it."""
    DUAL_WRITE = "dual-write"


class MigrationDriver:
    def __init__(self, side: ZooKeeperSide, faults: Faults, copy_looks: int) -> None:
        self.state = DriverState.INACTIVE
        self._side = side
        self._znodes = side.znodes
        self._faults = faults
        self._copy_looks = copy_looks
        self._looks_left = 0
        self._leading_process: str | None = None
        self._migration_of: datetime | None = None
        """When the `/migration` was created that this leader's writes are conditional on."""
        self._initialised: set[str] = set()

    def advance(
        self, quorum: Quorum, ready: Sequence[FakeNode], hybrid: bool, topics: Collection[FakeTopic], in_sync: Collection[int]
    ) -> None:
        """One look later. `ready`: controllers that have booted; `hybrid`: every broker is, and has registered so."""
        self._initialise(ready)
        leader = next((v for v in ready if v.spec.id == quorum.leader), None)
        if leader is None or leader.process is None:
            self.state, self._leading_process = DriverState.INACTIVE, None
            return
        if self._leading_process != quorum.leading_process:
            self._leading_process = quorum.leading_process
            self._become_leader(quorum, leader)
        if self.state is DriverState.COPYING and self._faults.poisoned_copy:
            leader.die(FATAL)
            return
        is_registered = self._faults.never_registers.isdisjoint(node.spec.id for node in ready)
        if self.state is DriverState.WAITING and hybrid and quorum.are_all_flagged and is_registered:
            self.state = DriverState.BECOMING
        if self.state is DriverState.BECOMING:
            self._claim(quorum, leader)
        self._work(quorum, leader, topics, in_sync)

    def _initialise(self, ready: Sequence[FakeNode]) -> None:
        """Every controller with the flag creates `/migration` when it starts, where there is none."""
        for node in ready:
            process = node.process
            if process is None or process.mode is not Mode.MIGRATION_CONTROLLER or process.identity in self._initialised:
                continue
            self._initialised.add(process.identity)
            if MIGRATION not in self._znodes:
                self._znodes[MIGRATION] = migration_record(-1, -1, -1)

    def _become_leader(self, quorum: Quorum, leader: FakeNode) -> None:
        self.state = DriverState.INACTIVE
        if not self._faults.failover_does_not_cure:
            self._faults.is_dual_write_stuck = False
        if leader.process is None or leader.process.mode is not Mode.MIGRATION_CONTROLLER:
            return
        if quorum.log_state is MigrationGauge.PRE_MIGRATION:
            self.state = DriverState.WAITING
        elif quorum.log_state is MigrationGauge.MIGRATION:
            has_copied = (offset_in(self._znodes) or -1) > 0
            self.state = DriverState.BECOMING if has_copied else DriverState.INACTIVE
            if not has_copied:
                leader.output.append(ZK_STATE_DOES_NOT)

    def _claim(self, quorum: Quorum, leader: FakeNode) -> None:
        """`/controller` deleted and created anew, persistent, and the epoch raised: one transaction."""
        standing = kraft_epoch(self._znodes)
        if (standing is not None and standing >= quorum.epoch) or MIGRATION not in self._znodes:
            return
        self._znodes.create(CONTROLLER, claim_record(leader.spec.id, quorum.epoch))
        self._side.raise_epoch()
        offset = offset_in(self._znodes) or -1
        self._znodes[MIGRATION] = migration_record(leader.spec.id, quorum.epoch, offset)
        self._migration_of = self._created_at()
        self.state, self._looks_left = (DriverState.SYNCING if offset > 0 else DriverState.COPYING), self._copy_looks

    def _created_at(self) -> datetime | None:
        found = self._znodes.find(MIGRATION)
        return found.created_at if found is not None else None

    def _work(self, quorum: Quorum, leader: FakeNode, topics: Collection[FakeTopic], in_sync: Collection[int]) -> None:
        if self.state is DriverState.COPYING:
            self._copy(quorum, leader, topics)
            return
        can_write = self._migration_of == self._created_at() and not self._faults.is_dual_write_stuck
        if self.state is DriverState.SYNCING and can_write and quorum.log_end > (offset_in(self._znodes) or -1):
            self._reconcile(quorum, leader, in_sync)
        if self.state is DriverState.DUAL_WRITE and can_write:
            self._write(quorum, leader, in_sync)

    def _begin_to_write(self, leader: FakeNode) -> None:
        self.state = DriverState.DUAL_WRITE
        leader.output.append(BEGINS_TO_WRITE)

    def _copy(self, quorum: Quorum, leader: FakeNode, topics: Collection[FakeTopic]) -> None:
        self._looks_left -= 1
        if self._looks_left >= 0 or self._faults.poisoned_copy:
            return
        quorum.topics = {topic.name: topic for topic in topics}
        quorum.log_state = MigrationGauge.MIGRATION
        self._begin_to_write(leader)

    def _reconcile(self, quorum: Quorum, leader: FakeNode, in_sync: Collection[int]) -> None:
        """What the log does not have is deleted; every partition is written again, although nothing differs."""
        for name in self._side.topic_names() - set(quorum.topics):
            self._side.delete_topic(name)
        self._side.write_states(quorum.topics.values(), in_sync, quorum.epoch, rewrite=True)
        self._begin_to_write(leader)

    def _write(self, quorum: Quorum, leader: FakeNode, in_sync: Collection[int]) -> None:
        for name in set(quorum.topics) - self._side.topic_names():
            self._side.write_topic(quorum.topics[name], quorum.epoch)
        self._side.write_states(quorum.topics.values(), in_sync, quorum.epoch)
        self._znodes[MIGRATION] = migration_record(leader.spec.id, quorum.epoch, quorum.log_end - 1)
