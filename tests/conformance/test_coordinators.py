"""When ZooKeeper says that partitions of a topic that coordinates were made, on a real cluster."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

import domain.observed.coordinators
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.observing.coordinators import counted_by_brokers
from activities.ports.ports import Ports
from domain.cluster import ClusterSpec
from domain.observed.coordinators import Miscount
from domain.records import ClusterRecord
from playground.cluster import PlaygroundCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
TRANSACTIONS = "__transaction_state"
AS_MADE = timedelta(seconds=5)


async def test_brokers_that_run_do_not_count_what_somebody_adds(
    real_cluster: PlaygroundCluster, as_record: Callable[[ClusterSpec], ClusterRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain.observed.coordinators, "AS_IT_STARTS", timedelta(0))
    monkeypatch.setattr(domain.observed.coordinators, "AS_IT_WAS_MADE", AS_MADE)
    nobody = cast("Any", None)
    ports = Ports(nobody, SpecDrivers(), KazooEnsembles(EnvironmentAndFileSecrets()), nobody, nobody, nobody)
    cluster = as_record(real_cluster.spec)
    admin = AdminClient({"bootstrap.servers": ",".join(real_cluster.spec.kafka.bootstrap_servers)})
    for future in admin.create_topics([NewTopic(TRANSACTIONS, 3, 2)]).values():
        future.result(60)
    assert await counted_by_brokers(cluster, ports) == ()
    await asyncio.sleep(AS_MADE.total_seconds())  # that much older the first three have to be
    for future in admin.create_partitions([NewPartitions(TRANSACTIONS, 5)]).values():
        future.result(60)
    counted = {broker.id: 3 for broker in real_cluster.spec.brokers}
    assert await counted_by_brokers(cluster, ports) == (
        Miscount(topic=TRANSACTIONS, partitions=5, counted=counted, agree=True),
    )
