"""The simulated cluster on its way back, well led and badly: what Kafka was seen to do (proven-facts, sections 4 and 5)."""

import json
from typing import cast

import pytest

from activities.node_files import FENCED_META, META
from activities.observing.observe import observe
from activities.ports.ports import Ports
from activities.ports.stores import Ledger
from activities.ports.zookeeper import DeleteZnode
from activities.shipped_kinds import SHIPPED_KINDS
from domain.observed.observation import ControllerZnode, MigrationGauge, MigrationZnode, NodeMetrics, Observation
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes import hands
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.hands import (
    hand_over,
    in_dual_write,
    kill_controllers,
    provision,
    restore_brokers,
    roll,
    roll_brokers,
    start_controllers,
    wipe,
)
from playground.fakes.migration_driver import FATAL, ZK_STATE_DOES_NOT
from playground.fakes.node import NOT_FORMATTED, Mode
from playground.fakes.topics import FakeTopic, spread
from playground.fakes.znodes import CONTROLLER, MIGRATION, migration_record

NEW = spread("new", 2, (1, 2, 3))


async def look(cluster: FakeCluster) -> Observation:
    """At the cluster as it is when what has just happened has had its effect."""
    cluster.advance()
    ports = Ports(cast("Ledger", None), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS)
    return await observe(cluster.record(), ports)


async def claim_of(cluster: FakeCluster) -> ControllerZnode | None:
    seen = (await look(cluster)).zookeeper
    assert seen is not None
    return seen.controller


async def migration_of(cluster: FakeCluster) -> MigrationZnode | None:
    seen = (await look(cluster)).zookeeper
    assert seen is not None
    return seen.migration


async def offsets(cluster: FakeCluster, looks: int = 3) -> set[int | None]:
    """The offset in `/migration`, look after look."""
    found = [await migration_of(cluster) for _ in range(looks)]
    return {znode.offset if znode is not None else None for znode in found}


async def gauges(cluster: FakeCluster) -> list[NodeMetrics]:
    seen = await look(cluster)
    found = [seen.node(controller).metrics for controller in cluster.controller_ids]
    return [metrics for metrics in found if metrics is not None]


def topics(cluster: FakeCluster) -> set[str]:
    return {topic.name for topic in cluster.topics}


# ---- the window ----


@pytest.mark.parametrize("is_killed", [True, False])
async def test_stopped_controllers_leave_their_claim_and_nobody_takes_over(is_killed: bool) -> None:
    cluster = await in_dual_write()
    for controller in cluster.spec.controllers:
        driver = cluster.driver(controller)
        identity = (await driver.process()).identity or ""
        await (driver.kill if is_killed else driver.stop)(identity, hands.LIMIT)
    before = await migration_of(cluster)
    cluster.advance(50)
    claim = await claim_of(cluster)
    assert claim is not None
    assert (claim.is_ephemeral, claim.broker_id in cluster.controller_ids) == (False, True)
    assert await migration_of(cluster) == before


async def test_the_transaction_gives_a_hybrid_broker_the_control_in_the_next_epoch() -> None:
    cluster = await in_dual_write()
    kill_controllers(cluster)
    assert await hand_over(cluster, epoch=40)
    claim = await claim_of(cluster)
    assert claim is not None
    assert (claim.is_ephemeral, claim.broker_id, claim.kraft_epoch) == (True, 1, -1)
    seen = (await look(cluster)).zookeeper
    assert seen is not None
    assert (seen.controller_epoch, seen.migration) == (41, None)
    assert topics(cluster) == {"orders", "payments"}


async def test_a_claim_that_came_between_refuses_the_transaction_whole() -> None:
    cluster = await in_dual_write()
    tree = await cluster.connect(cluster.record())
    read = await tree.get(MIGRATION)
    assert read is not None
    cluster.kill(cluster.quorum.leader or 0)
    cluster.advance(3)
    claim = await claim_of(cluster)
    assert not await tree.commit([DeleteZnode(CONTROLLER, 0), DeleteZnode(MIGRATION, read.version)])
    assert await claim_of(cluster) == claim


async def test_asking_for_the_same_znode_again_is_waiting() -> None:
    """So that an activity that polls ZooKeeper alone sees time pass."""
    cluster = await in_dual_write()
    kill_controllers(cluster)
    tree = await cluster.connect(cluster.record())
    claim, migration = await tree.get_many((CONTROLLER, MIGRATION))
    assert claim is not None
    assert migration is not None
    assert await tree.commit([DeleteZnode(CONTROLLER, claim.version), DeleteZnode(MIGRATION, migration.version)])
    found = await tree.get(CONTROLLER)
    assert found is not None
    assert found.ephemeral_owner != 0


