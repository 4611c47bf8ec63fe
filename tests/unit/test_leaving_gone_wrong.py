"""The revert window on a simulated cluster, where something is refused, damaged or silent: a controller stays."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from activities.node_files import FENCED_META, META, METADATA_LOG
from activities.zk_to_kraft.window.flushing import Stall
from activities.zk_to_kraft.window.pace import Pace
from domain.configuration.properties import edit
from domain.contracts import StepRequest
from domain.decisions import Step, Wait
from domain.errors import Permanent, Superseded, Transient, Unsafe
from domain.observed.observation import MigrationGauge
from domain.quorum_log.metadata_log import GROUP
from domain.quorum_log.record_batches import read_batches
from domain.quorum_log.record_types import RecordType
from domain.waits import WaitReason
from domain.zk_to_kraft.described import execution_of
from domain.zk_to_kraft.policy import FLUSHES, ZkToKraftPolicy
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.machine import text_file
from playground.fakes.storage_tool import write_meta
from playground.fakes.topics import spread
from playground.fakes.znodes import encoded, state_path, state_record
from playground.log_bytes import batch
from tests.unit.fake_walk import KillAfter, Killed, LedgerInMemory, Walk
from tests.unit.fake_window import attempt, end_of, in_dual_write, is_out, next_step

SHORT = timedelta(milliseconds=50)
TOUCHING = ("rename", "write_file", "kill", "commit")


@pytest.fixture(scope="module")
async def dual_write() -> Walk:
    return await in_dual_write()


@pytest.fixture
async def walk(dual_write: Walk) -> Walk:
    return dual_write.copy(ledger=LedgerInMemory(dual_write.cluster))


async def window(walk: Walk, *accepted: str, **policy: Any) -> StepRequest:
    walk.accepted = accepted
    request = await next_step(walk)
    assert request.step.action == StepAction.LEAVE_KRAFT
    return request.model_copy(update={"policy": request.policy.model_copy(update=policy)})


def are_running(walk: Walk) -> bool:
    return all(walk.cluster.nodes[c.id].process is not None for c in walk.cluster.spec.controllers)


def is_left(walk: Walk) -> bool:
    end = end_of(walk)
    return end["controller"] == "zookeeper" and end["migration"] is None and all(end["fenced"].values())


def at(walk: Walk, wanted: Callable[[str], bool], what: Callable[[], None]) -> Callable[[str], Awaitable[None]]:
    """Something that happens once, right after a call."""
    happened: list[str] = []

    async def watch(call: str) -> None:
        if not happened and wanted(call):
            happened.append(call)
            what()

    return watch


def after_the_kill(walk: Walk) -> Callable[[str], bool]:
    return lambda call: call.startswith("zookeeper") and all(is_out(walk.cluster, c.id) for c in walk.cluster.spec.controllers)


def append(walk: Walk, node_id: int, content: bytes) -> None:
    """To the log on a controller's disk."""
    node = walk.cluster.nodes[node_id]
    path = next(p for p in node.machine.files if METADATA_LOG in p and p.endswith(".log"))
    found = node.machine.read(path)
    assert found is not None
    node.machine.write(path, replace(found, content=found.content + content))


@pytest.mark.parametrize("path", ["/controller_epoch", "/migration", "/controller"])
async def test_a_missing_permission_is_learnt_while_the_controllers_live(walk: Walk, path: str) -> None:
    request, calls = await window(walk), KillAfter()
    walk.cluster.faults.forbidden_znodes = {path}
    outcome = await attempt(walk, request, calls)
    assert "not allowed" in (outcome.blocked or "")
    assert path in (outcome.blocked or "")
    assert not [call for call in calls.calls if call.split()[-1] in TOUCHING]


async def test_what_keeps_whoever_is_elected_from_ruling_is_learnt_while_the_controllers_live(walk: Walk) -> None:
    """A GUI has saved /feature with the quotes of its command line. Dual write never reads it."""
    request, calls = await window(walk), KillAfter()
    walk.cluster.znodes["/feature"] = b'"{"features":{},"version":2,"status":1}"'
    outcome = await attempt(walk, request, calls)
    assert "/feature cannot be read" in (outcome.blocked or "")
    assert "delete /feature" in (outcome.blocked or "")
    assert not [call for call in calls.calls if call.split()[-1] in TOUCHING]
    del walk.cluster.znodes["/feature"]
    assert (await attempt(walk, await window(walk))).is_done
    assert is_left(walk)


