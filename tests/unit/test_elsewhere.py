"""A worker that sees nothing of the nodes takes nothing of theirs for lost: another one may be where they are."""

from typing import Any

import pytest

from activities.looking import look_and_decide
from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from domain.contracts import AssessRequest
from domain.errors import Transient
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from tests.unit.fake_walk import LedgerInMemory
from tests.unit.test_startable import rolled, scene_of_a_roll

NOTHING = "sees neither the properties file nor the process of any broker"


def seen_from_elsewhere(cluster: FakeCluster) -> FakeCluster:
    """The same cluster; of its brokers neither a file nor a process is where the worker is that looks."""
    for broker in cluster.spec.brokers:
        node = cluster.nodes[broker.id]
        node.machine.remove(broker.properties_file)
        node.process = None
    return cluster


async def test_a_step_is_left_to_a_worker_that_is_where_the_nodes_are() -> None:
    scene = await scene_of_a_roll()
    with pytest.raises(Transient, match=NOTHING):
        await rolled(seen_from_elsewhere(scene.copy()), scene)
    assert (await rolled(scene.copy(), scene)).blocked is None


async def test_a_decision_is_left_to_such_a_one_too() -> None:
    """A wait for files that are all well would stay until the next change, whoever looks then."""
    cluster = FakeCluster()
    parts: dict[str, Any] = {"drivers": cluster, "zookeepers": cluster, "kafka": cluster, "metrics": cluster}
    ports = Ports(ledger=LedgerInMemory(cluster), artefacts=FakeArtefacts(), **parts, kinds=SHIPPED_KINDS)
    request = AssessRequest(kind="zk-to-kraft", cluster=cluster.spec.name, migration_id="m1", generation=1)
    assert (await look_and_decide(request, ports))[0].phase is not None
    seen_from_elsewhere(cluster)
    with pytest.raises(Transient, match=NOTHING):
        await look_and_decide(request, ports)