async def test_a_late_claim_slips_in_once() -> None:
    cluster = await in_dual_write()
    kill_controllers(cluster)
    cluster.faults.late_claims = 1
    assert await hand_over(cluster)
    claim = await claim_of(cluster)
    assert claim is not None
    assert (claim.is_ephemeral, claim.broker_id in cluster.controller_ids) == (False, True)
    assert await hand_over(cluster)
    claim = await claim_of(cluster)
    assert claim is not None
    assert claim.is_ephemeral


async def test_a_living_quorum_does_not_notice_that_it_lost_its_claim() -> None:
    """A silent split brain: a broker is controller, and the quorum's leader reports that all is well."""
    cluster = await in_dual_write()
    tree = await cluster.connect(cluster.record())
    assert await tree.commit([DeleteZnode(CONTROLLER, 0)])
    claim = await claim_of(cluster)
    assert claim is not None
    assert claim.is_ephemeral
    assert len(await offsets(cluster)) == 3
    assert {g.migration_gauge for g in await gauges(cluster)} == {MigrationGauge.MIGRATION}


async def test_a_living_quorum_writes_nothing_after_the_transaction() -> None:
    """Also not to the `/migration` that a controller creates which is started later."""
    cluster = await in_dual_write()
    assert await hand_over(cluster)
    assert await migration_of(cluster) is None
    standby = next(i for i in cluster.controller_ids if i != cluster.quorum.leader)
    await roll(cluster, standby, NodeStage.MIGRATION)
    cluster.advance(10)
    assert await offsets(cluster) == {-1}
    assert {g.migration_gauge for g in await gauges(cluster)} == {MigrationGauge.MIGRATION}


async def test_a_new_quorum_cannot_claim_over_the_claim_of_a_later_epoch() -> None:
    """The claim of the quorum before it was left there: it loops, and the cluster has no controller at all."""
    cluster = await stubborn_quorum()
    left = await claim_of(cluster)
    await wipe(cluster)
    await provision(cluster)
    cluster.advance(60)
    assert await claim_of(cluster) == left
    assert {g.migration_gauge for g in await gauges(cluster)} == {MigrationGauge.PRE_MIGRATION}


async def test_a_kraft_broker_that_restarts_without_a_quorum_does_not_serve() -> None:
    cluster = await in_dual_write()
    await roll_brokers(cluster, NodeStage.KRAFT)
    kill_controllers(cluster)
    await roll(cluster, 2, NodeStage.KRAFT)
    cluster.advance(10)
    seen = (await look(cluster)).kafka
    assert seen is not None
    assert seen.broker_ids == (1, 3), "those that run go on from memory"
    await start_controllers(cluster)
    seen = (await look(cluster)).kafka
    assert seen is not None
    assert seen.broker_ids == (1, 2, 3)


# ---- controllers that come back ----


async def test_revived_without_migration_they_lie_and_never_claim() -> None:
    cluster = await in_dual_write()
    kill_controllers(cluster)
    assert await hand_over(cluster)
    cluster.advance()
    cluster.create_topic(NEW)
    for _ in range(2):
        await start_controllers(cluster)
        cluster.advance(60)
        claim = await claim_of(cluster)
        assert claim is not None
        assert claim.is_ephemeral
        found = await gauges(cluster)
        assert {g.migration_gauge for g in found} == {MigrationGauge.MIGRATION}
        assert sum(g.active_controller_count or 0 for g in found) == 1
        assert await offsets(cluster) == {-1}
        kill_controllers(cluster)
    assert any(ZK_STATE_DOES_NOT in cluster.nodes[i].output for i in cluster.controller_ids)
    assert topics(cluster) == {"orders", "payments", "new"}


async def test_revived_with_migration_they_claim_and_delete_what_was_made_since() -> None:
    cluster = await in_dual_write()
    kill_controllers(cluster)
    assert await hand_over(cluster, keep_migration=True)
    cluster.advance()
    cluster.create_topic(NEW)
    await start_controllers(cluster)
    claim = await claim_of(cluster)
    assert claim is not None
    assert not claim.is_ephemeral
    assert cluster.deleted_topics == ["new"]
    assert topics(cluster) == {"orders", "payments"}


async def test_a_fenced_controller_dies_at_its_start_until_the_fence_is_lifted() -> None:
    cluster = await in_dual_write()
    await hands.fence_controllers(cluster)
    kill_controllers(cluster)
    await start_controllers(cluster)
    seen = (await look(cluster)).node(3001)
    assert seen.process is not None
    assert not seen.process.is_running
    assert seen.last_output[-1] == NOT_FORMATTED
    assert seen.disk is not None
    assert [(d.is_fenced, d.state.value, d.has_metadata_log) for d in seen.disk.log_dirs] == [(True, "ours", True)]
    for controller in cluster.spec.controllers:
        path = controller.log_dirs[0]
        await cluster.driver(controller).rename(f"{path}/{FENCED_META}", f"{path}/{META}")
    await start_controllers(cluster)
    assert {g.migration_gauge for g in await gauges(cluster)} == {MigrationGauge.MIGRATION}


