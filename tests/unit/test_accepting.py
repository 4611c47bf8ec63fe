"""Previews of a simulated cluster by the activities themselves, and which rollbacks are accepted: on what was seen, or on
losses that were named. Nothing here changes the cluster.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from temporalio.testing import ActivityEnvironment

from activities import previewing
from activities.looking import look_and_decide
from activities.ports.ports import Ports
from activities.previewing import Previewing
from activities.shipped_kinds import SHIPPED_KINDS
from domain.contracts import Assessment, AssessRequest, RevertOrder, RollbackAnswer, RollbackRequest
from domain.decisions import Decision, Revert, Step, Wait
from domain.errors import Superseded, Transient
from domain.observed.observation import Observation, Suspect
from domain.questions import PreviewRequest, RollbackPreview, Runbook
from domain.records import Command, CommandKind
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.waits import ZkWait
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.machine import text_file
from tests.unit.fake_walk import NOW, POLICY, LedgerInMemory, Walk, is_roll

T = TypeVar("T")
Asked = TypeVar("Asked")


def walk_of(cluster: FakeCluster) -> Walk:
    return Walk(LedgerInMemory(cluster), cluster)


async def asked(walk: Walk, activity: Callable[[Previewing], Callable[[Asked], Awaitable[T]]], request: Asked) -> T:
    ports = Ports(walk.ledger, walk.cluster, walk.cluster, walk.cluster, walk.cluster, FakeArtefacts(), SHIPPED_KINDS)
    answer: T = await ActivityEnvironment().run(activity(Previewing(ports)), request)
    return answer


async def preview(walk: Walk) -> RollbackPreview:
    return await asked(walk, lambda p: p.preview_rollback, PreviewRequest(kind="zk-to-kraft", cluster="orders", policy=POLICY))


async def runbook(walk: Walk) -> Runbook:
    return await asked(walk, lambda p: p.write_runbook, PreviewRequest(kind="zk-to-kraft", cluster="orders", policy=POLICY))


async def accept(walk: Walk, command: str | None = "c1", because: str = "") -> RollbackAnswer:
    request = RollbackRequest(
        kind="zk-to-kraft",
        migration_id="m1",
        cluster="orders",
        generation=1,
        command_id=command,
        because=because,
        policy=POLICY,
    )
    return await asked(walk, lambda p: p.accept_rollback, request)


async def command(walk: Walk, **parts: Any) -> None:
    """A rollback in the ledger, as the API writes it, or something else."""
    told = {"id": "c1", "migration_id": "m1", "kind": CommandKind.ROLLBACK, "by": "anna", "via": "api", "at": NOW}
    await walk.ledger.add_command(Command.model_validate(told | {"reason": "clients suffer"} | parts))


def order_of(answer: RollbackAnswer) -> RevertOrder:
    assert answer.refused_because is None
    assert answer.order is not None
    return answer.order


def refusal_of(answer: RollbackAnswer) -> str:
    assert answer.order is None
    assert answer.refused_because is not None
    return answer.refused_because


STEPS: dict[str, Callable[[Step], bool]] = {
    "second broker to hybrid": lambda s: is_roll(s, NodeStage.MIGRATION) and s.node_id == 2,
    "second broker to kraft": lambda s: is_roll(s, NodeStage.KRAFT) and s.node_id == 2,
}


@pytest.fixture(scope="module")
async def road() -> dict[str, Walk]:
    """A migration at several points of its way."""
    found = {"before": walk_of(FakeCluster())}
    walk = found["before"].copy()
    await walk.to("step", STEPS)
    found |= {name: walk.copy(cluster=cluster) for name, (cluster, _, _) in walk.found.items()}
    await walk.to("gate")
    found["soak"] = walk.copy()
    await walk.to("done")
    return found | {"final": walk.copy()}


@pytest.fixture
def soak(road: dict[str, Walk]) -> Walk:
    return at(road, "soak")


def at(road: dict[str, Walk], name: str) -> Walk:
    walk = road[name].copy()
    walk.ledger = LedgerInMemory(walk.cluster)
    return walk


HALF_WAY = [*STEPS, "soak"]


async def test_the_hash_is_the_same_from_the_first_look_to_the_gate(road: dict[str, Walk]) -> None:
    previews = {name: await preview(at(road, name)) for name in ("before", *HALF_WAY)}
    assert len({p.preview_hash for p in previews.values()}) == 1, "what was consented to stands while the migration goes on"
    assert [p.losses for p in previews.values()] == [()] * len(previews)
    assert all(p.is_possible for p in previews.values())
    assert previews["before"].steps == ()


async def test_what_the_hand_over_would_stop_at_is_told_before_it_is_asked_for(soak: Walk) -> None:
    """And is no matter of consent: it is mended, and nothing is lost by it."""
    well = await preview(soak)
    assert well.obstacles == ()
    soak.cluster.znodes["/feature"] = b'"{}"'
    told = await preview(soak)
    (obstacle,) = told.obstacles
    assert "/feature cannot be read" in obstacle
    assert "delete /feature" in obstacle
    assert (told.is_possible, told.preview_hash) == (True, well.preview_hash)


async def test_what_zookeeper_has_never_got_is_lost_by_its_name_only(soak: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its offset says that dual write is current."""
    lost = Suspect(what="ACL of User:alice for group team-a/loader", why="no znode", is_lost_change=True)
    kept = Suspect(what="client metrics config k of all", why="of KRaft alone")

    found = [lost, kept]

    async def strays(*_: object) -> tuple[Suspect, ...]:
        return tuple(found)

    monkeypatch.setattr("activities.zk_to_kraft.previewing.strays_in_log", strays)
    seen = await preview(soak)
    (loss,) = seen.losses
    assert loss.name == "never-written"
    assert lost.what in loss.what
    assert kept.what not in loss.what
    found.append(lost.model_copy(update={"what": "DENY of READ to User:bob for group team-a/x"}))
    assert (await preview(soak)).preview_hash != seen.preview_hash, "who has accepted one has not accepted the next"
    await command(soak, accept_loss=())
    assert "never-written" in refusal_of(await accept(soak))
    await command(soak, id="c2", accept_loss=("never-written",))
    assert "never-written" in order_of(await accept(soak, "c2")).accepted_losses