async def test_a_permission_that_is_lost_after_the_kill_gives_the_cluster_back(walk: Walk) -> None:
    request = await window(walk)
    watch = at(walk, lambda call: call.endswith("kill"), lambda: walk.cluster.faults.forbidden_znodes.add("/migration"))
    with pytest.raises(Permanent, match="not allowed"):
        await attempt(walk, request, watch)
    assert are_running(walk)
    walk.cluster.faults.forbidden_znodes.clear()
    walk.cluster.advance(5)
    assert (await attempt(walk, await window(walk))).is_done
    assert is_left(walk)


async def test_what_may_not_be_completed_does_not_end_the_flush(walk: Walk) -> None:
    request = await window(walk, drain_deadline=SHORT)
    walk.cluster.faults.is_dual_write_stuck = True
    walk.cluster.create_topic(spread("late", 3, (1, 2, 3)))
    walk.cluster.advance()
    del walk.cluster.znodes[state_path("orders", 5)]
    walk.cluster.faults.forbidden_znodes = {state_path("orders", 5)}
    outcome = await attempt(walk, request)
    assert outcome.is_done, outcome.blocked
    assert any("was not completed" in change for change in outcome.changes), outcome.changes
    assert "late" in walk.cluster.side.topic_names()


async def test_zookeepers_silence_after_the_kill_gives_the_cluster_back_until_it_is_over(walk: Walk) -> None:
    request, faults = await window(walk), walk.cluster.faults
    watch = at(walk, lambda call: call == "node 3003 kill", lambda: setattr(faults, "silent_zookeeper", True))
    with pytest.raises(Transient):
        await attempt(walk, request, watch)
    assert are_running(walk)
    faults.silent_zookeeper = False
    walk.cluster.advance(5)
    assert (await attempt(walk, request)).is_done
    assert is_left(walk)


@pytest.mark.parametrize("fault", [{"silent_nodes": {3002}}, {"silent_zookeeper": True}])
async def test_what_does_not_answer_is_told_before_anything_is_touched(walk: Walk, fault: dict[str, Any]) -> None:
    request, calls = await window(walk), KillAfter()
    for name, value in fault.items():
        setattr(walk.cluster.faults, name, value)
    outcome = await attempt(walk, request, calls)
    assert "no node was touched" in (outcome.blocked or "")
    assert are_running(walk)
    assert not [call for call in calls.calls if call.endswith(TOUCHING)]


@pytest.mark.parametrize("fault", [{"silent_nodes": {3002}}, {"silent_zookeeper": True}])
async def test_what_does_not_answer_in_a_window_that_stands_open_is_told_too(walk: Walk, fault: dict[str, Any]) -> None:
    """The worker died between the kills and the transaction. It is waited for by its name, and then it is ended."""
    request, first = await window(walk), KillAfter()
    await attempt(walk.copy(), request, first)
    last_kill = max(i for i, call in enumerate(first.calls) if call.endswith("kill"))
    with pytest.raises(Killed):
        await attempt(walk, request, KillAfter(last_kill))
    before = dict(vars(walk.cluster.faults))
    for name, value in fault.items():
        setattr(walk.cluster.faults, name, value)
    assert "no node was touched" in ((await attempt(walk, request)).blocked or "")
    waiting = await walk.decision()
    assert isinstance(waiting, Wait)
    assert waiting.reason == WaitReason.PART_UNKNOWN
    vars(walk.cluster.faults).update(before)
    assert (await attempt(walk, await next_step(walk))).is_done
    assert is_left(walk)


async def test_a_lost_answer_to_the_transaction_starts_nobody(walk: Walk) -> None:
    request = await window(walk)
    walk.cluster.faults.loses_commit_answer = True
    with pytest.raises(Transient):
        await attempt(walk, request)
    assert all(end_of(walk)["fenced"].values())


@pytest.mark.parametrize("answer", [Permanent("no such cluster"), 0])
async def test_a_ledger_that_does_not_know_the_cluster_any_more_holds_nothing_up(walk: Walk, answer: Any) -> None:
    """It was restored from a backup, or lost."""
    request = await window(walk)

    async def generation(_cluster: str) -> int:
        if isinstance(answer, Permanent):
            raise answer
        return int(answer)

    walk.ledger.generation = generation
    assert (await attempt(walk, request)).is_done
    assert is_left(walk)
    with pytest.raises((Permanent, Superseded)):
        await attempt(walk, request.model_copy(update={"revert": None}))


async def test_nobody_asks_the_ledger_between_the_kill_and_the_transaction(walk: Walk) -> None:
    request = await window(walk)
    watch = at(walk, lambda call: call.endswith("kill"), lambda: setattr(walk.ledger, "held_by", 2))
    assert (await attempt(walk, request, watch)).is_done
    assert is_left(walk)


