"""A migration that names a plan: it does what the plan says, or nothing at all."""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from domain.cluster import MetricsEndpoint
from domain.errors import Transient
from domain.observed.observation import NodeMetrics
from domain.plans import IN_THE_WAY, MOVED, Basis
from playground.fakes.cluster import FakeCluster


async def test_what_was_planned_is_what_is_done(world: Any) -> None:
    plan = await world.plan()
    assert (plan.is_blocked, plan.unknown) == (False, ()), plan.findings
    await world.begin()
    await world.until_gate()
    beside = await world.plan()
    assert [(f.code, f.object) for f in beside.findings] == [(IN_THE_WAY, f"migration {world.migration_id}")]
    await world.approve_gate()
    assert await world.result() == "succeeded"

    done = [event.data for event in await world.events("step-done")]
    rolled = [(step["node"], step["stage"]) for step in done if step["action"] in {"roll-node", "provision-controller"}]
    planned = [(name, roll.stage) for roll in plan.rolls for wave in roll.waves for name in wave.nodes]
    assert sorted(rolled) == sorted(planned)
    restarts = {node.name: node.restarts for node in (await world.progress()).nodes}
    assert restarts == plan.restarts
    for node in plan.nodes:
        last = world.cluster.spec.node(int(node.name.rpartition("-")[2]))
        written = await world.drivers.driver(last).read_file(node.path)
        assert sha256(written.content).hexdigest() == node.files[-1].sha256, "the bytes of the last stage are those of the plan"
    after = await world.plan()
    assert after.rolls == ()
    assert await world.book.measured_steps(plan.cluster), "the next plan can rest on these restarts"


async def test_a_cluster_that_has_moved_away_from_the_plan_is_not_touched(world: Any) -> None:
    plan = await world.plan()
    assert plan.estimate.basis is Basis.GUESS
    node = world.cluster.spec.brokers[0]
    driver = world.drivers.driver(node)
    file = await driver.read_file(node.properties_file)
    await driver.write_file(node.properties_file, replace(file, content=file.content + b"num.partitions=7\n"))
    world.cluster.nodes[node.id].start()
    world.cluster.advance(10)
    await world.begin()
    assert await world.result() == "refused"
    record = await world.record()
    assert [(f.code, f.object) for f in record.progress.findings] == [(MOVED, f"broker-{node.id}: properties file")]
    assert [event for event in await world.events() if event.kind == "step-started"] == []


@dataclass
class LateOnce:
    """Metrics of a node that has just started: its first answer is late."""

    cluster: FakeCluster
    late: MetricsEndpoint | None

    async def read(self, endpoint: MetricsEndpoint) -> NodeMetrics:
        if endpoint == self.late:
            self.late = None
            raise Transient(f"{endpoint.url}: no answer in 5 s")
        return await self.cluster.read(endpoint)


async def test_a_node_that_is_late_once_blocks_no_plan(world: Any) -> None:
    late = LateOnce(world.cluster, world.cluster.spec.brokers[1].metrics)
    world.ports = replace(world.ports, metrics=late)
    plan = await world.plan()
    assert (plan.is_blocked, plan.unknown, late.late) == (False, (), None)


async def test_a_node_that_never_answers_blocks_it(world: Any) -> None:
    world.cluster.faults.silent_metrics.add(world.cluster.spec.brokers[1].id)
    plan = await world.plan()
    assert plan.is_blocked
    assert [what for what in plan.unknown if "does not answer" in what]


async def test_a_plan_is_made_once_however_often_it_is_tried(world: Any) -> None:
    plan = await world.plan()
    assert await world.book.add_plan(plan.model_copy(update={"plan_hash": "another"})) == plan
    assert [found.id for found in await world.book.plans(plan.cluster)] == [plan.id]
