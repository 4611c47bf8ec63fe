"""The revert window on a simulated cluster: what it does, what it refuses, and what may come between."""

import json
from datetime import timedelta
from typing import Any

import pytest

from activities.observing.epochs import rule_of
from activities.zk_to_kraft.window.half_written import complete_half_written
from activities.zk_to_kraft.window.pace import Pace
from domain.contracts import StepRequest
from domain.errors import Superseded, Transient, Unsafe
from domain.observed.observation import MigrationGauge
from domain.quorum_log.metadata_log import GROUP
from domain.zk_to_kraft.node_config import node_file
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.cluster import FakeCluster
from playground.fakes.machine import text_file
from playground.fakes.metadata_log import FakeLog
from playground.fakes.node import FakeDriver
from playground.fakes.topics import spread
from playground.fakes.znodes import claim_record, migration_record, state_path, state_record, topic_record
from tests.unit.fake_walk import KillAfter, Killed, LedgerInMemory, Walk
from tests.unit.fake_window import attempt, end_of, in_dual_write, is_out, next_step

SHORT = timedelta(milliseconds=50)
LAST_BROKER = 1
"""ZooKeeper's controller is rolled last."""


@pytest.fixture(scope="module")
async def dual_write() -> Walk:
    return await in_dual_write()


@pytest.fixture
async def walk(dual_write: Walk) -> Walk:
    return dual_write.copy(ledger=LedgerInMemory(dual_write.cluster))


async def window(walk: Walk, **policy: Any) -> StepRequest:
    request = await next_step(walk)
    assert request.step.action == StepAction.LEAVE_KRAFT
    return request.model_copy(update={"policy": request.policy.model_copy(update=policy)})


def is_left(walk: Walk) -> bool:
    end = end_of(walk)
    return end["controller"] == "zookeeper" and end["migration"] is None and all(end["fenced"].values())


async def test_the_window_leaves_a_zookeeper_controller_and_fenced_controllers(walk: Walk) -> None:
    outcome = await attempt(walk, await window(walk))
    assert outcome.is_done, outcome.blocked
    assert is_left(walk)
    assert end_of(walk)["deleted"] == []
    assert any("without a controller" in change for change in outcome.changes)
    assert any("/migration deleted" in change for change in outcome.changes)


async def test_the_order_of_effects_is_that_of_the_docstring(walk: Walk) -> None:
    calls = KillAfter()
    await attempt(walk, await window(walk), calls)
    effects = [c for c in calls.calls if c.split()[-1] in {"rename", "kill", "commit"}]
    assert [c.split()[-1] for c in effects] == ["rename"] * 3 + ["kill"] * 3 + ["commit"]
    before = calls.calls[: calls.calls.index(effects[0])]
    assert "kafka view" in before, "an observation right before"
    assert calls.calls[len(before) - 1].endswith(("list_dir", "read_file", "generation"))


async def test_the_epoch_is_raised_above_all_states(walk: Walk) -> None:
    """Forced elections: the quorum's epoch runs ahead of ZooKeeper's, and the states carry it."""
    cluster = walk.cluster
    cluster.quorum.epoch = 40
    cluster.kill(cluster.quorum.leader or 0)
    cluster.advance(3)
    cluster.nodes[1].die()
    cluster.advance()
    cluster.nodes[1].start()
    for controller in cluster.spec.controllers:
        if cluster.nodes[controller.id].process is None:
            cluster.nodes[controller.id].start()
    cluster.advance(5)
    assert cluster.side.controller_epoch < 40
    outcome = await attempt(walk, await window(walk))
    assert outcome.is_done, outcome.blocked
    assert cluster.side.controller_epoch > 40
    assert end_of(walk)["trapped"] == ()


