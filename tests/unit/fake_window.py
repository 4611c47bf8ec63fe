"""The way back on a simulated cluster: a step's activity with every port watched, and what must be so in the end."""

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.adapters.machine_doctor import LinuxDoctor
from activities.node_files import FENCED_META, META
from activities.ports.ports import Ports
from activities.rolling.roll import Rolling
from activities.shipped_kinds import SHIPPED_KINDS
from activities.zk_to_kraft.starting import Starting
from activities.zk_to_kraft.window.leaving import Leaving
from activities.zk_to_kraft.window.pace import Pace
from activities.zk_to_kraft.window.wiping import Wiping
from domain.contracts import StepOutcome, StepRequest
from domain.decisions import Step
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.listeners import FakeListeners
from playground.fakes.metadata_log import FakeLog
from tests.unit.fake_walk import KillAfter, LedgerInMemory, Walk, Watched, is_roll

STEP_NUMBERS = itertools.count(1)
QUICK = Pace(poll=0.0, settle=0.01, watch=0.01)
After = Callable[[str], Awaitable[None]]


class WatchedDrivers:
    """Every node's driver."""

    def __init__(self, cluster: FakeCluster, after: After) -> None:
        self._cluster, self._after = cluster, after

    def driver(self, node: Any) -> Any:
        return Watched(self._cluster.driver(node), f"node {node.id}", self._after)


class WatchedTrees:
    def __init__(self, cluster: FakeCluster, after: After) -> None:
        self._cluster, self._after = cluster, after

    async def connect(self, cluster: Any) -> Any:
        return Watched(await self._cluster.connect(cluster), "zookeeper", self._after)

    async def ask(self, server: str, word: str) -> str | None:
        return await self._cluster.ask(server, word)


async def attempt(
    walk: Walk,
    request: StepRequest,
    after: After | None = None,
    strangers: tuple[int, ...] = (),
    lingering: int = 0,
    pace: Pace = QUICK,
) -> StepOutcome:
    """One attempt at a step by a worker of its own. `after`: called after every call of every port."""
    cluster, watch = walk.cluster, after or KillAfter()
    ports = Ports(
        ledger=Watched(walk.ledger, "ledger", watch),
        drivers=WatchedDrivers(cluster, watch),
        zookeepers=WatchedTrees(cluster, watch),
        kafka=Watched(cluster, "kafka", watch),
        metrics=Watched(cluster, "metrics", watch),
        artefacts=FakeArtefacts(),
        kinds=SHIPPED_KINDS,
        doctor=LinuxDoctor(),
    )
    activities: dict[str, Any] = {
        StepAction.LEAVE_KRAFT: Leaving(ports, FakeListeners(cluster, strangers, lingering), pace).leave_kraft,
        StepAction.WIPE: Wiping(ports).wipe_kraft,
        StepAction.START_NODE: Starting(ports, FakeListeners(cluster)).start_node,
        StepAction.FAIL_OVER: Starting(ports, FakeListeners(cluster), standing_seconds=0.01).fail_over,
        StepAction.ROLL_NODE: Rolling(ports, FakeListeners(cluster)).roll_node,
    }
    activity = activities[request.step.action]
    outcome: StepOutcome = await ActivityEnvironment().run(activity, request)
    return outcome


async def in_dual_write() -> Walk:
    """A migration that has come to dual write, and has been asked back."""
    cluster = FakeCluster(boot_looks=1, catch_up_looks=1, copy_looks=1)
    cluster.metadata_log = FakeLog(cluster)
    walk = Walk(LedgerInMemory(cluster), cluster)
    await walk.to("step", {"kraft": lambda step: is_roll(step, NodeStage.KRAFT)})
    walk.cluster = walk.found["kraft"][0]
    return walk.copy(is_back=True)


async def next_step(walk: Walk) -> StepRequest:
    """The step that is decided now, after waits that time ends."""
    for _ in range(50):
        decision = await walk.decision()
        if isinstance(decision, Step):
            return walk.request(decision, f"back/{next(STEP_NUMBERS)}")
    raise AssertionError(decision)


async def go_on(walk: Walk, action: StepAction) -> None:
    """Take steps until one with this action is next."""
    while (request := await next_step(walk)).step.action != action:
        outcome = await attempt(walk, request)
        assert outcome.is_done, (request.step, outcome.blocked)


def end_of(walk: Walk) -> dict[str, Any]:
    """What a way back is judged by, once its window is over."""
    cluster = walk.cluster
    claim = cluster.znodes.find("/controller")
    return {
        "controller": "zookeeper" if claim is not None and claim.ephemeral_owner else claim,
        "migration": cluster.znodes.find("/migration"),
        "fenced": {c.id: is_out(cluster, c.id) for c in cluster.spec.controllers},
        "deleted": cluster.deleted_topics,
        "trapped": cluster.trapped_partitions,
        "topics": sorted(cluster.side.topic_names()),
        "brokers": {b.id: cluster.nodes[b.id].starts for b in cluster.spec.brokers},
    }


def is_out(cluster: FakeCluster, node_id: int) -> bool:
    """Dead, and nobody can start it."""
    node = cluster.nodes[node_id]
    names = [node.machine.names(path) or () for path in node.spec.log_dirs]
    return node.process is None and all(FENCED_META in found and META not in found for found in names)
