"""No node is restarted on the way forward while members of the ensemble have different trees."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from activities.observing import member_trees
from activities.observing.member_trees import why_trees_differ
from activities.observing.observe import observe
from activities.ports.ports import Ports
from domain.cluster import NodeSpec, servers_in
from domain.errors import Obstacle, Transient
from domain.observed.observation import MigrationGauge
from domain.zk_to_kraft.rolls import ROLLS
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.hands import in_dual_write
from tests.unit.fake_walk import KillAfter, LedgerInMemory, Scene, Walk, is_roll

MODES = ("leader", "follower", "follower")
DIFFER, AGREE = (30, 30, 28), (30, 30, 30)


def tell(
    cluster: FakeCluster, counts: Sequence[int | None], zxids: Sequence[int] = (7, 7, 7), modes: Sequence[str] = MODES
) -> None:
    """`None`: does not answer."""
    addresses = servers_in(cluster.spec.ensemble.connect)
    answer = cluster.ask

    async def ask(server: str, word: str) -> str | None:
        number = addresses.index(server)
        if word != "srvr":
            return await answer(server, word)
        if counts[number] is None:
            raise Transient("no answer")
        return f"Outstanding: 0\nZxid: {zxids[number]:#x}\nMode: {modes[number]}\nNode count: {counts[number]}\n"

    cluster.ask = ask  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_trees, "PAUSE_SECONDS", 0.001)


async def why(cluster: FakeCluster, stage: NodeStage, nodes: Sequence[NodeSpec] | None = None) -> str | None:
    urgent = ROLLS.restart(stage).urgent
    return await why_trees_differ(cluster.record(), nodes or cluster.spec.brokers[:1], urgent, cluster, cluster)


@pytest.mark.parametrize(
    ("counts", "zxids", "is_told"),
    [
        (DIFFER, (7, 7, 7), True),
        (AGREE, (7, 7, 7), False),
        (DIFFER, (7, 8, 9), False),
        ((30, None, 28), (7, 7, 7), True),
        ((30, None, None), (7, 7, 7), False),
        ((None, None, None), (7, 7, 7), False),
    ],
    ids=["differ", "agree", "not as far", "one is mute", "one tells", "nobody tells"],
)
async def test_a_broker_is_not_rolled_where_members_differ(
    counts: Sequence[int | None], zxids: Sequence[int], *, is_told: bool
) -> None:
    cluster = FakeCluster()
    tell(cluster, counts, zxids)
    for stage in (NodeStage.MIGRATION, NodeStage.KRAFT):
        told = await why(cluster, stage)
        assert (told is not None) is is_told
        assert not is_told or "has 28 znodes" in (told or "")


async def test_a_controller_is_given_its_flag_back_whatever_zookeeper_has_and_is_not_finalized() -> None:
    cluster = FakeCluster()
    tell(cluster, DIFFER)
    assert await why(cluster, NodeStage.MIGRATION, cluster.spec.controllers[:1]) is None
    assert await why(cluster, NodeStage.KRAFT, cluster.spec.controllers[:1]) is not None


async def test_once_the_log_is_final_nobody_needs_zookeeper(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = await in_dual_write()
    tell(cluster, DIFFER)
    assert await why(cluster, NodeStage.KRAFT) is not None
    read = cluster.read

    async def final(endpoint: Any) -> Any:
        gauges = await read(endpoint)
        return gauges.model_copy(update={"migration_gauge": MigrationGauge.POST_MIGRATION})

    monkeypatch.setattr(cluster, "read", final)
    assert await why(cluster, NodeStage.KRAFT) is None


TORN = ("leader", "follower", "leader")
TWO_EPOCHS = (0x100000007, 0x100000007, 0x200000003)


@pytest.mark.parametrize(
    ("counts", "zxids", "modes", "why"),
    [
        (DIFFER, (7, 7, 7), MODES, "different trees"),
        (DIFFER, TWO_EPOCHS, TORN, "part-unknown"),
        (AGREE, (7, 7, 7), MODES, ""),
    ],
    ids=["differ", "are two ensembles", "agree"],
)
async def test_a_step_waits_for_members_that_differ(
    counts: Sequence[int], zxids: Sequence[int], modes: Sequence[str], why: str
) -> None:
    walk = Walk(LedgerInMemory(FakeCluster()), FakeCluster())
    await walk.to("step", {"first": lambda step: is_roll(step, NodeStage.MIGRATION)})
    await walk.to("step", {"roll": lambda step: is_roll(step, NodeStage.MIGRATION)})
    before, request, _ = walk.found["roll"]
    scene = Scene(before, walk.ledger, request)
    cluster = scene.copy()
    tell(cluster, counts, zxids, modes)
    name = cluster.spec.node_name(request.step.node)
    restarts = cluster.restarts[name]
    outcome = await scene.attempt(cluster, KillAfter())
    assert why in (outcome.blocked or "")
    assert cluster.restarts[name] - restarts == (not why)


async def test_what_a_session_shows_of_two_ensembles_is_not_known() -> None:
    """Unknown is never healthy: nothing is decided by it, and no check compares it."""
    cluster = FakeCluster()
    ports = Ports(cast("Any", None), cluster, cluster, cluster, cluster, FakeArtefacts())
    tell(cluster, DIFFER, TWO_EPOCHS, TORN)
    seen = await observe(cluster.record(), ports)
    assert seen.zookeeper is None
    assert [(part.what, part.obstacle) for part in seen.unanswered] == [("zookeeper", Obstacle.TORN)]
    tell(cluster, AGREE)
    assert (await observe(cluster.record(), ports)).zookeeper is not None
