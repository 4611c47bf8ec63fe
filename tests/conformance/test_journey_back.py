"""The way back through the ports alone: from KRaft brokers to hybrid ones, to a ZooKeeper controller, to where it began.

On the simulated cluster only: that real servers go this way is shown in `tests/cluster`. Here the ports are enough for it,
and what is observed at every stop is what the rules of the way back read.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import pytest

from activities.node_files import FENCED_META, META, METADATA_LOG
from activities.observing.zookeeper_view import CONTROLLER, CONTROLLER_EPOCH, MIGRATION
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.ports.stores import Ledger
from activities.ports.zookeeper import DeleteZnode, SetZnode
from activities.shipped_kinds import SHIPPED_KINDS
from domain.cluster import NodeSpec
from domain.configuration.properties import ENCODING
from domain.observed.observation import LogDir, Observation
from domain.records import ClusterRecord
from domain.zk_to_kraft.node_config import node_file
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import Situation
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from tests.conformance.test_journey import Traveller, is_healthy

STOPS = ("kraft", "hybrid", "fenced", "left", "zookeeper", "wiped")
LIMIT = timedelta(seconds=10)


@dataclass(frozen=True)
class Journey:
    record: ClusterRecord
    seen: dict[str, Observation]
    files: dict[int, tuple[FileContent | None, FileContent | None]]
    """The brokers' files, before the first step and after the last."""

    def situation(self, stop: str) -> Situation:
        return situation_of(self.seen[stop], self.record.spec, ZkToKraftPolicy())

    def log_dirs(self, stop: str) -> dict[int, LogDir]:
        disks = {node.id: node.disk for node in self.seen[stop].nodes}
        return {node_id: disk.log_dirs[0] for node_id, disk in disks.items() if disk is not None}


class Returner:
    """Leads a cluster to KRaft brokers, and back."""

    def __init__(self, record: ClusterRecord, ports: Ports) -> None:
        self._record, self._spec, self._ports = record, record.spec, ports
        self._traveller = Traveller(record, ports)

    async def travel(self) -> Journey:
        originals = {broker.id: await self._file(broker) for broker in self._spec.brokers}
        seen: dict[str, Observation] = {}
        await self._traveller.travel_to_kraft(seen)
        await self._roll_back(originals, NodeStage.MIGRATION)
        seen["hybrid"] = await self._traveller.until(lambda o: self._migrating(o) == {len(self._spec.brokers)})
        await self._fence_and_kill()
        seen["fenced"] = await self._traveller.until(self._are_controllers_dead)
        await self._hand_over()
        seen["left"] = await self._traveller.until(lambda o: o.zookeeper is not None and o.zookeeper.controller is not None)
        await self._roll_back(originals, None)
        seen["zookeeper"] = await self._traveller.until(lambda o: is_healthy(o, self._spec))
        await self._wipe()
        seen["wiped"] = await self._traveller.until(lambda o: is_healthy(o, self._spec))
        return Journey(self._record, seen, {b.id: (originals[b.id], await self._file(b)) for b in self._spec.brokers})

    async def _file(self, node: NodeSpec) -> FileContent | None:
        return await self._ports.drivers.driver(node).read_file(node.properties_file)

    async def _roll_back(self, originals: dict[int, FileContent | None], stage: NodeStage | None) -> None:
        """`None`: to the file as it was."""
        for broker in self._spec.brokers:
            file = originals[broker.id]
            assert file is not None
            text = file.content.decode(ENCODING)
            content = file.content if stage is None else node_file(text, self._spec, broker, stage).encode(ENCODING)
            await self._traveller.restart(broker, FileContent(content, file.mode, file.uid, file.gid))
            await self._traveller.until(lambda o: is_healthy(o, self._spec))

    async def _fence_and_kill(self) -> None:
        for controller in self._spec.controllers:
            for directory in controller.log_dirs:
                await self._ports.drivers.driver(controller).rename(f"{directory}/{META}", f"{directory}/{FENCED_META}")
        for controller in self._spec.controllers:
            driver = self._ports.drivers.driver(controller)
            await driver.kill((await driver.process()).identity or "", LIMIT)

    async def _hand_over(self) -> None:
        tree = await self._ports.zookeepers.connect(self._record)
        epoch, migration, claim = await tree.get_many((CONTROLLER_EPOCH, MIGRATION, CONTROLLER))
        assert epoch is not None
        assert migration is not None
        assert claim is not None
        raised = SetZnode(CONTROLLER_EPOCH, b"50", epoch.version)
        deleted = (DeleteZnode(MIGRATION, migration.version), DeleteZnode(CONTROLLER, claim.version))
        assert await tree.commit((raised, *deleted))
        await tree.close()

    async def _wipe(self) -> None:
        for node in self._spec.nodes:
            driver = self._ports.drivers.driver(node)
            is_broker = any(node.id == broker.id for broker in self._spec.brokers)
            for directory in node.log_dirs:
                await driver.remove_tree(f"{directory}/{METADATA_LOG}" if is_broker else directory)

    def _migrating(self, seen: Observation) -> set[int | None]:
        return {m.migrating_broker_count if (m := seen.node(c.id).metrics) else None for c in self._spec.controllers}

    def _are_controllers_dead(self, seen: Observation) -> bool:
        processes = [seen.node(controller.id).process for controller in self._spec.controllers]
        return all(process is not None and not process.is_running for process in processes)


