"""A real cluster on which single steps of the way back are taken: hybrid brokers, new quorums, workers that die.

No Temporal, no ledger: a step's activity runs in this process, on the real adapters, and hooks can meet every call of them.
"""

import asyncio
import json
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

from confluent_kafka import KafkaError
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient
from temporalio.testing import ActivityEnvironment

from activities.adapters.artefacts import DirectoryArtefacts
from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.listeners import TcpListeners
from activities.adapters.machine_doctor import LinuxDoctor
from activities.adapters.metrics.by_endpoint import EndpointMetrics
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.node_files import FENCED_META, META, METADATA_LOG
from activities.observing.epochs import Rule, rule_of
from activities.observing.observe import observe_for
from activities.observing.zookeeper_view import view_of
from activities.ports.ports import Ports
from activities.ports.zookeeper import session
from activities.shipped_kinds import SHIPPED_KINDS
from activities.zk_to_kraft.starting import Starting
from activities.zk_to_kraft.window.leaving import Leaving
from activities.zk_to_kraft.window.partition_states import PartitionStates
from activities.zk_to_kraft.window.wiping import Wiping
from domain.configuration.properties import ENCODING
from domain.contracts import RevertOrder, StepOutcome, StepRequest
from domain.decisions import Step
from domain.errors import Transient
from domain.observed.observation import Observation
from domain.records import ClusterRecord
from domain.zk_to_kraft.node_config import node_file
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import DualWrite, QuorumState, Registration, Replication, Situation
from domain.zk_to_kraft.steps import KIND, NodeStage, StepAction
from playground.by_hand import ByHand
from playground.clients import admin_client, change_topics
from playground.cluster import PlaygroundCluster
from playground.hooks import Hooked, Hooks, Killed
from playground.own_unit import accepted
from playground.processes import find, wait_until

POLICY = ZkToKraftPolicy(
    poll_interval=timedelta(seconds=0.5), stable_samples=2, cure_dual_write=True, accepted_findings=accepted()
)
EFFECTS = frozenset({"rename", "write_file", "remove_file", "remove_tree", "kill", "stop", "start", "commit"})
PATIENCE_SECONDS = 150.0


class SilentLedger:
    """The way back needs no ledger: this one never answers."""

    def __getattr__(self, name: str) -> Callable[..., Awaitable[None]]:
        async def silent(*arguments: object) -> None:
            raise Transient(f"ledger: {name} does not answer")

        return silent


def is_in_dual_write(s: Situation) -> bool:
    is_well = s.registration is Registration.AGREES and s.replication is Replication.IN_SYNC
    return is_well and s.quorum is QuorumState.MIGRATION and s.dual_write is DualWrite.CURRENT


