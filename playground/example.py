"""`python -m playground.example`: writes examples/cluster.json and examples/zk-to-kraft.json, as an operator would write them:
a cluster, and what a migration of it wants.

A machine with Kafka's own distribution in /opt/kafka, three brokers on it, three controllers to be created.
"""

from pathlib import Path

from domain.cluster import (
    BrokerSpec,
    ClusterSpec,
    ControllerSpec,
    JolokiaEndpoint,
    KafkaClientSpec,
    NodeDriverSpec,
    PlainProcess,
    QuorumSpec,
    ZooKeeperMemberSpec,
    ZooKeeperSpec,
)
from playground.wanted import before, wanted_of, write

EXAMPLES = Path(__file__).parent.parent / "examples"
HOST = "127.0.0.1"
KAFKA_HOME = "/opt/kafka"


def example_cluster() -> ClusterSpec:
    """As its migration sees it."""
    return ClusterSpec(
        name="example",
        cluster_id="mXu2Yk4sQkq7w1bJc0dR9A",
        kafka=KafkaClientSpec(bootstrap_servers=(f"{HOST}:9092", f"{HOST}:9192", f"{HOST}:9292")),
        zookeeper=ZooKeeperSpec(
            connect=f"{HOST}:2181,{HOST}:2182,{HOST}:2183/kafka",
            members=(
                ZooKeeperMemberSpec(
                    host=HOST, port=2181, data_dir="/var/lib/zookeeper", output_file="/var/log/zookeeper/zookeeper.log"
                ),
            ),
        ),
        brokers=tuple(_broker(index) for index in (1, 2, 3)),
        quorum=QuorumSpec(controllers=tuple(_controller(index) for index in (1, 2, 3))),
    )


def write_example(directory: Path = EXAMPLES) -> None:
    write(before(example_cluster()), directory / "cluster.json")
    write(wanted_of(example_cluster()), directory / "zk-to-kraft.json")


def _broker(index: int) -> BrokerSpec:
    name = f"broker-{index}"
    return BrokerSpec(
        id=index,
        host=HOST,
        rack=f"rack-{index}",
        driver=_driver(name),
        kafka_home=KAFKA_HOME,
        environment=_environment(7770 + index),
        properties_file=f"/etc/kafka/{name}/server.properties",
        log_dirs=(f"/var/lib/kafka/{name}",),
        metrics=JolokiaEndpoint(url=f"http://{HOST}:{7770 + index}/jolokia"),
    )


def _controller(index: int) -> ControllerSpec:
    name = f"controller-{3000 + index}"
    return ControllerSpec(
        id=3000 + index,
        host=HOST,
        port=9092 + index,
        rack=f"rack-{index}",
        driver=_driver(name),
        kafka_home=KAFKA_HOME,
        environment=_environment(7780 + index),
        properties_file=f"/etc/kafka/{name}/server.properties",
        log_dirs=(f"/var/lib/kafka/{name}",),
        metrics=JolokiaEndpoint(url=f"http://{HOST}:{7780 + index}/jolokia"),
    )


def _driver(name: str) -> NodeDriverSpec:
    """Kafka's own script stays in the foreground and ends as the JVM itself, so its pid is the broker's."""
    return NodeDriverSpec(
        service=PlainProcess(
            start_command=(f"{KAFKA_HOME}/bin/kafka-server-start.sh", "{properties}"),
            pid_file=f"/run/kafka/{name}.pid",
            output_file=f"/var/log/kafka/{name}.log",
        )
    )


def _environment(jolokia_port: int) -> dict[str, str]:
    return {
        "JAVA_HOME": "/usr/lib/jvm/java-17-openjdk",
        "PATH": "/usr/bin:/bin",
        "KAFKA_HEAP_OPTS": "-Xmx4g",
        "KAFKA_OPTS": f"-javaagent:/opt/jolokia/jolokia-agent-jvm-javaagent.jar=port={jolokia_port},host={HOST}",
    }


if __name__ == "__main__":
    write_example()