async def test_what_zookeeper_lacks_is_flushed_by_the_controllers_before_they_die_for_good(walk: Walk) -> None:
    cluster = walk.cluster
    request = await window(walk, drain_deadline=SHORT)
    cluster.faults.is_dual_write_stuck = True
    cluster.create_topic(spread("late", 3, (1, 2, 3)))
    cluster.advance()
    assert "late" not in cluster.side.topic_names()
    outcome = await attempt(walk, request)
    assert outcome.is_done, outcome.blocked
    assert any(change.startswith("flushed: 1 topic") for change in outcome.changes), outcome.changes
    assert is_left(walk)
    assert "late" in cluster.side.topic_names()
    assert end_of(walk)["deleted"] == []


async def test_a_topic_that_the_kill_cut_in_two_is_completed_and_nothing_is_removed(walk: Walk) -> None:
    """No controller of Kafka's can finish it: the next one sets a state that does not exist, and fails without end."""
    cluster = walk.cluster
    request = await window(walk, drain_deadline=SHORT)
    cluster.faults.is_dual_write_stuck = True
    late = spread("late", 3, (1, 2, 3))
    cluster.create_topic(late)
    cluster.advance()
    cluster.znodes["/brokers/topics/late"] = topic_record(late)
    cluster.znodes[state_path("late", 0)] = state_record((1, 2, 3), 0, 1)
    cluster.znodes["/brokers/topics/late/partitions/1"] = b""
    cluster.faults.failover_does_not_cure = False
    there = {path: cluster.znodes.find(path).created_at for path in cluster.znodes if "/topics/" in path}
    outcome = await attempt(walk, request)
    assert outcome.is_done, outcome.blocked
    assert "half written in ZooKeeper, and completed: late" in outcome.changes
    assert all(state_path("late", number) in cluster.znodes for number in range(3))
    assert there == {path: cluster.znodes.find(path).created_at for path in there}


async def half_written(walk: Walk, name: str, numbers: tuple[int, ...]) -> dict[str, bytes]:
    """The states of some partitions are not there. All of the topic's znodes that are."""
    for number in numbers:
        del walk.cluster.znodes[state_path(name, number)]
    return dict(walk.cluster.znodes)


async def complete(walk: Walk) -> tuple[str, ...]:
    tree = await walk.cluster.connect(walk.cluster.record())
    return await complete_half_written(tree, await rule_of(tree))


@pytest.mark.parametrize("numbers", [(5,), (0, 3), tuple(range(6))])
async def test_missing_states_are_those_of_a_new_partition_whatever_topic_they_are_of(
    walk: Walk, numbers: tuple[int, ...]
) -> None:
    """A topic of many messages that nobody writes anew, whose partitions never moved, keeps all that it has."""
    znodes = walk.cluster.znodes
    before = await half_written(walk, "orders", numbers)
    assert await complete(walk) == ("orders",)
    assert {path: data for path, data in znodes.items() if path in before} == before
    assignment = json.loads(znodes["/brokers/topics/orders"])["partitions"]
    for number in numbers:
        state = json.loads(znodes[state_path("orders", number)])
        assert (state["leader"], state["isr"], state["leader_epoch"]) == (
            assignment[str(number)][0],
            assignment[str(number)],
            0,
        )
        assert state["controller_epoch"] <= walk.cluster.side.controller_epoch
    assert await complete(walk) == ()


async def test_what_zookeepers_own_controller_is_just_creating_is_left_alone(walk: Walk) -> None:
    tree = await walk.cluster.connect(walk.cluster.record())
    seen = await rule_of(tree)
    walk.cluster.side.raise_epoch()
    before = await half_written(walk, "orders", (5,))
    assert await complete_half_written(tree, seen) == ()
    assert dict(walk.cluster.znodes) == before


async def stuck(walk: Walk) -> StepRequest:
    """Changes that no controller writes any more, and a window that was decided before."""
    request = await window(walk, drain_deadline=SHORT, restart_deadline=SHORT)
    walk.cluster.faults.is_dual_write_stuck = walk.cluster.faults.failover_does_not_cure = True
    walk.cluster.create_topic(spread("late", 3, (1, 2, 3)))
    walk.cluster.advance()
    return request


