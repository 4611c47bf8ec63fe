"""The revert window on real servers: how long the cluster is without a controller, what survives it, and what cannot reopen it.

One cluster serves all tests of this module: its brokers are hybrid, and each test begins with a new quorum in dual write.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from activities.node_files import FENCED_META, META, METADATA_LOG, storage_of
from activities.zk_to_kraft.quorum_log import open_log, read_on
from activities.zk_to_kraft.suspects import strays_in_log
from domain.observed.observation import MigrationGauge
from domain.quorum_log.metadata_log import CLIENT_METRICS
from domain.zk_to_kraft.probed import probed
from domain.zk_to_kraft.situation import DualWrite, Replication
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.clients import admin_client
from playground.cluster import PlaygroundCluster
from playground.field import Field, is_in_dual_write
from playground.hooks import Killed, once
from playground.seed import seed

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400), pytest.mark.xdist_group("window")]


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    directory = tmp_path_factory.mktemp("window")
    with PlaygroundCluster(directory / "cluster", prometheus=[3002], announce=print) as cluster:
        seed(cluster.bootstrap_servers)
        yield Field(cluster, directory / "artefacts")


HALF = "half-written"
LATE_TOPICS = [f"late-{number:03}" for number in range(300)]


async def assert_left(field: Field) -> None:
    rule, epoch = await field.rule()
    assert rule.is_zookeepers
    assert rule.migration is None
    assert rule.zookeeper_epoch >= epoch, "what the new controller writes carries its own"
    for controller in field.cluster.spec.controllers:
        assert FENCED_META in field.names(controller.id)
        assert META not in field.names(controller.id)


async def test_the_cluster_is_given_back_to_zookeeper_within_a_second(field: Field) -> None:
    await field.dual_write()
    before, _ = await field.rule()
    outcome = await field.leave()
    assert outcome.is_done, outcome.blocked
    await assert_left(field)
    rule, _ = await field.rule()
    assert rule.zookeeper_epoch > before.known_epoch
    gap = next(float(c.split()[0]) for c in outcome.changes if c.endswith("without a controller"))
    assert gap < 5.0, "measured: 0.15 s, and 0.7 s where thirty processes wait for two cores"
    assert (await field.leave()).is_done, "once more is no more"


async def test_a_real_log_is_read_as_the_quorum_itself_tells_it(field: Field) -> None:
    """Its end, its state, and configs that ZooKeeper cannot hold: set and deleted with Kafka's own tool."""
    await field.dual_write()
    leader = (await field.rule())[0].leader
    node = field.cluster.spec.node(leader)
    driver = field.ports.drivers.driver(node)
    directory = (await storage_of(driver, node)).metadata_log
    told = (await field.ports.metrics.read(node.metrics)).raft_log_end
    facts = (await read_on(driver, await open_log(driver, directory))).facts
    assert told is not None
    assert told <= facts.end <= told + 20
    assert facts.state is MigrationGauge.MIGRATION
    assert facts.stray_configs == frozenset()
    assert facts.controllers == {controller.id for controller in field.cluster.spec.controllers}
    await field.configure_client_metrics("all", "interval.ms=1000")
    later = await read_on(driver, await open_log(driver, directory))
    assert later.facts.stray_configs == {(CLIENT_METRICS, "all", "interval.ms")}
    await field.configure_client_metrics("all", "interval.ms")
    assert (await read_on(driver, later)).facts.stray_configs == frozenset()
    with acl_that_is_no_znode(field.cluster.bootstrap_servers):
        later = await read_on(driver, later)
        assert [stray.what for stray in later.facts.strays] == ["ALLOW of READ to User:alice for group team-a/loader"]
        seen = await field.observation()
        (hazard,) = await strays_in_log(seen, field.record, field.ports.drivers)
        assert hazard.is_lost_change
    assert (await read_on(driver, later)).facts.strays == ()


