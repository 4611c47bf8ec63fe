"""Which gauges are wanted, by their JMX names (Kafka 3.9), and how their numbers are read."""

import math
from collections.abc import Collection

from domain.cluster import shown
from domain.errors import Transient
from domain.observed.observation import MigrationGauge, NodeMetrics

READ_SECONDS = 5.0
"""How long one look at a node's gauges may take in all."""

CONTROLLER = "kafka.controller:type=KafkaController,name="

GAUGES = {
    "broker_state": "kafka.server:type=KafkaServer,name=BrokerState",
    "migration_gauge": f"{CONTROLLER}ZkMigrationState",
    "active_controller_count": f"{CONTROLLER}ActiveControllerCount",
    "migrating_broker_count": f"{CONTROLLER}MigratingZkBrokerCount",
    "active_broker_count": f"{CONTROLLER}ActiveBrokerCount",
    "fenced_broker_count": f"{CONTROLLER}FencedBrokerCount",
    "write_behind_lag": f"{CONTROLLER}ZkWriteBehindLag",
    "metadata_error_count": f"{CONTROLLER}MetadataErrorCount",
    "under_replicated_partitions": "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions",
}
"""Field of `NodeMetrics` → MBean with one attribute, `Value`."""

SESSION_STATE = "kafka.server:type=SessionExpireListener,name=SessionState"

RAFT = "kafka.server:type=raft-metrics"
RAFT_ATTRIBUTES = {
    "raft_leader": "current-leader",
    "raft_epoch": "current-epoch",
    "raft_log_end": "log-end-offset",
    "raft_high_watermark": "high-watermark",
}
"""Field of `NodeMetrics` → attribute of the one raft MBean. Kafka's -1 (no leader known, no high watermark) stays -1."""

APP_INFO = "kafka.server:type=app-info,*"
"""A broker registers app-info twice, with its id (`Version`) and without (`version`)."""


def integer(value: object, url: str, name: str) -> int:
    """A gauge's number. JMX gives longs and doubles; all that we read are whole."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value != int(value):
        raise Transient(f"{shown(url)}: {name} is not a whole number")
    return int(value)


def node_metrics(
    url: str, numbers: dict[str, int | None], ids: Collection[int], session: str | None = None, version: str | None = None
) -> NodeMetrics:
    """All fields in one record; `numbers` by field name, `ids` as app-info names them."""
    gauge = numbers.pop("migration_gauge")
    if gauge is not None and gauge not in set(MigrationGauge):
        raise Transient(f"{shown(url)}: ZkMigrationState is {gauge}, expected -1 to 4")
    return NodeMetrics(
        migration_gauge=None if gauge is None else MigrationGauge(gauge),
        zookeeper_session=session,
        kafka_version=version,
        node_id=next(iter(ids)) if len(ids) == 1 else None,
        **numbers,
    )