@pytest.fixture(scope="session")
async def journey() -> Journey:
    cluster = FakeCluster(fake_spec(brokers=2))
    ports = Ports(cast("Ledger", None), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS)
    return await Returner(cluster.record(), ports).travel()


def test_who_is_controller_at_every_stop(journey: Journey) -> None:
    claims = [journey.situation(stop).claim.value for stop in STOPS]
    assert claims == ["kraft", "kraft", "kraft", "zookeeper", "zookeeper", "zookeeper"]
    views = [journey.seen[stop].zookeeper for stop in STOPS]
    assert [view.migration is not None if view else None for view in views] == [True, True, True, False, False, False]
    assert [view.controller_epoch if view else None for view in views[3:]] == [51, 53, 53], "each of the two restarts moved it"


def test_what_brokers_are_at_every_stop(journey: Journey) -> None:
    modes = [{broker.mode.value for broker in journey.situation(stop).brokers} for stop in STOPS]
    assert modes == [{"kraft"}, {"hybrid"}, {"hybrid"}, {"hybrid"}, {"zookeeper"}, {"zookeeper"}]
    views = [journey.seen[stop].kafka for stop in STOPS]
    assert [view.broker_ids if view else None for view in views] == [(1, 2)] * len(STOPS)
    assert not any(view.offline for view in views if view)


def test_what_controllers_are_at_every_stop(journey: Journey) -> None:
    modes = [{controller.mode.value for controller in journey.situation(stop).controllers} for stop in STOPS[:5]]
    assert modes == [{"migrating"}, {"migrating"}, {"fenced"}, {"fenced"}, {"fenced"}]


def test_what_is_on_disks_at_every_stop(journey: Journey) -> None:
    brokers = [{log_dir.has_metadata_log for i, log_dir in journey.log_dirs(stop).items() if i < 3000} for stop in STOPS]
    assert brokers == [{True}, {True}, {True}, {True}, {True}, {False}]
    fenced = [{log_dir.is_fenced for i, log_dir in journey.log_dirs(stop).items() if i > 3000} for stop in STOPS]
    assert fenced == [{False}, {False}, {True}, {True}, {True}, {False}]
    assert {log_dir.state.value for stop in STOPS[:5] for log_dir in journey.log_dirs(stop).values()} == {"ours"}
    assert {log_dir.state.value for i, log_dir in journey.log_dirs("wiped").items() if i > 3000} == {"absent"}


def test_files_are_as_they_were(journey: Journey) -> None:
    assert all(before is not None and before == after for before, after in journey.files.values())