# ---- what was not in ZooKeeper yet ----


async def test_a_kill_can_lose_what_kraft_has_acknowledged() -> None:
    cluster = await in_dual_write()
    cluster.create_topic(NEW)
    kill_controllers(cluster)
    assert await hand_over(cluster)
    cluster.advance()
    assert cluster.deleted_topics == ["new"]


async def test_started_again_before_the_transaction_they_flush_it() -> None:
    cluster = await in_dual_write()
    cluster.create_topic(NEW)
    kill_controllers(cluster)
    await start_controllers(cluster)
    kill_controllers(cluster)
    assert await hand_over(cluster)
    cluster.advance()
    assert topics(cluster) == {"orders", "payments", "new"}
    assert not cluster.deleted_topics


async def test_dual_write_that_died_is_cured_by_a_failover_and_writes_what_was_missing() -> None:
    cluster = await in_dual_write()
    cluster.faults.is_dual_write_stuck = True
    cluster.create_topic(NEW)
    cluster.advance(30)
    assert len(await offsets(cluster)) == 1
    assert "/brokers/topics/new" not in cluster.znodes
    assert {g.write_behind_lag for g in await gauges(cluster)} == {0}
    cluster.kill(cluster.quorum.leader or 0)
    cluster.advance(3)
    assert len(await offsets(cluster)) == 3
    assert "/brokers/topics/new" in cluster.znodes


async def test_some_failovers_do_not_cure() -> None:
    cluster = await in_dual_write()
    cluster.faults.is_dual_write_stuck = cluster.faults.failover_does_not_cure = True
    cluster.kill(cluster.quorum.leader or 0)
    cluster.advance(3)
    assert len(await offsets(cluster)) == 1
    assert {g.migration_gauge for g in await gauges(cluster)} == {MigrationGauge.MIGRATION}
    cluster.faults.is_dual_write_stuck = False
    assert len(await offsets(cluster)) == 3


# ---- epochs ----


async def stubborn_quorum() -> FakeCluster:
    """Elections have brought the quorum's epoch far beyond ZooKeeper's; the last leader has written every partition."""
    cluster = await in_dual_write()
    cluster.quorum.epoch = 16
    cluster.kill(cluster.quorum.leader or 0)
    cluster.advance(3)
    kill_controllers(cluster)
    return cluster


async def test_the_epoch_trap_bites_where_the_epoch_is_not_raised() -> None:
    cluster = await stubborn_quorum()
    assert await hand_over(cluster)
    cluster.advance()
    assert len(cluster.trapped_partitions) == 9
    await restore_brokers(cluster)
    assert len(cluster.trapped_partitions) == 9, "it does not heal by itself"
    assert await hand_over(cluster, epoch=17)
    cluster.advance()
    assert not cluster.trapped_partitions, "the cure also works late"


async def test_a_raised_epoch_defuses_it() -> None:
    cluster = await stubborn_quorum()
    assert await hand_over(cluster, epoch=17)
    cluster.advance()
    assert not cluster.trapped_partitions


async def test_a_roll_in_dual_write_leaves_the_quorums_epoch_in_partition_states() -> None:
    cluster = await in_dual_write()
    cluster.quorum.epoch = 30
    await roll(cluster, 2, NodeStage.KRAFT)
    cluster.advance(5)
    states = [json.loads(data) for path, data in cluster.znodes.items() if path.endswith("/state")]
    assert 30 in {state["controller_epoch"] for state in states}
    assert {tuple(sorted(state["isr"])) for state in states} == {(1, 2, 3)}


# ---- there and back again ----


async def test_from_kraft_brokers_back_to_zookeeper_and_forward_again() -> None:
    cluster = await in_dual_write()
    await roll_brokers(cluster, NodeStage.KRAFT)
    assert {g.migrating_broker_count for g in await gauges(cluster)} == {0}
    await roll_brokers(cluster, NodeStage.MIGRATION)
    assert {g.migrating_broker_count for g in await gauges(cluster)} == {3}
    await hands.fence_controllers(cluster)
    kill_controllers(cluster)
    assert await hand_over(cluster, epoch=cluster.quorum.epoch)
    cluster.advance()
    await restore_brokers(cluster)
    modes = {node.process.mode for node in cluster.nodes.values() if node.process is not None}
    assert modes == {Mode.ZOOKEEPER}
    await wipe(cluster)
    await in_dual_write(cluster)
    await roll_brokers(cluster, NodeStage.KRAFT)
    assert len(await offsets(cluster)) == 3
    assert {g.migration_gauge for g in await gauges(cluster)} == {MigrationGauge.MIGRATION}
    assert topics(cluster) == {"orders", "payments"}
    assert not cluster.deleted_topics


