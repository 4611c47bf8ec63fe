"""The gate `finalize`: who and what opens it, and all that does not."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from domain.contracts import ApprovalMessage
from domain.records import CommandKind
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import GateName

MakeApproval = Callable[..., ApprovalMessage]
NOTHING_FINAL = {"controller-3001": 1}
"""Started once, when it was created: not restarted."""


@pytest.fixture
async def gated(small: Any) -> Any:
    """A world whose gate is open."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    return small


async def refusal_of(asked: Any) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await asked
    assert isinstance(failed.value.cause, ApplicationError)
    return failed.value.cause.message


def is_untouched(world: Any) -> bool:
    return bool(world.cluster.restarts | NOTHING_FINAL == world.cluster.restarts)


async def test_an_approval_of_other_evidence_is_refused(gated: Any) -> None:
    gate = await gated.until_gate()
    why = await refusal_of(gated.approve("0" * 64))
    assert (gate.evidence_hash[:12] in why, gate.evidence_hash in why) == (True, False), "it is to be read, not pasted"
    assert is_untouched(gated)
    assert not await gated.events("approved")


async def test_an_approval_of_a_gate_that_is_not_open_is_refused(world: Any) -> None:
    await world.register()
    await world.start_workflow_worker()
    await world.start()
    assert "is not open" in await refusal_of(world.approve("0" * 64))


async def test_a_second_approval_finds_the_gate_closed(gated: Any) -> None:
    pause = gated.drivers.of[3001].pause("stop")
    evidence_hash = (await gated.until_gate()).evidence_hash
    assert await gated.approve(evidence_hash) == "approved"
    await pause.is_reached.wait()
    assert "gate finalize is approved already" in await refusal_of(gated.approve(evidence_hash))
    gated.drivers.of[3001].release("stop")
    assert await gated.result() == "succeeded"


async def test_the_same_command_delivered_twice_is_one_approval(gated: Any, make_approval: MakeApproval) -> None:
    gate = await gated.until_gate()
    command = await gated.command(CommandKind.APPROVE, gate=GateName.FINALIZE, evidence_hash=gate.evidence_hash)
    message = make_approval(gate.evidence_hash, command_id=command.id)
    pause = gated.drivers.of[3001].pause("stop")
    assert await gated.handle.execute_update("approve", message, id="first") == "approved"
    await pause.is_reached.wait()
    assert await gated.handle.execute_update("approve", message, id="second") == "approved before"
    gated.drivers.of[3001].release("stop")
    assert await gated.result() == "succeeded"
    assert len(await gated.events("approved")) == 1


async def test_a_rejection_holds_and_resume_opens_the_gate_again(gated: Any) -> None:
    gate = await gated.until_gate()
    assert await gated.reject(gate) == "rejected"
    progress = await gated.until_waiting("held")
    assert progress.state == "held"
    assert "rejected by anna" in progress.waiting.detail
    assert progress.gate is not None, "a person may decide while it is held"
    assert await gated.resume() == "resumed"
    assert await gated.approve_gate() == "approved"
    assert await gated.result() == "succeeded"
    assert [e.kind for e in await gated.events() if e.kind in {"gate-opened", "rejected", "resumed", "approved"}] == [
        "gate-opened",
        "rejected",
        "resumed",
        "approved",
    ]


async def test_a_bare_signal_counts_where_signals_are_trusted(small: Any, make_approval: MakeApproval) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin(are_signals_trusted=True)
    gate = await small.until_gate()
    await small.handle.signal("approve", make_approval(gate.evidence_hash))
    assert await small.result() == "succeeded"
    (command,) = await small.book.commands(small.migration_id)
    assert (command.via, command.by, command.refused_because) == ("temporal-signal", "anna", None)
    assert command.consumed_at is not None
    (told,) = await small.events("approved")
    assert told.data["via"] == "temporal-signal"


async def test_a_bare_signal_is_told_and_ignored_where_they_are_not(gated: Any, make_approval: MakeApproval) -> None:
    gate = await gated.until_gate()
    await gated.handle.signal("approve", make_approval(gate.evidence_hash))
    told = await gated.until_told("signal-ignored")
    assert "signal_approvals is off" in told.data["why"]
    assert is_untouched(gated)
    assert not await gated.events("approved")
    assert await gated.approve_gate() == "approved"
    assert await gated.result() == "succeeded"


async def test_signals_that_make_no_sense_are_told_and_harm_nothing(gated: Any, make_approval: MakeApproval) -> None:
    """More of them than fit into a summary of Temporal's, the last with bytes that no database takes and no end."""
    for _ in range(40):
        await gated.handle.signal("approve", make_approval("", gate="nonsense"))
    await gated.handle.signal("approve", {"gate": "finalize", "by": "x\0" * 100_000, "reason": ["not", "text"]})
    await gated.handle.signal("approve", ApprovalMessage(gate="\0" * 100_000, by="\0", reason="r" * 100_000))
    senseless: tuple[list[object], ...] = (["not even an object"], [], [make_approval("")] * 2, [None], [[]], [7])
    for arguments in senseless:
        await gated.handle.signal("approve", args=arguments)
        await gated.handle.signal("rollback", args=arguments)
    await gated.hold()
    await gated.until_waiting("held")
    told = await gated.until_told("signal-ignored", 40 + 2 + 12)
    assert "exactly one JSON object" in told.data["why"]
    assert all(len(str(event.data)) < 3000 and "\0" not in str(event.data) for event in await gated.events())
    await gated.resume()
    assert await gated.approve_gate() == "approved"
    assert await gated.result() == "succeeded"


