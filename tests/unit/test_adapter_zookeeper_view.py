"""`view_of`: what znodes mean, well-formed and not."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from activities.observing.zookeeper_view import view_of
from activities.ports.zookeeper import Znode
from domain.errors import Transient
from domain.observed.observation import ControllerZnode, MigrationZnode, ZooKeeperView
from playground.fakes.tree import FakeTree

EMPTY = ZooKeeperView(
    cluster_id=None,
    controller=None,
    controller_epoch=None,
    migration=None,
    broker_ids=(),
    pending_deletions=(),
    reassignments=(),
    is_preferred_election_pending=False,
    assigned_broker_ids=(),
    topics_without_id=(),
)


def znode(content: Any, owner: int = 0) -> Znode:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Znode(data, 0, owner)


async def view(**znodes: Znode) -> ZooKeeperView:
    """Paths with `__` for `/`."""
    return await view_of(FakeTree({"/" + path.replace("__", "/"): found for path, found in znodes.items()}))


async def test_an_empty_tree_is_all_absent() -> None:
    assert await view() == EMPTY


async def test_a_cluster_in_dual_write() -> None:
    seen = await view(
        cluster__id=znode({"version": "1", "id": "abc"}),
        controller=znode({"version": 2, "brokerid": 3001, "timestamp": "1", "kraftControllerEpoch": 4}),
        controller_epoch=znode(b"17"),
        migration=znode({"kraft_controller_id": 3001, "kraft_controller_epoch": 4, "kraft_metadata_offset": 105}),
        brokers__ids__10=znode({}),
        brokers__ids__9=znode({}),
        brokers__topics__v1=znode({"version": 1, "partitions": {"0": [1, 2], "1": [2, 3]}}),
        brokers__topics__v2=znode({"version": 2, "partitions": {"0": [9]}, "adding_replicas": {"0": [9]}}),
        brokers__topics__v3=znode({"version": 3, "topic_id": "id", "partitions": {"0": [1]}, "removing_replicas": {"0": [4]}}),
        admin__delete_topics__old=znode(b""),
        admin__preferred_replica_election=znode(b""),
        admin__reassign_partitions=znode({"version": 1, "partitions": [{"topic": "v1", "partition": 1, "replicas": [1]}]}),
    )
    assert seen == ZooKeeperView(
        cluster_id="abc",
        controller=ControllerZnode(broker_id=3001, kraft_epoch=4, is_ephemeral=False),
        controller_epoch=17,
        migration=MigrationZnode(controller_id=3001, controller_epoch=4, offset=105),
        broker_ids=(9, 10),
        pending_deletions=("old",),
        reassignments=("v1-1", "v2-0", "v3-0"),
        is_preferred_election_pending=True,
        assigned_broker_ids=(1, 2, 3, 9),
        topics_without_id=("v1", "v2"),
    )


async def test_a_claim_is_as_old_as_its_znode() -> None:
    at = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
    claim = json.dumps({"version": 2, "brokerid": 3001, "timestamp": "1", "kraftControllerEpoch": 4}).encode()
    seen = await view(controller=Znode(claim, 0, 0, at))
    assert seen.controller == ControllerZnode(broker_id=3001, kraft_epoch=4, is_ephemeral=False, claimed_at=at)


async def test_a_brokers_claim_is_ephemeral_and_may_be_of_an_older_version() -> None:
    seen = await view(controller=znode({"version": 1, "brokerid": 2, "timestamp": "1"}, owner=7))
    assert seen.controller == ControllerZnode(broker_id=2, kraft_epoch=None, is_ephemeral=True)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b'{"kraft_metadata_offset": "5"}', b"{}"])
async def test_a_migration_that_cannot_be_parsed_is_there_and_says_nothing(data: bytes) -> None:
    seen = await view(migration=znode(data))
    assert seen.migration == MigrationZnode(controller_id=None, controller_epoch=None, offset=None)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"\xff", b'{"partitions": []}', b'{"partitions": {"0": 5}}', b'{"partitions": {"0": ["a", true]}}'],
)
async def test_a_broken_topic_counts_as_one_without_id(data: bytes) -> None:
    seen = await view(
        brokers__topics__broken=znode(data), brokers__topics__good=znode({"topic_id": "x", "partitions": {"0": [1]}})
    )
    assert seen.topics_without_id == ("broken",)
    assert seen.assigned_broker_ids == (1,)


async def test_a_broken_reassignment_is_pending_all_the_same() -> None:
    for data in (b"", b"{", b'{"partitions": 1}'):
        assert (await view(admin__reassign_partitions=znode(data))).reassignments == ("/admin/reassign_partitions",)


@pytest.mark.parametrize("path", ["controller", "controller_epoch", "cluster__id", "brokers__ids__x"])
@pytest.mark.parametrize("data", [b"", b"{", b"x", b"{}"])
async def test_what_decides_and_cannot_be_parsed_is_unknown(path: str, data: bytes) -> None:
    with pytest.raises(Transient):
        await view(**{path: znode(data)})