async def test_a_fresh_quorum_deletes_everything_once_its_log_is_beyond_a_stale_migration() -> None:
    cluster = FakeCluster()
    cluster.znodes[MIGRATION] = migration_record(3001, 7, 105)
    await in_dual_write(cluster)
    claim, found = await claim_of(cluster), await gauges(cluster)
    assert claim is not None
    assert not claim.is_ephemeral
    assert {g.migration_gauge for g in found} == {MigrationGauge.PRE_MIGRATION}
    assert (await offsets(cluster), cluster.deleted_topics) == ({105}, [])
    while cluster.quorum.log_end <= 105:
        assert not cluster.deleted_topics
        cluster.advance()
    assert sorted(cluster.deleted_topics) == ["orders", "payments"]
    assert len(await offsets(cluster)) == 3
    assert {g.migration_gauge for g in await gauges(cluster)} == {MigrationGauge.PRE_MIGRATION}


async def test_stopping_the_controllers_in_that_time_saves_the_topics() -> None:
    cluster = FakeCluster()
    cluster.znodes[MIGRATION] = migration_record(3001, 7, 105)
    await in_dual_write(cluster)
    kill_controllers(cluster)
    cluster.advance(100)
    assert await hand_over(cluster)
    cluster.advance()
    assert topics(cluster) == {"orders", "payments"}
    assert not cluster.deleted_topics


# ---- a copy that cannot finish ----


async def test_a_poisoned_copy_kills_one_leader_after_another() -> None:
    cluster = FakeCluster()
    cluster.faults.poisoned_copy = True
    await in_dual_write(cluster)
    seen = await look(cluster)
    dead = [i for i in cluster.controller_ids if cluster.nodes[i].process is None]
    assert len(dead) == 2
    assert {seen.node(i).last_output[-1] for i in dead} == {FATAL}
    assert not any(g.active_controller_count for g in await gauges(cluster))
    claim = await claim_of(cluster)
    assert claim is not None
    assert not claim.is_ephemeral
    assert await offsets(cluster) == {-1}


async def test_a_poisoned_copy_can_be_taken_back() -> None:
    cluster = FakeCluster()
    cluster.faults.poisoned_copy = True
    await in_dual_write(cluster)
    kill_controllers(cluster)
    assert await hand_over(cluster, epoch=cluster.quorum.epoch)
    await restore_brokers(cluster)
    assert not cluster.trapped_partitions
    assert topics(cluster) == {"orders", "payments"}


# ---- disks ----


async def test_who_has_a_copy_of_the_quorums_log() -> None:
    cluster = FakeCluster()
    cluster.metadata_log = lambda node_id: f"{node_id} {cluster.quorum.log_end}".encode()
    await in_dual_write(cluster)
    assert all(node.has_metadata_log for node in cluster.nodes.values())
    path = "/var/lib/controller-3001/__cluster_metadata-0/00000000000000000000.log"
    kill_controllers(cluster)
    content = await cluster.driver(cluster.spec.node(3001)).read_part(path, 0, 99)
    cluster.advance(5)
    assert await cluster.driver(cluster.spec.node(3001)).read_part(path, 0, 99) == content
    assert content == f"3001 {cluster.quorum.log_end}".encode()


async def test_a_hybrid_broker_drops_its_copy_when_it_starts_and_a_plain_one_keeps_it() -> None:
    cluster = await in_dual_write()
    kill_controllers(cluster)
    await restore_brokers(cluster)
    assert cluster.nodes[1].has_metadata_log
    await roll(cluster, 1, NodeStage.MIGRATION)
    assert not cluster.nodes[1].has_metadata_log


async def test_a_quorum_lives_as_long_as_one_copy_of_its_log() -> None:
    cluster = await in_dual_write()
    kill_controllers(cluster)
    before = cluster.quorum.log_end
    for controller in cluster.spec.controllers[:2]:
        await cluster.driver(controller).remove_tree(controller.log_dirs[0])
    cluster.advance()
    assert (cluster.quorum.log_end, cluster.quorum.log_state) == (before, MigrationGauge.MIGRATION)
    await wipe(cluster)
    await provision(cluster)
    assert cluster.quorum.log_end < before
    assert {g.migration_gauge for g in await gauges(cluster)} == {MigrationGauge.PRE_MIGRATION}


def test_a_topic_made_by_clients_is_the_controllers_in_charge() -> None:
    cluster = FakeCluster()
    cluster.create_topic(FakeTopic("one", ((1, 2),)))
    cluster.advance()
    assert "/brokers/topics/one" in cluster.znodes
    assert topics(cluster) == {"orders", "payments", "one"}
