"""`FakeCluster`: what Kafka does in a migration from ZooKeeper to KRaft, as far as we have seen it (proven-facts, section 4).

Its time is the number of looks: every `KafkaAdmin.view`, answered or not, is one (`observe` asks for exactly one), and
`advance()` adds one. Processes need `boot_looks` until they serve and `catch_up_looks` more until their replicas are in
sync; the copy takes `copy_looks`.
"""

from datetime import UTC, datetime

from activities.ports import Znode
from domain.cluster import ClusterSpec, MetricsEndpoint, NodeSpec
from domain.errors import Transient
from domain.observation import KafkaView, NodeMetrics
from domain.records import ClusterRecord
from playground.fakes.faults import Faults
from playground.fakes.gauges import broker_gauges, controller_gauges
from playground.fakes.machine import text_file
from playground.fakes.node import FakeDriver, FakeNode, Mode
from playground.fakes.quorum import Quorum, is_booted, mode
from playground.fakes.spec import BROKER_FILE, fake_spec
from playground.fakes.storage_tool import write_meta
from playground.fakes.topics import FakeTopic, kafka_view, spread
from playground.fakes.tree import FakeTree
from playground.fakes.znodes import ZooKeeperSide, znodes_of

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
        self.quorum = Quorum(copy_looks)
        self.znodes: dict[str, bytes] = {}
        """Further znodes, e.g. `/admin/delete_topics/orders`; they also replace what would be there."""
        ids = tuple(b.id for b in self.spec.brokers)
        self.topics = topics if topics is not None else (spread("orders", 6, ids), spread("payments", 3, ids))
        self._boot_looks = boot_looks
        self._catch_up_looks = catch_up_looks
        self._zookeeper_controller: int | None = None
        self._controller_epoch = 0
        for broker in self.spec.brokers:
            self._found_long_ago(self.nodes[broker.id])
        self._elect_in_zookeeper()

    # ---- for tests ----

    def record(self) -> ClusterRecord:
        now = datetime.now(UTC)
        return ClusterRecord(spec=self.spec, revision=1, generation=1, created_at=now, updated_at=now)

    @property
    def restarts(self) -> dict[str, int]:
        """Processes started since the beginning, by node name: a controller's first start counts, a broker's does not."""
        first = {b.id for b in self.spec.brokers}
        return {self.spec.node_name(i): node.starts - (i in first) for i, node in self.nodes.items()}

    def kill(self, node_id: int, *lines: str) -> None:
        """SIGKILL from outside."""
        self.nodes[node_id].die(*lines)

    def advance(self, looks: int = 1) -> None:
        """Let time pass."""
        for _ in range(looks):
            for node in self.nodes.values():
                if node.process is not None:
                    node.process.looks += 1
            self._elect_in_zookeeper()
            voters, brokers = self._of(self.spec.controllers), self._of(self.spec.brokers)
            self.quorum.advance(voters, brokers, self._boot_looks, self.faults.is_dual_write_stuck)
            self._register(brokers)

    # ---- the ports ----

    def driver(self, node: NodeSpec) -> FakeDriver:
        return FakeDriver(self.nodes[node.id], self.faults)

    async def connect(self, cluster: ClusterRecord) -> FakeTree:
        if self.faults.silent_zookeeper:
            raise Transient(f"ZooKeeper {cluster.spec.zookeeper.connect}: no session")
        return FakeTree(self._tree(), self.faults)

    async def view(self, cluster: ClusterRecord) -> KafkaView:
        self.advance()
        serving = self._serving()
        if self.faults.silent_kafka or not serving:
            raise Transient(f"Kafka at {','.join(cluster.spec.kafka.bootstrap_servers)}: does not answer")
        return kafka_view(self.spec.cluster_id, self.topics, serving, self._in_sync())

    async def read(self, endpoint: MetricsEndpoint) -> NodeMetrics:
        node = next(node for node in self.nodes.values() if node.spec.metrics == endpoint)
        if node.process is None or node.spec.id in self.faults.silent_metrics:
            raise Transient(f"{endpoint.url}: does not answer")
        return self._gauges(node, node.process.mode)

    # ---- how it behaves ----

    def _of(self, specs: tuple[NodeSpec, ...]) -> list[FakeNode]:
        return [self.nodes[spec.id] for spec in specs]

    def _found_long_ago(self, node: FakeNode) -> None:
        spec = node.spec
        text = BROKER_FILE.format(
            id=spec.id, host=spec.host, log_dir=",".join(spec.log_dirs), connect=self.spec.zookeeper.connect
        )
        node.machine.write(spec.properties_file, text_file(text, 0o640))
        for directory in spec.log_dirs:
            write_meta(node.machine, directory, {"version": "0", "cluster.id": self.spec.cluster_id}, spec.id)
        node.start()
        if node.process is not None:
            node.process.looks = LONG_AGO

    def _serving(self) -> tuple[int, ...]:
        """Brokers that serve. In KRaft mode a broker serves once it has registered."""
        return tuple(
            b.spec.id
            for b in self._of(self.spec.brokers)
            if is_booted(b, self._boot_looks) and (mode(b) is not Mode.KRAFT or b.spec.id in self._unfenced())
        )

    def _in_sync(self) -> tuple[int, ...]:
        caught_up = self._boot_looks + self._catch_up_looks
        return tuple(i for i in self._serving() if is_booted(self.nodes[i], caught_up))

    def _register(self, brokers: list[FakeNode]) -> None:
        """A living broker that knows the quorum registers in its mode; a dead one's registration stays, fenced."""
        for broker in brokers:
            is_able = is_booted(broker, self._boot_looks) and broker.spec.id not in self.faults.never_registers
            found = mode(broker)
            if self.quorum.leader is not None and is_able and found in {Mode.HYBRID, Mode.KRAFT}:
                self.quorum.registered[broker.spec.id] = found

    def _unfenced(self) -> set[int]:
        """Registered in the mode in which they run now."""
        return {i for i, registered in self.quorum.registered.items() if mode(self.nodes[i]) is registered}

    def _zookeeper_ids(self) -> tuple[int, ...]:
        modes = {Mode.ZOOKEEPER, Mode.HYBRID}
        return tuple(b.spec.id for b in self._of(self.spec.brokers) if mode(b) in modes and is_booted(b, self._boot_looks))

    def _elect_in_zookeeper(self) -> None:
        """A broker's claim ends with its session, and another broker's follows; while KRaft's claim stands, none can."""
        alive = self._zookeeper_ids()
        if self.quorum.claimed_by is not None:
            self._zookeeper_controller = None
        elif self._zookeeper_controller not in alive:
            self._zookeeper_controller = alive[0] if alive else None
            self._controller_epoch += 1 if alive else 0

    def _tree(self) -> dict[str, Znode]:
        side = ZooKeeperSide(
            cluster_id=self.spec.cluster_id,
            controller=self._zookeeper_controller if self._zookeeper_controller in self._zookeeper_ids() else None,
            controller_epoch=self._controller_epoch,
            broker_ids=self._zookeeper_ids(),
            topics=self.topics,
        )
        return znodes_of(side, self.quorum, self.znodes)

    def _gauges(self, node: FakeNode, running: Mode) -> NodeMetrics:
        if running.is_controller:
            if not is_booted(node, self._boot_looks):
                return NodeMetrics()
            return controller_gauges(node.spec.id, running, len(self._unfenced()), self.quorum)
        fault_count = len(kafka_view(self.spec.cluster_id, self.topics, self._serving(), self._in_sync()).under_replicated)
        return broker_gauges(
            running,
            is_serving=node.spec.id in self._serving(),
            is_zookeeper_controller=self._zookeeper_controller == node.spec.id,
            zookeeper_brokers=len(self._zookeeper_ids()),
            behind=fault_count,
            quorum=self.quorum,
        )
