"""`try_canaries`: at one broker that has been restarted, what clients do, under reserved names; and all of it removed again.

    1. look again: the fence holds, and fresh decisions are this very step              (else: blocked, nothing touched)
    2. remove what earlier attempts at this broker left, and migrations that are gone; see it gone
    3. where the policy says so, one after the other, each seen through Kafka at this broker and in ZooKeeper: a topic,
       messages, a config of it, an ACL, a SCRAM credential                              (the first that fails ends it)
    4. remove it; see it gone, in both stores
    5. take the debt from the node's mark

The mark owes since before the restart (`marking`), and since before anything was made: so whoever dies between two lines leaves
what the next attempt removes in 2, and decisions come back to this broker, on the way back too, until 5. In dual write the
quorum acknowledges a change before ZooKeeper gets it: what is seen in ZooKeeper, both have.

What fails is tried again until it succeeds, but for two things, which would keep a migration from ever ending. What we have no
right to says nothing of the broker, and does not pass: a person has to decide, so the migration is held, and resume goes on
without it. And at the end of either way (`remove_canaries`), or where the policy asks for nothing any more, nobody waits for a
removal: what is left is told, with the commands that remove it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta

from temporalio import activity

from activities.canaries.canary_broker import Perch
from activities.canaries.removal import left_of, remove
from activities.canaries.trials import CANARIES
from activities.claims import cluster_of, ensure_not_superseded
from activities.heartbeat import heartbeating
from activities.looking import answer_or_silence, outcome, why_not_this_step
from activities.node_files import read_mark, write_mark
from activities.ports.nodes import NodeDriver
from activities.ports.ports import Ports
from domain.by_hand.canary_leftovers import told_left
from domain.canaries import LET_PASS, LIFT_QUOTA, STOP_DELETING, WAY_ON, WHAT_TO_DO, Canary, canary_of, is_anything_made
from domain.cluster import NodeSpec
from domain.configuration.properties import ENCODING, parse
from domain.contracts import ActivityName, StepOutcome, StepRequest
from domain.decisions import REMOVE_CANARIES
from domain.errors import Obstacle, Permanent, Transient, Unsafe, obstacle_of
from domain.records import ClusterRecord

AUTHORIZER = "authorizer.class.name"


OF_NO_BROKER: Mapping[Obstacle | None, str] = {
    Obstacle.QUOTA: LIFT_QUOTA,
    Obstacle.POLICY: LET_PASS,
    Obstacle.DELETED: STOP_DELETING,
}
"""What to do about what keeps a canary from any broker."""

REMOVAL_TIME = timedelta(minutes=2)
"""At the most, for the last removal of an attempt: the margin of its limit holds it (`workflows.calls`)."""


@dataclass(frozen=True)
class Tried:
    """Unless it is `blocked`, nothing is owed any more. `left`: what is still there, and how to remove it."""

    blocked: str | None = None
    left: tuple[str, ...] = ()
    hold_because: str | None = None


class Canaries:
    """The activities that do what clients do, and that remove what is left of that."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ActivityName.TRY_CANARIES)
    async def try_canaries(self, request: StepRequest) -> StepOutcome:
        """Try one broker, as the module's docstring says."""
        return await self._perform(request, _try_at)

    @activity.defn(name=ActivityName.REMOVE_CANARIES)
    async def remove_canaries(self, request: StepRequest) -> StepOutcome:
        """Lines 1, 2 and 5 alone. Once the migration is final ZooKeeper is not asked: it may be gone."""
        return await self._perform(request, _remove_at)

    async def _perform(self, request: StepRequest, what: Callable[[Perch], Awaitable[Tried]]) -> StepOutcome:
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_of(request, self._ports)
            node = cluster.spec.node(request.step.node)
            driver = self._ports.drivers.driver(node)
            mark, silent = await answer_or_silence(read_mark(driver, node.properties_file))
            tried = Tried(blocked=silent or None)
            if mark is not None and mark.are_canaries_due:
                blocked = await why_not_this_step(request, self._ports)
                tried = Tried(blocked=blocked) if blocked else await self._at(request, cluster, node, driver, what)
            return outcome(tried.blocked, begun, tried.left, hold_because=tried.hold_because)

    async def _at(
        self,
        request: StepRequest,
        cluster: ClusterRecord,
        node: NodeSpec,
        driver: NodeDriver,
        what: Callable[[Perch], Awaitable[Tried]],
    ) -> Tried:
        """With connections of its own; and unless it is blocked the mark owes nothing afterwards."""
        async with AsyncExitStack() as stack:
            client, silent = await answer_or_silence(self._ports.kafka.open_client(cluster))
            if client is None:
                return Tried(blocked=silent)
            stack.push_async_callback(client.close)
            into = self._ports.kinds[request.kind].rolls.restart(request.step.stage)
            is_final = request.step.action == REMOVE_CANARIES and not into.registers_in_zookeeper
            tree, silent = (None, "") if is_final else await answer_or_silence(self._ports.zookeepers.connect(cluster))
            if silent:
                return Tried(blocked=silent)
            if tree is not None:
                stack.push_async_callback(tree.close)
            file = await driver.read_file(node.properties_file)
            properties = parse(file.content.decode(ENCODING)) if file is not None else {}
            perch = Perch(
                request=request,
                ports=self._ports,
                spec=cluster.spec,
                client=client,
                tree=tree,
                name=canary_of(request.migration_id, node.id),
                has_authorizer=bool(properties.get(AUTHORIZER, "").strip()),
                deadline=time.monotonic() + request.policy.restart_deadline.total_seconds(),
            )
            tried = await what(perch)
        if tried.blocked is None:
            await self._settle(request, node, driver)
        return tried

    async def _settle(self, request: StepRequest, node: NodeSpec, driver: NodeDriver) -> None:
        """Take the debt from the mark as it is now: another roll of this node may have written its own since."""
        await ensure_not_superseded(request, self._ports)
        mark, file = await read_mark(driver, node.properties_file), await driver.read_file(node.properties_file)
        if mark is None or file is None:
            raise Unsafe(f"{node.properties_file} or its mark does not exist any more. Restore it.")
        await write_mark(driver, node.properties_file, mark.model_copy(update={"are_canaries_due": False}), file)