async def test_a_final_log_starts_its_controllers_whoever_rules(walk: Walk) -> None:
    request = await window(walk)

    def finalize() -> None:
        for controller in walk.cluster.spec.controllers:
            walk.cluster.kill(controller.id)
            append(walk, controller.id, final_after(walk, controller.id))
        del walk.cluster.znodes["/controller"]
        walk.cluster.znodes.create("/controller", encoded({"version": 2, "brokerid": 1, "kraftControllerEpoch": -1}), 7)

    outcome = await attempt(walk, request, at(walk, lambda call: call == "node 3003 rename", finalize))
    assert "a rollback to ZooKeeper is no longer possible" in (outcome.blocked or "")
    assert are_running(walk)


def final_after(walk: Walk, node_id: int) -> bytes:
    """A record that says the migration is final, at the end of a controller's log."""
    node = walk.cluster.nodes[node_id]
    content = next(f.content for p, f in node.machine.files.items() if METADATA_LOG in p and p.endswith(".log"))
    end = read_batches(content)[0][-1].last_offset + 1
    return batch(end, [(RecordType.ZK_MIGRATION_STATE.value, bytes((MigrationGauge.POST_MIGRATION, 0)))])


async def test_what_one_log_alone_says_of_the_end_never_happened(walk: Walk) -> None:
    """Written by a leader without its flag in its last moment, and on no other's disk."""
    request = await window(walk)

    def finalize() -> None:
        append(walk, 3003, final_after(walk, 3003))

    outcome = await attempt(walk, request, at(walk, lambda call: call == "node 3003 kill", finalize))
    assert outcome.is_done, outcome.blocked
    assert is_left(walk)


async def test_the_one_whose_log_alone_is_final_is_not_started_for_a_flush(walk: Walk) -> None:
    request = await window(walk, drain_deadline=SHORT)
    walk.cluster.faults.is_dual_write_stuck = True
    walk.cluster.create_topic(spread("late", 3, (1, 2, 3)))
    walk.cluster.advance()
    starts = walk.cluster.nodes[3003].starts
    watch = at(walk, lambda call: call == "node 3003 kill", lambda: append(walk, 3003, final_after(walk, 3003)))
    outcome = await attempt(walk, request, watch)
    assert outcome.is_done, outcome.blocked
    assert "late" in walk.cluster.side.topic_names()
    assert walk.cluster.nodes[3003].starts == starts


def damage(walk: Walk, *node_ids: int) -> None:
    for node_id in node_ids:
        append(walk, node_id, b"\1" * 100)


async def test_one_damaged_log_is_made_up_for_by_the_others(walk: Walk) -> None:
    request = await window(walk)
    watch = at(walk, lambda call: call == "zookeeper get_many", lambda: damage(walk, 3003))
    outcome = await attempt(walk, request, watch)
    assert outcome.is_done, outcome.blocked
    assert is_left(walk)


@pytest.mark.parametrize("is_accepted", [False, True])
async def test_most_logs_damaged_need_the_loss_accepted(walk: Walk, is_accepted: bool) -> None:
    request = await window(walk, *(("metadata-changes",) if is_accepted else ()))
    watch = at(walk, after_the_kill(walk), lambda: damage(walk, 3002, 3003))
    if is_accepted:
        outcome = await attempt(walk, request, watch)
        assert outcome.is_done, outcome.blocked
        assert is_left(walk)
        assert any("controller-3003 cannot be read" in change for change in outcome.changes)
        return
    with pytest.raises(Unsafe, match="most of the logs"):
        await attempt(walk, request, watch)
    assert are_running(walk)


async def test_a_deletion_by_hand_that_raised_no_epoch_is_repaired(walk: Walk) -> None:
    request = await window(walk)
    assert (await attempt(walk, request)).is_done
    epoch = walk.cluster.side.controller_epoch
    walk.cluster.znodes[state_path("orders", 0)] = state_record((1, 2, 3), 1, epoch + 50)
    assert end_of(walk)["trapped"] != ()
    assert (await attempt(walk, request)).is_done
    assert is_left(walk)
    assert walk.cluster.side.controller_epoch > epoch + 50
    assert end_of(walk)["trapped"] == ()


async def test_what_zookeeper_lacks_is_named_where_its_controller_ruled_already(walk: Walk) -> None:
    request = await window(walk, drain_deadline=SHORT)
    walk.cluster.faults.is_dual_write_stuck = True
    walk.cluster.create_topic(spread("late", 3, (1, 2, 3)))
    walk.cluster.advance()

    def depose() -> None:
        del walk.cluster.znodes["/controller"]
        walk.cluster.znodes.create("/controller", encoded({"version": 2, "brokerid": 1, "kraftControllerEpoch": -1}), 7)

    outcome = await attempt(walk, request, at(walk, lambda call: call == "node 3003 kill", depose))
    assert outcome.is_done, outcome.blocked
    assert any("was already active, without 1 topic" in change for change in outcome.changes), outcome.changes


