"""What a look adds to the answers of the ports: Kafka's version where the metrics tell no text; and that it takes time."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from activities.observing.in_time import all_within
from activities.observing.observe import Early, observe, observe_for
from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from domain.errors import Obstacle
from domain.observed.observation import NodeMetrics, Observation
from domain.policy import MigrationPolicy
from domain.zk_to_kraft.assessment import sight_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.probed import probed
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import DualWrite
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.hands import in_dual_write
from playground.fakes.metadata_log import FakeLog
from playground.fakes.spec import fake_spec

LEADER = 3001


class WithoutTexts:
    """Gauges as the Prometheus exporter gives them."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    async def read(self, endpoint: Any) -> NodeMetrics:
        return (await self._cluster.read(endpoint)).model_copy(update={"kafka_version": None})


@pytest.mark.parametrize(
    ("jars", "version"),
    [
        (("kafka_2.13-3.9.2.jar", "kafka-clients-3.9.2.jar"), "3.9.2"),
        (("kafka_2.12-3.9.1-cp1.jar",), "3.9.1-cp1"),
        (("kafka_2.13-3.9.2.jar", "kafka_2.13-3.8.1.jar"), None),
        (("kafka-clients-3.9.2.jar",), None),
        ((), None),
    ],
)
async def test_the_version_is_the_jars_where_the_metrics_tell_none(jars: tuple[str, ...], version: str | None) -> None:
    cluster = FakeCluster(fake_spec())
    node = cluster.nodes[1]
    node.machine.remove_tree(f"{node.spec.kafka_home}/libs")
    for jar in jars:
        file = node.machine.read(node.spec.properties_file)
        assert file is not None
        node.machine.write(f"{node.spec.kafka_home}/libs/{jar}", file)
    ports = Ports(cast("Any", None), cluster, cluster, cluster, WithoutTexts(cluster), FakeArtefacts())
    metrics = (await observe(cluster.record(), ports)).node(1).metrics
    assert metrics is not None
    assert metrics.kafka_version == version


class Slow:
    """Gauges of a large cluster: until they are read an idle quorum has written twenty records more. `times`: how often."""

    def __init__(self, cluster: FakeCluster, times: int) -> None:
        self._cluster, self._times = cluster, times

    async def read(self, endpoint: Any) -> NodeMetrics:
        if endpoint == self._cluster.spec.node(LEADER).metrics and self._times:
            self._times -= 1
            self._cluster.advance(20)
        return await self._cluster.read(endpoint)


@pytest.mark.parametrize("is_stuck", [False, True])
async def test_a_slow_look_calls_no_dual_write_dead_that_lives(is_stuck: bool) -> None:
    cluster = await in_dual_write()
    cluster.metadata_log = FakeLog(cluster)
    cluster.faults.is_dual_write_stuck = is_stuck
    cluster.advance(20 if is_stuck else 0)
    assert cluster.quorum.leader == LEADER
    slow = Slow(cluster, times=1)
    ports = Ports(cast("Any", None), cluster, cluster, cluster, slow, FakeArtefacts(), SHIPPED_KINDS)
    seen = await observe_for("zk-to-kraft", cluster.record(), ports)
    assert situation_of(seen, cluster.spec, MigrationPolicy()).dual_write is (DualWrite.DEAD if is_stuck else DualWrite.CURRENT)
    assert probed(seen).failover_hazards == (() if is_stuck else None)


class Hanging:
    """Files of a node on a mount that gives no answer."""

    def __init__(self, driver: Any, of: str) -> None:
        self._driver, self._of = driver, of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    async def read_file(self, path: str) -> Any:
        if path == self._of:
            await asyncio.Event().wait()
        return await self._driver.read_file(path)


async def test_files_that_give_no_answer_are_one_nodes_and_the_rest_is_seen() -> None:
    cluster = FakeCluster(fake_spec())
    path = cluster.spec.node(2).properties_file
    drivers = SimpleNamespace(driver=lambda node: Hanging(cluster.driver(node), path))
    ports = Ports(cast("Any", None), cast("Any", drivers), cluster, cluster, cluster, FakeArtefacts())
    seen = await observe(cluster.record(), ports, part_seconds=1.0)
    assert [(part.what, part.why) for part in seen.unanswered] == [("files of broker-2", "no answer within 1 s")]
    assert seen.node(2).disk is None
    assert seen.node(1).disk is not None


async def test_the_look_of_a_migration_too_waits_for_no_file_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.observing.observe.NODE_SECONDS", 1.0)
    cluster = FakeCluster(fake_spec())
    path = cluster.spec.node(2).properties_file
    drivers = SimpleNamespace(driver=lambda node: Hanging(cluster.driver(node), path))
    ports = Ports(cast("Any", None), cast("Any", drivers), cluster, cluster, cluster, FakeArtefacts())
    async with asyncio.timeout(10):
        seen = await observe(cluster.record(), ports)
    assert [(part.what, part.why, part.is_cut_short) for part in seen.unanswered] == [
        ("files of broker-2", "no answer within 1 s", False)
    ]


