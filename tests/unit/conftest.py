"""Builders of what the domain looks at: a specification, and whole observations of a healthy cluster at each point of its way.

The numbers are those that real servers showed (reference/proven-facts.md, section 4): hybrid brokers report gauge 4 always,
KRaft brokers have none, the offset in `/migration` is 0 or 1 behind the quorum's log, `/controller` is persistent from the
claim on.
"""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from domain.cluster import (
    BrokerSpec,
    ClusterSpec,
    ControllerSpec,
    JolokiaEndpoint,
    KafkaClientSpec,
    NodeDriverSpec,
    PlainProcess,
    QuorumSpec,
    Role,
    ZooKeeperSpec,
)
from domain.configuration.properties import parse
from domain.diagnosis.machines.vital_signs import VitalSigns
from domain.drift.hashing import rules_fingerprint
from domain.drift.report import Cut, DriftReport, Verdict
from domain.observed.observation import (
    OBSERVED_PROPERTIES,
    ControllerZnode,
    KafkaView,
    LogDir,
    MigrationGauge,
    MigrationZnode,
    NodeDisk,
    NodeMetrics,
    NodeView,
    Observation,
    Process,
    PropertiesFile,
    RollMark,
    StorageState,
    ZooKeeperView,
)
from domain.zk_to_kraft.comparison import claim_of
from domain.zk_to_kraft.node_config import controller_file, node_file
from domain.zk_to_kraft.steps import NodeStage
from playground.broker_properties import BrokerAddresses, render
from playground.processes import wait_until

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
CLUSTER_ID = "mXu2Yk4sQkq7w1bJc0dR9A"
CONNECT = "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183/kafka"
LEADER = 3002
ZOOKEEPER_CONTROLLER = 2


def cluster_spec(brokers: int = 3, controllers: int = 3) -> ClusterSpec:
    """Brokers 1, 2, … and controllers 3001, 3002, …, all on one host."""

    def common(node_id: int) -> dict[str, Any]:
        service = PlainProcess(
            start_command=("java", "{properties}"), pid_file=f"/run/{node_id}.pid", output_file=f"/log/{node_id}"
        )
        return {
            "id": node_id,
            "host": "127.0.0.1",
            "driver": NodeDriverSpec(service=service),
            "kafka_home": "/opt/kafka",
            "properties_file": f"/etc/kafka/{node_id}.properties",
            "log_dirs": (f"/data/{node_id}",),
            "metrics": JolokiaEndpoint(url=f"http://127.0.0.1:{20000 + node_id}/jolokia"),
        }

    return ClusterSpec(
        name="test",
        cluster_id=CLUSTER_ID,
        kafka=KafkaClientSpec(bootstrap_servers=("127.0.0.1:9093",)),
        zookeeper=ZooKeeperSpec(connect=CONNECT),
        brokers=tuple(BrokerSpec(**common(i), rack=f"rack-{i}") for i in range(1, brokers + 1)),
        quorum=QuorumSpec(
            controllers=tuple(ControllerSpec(**common(i), port=9000 + i) for i in range(3001, 3001 + controllers))
        ),
    )


def broker_text(broker_id: int) -> str:
    """A broker's file before the migration: the playground's, which is written as people write."""
    return render(BrokerAddresses(broker_id, "127.0.0.1", 9092 + broker_id, "rack", Path(f"/data/{broker_id}"), CONNECT))


def text_at(spec: ClusterSpec, node_id: int, stage: NodeStage) -> str:
    """A node's file at a stage, made the way the product makes it: stage by stage."""
    node = spec.node(node_id)
    if spec.role(node_id) is Role.CONTROLLER:
        assert isinstance(node, ControllerSpec)
        text = controller_file(spec, node, None, broker_text(1))
    else:
        text = broker_text(node_id)
        if stage is NodeStage.KRAFT:
            text = node_file(text, spec, node, NodeStage.MIGRATION)
    return text if stage is NodeStage.ZOOKEEPER else node_file(text, spec, node, stage)


def seen_file(text: str, mark: RollMark | None = None) -> PropertiesFile:
    kept = {key: value for key, value in parse(text).items() if key in OBSERVED_PROPERTIES}
    return PropertiesFile(sha256=hashlib.sha256(text.encode("latin-1")).hexdigest(), properties=kept, mark=mark)


def mark_of(written: str, before: str = "", *, is_proven: bool = False, before_identity: str | None = "old") -> RollMark:
    """The mark of a roll that found `before` and was to leave `written` (hashes)."""
    return RollMark(
        step_id="step",
        generation=1,
        stage="any",
        before_identity=before_identity,
        before_sha256=before or written,
        written_sha256=written,
        is_proven=is_proven,
    )


class Point(StrEnum):
    """Points of the way at which a healthy cluster rests."""

    BEFORE = "before"
    CONTROLLERS_UP = "controllers-up"
    HYBRID = "hybrid"
    """All brokers hybrid, the copy not begun."""
    DUAL_WRITE = "dual-write"
    SOAK = "soak"
    FINAL = "final"