async def test_what_a_controller_could_not_write_to_zookeeper_is_a_loss(road: dict[str, Walk]) -> None:
    """Its offset has gone past it, and the comparison was before it: by both, nothing lacks."""
    soak = at(road, "soak")
    assert (await preview(soak)).losses == ()
    leader = soak.cluster.quorum.leader
    assert leader is not None
    refused = "Encountered zk migration fault: Encountered ZooKeeper authentication in MetadataChangeEvent"
    soak.cluster.nodes[leader].output.append(f"[2026-11-26 05:53:02,100] ERROR {refused}")
    (loss,) = (await preview(soak)).losses
    assert loss.name == "metadata-changes"
    assert refused in loss.what
    assert f"restart controller-{leader}" in loss.what
    await command(soak, accept_loss=())
    assert "metadata-changes" in refusal_of(await accept(soak))


async def test_a_log_that_does_not_reach_back_says_nothing_of_what_was_refused(road: dict[str, Walk]) -> None:
    soak = at(road, "soak")
    leader = soak.cluster.quorum.leader
    assert leader is not None
    assert (await preview(soak)).unknown == ()
    soak.cluster.nodes[leader].output[:] = ["[2026-11-26 05:53:02,100] INFO what was said since its log was rotated"]
    assert f"controller-{leader} since it began to write to ZooKeeper" in "".join((await preview(soak)).unknown)


@pytest.mark.parametrize("name", HALF_WAY)
async def test_the_way_back_restarts_what_was_foretold_and_leaves_the_files_that_were_foretold(
    road: dict[str, Walk], name: str
) -> None:
    walk = at(road, name)
    foretold, before = await preview(walk), dict(walk.cluster.restarts)
    walk.is_back = True
    await walk.to("done", prefix="back")
    restarts = {n: count - before[n] for n, count in walk.cluster.restarts.items() if count != before[n]}
    assert restarts == foretold.restarts
    originals = {b.id: road["before"].cluster.nodes[b.id].machine.read(b.properties_file) for b in walk.cluster.spec.brokers}
    for broker in walk.cluster.spec.brokers:
        assert walk.cluster.nodes[broker.id].machine.read(broker.properties_file) == originals[broker.id]
    assert (await preview(walk)).steps == ()
    assert (await preview(walk)).preview_hash == foretold.preview_hash