class Field:
    """The cluster, and what a test does to it."""

    def __init__(self, cluster: PlaygroundCluster, artefacts: Path) -> None:
        secrets = EnvironmentAndFileSecrets()
        self.cluster = cluster
        self.hand = ByHand(cluster)
        self.ports = Ports(
            ledger=cast("Any", SilentLedger()),
            drivers=SpecDrivers(),
            zookeepers=KazooEnsembles(secrets),
            kafka=BrokerAdmin(secrets),
            metrics=EndpointMetrics(),
            artefacts=DirectoryArtefacts(artefacts),
            kinds=SHIPPED_KINDS,
            doctor=LinuxDoctor(),
        )
        now = datetime.now(UTC)
        self.record = ClusterRecord(spec=cluster.spec, revision=1, generation=1, created_at=now, updated_at=now)
        self._admin = admin_client(cluster.bootstrap_servers)
        self._originals = {b.id: Path(b.properties_file).read_bytes() for b in cluster.spec.brokers}
        self._steps = 0

    # ---- to dual write and back ----

    async def dual_write(self, epoch: int | None = None) -> None:
        """A new quorum, its elections beginning at `epoch`, and brokers that have just started: all else is thrown away."""
        await asyncio.to_thread(self._begin_anew, epoch)
        await self.until(is_in_dual_write, "dual write")
        await self._until_written()

    async def _until_written(self, seconds: float = 60.0) -> None:
        """The first offset is the copy's own: the controller still writes over whatever differs. The next is dual write's."""
        first, end = await self._written(), time.monotonic() + seconds
        while await self._written() == first:
            if time.monotonic() > end:
                raise Transient(f"waited {seconds:g} s in vain: a first offset of dual write; {first}")
            await asyncio.sleep(0.3)

    async def _written(self) -> int | None:
        async with session(self.ports.zookeepers, self.record) as tree:
            view = await view_of(tree)
        return None if view.migration is None else view.migration.offset

    def _begin_anew(self, epoch: int | None) -> None:
        spec = self.cluster.spec
        for node in spec.nodes:
            self.cluster.kill_node(node.id)
            shutil.rmtree(f"{node.log_dirs[0]}/{METADATA_LOG}", ignore_errors=True)
        for controller in spec.controllers:
            shutil.rmtree(controller.log_dirs[0], ignore_errors=True)
            if epoch is not None:
                self._vote_once(Path(controller.log_dirs[0], METADATA_LOG), epoch)
        self._make_zookeeper_forget()
        for broker in spec.brokers:
            path = Path(broker.properties_file)
            path.write_text(node_file(path.read_text(ENCODING), spec, broker, NodeStage.MIGRATION), ENCODING)
            self.cluster.start_node(broker.id)
        self.hand.add_controllers()

    def _vote_once(self, directory: Path, epoch: int) -> None:
        """As after that many elections (FileBasedStateStore.java, version 0)."""
        voters = [{"voterId": c.id} for c in self.cluster.spec.controllers]
        state = {"leaderId": -1, "leaderEpoch": epoch, "votedId": -1, "appliedOffset": 0, "currentVoters": voters}
        directory.mkdir(parents=True)
        (directory / "quorum-state").write_text(json.dumps({"clusterId": "", **state, "data_version": 0}))

    def _make_zookeeper_forget(self) -> None:
        """Until the brokers' sessions are over; KRaft's rule is of no session."""
        with self.hand.zookeeper() as client:
            wait_until(lambda: not client.get_children("/brokers/ids"), "the end of the brokers' sessions", 30)
            _delete_rule(client)

    async def back_to_zookeeper_mode(self) -> None:
        """Roll B, all at once: nobody needs these brokers meanwhile."""
        await asyncio.to_thread(self._restart_with_originals)
        await self.until(lambda s: s.replication is Replication.IN_SYNC, "every replica in sync")

    def _restart_with_originals(self) -> None:
        for broker in self.cluster.spec.brokers:
            self.cluster.kill_node(broker.id)
            Path(broker.properties_file).write_bytes(self._originals[broker.id])
        with self.hand.zookeeper() as client:
            wait_until(lambda: not client.get_children("/brokers/ids"), "the end of the brokers' sessions", 30)
        for broker in self.cluster.spec.brokers:
            self.cluster.start_node(broker.id)

    # ---- steps ----

    async def leave(
        self,
        before: Hooks = {},  # noqa: B006
        after: Hooks = {},  # noqa: B006
        *,
        dies_after_an_effect: bool = False,
        accepts: Sequence[str] = (),
    ) -> StepOutcome:
        """The window. Hooks happen before and after calls of drivers and of ZooKeeper, by their names. `accepts`: losses."""
        if dies_after_an_effect:
            after = {name: partial(_die, name) for name in EFFECTS}
        return await self.take(StepAction.LEAVE_KRAFT, None, NodeStage.ZOOKEEPER, before, after, accepts)

    async def take(
        self,
        action: StepAction,
        node_id: int | None,
        stage: NodeStage = NodeStage.MIGRATION,
        before: Hooks = {},  # noqa: B006
        after: Hooks = {},  # noqa: B006
        accepts: Sequence[str] = (),
    ) -> StepOutcome:
        """One attempt at a step of a way back on which nobody minds the loss of what was made by hand."""
        self._steps += 1
        spec = self.record.spec
        accepted = [*accepts, *(f"original-of-broker-{b.id}" for b in spec.brokers)]
        accepted += [f"storage-of-controller-{c.id}" for c in spec.controllers]
        request = StepRequest(
            kind="zk-to-kraft",
            migration_id="m1",
            cluster=spec.name,
            generation=1,
            step_id=f"m1/{self._steps}",
            step=Step(action=action, node_id=node_id, stage=stage),
            policy=POLICY,
            revert=RevertOrder(command_id=None, because="a test", accepted_losses=tuple(accepted), cluster=self.record),
        )
        drivers: Any = Hooked(self.ports.drivers, before, after)
        zookeepers: Any = Hooked(self.ports.zookeepers, before, after)
        ports = replace(self.ports, drivers=drivers, zookeepers=zookeepers)
        activity = {
            StepAction.LEAVE_KRAFT: Leaving(ports, TcpListeners()).leave_kraft,
            StepAction.FAIL_OVER: Starting(ports, TcpListeners()).fail_over,
            StepAction.START_NODE: Starting(ports, TcpListeners()).start_node,
            StepAction.WIPE: Wiping(ports).wipe_kraft,
        }[action]
        outcome: StepOutcome = await ActivityEnvironment().run(activity, request)
        print(f"{action}: {outcome.seconds:.2f} s, {outcome.blocked or 'done'}: {'; '.join(outcome.changes)}")
        return outcome

    # ---- what is seen ----

    async def observation(self) -> Observation:
        return await observe_for(KIND, self.record, self.ports, POLICY)

    async def situation(self) -> Situation:
        return situation_of(await self.observation(), self.cluster.spec, POLICY)

    async def until(self, is_so: Callable[[Situation], bool], what: str, seconds: float = PATIENCE_SECONDS) -> float:
        begun = time.monotonic()
        while not is_so(situation := await self.situation()):
            if time.monotonic() - begun > seconds:
                raise Transient(f"waited {seconds:g} s in vain: {what}; {situation}")
            await asyncio.sleep(0.3)
        return time.monotonic() - begun

    async def rule(self) -> tuple[Rule, int]:
        """Who rules, and the largest epoch in the partitions' states."""
        async with session(self.ports.zookeepers, self.record) as tree:
            return await rule_of(tree), await PartitionStates(tree).survey()

    async def until_rule(self, is_so: Callable[[Rule], bool], what: str, seconds: float = 60.0) -> None:
        await self._until_told(lambda rule, _: is_so(rule), what, seconds)

    async def _until_told(self, is_so: Callable[[Rule, int], bool], what: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not is_so(*(await self.rule())):
            if time.monotonic() > end:
                raise Transient(f"waited {seconds:g} s in vain: {what}")
            await asyncio.sleep(0.05)

    async def without_leader(self, dead: int | None = None) -> list[str]:
        """Partitions that have no leader, as brokers tell it, or one that is dead."""
        topics = (await asyncio.to_thread(self._admin.list_topics, timeout=20)).topics
        return [
            f"{name}-{number}"
            for name, topic in topics.items()
            for number, partition in topic.partitions.items()
            if partition.leader in {-1, dead}
        ]

    async def healed_without(self, dead: int, seconds: float = 40.0) -> list[str]:
        """Partitions that still have no leader some time after this broker has died."""
        end = time.monotonic() + seconds
        while (found := await self.without_leader(dead)) and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.3)
        return found

    async def kill_broker(self, broker_id: int) -> None:
        """Returns when its session is over."""
        self.cluster.kill_node(broker_id)
        await asyncio.to_thread(self._await_gone, broker_id)

    def names(self, node_id: int) -> set[str]:
        """What lies in a node's log directory."""
        return {path.name for path in Path(self.cluster.spec.node(node_id).log_dirs[0]).iterdir()}

    async def until_dead(self, node_ids: list[int], seconds: float = 60.0) -> None:
        """Processes that cannot live end by themselves, as soon as they have come far enough to notice."""
        alive = partial(filter, self.is_running)
        await asyncio.to_thread(wait_until, lambda: not list(alive(node_ids)), f"the end of {node_ids}", seconds)

    def has_file(self, node_id: int) -> bool:
        return Path(self.cluster.spec.node(node_id).properties_file).exists()

    def archived(self, node_id: int) -> set[str]:
        """Properties files of a node that were removed or overwritten, and kept."""
        folder = Path(self.cluster.spec.node(node_id).properties_file).parent / ".keeperless"
        return {path.name for path in folder.iterdir() if "before-" in path.name}

    def lift_fences(self) -> None:
        """By somebody's hand, and all controllers started."""
        for controller in self.cluster.spec.controllers:
            Path(controller.log_dirs[0], FENCED_META).rename(Path(controller.log_dirs[0], META))
            self.cluster.start_node(controller.id)

    def is_running(self, node_id: int) -> bool:
        node = self.cluster.spec.node(node_id)
        return find(Path(node.driver.service.pid_file), node.properties_file) is not None

    # ---- what others do ----

    async def bounce_broker(self, broker_id: int) -> None:
        """Every in-sync set that it is in changes twice: the partitions' states are written anew, by today's quorum."""
        _, before = await self.rule()
        await self.kill_broker(broker_id)
        await self.until(lambda s: s.replication is not Replication.IN_SYNC, "in-sync sets without the broker")
        self.cluster.start_node(broker_id)
        await self.until(is_in_dual_write, "dual write, every replica in sync")
        await self.until_states_beyond(before)

    async def until_states_beyond(self, epoch: int, seconds: float = 60.0) -> None:
        """What brokers tell may be a moment ahead of what dual write has written."""
        await self._until_told(lambda _, largest: largest > epoch, f"states of an epoch beyond {epoch}", seconds)

    def _await_gone(self, broker_id: int) -> None:
        with self.hand.zookeeper() as client:
            wait_until(lambda: not client.exists(f"/brokers/ids/{broker_id}"), f"the end of broker {broker_id}'s session", 30)

    def leave_without_raise(self) -> None:
        """As the guide has it: controllers dead, both znodes deleted, and the epoch left as it is."""
        for controller in self.cluster.spec.controllers:
            self.cluster.kill_node(controller.id)
        with self.hand.zookeeper() as client:
            _delete_rule(client)
            wait_until(self.hand.is_controller_of_zookeeper, "a ZooKeeper controller", 30)

    def claim_by_hand(self, controller_id: int, epoch: int) -> None:
        """What a KRaft controller's claim does: the epoch raised, `/controller` deleted and created anew, persistent."""
        claim = {"version": 2, "brokerid": controller_id, "timestamp": "0", "kraftControllerEpoch": epoch}
        with self.hand.zookeeper() as client:
            data, stat = client.get("/controller_epoch")
            transaction = client.transaction()
            transaction.set_data("/controller_epoch", str(int(data) + 1).encode(), stat.version)
            transaction.delete("/controller")
            transaction.create("/controller", json.dumps(claim).encode())
            failed = [answer for answer in transaction.commit() if isinstance(answer, Exception)]
            if failed:
                raise failed[0]

    def touch_migration(self) -> None:
        """The same content once more: its version is not what the controller's writes are conditional on."""
        with self.hand.zookeeper() as client:
            client.set("/migration", client.get("/migration")[0])

    def create_topics(self, names: list[str]) -> None:
        """All in one call, one partition each; returns when all are acknowledged."""
        wanted = [NewTopic(name, num_partitions=1, replication_factor=3) for name in names]
        change_topics(partial(self._admin.create_topics, wanted, request_timeout=60), KafkaError.TOPIC_ALREADY_EXISTS, 60)

    def delete_topics(self, names: list[str]) -> None:
        change_topics(partial(self._admin.delete_topics, names, request_timeout=60), KafkaError.UNKNOWN_TOPIC_OR_PART, 60)

    async def until_topic(self, name: str, seconds: float = 30.0) -> None:
        """ZooKeeper has it, its partition's state included."""
        await asyncio.to_thread(self._await_state, name, seconds)

    def _await_state(self, name: str, seconds: float) -> None:
        with self.hand.zookeeper() as client:
            path = f"/brokers/topics/{name}/partitions/0/state"
            wait_until(lambda: client.exists(path) is not None, f"{name} in ZooKeeper", seconds)

    def delete_state(self, name: str) -> None:
        """As if the controller had died before it wrote it."""
        with self.hand.zookeeper() as client:
            client.delete(f"/brokers/topics/{name}/partitions/0/state")

    async def topics_in_zookeeper(self) -> tuple[str, ...]:
        async with session(self.ports.zookeepers, self.record) as tree:
            return await tree.children("/brokers/topics") or ()

    async def configure_client_metrics(self, name: str, setting: str) -> None:
        await asyncio.to_thread(self.hand.configure_client_metrics, name, setting)


async def _die(name: str) -> None:
    raise Killed(name)


def _delete_rule(client: KazooClient) -> None:
    for path in ("/migration", "/controller"):
        if client.exists(path):
            client.delete(path)
