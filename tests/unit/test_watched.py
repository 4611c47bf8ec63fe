"""What machines say of nodes is asked once for two restarts that follow each other within seconds."""

import asyncio
from typing import Any, cast

import pytest

from activities.ports.ports import Ports
from activities.rolling.remaining_nodes import MAX_AGE_OF_SIGNS, Watched
from domain.errors import Transient
from playground.fakes.cluster import FakeCluster
from playground.fakes.hands import in_dual_write


class Doctor:
    """Counts who asks, and fails when told to."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.is_silent = False

    async def watch(self, _: object, node: Any, __: int) -> None:
        self.asked.append(node.id)
        if self.is_silent:
            raise Transient("no answer")


def watched_by(doctor: Doctor, cluster: FakeCluster, clock: list[float]) -> Watched:
    ports: dict[str, Any] = dict.fromkeys(("ledger", "zookeepers", "kafka", "metrics", "artefacts"), cluster)
    return Watched(Ports(drivers=cluster, doctor=cast("Any", doctor), **ports), lambda: clock[0])


async def test_signs_are_asked_once_within_seconds_and_of_each_process() -> None:
    cluster, doctor, clock = await in_dual_write(), Doctor(), [0.0]
    watched, node = watched_by(doctor, cluster, clock), cluster.spec.brokers[0]
    await watched.signs(cluster.spec, node)
    clock[0] += MAX_AGE_OF_SIGNS
    await watched.signs(cluster.spec, node)
    assert doctor.asked == [node.id]
    clock[0] += 0.1
    await watched.signs(cluster.spec, node)
    assert doctor.asked == [node.id] * 2, "they have grown old"
    cluster.kill(node.id)
    await cluster.driver(node).start()
    await watched.signs(cluster.spec, node)
    assert doctor.asked == [node.id] * 3, "another process"


async def test_a_proof_has_everybody_watched_anew_and_the_next_stop_finds_that() -> None:
    cluster, doctor, clock = await in_dual_write(), Doctor(), [0.0]
    watched, everybody = watched_by(doctor, cluster, clock), [node.id for node in cluster.spec.nodes]
    for count in (1, 2):
        watched.begin(cluster.spec)
        await asyncio.sleep(0.05)
        clock[0] += 1.0
        assert sorted(doctor.asked) == sorted(everybody * count)
    for node in cluster.spec.nodes:
        await watched.signs(cluster.spec, node)
    assert sorted(doctor.asked) == sorted(everybody * 2)


async def test_silence_is_kept_from_nobody_and_asked_again() -> None:
    cluster, doctor, clock = await in_dual_write(), Doctor(), [0.0]
    watched, node = watched_by(doctor, cluster, clock), cluster.spec.brokers[0]
    doctor.is_silent = True
    watched.begin(cluster.spec)
    await asyncio.sleep(0.05)
    with pytest.raises(Transient):
        await watched.signs(cluster.spec, node)
    doctor.is_silent = False
    await watched.signs(cluster.spec, node)