async def test_a_runbook_is_written_from_what_is_seen(road: dict[str, Walk]) -> None:
    book = await runbook(at(road, "second broker to kraft"))
    assert book.phase == "BROKERS_TO_KRAFT"
    rolled = [a.node for a in book.back if a.title.startswith("Restart")]
    assert rolled == ["broker-1", "broker-1", "broker-2", "broker-3"]
    assert "partitions' states not counted" not in "".join(a.title for a in book.back)
    text = "\n".join(c for a in book.back for c in a.commands)
    assert "cp -p /etc/broker-1/.keeperless/server.properties.original-" in text
    assert book.unknown == ()

    walk = at(road, "soak")
    walk.cluster.faults.silent_zookeeper = True
    walk.cluster.faults.silent_nodes.add(2)
    blind = await runbook(walk)
    assert {part.partition(":")[0] for part in blind.unknown} >= {"zookeeper", "files of broker-2"}
    assert blind.back[1].title.startswith("UNKNOWN")
    assert blind.back, "something is known: the rest is told"


async def test_what_is_bound_to_the_preview_is_accepted_with_all_that_the_way_back_needs(soak: Walk) -> None:
    seen = await preview(soak)
    await command(soak, preview_hash=seen.preview_hash)
    order = order_of(await accept(soak))
    assert order.command_id == "c1"
    assert order.because == "clients suffer"
    assert order.cluster.spec == soak.cluster.spec
    assert order.accepted_losses == ()
    assert order_of(await accept(soak)) == order, "asked twice, answered alike"


async def test_another_hash_is_no_consent_even_where_nothing_would_be_lost(soak: Walk) -> None:
    seen = await preview(soak)
    await command(soak, preview_hash="0" * 64)
    why = refusal_of(await accept(soak))
    assert seen.preview_hash in why
    assert "changed since" in why


async def test_a_bare_order_is_enough_where_nothing_would_be_lost(soak: Walk) -> None:
    await command(soak)
    assert order_of(await accept(soak)).accepted_losses == ()


def edit_by_hand(walk: Walk, broker_id: int) -> None:
    node = walk.cluster.nodes[broker_id]
    file = node.machine.read(node.spec.properties_file)
    assert file is not None
    node.machine.write(node.spec.properties_file, text_file(file.content.decode() + "num.io.threads=9\n", file.mode))


async def test_losses_are_accepted_by_the_hash_or_by_name_and_all_of_them(soak: Walk) -> None:
    before = await preview(soak)
    soak.cluster.faults.is_dual_write_stuck = True
    soak.cluster.advance(30)
    edit_by_hand(soak, 2)
    seen = await preview(soak)
    assert [loss.name for loss in seen.losses] == ["metadata-changes", "edits-of-broker-2"]
    assert seen.preview_hash != before.preview_hash

    await command(soak)
    why = refusal_of(await accept(soak))
    assert "metadata-changes, edits-of-broker-2" in why
    assert seen.preview_hash in why
    await command(soak, preview_hash=before.preview_hash)
    assert "edits-of-broker-2" in refusal_of(await accept(soak))
    await command(soak, accept_loss=("metadata-changes",))
    why = refusal_of(await accept(soak))
    assert "edits-of-broker-2" in why
    assert "metadata-changes" not in why

    await command(soak, preview_hash=seen.preview_hash)
    assert order_of(await accept(soak)).accepted_losses == ("metadata-changes", "edits-of-broker-2")
    named = ("edits-of-broker-2", "metadata-changes", "edits-of-broker-3")
    await command(soak, preview_hash=before.preview_hash, accept_loss=named)
    assert "changed since" in refusal_of(await accept(soak)), "names are no consent to another preview than the one looked at"
    await command(soak, accept_loss=named)
    accepted = order_of(await accept(soak)).accepted_losses
    assert accepted == ("metadata-changes", "edits-of-broker-2", "edits-of-broker-3"), "what was named may still come"


@pytest.mark.parametrize(
    "parts",
    [
        {"id": "another"},
        {"migration_id": "m2"},
        {"kind": CommandKind.APPROVE},
        {"refused_because": "signal_approvals is off"},
    ],
)
async def test_what_is_no_rollback_of_this_migration_moves_nothing(soak: Walk, parts: dict[str, Any]) -> None:
    await command(soak, preview_hash=(await preview(soak)).preview_hash, **parts)
    assert "no rollback of this migration" in refusal_of(await accept(soak))


