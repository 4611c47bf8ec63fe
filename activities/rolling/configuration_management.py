"""Configuration management that would write our files back: paused before a node's file first changes, released at the end.

Paused, right before a step writes a node's file:

    1. look whether it is paused
    2. the mark beside the file: whether it ran until now, and so is ours to release   (before the effect)
    3. pause it, unless it is paused
    4. look again                                             (not seen paused: the step is blocked, nothing is written)
    5. set the mark to proven

Whoever dies between two lines leaves: before 2, nothing; before 5, a mark that is not proven, perhaps with a pause that it
tells the owner of. The look comes before the mark is read: a pause that another attempt has made in between has its mark.

Released, once everything else is done, node by node: resume it, see that it is not paused, remove the mark. Where somebody
else had paused it before us only the mark is removed.

Three things do not wait for it, but for a few seconds: a write that gives a controller its flag back, because waiting could
make the migration final; one that restores a broker's original, which is what would be written back anyway; and the start of a
node that is found stopped with its file there, because a node that is down is worse than a file that may be written back, which
every look would see. A step asks before it stops a node, and never between that and the start. Who finds one stopped comes
after an attempt of another step, or a crash. What goes on unproven is told with the step's outcome. Where it had been proven
before, nothing else restarts until it is paused again: a mark that was proven stays so.
"""

import asyncio
import time

from temporalio import activity

from activities.claims import cluster_to_change, ensure_not_superseded
from activities.heartbeat import heartbeating
from activities.looking import outcome, why_not_this_step
from activities.node_files import pause_path, read_pause, write_pause
from activities.observing.configuration_hook import HOOK_TIMEOUT, is_paused, said
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.rolling.marking import Target
from domain.cluster import ConfigurationManagement
from domain.contracts import ActivityName, StepOutcome, StepRequest
from domain.errors import KeeperlessError, Permanent, Superseded, Transient, Unsafe
from domain.observed.observation import PauseMark
from domain.rolling.change import Restart
from domain.rolling.configuration_management import by_hand

URGENT_SECONDS = 5.0
"""Less than a look may be old that allows a write: a hook that hangs must not keep the flag from a controller."""


async def why_not_paused(
    request: StepRequest, target: Target, like: FileContent, ports: Ports, *, is_new: bool = False
) -> str | None:
    """Pause the node's configuration management, and prove it: why that could not be done, before anything is written.

    `like`: a file whose owner owns the mark. `is_new`: the node is made by this step.
    """
    hook = target.node.driver.configuration_management
    if hook is None:
        return None
    does_wait = await _does_wait(target, ports.kinds[request.kind].rolls.restart(request.step.stage), is_new=is_new)
    try:
        async with asyncio.timeout(None if does_wait else URGENT_SECONDS):
            await _pause(request, target, hook, like, ports)
    except Superseded:
        raise
    except (KeeperlessError, TimeoutError) as error:
        why = f"{target.name}: its configuration management is not seen to be paused: {str(error) or 'its hook takes too long'}"
        if not does_wait:
            activity.logger.warning("the step continues without that: %s", why)
            return None
        return f"{why}. Nothing was written. Pause it by hand, with `{by_hand(hook.pause)}`, or fix the hook"
    return None


async def _does_wait(target: Target, into: Restart, *, is_new: bool) -> bool:
    """The module's docstring says who does not."""
    is_there = await target.driver.read_file(target.node.properties_file) is not None
    if is_there and not (await target.driver.process()).is_running:
        return False
    return is_new or not (into.is_restored or target.cluster.spec.role(target.node.id) in into.urgent)


async def _pause(request: StepRequest, target: Target, hook: ConfigurationManagement, like: FileContent, ports: Ports) -> None:
    driver, path = target.driver, target.node.properties_file
    is_found_paused = await is_paused(driver, hook)
    left = await read_pause(driver, path)
    if is_found_paused and left is not None and left.is_proven:
        return
    is_ours = not is_found_paused or (left is not None and left.is_ours)
    was_proven = left is not None and left.is_proven
    mark = PauseMark(step_id=request.step_id, generation=request.generation, is_ours=is_ours, is_proven=was_proven)
    if not is_found_paused:
        await ensure_not_superseded(request, ports)
        await write_pause(driver, path, mark, like)
        await ensure_not_superseded(request, ports)
        done = await driver.run(hook.pause, {}, HOOK_TIMEOUT)
        if not await is_paused(driver, hook):
            raise Unsafe(f"`{by_hand(hook.pause)}` ended with {done.exit_code}, and it is not paused{said(done)}")
    await ensure_not_superseded(request, ports)
    await write_pause(driver, path, mark.model_copy(update={"is_proven": True}), like)