BROKER_STAGE = {
    Point.BEFORE: NodeStage.ZOOKEEPER,
    Point.CONTROLLERS_UP: NodeStage.ZOOKEEPER,
    Point.HYBRID: NodeStage.MIGRATION,
    Point.DUAL_WRITE: NodeStage.MIGRATION,
    Point.SOAK: NodeStage.KRAFT,
    Point.FINAL: NodeStage.KRAFT,
}
GAUGE = {
    Point.CONTROLLERS_UP: MigrationGauge.PRE_MIGRATION,
    Point.HYBRID: MigrationGauge.PRE_MIGRATION,
    Point.DUAL_WRITE: MigrationGauge.MIGRATION,
    Point.SOAK: MigrationGauge.MIGRATION,
    Point.FINAL: MigrationGauge.POST_MIGRATION,
}
LOG_END = 5000


def broker_metrics(stage: NodeStage, *, is_controller: bool = False) -> NodeMetrics:
    """A broker that serves, in the mode that a file of this stage gives it."""
    has_raft = stage is not NodeStage.ZOOKEEPER
    return NodeMetrics(
        broker_state=3,
        migration_gauge=None if stage is NodeStage.KRAFT else MigrationGauge.ZK,
        active_controller_count=None if stage is NodeStage.KRAFT else int(is_controller),
        zookeeper_session=None if stage is NodeStage.KRAFT else "CONNECTED",
        raft_leader=LEADER if has_raft else None,
        raft_epoch=7 if has_raft else None,
        raft_log_end=LOG_END if has_raft else None,
        under_replicated_partitions=0,
        kafka_version="3.9.2",
    )


def controller_metrics(node_id: int, point: Point, hybrid: int, in_kraft: int) -> NodeMetrics:
    return NodeMetrics(
        migration_gauge=GAUGE[point],
        active_controller_count=int(node_id == LEADER),
        migrating_broker_count=hybrid,
        active_broker_count=hybrid + in_kraft,
        fenced_broker_count=0,
        write_behind_lag=None if point is Point.FINAL else 0,
        zookeeper_session=None if point is Point.FINAL else "CONNECTED",
        raft_leader=LEADER,
        raft_epoch=7,
        raft_log_end=LOG_END - (node_id != LEADER),
        raft_high_watermark=LOG_END - 1,
        kafka_version="3.9.2",
    )


def running(node_id: int) -> Process:
    return Process(
        is_running=True, identity=f"pid-{node_id}", last_identity=f"pid-{node_id}", started_at=NOW - timedelta(hours=1)
    )


def stopped(last_identity: str | None) -> Process:
    return Process(is_running=False, identity=None, last_identity=last_identity, started_at=None)


def broker_view(spec: ClusterSpec, node_id: int, stage: NodeStage) -> NodeView:
    disk = NodeDisk(
        file=seen_file(text_at(spec, node_id, stage)),
        log_dirs=(LogDir(path=f"/data/{node_id}", state=StorageState.OURS, cluster_id=CLUSTER_ID, node_id=node_id),),
    )
    is_controller = stage is NodeStage.ZOOKEEPER and node_id == ZOOKEEPER_CONTROLLER
    return NodeView(id=node_id, process=running(node_id), disk=disk, metrics=broker_metrics(stage, is_controller=is_controller))


def controller_view(spec: ClusterSpec, node_id: int, point: Point) -> NodeView:
    path = f"/data/{node_id}"
    if point is Point.BEFORE:
        empty = LogDir(path=path, state=StorageState.ABSENT, cluster_id=None, node_id=None)
        return NodeView(id=node_id, process=stopped(None), disk=NodeDisk(file=None, log_dirs=(empty,)))
    stage = NodeStage.KRAFT if point is Point.FINAL else NodeStage.MIGRATION
    file = seen_file(text_at(spec, node_id, stage))
    mark = mark_of(file.sha256, before_identity=None, is_proven=point is Point.FINAL)
    dirs = (LogDir(path=path, state=StorageState.OURS, cluster_id=CLUSTER_ID, node_id=node_id),)
    hybrid = len(spec.brokers) if BROKER_STAGE[point] is NodeStage.MIGRATION else 0
    in_kraft = len(spec.brokers) if BROKER_STAGE[point] is NodeStage.KRAFT else 0
    return NodeView(
        id=node_id,
        process=running(node_id),
        disk=NodeDisk(file=file.model_copy(update={"mark": mark}), log_dirs=dirs),
        metrics=controller_metrics(node_id, point, hybrid, in_kraft),
    )


