"""The way back on real servers, under continuous writes: from every point to plain ZooKeeper, and from there to KRaft.

Back means: every properties file byte for byte as it was, mode and owner too, every topic, ACL and user, a broker that holds
`/controller`, and nothing left of the quorum. What `make test-real` runs is a selection; `make chaos` runs the rest.
"""

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from playground.rig import PLANNED_RESTARTS, Rig, Snapshot
from playground.waypoints import ALL_HYBRID, ALL_KRAFT, CONTROLLERS_UP, DUAL_WRITE, FLAG_GONE, ONE_HYBRID, ONE_KRAFT, Waypoint

LAGGING = ("load.relaxed", "load.two-replicas")

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.mark.chaos
def test_back_from_controllers_alone_and_from_the_gate_and_to_the_end_all_the_same(rig: Rig) -> None:
    """At the gate ZooKeeper has counted fewer changes of some partitions than the quorum has, and brokers know that."""
    before = rig.snapshot()
    rig.register()
    back_from(rig, CONTROLLERS_UP, before)
    back_from(rig, ALL_KRAFT, before, lambda: rig.by_hand.let_states_lag(*LAGGING))
    forward_to_the_end(rig, before)


@pytest.mark.chaos
@pytest.mark.parametrize(
    "waypoint",
    [CONTROLLERS_UP, ONE_HYBRID, ALL_HYBRID, DUAL_WRITE, ONE_KRAFT, ALL_KRAFT],
    ids=lambda waypoint: waypoint.name,
)
def test_back_from(rig: Rig, waypoint: Waypoint) -> None:
    before = rig.snapshot()
    rig.register()
    back_from(rig, waypoint, before)
    forward_to_the_end(rig, before)


@pytest.mark.chaos
def test_back_when_one_controller_has_lost_its_flag_to_an_approved_finalisation(rig: Rig) -> None:
    """The log still says MIGRATION. A broker that dies just then leaves people the time to think again."""
    before = rig.snapshot()
    rig.register()
    migration_id = rig.migrate()
    gate = rig.await_gate(migration_id)
    assert rig.approve(migration_id, gate["evidence_hash"]).status_code == 201
    rig.forward_to(FLAG_GONE, migration_id)
    rig.cluster.kill_node(3)
    assert "broker-3" in rig.await_wait(migration_id, "node-down")["objects"]
    without_flag = [c.id for c in rig.cluster.spec.controllers if not rig.by_hand.has_flag(c.id)]
    assert len(without_flag) == 1
    rig.rollback(migration_id)
    rig.cluster.start_node(3)
    assert rig.await_end(migration_id)["state"] == "reverted"
    assert rig.differences(before) == []
    forward_to_the_end(rig, before)


def back_from(rig: Rig, waypoint: Waypoint, before: Snapshot, disturb: Callable[[], None] = lambda: None) -> None:
    """Forward to the point, and back: what restarts on the way is what the preview said."""
    migration_id = rig.migrate()
    with ExitStack() as stack:
        if waypoint is ALL_HYBRID:
            rig.forward_to(ONE_HYBRID, migration_id)
            stack.enter_context(rig.by_hand.stray_broker())
            rig.resume(migration_id)
        rig.forward_to(waypoint, migration_id)
        on_the_way = rig.restarts(migration_id)
        disturb()
        preview = rig.rollback(migration_id)
        ended = rig.await_end(migration_id)
    assert (ended["state"], ended["outcome"]) == ("reverted", "ZOOKEEPER")
    assert rig.differences(before) == []
    rolled_back = {name: count - on_the_way[name] for name, count in rig.restarts(migration_id).items()}
    brokers = [rig.cluster.spec.node_name(broker.id) for broker in rig.cluster.spec.brokers]
    assert {name: rolled_back[name] for name in brokers} == {name: preview["restarts"].get(name, 0) for name in brokers}


def forward_to_the_end(rig: Rig, before: Snapshot) -> None:
    """A second migration, as if there had never been a first one."""
    migration_id = rig.migrate()
    ended = rig.complete(migration_id)
    assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
    assert rig.restarts(migration_id) == PLANNED_RESTARTS
    assert rig.snapshot().content == before.content
    report = rig.verify()
    assert report.lost == frozenset()
    assert report.acknowledged > 1000
