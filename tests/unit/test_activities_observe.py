"""What a look adds to the answers of the ports: Kafka's version where the metrics tell no text."""

from typing import Any, cast

import pytest

from activities.observe import Ports, observe
from domain.observation import NodeMetrics
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec


class WithoutTexts:
    """Gauges as the Prometheus exporter gives them."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    async def read(self, endpoint: Any) -> NodeMetrics:
        return (await self._cluster.read(endpoint)).model_copy(update={"kafka_version": None})


@pytest.mark.parametrize(
    ("jars", "version"),
    [
        (("kafka_2.13-3.9.2.jar", "kafka-clients-3.9.2.jar"), "3.9.2"),
        (("kafka_2.12-3.9.1-cp1.jar",), "3.9.1-cp1"),
        (("kafka_2.13-3.9.2.jar", "kafka_2.13-3.8.1.jar"), None),
        (("kafka-clients-3.9.2.jar",), None),
        ((), None),
    ],
)
async def test_the_version_is_the_jars_where_the_metrics_tell_none(jars: tuple[str, ...], version: str | None) -> None:
    cluster = FakeCluster(fake_spec())
    node = cluster.nodes[1]
    for jar in jars:
        file = node.machine.read(node.spec.properties_file)
        assert file is not None
        node.machine.write(f"{node.spec.kafka_home}/libs/{jar}", file)
    ports = Ports(cast("Any", None), cluster, cluster, cluster, WithoutTexts(cluster), FakeArtefacts())
    metrics = (await observe(cluster.record(), ports)).node(1).metrics
    assert metrics is not None
    assert metrics.kafka_version == version
