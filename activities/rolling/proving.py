"""Whether nodes that were restarted are well, and what is done for the cluster once they are.

Nothing is proven while another node is dead: that is the next decision's to tell, and an order may be waiting for it. Nodes
that were restarted together are proven together: each one's proof is that all of the cluster is well.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from temporalio import activity

from activities.claims import ensure_not_superseded
from activities.concurrently import all_of
from activities.last_words import told_last
from activities.node_files import write_mark
from activities.observing.observe import observe_for
from activities.ports.ports import Ports
from activities.rolling.marking import Marked, Target
from activities.rolling.own_data import OwnData, own_data
from activities.rolling.remaining_nodes import Watched
from domain.contracts import StepRequest
from domain.errors import KeeperlessError
from domain.health.liveness import is_serving
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.waits import WAITS, WaitReason

ASK_SECONDS = 0.15
"""Between two questions to a node that starts."""
ASKED_BETWEEN_LOOKS, BETWEEN_LOOKS_SECONDS = 24, 5.0
"""Questions to the nodes alone, before everything is looked at again. One that answers nothing may take seconds."""


@dataclass(frozen=True)
class Rolled:
    """A node of which a new process runs because of this roll, unless `did_restart` says no. `started_at`: when this attempt
    began to start it, by the monotonic clock; `None` where another one did."""

    target: Target
    marked: Marked
    did_restart: bool
    started_at: float | None = None


@dataclass(frozen=True)
class Proof:
    """Why nodes are not proven, by id; `None` where one is. `leadership`: what became of it, empty where nothing was done.
    `notes`: for people, of nodes that count as proven though something of them is not known. `hold_because`: no other node may
    be restarted before a person has looked; `None` on the way back, half of which is the worst place to rest."""

    why_not: dict[int, str | None]
    leadership: str = ""
    notes: dict[int, str] = field(default_factory=dict)
    hold_because: str | None = None


async def prove(request: StepRequest, rolled: Sequence[Rolled], ports: Ports, watched: Watched) -> Proof:
    """Look until all are proven k times in a row, one node has died, or the deadline is over. With the first good look begins
    the watch of all nodes that the next stop asks for.
    """
    good, well, looks, why, cluster = 0, 0, 0, "", rolled[0].target.cluster
    data: list[OwnData] = []
    node_ids = [one.target.node.id for one in rolled]
    rolls = ports.kinds[request.kind].rolls
    deadline = time.monotonic() + request.policy.restart_deadline.total_seconds()
    while time.monotonic() < deadline:
        if not good:
            await _while_starting(rolled, request.policy, ports)
        begun = time.monotonic()
        seen = await observe_for(request.kind, cluster, ports)
        if ended := [one for one in rolled if _has_ended(seen, one.target.node.id)]:
            return await _beside_ended(rolled, ended)
        if dead := rolls.dead_besides(seen, cluster.spec, request.policy, node_ids, request.step.stage):
            return Proof({one.target.node.id: _beside_dead(one.target, dead) for one in rolled})
        lacks = partial(rolls.why_not_proven, seen, cluster.spec, request.policy)
        missing = (lacks(node_id, request.step.stage) for node_id in node_ids)
        why = next((found.words for found in missing if found is not None), "")
        good, well, looks = (good + 1 if not why else 0), well + (not why), looks + 1
        if good == 1:
            watched.begin(cluster.spec)
        if good >= request.policy.stable_samples:
            data = await all_of(*(own_data(request, one.target) for one in rolled))
            why = next((one.why_not for one in data if one.why_not is not None), "")
            if not why:
                await all_of(*(_write_proof(request, one, seen, ports) for one in rolled))
                notes = {node_id: one.note for node_id, one in zip(node_ids, data, strict=True) if one.note}
                return Proof(dict.fromkeys(node_ids), await _return_leadership(request, seen, rolled[0].target, ports), notes)
        await asyncio.sleep(max(request.policy.poll_interval.total_seconds() - (time.monotonic() - begun), 0.0))
    told = f"{why}{'; ' if why else ''}{_so_far(well, looks, request.policy)}"
    astray = next((one.why_not for one in data if one.is_astray), None) if request.revert is None else None
    words = {one.target.node.id: f"{one.target.name} was restarted and is not proven healthy: {told}" for one in rolled}
    return Proof({**words}, hold_because=astray)


async def _while_starting(rolled: Sequence[Rolled], policy: MigrationPolicy, ports: Ports) -> None:
    """Ask the nodes themselves, which costs little, until all of them serve, one has ended, or it is time to look at everything
    once more: another one may have died.
    """
    until = time.monotonic() + BETWEEN_LOOKS_SECONDS
    for _ in range(ASKED_BETWEEN_LOOKS):
        seen = await all_of(*(_is_up(one.target, ports) for one in rolled))
        if all(seen) or None in seen or time.monotonic() > until:
            return
        await asyncio.sleep(min(ASK_SECONDS, policy.poll_interval.total_seconds()))


async def _is_up(target: Target, ports: Ports) -> bool | None:
    """Whether it serves; `None` once it has ended."""
    try:
        if not (await target.driver.process()).is_running:
            return None
        return is_serving(await ports.metrics.read(target.node.metrics), target.cluster.spec.role(target.node.id))
    except KeeperlessError:
        return False


def _so_far(well: int, looks: int, policy: MigrationPolicy) -> str:
    deadline = f"policy.restart_deadline, {policy.restart_deadline.total_seconds():g} s"
    return f"healthy in {well} of {looks} observations within {deadline}; the last {policy.stable_samples} have to be"


def _has_ended(seen: Observation, node_id: int) -> bool:
    process = seen.node(node_id).process
    return process is not None and not process.is_running


async def _beside_ended(rolled: Sequence[Rolled], ended: Sequence[Rolled]) -> Proof:
    names = ", ".join(one.target.name for one in ended)
    epitaphs = {one.target.node.id: await _epitaph(one) for one in ended}
    beside = {one.target.node.id: _beside_dead(one.target, names) for one in rolled}
    return Proof({**beside, **epitaphs})


def _beside_dead(target: Target, dead: str) -> str:
    return f"{target.name} was restarted and cannot be proven healthy: {WAITS[WaitReason.NODE_DOWN].means} ({dead})"


async def _epitaph(one: Rolled) -> str:
    age = timedelta(seconds=time.monotonic() - one.started_at) if one.started_at is not None else None
    return f"{one.target.name} does not run after its restart. {await told_last(one.target.driver, age)}"


async def _write_proof(request: StepRequest, one: Rolled, seen: Observation, ports: Ports) -> None:
    process = seen.node(one.target.node.id).process
    identity = process.identity if process is not None else None
    proven = one.marked.mark.model_copy(update={"is_proven": True, "proven_identity": identity})
    await ensure_not_superseded(request, ports)
    await write_mark(one.target.driver, one.target.node.properties_file, proven, await one.target.file())


async def _return_leadership(request: StepRequest, seen: Observation, target: Target, ports: Ports) -> str:
    """Between waves: or what is restarted last leads nothing, and what is restarted next too much.

    A roll does not fail over it: leaders that are not the preferred ones are as good, and Kafka balances them in time.
    """
    if not ports.kinds[request.kind].rolls.returns_leadership(request.step, seen, target.cluster.spec, request.policy):
        return ""
    try:
        count = await ports.kafka.elect_preferred(target.cluster)
    except KeeperlessError as error:
        activity.logger.warning("leadership was not returned after a wave: %s", error)
        return f"leadership was not returned: {error}"
    return f"preferred leaders lead {count} partitions again" if count else ""