@pytest.mark.parametrize("forgery", ["nowhere", "of another migration", "of other evidence", "a resume", "refused"])
async def test_a_forged_approval_moves_nothing(gated: Any, make_approval: MakeApproval, forgery: str) -> None:
    """Who reaches Temporal directly can send whatever id they like: the ledger's word counts, right before the effect."""
    gate = await gated.until_gate()
    command_id = "no-such-command"
    fields = {"gate": GateName.FINALIZE, "evidence_hash": gate.evidence_hash}
    if forgery == "of another migration":
        (earlier,) = [m for m in await gated.book.migrations() if m.id != gated.migration_id]
        command_id = (await gated.command(CommandKind.APPROVE, **fields, migration_id=earlier.id)).id
    elif forgery == "of other evidence":
        command_id = (await gated.command(CommandKind.APPROVE, gate=GateName.FINALIZE, evidence_hash="0" * 64)).id
    elif forgery == "a resume":
        command_id = (await gated.command(CommandKind.RESUME, **fields)).id
    elif forgery == "refused":
        command_id = (await gated.command(CommandKind.APPROVE, **fields, refused_because="not allowed")).id
    await gated.say("approve", make_approval(gate.evidence_hash, command_id=command_id))
    await gated.until_told("gate-opened", 2)
    assert is_untouched(gated)
    assert (await gated.progress()).state == "waiting"
    assert await gated.approve_gate() == "approved"
    assert await gated.result() == "succeeded"


async def test_evidence_that_changes_between_approval_and_effect_opens_the_gate_again(gated: Any) -> None:
    """The approval is known to the workflow; the look right before the effect sees a file that somebody touched."""
    gate = await gated.until_gate()
    pause = gated.ledger.pause("command")
    await gated.approve(gate.evidence_hash)
    await pause.is_reached.wait()
    broker = gated.cluster.nodes[2]
    path = broker.spec.properties_file
    file = broker.machine.read(path)
    mark_path = f"{path.rpartition('/')[0]}/.keeperless/server.properties.mark"
    broker.machine.remove(mark_path)
    broker.machine.write(path, type(file)(file.content + b"# a note\n", file.mode, file.uid, file.gid))
    gated.ledger.release("command")
    await gated.until_told("gate-opened", 2)
    again = await gated.until_gate()
    assert again.evidence_hash != gate.evidence_hash
    assert is_untouched(gated)
    (command,) = await gated.book.commands(gated.migration_id)
    assert command.consumed_at is None
    assert await gated.approve(again.evidence_hash) == "approved"
    assert await gated.result() == "succeeded"


async def test_a_rejection_withdraws_an_approval_given_before(gated: Any) -> None:
    """Approved on one evidence, rejected on another, and then the first evidence is back: nobody's yes stands any more."""
    gate = await gated.until_gate()
    broker = gated.cluster.nodes[2]
    path = broker.spec.properties_file
    file = broker.machine.read(path)
    pause = gated.ledger.pause("command")
    await gated.approve(gate.evidence_hash)
    await pause.is_reached.wait()
    broker.machine.write(path, type(file)(file.content + b"# a note\n", file.mode, file.uid, file.gid))
    gated.ledger.release("command")
    await gated.until_told("gate-opened", 2)
    again = await gated.until_gate()
    assert await gated.reject(again) == "rejected"
    broker.machine.write(path, file)
    await gated.until_waiting("held")
    assert await gated.resume() == "resumed"
    await gated.until_evidence(lambda found: found == gate.evidence_hash)
    await gated.until_gate()
    assert is_untouched(gated)
    assert await gated.approve(gate.evidence_hash) == "approved"
    assert await gated.result() == "succeeded"


# ---- the gate `fail-over` ----


@pytest.fixture
async def dead(small: Any) -> Any:
    """A world whose dual write has died: every gauge looks well, and the offset in `/migration` stands."""
    await small.lead_to(Phase.SOAK)
    small.cluster.faults.is_dual_write_stuck = True
    small.cluster.advance(40)
    await small.begin()
    assert (await small.until_gate()).name == "fail-over"
    return small


