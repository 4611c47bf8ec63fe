"""All ports together: a real cluster and the fake go the same way to KRaft, and look the same at every stop.

The journey uses the ports alone, so what it shows is what activities see. It proves which MBeans each mode has (the running
mode is judged by them), the admin client in ZooKeeper, hybrid and KRaft mode, and that the fake tells the truth.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import pytest

from activities.adapters.artefacts import DirectoryArtefacts
from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.metrics.by_endpoint import EndpointMetrics
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.observing.observe import observe
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.ports.stores import Ledger
from activities.shipped_kinds import SHIPPED_KINDS
from domain.cluster import ClusterSpec, ControllerSpec, NodeSpec
from domain.configuration.properties import ENCODING
from domain.health.quorum import quorum_leader
from domain.observed.observation import MigrationGauge, NodeDisk, NodeMetrics, Observation
from domain.records import ClusterRecord
from domain.zk_to_kraft.node_config import controller_file, node_file
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import Situation
from domain.zk_to_kraft.steps import NodeStage
from playground.cluster import PlaygroundCluster
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from tests.conformance.conftest import two_brokers

STOPS = ("zookeeper", "controllers", "dual-write", "kraft", "final")
DEADLINE_SECONDS = 90
STRINGS = ("zookeeper_session", "kafka_version")
"""What the Prometheus exporter cannot give."""


@dataclass(frozen=True)
class Journey:
    record: ClusterRecord
    seen: dict[str, Observation]

    def situation(self, stop: str) -> Situation:
        return situation_of(self.seen[stop], self.record.spec, ZkToKraftPolicy())

    def metrics(self, stop: str, node_id: int) -> NodeMetrics:
        found = self.seen[stop].node(node_id).metrics
        assert found is not None
        return found


class Traveller:
    """Leads a cluster through the migration, in one go and without any guard."""

    def __init__(self, record: ClusterRecord, ports: Ports) -> None:
        self._record = record
        self._spec = record.spec
        self._ports = ports

    async def travel(self) -> Journey:
        seen: dict[str, Observation] = {}
        await self.travel_to_kraft(seen)
        await self._roll(self._leader_last(seen["kraft"]), NodeStage.KRAFT)
        seen["final"] = await self.until(lambda o: self._gauges(o) == {MigrationGauge.POST_MIGRATION})
        return Journey(self._record, seen)

    async def travel_to_kraft(self, seen: dict[str, Observation]) -> None:
        """Up to where there is a way back. Each stop is noted in `seen`."""
        seen["zookeeper"] = await self.until(lambda o: is_healthy(o, self._spec))
        for controller in self._spec.controllers:
            await self._provision(controller)
        seen["controllers"] = await self.until(lambda o: self._gauges(o) == {MigrationGauge.PRE_MIGRATION})
        await self._roll([broker.id for broker in self._spec.brokers], NodeStage.MIGRATION)
        seen["dual-write"] = await self.until(
            lambda o: self._gauges(o) == {MigrationGauge.MIGRATION} and is_healthy(o, self._spec) and has_copied(o)
        )
        await self._roll([broker.id for broker in self._spec.brokers], NodeStage.KRAFT)
        seen["kraft"] = await self.until(lambda o: is_healthy(o, self._spec) and self._migrating(o) == {0})

    async def until(self, is_wanted: Callable[[Observation], bool]) -> Observation:
        """Seen twice in a row: one look has read a node's disk before its gauges, which it may have come to meanwhile."""
        deadline, was_seen = time.monotonic() + DEADLINE_SECONDS, False
        while True:
            seen = await observe(self._record, self._ports)
            is_seen = is_wanted(seen) and self._versions_are_known(seen)
            if is_seen and was_seen:
                return seen
            was_seen = is_seen
            assert time.monotonic() < deadline, seen.model_dump_json(indent=1)

    async def _provision(self, controller: ControllerSpec) -> None:
        driver, broker = self._ports.drivers.driver(controller), self._spec.brokers[0]
        source = await self._ports.drivers.driver(broker).read_file(broker.properties_file)
        assert source is not None
        text = controller_file(self._spec, controller, None, source.content.decode(ENCODING)).encode(ENCODING)
        await driver.write_file(controller.properties_file, FileContent(text, source.mode, source.uid, source.gid))
        tool = [controller.java, "-cp", f"{controller.kafka_home}/libs/*", "kafka.tools.StorageTool"]
        options = [f"--cluster-id={self._spec.cluster_id}", "--config", controller.properties_file, "--ignore-formatted"]
        for _ in range(2 if controller is self._spec.controllers[0] else 1):
            done = await driver.run([*tool, "format", *options], controller.environment, timedelta(seconds=60))
            assert done.exit_code == 0, done
        await driver.start()

    async def _roll(self, node_ids: list[int], stage: NodeStage) -> None:
        """One after the other, each back before the next goes."""
        for node_id in node_ids:
            node = self._spec.node(node_id)
            driver = self._ports.drivers.driver(node)
            file = await driver.read_file(node.properties_file)
            assert file is not None
            text = node_file(file.content.decode(ENCODING), self._spec, node, stage).encode(ENCODING)
            await self.restart(node, FileContent(text, file.mode, file.uid, file.gid))
            await self.until(lambda o: is_healthy(o, self._spec) and quorum_leader(o, self._spec) is not None)

    async def restart(self, node: NodeSpec, file: FileContent) -> None:
        driver = self._ports.drivers.driver(node)
        await driver.write_file(node.properties_file, file)
        before = await driver.process()
        await driver.stop(before.identity or "", timedelta(seconds=60))
        assert (await driver.process()).last_identity == before.identity
        await driver.start()
        assert (await driver.process()).last_identity != before.identity

    def _versions_are_known(self, seen: Observation) -> bool:
        """A node registers app-info last of all: for a moment it has every gauge and no version yet."""
        through_jolokia = [node for node in self._spec.nodes if node.metrics.kind == "jolokia"]
        return all(m.kafka_version for node in through_jolokia if (m := seen.node(node.id).metrics) is not None)

    def _gauges(self, seen: Observation) -> set[MigrationGauge | None]:
        return {m.migration_gauge if (m := seen.node(c.id).metrics) else None for c in self._spec.controllers}

    def _migrating(self, seen: Observation) -> set[int | None]:
        return {m.migrating_broker_count if (m := seen.node(c.id).metrics) else None for c in self._spec.controllers}

    def _leader_last(self, seen: Observation) -> list[int]:
        leader = quorum_leader(seen, self._spec)
        assert leader is not None
        return [*(c.id for c in self._spec.controllers if c.id != leader.id), leader.id]