def zookeeper_view(spec: ClusterSpec, point: Point) -> ZooKeeperView:
    is_claimed = point in {Point.DUAL_WRITE, Point.SOAK, Point.FINAL}
    ids = tuple(b.id for b in spec.brokers)
    ephemeral = ControllerZnode(broker_id=ZOOKEEPER_CONTROLLER, kraft_epoch=None, is_ephemeral=True)
    claim = ControllerZnode(broker_id=LEADER, kraft_epoch=7, is_ephemeral=False)
    offset = LOG_END - 2 if is_claimed else -1
    copied = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=offset)
    return ZooKeeperView(
        cluster_id=CLUSTER_ID,
        controller=claim if is_claimed else ephemeral,
        controller_epoch=4,
        migration=None if point is Point.BEFORE else copied,
        broker_ids=() if BROKER_STAGE[point] is NodeStage.KRAFT else ids,
        pending_deletions=(),
        reassignments=(),
        is_preferred_election_pending=False,
        assigned_broker_ids=ids,
        topics_without_id=(),
    )


@cache
def observation(point: Point, brokers: int = 3, controllers: int = 3) -> Observation:
    """A healthy cluster at rest, completely seen. Frozen, so one is enough for all."""
    spec = cluster_spec(brokers, controllers)
    ids = tuple(b.id for b in spec.brokers)
    return Observation(
        cluster=spec.name,
        spec_revision=1,
        started_at=NOW - timedelta(milliseconds=300),
        ended_at=NOW,
        zookeeper=zookeeper_view(spec, point),
        kafka=KafkaView(
            cluster_id=CLUSTER_ID,
            broker_ids=ids,
            topic_count=5,
            partition_count=21,
            under_replicated=(),
            offline=(),
            needs=dict.fromkeys(ids, ()),
        ),
        nodes=(
            *(broker_view(spec, i, BROKER_STAGE[point]) for i in ids),
            *(controller_view(spec, c.id, point) for c in spec.controllers),
        ),
        unanswered=(),
    )


def with_node(seen: Observation, node_id: int, change: Callable[[NodeView], NodeView]) -> Observation:
    nodes = tuple(change(node) if node.id == node_id else node for node in seen.nodes)
    return seen.model_copy(update={"nodes": nodes})


def with_metrics(seen: Observation, node_id: int, **gauges: Any) -> Observation:
    def change(node: NodeView) -> NodeView:
        assert node.metrics is not None
        return node.model_copy(update={"metrics": node.metrics.model_copy(update=gauges)})

    return with_node(seen, node_id, change)


def with_part(seen: Observation, node_id: int, **parts: Any) -> Observation:
    return with_node(seen, node_id, lambda node: node.model_copy(update=parts))


def with_file(seen: Observation, node_id: int, text: str, mark: RollMark | None = None) -> Observation:
    """Another properties file on the node; with a mark where given."""

    def change(node: NodeView) -> NodeView:
        dirs = node.disk.log_dirs if node.disk is not None else ()
        return node.model_copy(update={"disk": NodeDisk(file=seen_file(text, mark), log_dirs=dirs)})

    return with_node(seen, node_id, change)


def with_zookeeper(seen: Observation, **parts: Any) -> Observation:
    assert seen.zookeeper is not None
    return seen.model_copy(update={"zookeeper": seen.zookeeper.model_copy(update=parts)})


def with_kafka(seen: Observation, **parts: Any) -> Observation:
    assert seen.kafka is not None
    return seen.model_copy(update={"kafka": seen.kafka.model_copy(update=parts)})


def report_of(
    seen: Observation, verdict: Verdict = Verdict.CLEAN, age: timedelta = timedelta(seconds=1), **fields: Any
) -> DriftReport:
    """A comparison in the dual write that is seen, made so long before the look."""
    ended_at = seen.ended_at - age
    given = {
        "id": "report-1",
        "cluster": seen.cluster,
        "check": "metadata",
        "verdict": verdict,
        "started_at": ended_at,
        "ended_at": ended_at,
        "cut": Cut(claim=claim_of(seen.zookeeper)),
        "rules_fingerprint": rules_fingerprint(),
        "content_hash": f"content of {verdict}",
    }
    return DriftReport.model_validate(given | fields)


def signs_of(**changes: object) -> VitalSigns:
    """Of a process that is well, but for the changes."""
    well = VitalSigns(
        skew=0,
        stuck_threads=0,
        open_files=None,
        most_open_files=None,
        throttled=None,
        collecting=None,
        major_faults=None,
        memory_available=None,
        on_cpu=None,
        awaiting_cpu=None,
        unheard=(),
        far=(),
        unsent=(),
        covered=(),
        read_only=(),
        frozen=None,
        unaccepted=(),
        elsewhere=None,
        disks=(),
        disk_pressure=None,
        ends_by=None,
        unread=0,
        started_by="",
    )
    return well.model_copy(update=changes)


def await_environment(pid: int) -> None:
    """`Popen` comes back a moment before the kernel shows what the new program has been given."""
    environ = Path(f"/proc/{pid}/environ")
    wait_until(lambda: environ.read_bytes() != b"", f"process {pid} has its environment", 60)