async def test_a_config_in_the_tail_that_zookeeper_cannot_hold_forbids_the_flush(walk: Walk) -> None:
    """It was set after the offset in /migration: only the dead logs tell."""
    request = await window(walk, drain_deadline=SHORT)
    walk.cluster.faults.is_dual_write_stuck = True
    walk.cluster.create_topic(spread("late", 3, (1, 2, 3)))
    walk.cluster.metadata_log.stray = ((4, bytes((GROUP,)) + b"\2g\2k\2v\0"),)
    walk.cluster.advance(3)
    with pytest.raises(Unsafe, match="group config k of g"):
        await attempt(walk, request)
    assert are_running(walk)


def test_a_leader_that_compares_is_no_stall_and_one_that_wrote_and_stopped_is() -> None:
    stall = Stall(10.0)
    assert not any(stall.is_seen(7, now) for now in (1.0, 20.0, 60.0)), "it has written nothing yet"
    assert not stall.is_seen(8, 61.0)
    assert not stall.is_seen(8, 70.0)
    assert stall.is_seen(8, 71.5)


def test_the_time_limit_of_the_window_is_longer_than_all_its_deadlines() -> None:
    policy = ZkToKraftPolicy(restart_deadline=timedelta(minutes=10), drain_deadline=timedelta(minutes=5))
    step = Step(action=StepAction.LEAVE_KRAFT, node_id=None, stage=NodeStage.MIGRATION, why="")
    deadlines = policy.drain_deadline + policy.election_deadline + FLUSHES * (policy.restart_deadline + policy.drain_deadline)
    assert execution_of(step, policy).limit > deadlines


@pytest.mark.parametrize("when", ["before the transaction", "after the watch"])
async def test_a_fence_that_somebody_lifts_in_the_last_moment_is_another_round(walk: Walk, when: str) -> None:
    request, calls = await window(walk), KillAfter()
    node = walk.cluster.nodes[3002]
    path = node.spec.log_dirs[0]

    def lift() -> None:
        node.machine.rename(f"{path}/{FENCED_META}", f"{path}/{META}")

    def is_it(call: str) -> bool:
        committed = "zookeeper commit" in calls.calls
        if when == "before the transaction":
            return call == "zookeeper get_many" and after_the_kill(walk)(call)
        return committed and walk.cluster.side.controller is not None

    once = at(walk, is_it, lift)

    async def watch(call: str) -> None:
        await calls(call)
        await once(call)

    outcome = await attempt(walk, request, watch, pace=Pace(poll=0.0, settle=0.01, watch=0.05))
    assert outcome.is_done, outcome.blocked
    assert is_left(walk)
    fenced = [place for place, call in enumerate(calls.calls) if call == "node 3002 rename"]
    assert len(fenced) == 2
    assert (fenced[1] < calls.calls.index("zookeeper commit")) is (when == "before the transaction")


async def test_the_directory_of_a_living_broker_is_not_fenced(walk: Walk) -> None:
    """Its path was copied into the controller's file: the controller cannot start from it anyway."""
    request = await window(walk)
    node = walk.cluster.nodes[3001]
    write_meta(node.machine, "/data/broker-1", {"version": "1", "cluster.id": walk.cluster.spec.cluster_id}, 1)

    def copy_path() -> None:
        text = node.machine.read(node.spec.properties_file).content.decode()
        node.machine.write(
            node.spec.properties_file, text_file(edit(text, {"metadata.log.dir": "/data/broker-1"}, frozenset()))
        )

    outcome = await attempt(walk, request, at(walk, lambda call: call == "node 3001 list_dir", copy_path))
    assert outcome.is_done, outcome.blocked
    assert node.machine.names("/data/broker-1") == (META,)
    assert is_left(walk)


async def test_a_claim_that_slips_in_afterwards_makes_nothing_missing_that_was_written_before(walk: Walk) -> None:
    """/migration is gone with the transaction, and with it the offset up to which ZooKeeper has all."""
    walk.cluster.create_topic(spread("written", 3, (1, 2, 3)))
    walk.cluster.advance(3)
    assert "written" in walk.cluster.side.topic_names()
    request = await window(walk)
    walk.cluster.faults.late_claims = 1
    outcome = await attempt(walk, request)
    assert outcome.is_done, outcome.blocked
    assert is_left(walk)