def is_healthy(seen: Observation, spec: ClusterSpec) -> bool:
    everyone = tuple(sorted(broker.id for broker in spec.brokers))
    states = [m.broker_state if (m := seen.node(broker.id).metrics) else None for broker in spec.brokers]
    kafka = seen.kafka
    return kafka is not None and kafka.broker_ids == everyone and not kafka.under_replicated and set(states) == {3}


def has_copied(seen: Observation) -> bool:
    migration = seen.zookeeper.migration if seen.zookeeper else None
    return migration is not None and migration.offset is not None and migration.offset > 0


@pytest.fixture(scope="session")
async def fake_journey() -> Journey:
    cluster = FakeCluster(fake_spec(brokers=2))
    ports = Ports(cast("Ledger", None), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS)
    return await Traveller(cluster.record(), ports).travel()


@pytest.fixture(scope="session")
def travelling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlaygroundCluster]:
    """One of its own: who comes after it in the same process would find another cluster than it was."""
    with two_brokers(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
async def real_journey(
    travelling: PlaygroundCluster,
    as_record: Callable[[ClusterSpec], ClusterRecord],
    tmp_path_factory: pytest.TempPathFactory,
) -> Journey:
    secrets = EnvironmentAndFileSecrets()
    ports = Ports(
        cast("Ledger", None),
        SpecDrivers(),
        KazooEnsembles(secrets),
        BrokerAdmin(secrets),
        EndpointMetrics(),
        DirectoryArtefacts(tmp_path_factory.mktemp("artefacts")),
    )
    journey = await Traveller(as_record(travelling.spec), ports).travel()
    start = journey.seen["zookeeper"].started_at
    print({stop: round((seen.ended_at - start).total_seconds(), 1) for stop, seen in journey.seen.items()})
    return journey


@pytest.fixture(params=[pytest.param("real", marks=pytest.mark.cluster), "fake"])
def journey(request: pytest.FixtureRequest) -> Journey:
    return cast("Journey", request.getfixturevalue(f"{request.param}_journey"))


@pytest.mark.parametrize(
    ("stop", "brokers", "controllers"),
    [
        ("zookeeper", "zookeeper", "absent"),
        ("controllers", "zookeeper", "migrating"),
        ("dual-write", "hybrid", "migrating"),
        ("kraft", "kraft", "migrating"),
        ("final", "kraft", "final"),
    ],
)
def test_modes_are_told_by_the_gauges(journey: Journey, stop: str, brokers: str, controllers: str) -> None:
    situation = journey.situation(stop)
    assert {broker.mode.value for broker in situation.brokers} == {brokers}
    assert {controller.mode.value for controller in situation.controllers} == {controllers}


def test_the_claim_and_the_dual_write(journey: Journey) -> None:
    situations = [journey.situation(stop) for stop in STOPS]
    assert [s.claim.value for s in situations] == ["zookeeper", "zookeeper", "kraft", "kraft", "kraft"]
    assert [s.dual_write.value for s in situations[2:4]] == ["current", "current"]
    assert [s.quorum.value for s in situations[1:]] == ["pre-migration", "migration", "migration", "post-migration"]


def test_only_brokers_with_zookeeper_are_in_its_list(journey: Journey) -> None:
    listed = [view.broker_ids if (view := journey.seen[stop].zookeeper) else None for stop in STOPS]
    assert listed == [(1, 2), (1, 2), (1, 2), (), ()]


def test_kafka_says_the_same_in_every_mode(journey: Journey) -> None:
    views = [journey.seen[stop].kafka for stop in STOPS]
    assert [view.broker_ids if view else None for view in views] == [(1, 2)] * len(STOPS)
    assert len({view.cluster_id if view else None for view in views}) == 1


def test_disks_are_ours(journey: Journey) -> None:
    for node in journey.seen["final"].nodes:
        assert node.disk is not None
        assert {log_dir.state.value for log_dir in node.disk.log_dirs} == {"ours"}


@pytest.mark.cluster
@pytest.mark.parametrize("stop", STOPS)
def test_the_fake_has_the_disks_of_the_real_one(real_journey: Journey, fake_journey: Journey, stop: str) -> None:
    for node in real_journey.record.spec.nodes:
        real, fake = (on_disk(journey.seen[stop].node(node.id).disk) for journey in (real_journey, fake_journey))
        assert real == fake, (stop, node.id)


def on_disk(disk: NodeDisk | None) -> list[tuple[bool, bool, str]]:
    assert disk is not None
    return [(log_dir.has_metadata_log, log_dir.is_fenced, log_dir.state.value) for log_dir in disk.log_dirs]


@pytest.mark.parametrize("stop", STOPS)
def test_a_claim_is_as_old_as_it_is(journey: Journey, stop: str) -> None:
    seen = journey.seen[stop]
    claim = seen.zookeeper.controller if seen.zookeeper else None
    assert claim is not None
    assert claim.claimed_at is not None
    assert timedelta(seconds=-1) < seen.ended_at - claim.claimed_at < timedelta(minutes=30)


@pytest.mark.cluster
@pytest.mark.parametrize("stop", STOPS)
def test_the_fake_has_the_gauges_of_the_real_one(real_journey: Journey, fake_journey: Journey, stop: str) -> None:
    """Field by field: known or absent. Node 2 and controller 3002 are seen through the exporter, which has no strings."""
    for node in real_journey.record.spec.nodes:
        if real_journey.seen[stop].node(node.id).metrics is None:
            assert fake_journey.seen[stop].node(node.id).metrics is None
            continue
        left_out = set(STRINGS) if node.metrics.kind == "prometheus" else set()
        real, fake = (known(j.metrics(stop, node.id)) - left_out for j in (real_journey, fake_journey))
        assert real == fake, (stop, node.id)


def known(metrics: NodeMetrics) -> set[str]:
    return {field for field, value in metrics if value is not None}
