"""The revert window on real servers: how long the cluster is without a controller, what survives it, and what cannot reopen it.

One cluster serves all tests of this module: its brokers are hybrid, and each test begins with a new quorum in dual write.
"""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.adapters.artefacts import DirectoryArtefacts
from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.listeners import TcpListeners
from activities.adapters.metrics.by_endpoint import EndpointMetrics
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.epochs import Rule, largest_epoch_of_states, rule_of
from activities.leaving import Leaving, Pace
from activities.node_files import FENCED_META, META, METADATA_LOG
from activities.observe import Ports, observe
from domain.contracts import RevertOrder, StepOutcome, StepRequest
from domain.decisions import NodeStage, Step, StepAction
from domain.errors import Transient
from domain.policy import MigrationPolicy
from domain.properties import ENCODING
from domain.records import ClusterRecord
from domain.zk_to_kraft.node_config import node_file
from domain.zk_to_kraft.situation import DualWrite, QuorumState, Registration, Replication, Situation, situation_of
from playground.by_hand import ByHand
from playground.cluster import PlaygroundCluster
from playground.processes import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

POLICY = MigrationPolicy(poll_interval=timedelta(seconds=0.5), stable_samples=2)


class SilentLedger:
    """The way back needs no ledger: this one never answers."""

    def __getattr__(self, name: str) -> Any:
        async def silent(*arguments: object) -> None:
            raise Transient(f"ledger: {name} does not answer")

        return silent


class Field:
    """A cluster with hybrid brokers, and quorums that come and go."""

    def __init__(self, cluster: PlaygroundCluster, ports: Ports) -> None:
        self.cluster, self.ports = cluster, ports
        self.hand = ByHand(cluster)
        now = datetime.now(UTC)
        self.record = ClusterRecord(spec=cluster.spec, revision=1, generation=1, created_at=now, updated_at=now)

    async def dual_write(self) -> None:
        """A new quorum, and brokers that have just started: all else is thrown away."""
        await asyncio.to_thread(self._begin_anew)
        await self.until(is_in_dual_write, "dual write")

    def _begin_anew(self) -> None:
        spec = self.cluster.spec
        for node in spec.nodes:
            self.cluster.kill_node(node.id)
            shutil.rmtree(f"{node.log_dirs[0]}/{METADATA_LOG}", ignore_errors=True)
        for controller in spec.controllers:
            shutil.rmtree(controller.log_dirs[0], ignore_errors=True)
        self._make_zookeeper_forget()
        for broker in spec.brokers:
            path = Path(broker.properties_file)
            path.write_text(node_file(path.read_text(ENCODING), spec, broker, NodeStage.MIGRATION), ENCODING)
            self.cluster.start_node(broker.id)
        self.hand.add_controllers()

    def _make_zookeeper_forget(self) -> None:
        """Until the brokers' sessions are over; KRaft's rule is of no session."""
        with self.hand.zookeeper() as client:
            wait_until(lambda: not client.get_children("/brokers/ids"), "the end of the brokers' sessions", 30)
            for path in ("/migration", "/controller"):
                if client.exists(path):
                    client.delete(path)

    def names(self, controller_id: int) -> set[str]:
        """What lies in a controller's log directory."""
        return {path.name for path in Path(self.cluster.spec.node(controller_id).log_dirs[0]).iterdir()}

    async def situation(self) -> Situation:
        return situation_of(await observe(self.record, self.ports), self.cluster.spec, POLICY)

    async def until(self, is_so: Any, what: str, seconds: float = 90.0) -> float:
        begun = time.monotonic()
        while not is_so(situation := await self.situation()):
            if time.monotonic() - begun > seconds:
                raise Transient(f"waited {seconds:g} s in vain: {what}; {situation}")
            await asyncio.sleep(0.3)
        return time.monotonic() - begun

    async def rule(self) -> tuple[Rule, int]:
        tree = await self.ports.zookeepers.connect(self.record)
        try:
            return await rule_of(tree), await largest_epoch_of_states(tree)
        finally:
            await tree.close()

    async def leave(self, ports: Ports | None = None, accepted: tuple[str, ...] = ()) -> StepOutcome:
        accepted += tuple(f"original-of-broker-{b.id}" for b in self.cluster.spec.brokers)
        accepted += tuple(f"storage-of-controller-{c.id}" for c in self.cluster.spec.controllers)
        order = RevertOrder(command_id=None, because="a test", accepted_losses=accepted, cluster=self.record)
        request = StepRequest(
            migration_id="m1",
            cluster=self.record.spec.name,
            generation=1,
            step_id="m1/1",
            step=Step(action=StepAction.LEAVE_KRAFT, stage=NodeStage.ZOOKEEPER),
            policy=POLICY,
            revert=order,
        )
        activity = Leaving(ports or self.ports, TcpListeners(), Pace()).leave_kraft
        outcome: StepOutcome = await ActivityEnvironment().run(activity, request)
        print(f"{outcome.seconds:.2f} s, {outcome.blocked or 'done'}: {'; '.join(outcome.changes)}")
        return outcome


def is_in_dual_write(s: Situation) -> bool:
    is_well = s.registration is Registration.AGREES and s.replication is Replication.IN_SYNC
    return is_well and s.quorum is QuorumState.MIGRATION and s.dual_write is DualWrite.CURRENT


@pytest.fixture(scope="module")
async def field(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Field]:
    directory = tmp_path_factory.mktemp("window")
    secrets = EnvironmentAndFileSecrets()
    with PlaygroundCluster(directory / "cluster", prometheus=[3002], announce=print) as cluster:
        ports = Ports(
            ledger=SilentLedger(),
            drivers=SpecDrivers(),
            zookeepers=KazooEnsembles(secrets),
            kafka=BrokerAdmin(secrets),
            metrics=EndpointMetrics(),
            artefacts=DirectoryArtefacts(directory / "artefacts"),
        )
        yield Field(cluster, ports)


async def test_the_cluster_is_given_back_to_zookeeper_within_a_second(field: Field) -> None:
    await field.dual_write()
    before, _ = await field.rule()
    outcome = await field.leave()
    assert outcome.is_done, outcome.blocked
    rule, epoch = await field.rule()
    assert rule.is_zookeepers
    assert rule.migration is None
    assert rule.zookeeper_epoch > max(epoch, before.known_epoch)
    for controller in field.cluster.spec.controllers:
        assert FENCED_META in field.names(controller.id)
        assert META not in field.names(controller.id)
    assert (await field.leave()).is_done, "once more is no more"
