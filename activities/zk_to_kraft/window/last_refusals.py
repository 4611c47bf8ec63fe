"""What ZooKeeper has refused those that the window kills, up to their end: it stays missing until the controllers that are
started for it have come to rest (`leaving`, lines 5 to 8).

Whoever leads next writes it. So of who was dead before, somebody who leads since has; but not of those that an attempt which
died has fenced and killed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from activities.concurrently import all_of
from activities.rolling.marking import Target
from activities.zk_to_kraft.refused_writes import refused_last, writing_of
from activities.zk_to_kraft.window.member_logs import MemberLogs
from domain.diagnosis.logs.lines import Found
from domain.errors import KeeperlessError
from domain.zk_to_kraft.causes.failed_writes import in_words

LAST_WORDS_SECONDS = 2.0
"""For the logs of those that are killed. 0.3 s were measured, of 40 MiB."""


class LastRefusals:
    """Of one attempt, over all its windows. `story`: what is told to people."""

    def __init__(self, logs: MemberLogs, story: list[str]) -> None:
        self._logs, self._story = logs, story
        self._left_dead: set[int] = set()
        self._stopped: set[int] = set()
        self._unflushed: tuple[str, ...] = ()

    def note_left(self, fenced: Sequence[Target]) -> None:
        """Those that an attempt which died has fenced: it may have killed them."""
        self._left_dead = {member.node.id for member in fenced}

    async def read_before(self, alive: Sequence[Target]) -> None:
        """All that they have printed, right before their kill. They are fenced."""
        self._stopped = {member.node.id for member in alive}
        self._note(alive, await all_of(*(self._told_by(member, self.of) for member in alive)))

    async def read_after(self, members: Sequence[Target]) -> tuple[str, ...]:
        """Only the last, now that nobody leads, but of whom an attempt that died has killed. What is missing, in words."""
        killed = [member for member in members if member.node.id in self._stopped | self._left_dead]
        ask = {member.node.id: self.of if member.node.id in self._left_dead else self._last_of for member in killed}
        self._note(killed, await all_of(*(self._told_by(member, ask[member.node.id]) for member in killed)))
        return self._unflushed

    def note_flushed(self, *, is_written: bool) -> None:
        """They were all started again, and somebody has led since. `is_written`: and has come to rest."""
        self._unflushed, self._left_dead = () if is_written else self._unflushed, set()

    async def of(self, member: Target) -> Found | None:
        """What the whole log of this one says. Raises as its driver does."""
        return (await writing_of(member.driver, self._logs.never_written_at)).refused

    async def _last_of(self, member: Target) -> Found | None:
        return await refused_last(member.driver, self._logs.never_written_at)

    def _note(self, members: Sequence[Target], found: Sequence[Found | None]) -> None:
        told = [f"what {m.name} could not write ({in_words(one)})" for m, one in zip(members, found, strict=True) if one]
        self._unflushed = tuple(dict.fromkeys([*self._unflushed, *told]))

    async def _told_by(self, member: Target, ask: Callable[[Target], Awaitable[Found | None]]) -> Found | None:
        """Nothing where its log does not come: what is fenced, or dead, does not wait for it."""
        try:
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                return await ask(member)
        except (KeeperlessError, TimeoutError) as error:
            self._story.append(f"whether ZooKeeper refused {member.name} a change in its last moment is not known: {error!r}")
            return None
