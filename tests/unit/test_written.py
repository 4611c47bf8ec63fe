"""How fast what lags is written: by its sizes at its leaders, twice."""

import pytest

from activities.diagnosis.brokers import written
from domain.observed.observation import PartitionFault
from playground.fakes.cluster import FakeCluster
from playground.fakes.topics import FakeTopic


async def test_topics_are_told_by_how_fast_they_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster()
    for name in ("big", "small", "still"):
        cluster.create_topic(FakeTopic(name, ((1, 2), (2, 3)), min_isr=1))
    messages = cluster.clients.messages

    async def meanwhile(_: float) -> None:
        messages["big", 0], messages["big", 1], messages["small", 0] = [b"x" * 600], [b"x" * 300], [b"x" * 200]

    monkeypatch.setattr("activities.diagnosis.brokers.asyncio.sleep", meanwhile)
    faults = [("big-0", 1), ("big-1", 2), ("small-0", 1), ("still-0", 1), ("gone-0", 1), ("unled-0", None)]
    lagging = tuple(PartitionFault(partition=name, missing=(3,), leader=leader) for name, leader in faults)
    found = await written(cluster, cluster.record(), lagging)
    assert [one.topic for one in found] == ["big", "small"]
    assert found[0].bytes_per_second == pytest.approx(4.5 * found[1].bytes_per_second)
    assert await written(cluster, cluster.record(), lagging[-1:]) == ()
