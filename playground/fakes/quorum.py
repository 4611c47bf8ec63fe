"""The controller quorum and the migration in its log, as Kafka 3.9.2 behaves.

Sources: KRaftMigrationDriver.java, ActivationRecordsGenerator.java; reference internals, section 3.
"""

from dataclasses import dataclass, field

from domain.observation import MigrationGauge
from playground.fakes.node import FakeNode, Mode

RECORDS_PER_LOOK = 2
"""An idle quorum writes no-op records: two in a second."""


@dataclass
class Quorum:
    """`log_state` is `None` until a first controller has become active. `claimed_by`: whose claim `/controller` holds."""

    copy_looks: int
    leader: int | None = None
    leading_process: str | None = None
    """Whose restart is the end of its leadership, however quick."""
    epoch: int = 0
    log_end: int = 0
    log_state: MigrationGauge | None = None
    registered: dict[int, Mode] = field(default_factory=dict)
    claimed_by: int | None = None
    claim_epoch: int = -1
    zookeeper_offset: int | None = None
    """What `/migration` holds; `None`: no such znode."""
    looks_until_copied: int | None = None

    def advance(self, voters: list[FakeNode], brokers: list[FakeNode], boot_looks: int, is_stuck: bool) -> None:
        """One look later."""
        ready = [v for v in voters if is_booted(v, boot_looks)]
        if any(mode(v) is Mode.MIGRATION_CONTROLLER for v in ready) and self.zookeeper_offset is None:
            self.zookeeper_offset = -1
        leader = self._elect(voters, ready)
        if leader is None:
            return
        self.log_end += RECORDS_PER_LOOK
        if self.log_state is MigrationGauge.PRE_MIGRATION:
            self._copy_when_ready(voters, ready, brokers)
        elif self.log_state is MigrationGauge.MIGRATION and mode(leader) is Mode.MIGRATION_CONTROLLER:
            self._write_to_zookeeper(leader, is_stuck)

    def _elect(self, voters: list[FakeNode], ready: list[FakeNode]) -> FakeNode | None:
        if 2 * len(ready) <= len(voters):
            self.leader = self.leading_process = None
            return None
        current = next((v for v in ready if v.process is not None and v.process.identity == self.leading_process), None)
        return current if current is not None else self._activate(ready)

    def _activate(self, ready: list[FakeNode]) -> FakeNode | None:
        """A new active controller writes what its flag makes of the migration's state (ActivationRecordsGenerator.java)."""
        leader = max(ready, key=lambda v: v.process.looks if v.process is not None else 0)
        self.epoch += 1
        has_flag = mode(leader) is Mode.MIGRATION_CONTROLLER
        if self.log_state is None:
            self.log_state = MigrationGauge.PRE_MIGRATION if has_flag else MigrationGauge.NONE
        elif self.log_state is MigrationGauge.NONE and has_flag:
            leader.die("Should not have ZK migrations enabled on a cluster that was created in KRaft mode.")
            self.leader = self.leading_process = None
            return None
        elif self.log_state is MigrationGauge.MIGRATION and not has_flag:
            self.log_state = MigrationGauge.POST_MIGRATION
        self.leader, self.leading_process = leader.spec.id, leader.last_identity
        return leader

    def _copy_when_ready(self, voters: list[FakeNode], ready: list[FakeNode], brokers: list[FakeNode]) -> None:
        """The copy waits for every controller with the flag and for every broker, hybrid and registered."""
        all_flagged = len(ready) == len(voters) and all(mode(v) is Mode.MIGRATION_CONTROLLER for v in ready)
        all_hybrid = all(self.registered.get(b.spec.id) is Mode.HYBRID and mode(b) is Mode.HYBRID for b in brokers)
        if not (all_flagged and all_hybrid):
            self.looks_until_copied = None
            return
        left = self.copy_looks if self.looks_until_copied is None else self.looks_until_copied
        self.looks_until_copied = left - 1
        if left <= 0:
            self.log_state = MigrationGauge.MIGRATION

    def _write_to_zookeeper(self, leader: FakeNode, is_stuck: bool) -> None:
        if (self.claimed_by, self.claim_epoch) != (leader.spec.id, self.epoch):
            self.claimed_by, self.claim_epoch = leader.spec.id, self.epoch
        if not is_stuck:
            self.zookeeper_offset = self.log_end - 1


def mode(node: FakeNode) -> Mode | None:
    return None if node.process is None else node.process.mode


def is_booted(node: FakeNode, boot_looks: int) -> bool:
    return node.process is not None and node.process.looks >= boot_looks
