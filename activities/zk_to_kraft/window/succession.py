"""Who rules, in the revert window: from KRaft's claim to a ZooKeeper controller that is there for good.

Everything is one look at `/controller`, `/controller_epoch` and `/migration`, and one transaction on what was seen there.
"""

import asyncio
import time
from collections.abc import Sequence

from activities.concurrently import all_of
from activities.observing.epochs import Rule, rule_of
from activities.observing.zookeeper_view import CONTROLLER, CONTROLLER_EPOCH, MIGRATION
from activities.ports.zookeeper import DeleteZnode, SetZnode, ZooKeeperTree
from activities.rolling.marking import Target
from activities.zk_to_kraft.fence import is_dead, is_fenced, kill
from activities.zk_to_kraft.poison import unelectable
from activities.zk_to_kraft.window.pace import Gap, Pace
from activities.zk_to_kraft.window.partition_states import PartitionStates
from domain.errors import Permanent, Transient
from domain.quorum_log.partition_epochs import PartitionEpochs
from domain.zk_to_kraft.failed_elections import MEND_FEATURE
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.waits import WAITS, ZkWait


class Blocked(Exception):
    """Why the window stays closed. Nothing has been touched, or what was has been put back."""


class Succession:
    """One attempt's looks and its transactions. `story`: what happened, for people."""

    def __init__(self, tree: ZooKeeperTree, members: list[Target], pace: Pace, gap: Gap, story: list[str]) -> None:
        self._tree, self._members, self._pace, self._gap, self._story = tree, members, pace, gap, story
        self._last = Rule(None, None, None)
        self._states = PartitionStates(tree)
        self._is_sent = False
        self.offset: int | None = None
        """Of the `/migration` that this attempt has deleted: ZooKeeper has all up to there, whoever claims it later."""

    async def is_over(self) -> bool:
        """Where the znodes were deleted by hand, and no epoch was raised, a ZooKeeper controller that rules is no end."""
        rule = await self.look()
        if not rule.is_zookeepers or rule.migration is not None or not await self._are_out():
            return False
        return rule.zookeeper_epoch >= await self._states.survey(rule=rule) and not self._states.is_unread

    async def _are_out(self) -> bool:
        """Every controller is dead, and fenced."""
        return all(await all_of(*map(is_dead, self._members))) and all(await all_of(*map(is_fenced, self._members)))

    async def look(self) -> Rule:
        self._last = await rule_of(self._tree)
        return self._last

    async def survey(self, epochs: Sequence[PartitionEpochs]) -> None:
        """Read the partition states once, for it takes long in a large cluster, and raise versions as far as is known yet.

        Not where a ZooKeeper controller rules: it has read them, and nothing replaces it before `hand_over`.
        """
        try:
            await self._states.survey(epochs if not self._last.is_zookeepers else (), self._last)
        except Permanent as error:
            raise Blocked(f"ZooKeeper would refuse the hand-over: {error}") from error

    async def raise_versions(self, epochs: Sequence[PartitionEpochs]) -> None:
        """The same of what has changed since. Every controller is dead, and all that the quorum knew is known."""
        await self._states.follow(epochs)

    async def ensure_allowed(self) -> None:
        """What keeps the hand-over, or whoever is elected after it, from succeeding must not be learnt once the controllers are
        dead."""
        rule = await self.look()
        for suspect in await unelectable(self._tree):
            raise Blocked(
                f"no broker could become the controller, so nothing was changed: {suspect.what} cannot be read: "
                f"{suspect.why}. {MEND_FEATURE}"
            )
        try:
            await self._tree.rehearse([*_changes(rule, rule.known_epoch), *self._states.sample])
        except Permanent as error:
            raise Blocked(f"ZooKeeper would refuse the hand-over, so nothing was changed: {error}") from error

    async def may_be_zookeepers(self) -> bool:
        """Where ZooKeeper is silent, as it was last: nobody but us ends KRaft's claim, unless the transaction is on its way."""
        if self._is_sent:
            return True
        try:
            return (await self.look()).is_zookeepers
        except Transient:
            return self._last.is_zookeepers

    async def hand_over(self) -> bool:
        """Line 9. False: somebody was faster, or it does not read back: look again.

        The ledger is not asked any more: it was, right before the kill, and each change depends on what we have seen.
        """
        if self._states.largest_epoch is None:
            await self._states.survey(rule=await self.look())
        rule = await self.look()
        epoch = max(self._states.largest_epoch or 0, rule.known_epoch)
        changes = _changes(rule, epoch, has_read=not (self._states.raised or self._states.is_unread))
        if not await self._are_out() or (changes and not await self._commit(changes)):
            return False
        if any(isinstance(change, SetZnode) for change in changes):
            self._story.append(f"/controller_epoch is {epoch}, was {rule.zookeeper_epoch}")
        if self._states.raised:
            count = len(self._states.raised)
            self._story.append(f"{count} states of partitions lagged behind what brokers know; their versions were raised")
        if rule.migration is not None:
            self._story.append(f"/migration deleted, its offset was {rule.offset or 'not set'}")
            self.offset = rule.offset
        self._states.forget_raised()
        found = await self.look()
        return not found.is_krafts and found.migration is None and found.zookeeper_epoch >= epoch

    async def _commit(self, changes: list[SetZnode | DeleteZnode]) -> bool:
        """`_is_sent` stays where it happened, and where nobody can tell whether it did."""
        was_sent, is_done = self._is_sent, False
        try:
            is_done = await self._tree.commit(changes)
        except Transient:
            was_sent = True
            raise
        finally:
            self._is_sent = was_sent or is_done
        return is_done

    async def is_zookeepers_for_good(self, policy: ZkToKraftPolicy) -> bool:
        """Lines 10 and 11. False: a claim of KRaft's slipped in, /migration is back, or somebody has lifted a fence."""
        deadline = time.monotonic() + policy.election_deadline.total_seconds()
        while not (rule := await self.look()).is_zookeepers:
            if _is_krafts_again(rule):
                return False
            if time.monotonic() > deadline:
                raise Blocked(WAITS[ZkWait.NO_CONTROLLER].means)
            await asyncio.sleep(self._pace.poll)
        self._gap.end()
        end = time.monotonic() + self._pace.watch
        while not _is_krafts_again(rule):
            if time.monotonic() > end:
                return await self._is_for_good(rule)
            await asyncio.sleep(self._pace.poll)
            rule = await self.look()
        return False

    async def _is_for_good(self, rule: Rule) -> bool:
        """What was started behind its fence gets nowhere, and goes; what was started without one may have."""
        if not all(await all_of(*map(is_fenced, self._members))):
            return False
        await all_of(*map(kill, self._members))
        self._story.append(f"broker {rule.leader} is controller")
        return True


def _changes(rule: Rule, epoch: int, *, has_read: bool = True) -> list[SetZnode | DeleteZnode]:
    """The transaction. A ZooKeeper controller that rules already is left alone, unless partitions would not obey it.

    `has_read`: if one rules, it has read the partition states as they are now.
    """
    is_obeyed = epoch <= rule.zookeeper_epoch and has_read
    is_deposed = rule.controller is not None and (rule.is_krafts or not is_obeyed)
    changes: list[SetZnode | DeleteZnode] = []
    if rule.epoch is not None and (is_deposed or rule.controller is None):
        changes.append(SetZnode(CONTROLLER_EPOCH, str(epoch).encode(), rule.epoch.version))
    if rule.migration is not None:
        changes.append(DeleteZnode(MIGRATION, rule.migration.version))
    if rule.controller is not None and is_deposed:
        changes.append(DeleteZnode(CONTROLLER, rule.controller.version))
    return changes


def _is_krafts_again(rule: Rule) -> bool:
    return rule.is_krafts or rule.migration is not None