@dataclass(frozen=True)
class Failure:
    """`is_refusal`: we have no right to it, which no other attempt changes."""

    why: str
    is_refusal: bool


async def _try_at(perch: Perch) -> Tried:
    """Whatever fails, what was made is removed; what cannot be is told as well."""
    policy = perch.request.policy
    if not is_anything_made(policy):
        return await _remove_at(perch)
    failures = [failure for failure in [await _attempt(Canary.REMOVAL, remove, perch)] if failure is not None]
    if policy.canaries and not failures:
        tried = [await _first_failure(perch), await _attempt(Canary.REMOVAL, remove, _afresh(perch))]
        failures = [failure for failure in tried if failure is not None]
    why = "\n".join(failure.why for failure in failures)
    if not all(failure.is_refusal for failure in failures):
        return Tried(blocked=f"{why}\n{WAY_ON}")
    if not failures:
        return Tried()
    left = told_left(await left_of(perch), perch.spec)
    go_on = f"Fix that, and resume: the next broker is tried. Or resume as it is: broker {perch.broker} is not tried again."
    return Tried(left=left, hold_because="\n".join((why, *left, go_on)))


def _afresh(perch: Perch) -> Perch:
    """With time of its own: what has failed may have used up all that there was."""
    seconds = min(perch.request.policy.restart_deadline, REMOVAL_TIME).total_seconds()
    return replace(perch, deadline=time.monotonic() + seconds)


async def _first_failure(perch: Perch) -> Failure | None:
    for canary, attempt in CANARIES.items():
        failed = await _attempt(canary, attempt, perch)
        if failed is not None:
            return failed
    return None


async def _remove_at(perch: Perch) -> Tried:
    """Nobody waits for it any more: it is tried for as long as a look takes, and then what is left is told."""
    failed = await _attempt(Canary.REMOVAL, remove, perch)
    while failed is not None and time.monotonic() < perch.deadline:
        await asyncio.sleep(perch.request.policy.poll_interval.total_seconds())
        failed = await _attempt(Canary.REMOVAL, remove, perch)
    left = told_left(await left_of(perch), perch.spec) if failed is not None else ()
    return Tried(left=(failed.why, *left) if failed is not None and left else ())


async def _attempt(canary: Canary, attempt: Callable[[Perch], Awaitable[None]], perch: Perch) -> Failure | None:
    try:
        await attempt(perch)
    except (Transient, Permanent) as error:
        fix = OF_NO_BROKER.get(obstacle_of(error), WHAT_TO_DO[canary])
        why = f"canary {canary} failed at broker {perch.broker} on {perch.name}: {error}. {fix}"
        return Failure(why, isinstance(error, Permanent))
    return None
