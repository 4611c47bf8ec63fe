"""Controllers that are started again, with or without a fence, and the failover that cures dual write."""

import asyncio
import itertools
from contextlib import suppress
from datetime import timedelta

import pytest

from activities.node_files import FENCED_META, META, METADATA_LOG, read_mark
from activities.ports.nodes import FileContent
from domain.contracts import StepRequest
from domain.errors import Superseded, Unsafe
from domain.observed.observation import MigrationGauge
from domain.quorum_log.metadata_log import CLIENT_METRICS
from domain.quorum_log.record_types import RecordType
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.znodes import MIGRATION, migration_record, offset_in
from playground.log_bytes import batch
from tests.unit.fake_walk import KillAfter, LedgerInMemory, Walk, is_roll
from tests.unit.fake_way_back import take_flag
from tests.unit.fake_window import attempt, in_dual_write, next_step

SHORT = timedelta(milliseconds=100)


@pytest.fixture(scope="module")
async def dual_write() -> Walk:
    return await in_dual_write()


@pytest.fixture
async def walk(dual_write: Walk) -> Walk:
    return dual_write.copy(ledger=LedgerInMemory(dual_write.cluster))


@pytest.fixture(scope="module")
async def soaked(dual_write: Walk) -> Walk:
    """One broker runs in KRaft mode: the quorum is needed."""
    walk = dual_write.copy(is_back=False, ledger=LedgerInMemory(dual_write.cluster))
    request = await next_step(walk)
    assert is_roll(request.step, NodeStage.KRAFT)
    assert (await attempt(walk, request)).is_done
    return walk


@pytest.fixture
async def fenced(soaked: Walk) -> Walk:
    """Somebody's window, begun in the wrong moment: every controller is dead and fenced."""
    walk = soaked.copy(is_back=True)
    for controller in walk.cluster.spec.controllers:
        walk.cluster.kill(controller.id)
        machine, path = walk.cluster.nodes[controller.id].machine, controller.log_dirs[0]
        machine.rename(f"{path}/{META}", f"{path}/{FENCED_META}")
    walk.cluster.advance(2)
    return walk


async def step(walk: Walk, action: StepAction) -> StepRequest:
    request = await next_step(walk)
    assert request.step.action == action
    return request


def started(walk: Walk) -> dict[int, int]:
    return {c.id: walk.cluster.nodes[c.id].starts for c in walk.cluster.spec.controllers}


async def test_a_fenced_controller_is_started_without_its_fence(fenced: Walk) -> None:
    request = await step(fenced, StepAction.START_NODE)
    outcome = await attempt(fenced, request)
    assert outcome.is_done, outcome.blocked
    assert outcome.did_restart
    node = fenced.cluster.nodes[request.step.node]
    assert node.process is not None
    assert META in (node.machine.names(node.spec.log_dirs[0]) or ())
    before = started(fenced)
    again = await attempt(fenced, request)
    assert (again.is_done, again.did_restart) == (True, False)
    assert started(fenced) == before


async def test_all_are_started_until_the_quorum_serves(fenced: Walk) -> None:
    for _ in range(3):
        outcome = await attempt(fenced, await step(fenced, StepAction.START_NODE))
        assert outcome.is_done
    assert (await next_step(fenced)).step.action == StepAction.ROLL_NODE
    assert fenced.cluster.quorum.leader is not None


async def test_a_controller_that_lost_its_flag_is_not_started(fenced: Walk) -> None:
    request = await step(fenced, StepAction.START_NODE)

    async def take_it(call: str) -> None:
        if call == "kafka view":
            take_flag(fenced.cluster, request.step.node, restart=False)

    before = started(fenced)
    with suppress(Unsafe):  # or blocked, where the look itself has seen it
        assert not (await attempt(fenced, request.model_copy(update={"looks": 1}), take_it)).is_done
    assert started(fenced) == before


