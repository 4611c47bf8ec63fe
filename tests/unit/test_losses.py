"""What the way back cannot keep, by name, and what is only thought to be lost."""

import pytest

from domain.observed.observation import MigrationGauge, MigrationZnode, NodeDisk, Observation
from domain.zk_to_kraft.losses import losing_nodes, losses_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import (
    LEADER,
    LOG_END,
    Point,
    cluster_spec,
    mark_of,
    observation,
    seen_file,
    text_at,
    with_file,
    with_metrics,
    with_part,
    with_zookeeper,
)

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy()


def archived(seen: Observation, node_id: int, text: str | None = None) -> Observation:
    """The broker's file as our last roll left it, its original beside it; with another text where somebody edited it."""
    stage = NodeStage.KRAFT if seen is observation(Point.SOAK) else NodeStage.MIGRATION
    ours = text_at(SPEC, node_id, stage)
    original = seen_file(text_at(SPEC, node_id, NodeStage.ZOOKEEPER)).sha256
    mark = mark_of(seen_file(ours).sha256).model_copy(update={"stage": stage})
    seen = with_file(seen, node_id, ours if text is None else ours + text, mark)
    disk = seen.node(node_id).disk
    assert disk is not None
    assert disk.file is not None
    file = disk.file.model_copy(update={"original_sha256": original})
    return with_part(seen, node_id, disk=disk.model_copy(update={"file": file}))


def all_archived(point: Point) -> Observation:
    seen = observation(point)
    for broker in SPEC.brokers:
        node = archived(observation(point), broker.id).node(broker.id)
        seen = with_part(seen, broker.id, disk=node.disk)
    return seen


def names(seen: Observation) -> list[str]:
    return [loss.name for loss in losses_of(seen, situation_of(seen, SPEC, POLICY), SPEC)]


@pytest.mark.parametrize("point", [Point.BEFORE, Point.CONTROLLERS_UP])
def test_nothing_is_lost_where_no_broker_was_touched(point: Point) -> None:
    assert names(observation(point)) == []


@pytest.mark.parametrize("point", [Point.HYBRID, Point.DUAL_WRITE, Point.SOAK])
def test_nothing_is_lost_with_every_original_archived(point: Point) -> None:
    assert names(all_archived(point)) == []


@pytest.mark.parametrize("point", [Point.HYBRID, Point.DUAL_WRITE, Point.SOAK])
def test_a_topic_without_an_id_is_lost_to_its_leaders(point: Point) -> None:
    seen = with_zookeeper(all_archived(point), topics_without_id=("orders", "refunds"))
    (loss,) = losses_of(seen, situation_of(seen, SPEC, POLICY), SPEC)
    assert loss.name == "topic-ids"
    assert "orders, refunds" in loss.what
    assert names(with_zookeeper(observation(Point.CONTROLLERS_UP), topics_without_id=("orders",))) == [], "none is elected"


def test_a_quorum_that_was_emptied_has_lost_what_zookeeper_lacks() -> None:
    emptied, unclaimed = (
        with_metrics(all_archived(point), LEADER, migration_gauge=MigrationGauge.NONE)
        for point in (Point.DUAL_WRITE, Point.HYBRID)
    )
    assert names(emptied) == ["metadata-changes"]
    assert names(unclaimed) == [], "ZooKeeper has all there is"


def test_an_edit_since_is_lost_with_the_file_that_has_it() -> None:
    seen = all_archived(Point.DUAL_WRITE)
    edited = archived(observation(Point.DUAL_WRITE), 2, "num.partitions=6\n").node(2).disk
    assert names(with_part(seen, 2, disk=edited)) == ["edits-of-broker-2"]


def test_without_an_archive_the_original_is_lost() -> None:
    """A migration that somebody began by hand."""
    assert names(observation(Point.DUAL_WRITE)) == ["original-of-broker-1", "original-of-broker-2", "original-of-broker-3"]


def test_dual_write_that_is_not_current_may_lose_metadata() -> None:
    behind = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=LOG_END - 500)
    assert names(with_zookeeper(all_archived(Point.DUAL_WRITE), migration=behind)) == ["metadata-changes"]
    assert names(with_zookeeper(all_archived(Point.HYBRID), migration=behind)) == [], "nothing has been copied yet"


def test_controllers_that_somebody_else_made_are_removed_all_the_same() -> None:
    seen = observation(Point.CONTROLLERS_UP)
    disk = seen.node(3001).disk
    assert disk is not None
    assert disk.file is not None
    foreign = NodeDisk(file=disk.file.model_copy(update={"mark": None}), log_dirs=disk.log_dirs)
    assert names(with_part(seen, 3001, disk=foreign)) == ["storage-of-controller-3001"]


def test_what_does_not_answer_is_not_said_to_be_lost() -> None:
    """The way back waits for it anyway."""
    assert names(with_part(all_archived(Point.DUAL_WRITE), 1, disk=None)) == []


def test_only_what_nobody_accepted_keeps_a_node() -> None:
    seen = observation(Point.DUAL_WRITE)
    losses = losses_of(seen, situation_of(seen, SPEC, POLICY), SPEC)
    assert losing_nodes(losses, (), SPEC) == {1, 2, 3}
    assert losing_nodes(losses, ("original-of-broker-1", "original-of-broker-3"), SPEC) == {2}
    assert losing_nodes(losses, tuple(loss.name for loss in losses), SPEC) == frozenset()
