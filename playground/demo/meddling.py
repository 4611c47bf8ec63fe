"""Who gets in a migration's way in the demo, and clears it again once the product has named it. One class for each plot."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from domain.amounts import counted, roughly
from domain.decisions import Finding, Severity
from domain.errors import Permanent
from domain.plans import Basis
from domain.records import MigrationState
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.waits import ZkWait
from playground.by_hand import ByHand
from playground.demo.door import BlockerSeen, Door, MigrationSeen, PlanSeen
from playground.demo.mischief import Mischief
from playground.demo.obstacles import FOUND_BY_LOOKING, FOUND_BY_REHEARSAL, Obstacle
from playground.demo.state import Tone

Announce = Callable[[str, Tone], None]
RESTS_ON = {Basis.GUESS: "a guess", Basis.MEASURED: "by earlier restarts"}
NOT_ENOUGH = (
    "the checks find nothing more, but cannot see what Kafka's own copy would fail on: the copy is rehearsed now, with "
    "throw-away servers, away from the cluster"
)
UNNOTICED = "the migration has ended, and no report shows {}"


class Meddling(Protocol):
    disturbance: str
    """What it did to clients, in words; empty for nothing."""
    planned_seconds: float | None
    """What a plan says of the whole migration, where one was made."""

    async def start(self, cluster: str, policy: dict[str, Any]) -> str:
        """Start the migration; its id."""

    async def meddle(self, migration: MigrationSeen) -> None:
        """Called again and again while it goes on. Raises Permanent where nobody has noticed what was done."""


class Edits:
    """Edits ZooKeeper past Kafka as soon as there is dual write; mends it once the gate is shut because of it."""

    def __init__(self, door: Door, by_hand: ByHand, announce: Announce) -> None:
        self._door, self._announce, self._mischief = door, announce, Mischief(by_hand)
        self.disturbance = ""
        self.planned_seconds: float | None = None

    async def start(self, cluster: str, policy: dict[str, Any]) -> str:
        return await self._door.start_migration(cluster, policy)

    async def meddle(self, migration: MigrationSeen) -> None:
        mischief = self._mischief
        if not mischief.is_done and migration.phase == Phase.BROKERS_TO_KRAFT:
            self._announce(await asyncio.to_thread(mischief.do), Tone.ALERT)
        is_found = migration.waiting is not None and migration.waiting.reason == ZkWait.DRIFT_FOUND
        if mischief.is_done and is_found and not mischief.is_mended:
            found = await self._door.first_finding(migration.id)
            self._announce(f"the gate stays shut. The report names {found}", Tone.ALERT)
            self._announce(await asyncio.to_thread(mischief.mend), Tone.NEWS)
        if migration.state == MigrationState.SUCCEEDED and not mischief.is_mended:
            raise Permanent(UNNOTICED.format("what was edited behind its back"))


class StandsInTheWay:
    """Puts obstacles in front of the migration, which its plan has to name, and freezes a broker in the middle of it, which
    `blockers` has to explain. Each is cleared as what names it says."""

    def __init__(self, door: Door, by_hand: ByHand, announce: Announce, broker: int, pid_of: Callable[[int], int]) -> None:
        self._door, self._by_hand, self._announce = door, by_hand, announce
        self._broker, self._pid_of = broker, pid_of
        self._frozen: int | None = None
        self._frozen_at = 0.0
        self.disturbance = ""
        self.planned_seconds: float | None = None

    async def start(self, cluster: str, policy: dict[str, Any]) -> str:
        # First what restarts brokers: with a dead one among the replicas not all would ever be in sync again.
        for obstacle in (*FOUND_BY_REHEARSAL, *FOUND_BY_LOOKING):
            self._announce(await asyncio.to_thread(obstacle.put, self._by_hand), Tone.ALERT)
        await self._plan_and_mend(cluster, policy, FOUND_BY_LOOKING, rehearse=False)
        self._announce(NOT_ENOUGH, Tone.NEWS)
        plan = await self._plan_and_mend(cluster, policy, FOUND_BY_REHEARSAL, rehearse=True)
        self.planned_seconds = plan.estimate.seconds
        takes = f"{roughly(plan.estimate.seconds)}, comparisons left out ({RESTS_ON[plan.estimate.basis]})"
        self._announce(f"the plan: {counted(sum(plan.restarts.values()), 'restart')}, {takes}", Tone.GOOD)
        return await self._door.start_planned(cluster, plan.id)

    async def _plan_and_mend(
        self, cluster: str, policy: dict[str, Any], obstacles: Sequence[Obstacle], *, rehearse: bool
    ) -> PlanSeen:
        """Plan, mend what it names, plan again."""
        plan = await self._plan(cluster, policy, rehearse=rehearse)
        for obstacle in obstacles:
            _ensure_named(obstacle, blockers_of(plan))
            self._announce(await asyncio.to_thread(obstacle.mend, self._by_hand), Tone.NEWS)
        after = await self._plan(cluster, policy, rehearse=rehearse)
        if after.is_blocked:
            named = "; ".join(f"{finding.code} {finding.object}" for finding in after.findings)
            raise Permanent(f"the plan is blocked although all that it named was fixed: {named or after.unknown}")
        return after

    async def _plan(self, cluster: str, policy: dict[str, Any], *, rehearse: bool) -> PlanSeen:
        """Made, and told with all that it names."""
        how = "with a rehearsal of Kafka's copy" if rehearse else "from a look"
        plan = await self._door.plan(cluster, policy, rehearse=rehearse)
        blockers = blockers_of(plan)
        told = counted(len(blockers), "blocker") if plan.is_blocked else "no blocker, a migration may start"
        self._announce(f"POST /plans, {how}: {told}", Tone.ALERT if plan.is_blocked else Tone.GOOD)
        for finding in blockers:
            self._announce(f"{finding.code} {finding.object}: {finding.observed}. {finding.fix}", Tone.ALERT)
        return plan

    async def meddle(self, migration: MigrationSeen) -> None:
        """Once: freeze a broker of which the migration wants something, and let it go on when it was named."""
        if self._frozen is None and migration.phase == Phase.BROKERS_TO_KRAFT:
            self._frozen, self._frozen_at = self._pid_of(self._broker), time.monotonic()
            os.kill(self._frozen, signal.SIGSTOP)
            self._announce(f"the demo freezes broker-{self._broker}, as on a machine that is paused", Tone.ALERT)
        elif self._frozen is not None and not self.disturbance:
            await self._explain(migration.id, self._frozen)
        if migration.state == MigrationState.SUCCEEDED and not self.disturbance:
            raise Permanent(UNNOTICED.format(f"that broker-{self._broker} was stopped"))

    async def _explain(self, migration_id: str, pid: int) -> None:
        blockers = await self._door.blockers(migration_id)
        if not any(f"broker-{self._broker}" in blocker.object for blocker in blockers):
            return
        for blocker in blockers:
            self._announce(_told(blocker), Tone.ALERT)
        os.kill(pid, signal.SIGCONT)
        seconds = time.monotonic() - self._frozen_at
        self.disturbance = f"the demo froze broker-{self._broker} for {seconds:.0f} s"
        self._announce(f"as the fix says, the demo lets broker-{self._broker} continue, after {seconds:.0f} s", Tone.NEWS)


def blockers_of(plan: PlanSeen) -> list[Finding]:
    return [finding for finding in plan.findings if finding.severity is Severity.BLOCKER]


def _ensure_named(obstacle: Obstacle, found: Sequence[Finding]) -> None:
    if not any(each.code == obstacle.code and each.object.startswith(obstacle.object) for each in found):
        raise Permanent(f"the plan does not name {obstacle.object}, {obstacle.code}")


def _told(blocker: BlockerSeen) -> str:
    return f"GET /migrations/…/blockers: {blocker.code} {blocker.object}: {blocker.observed}. {blocker.fix}"