async def test_a_failover_that_is_approved_cures_dual_write_and_the_next_one_asks_again(dead: Any) -> None:
    before = dead.cluster.restarts
    assert await dead.approve((await dead.until_gate()).evidence_hash, GateName.FAIL_OVER) == "approved"
    await dead.until_told("gate-opened", gate="finalize")
    assert dead.cluster.restarts == before | {"controller-3001": before["controller-3001"] + 1}
    step, compared = await dead.events("step-done")
    assert compared.data["action"] == "compare-metadata"
    assert (step.data["action"], step.data["node"], step.data["restarted"]) == ("fail-over", "controller-3001", True)
    assert {n.name: n.restarts for n in (await dead.progress()).nodes}["controller-3001"] == 1
    dead.cluster.faults.is_dual_write_stuck = True
    dead.cluster.advance(40)
    await dead.until_told("gate-opened", 2, gate="fail-over")
    assert len(await dead.events("step-started")) == 2
    assert await dead.approve((await dead.until_gate()).evidence_hash, GateName.FAIL_OVER) == "approved"
    await dead.until_told("gate-opened", 2, gate="finalize")
    assert await dead.approve_gate() == "approved"
    assert await dead.result() == "succeeded"


async def test_a_gate_whose_cause_went_away_is_closed(dead: Any) -> None:
    gate = await dead.until_gate()
    dead.cluster.faults.is_dual_write_stuck = False
    await dead.until_told("gate-opened", gate="finalize")
    assert "gate fail-over is not open" in await refusal_of(dead.approve(gate.evidence_hash, GateName.FAIL_OVER))
    assert (await dead.until_gate()).name == "finalize"
    assert await dead.search_attribute("Waiting") == "approval"
    assert await dead.approve_gate() == "approved"
    assert await dead.result() == "succeeded"
    assert not await dead.events("signal-ignored")


@pytest.mark.parametrize("gate", [GateName.FAIL_OVER, GateName.FINALIZE_WITHOUT_RETURN])
async def test_an_approval_for_a_fault_does_not_outlive_it_where_no_other_gate_opens(make_world: Any, gate: GateName) -> None:
    """The fault goes away before the approved step is taken, and comes again: another person's question."""
    policy = ZkToKraftPolicy(
        poll_interval=timedelta(milliseconds=20),
        stable_samples=2,
        min_soak=timedelta(hours=1),
        min_zookeeper_silence=timedelta(milliseconds=100),
    )
    world = make_world(controllers=1, policy=policy)
    await world.lead_to(Phase.SOAK)
    fault = "is_dual_write_stuck" if gate == GateName.FAIL_OVER else "silent_zookeeper"

    def break_it() -> None:
        setattr(world.cluster.faults, fault, True)
        world.cluster.advance(40)

    break_it()
    await world.begin()
    seen = await world.until_gate()
    assert seen.name == gate
    pause = world.ledger.pause("command")
    await world.approve(seen.evidence_hash, gate)
    await pause.is_reached.wait()
    setattr(world.cluster.faults, fault, False)
    world.ledger.release("command")
    await world.until_waiting("soak-not-over")
    break_it()
    await world.until_told("gate-opened", 2, gate=gate)
    assert (await world.until_gate()).evidence_hash == seen.evidence_hash, "it would have counted again"
    assert is_untouched(world)
    assert not await world.events("step-done")


async def test_zookeeper_is_not_given_up_before_it_has_been_silent_for_long(make_world: Any) -> None:
    """Its silence is counted from look to look, also where one watch ends and the next begins; an answer begins it anew."""
    world = make_world(controllers=1)
    world.policy = world.policy.model_copy(update={"min_zookeeper_silence": timedelta(seconds=3)})
    await world.lead_to(Phase.SOAK)
    await world.begin()
    await world.until_gate()
    for _ in range(2):
        world.cluster.faults.silent_zookeeper = True
        waiting = (await world.until_waiting("part-unknown")).waiting
        assert waiting.objects == ("zookeeper",)
        world.cluster.faults.silent_zookeeper = False
        await world.until_gate()
    world.cluster.faults.silent_zookeeper = True
    since = (await world.until_waiting("part-unknown")).waiting.since
    opened = await world.until_told("gate-opened", gate=GateName.FINALIZE_WITHOUT_RETURN)
    assert (opened.at - since).total_seconds() > 2.5
    assert await world.approve((await world.until_gate()).evidence_hash, GateName.FINALIZE_WITHOUT_RETURN) == "approved"
    assert await world.result() == "succeeded"


async def test_a_failover_is_never_taken_on_one_look(small: Any) -> None:
    """Dual write dies while a node is rolled: what comes next is settled for a roll, and not for what lasts."""
    small.policy = small.policy.model_copy(update={"cure_dual_write": True})
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.drivers.of[1].pause("start")
    await small.begin()
    await pause.is_reached.wait()
    small.cluster.faults.is_dual_write_stuck = True
    small.cluster.advance(40)
    small.drivers.of[1].release("start")
    await small.until_told("step-done", action="fail-over")
    events = [event for history in await small.histories() for event in history.events]
    scheduled = [e.activity_task_scheduled_event_attributes for e in events]
    asked = [(a.activity_type.name, json.loads(a.input.payloads[0].data)) for a in scheduled if a.activity_type.name]
    looks = [(name, request["looks"]) for name, request in asked if "looks" in request]
    print(looks)
    assert {count for name, count in looks if name == "fail_over"} == {small.policy.stable_samples}