async def test_what_cannot_be_flushed_gives_the_cluster_back_to_its_controllers(walk: Walk) -> None:
    request = await stuck(walk)
    with pytest.raises(Unsafe, match="accept the loss metadata-changes"):
        await attempt(walk, request)
    walk.cluster.advance(3)
    assert walk.cluster.quorum.leader is not None
    assert not any(end_of(walk)["fenced"].values())
    assert end_of(walk)["controller"].ephemeral_owner == 0


async def test_an_accepted_loss_goes_on_after_one_try(walk: Walk) -> None:
    request = await stuck(walk)
    order = request.revert.model_copy(update={"accepted_losses": ("metadata-changes",)})
    outcome = await attempt(walk, request.model_copy(update={"revert": order}))
    assert outcome.is_done, outcome.blocked
    assert any(change.startswith("accepted as lost: ZooKeeper lacks 1 topic") for change in outcome.changes)
    assert is_left(walk)


async def test_a_config_that_zookeeper_cannot_hold_forbids_to_rely_on_a_flush(walk: Walk) -> None:
    walk.cluster.metadata_log.stray = ((4, bytes((GROUP,)) + b"\2g\2k\2v\0"),)
    walk.cluster.advance()
    request = await stuck(walk)
    found = end_of(walk)
    outcome = await attempt(walk, request)
    assert "group config k of g" in (outcome.blocked or "")
    assert end_of(walk) == found, "nothing was touched"


REFUSED = "ERROR Encountered zk migration fault: Encountered ZooKeeper authentication in MetadataChangeEvent"


@pytest.mark.parametrize("is_accepted", [False, True])
async def test_what_a_controller_could_not_write_is_not_lost_without_consent(walk: Walk, *, is_accepted: bool) -> None:
    """Kafka does not try it again, and the offset has gone past it since: by that, ZooKeeper has everything."""
    request = await window(walk)
    leader = walk.cluster.quorum.leader
    assert leader is not None
    node, starts = walk.cluster.nodes[leader], [node.starts for node in walk.cluster.nodes.values()]
    node.output.append(REFUSED)
    if is_accepted:
        assert request.revert is not None
        order = request.revert.model_copy(update={"accepted_losses": ("metadata-changes",)})
        assert (await attempt(walk, request.model_copy(update={"revert": order}))).is_done
        return
    outcome = await attempt(walk, request)
    assert f"restart controller-{leader}: the next active controller writes what differs" in (outcome.blocked or "")
    assert [node.starts for node in walk.cluster.nodes.values()] == starts, "nothing was touched"
    node.die()
    walk.cluster.advance(3)
    outcome = await attempt(walk, request)
    assert "could not write a change" not in (outcome.blocked or ""), "who leads since has written it"


@pytest.mark.parametrize("is_accepted", [False, True])
async def test_what_a_controller_could_not_write_in_its_last_moment_is_written_by_the_next(
    walk: Walk, *, is_accepted: bool
) -> None:
    request = await window(walk)
    leader = walk.cluster.quorum.leader
    assert leader is not None
    assert request.revert is not None
    order = request.revert.model_copy(update={"accepted_losses": ("metadata-changes",) if is_accepted else ()})
    node = walk.cluster.nodes[leader]
    starts = node.starts

    async def refuse(call: str) -> None:
        if call.endswith("rename") and node.starts == starts and REFUSED not in node.output:
            node.output.append(REFUSED)

    outcome = await attempt(walk, request.model_copy(update={"revert": order}), refuse)
    assert outcome.is_done, outcome.blocked
    assert any(change.startswith(f"flushed: what controller-{leader} could not write") for change in outcome.changes)
    assert node.starts == starts + 1
    assert is_left(walk)


