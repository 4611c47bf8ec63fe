"""The copied tree before a trial: no session's znodes, only brokers that live, and without what is left out."""

import json
from pathlib import Path

import pytest

from activities.ports.zookeeper import Znode
from activities.zk_to_kraft.rehearsal import copied_tree
from activities.zk_to_kraft.rehearsal.rehearsing import rows_in
from domain.errors import Permanent
from playground.fakes.tree import FakeTree, Znodes

OWNER = 0x1000


def tree_of(**more: bytes) -> tuple[Znodes, FakeTree]:
    znodes = Znodes()
    for path in ("/brokers", "/brokers/ids", "/brokers/topics", "/config/users", "/kafka-acl/Topic/t"):
        znodes[path] = b""
    znodes["/brokers/topics/orders"] = b'{"partitions":{"0":[1]}}'
    znodes["/brokers/topics/orders/partitions/0/state"] = b"{}"
    znodes["/config/users/u"] = b'{"config":{"a":"x"}}'
    znodes["/config/users/u/clients/c"] = b"{}"
    znodes["/migration"] = b"{}"
    for path in ("/controller", "/brokers/ids/1", "/brokers/ids/2"):
        znodes.create(path, b"{}", OWNER)
    return znodes, FakeTree(znodes)


async def test_what_sessions_own_and_an_earlier_migration_are_gone() -> None:
    znodes, tree = tree_of()
    before = set(znodes)
    await copied_tree.end_sessions(tree)
    assert before - set(znodes) == {"/controller", "/migration", "/brokers/ids/1", "/brokers/ids/2"}
    await copied_tree.end_sessions(tree)


class Expiring(FakeTree):
    """A session that expires between the look and the transaction."""

    async def commit(self, changes: object) -> bool:
        self._znodes.pop("/controller", None)
        return await super().commit(changes)


async def test_a_session_that_expires_meanwhile_is_no_error() -> None:
    znodes, _ = tree_of()
    await copied_tree.end_sessions(Expiring(znodes))
    assert "/brokers/ids/1" not in znodes
    assert "/controller" not in znodes


@pytest.mark.parametrize(
    ("path", "gone", "kept"),
    [
        ("/brokers/topics/orders", "/brokers/topics/orders/partitions/0/state", "/brokers/topics"),
        ("/brokers/topics/orders/partitions/0/state", "/brokers/topics/orders/partitions/0/state", "/brokers/topics/orders"),
        ("/config/users/u/clients/c", "/config/users/u/clients/c", "/config/users/u"),
        ("/kafka-acl/Topic/t", "/kafka-acl/Topic/t", "/config/users/u"),
        ("/not/there", "/not/there", "/config/users/u"),
    ],
)
async def test_what_is_left_out_is_gone_with_all_below_it(path: str, gone: str, kept: str) -> None:
    znodes, tree = tree_of()
    await copied_tree.leave_out(tree, path)
    assert gone not in znodes
    assert kept in znodes


async def test_a_user_that_is_left_out_has_no_configs_and_keeps_his_clients() -> None:
    znodes, tree = tree_of()
    await copied_tree.leave_out(tree, "/config/users/u")
    assert json.loads(znodes["/config/users/u"]) == {"version": 1, "config": {}}
    assert "/config/users/u/clients/c" in znodes


async def test_a_dead_broker_is_left_out_by_standing_in_for_it() -> None:
    znodes, tree = tree_of()
    await copied_tree.leave_out(tree, "/brokers/ids/9")
    others = copied_tree.stand_ins_for(["/brokers/ids/9", "/brokers/ids", "/config/users/u", "/brokers/ids/x"])
    assert others.keys() == {9}
    await copied_tree.register(tree, others)
    assert json.loads(znodes["/brokers/ids/9"])["endpoints"]
    assert znodes.find("/brokers/ids/9").ephemeral_owner == 0


async def test_only_the_copy_has_the_marker() -> None:
    _, tree = tree_of()
    marker = await copied_tree.marked(tree)
    await copied_tree.ensure_marker(tree, marker)
    _, living = tree_of()
    with pytest.raises(Permanent, match="is not the copy: nothing was started"):
        await copied_tree.ensure_marker(living, marker)
    await copied_tree.marked(living)
    with pytest.raises(Permanent, match="is not the copy"):
        await copied_tree.ensure_marker(living, marker)


async def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    tree = FakeTree({"/config/users/u": Znode(b"\xff\x00{", 0, 0, None, 77), "/config/users": Znode(b"", 0, 0)})
    await copied_tree.write_rows(tree, tmp_path / "rows")
    rows = [row async for chunk in rows_in(tmp_path / "rows") for row in chunk]
    assert [(row.path, row.data, row.mzxid) for row in rows] == [("/config/users/u", b"\xff\x00{", 77)]
