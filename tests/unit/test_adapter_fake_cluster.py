"""The simulated cluster's bad days: each switch, and what Kafka was seen to do (proven-facts, section 4)."""

from typing import cast

import pytest

from activities.observing.observe import observe
from activities.ports.ports import Ports
from activities.ports.stores import Ledger
from domain.errors import Transient
from domain.observed.observation import MigrationGauge, NodeMetrics, Observation
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import Situation
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes import hands
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.hands import LIMIT, format_of, provision, roll

CONTROLLERS = (3001, 3002, 3003)
BROKERS = (1, 2, 3)


async def look(cluster: FakeCluster) -> Observation:
    ports = Ports(cast("Ledger", None), cluster, cluster, cluster, cluster, FakeArtefacts())
    return await observe(cluster.record(), ports)


async def situation(cluster: FakeCluster) -> Situation:
    return situation_of(await look(cluster), cluster.spec, ZkToKraftPolicy())


def gauge(seen: Observation, node_id: int) -> MigrationGauge | None:
    return metrics(seen, node_id).migration_gauge


def metrics(seen: Observation, node_id: int) -> NodeMetrics:
    found = seen.node(node_id).metrics
    assert found is not None
    return found


async def in_dual_write() -> FakeCluster:
    cluster = await hands.in_dual_write()
    assert gauge(await look(cluster), 3001) is MigrationGauge.MIGRATION
    return cluster


async def test_a_restart_shows_as_starting_then_out_of_sync_then_well() -> None:
    cluster = FakeCluster()
    await cluster.driver(cluster.spec.node(2)).stop(
        (await cluster.driver(cluster.spec.node(2)).process()).identity or "", LIMIT
    )
    down = await look(cluster)
    assert down.kafka is not None
    assert down.kafka.broker_ids == (1, 3)
    await cluster.driver(cluster.spec.node(2)).start()
    states = []
    for _ in range(4):
        seen = await look(cluster)
        assert seen.kafka is not None
        states.append((metrics(seen, 2).broker_state, bool(seen.kafka.under_replicated)))
    assert states == [(1, True), (3, True), (3, False), (3, False)]
    assert cluster.restarts["broker-2"] == 1


async def test_the_copy_waits_for_every_broker_and_every_flag() -> None:
    cluster = FakeCluster()
    await provision(cluster, CONTROLLERS[:2])
    for broker in BROKERS:
        await roll(cluster, broker, NodeStage.MIGRATION)
        cluster.advance(5)
    assert gauge(await look(cluster), 3001) is MigrationGauge.PRE_MIGRATION
    await provision(cluster, CONTROLLERS[2:])
    assert (await situation(cluster)).quorum.value == "migration"


async def test_no_majority_no_leader() -> None:
    cluster = FakeCluster()
    await provision(cluster, CONTROLLERS[:1])
    assert gauge(await look(cluster), 3001) is MigrationGauge.BOOTING
    assert metrics(await look(cluster), 3001).raft_leader == -1


async def test_a_leader_that_restarts_loses_the_lead() -> None:
    cluster = await in_dual_write()
    before = cluster.quorum.leader
    assert before is not None
    await roll(cluster, before, NodeStage.MIGRATION)
    cluster.advance(5)
    assert cluster.quorum.leader not in {None, before}
    after = await situation(cluster)
    assert (after.dual_write.value, after.claim.value) == ("current", "kraft")


async def test_one_flagless_controller_that_becomes_active_finalises() -> None:
    """Accidental finalisation: the standby alone does nothing, the failover to it does."""
    cluster = await in_dual_write()
    leader = cluster.quorum.leader
    assert leader is not None
    standbys = [c for c in CONTROLLERS if c != leader]
    await roll(cluster, standbys[0], NodeStage.KRAFT)
    cluster.advance(20)
    assert gauge(await look(cluster), leader) is MigrationGauge.MIGRATION
    await roll(cluster, standbys[1], NodeStage.MIGRATION)
    cluster.advance()
    cluster.kill(leader)
    await cluster.driver(cluster.spec.node(leader)).start()
    cluster.advance(5)
    assert gauge(await look(cluster), leader) is MigrationGauge.POST_MIGRATION


async def test_a_first_controller_without_flag_spoils_the_quorum() -> None:
    cluster = FakeCluster()
    await provision(cluster, CONTROLLERS[:2], has_flag=False)
    assert gauge(await look(cluster), 3001) is MigrationGauge.NONE


async def test_stuck_dual_write_looks_well_but_for_the_offset() -> None:
    cluster = await in_dual_write()
    cluster.faults.is_dual_write_stuck = True
    cluster.advance(30)
    seen = await situation(cluster)
    assert (seen.quorum.value, seen.dual_write.value) == ("migration", "dead")


async def test_a_broker_that_never_registers_holds_the_copy() -> None:
    cluster = FakeCluster()
    cluster.faults.never_registers.add(2)
    await provision(cluster)
    for broker in BROKERS:
        await roll(cluster, broker, NodeStage.MIGRATION)
        cluster.advance(5)
    seen = await situation(cluster)
    assert (seen.quorum.value, seen.registration.value) == ("pre-migration", "differs")


async def test_what_is_silent_is_named() -> None:
    cluster = FakeCluster()
    cluster.faults.silent_zookeeper = cluster.faults.silent_kafka = True
    cluster.faults.silent_nodes.add(2)
    cluster.faults.silent_metrics.add(3)
    seen = await look(cluster)
    assert [part.what for part in seen.unanswered] == [
        "files of broker-2",
        "kafka",
        "metrics of broker-3",
        "process of broker-2",
        "zookeeper",
    ]


async def test_a_broker_that_does_not_come_up_says_why() -> None:
    cluster = FakeCluster()
    cluster.faults.dies_at_start[2] = ("Address already in use",)
    await roll(cluster, 2, NodeStage.MIGRATION)
    seen = (await look(cluster)).node(2)
    assert seen.process is not None
    assert not seen.process.is_running
    assert seen.last_output[-1] == "Address already in use"


async def test_zookeepers_controller_moves_with_its_session() -> None:
    cluster = FakeCluster()
    assert [b.is_zookeeper_controller for b in (await situation(cluster)).brokers] == [True, False, False]
    cluster.kill(1)
    cluster.advance()
    assert [b.is_zookeeper_controller for b in (await situation(cluster)).brokers] == [False, True, False]


async def test_nobody_serves_when_all_are_dead() -> None:
    cluster = FakeCluster()
    for broker in BROKERS:
        cluster.kill(broker)
    with pytest.raises(Transient):
        await cluster.view(cluster.record())


async def test_a_directory_is_formatted_once() -> None:
    cluster = FakeCluster()
    await provision(cluster, CONTROLLERS[:1])
    controller = cluster.spec.controllers[0]
    driver = cluster.driver(controller)
    await driver.remove_tree(controller.log_dirs[0])
    tool = format_of(controller, "c")
    exit_codes = [(await driver.run(a, {}, LIMIT)).exit_code for a in (tool, tool, [*tool, "--ignore-formatted"])]
    assert exit_codes == [0, 1, 0]
    meta = await driver.read_file(f"{controller.log_dirs[0]}/meta.properties")
    assert meta is not None
    assert b"cluster.id=c\n" in meta.content
    assert b"node.id=3001\n" in meta.content