@contextmanager
def acl_that_is_no_znode(servers: Sequence[str]) -> Iterator[None]:
    """As somebody makes it while KRaft decides what an ACL may be for."""
    name, pattern = "team-a/loader", ResourcePatternType.LITERAL
    read, allow, group = AclOperation.READ, AclPermissionType.ALLOW, ResourceType.GROUP
    admin = admin_client(servers)
    for made in admin.create_acls([AclBinding(group, name, pattern, "User:alice", "*", read, allow)]).values():
        made.result(30)
    try:
        yield
    finally:
        for gone in admin.delete_acls([AclBindingFilter(group, name, pattern, None, None, read, allow)]).values():
            assert len(gone.result(30)) == 1


@pytest.mark.chaos
async def test_topics_created_just_before_the_kill_are_all_there_afterwards(field: Field) -> None:
    """Acknowledged, and 30 ms later the controllers are dead: what ZooKeeper lacks is flushed from their logs.

    One topic is cut in two by the kill: it is in ZooKeeper, its partition's state is not.
    """
    await field.dual_write()
    await asyncio.to_thread(field.create_topics, [HALF])
    await field.until_topic(HALF)

    async def create_topics() -> None:
        await asyncio.to_thread(field.create_topics, LATE_TOPICS)
        await asyncio.sleep(0.03)

    async def cut() -> None:
        await asyncio.to_thread(field.delete_state, HALF)

    outcome = await field.leave(before={"rename": once(create_topics)}, after={"kill": once(cut)})
    assert outcome.is_done, outcome.blocked
    assert any(change.startswith("flushed:") for change in outcome.changes), outcome.changes
    assert any(change.startswith("half written") and HALF in change for change in outcome.changes), outcome.changes
    await assert_left(field)
    assert {HALF, *LATE_TOPICS} <= set(await field.topics_in_zookeeper())
    await field.until(lambda s: s.replication is Replication.IN_SYNC, "every replica in sync")
    assert await field.without_leader() == []
    await asyncio.to_thread(field.delete_topics, [HALF, *LATE_TOPICS])


@pytest.mark.chaos
async def test_the_epoch_trap_bites_without_the_raise_and_is_defused_by_it(field: Field) -> None:
    """The quorum's epoch is far ahead, and the states of partitions that broker 1 led carry it (KAFKA-20488)."""
    await field.dual_write(epoch=200)
    await field.bounce_broker(1)
    rule, epoch = await field.rule()
    assert epoch > 200 > rule.zookeeper_epoch

    await asyncio.to_thread(field.leave_without_raise)
    await field.kill_broker(2)
    await asyncio.sleep(3)
    trapped = await field.without_leader(2)
    print(f"without the raise {len(trapped)} partitions have no leader while broker 2 is down")
    assert trapped
    outcome = await field.leave()
    assert outcome.is_done, outcome.blocked
    assert (await field.rule())[0].zookeeper_epoch > epoch
    assert await field.healed_without(2) == [], "the cure works late, too"


@pytest.mark.chaos
async def test_the_window_itself_defuses_the_epoch_trap(field: Field) -> None:
    await field.dual_write(epoch=400)
    await field.bounce_broker(1)
    rule, epoch = await field.rule()
    assert epoch > 400 > rule.zookeeper_epoch
    outcome = await field.leave()
    assert outcome.is_done, outcome.blocked
    await assert_left(field)
    await field.kill_broker(2)
    assert await field.healed_without(2) == []


async def revive(field: Field) -> None:
    """By their start command, as somebody's supervisor would."""
    for controller in field.cluster.spec.controllers:
        field.cluster.start_node(controller.id)
    await asyncio.sleep(3)


@pytest.mark.chaos
async def test_controllers_that_are_revived_stay_out(field: Field) -> None:
    """Right before the transaction, right after it, and when all is over."""
    await field.dual_write()
    outcome = await field.leave(before={"commit": lambda: revive(field)}, after={"commit": lambda: revive(field)})
    assert outcome.is_done, outcome.blocked
    await assert_left(field)
    await revive(field)
    await field.until_dead([c.id for c in field.cluster.spec.controllers])
    await assert_left(field)


