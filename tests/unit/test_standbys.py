"""Which standbys count as caught up while somebody writes all the time: those that have a moment later what the leader had."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from activities.observing import standbys
from activities.observing.observe import observe
from domain.cluster import MetricsEndpoint
from domain.errors import Transient
from domain.observed.observation import NodeMetrics, Observation
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from playground.fakes.cluster import FakeCluster
from playground.fakes.hands import in_dual_write
from tests.unit.test_suspects import ports_of

AHEAD = 30
"""Records that whoever writes adds between any two looks."""


@dataclass
class Written:
    """`ClusterMetrics` of a quorum that is written to. `behind`: records by which standbys are, at their first look and always;
    `gains`: how many they get between two looks."""

    cluster: FakeCluster
    behind: int
    gains: int
    is_silent_then: bool = False
    looks: Counter[str] = field(default_factory=Counter)

    async def read(self, endpoint: MetricsEndpoint) -> NodeMetrics:
        seen, looks = await self.cluster.read(endpoint), self.looks[endpoint.url]
        self.looks[endpoint.url] += 1
        if self.is_silent_then and looks:
            raise Transient("no answer")
        if seen.active_controller_count == 1 or seen.raft_log_end is None or seen.migration_gauge is None:
            return seen
        return seen.model_copy(update={"raft_log_end": seen.raft_log_end - self.behind + looks * self.gains})


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standbys, "A_MOMENT", 0.2)
    monkeypatch.setattr(standbys, "PAUSE", 0.02)


async def seen(metrics: Written) -> Observation:
    return await observe(metrics.cluster.record(), ports_of(metrics.cluster, metrics=metrics))


def caught_up(observation: Observation, cluster: FakeCluster) -> int:
    return sum(c.is_caught_up for c in situation_of(observation, cluster.spec, ZkToKraftPolicy()).controllers)


async def test_a_standby_that_has_a_moment_later_what_the_leader_had_is_caught_up() -> None:
    cluster = await in_dual_write()
    assert caught_up(await seen(Written(cluster, AHEAD, gains=AHEAD)), cluster) == 3


async def test_a_standby_that_stands_or_is_too_far_behind_is_not() -> None:
    cluster = await in_dual_write()
    assert caught_up(await seen(Written(cluster, AHEAD, gains=0)), cluster) == 1
    assert caught_up(await seen(Written(cluster, 1_000_000, gains=AHEAD)), cluster) == 1


async def test_a_standby_that_is_silent_then_stays_as_it_was_seen() -> None:
    cluster = await in_dual_write()
    assert caught_up(await seen(Written(cluster, AHEAD, gains=AHEAD, is_silent_then=True)), cluster) == 1


async def test_who_is_not_behind_is_looked_at_once() -> None:
    metrics = Written(await in_dual_write(), 5, gains=0)
    assert caught_up(await seen(metrics), metrics.cluster) == 3
    assert set(metrics.looks.values()) == {1}