async def test_what_is_refused_is_written_also_where_the_attempt_that_has_killed_everybody_died(walk: Walk) -> None:
    request = await window(walk)
    leader = walk.cluster.quorum.leader
    assert leader is not None
    node = walk.cluster.nodes[leader]

    async def refuse_and_die(call: str) -> None:
        if call.endswith("rename") and REFUSED not in node.output:
            node.output.append(REFUSED)
        if all(walk.cluster.nodes[c.id].process is None for c in walk.cluster.spec.controllers):
            raise Killed

    with pytest.raises(Killed):
        await attempt(walk, request, refuse_and_die)
    outcome = await attempt(walk, request)
    assert outcome.is_done, outcome.blocked
    assert any(change.startswith(f"flushed: what controller-{leader} could not write") for change in outcome.changes)


async def test_what_one_said_that_had_died_before_is_over(walk: Walk) -> None:
    """Who led since has written it, and its output goes on saying so."""
    leader = walk.cluster.quorum.leader
    assert leader is not None
    walk.cluster.nodes[leader].output.append(REFUSED)
    walk.cluster.kill(leader)
    walk.cluster.advance(5)
    outcome = await attempt(walk, await window(walk))
    assert outcome.is_done, outcome.blocked
    assert not any("could not write" in change for change in outcome.changes)


async def test_what_nobody_wrote_after_all_is_still_missing(walk: Walk) -> None:
    """The controllers that were started for it came to no rest: their logs are new, and say nothing of it."""
    request = await window(walk, drain_deadline=SHORT, restart_deadline=SHORT)
    leader = walk.cluster.quorum.leader
    assert leader is not None
    node, starts = walk.cluster.nodes[leader], walk.cluster.nodes[leader].starts

    async def refuse(call: str) -> None:
        if call.endswith("rename") and node.starts == starts and REFUSED not in node.output:
            node.output.append(REFUSED)
            walk.cluster.faults.is_dual_write_stuck = walk.cluster.faults.failover_does_not_cure = True

    with pytest.raises(Unsafe, match=rf"what controller-{leader} could not write .* accept the loss metadata-changes"):
        await attempt(walk, request, refuse)
    walk.cluster.advance(3)
    assert walk.cluster.quorum.leader is not None