async def pauses_of(request: StepRequest, target: Target) -> tuple[str, ...]:
    """For people, once the node runs: that this very step has paused it, or that it went on although nobody sees it paused."""
    hook = target.node.driver.configuration_management
    if hook is None:
        return ()
    try:
        async with asyncio.timeout(URGENT_SECONDS):
            why = "" if await is_paused(target.driver, hook) else ": it runs"
    except (KeeperlessError, TimeoutError) as error:
        why = f": {str(error) or 'its hook takes too long'}"
    if why:
        told = f"it may write this file back. Pause it by hand, with `{by_hand(hook.pause)}`"
        return (f"configuration management is not seen to be paused{why}; {told}",)
    mark = await read_pause(target.driver, target.node.properties_file)
    return ("configuration management paused",) if mark is not None and mark.step_id == request.step_id else ()


class ConfigurationManaging:
    """The activity that releases what was paused."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ActivityName.RELEASE_CONFIGURATION)
    async def release_configuration(self, request: StepRequest) -> StepOutcome:
        """Release every node that a migration has paused. One that cannot be released keeps no other from it."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_to_change(request, self._ports)
            targets = [Target(cluster, node, self._ports.drivers.driver(node)) for node in cluster.spec.nodes]
            try:
                marked = [t for t in targets if await read_pause(t.driver, t.node.properties_file) is not None]
                blocked = await why_not_this_step(request, self._ports) if marked else None
            except Transient as error:
                marked, blocked = [], f"the step has not begun: {error}"
            if blocked is None:
                marked, blocked = await self._release_all(request, marked)
            return outcome(blocked, begun, tuple(f"configuration management of {target.name} released" for target in marked))

    async def _release_all(self, request: StepRequest, targets: list[Target]) -> tuple[list[Target], str | None]:
        """Those that were released, and who is silent. `Unsafe` where a person has to do it, with the command for each node."""
        released, silent, failed = list[Target](), list[str](), list[str]()
        for target in targets:
            try:
                if await self._release(request, target):
                    released.append(target)
            except Transient as error:
                silent.append(f"{target.name}: {error}")
            except (Unsafe, Permanent) as error:
                failed.append(f"{target.name}: {error}")
        if failed:
            raise Unsafe(f"configuration management is still paused, or does not say. {'; '.join(failed)}")
        return released, f"configuration management is not released: {'; '.join(silent)}" if silent else None

    async def _release(self, request: StepRequest, target: Target) -> bool:
        """False: it was not ours to release."""
        driver, path = target.driver, target.node.properties_file
        mark = await read_pause(driver, path)
        if mark is not None and mark.is_ours:
            await self._resume(request, target)
        await ensure_not_superseded(request, self._ports)
        await driver.remove_file(pause_path(path))
        return mark is not None and mark.is_ours

    async def _resume(self, request: StepRequest, target: Target) -> None:
        hook, mark = target.node.driver.configuration_management, pause_path(target.node.properties_file)
        if hook is None:
            raise Unsafe(
                "a migration has paused it, and the specification no longer says how to resume it. Restore "
                f"configuration_management, or resume it by hand and remove {mark}; then resume the migration"
            )
        told = f"Run `{by_hand(hook.resume)}` there, then resume the migration"
        try:
            if not await is_paused(target.driver, hook):
                return
            await ensure_not_superseded(request, self._ports)
            done = await target.driver.run(hook.resume, {}, HOOK_TIMEOUT)
            is_still_paused = await is_paused(target.driver, hook)
        except (Unsafe, Permanent) as error:
            raise Unsafe(f"{error}. {told}; where it cannot say, remove {mark} once it runs") from error
        if is_still_paused:
            raise Unsafe(f"`{by_hand(hook.resume)}` ended with {done.exit_code}, and it is still paused{said(done)}. {told}")
