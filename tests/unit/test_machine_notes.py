"""What people are told of changes on a machine, and when notes are kept."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from activities.adapters.nodes.drivers import SpecDrivers
from activities.machine_notes import MachineNotes
from activities.observe import Ports, observe
from domain.cluster import ZooKeeperMemberSpec, host_and_port
from domain.errors import Permanent, Transient
from domain.machine_notes import OURS, ZOOKEEPER, MachineChanges, MachineNote, changes_between
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from tests.unit.fake_walk import LedgerInMemory

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def between(before: dict[str, dict[str, str]], now: dict[str, dict[str, str]]) -> tuple[str, ...]:
    note = MachineNote(about="broker-1", at=NOON, identity=None, facts=before)
    return changes_between(note, now, [], NOON + timedelta(minutes=1)).changes


@pytest.mark.parametrize(
    ("kind", "before", "now", "told"),
    [
        ("sysctl", {"vm.swappiness": "60"}, {"vm.swappiness": "1"}, "vm.swappiness: 60 → 1"),
        ("firewall", {}, {"tcp dport 9092 drop": "there"}, "firewall tcp dport 9092 drop is new"),
        ("service", {"chronyd.service": "runs"}, {}, "service chronyd.service is gone"),
        ("mount", {"/data": "/dev/sdb (ext4), rw"}, {}, "mount /data is gone (it was /dev/sdb (ext4), rw)"),
        ("limit", {"Max open files": "100000 100000"}, {"Max open files": "1024 4096"},
         "its limit Max open files: 100000 100000 → 1024 4096"),
        ("environment", {}, {"HTTP_PROXY": "http://…@p:1"}, "variable HTTP_PROXY of its environment is new: http://…@p:1"),
        ("mount", {"/data": "/dev/disk/by-id/scsi-0 (ext4), rw,relatime, rw,errors=remount-ro"},
         {"/data": "/dev/disk/by-id/scsi-0 (ext4), ro,relatime, ro,errors=remount-ro"}, "mount /data: rw → ro"),
    ],
)  # fmt: skip
def test_a_change_in_words(kind: str, before: dict[str, str], now: dict[str, str], told: str) -> None:
    assert between({kind: before}, {kind: now}) == (told,)
    assert between({kind: before}, {kind: before}) == ()


@pytest.mark.parametrize("kind", ["data", "sysctl", "group"])
def test_what_comes_and_goes_by_itself_is_no_change(kind: str) -> None:
    assert between({kind: {"a": "1"}}, {kind: {"b": "1"}}) == ()
    assert len(between({kind: {"a": "1"}}, {kind: {"a": "2"}})) == 1


def test_what_could_not_be_looked_at_is_no_change() -> None:
    assert between({"limit": {"Max open files": "1"}}, {}) == between({}, {"limit": {"Max open files": "1"}}) == ()


def test_of_many_a_few_of_each_kind_are_told_the_likeliest_first() -> None:
    files = {f"/opt/kafka/libs/{number}.jar": "new" for number in range(40)}
    told = between({"file": {}, "mount": {}, "sysctl": {"a": "1"}}, {"file": files, "mount": {"/a": "x"}, "sysctl": {"a": "2"}})
    assert told[0] == "mount /a is new: x"
    assert told[-2:] == ("a: 1 → 2", "and 37 more")
    assert len(told) == 6


def test_what_the_kernel_said_before_the_note_or_long_ago_is_another_story() -> None:
    note = MachineNote(about="broker-1", at=NOON, identity=None, facts={})
    kernel = [(7200.0, "days ago"), (100.0, "before"), (50.0, "nf_conntrack: table full, dropping packet")]
    changes = changes_between(note, {}, kernel, NOON + timedelta(seconds=60))
    assert changes.said == ("nf_conntrack: table full, dropping packet",)
    assert changes_between(note, {}, kernel, NOON + timedelta(days=1)).said == kernel_lines(kernel[1:])


def kernel_lines(kernel: list[tuple[float, str]]) -> tuple[str, ...]:
    return tuple(line for _, line in kernel)


def test_what_is_told_already_is_left_out() -> None:
    changes = MachineChanges(since=NOON, changes=("a", "b"), said=("c",))
    assert changes.without({"a", "c"}).lines == ("b",)
    assert not changes.without({"a", "b", "c"})


class Kept:
    """Notes of a simulated cluster."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster, self.ledger = cluster, LedgerInMemory(cluster)
        self.ports = Ports(cast("Any", self.ledger), cluster, cluster, cluster, cluster, FakeArtefacts())
        self.notes = MachineNotes(self.ports, SpecDrivers())

    async def keep(self) -> None:
        observation = await observe(self.cluster.record(), self.ports)
        await ActivityEnvironment().run(self.notes.keep, "m1", self.cluster.record(), observation)

    async def changes(self, node_id: int) -> MachineChanges | None:
        observation = await observe(self.cluster.record(), self.ports)
        return await self.notes.of_node("m1", self.cluster.record(), observation.node(node_id))