@pytest.mark.parametrize("is_final", [False, True])
async def test_without_its_flag_a_controller_is_started_only_where_the_migration_is_final(
    fenced: Walk, is_final: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What decides it says so: a fence that is left on the controller of a final quorum, its file in its last stage."""

    async def nothing(*_: object) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr("activities.zk_to_kraft.starting.why_not_this_step", nothing)
    request = await step(fenced, StepAction.START_NODE)
    take_flag(fenced.cluster, request.step.node, restart=False)
    if is_final:
        node = fenced.cluster.nodes[request.step.node]
        path = next(p for p in node.machine.files if METADATA_LOG in p and p.endswith(".log"))
        final = batch(0, [(RecordType.ZK_MIGRATION_STATE.value, bytes((MigrationGauge.POST_MIGRATION, 0)))])
        node.machine.write(path, FileContent(final, 0o600, 0, 0))
        assert (await attempt(fenced, request)).did_restart
        return
    with pytest.raises(Unsafe, match="no migration flag"):
        await attempt(fenced, request)


async def test_a_controller_that_dies_at_its_start_says_why(fenced: Walk) -> None:
    request = await step(fenced, StepAction.START_NODE)
    fenced.cluster.faults.dies_at_start = {request.step.node: ("no space left on device",)}
    outcome = await attempt(fenced, request)
    assert "no space left on device" in (outcome.blocked or "")


async def test_a_controller_that_does_not_answer_is_named(fenced: Walk) -> None:
    request = await step(fenced, StepAction.START_NODE)
    request = request.model_copy(update={"policy": request.policy.model_copy(update={"restart_deadline": SHORT})})
    fenced.cluster.faults.silent_metrics = {request.step.node}
    outcome = await attempt(fenced, request)
    assert f"controller-{request.step.node} was started and does not answer" in (outcome.blocked or "")


async def dead(walk: Walk) -> StepRequest:
    """Dual write has died; a failover is decided."""
    walk.cluster.faults.is_dual_write_stuck = True
    walk.cluster.advance(20)
    return await step(walk, StepAction.FAIL_OVER)


async def test_a_failover_cures_dual_write(walk: Walk) -> None:
    request = await dead(walk)
    before = started(walk)
    outcome = await attempt(walk, request)
    assert outcome.is_done, outcome.blocked
    assert started(walk) == before | {request.step.node: before[request.step.node] + 1}
    node = walk.cluster.nodes[request.step.node]
    mark = await read_mark(walk.cluster.driver(node.spec), node.spec.properties_file)
    assert mark.is_proven
    assert (await next_step(walk)).step.action == StepAction.LEAVE_KRAFT


async def test_no_failover_while_another_controller_is_not_reached(walk: Walk) -> None:
    """It follows by all of its gauges, and could neither vote nor be followed."""
    request = await dead(walk)
    unreached = next(c.id for c in walk.cluster.spec.controllers if c.id != request.step.node)
    walk.cluster.faults.unreached = {unreached}
    outcome = await attempt(walk, request)
    assert f"{walk.cluster.spec.node_name(unreached)} at " in (outcome.blocked or "")
    assert not outcome.did_restart


async def test_a_dual_write_that_moves_is_not_dead(walk: Walk) -> None:
    """Far behind, with gauges that look well, and on its way: a restart would help nobody."""
    request = await dead(walk)
    znodes, before = walk.cluster.znodes, started(walk)
    offsets = itertools.count(offset_in(znodes) or 0)

    async def write_one(call: str) -> None:
        if call == "zookeeper get_many":
            znodes[MIGRATION] = migration_record(request.step.node, walk.cluster.quorum.epoch, next(offsets))

    walk.cluster.advance(200)
    outcome = await attempt(walk, request, write_one)
    assert "moves" in (outcome.blocked or "")
    assert started(walk) == before


async def test_a_config_that_a_failover_would_choke_on_forbids_it_and_is_named(walk: Walk) -> None:
    request = await dead(walk)
    stray = (4, bytes((CLIENT_METRICS,)) + b"\4all\2k\2v\0")
    walk.cluster.metadata_log.stray = (stray,)
    before = started(walk)
    outcome = await attempt(walk, request)
    assert "failover-would-hurt" in (outcome.blocked or "")
    assert started(walk) == before
    decision = await walk.decision()
    assert "client metrics config k of all" in str(decision)


async def test_a_log_that_cannot_be_read_is_a_hazard(walk: Walk) -> None:
    request = await dead(walk)
    walk.cluster.metadata_log = lambda _: b"\1" * 100
    walk.cluster.advance()
    outcome = await attempt(walk, request)
    assert "failover-would-hurt" in (outcome.blocked or "")


async def test_a_failover_that_does_not_cure_is_said(walk: Walk) -> None:
    request = await dead(walk)
    walk.cluster.faults.failover_does_not_cure = True
    quick = request.policy.model_copy(update={"restart_deadline": SHORT, "drain_deadline": SHORT})
    outcome = await attempt(walk, request.model_copy(update={"policy": quick}))
    assert "dual write is not cured" in (outcome.blocked or "")
    assert outcome.did_restart
    node = walk.cluster.nodes[request.step.node]
    mark = await read_mark(walk.cluster.driver(node.spec), node.spec.properties_file)
    assert (mark.is_proven, mark.has_run) == (False, True), "never to be taken for a new controller"


async def test_a_controller_that_does_not_stop_is_not_killed(walk: Walk) -> None:
    request = await dead(walk)
    walk.cluster.faults.ignores_stop = {request.step.node}
    quick = request.policy.model_copy(update={"stop_deadline": timedelta(microseconds=1)})
    calls = KillAfter()
    with pytest.raises(Unsafe, match="never killed"):
        await attempt(walk, request.model_copy(update={"policy": quick}), calls)
    assert not [call for call in calls.calls if call.endswith((" kill", " start"))]


async def test_another_run_s_cluster_is_left_alone(walk: Walk) -> None:
    request = await dead(walk)
    walk.ledger.held_by = 2
    before = started(walk)
    with pytest.raises(Superseded):
        await attempt(walk, request)
    assert started(walk) == before


@pytest.mark.parametrize("action", [StepAction.FAIL_OVER, StepAction.START_NODE, StepAction.ROLL_NODE])
async def test_a_node_that_is_silent_before_anything_is_touched_is_told_and_not_retried_unseen(
    walk: Walk, fenced: Walk, action: StepAction
) -> None:
    there = fenced if action == StepAction.START_NODE else walk
    if action == StepAction.ROLL_NODE:
        there = walk.copy(is_back=False, ledger=walk.ledger)
    request = await dead(there) if action == StepAction.FAIL_OVER else await step(there, action)
    there.cluster.faults.silent_nodes = {request.step.node}
    outcome = await attempt(there, request)
    assert not outcome.is_done
    assert "the step has not begun: " in (outcome.blocked or "")
    assert str(request.step.node) in (outcome.blocked or "")
