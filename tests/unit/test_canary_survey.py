"""Before the start: what Kafka would refuse of canaries."""

from typing import Any, cast

import pytest

from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from activities.survey.canaries import refused_canaries
from domain.errors import Obstacle, Transient
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.clients import FakeClient
from playground.fakes.cluster import FakeCluster

REFUSED = Transient("Kafka at x:1: a policy of its own refuses it: a: GOV-7: three replicas", obstacle=Obstacle.POLICY)


@pytest.mark.parametrize("error", [None, REFUSED, Transient("no answer in time")])
async def test_a_topic_that_a_policy_of_the_clusters_own_refuses_is_told(
    error: Transient | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sees what is only to be validated, too (CreateTopicPolicy)."""
    cluster = FakeCluster()
    ports = Ports(cast("Any", None), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS)

    async def create_topic(*_: object, is_trial: bool = False) -> None:
        assert is_trial
        if error is not None:
            raise error

    monkeypatch.setattr(FakeClient, "create_topic", create_topic)
    asked = refused_canaries(cluster.record(), ZkToKraftPolicy(canaries=True), ports)
    if error is None or error.obstacle is Obstacle.POLICY:
        told = await asked
        assert [why.partition(". ")[0] for why in told] == ([f"create topics: {error}"] if error is not None else [])
        assert all("Let the plug-in accept what is named keeperless-canary-" in why for why in told)
        return
    with pytest.raises(Transient, match="no answer in time"):
        await asked
