"""The controller quorum: its leader and its log, which lives on the controllers' disks.

Sources: ActivationRecordsGenerator.java; reference internals, section 3.
"""

from dataclasses import dataclass, field

from domain.observed.observation import MigrationGauge
from playground.fakes.node import FakeNode, Mode
from playground.fakes.topics import FakeTopic

RECORDS_PER_LOOK = 2
"""An idle quorum writes no-op records: two in a second."""


@dataclass(frozen=True)
class Registration:
    """A broker's: it is unfenced while that very process lives."""

    mode: Mode
    process: str | None


@dataclass
class Quorum:
    """`log_state` is `None` until a first controller has become active. All but the leader is the log's."""

    leader: int | None = None
    leading_process: str | None = None
    """Whose restart is the end of its leadership, however quick."""
    epoch: int = 0
    log_end: int = 0
    log_state: MigrationGauge | None = None
    registered: dict[int, Registration] = field(default_factory=dict)
    topics: dict[str, FakeTopic] = field(default_factory=dict)
    flags: dict[int, bool] = field(default_factory=dict)
    """By controller: whether it last registered with the migration flag."""
    voters: int = 0

    @property
    def are_all_flagged(self) -> bool:
        return len(self.flags) == self.voters and all(self.flags.values())

    def advance(self, voters: list[FakeNode], boot_looks: int) -> list[FakeNode]:
        """One look later: the controllers that have booted. A quorum whose last copy of the log is gone is a new one."""
        if not any(voter.has_metadata_log for voter in voters):
            vars(self).update(vars(Quorum()))
        self.voters = len(voters)
        ready = [voter for voter in voters if is_booted(voter, boot_looks)]
        if self._elect(ready) is not None:
            self.log_end += RECORDS_PER_LOOK
            self.flags |= {voter.spec.id: mode(voter) is Mode.MIGRATION_CONTROLLER for voter in ready}
        return [voter for voter in ready if voter.process is not None]

    def _elect(self, ready: list[FakeNode]) -> FakeNode | None:
        if 2 * len(ready) <= self.voters:
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

    def register(self, broker: FakeNode) -> None:
        """A broker in the mode in which it runs. What is registered of a dead one stays, fenced."""
        if broker.process is not None:
            self.registered[broker.spec.id] = Registration(broker.process.mode, broker.process.identity)

    def is_unfenced(self, broker: FakeNode) -> bool:
        found = self.registered.get(broker.spec.id)
        return found is not None and broker.process is not None and found.process == broker.process.identity


def mode(node: FakeNode) -> Mode | None:
    return None if node.process is None else node.process.mode


def is_booted(node: FakeNode, boot_looks: int) -> bool:
    return node.process is not None and node.process.looks >= boot_looks
