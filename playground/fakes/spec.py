"""A cluster's spec and first files, for simulations: brokers 1 to n in ZooKeeper mode, controllers 3001 and on to come."""

from typing import Any

from domain.cluster import ClusterSpec

CLUSTER_ID = "mXbFq1zSQoGkY4f1n0p7Gw"
CONNECT = "zk-1:2181,zk-2:2181,zk-3:2181/kafka"

BROKER_FILE = """\
# Broker {id}, in ZooKeeper mode
broker.id={id}
listeners=PLAINTEXT://{host}:9092
log.dirs={log_dir}
inter.broker.protocol.version=3.9

# the ensemble
zookeeper.connect={connect}
zookeeper.connection.timeout.ms=18000
"""


HOOK = {order.replace("-", "_"): ["configuration", order] for order in ("pause", "is-paused", "resume")}
"""Configuration management of a simulated node."""


def with_hooks(spec: ClusterSpec) -> ClusterSpec:
    """The same cluster, of which every node's configuration management can be paused."""
    told = spec.model_dump(mode="json")
    for node in (*told["brokers"], *told["quorum"]["controllers"]):
        node["driver"]["configuration_management"] = HOOK
    return ClusterSpec.model_validate(told)


def fake_spec(
    brokers: int = 3, controllers: int = 3, name: str = "orders", cluster_id: str = CLUSTER_ID, racks: int | None = None
) -> ClusterSpec:
    """As its migration sees it. Brokers in turn in so many racks; each in one of its own, where nothing is said."""
    broker_ids, controller_ids = range(1, brokers + 1), range(3001, 3001 + controllers)
    return ClusterSpec.model_validate(
        {
            "name": name,
            "cluster_id": cluster_id,
            "kafka": {"bootstrap_servers": [f"broker-{i}:9092" for i in broker_ids]},
            "zookeeper": {"connect": CONNECT},
            "brokers": [_node(f"broker-{i}", i, (i - 1) % (racks or brokers) + 1) for i in broker_ids],
            "quorum": {"controllers": [_node(f"controller-{i}", i, i - 3000) | {"port": 9093} for i in controller_ids]},
        }
    )


def _node(name: str, node_id: int, rack: int) -> dict[str, Any]:
    return {
        "id": node_id,
        "host": name,
        "rack": f"rack-{rack}",
        "driver": {
            "service": {
                "start_command": ["java", "kafka.Kafka", "{properties}"],
                "pid_file": f"/run/{name}/kafka.pid",
                "output_file": f"/var/log/{name}/kafka.out",
            }
        },
        "kafka_home": "/opt/kafka",
        "properties_file": f"/etc/{name}/server.properties",
        "log_dirs": [f"/var/lib/{name}"],
        "metrics": {"kind": "jolokia", "url": f"http://{name}:7777/jolokia"},
    }
