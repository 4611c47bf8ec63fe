"""`FakeCluster`: what Kafka does in a migration from ZooKeeper to KRaft and back, as far as we saw it (proven-facts, 4 and 5).

Its time is the number of looks: every `KafkaAdmin.view`, answered or not, is one (`observe` asks for exactly one), so is every
`ReplicaAdmin.layout`, and `advance()` adds one. Whoever asks for the same znode again in one session is waiting: that is one,
too. Processes need `boot_looks` until they serve and `catch_up_looks` more until their replicas are in sync; the copy takes
`copy_looks`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from domain.canaries import is_reserved
from domain.cluster import ClusterSpec, MetricsEndpoint, NodeSpec
from domain.errors import Obstacle, Transient
from domain.observed.observation import KafkaView, NodeMetrics
from domain.observed.survey import BrokerLogDir, StartedWith
from domain.offsets import GroupOffset, PartitionOffsets
from domain.records import ClusterRecord
from playground.fakes.clients import ClientSide, FakeClient, may_write_now
from playground.fakes.faults import Faults
from playground.fakes.gauges import broker_gauges, controller_gauges
from playground.fakes.leaders import Leaders
from playground.fakes.machine import text_file
from playground.fakes.migration_driver import DriverState, MigrationDriver
from playground.fakes.moves import Moves
from playground.fakes.node import FakeDriver, FakeNode, Mode
from playground.fakes.quorum import Quorum, is_booted, mode
from playground.fakes.spec import BROKER_FILE, fake_spec
from playground.fakes.storage_tool import write_meta
from playground.fakes.topics import FakeTopic, kafka_view, spread
from playground.fakes.tree import FakeTree
from playground.fakes.znodes import CONTROLLER, claim_record, kraft_epoch
from playground.fakes.zookeeper_side import ZooKeeperSide
from playground.log_bytes import batch, registration

LONG_AGO = 1_000_000
"""Looks that the first processes have behind them."""


class FakeCluster:
    """All ports of one simulated cluster: it is itself `NodeDrivers`, `ZooKeepers`, `KafkaAdmin` and `ClusterMetrics`."""

    def __init__(
        self,
        spec: ClusterSpec | None = None,
        *,
        topics: tuple[FakeTopic, ...] | None = None,
        boot_looks: int = 2,
        catch_up_looks: int = 1,
        copy_looks: int = 1,
    ) -> None:
        self.spec = spec or fake_spec()
        self.nodes = {node.id: FakeNode(node) for node in self.spec.nodes}
        self.faults = Faults()
        self.clients = ClientSide()
        self.quorum = Quorum()
        self.leaders = Leaders()
        ids = tuple(b.id for b in self.spec.brokers)
        self.topics = topics if topics is not None else (spread("orders", 6, ids), spread("payments", 3, ids))
        self.log_ends: dict[tuple[str, int], int] = {}
        """How many records a partition has; none by default."""
        self.moves = Moves()
        self.compacted: set[str] = set()
        self.groups: tuple[GroupOffset, ...] = ()
        self.asked_alone: list[str] = []
        """Addresses at which a broker was asked by itself."""
        self.deleted_topics: list[str] = []
        """Topics that clients had, and that whoever is in charge now knows nothing of."""
        self.metadata_log: Callable[[int], bytes] | None = None
        """What the log on a node's disk holds, by the node's id, as long as the node runs; nothing by default."""
        self.side = ZooKeeperSide(self.spec.cluster_id)
        self.znodes = self.side.znodes
        """All of ZooKeeper; tests may write, e.g. `/admin/delete_topics/orders`."""
        self.migration = MigrationDriver(self.side, self.faults, copy_looks)
        self._boot_looks = boot_looks
        self._catch_up_looks = catch_up_looks
        for broker in self.spec.brokers:
            self._found_long_ago(self.nodes[broker.id])
        self._elect_in_zookeeper()
        for topic in self.topics:
            self.side.write_topic(topic, self.side.controller_epoch)

    # ---- for tests ----

    def record(self) -> ClusterRecord:
        now = datetime.now(UTC)
        return ClusterRecord(spec=self.spec, revision=1, generation=1, created_at=now, updated_at=now)

    @property
    def controller_ids(self) -> tuple[int, ...]:
        return tuple(controller.id for controller in self.spec.controllers)

    @property
    def restarts(self) -> dict[str, int]:
        """Processes started since the beginning, by node name: a controller's first start counts, a broker's does not."""
        first = {b.id for b in self.spec.brokers}
        return {self.spec.node_name(i): node.starts - (i in first) for i, node in self.nodes.items()}

    @property
    def trapped_partitions(self) -> tuple[str, ...]:
        """Partitions that the ZooKeeper controller cannot elect a leader for (KAFKA-20488). Clients see their old leaders."""
        return tuple(self.side.trapped(self.topics))

    def kill(self, node_id: int, *lines: str) -> None:
        """SIGKILL from outside."""
        self.nodes[node_id].die(*lines)

    def create_topic(self, topic: FakeTopic) -> None:
        """As clients do: acknowledged by the controller in charge. What KRaft acknowledges, ZooKeeper gets a look later."""
        self.topics = (*self.topics, topic)
        if kraft_epoch(self.znodes) is None:
            self.side.write_topic(topic, self.side.controller_epoch)
        else:
            self.quorum.topics[topic.name] = topic

    def delete_topic(self, name: str) -> None:
        """As clients do, and at once everywhere."""
        self.topics = tuple(topic for topic in self.topics if topic.name != name)
        self.quorum.topics.pop(name, None)
        self.side.delete_topic(name)

    def serving(self) -> tuple[int, ...]:
        """Brokers that serve. In KRaft mode a broker serves once it has registered."""
        return tuple(
            b.spec.id
            for b in self._of(self.spec.brokers)
            if is_booted(b, self._boot_looks) and (mode(b) is not Mode.KRAFT or self.quorum.is_unfenced(b))
        )

    def in_sync(self) -> tuple[int, ...]:
        """Brokers whose replicas have caught up."""
        caught_up = self._boot_looks + self._catch_up_looks
        return tuple(i for i in self.serving() if is_booted(self.nodes[i], caught_up))

    def advance(self, looks: int = 1) -> None:
        """Let time pass."""
        for _ in range(looks):
            for node in self.nodes.values():
                if node.process is not None:
                    node.process.looks += 1
            self._elect_in_zookeeper()
            brokers = self._of(self.spec.brokers)
            ready = self.quorum.advance(self._of(self.spec.controllers), self._boot_looks)
            in_sync = self.in_sync()
            if self.moves.of:
                self.topics = self.moves.advance(self.topics, in_sync)
            self.leaders.advance(self.topics, self.serving(), in_sync)
            self.migration.advance(self.quorum, ready, self._are_all_hybrid(brokers), self.topics, in_sync)
            if self.side.controller is not None:
                self.side.write_states(self.topics, in_sync, self.side.controller_epoch)
            self._register(brokers)
            self._write_metadata_logs(ready, brokers)
            self._forget_topics()
            if may_write_now(self.migration.state, self.faults.is_dual_write_stuck):
                self.clients.write_to(self.znodes)

    # ---- the ports ----

    def driver(self, node: NodeSpec) -> FakeDriver:
        return FakeDriver(self.nodes[node.id], self.faults)

    async def connect(self, cluster: ClusterRecord) -> FakeTree:
        if self.faults.silent_zookeeper:
            raise Transient(f"ZooKeeper {cluster.spec.ensemble.connect}: no session")
        self.side.keep_sessions(self._zookeeper_ids())
        return FakeTree(self.znodes, self.faults, self.advance)

    async def ask(self, server: str, word: str) -> str | None:
        """The first server leads, and has all sessions."""
        if self.faults.silent_zookeeper or server in self.faults.silent_servers:
            raise Transient(f"ZooKeeper {server}: no answer to {word}")
        is_leader = self.spec.ensemble.connect.startswith(server)
        answer = self.side.answer(word, is_leader, self.faults.foreign_clients)
        return answer if word in self.faults.words else None

    async def log_dirs(self, cluster: ClusterRecord) -> tuple[BrokerLogDir, ...]:
        self.answer_or_silence(cluster)
        return tuple(
            BrokerLogDir(broker_id=broker, path=path, is_offline=path in self.faults.offline_dirs)
            for broker in self.serving()
            for path in self.nodes[broker].spec.log_dirs
        )

    async def sizes(self, cluster: ClusterRecord, partitions: Mapping[int, Sequence[str]]) -> dict[str, int]:
        self.answer_or_silence(cluster)
        known = {
            f"{topic.name}-{number}": (topic.name, number) for topic in self.topics for number in range(len(topic.assignment))
        }
        wanted = [name for names in partitions.values() for name in names if name in known]
        return {name: sum(map(len, self.clients.messages.get(known[name], ()))) for name in wanted}

    async def started_with(self, cluster: ClusterRecord, brokers: Sequence[int]) -> dict[int, StartedWith]:
        self.answer_or_silence(cluster)
        running = {broker: self.nodes[broker].process for broker in brokers}
        if any(process is None for process in running.values()):
            raise Transient(f"Kafka at {','.join(cluster.spec.kafka.bootstrap_servers)}: a broker does not answer")
        return {broker: _told(process.properties) for broker, process in running.items() if process is not None}

    async def view(self, cluster: ClusterRecord) -> KafkaView:
        self.advance()
        serving = self.serving()
        if self.faults.silent_kafka or self.faults.mute_brokers or not serving:
            raise Transient(f"Kafka at {','.join(cluster.spec.kafka.bootstrap_servers)}: does not answer")
        return kafka_view(self.spec.cluster_id, self.others_topics(), serving, self.in_sync(), self.leaders.of)

    async def ask_broker(self, cluster: ClusterRecord, broker_id: int, address: str, seconds: float) -> None:
        self.asked_alone.append(address)
        asked = next(broker.id for broker in self.spec.brokers if f"{broker.host}:9092" == address)
        other = self.faults.led_elsewhere.get(asked, asked)
        if other != broker_id:
            raise Transient(f"broker {other} answers, and not broker {broker_id}", obstacle=Obstacle.ANOTHERS)
        if self.nodes[broker_id].process is None:
            raise Transient("it accepts no connection within 1 s")
        if self.faults.silent_kafka or broker_id in self.faults.mute_brokers or broker_id not in self.serving():
            words = f"it accepts the connection, but answers no request within {seconds:g} s"
            raise Transient(words, obstacle=Obstacle.LATE)

    async def open_client(self, cluster: ClusterRecord) -> FakeClient:
        self.answer_or_silence(cluster)
        return FakeClient(self)

    async def offsets(self, cluster: ClusterRecord) -> tuple[PartitionOffsets, ...]:
        self.answer_or_silence(cluster)
        return tuple(
            PartitionOffsets(
                topic.name, topic.topic_id or "", number, 0, self.log_ends.get((topic.name, number), 0), is_compacted
            )
            for topic in sorted(self.others_topics(), key=lambda found: found.name)
            for number in range(len(topic.assignment))
            for is_compacted in [topic.name in self.compacted]
        )

    async def group_offsets(self, cluster: ClusterRecord) -> tuple[GroupOffset, ...]:
        self.answer_or_silence(cluster)
        return tuple(sorted(self.groups, key=lambda one: (one.group, one.topic, one.partition)))

    async def elect_preferred(self, cluster: ClusterRecord) -> int:
        self.answer_or_silence(cluster)
        return self.leaders.elect_preferred(self.topics, self.in_sync())

    def answer_or_silence(self, cluster: ClusterRecord) -> None:
        if self.faults.silent_kafka or not self.serving():
            raise Transient(f"Kafka at {','.join(cluster.spec.kafka.bootstrap_servers)}: does not answer")

    async def read(self, endpoint: MetricsEndpoint) -> NodeMetrics:
        node = next(node for node in self.nodes.values() if node.spec.metrics == endpoint)
        if node.process is None or node.spec.id in self.faults.silent_metrics:
            raise Transient(f"{endpoint.url}: does not answer")
        return self._gauges(node, node.process.mode)

    # ---- how it behaves ----

    def others_topics(self) -> tuple[FakeTopic, ...]:
        return tuple(topic for topic in self.topics if not is_reserved(topic.name))

    def _of(self, specs: tuple[NodeSpec, ...]) -> list[FakeNode]:
        return [self.nodes[spec.id] for spec in specs]

    def _found_long_ago(self, node: FakeNode) -> None:
        spec = node.spec
        text = BROKER_FILE.format(
            id=spec.id, host=spec.host, log_dir=",".join(spec.log_dirs), connect=self.spec.ensemble.connect
        )
        node.machine.write(spec.properties_file, text_file(text, 0o640))
        for directory in spec.log_dirs:
            write_meta(node.machine, directory, {"version": "0", "cluster.id": self.spec.cluster_id}, spec.id)
        node.start()
        if node.process is not None:
            node.process.looks = LONG_AGO

    def _register(self, brokers: list[FakeNode]) -> None:
        """A living broker that knows the quorum registers in its mode."""
        for broker in brokers:
            is_able = is_booted(broker, self._boot_looks) and broker.spec.id not in self.faults.never_registers
            if self.quorum.leader is not None and is_able and mode(broker) in {Mode.HYBRID, Mode.KRAFT}:
                self.quorum.register(broker)

    def _are_all_hybrid(self, brokers: list[FakeNode]) -> bool:
        return all(mode(b) is Mode.HYBRID and self.quorum.is_unfenced(b) for b in brokers)

    def _write_metadata_logs(self, ready: list[FakeNode], brokers: list[FakeNode]) -> None:
        """Controllers have a log as soon as they run, brokers once they have registered."""
        for node in (*ready, *(b for b in brokers if self.quorum.is_unfenced(b))):
            if node.process is not None:
                node.write_metadata_log((self.metadata_log or self._registrations)(node.spec.id))

    def _registrations(self, _node_id: int) -> bytes:
        return batch(0, [registration(i) for i in sorted(self.registered_controllers)])

    @property
    def registered_controllers(self) -> set[int]:
        """All whose registration the quorum has answered."""
        return {controller.id for controller in self.spec.controllers} - set(self.faults.never_registers)

    def _unfenced_count(self) -> int:
        return sum(self.quorum.is_unfenced(b) for b in self._of(self.spec.brokers))

    def _zookeeper_ids(self) -> tuple[int, ...]:
        modes = {Mode.ZOOKEEPER, Mode.HYBRID}
        return tuple(b.spec.id for b in self._of(self.spec.brokers) if mode(b) in modes and is_booted(b, self._boot_looks))

    def _elect_in_zookeeper(self) -> None:
        """A broker's claim ends with its session, and another broker's follows; while KRaft's claim stands, none can."""
        alive = self._zookeeper_ids()
        self.side.keep_sessions(alive)
        if self.faults.late_claims > 0 and CONTROLLER not in self.znodes:
            self.faults.late_claims -= 1
            late = self.spec.controllers[0].id if self.quorum.leader is None else self.quorum.leader
            self.znodes.create(CONTROLLER, claim_record(late, self.quorum.epoch))
            self.side.raise_epoch()
        self.side.elect(alive)

    def _forget_topics(self) -> None:
        """What the one in charge does not know, brokers delete."""
        if self.side.controller is not None:
            known = self.side.topic_names()
        elif self.migration.state is DriverState.DUAL_WRITE:
            known = set(self.quorum.topics)
        else:
            return
        self.deleted_topics += [topic.name for topic in self.topics if topic.name not in known]
        self.topics = tuple(topic for topic in self.topics if topic.name in known)

    def _gauges(self, node: FakeNode, running: Mode) -> NodeMetrics:
        if running.is_controller:
            if not is_booted(node, self._boot_looks):
                return NodeMetrics()
            return controller_gauges(node.spec.id, running, self._unfenced_count(), self.quorum)
        fault_count = len(kafka_view(self.spec.cluster_id, self.topics, self.serving(), self.in_sync(), {}).under_replicated)
        return broker_gauges(
            node.spec.id,
            running,
            is_serving=node.spec.id in self.serving(),
            is_zookeeper_controller=self.side.controller == node.spec.id,
            zookeeper_brokers=len(self._zookeeper_ids()),
            behind=fault_count,
            quorum=self.quorum,
        )


def _told(properties: Mapping[str, str]) -> StartedWith:
    """Kafka tells no value of a password, nor of a key that it does not know; and makes each id of the other."""
    ids = properties.get("node.id", properties.get("broker.id", ""))
    properties = {**properties, "node.id": ids, "broker.id": ids}
    public = frozenset(key for key in properties if "password" not in key)
    return StartedWith(values={key: value if key in public else None for key, value in properties.items()}, public=public)