async def test_after_the_end_there_is_no_way_back_whatever_was_accepted(road: dict[str, Walk]) -> None:
    final = at(road, "final")
    await command(final, preview_hash=(await preview(final)).preview_hash, accept_loss=("metadata-changes",))
    assert "final" in refusal_of(await accept(final))


async def test_what_is_not_known_refuses_it_with_the_reason(soak: Walk) -> None:
    await command(soak, preview_hash=(await preview(soak)).preview_hash)
    soak.cluster.faults.silent_zookeeper = True
    assert "ZooKeeper does not answer" in refusal_of(await accept(soak))
    soak.cluster.faults.silent_zookeeper = False
    soak.cluster.faults.silent_nodes.add(2)
    why = refusal_of(await accept(soak))
    assert "broker-2" in why
    assert "does not answer" in why
    soak.cluster.faults.silent_nodes.clear()
    soak.cluster.faults.silent_kafka = True
    assert order_of(await accept(soak)), "what Kafka says of replicas is asked before each restart, not now"


@pytest.mark.parametrize("is_bound", [True, False])
async def test_with_nothing_to_undo_the_way_back_is_at_its_end_at_once(road: dict[str, Walk], is_bound: bool) -> None:
    before = at(road, "before")
    await command(before, **({"preview_hash": (await preview(before)).preview_hash} if is_bound else {}))
    before.is_back = bool(order_of(await accept(before)))
    decision = await before.decision()
    assert decision.decision == "done"


def count_looks(monkeypatch: pytest.MonkeyPatch, other: int | None = None) -> list[Decision]:
    """What each look decides: to turn round, but for the one with the number `other`. A cluster that flickers."""
    decided: list[Decision] = []

    async def look(request: AssessRequest, ports: Ports) -> tuple[Assessment, Observation, bytes]:
        assessment, observation, content = await look_and_decide(request, ports)
        is_other = len(decided) == other
        decided.append(Wait(reason=ZkWait.COPY_NOT_COMPLETE) if is_other else Revert(reason=ZkWait.COPY_CANNOT_FINISH))
        return assessment.model_copy(update={"decision": decided[-1]}), observation, content

    monkeypatch.setattr(previewing, "look_and_decide", look)
    return decided


async def test_a_migration_that_turned_round_by_itself_has_looked_several_times_and_accepted_no_loss(
    soak: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = count_looks(monkeypatch)
    order = order_of(await accept(soak, None, "copy-cannot-finish"))
    assert (order.command_id, order.because, order.accepted_losses) == (None, "copy-cannot-finish", ())
    assert order.cluster.spec == soak.cluster.spec
    assert [d.decision for d in decided] == ["revert"] * POLICY.stable_samples
    assert order_of(await accept(soak, None, "copy-cannot-finish")) == order


@pytest.mark.parametrize("look", range(POLICY.stable_samples))
async def test_nobody_turns_round_by_himself_when_a_further_look_says_otherwise(
    soak: Walk, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    decided = count_looks(monkeypatch, other=look)
    assert "a further observation" in refusal_of(await accept(soak, None, "copy-cannot-finish"))
    assert len(decided) == look + 1


async def test_a_healthy_migration_is_not_turned_round_by_a_look_that_was_wrong(soak: Walk) -> None:
    assert "a further observation" in refusal_of(await accept(soak, None, "copy-cannot-finish"))
    soak.cluster.faults.silent_zookeeper = True
    assert "a further observation" in refusal_of(await accept(soak, None, "copy-cannot-finish"))


async def test_a_silent_ledger_is_asked_again_and_a_later_generation_ends_this_run(soak: Walk) -> None:
    await command(soak)
    soak.ledger.is_silent = True
    for command_id in ("c1", None):
        with pytest.raises(Transient):
            await accept(soak, command_id)
    soak.ledger.is_silent = False
    soak.ledger.held_by = 2
    for command_id in ("c1", None):
        with pytest.raises(Superseded):
            await accept(soak, command_id)


async def test_looking_changes_nothing(soak: Walk) -> None:
    before = {i: (dict(n.machine.files), n.starts) for i, n in soak.cluster.nodes.items()}
    await command(soak)
    await preview(soak)
    await runbook(soak)
    await accept(soak)
    assert {i: (dict(n.machine.files), n.starts) for i, n in soak.cluster.nodes.items()} == before
