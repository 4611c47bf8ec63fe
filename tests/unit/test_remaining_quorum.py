"""No controller is restarted while the others are not reached, however well they follow."""

from collections.abc import Collection

import pytest

from activities.rolling.remaining_nodes import why_no_quorum_would_stay
from domain.contracts import StepOutcome
from domain.errors import Obstacle, Transient
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.cluster import FakeCluster
from playground.fakes.hands import in_dual_write
from playground.fakes.listeners import FakeListeners
from tests.unit.fake_walk import KillAfter, LedgerInMemory, Scene, Walk, is_roll


class Unasked(FakeListeners):
    """Our own machine has no port left."""

    async def is_answering(self, host: str, port: int) -> bool:
        raise Transient("no port left", obstacle=Obstacle.OURS)


async def why(*unreached: int, stopped: Collection[int] = (3003,)) -> str | None:
    cluster = await in_dual_write()
    cluster.faults.unreached = set(unreached)
    return await why_no_quorum_would_stay(cluster.spec, stopped, FakeListeners(cluster))


async def test_others_that_are_reached_are_a_majority() -> None:
    assert await why() is None
    assert await why(3003) is None, "who is to be stopped need not be reached"


async def test_one_that_is_not_reached_does_not_count() -> None:
    told = await why(3001) or ""
    assert told.startswith("controller-3001 at ")
    assert "Without controller-3003 no majority" in told


async def test_where_our_own_way_is_shut_nothing_is_said_of_theirs() -> None:
    assert await why(3001, 3002, 3003) is None


async def test_one_controller_alone_may_be_stopped() -> None:
    cluster = FakeCluster()
    alone = cluster.spec.with_quorum_changed(controllers=cluster.spec.controllers[:1])
    assert await why_no_quorum_would_stay(alone, (3001,), FakeListeners(cluster)) is None


async def test_what_cannot_be_asked_is_unknown() -> None:
    cluster = FakeCluster()
    told = await why_no_quorum_would_stay(cluster.spec, (3003,), Unasked(cluster))
    assert told == "controller-3003: whether the other controllers can be reached is not known: no port left"


async def scene(stage: NodeStage, *, of_controller: bool) -> Scene:
    walk = Walk(LedgerInMemory(FakeCluster()), FakeCluster())
    await walk.to("step", {"roll": lambda step: is_roll(step, stage, of_controller=of_controller)})
    before, request, _ = walk.found["roll"]
    return Scene(before, walk.ledger, request)


async def rolled(found: Scene) -> tuple[StepOutcome, FakeCluster, int]:
    """With another controller that is not reached, though it follows."""
    cluster, name = found.copy(), found.cluster.spec.node_name(found.request.step.node)
    cluster.faults.unreached = {next(c.id for c in cluster.spec.controllers if c.id != found.request.step.node)}
    before = cluster.restarts[name]
    return await found.attempt(cluster, KillAfter()), cluster, cluster.restarts[name] - before


async def test_a_controller_is_not_rolled_while_another_is_not_reached() -> None:
    outcome, cluster, restarts = await rolled(await scene(NodeStage.KRAFT, of_controller=True))
    (unreached,) = cluster.faults.unreached
    assert (outcome.blocked or "").startswith(f"{cluster.spec.node_name(unreached)} at ")
    assert restarts == 0


@pytest.mark.parametrize("stage", [NodeStage.MIGRATION, NodeStage.KRAFT])
async def test_a_broker_is_rolled_as_long_as_a_majority_leads(stage: NodeStage) -> None:
    """It takes nobody from the quorum."""
    outcome, _, restarts = await rolled(await scene(stage, of_controller=False))
    assert (outcome.blocked, restarts) == (None, 1)