async def test_nodes_that_are_well_are_noted_once() -> None:
    kept = Kept(FakeCluster())
    await kept.keep()
    brokers = {f"broker-{b.id}" for b in kept.cluster.spec.brokers}
    assert set(kept.ledger.notes) == {OURS, ZOOKEEPER, *brokers}, "no controller runs"
    first = dict(kept.ledger.notes)
    kept.cluster.nodes[1].machine.facts["sysctl"]["vm.max_map_count"] = "65530"
    await kept.keep()
    assert kept.ledger.notes == first
    changes = await kept.changes(1)
    assert changes is not None
    assert changes.changes == ("vm.max_map_count: 262144 → 65530",)
    assert not await kept.changes(2)


async def test_servers_of_the_ensemble_are_noted_where_it_is_said_where_they_are(tmp_path: Path) -> None:
    """By this machine's own Python."""
    kept = Kept(FakeCluster())
    host, port = host_and_port(kept.cluster.spec.zookeeper.connect.partition("/")[0].split(",")[0])
    member = ZooKeeperMemberSpec(host=host, port=port, data_dir=str(tmp_path))
    zookeeper = kept.cluster.spec.zookeeper.model_copy(update={"members": (member,)})
    kept.cluster.spec = kept.cluster.spec.model_copy(update={"zookeeper": zookeeper})
    await kept.keep()
    name = f"zookeeper {host}:{port}"
    assert str(tmp_path) in kept.ledger.notes[name].facts["data"]
    tmp_path.chmod(0o500)  # noqa: ASYNC240
    changes = await kept.notes.of_server("m1", member, name)
    assert changes is not None
    assert any(line.startswith(f"{tmp_path}: drwx------ ") for line in changes.changes)


async def test_a_restart_by_other_hands_is_held_against_the_note() -> None:
    kept = Kept(FakeCluster())
    await kept.keep()
    node = kept.cluster.nodes[1]
    node.die()
    node.start()
    node.machine.facts["limit"]["Max open files"] = "1024"
    await kept.keep()
    changes = await kept.changes(1)
    assert changes is not None
    assert changes.changes == ("its limit Max open files: 100000 → 1024",)


async def test_of_one_that_is_down_its_machine_is_told() -> None:
    kept = Kept(FakeCluster())
    await kept.keep()
    kept.cluster.nodes[1].die("out of memory")
    kept.cluster.nodes[1].machine.kernel = [(0.0, "Out of memory: Killed process 4711 (java)")]
    changes = await kept.changes(1)
    assert changes is not None
    assert changes.lines == ("Out of memory: Killed process 4711 (java)",)


async def test_nothing_is_known_of_what_was_never_noted() -> None:
    assert await Kept(FakeCluster()).changes(1) is None


async def test_a_ledger_that_is_silent_keeps_nobody_waiting() -> None:
    kept = Kept(FakeCluster())
    kept.ledger.is_silent = True
    await kept.keep()
    with pytest.raises(Transient):
        await kept.notes.of_ours("m1")


CONFIGURED = b'{"version":1,"config":{"retention.ms":"1","ssl.keystore.password":"tiger"}}'
ALLOWED = b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}]}'


async def test_what_is_set_in_zookeeper_is_noted_without_secrets_and_held_against_it() -> None:
    kept = Kept(FakeCluster())
    znodes = kept.cluster.znodes
    znodes["/config/topics/orders"] = CONFIGURED
    znodes["/kafka-acl/Topic/orders"] = ALLOWED
    await kept.keep()
    facts = kept.ledger.notes[ZOOKEEPER].facts
    assert facts["config"]["retention.ms in /config/topics/orders"] == "1"
    assert facts["acl"]["/kafka-acl/Topic/orders"] == "Allow Read to User:a from *"
    assert "tiger" not in str(facts)
    assert not await kept.notes.of_metadata("m1", kept.cluster.record())
    znodes["/config/topics/orders"] = CONFIGURED.replace(b'"1"', b'"2"')
    znodes["/kafka-acl/Topic/orders"] = ALLOWED.replace(b"Allow", b"Deny")
    znodes["/admin/reassign_partitions"] = b"{}"
    changes = await kept.notes.of_metadata("m1", kept.cluster.record())
    assert changes is not None
    assert changes.in_words.partition(" UTC: ")[2] == (
        "retention.ms in /config/topics/orders: 1 → 2; "
        "ACLs of /kafka-acl/Topic/orders: Allow Read to User:a from * → Deny Read to User:a from *; "
        "order /admin/reassign_partitions is new"
    )


async def test_a_machine_without_python_keeps_no_other_from_being_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(FakeCluster())
    run = type(kept.cluster.driver(kept.cluster.spec.brokers[0])).run

    async def refuse(driver: Any, *arguments: Any) -> Any:
        if driver._node.spec.id == 1:
            raise Permanent("python3: no such program")
        return await run(driver, *arguments)

    monkeypatch.setattr(type(kept.cluster.driver(kept.cluster.spec.brokers[0])), "run", refuse)
    await kept.keep()
    assert "broker-1" not in kept.ledger.notes
    assert {"broker-2", OURS} <= kept.ledger.notes.keys()