@pytest.mark.chaos
async def test_a_quorum_that_lives_at_the_transaction_is_recognised(field: Field) -> None:
    """Somebody lifts the fences and starts the controllers in between: their claim makes the transaction fail as a whole."""
    await field.dual_write()
    lives = 0

    async def unfence_once() -> None:
        nonlocal lives
        lives += 1
        if lives == 1:
            before, _ = await field.rule()
            await asyncio.to_thread(field.lift_fences)
            await field.until_rule(lambda rule: rule.known_epoch > before.known_epoch, "another claim")

    outcome = await field.leave(before={"commit": unfence_once})
    assert outcome.is_done, outcome.blocked
    assert lives > 1
    await assert_left(field)


@pytest.mark.chaos
async def test_a_claim_that_slips_in_afterwards_is_seen(field: Field) -> None:
    """As a leader that was just about to claim does it: /controller persistent, in the epoch of the quorum."""
    await field.dual_write()
    claims = 0

    async def claim_once() -> None:
        nonlocal claims
        claims += 1
        if claims == 1:
            await field.until_rule(lambda rule: rule.is_zookeepers, "a ZooKeeper controller")
            await asyncio.to_thread(field.claim_by_hand, 3001, 999)

    outcome = await field.leave(after={"commit": claim_once})
    assert outcome.is_done, outcome.blocked
    assert claims == 2
    await assert_left(field)
    assert (await field.rule())[0].zookeeper_epoch > 999


@pytest.mark.chaos
async def test_workers_that_die_at_every_line_come_to_the_same_end(field: Field) -> None:
    """Each attempt ends right after its first effect, and the next one finds what it left."""
    await field.dual_write()
    deaths: list[str] = []
    begun = time.monotonic()
    while True:
        try:
            outcome = await field.leave(dies_after_an_effect=True)
        except Killed as death:
            deaths.append(str(death))
            assert len(deaths) < 20
            continue
        break
    print(f"{len(deaths)} workers died, {time.monotonic() - begun:.1f} s in all: {', '.join(deaths)}")
    assert outcome.is_done, outcome.blocked
    assert {"rename", "kill", "commit"} <= set(deaths)
    await assert_left(field)


@pytest.mark.chaos
async def test_dual_write_that_has_died_is_cured_by_a_failover(field: Field) -> None:
    """Somebody touches /migration: every write of the controller fails from then on, and nothing says so."""
    await field.dual_write()
    await field.until(lambda s: s.replication is Replication.IN_SYNC, "every replica in sync")
    await asyncio.to_thread(field.touch_migration)
    seconds = await field.until(lambda s: s.dual_write is DualWrite.DEAD, "dual write found dead", 60)
    print(f"found dead after {seconds:.1f} s")
    leader = next(c.id for c in (await field.situation()).controllers if c.is_leader)
    await field.configure_client_metrics("all", "interval.ms=1000")
    hazards = probed(await field.observation()).failover_hazards
    assert [hazard.what for hazard in hazards] == ["client metrics config interval.ms of all"]
    refused = await field.take(StepAction.FAIL_OVER, leader)
    assert "failover-would-hurt" in (refused.blocked or "")
    await field.configure_client_metrics("all", "interval.ms")
    outcome = await field.take(StepAction.FAIL_OVER, leader)
    assert outcome.is_done, outcome.blocked
    assert is_in_dual_write(await field.situation())


@pytest.mark.chaos
async def test_what_the_quorum_left_is_wiped(field: Field) -> None:
    await field.dual_write()
    assert (await field.leave()).is_done
    await field.back_to_zookeeper_mode()
    outcome = await field.take(StepAction.WIPE, None, NodeStage.ZOOKEEPER)
    assert outcome.is_done, outcome.blocked
    for controller in field.cluster.spec.controllers:
        assert field.names(controller.id) == set()
        assert not field.has_file(controller.id)
        assert field.archived(controller.id)
    for broker in field.cluster.spec.brokers:
        assert METADATA_LOG not in field.names(broker.id)
    assert await field.without_leader() == []