async def test_a_log_that_does_not_come_holds_no_cluster_up_that_nobody_leads(
    walk: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await window(walk)
    leader = walk.cluster.quorum.leader
    assert leader is not None
    output = FakeDriver.output

    async def read(driver: FakeDriver, lines: int) -> Any:
        if walk.cluster.nodes[leader].process is None:
            raise Transient("the volume of its output has gone")
        return await output(driver, lines)

    monkeypatch.setattr(FakeDriver, "output", read)
    outcome = await attempt(walk, request)
    assert outcome.is_done, outcome.blocked
    assert any("in its last moment is not known" in change for change in outcome.changes)


async def test_what_zookeeper_refuses_again_and_again_gives_the_cluster_back_to_its_controllers(walk: Walk) -> None:
    request = await window(walk)
    controllers = [walk.cluster.nodes[c.id] for c in walk.cluster.spec.controllers]

    async def refuse(call: str) -> None:
        if call.endswith("rename"):
            for node in controllers:
                node.output.append(REFUSED)

    with pytest.raises(Unsafe, match=r"could not write .* accept the loss metadata-changes"):
        await attempt(walk, request, refuse)
    walk.cluster.advance(3)
    assert walk.cluster.quorum.leader is not None
    assert not any(end_of(walk)["fenced"].values())


STRAY_ACL = (18, b"\1" * 16 + b"\3\4a/b\3\x0bUser:alice\2*\3\2\0")
"""AccessControlEntryRecord: group a/b, literal, User:alice, every host, read, denied."""


@pytest.mark.parametrize("is_late", [False, True], ids=["long past", "in the last moment"])
async def test_what_zookeeper_has_never_got_is_not_lost_without_consent(walk: Walk, is_late: bool) -> None:
    """By the offset dual write is current: nothing else would tell. In the last moment, where only the dead logs do."""
    request = await window(walk)

    async def deny(call: str) -> None:
        if not call or call.endswith("rename"):
            walk.cluster.metadata_log.stray = (STRAY_ACL,)
            walk.cluster.advance(2)

    if not is_late:
        await deny("")
    controllers = [walk.cluster.nodes[c.id] for c in walk.cluster.spec.controllers]
    starts = [node.starts for node in controllers]
    outcome = await attempt(walk, request, deny if is_late else None)
    assert "DENY of READ to User:alice for group a/b" in (outcome.blocked or "")
    assert "never-written" in (outcome.blocked or "")
    assert all(node.process is not None for node in controllers)
    assert [node.starts for node in controllers] == starts or is_late, "nothing was touched"
    assert request.revert is not None
    order = request.revert.model_copy(update={"accepted_losses": ("never-written",)})
    outcome = await attempt(walk, request.model_copy(update={"revert": order}))
    assert outcome.is_done, outcome.blocked
    assert any("accepted as lost: ZooKeeper never received" in change for change in outcome.changes)
    assert is_left(walk)


async def test_a_log_that_is_final_has_no_way_back(walk: Walk) -> None:
    """Found only once they are dead: a controller without its flag became active in the last moment."""
    request = await window(walk)

    async def finalize(call: str) -> None:
        if call.endswith("rename") and walk.cluster.quorum.log_state is MigrationGauge.MIGRATION:
            walk.cluster.quorum.log_state = MigrationGauge.POST_MIGRATION
            walk.cluster.advance()

    outcome = await attempt(walk, request, finalize)
    assert "a rollback to ZooKeeper is no longer possible" in (outcome.blocked or "")
    assert all(walk.cluster.nodes[c.id].process is not None for c in walk.cluster.spec.controllers)
    assert end_of(walk)["migration"] is not None


async def test_before_the_copy_nobody_is_started_again(walk: Walk) -> None:
    """With an earlier attempt's /migration a quorum deletes what its log lacks: so what that log has is no reason."""
    walk.cluster.metadata_log = lambda _: b""
    walk.cluster.advance()
    starts = {c.id: walk.cluster.nodes[c.id].starts for c in walk.cluster.spec.controllers}
    assert (await attempt(walk, await window(walk))).is_done
    assert starts == {c.id: walk.cluster.nodes[c.id].starts for c in walk.cluster.spec.controllers}


async def test_a_stranger_at_a_controllers_address_is_noticed_before_anything_is_touched(walk: Walk) -> None:
    walk.cluster.kill(3003)
    calls = KillAfter()
    outcome = await attempt(walk, await window(walk), calls, strangers=(3003,))
    assert "controller-3003" in (outcome.blocked or "")
    assert not [call for call in calls.calls if call.split()[-1] in {"rename", "write_file", "kill", "commit"}]


async def test_a_stranger_who_shows_himself_later_gives_the_cluster_back(walk: Walk) -> None:
    outcome = await attempt(walk, await window(walk), strangers=(3003,))
    assert "a process answers" in (outcome.blocked or "")
    walk.cluster.advance(3)
    assert walk.cluster.quorum.leader is not None
    assert not any(end_of(walk)["fenced"].values())


async def test_sockets_of_the_dead_are_no_strangers(walk: Walk) -> None:
    """Seen on a busy machine: the process is gone, and its port still accepts."""
    outcome = await attempt(walk, await window(walk), lingering=5, pace=Pace(poll=0.0, settle=0.5, watch=0.01))
    assert outcome.is_done, outcome.blocked
    assert is_left(walk)


@pytest.mark.parametrize("claims", [1, 3])
async def test_a_claim_that_slips_in_is_seen_and_the_window_repeated(walk: Walk, claims: int) -> None:
    request = await window(walk)
    walk.cluster.faults.late_claims = claims
    outcome = await attempt(walk, request)
    assert outcome.is_done, outcome.blocked
    assert walk.cluster.faults.late_claims == 0
    assert is_left(walk)
    assert end_of(walk)["trapped"] == ()


@pytest.mark.parametrize("what", ["a claim", "/migration"])
async def test_what_comes_back_after_the_window_is_seen_by_the_watch(walk: Walk, what: str) -> None:
    """A broker is controller already; then a leader that was just about to claim does it, or a controller starts after all."""
    request = await window(walk)
    cluster, times = walk.cluster, 0

    async def slip_in(call: str) -> None:
        nonlocal times
        if times or cluster.side.controller is None or cluster.znodes.find("/migration") is not None:
            return
        times += 1
        if what == "/migration":
            cluster.znodes["/migration"] = migration_record(-1, -1, -1)
        else:
            cluster.znodes.create("/controller", claim_record(3001, 99))
            cluster.side.raise_epoch()

    calls = KillAfter()

    async def watch(call: str) -> None:
        await calls(call)
        await slip_in(call)

    outcome = await attempt(walk, request, watch, pace=Pace(poll=0.0, watch=0.5))
    assert outcome.is_done, outcome.blocked
    assert times == 1
    assert calls.calls.count("zookeeper commit") == 2
    assert is_left(walk)
    assert cluster.side.controller_epoch > (99 if what == "a claim" else 0)


async def test_claims_without_end_are_said(walk: Walk) -> None:
    request = await window(walk)
    walk.cluster.faults.late_claims = 1000
    with pytest.raises(Unsafe, match="came back"):
        await attempt(walk, request)


async def test_a_lost_answer_to_the_transaction_is_looked_at_by_the_retry(walk: Walk) -> None:
    request = await window(walk)
    walk.cluster.faults.loses_commit_answer = True
    with pytest.raises(Transient):
        await attempt(walk, request)
    walk.cluster.faults.loses_commit_answer = False
    epoch = walk.cluster.side.controller_epoch
    assert (await attempt(walk, request)).is_done
    assert is_left(walk)
    assert walk.cluster.side.controller_epoch <= epoch + 1, "a second controller was not needed"


async def test_a_process_that_survives_is_waited_for(walk: Walk) -> None:
    request = await window(walk)
    walk.cluster.faults.survives_kill = {3002}
    for _ in range(2):
        with pytest.raises(Transient, match="SIGKILL"):
            await attempt(walk, request)
        assert end_of(walk)["migration"] is not None
    walk.cluster.faults.survives_kill = set()
    assert (await attempt(walk, request)).is_done
    assert is_left(walk)


async def test_a_controller_that_may_run_without_its_flag_dies_first(walk: Walk) -> None:
    """Alone with a majority it would make the migration final. What does not answer may be one."""
    request, first = await window(walk), KillAfter(0)
    calls = KillAfter()
    await attempt(walk.copy(), request, calls)
    first.count = next(i for i, call in enumerate(calls.calls) if call.endswith("rename"))
    with pytest.raises(Killed):
        await attempt(walk, request, first)
    walk.cluster.faults.silent_metrics = {3003}
    calls = KillAfter()
    assert (await attempt(walk, request, calls)).is_done
    assert next(call for call in calls.calls if call.endswith("kill")) == "node 3003 kill"


async def test_nobody_becomes_controller(walk: Walk) -> None:
    request = await window(walk, election_deadline=SHORT)

    async def lose_brokers(call: str) -> None:
        if call == "zookeeper commit":
            for broker in walk.cluster.spec.brokers:
                walk.cluster.kill(broker.id)

    outcome = await attempt(walk, request, lose_brokers)
    assert "ALARM" in (outcome.blocked or "")
    for broker in walk.cluster.spec.brokers:
        walk.cluster.nodes[broker.id].start()
    assert (await attempt(walk, request)).is_done


async def test_another_run_s_cluster_is_left_alone(walk: Walk) -> None:
    request = await window(walk)
    walk.ledger.held_by = 2
    found = end_of(walk)
    with pytest.raises(Superseded):
        await attempt(walk, request)
    assert end_of(walk) == found


async def test_a_silent_ledger_holds_nothing_up(walk: Walk) -> None:
    request = await window(walk)
    walk.ledger.is_silent = True
    assert (await attempt(walk, request)).is_done
    assert is_left(walk)


async def test_what_was_never_provisioned_is_not_touched(walk: Walk) -> None:
    """Only /migration is left of an attempt, by somebody's hand."""
    outcome = await attempt(walk, await window(walk))
    assert outcome.is_done
    for controller in walk.cluster.spec.controllers:
        node = walk.cluster.nodes[controller.id]
        node.machine.remove(controller.properties_file)
        node.machine.remove_tree(controller.log_dirs[0])
    walk.cluster.znodes["/migration"] = b"{}"
    request = await window(walk)
    assert (await attempt(walk, request)).is_done
    assert end_of(walk)["migration"] is None
    assert not any(is_out(walk.cluster, c.id) for c in walk.cluster.spec.controllers)


async def all_hybrid_but_one() -> Walk:
    """A migration right before the last broker's first roll."""
    cluster = FakeCluster(boot_looks=1, catch_up_looks=1, copy_looks=1)
    cluster.metadata_log = FakeLog(cluster)
    walk = Walk(LedgerInMemory(cluster), cluster)
    await walk.to("step", {"last": lambda s: s.action == StepAction.ROLL_NODE and s.node == LAST_BROKER})
    walk.cluster = walk.found["last"][0]
    return walk


def make_hybrid(walk: Walk) -> None:
    """The last one, by somebody's hand: its registration begins the copy."""
    broker = walk.cluster.nodes[LAST_BROKER]
    text = broker.machine.read(broker.spec.properties_file).content.decode()
    text = node_file(text, walk.cluster.spec, broker.spec, NodeStage.MIGRATION)
    broker.machine.write(broker.spec.properties_file, text_file(text))
    broker.die()
    broker.start()
    walk.cluster.advance(5)
    walk.is_back, walk.accepted = True, (f"original-of-broker-{LAST_BROKER}",)


async def test_a_quorum_that_is_about_to_delete_is_killed_before_anything_is_waited_for_or_scanned() -> None:
    """The `/migration` of an earlier attempt: the new quorum has claimed, and waits until its log is as long."""
    walk = await all_hybrid_but_one()
    walk.cluster.znodes["/migration"] = migration_record(3001, 7, 5000)
    make_hybrid(walk)
    assert walk.cluster.znodes.find("/controller").ephemeral_owner == 0
    topics = walk.cluster.side.topic_names()
    request, calls = await window(walk), KillAfter()
    outcome = await attempt(walk, request, calls)
    assert outcome.is_done, outcome.blocked
    assert outcome.seconds < walk.policy.drain_deadline.total_seconds()
    first_kill = next(i for i, call in enumerate(calls.calls) if call.endswith("kill"))
    scans = [i for i, call in enumerate(calls.calls) if call == "zookeeper children" and i > first_kill]
    assert scans, "the states are scanned afterwards"
    assert is_left(walk)
    assert walk.cluster.side.topic_names() == topics


async def test_a_copy_that_kills_its_controllers_is_left_without_starting_one() -> None:
    walk = await all_hybrid_but_one()
    walk.cluster.faults.poisoned_copy = True
    walk.cluster.znodes["/config/topics/orders"] = b"not JSON"
    make_hybrid(walk)
    forward = walk.copy(is_back=False)
    assert "copy-cannot-finish" in str(await forward.decision())
    starts = {c.id: walk.cluster.nodes[c.id].starts for c in walk.cluster.spec.controllers}
    assert (await attempt(walk, await window(walk))).is_done
    assert is_left(walk)
    assert starts == {c.id: walk.cluster.nodes[c.id].starts for c in walk.cluster.spec.controllers}
