"""What the controllers' logs say, read by the way back: what is long past while they live, the rest once they are dead.

A record counts for the cluster once a majority of the voters has it (raft). So a log that cannot be read is made up for by a
majority that can; and what only a minority has written never happened: not even a migration that one of them made final.
"""

from activities.concurrently import all_of
from activities.node_files import storage_of
from activities.rolling.marking import Target
from activities.zk_to_kraft.quorum_log import Reading, open_log, read_on, read_tail
from domain.errors import Unsafe
from domain.observed.observation import MigrationGauge
from domain.quorum_log.metadata_log import LogFacts
from domain.quorum_log.partition_epochs import PartitionEpochs


class MemberLogs:
    """The logs as one attempt has read them. `unreadable`: why not, by the member's name."""

    def __init__(self, members: list[Target], voters: int) -> None:
        self._members, self._voters = members, voters
        self._ahead: dict[int, Reading] = {}
        self._tails: dict[int, Reading] = {}
        self.unreadable: dict[str, str] = {}

    async def read_ahead(self, offset: int) -> None:
        """What is committed and long past: only the rest has to be read while nobody leads."""
        self.unreadable = {}
        await all_of(*(self._read_ahead(member, offset) for member in self._members))

    async def _read_ahead(self, member: Target, offset: int) -> None:
        try:
            reading = await open_log(member.driver, (await storage_of(member.driver, member.node)).metadata_log)
            if reading is not None:
                self._ahead[member.node.id] = await read_on(member.driver, reading, until=offset)
        except Unsafe as error:
            self.unreadable[member.name] = str(error)

    async def read_tails(self, offset: int | None) -> None:
        """All of it, and what it says beyond the offset in /migration. Every controller is dead."""
        self.unreadable, self._tails = {}, {}
        await all_of(*(self._read_tail(member, offset) for member in self._members))

    async def _read_tail(self, member: Target, offset: int | None) -> None:
        try:
            directory = (await storage_of(member.driver, member.node)).metadata_log
            tail = await read_tail(member.driver, directory, offset, self._ahead.get(member.node.id))
        except Unsafe as error:
            self.unreadable[member.name] = str(error)
            return
        if tail is not None:
            self._tails[member.node.id] = tail

    @property
    def has_majority(self) -> bool:
        """Whether what is committed is in a log that could be read."""
        return 2 * len(self.unreadable) < self._voters

    @property
    def _readings(self) -> list[Reading]:
        return list((self._tails or self._ahead).values())

    @property
    def _facts(self) -> list[LogFacts]:
        return [reading.facts for reading in self._readings]

    @property
    def epochs(self) -> tuple[PartitionEpochs, ...]:
        """The partitions' epochs as each log has them: one may lack the last changes that count, so the largest is right.

        None before the copy is complete: until then no broker is told of them.
        """
        is_told = self.state is MigrationGauge.MIGRATION
        return tuple(reading.epochs for reading in self._readings) if is_told else ()

    @property
    def state(self) -> MigrationGauge:
        """Of the migration. Final it is where a majority of the logs may say so, those that cannot be read included."""
        states = [facts.state for facts in self._facts]
        final = states.count(MigrationGauge.POST_MIGRATION)
        if final and 2 * (final + len(self.unreadable)) > len(states) + len(self.unreadable):
            return MigrationGauge.POST_MIGRATION
        return max((state for state in states if state is not MigrationGauge.POST_MIGRATION), key=_how_far, default=NOTHING)

    def says_final(self, member: Target) -> bool:
        """Whether this very log does. If it leads again, so does the cluster's."""
        tail = self._tails.get(member.node.id)
        return tail is not None and tail.facts.state is MigrationGauge.POST_MIGRATION

    @property
    def changes(self) -> tuple[str, ...]:
        """What was acknowledged and is not in ZooKeeper, in words."""
        return max((tail.facts.change_names for tail in self._tails.values()), key=len, default=())

    @property
    def strays(self) -> str:
        """What would keep a new leader from writing to ZooKeeper, by name; empty: nothing. The longest log tells."""
        return ", ".join(stray.what for stray in self._longest.strays)

    @property
    def never_written(self) -> str:
        """Of these, what ZooKeeper has never got, and a way back is without; empty: nothing."""
        return ", ".join(stray.what for stray in self._longest.strays if stray.is_acl)

    @property
    def never_written_at(self) -> list[int]:
        """Where those are in the log."""
        return [stray.offset for stray in self._longest.strays if stray.is_acl]

    @property
    def _longest(self) -> LogFacts:
        return max(self._facts, key=lambda facts: facts.end, default=LogFacts())


NOTHING = MigrationGauge.NONE


def _how_far(state: MigrationGauge) -> int:
    order = (NOTHING, MigrationGauge.PRE_MIGRATION, MigrationGauge.MIGRATION, MigrationGauge.POST_MIGRATION)
    return order.index(state)