class HangingFolder(Hanging):
    """The folder of an installation on such a mount."""

    async def list_dir(self, path: str) -> Any:
        if path == self._of:
            await asyncio.Event().wait()
        return await self._driver.list_dir(path)


async def test_an_installation_that_gives_no_answer_is_unknown_and_the_gauges_are_seen() -> None:
    cluster = FakeCluster(fake_spec())
    path = f"{cluster.spec.node(2).kafka_home}/libs"
    drivers = SimpleNamespace(
        driver=lambda node: HangingFolder(cluster.driver(node), path) if node.id == 2 else cluster.driver(node)
    )
    ports = Ports(cast("Any", None), cast("Any", drivers), cluster, cluster, WithoutTexts(cluster), FakeArtefacts())
    seen = await observe(cluster.record(), ports, part_seconds=0.5)
    assert [part.what for part in seen.unanswered] == ["installation of broker-2"]
    metrics = seen.node(2).metrics
    assert metrics is not None
    assert (metrics.broker_state, metrics.kafka_version) == (3, None)


async def test_what_is_known_is_told_early_while_what_is_late_is_waited_for() -> None:
    cluster = FakeCluster(fake_spec())
    path, is_told, told = cluster.spec.node(2).properties_file, asyncio.Event(), list[Observation]()

    class Late(Hanging):
        async def read_file(self, path: str) -> Any:
            if path == self._of:
                await is_told.wait()
            return await self._driver.read_file(path)

    def tell(seen: Observation) -> None:
        told.append(seen)
        is_told.set()

    drivers = SimpleNamespace(driver=lambda node: Late(cluster.driver(node), path))
    ports = Ports(cast("Any", None), cast("Any", drivers), cluster, cluster, cluster, FakeArtefacts())
    seen = await observe(cluster.record(), ports, early=Early(0.2, tell))
    (before,) = told
    assert [(part.what, part.is_cut_short) for part in before.unanswered] == [("files of broker-2", True)]
    assert (before.node(2).disk, before.node(2).process) == (None, seen.node(2).process)
    assert before.kafka == seen.kafka
    assert seen.node(2).disk is not None
    assert not seen.unanswered
    is_told.set()
    await observe(cluster.record(), ports, early=Early(20, tell))
    assert told == [before], "only where something is late"


async def test_what_is_left_of_all_is_all_that_a_part_has() -> None:
    cluster = FakeCluster(fake_spec())
    path = cluster.spec.node(2).properties_file
    drivers = SimpleNamespace(driver=lambda node: Hanging(cluster.driver(node), path))
    ports = Ports(cast("Any", None), cast("Any", drivers), cluster, cluster, cluster, FakeArtefacts())
    with all_within(0.5):
        seen = await observe(cluster.record(), ports)
    assert [(part.what, part.is_cut_short) for part in seen.unanswered] == [("files of broker-2", True)]


class Anothers:
    """An endpoint that was copied from another node's."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    async def read(self, endpoint: Any) -> NodeMetrics:
        return (await self._cluster.read(endpoint)).model_copy(update={"node_id": 1})


async def test_gauges_of_another_node_tell_nothing_of_this_one() -> None:
    cluster = FakeCluster(fake_spec())
    ports = Ports(cast("Any", None), cluster, cluster, cluster, Anothers(cluster), FakeArtefacts())
    seen = await observe(cluster.record(), ports)
    assert (seen.node(1).metrics is None, seen.node(2).metrics is None) == (False, True)
    part = next(part for part in seen.unanswered if part.what == "metrics of broker-2")
    assert (part.obstacle, part.why.endswith("these are the gauges of node 1")) == (Obstacle.ANOTHERS, True)


@pytest.mark.parametrize("missing", ["quorum", "zookeeper"])
async def test_a_cluster_that_has_only_one_of_both_is_observed(missing: str) -> None:
    """Without controllers that anybody has described; and without ZooKeeper, which is then nothing that does not answer."""
    cluster = await in_dual_write()
    whole = cluster.record()
    record = whole.model_copy(update={"spec": whole.spec.model_copy(update={missing: None})})
    ports = Ports(cast("Any", None), cluster, cluster, cluster, cluster, FakeArtefacts())
    seen = await observe(record, ports)
    assert seen.unanswered == ()
    assert (seen.zookeeper is None) is (missing == "zookeeper")
    sight = sight_of(seen, record.spec, ZkToKraftPolicy())
    assert [node.name for node in sight.nodes] == [record.spec.node_name(node.id) for node in record.spec.nodes]
