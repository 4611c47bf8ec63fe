"""The steps of the way back cut off after every single call of a port, and tried again: they end as if nothing had been.

A worker that dies takes nothing with it but its own memory. What the next attempt finds is what lies in ZooKeeper and on disks.
"""

from contextlib import suppress
from typing import Any

import pytest

from activities.node_files import METADATA_LOG
from domain.contracts import StepOutcome, StepRequest
from domain.zk_to_kraft.situation import DualWrite
from domain.zk_to_kraft.steps import StepAction
from playground.fakes.topics import spread
from tests.unit.fake_walk import KillAfter, Killed, LedgerInMemory, Walk
from tests.unit.fake_window import attempt, end_of, go_on, in_dual_write, next_step

EFFECTS = frozenset({"write_file", "remove_file", "rename", "remove_tree", "start", "stop", "kill", "commit"})


def files_of(walk: Walk) -> dict[int, dict[str, Any]]:
    """Of every node, but for the quorum's log, which grows with time, and what tells of processes."""
    return {
        i: {p: f for p, f in node.machine.files.items() if METADATA_LOG not in p and not p.endswith((".pid", ".mark"))}
        for i, node in walk.cluster.nodes.items()
    }


def has_logs(walk: Walk) -> list[int]:
    return [i for i, node in walk.cluster.nodes.items() if node.has_metadata_log]


async def until_done(walk: Walk, request: StepRequest) -> StepOutcome:
    """Attempts, as the workflow makes them: one that is blocked is asked for again once its step is decided again."""
    for _ in range(10):
        outcome = await attempt(walk, request)
        if outcome.is_done:
            return outcome
        request = await next_step(walk)
    raise AssertionError(outcome.blocked)


async def kill_everywhere(walk: Walk, request: StepRequest, judged: Any, stride: int = 1) -> None:
    """Cut the first attempt off after each of its calls in turn; `judged` must then be as without any cut."""
    smooth, calls = walk.copy(), KillAfter()
    assert (await attempt(smooth, request, calls)).is_done
    expected = judged(smooth)
    kills = 0
    for count in range(0, len(calls.calls), stride):
        cut, killer = walk.copy(), KillAfter(count)
        with suppress(Killed):
            await attempt(cut, request, killer)
        kills += len(killer.calls) > count
        await until_done(cut, request)
        assert judged(cut) == expected, f"killed after call {count}: {killer.calls[-1]}"
    # The last calls are looks in a row, and how many there are is a matter of time.
    last_effect = max(i for i, call in enumerate(calls.calls) if call.split()[-1] in EFFECTS)
    assert kills * stride > last_effect
    print(f"{request.step.action}: killed at {kills} places")


async def kill_again_and_again(walk: Walk, request: StepRequest, judged: Any) -> None:
    """Every attempt is cut off right after its first effect, until one has none left to make."""
    smooth = walk.copy()
    await until_done(smooth, request)
    deaths = 0
    while True:
        killer = KillAfter()

        async def after_an_effect(call: str, killer: KillAfter = killer) -> None:
            await killer(call)
            killer.count = 0 if call.split()[-1] in EFFECTS else killer.count

        try:
            assert (await attempt(walk, request, after_an_effect)).is_done
        except Killed:
            deaths += 1
            assert deaths < 60
            continue
        break
    assert judged(walk) == judged(smooth)
    print(f"{request.step.action}: {deaths} workers died in turn")


@pytest.fixture(scope="module")
async def dual_write() -> Walk:
    return await in_dual_write()


@pytest.fixture
async def walk(dual_write: Walk) -> Walk:
    return dual_write.copy(ledger=LedgerInMemory(dual_write.cluster))


def window_of(walk: Walk) -> Any:
    starts = {c.id: walk.cluster.nodes[c.id].starts for c in walk.cluster.spec.controllers}
    return end_of(walk), files_of(walk), starts


async def test_the_window(walk: Walk) -> None:
    await kill_everywhere(walk, await next_step(walk), window_of)


async def test_the_window_with_one_death_after_another(walk: Walk) -> None:
    await kill_again_and_again(walk, await next_step(walk), window_of)


@pytest.mark.chaos
async def test_the_window_with_a_flush(walk: Walk) -> None:
    """How often controllers are started depends on where the worker dies; that nothing is lost does not."""
    request = await next_step(walk)
    walk.cluster.faults.is_dual_write_stuck = True
    walk.cluster.create_topic(spread("late", 3, (1, 2, 3)))
    walk.cluster.advance()
    quick = request.policy.model_copy(update={"drain_deadline": request.policy.poll_interval})
    await kill_everywhere(walk, request.model_copy(update={"policy": quick}), lambda w: (end_of(w), files_of(w)))
    assert "late" not in walk.cluster.side.topic_names()


async def test_the_wipe(walk: Walk) -> None:
    await go_on(walk, StepAction.WIPE)
    request = await next_step(walk)
    await kill_everywhere(walk, request, lambda w: (end_of(w), files_of(w), has_logs(w)))
    await kill_again_and_again(walk, request, lambda w: (end_of(w), files_of(w), has_logs(w)))


@pytest.mark.chaos
async def test_a_failover(walk: Walk) -> None:
    request = await dead_dual_write(walk)
    await kill_everywhere(walk, request, failover_of)


async def dead_dual_write(walk: Walk) -> StepRequest:
    walk.cluster.faults.is_dual_write_stuck = True
    walk.cluster.advance(20)
    request = await next_step(walk)
    assert request.step.action == StepAction.FAIL_OVER
    return request


def failover_of(walk: Walk) -> Any:
    starts = {c.id: walk.cluster.nodes[c.id].starts for c in walk.cluster.spec.controllers}
    return starts, files_of(walk), walk.cluster.faults.is_dual_write_stuck, DualWrite.CURRENT
