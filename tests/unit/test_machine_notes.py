"""What people are told of changes on a machine, and when notes are kept."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from activities.adapters.nodes.drivers import SpecDrivers
from activities.assessing import Assessing
from activities.diagnosis import metadata_notes
from activities.diagnosis.machine_notes import MachineNotes
from activities.observing.observe import observe
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from domain.cluster import ZooKeeperMemberSpec, host_and_port
from domain.contracts import AssessRequest
from domain.diagnosis.machines.notes import (
    OURS,
    ZOOKEEPER,
    MachineChanges,
    MachineNote,
    changes_between,
    is_same_place,
    moved,
)
from domain.errors import Permanent, Transient
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from tests.unit.fake_walk import LedgerInMemory

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


Facts = dict[str, dict[str, str]]


def all_between(before: Facts, now: Facts) -> MachineChanges:
    note = MachineNote(about="broker-1", at=NOON, identity=None, facts=before)
    return changes_between(note, now, [], NOON + timedelta(minutes=1))


def between(before: Facts, now: Facts) -> tuple[str, ...]:
    return all_between(before, now).changes


@pytest.mark.parametrize(
    ("kind", "before", "now", "told"),
    [
        ("sysctl", {"vm.swappiness": "60"}, {"vm.swappiness": "1"}, "vm.swappiness: 60 → 1"),
        ("service", {}, {"backup.service": "runs"}, "service backup.service is new"),
        ("service", {"chronyd.service": "runs"}, {}, "service chronyd.service is gone"),
        ("mount", {"/data": "/dev/sdb (ext4), rw"}, {}, "mount /data is gone (it was /dev/sdb (ext4), rw)"),
        ("limit", {"Max open files": "100000 100000"}, {"Max open files": "1024 4096"},
         "its limit Max open files: 100000 100000 → 1024 4096"),
        ("environment", {}, {"HTTP_PROXY": "http://…@p:1"}, "variable HTTP_PROXY of its environment is new: http://…@p:1"),
        ("process", {"Seccomp": "0", "Uid": "0 0"}, {"Seccomp": "2", "Uid": "0 0"},
         "the filter of system calls, inherited from what started it (Seccomp) of its process: 0 → 2"),
        ("mount", {"/data, file system": "rw,errors=remount-ro"}, {"/data, file system": "ro,errors=remount-ro"},
         "mount /data, file system: rw → ro"),
        ("mount", {"/data, options": "rw,relatime"}, {"/data, options": "rw,relatime,noexec"},
         "mount /data, options: (nothing) → noexec"),
        ("file", {"/k.jar": "12 bytes, written A"}, {"/k.jar": "13 bytes, written B"},
         "/k.jar: 12 bytes, written A → 13 bytes, written B"),
        ("file", {}, {"/k.jar": "12 bytes", "/k.jar, rights": "-rw-r--r-- 0:0"}, "/k.jar is new: 12 bytes"),
    ],
)  # fmt: skip
def test_a_change_in_words(kind: str, before: dict[str, str], now: dict[str, str], told: str) -> None:
    assert between({kind: before}, {kind: now}) == (told,)
    assert between({kind: before}, {kind: before}) == ()


def test_who_has_got_rid_of_a_filter_is_kept_from_nothing_by_that() -> None:
    """What was noted while it had one is no state to go back to."""
    assert between({"process": {"Seccomp": "2", "NoNewPrivs": "1"}}, {"process": {"Seccomp": "0", "NoNewPrivs": "0"}}) == ()


@pytest.mark.parametrize("kind", ["data", "sysctl", "group", "topic"])
def test_what_comes_and_goes_by_itself_is_no_change(kind: str) -> None:
    assert between({kind: {"a": "1"}}, {kind: {"b": "1"}}) == ()
    assert len(between({kind: {"a": "1"}}, {kind: {"a": "2"}})) == 1


def test_of_programs_only_new_ones_are_told() -> None:
    before, now = {"a": "runs", "b": "runs"}, {"b": "runs", "c": "runs"}
    assert between({"program": before}, {"program": now}) == ("program c is new",)


def test_nobody_is_told_to_put_a_new_program_back() -> None:
    """It need not have to do with the trouble. With another change beside it, it may."""
    assert "whether it can wait" in all_between({"program": {}}, {"program": {"rsync of user 0": "runs"}}).fix
    both = all_between({"program": {}, "sysctl": {"a": "1"}}, {"program": {"rsync of user 0": "runs"}, "sysctl": {"a": "2"}})
    assert "restore what was not intended" in both.fix
    assert all_between({"program": {}}, {"program": {}}).fix == ""
    wrapped = all_between({"process": {"program": "/opt/java"}}, {"process": {"program": "/usr/bin/bash"}})
    assert wrapped.changes == ("program of its process: /opt/java → /usr/bin/bash",)
    assert "restore what was not intended" in wrapped.fix, "which is no new program"


def test_of_a_process_in_another_network_that_is_told_first_and_no_settings_of_that_network() -> None:
    before = {"process": {"capabilities": "1", "network namespace": "ours"}, "sysctl": {"net.ipv4.ip_forward": "1"}}
    now = {"process": {"capabilities": "2", "network namespace": "another"}, "sysctl": {"net.ipv4.ip_forward": "0"}}
    found = all_between(before, now)
    assert found.changes[0] == "network namespace of its process: ours → another"
    assert len(found.changes) == 2
    assert "ip netns exec" in found.fix
    gone = all_between({"process": {"network namespace": "ours"}, "sysctl": {"a": "1"}}, {"sysctl": {"a": "2"}})
    assert gone.changes == ("a: 1 → 2",), "of one that does not run nobody knows"


@pytest.mark.parametrize(
    ("was", "now", "is_moved"),
    [
        (("b", "net:[1]"), ("b", "net:[2]"), True),
        (("b", "net:[1]"), ("b", "net:[1]"), False),
        (("b", "net:[1]"), ("c", "net:[2]"), False),
        (("b", "net:[1]"), ("b", ""), False),
    ],
    ids=["another network", "the same", "another boot, or machine", "not known"],
)
def test_who_looks_from_another_network_of_the_machine_is_told_as_moved(
    was: tuple[str, str], now: tuple[str, str], is_moved: bool
) -> None:
    before, facts = ({"machine": {"boot id": boot}, "namespace": {"net": net}} for boot, net in (was, now))
    found = moved(MachineNote(about=OURS, at=NOON, identity=None, facts=before), facts)
    assert (found is not None) is is_moved
    assert found is None or found.fix.startswith("First restart it in the network namespace that it was in")


@pytest.mark.parametrize("space", ["net", "user"])
def test_who_looks_from_another_place_says_nothing_of_what_he_sees_there(space: str) -> None:
    before = {"namespace": {space: "[1]"}, "sysctl": {"a": "1"}, "process": {"network namespace": "ours", "Uid": "0"}}
    now = {"namespace": {space: "[2]"}, "sysctl": {"a": "2"}, "process": {"network namespace": "another", "Uid": "7"}}
    assert between(before, now) == ("Uid of its process: 0 → 7",)
    assert len(between(before, now | {"namespace": {space: "[1]"}})) == 2


def test_what_had_just_begun_then_is_not_new_and_what_has_just_begun_now_is_not_told() -> None:
    before, now = {"a": "has begun", "b": "runs"}, {"a": "runs", "b": "has begun", "c": "has begun"}
    assert between({"program": before}, {"program": now}) == ()


def test_what_could_not_be_looked_at_is_no_change() -> None:
    assert between({"limit": {"Max open files": "1"}}, {}) == between({}, {"limit": {"Max open files": "1"}}) == ()


def test_of_many_a_few_of_each_kind_are_told_the_likeliest_first() -> None:
    files = {f"/opt/kafka/libs/{number}.jar": "new" for number in range(40)}
    told = between({"file": {}, "mount": {}, "sysctl": {"a": "1"}}, {"file": files, "mount": {"/a": "x"}, "sysctl": {"a": "2"}})
    assert told[0] == "mount /a is new: x"
    assert told[-1] == "a: 1 → 2"
    assert len(told) == 5


def test_how_many_more_there_are_is_told_and_is_no_change_by_itself() -> None:
    note = MachineNote(about="broker-1", at=NOON, identity=None, facts={"file": {}})
    changes = changes_between(note, {"file": {f"/{number}": "new" for number in range(40)}}, [], NOON)
    assert changes.in_words.endswith("/10 is new: new; and 37 more")
    assert not changes.without(set(changes.lines))


@pytest.mark.parametrize(
    ("before", "now", "is_compared"),
    [
        ({"mounts": "mnt:[1]", "whose": "process"}, {"mounts": "mnt:[2]", "whose": "process"}, True),
        ({"mounts": "mnt:[1]", "whose": "process"}, {"mounts": "mnt:[1]", "whose": ""}, True),
        ({"mounts": "mnt:[1]", "whose": "process"}, {"mounts": "mnt:[2]", "whose": ""}, False),
    ],
)
def test_mounts_of_a_process_are_not_held_against_those_of_the_machine(
    before: dict[str, str], now: dict[str, str], is_compared: bool
) -> None:
    told = between({"namespace": before, "mount": {"/tmp": "a"}}, {"namespace": now, "mount": {"/tmp": "b"}})  # noqa: S108
    assert told == (("mount /tmp: a → b",) if is_compared else ())


PLACE = {"machine": {"boot id": "1"}, "namespace": {"net": "2", "pid": "3", "uid": "0"}}


@pytest.mark.parametrize("lacks", ["boot id", "net", "pid", "uid", None])
def test_only_who_looks_from_the_same_place_can_hold_a_machine_against_its_note(lacks: str | None) -> None:
    now = {kind: {name: "9" if name == lacks else value for name, value in found.items()} for kind, found in PLACE.items()}
    assert is_same_place(PLACE, now) == (lacks is None)
    assert not is_same_place({}, {})


def test_what_the_kernel_said_before_the_note_or_long_ago_is_another_story() -> None:
    note = MachineNote(about="broker-1", at=NOON, identity=None, facts={})
    kernel = [(7200.0, "days ago"), (100.0, "before"), (50.0, "nf_conntrack: table full, dropping packet")]
    changes = changes_between(note, {}, kernel, NOON + timedelta(seconds=60))
    assert changes.said == ("nf_conntrack: table full, dropping packet",)
    assert changes_between(note, {}, kernel, NOON + timedelta(days=1)).said == kernel_lines(kernel[1:])


BOOTED = {"boot id": "b1"}


@pytest.mark.parametrize(
    ("before", "now", "machine", "killed"),
    [
        ({"": "3", "/a": "0"}, {"": "4", "/a": "1", "/b": "9"}, BOOTED, "1 process of control group /a"),
        ({"": "3", "/a": "0"}, {"": "5", "/a": "0"}, BOOTED, "2 processes of its machine"),
        ({"": "3", "/a": "1"}, {"": "3", "/a": "1"}, BOOTED, ""),
        ({"": "3"}, {"": "5"}, {"boot id": "b2"}, ""),
        ({}, {"": "5"}, BOOTED, ""),
    ],
)
def test_what_the_kernel_has_killed_for_memory(
    before: dict[str, str], now: dict[str, str], machine: dict[str, str], killed: str
) -> None:
    note = MachineNote(about="broker-1", at=NOON, identity=None, facts={"kill": before, "machine": BOOTED})
    found = changes_between(note, {"kill": now, "machine": machine}, None, NOON + timedelta(minutes=1))
    assert (found.killed, found.is_unheard) == (killed, True)


@pytest.mark.parametrize(
    ("boot", "at", "is_told"), [("b2", "1760000000", True), ("b1", "1760000000", False), ("b2", None, False)]
)
def test_a_machine_that_was_booted_since_tells_when(boot: str, at: str | None, is_told: bool) -> None:
    note = MachineNote(about="broker-1", at=NOON, identity=None, facts={"machine": BOOTED, "boot": {"at": "1750000000"}})
    facts = {"machine": {"boot id": boot}, **({"boot": {"at": at}} if at is not None else {})}
    found = changes_between(note, facts, [], NOON + timedelta(minutes=1))
    assert found.booted_at == (datetime.fromtimestamp(1760000000, UTC) if is_told else None)
    assert not any("1760000000" in line for line in found.changes)


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
        self.ports = Ports(cast("Any", self.ledger), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS)
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
    host, port = host_and_port(kept.cluster.spec.ensemble.connect.partition("/")[0].split(",")[0])
    member = ZooKeeperMemberSpec(host=host, port=port, data_dir=str(tmp_path))
    zookeeper = kept.cluster.spec.ensemble.model_copy(update={"members": (member,)})
    kept.cluster.spec = kept.cluster.spec.model_copy(update={"zookeeper": zookeeper})
    await kept.keep()
    name = f"zookeeper {host}:{port}"
    assert f"{tmp_path}, rights" in kept.ledger.notes[name].facts["data"]
    tmp_path.chmod(0o500)  # noqa: ASYNC240
    changes = await kept.notes.of_server("m1", member, name)
    assert changes is not None
    assert any(line.startswith(f"{tmp_path}, rights: drwx------ ") for line in changes.changes)


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


@pytest.mark.parametrize(
    ("where", "is_told"),
    [("", True), ("environment", False), ("script", False), ("properties", True), ("session", False), ("sourced", False)],
)
async def test_of_one_that_is_down_what_its_next_start_would_not_be_given_is_told(where: str, is_told: bool) -> None:
    """A unit, or whoever started it before, gave it variables that the specification does not."""
    name = {"properties": "STORE_WORD", "session": "SSH_TTY"}.get(where, "KAFKA_OPTS")
    cluster = FakeCluster()
    node = cluster.nodes[1]
    node.machine.facts["environment"] = {name: "(not shown)"}
    if where == "environment":
        node.spec.environment[name] = "-Dx"
    elif where == "script":
        node.machine.write(
            f"{node.spec.kafka_home}/bin/kafka-server-start.sh", FileContent(b"export KAFKA_OPTS=-Dx", 0o755, 0, 0)
        )
    elif where == "sourced":
        service = node.spec.driver.service.model_copy(update={"start_command": ("/start.sh", "{properties}")})
        driver = node.spec.driver.model_copy(update={"service": service})
        changed = node.spec.model_copy(update={"driver": driver})
        brokers = tuple(changed if broker.id == changed.id else broker for broker in cluster.spec.brokers)
        cluster.spec = cluster.spec.model_copy(update={"brokers": brokers})
        node.machine.write("/start.sh", FileContent(b". /etc/default/kafka", 0o755, 0, 0))
    elif where == "properties":
        file = node.machine.read(node.spec.properties_file)
        assert file is not None
        added = b"\nssl.keystore.password=${env:STORE_WORD}\n"
        node.machine.write(node.spec.properties_file, replace(file, content=file.content + added))
    kept = Kept(cluster)
    await kept.keep()
    node.die("it is over")
    changes = await kept.changes(1)
    assert changes is not None
    assert any(f"variable {name} of its environment is gone" in line for line in changes.lines) is is_told


async def test_nothing_is_known_of_what_was_never_noted() -> None:
    assert await Kept(FakeCluster()).changes(1) is None


def test_of_what_a_kernel_has_said_the_cause_is_told_before_what_came_of_it() -> None:
    said = [(30.0, "critical space allocation error, dev loop0, sector 8")]
    said += [(float(ago), f"Buffer I/O error on device loop0, logical block {ago}") for ago in (20, 10, 5, 1)]
    note = MachineNote(about="broker-1", at=NOON - timedelta(hours=1), identity=None, facts={})
    told = changes_between(note, {}, said, NOON)
    assert told.said[0] == said[0][1]
    assert told.said[1:] == tuple(line for _, line in said[-2:])


async def test_a_ledger_that_is_silent_is_no_error() -> None:
    kept = Kept(FakeCluster())
    kept.ledger.is_silent = True
    await kept.keep()
    with pytest.raises(Transient):
        await kept.notes.of_ours("m1")


CONFIGURED = b'{"version":1,"config":{"retention.ms":"1","ssl.keystore.password":"tiger"}}'
NAMED = b'{"version":3,"partitions":{"0":[1,2,3]},"topic_id":"jRlSXXUVQGmuAq3eN5FHnA"}'
ALLOWED = b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}]}'


async def test_what_is_set_in_zookeeper_is_noted_without_secrets_and_held_against_it() -> None:
    kept = Kept(FakeCluster())
    znodes = kept.cluster.znodes
    znodes["/config/topics/orders"] = CONFIGURED
    znodes["/brokers/topics/orders"] = NAMED
    znodes["/kafka-acl/Topic/orders"] = ALLOWED
    await kept.keep()
    facts = kept.ledger.notes[ZOOKEEPER].facts
    assert facts["topic"]["/config/topics/orders"] == "retention.ms=1,ssl.keystore.password=***"
    assert facts["acl rule"] == {"of /kafka-acl/Topic/orders: Allow Read to User:a from *": "there"}
    assert "tiger" not in str(facts)
    assert not await kept.notes.of_metadata("m1", kept.cluster.record())
    znodes["/config/topics/orders"] = CONFIGURED.replace(b'"1"', b'"2","compression.type":"gzip"')
    znodes["/config/topics/fresh"] = CONFIGURED
    znodes["/brokers/topics/orders"] = NAMED.replace(b"jRlSXXUVQGmuAq3eN5FHnA", b"WUR1tvXZRoWzjjEWbIJC9w").replace(
        b"}", b',"1":[1]}', 1
    )
    znodes["/kafka-acl/Topic/orders"] = ALLOWED.replace(b"]", b"," + ALLOWED[21:-2].replace(b"Allow", b"Deny") + b"]")
    znodes["/admin/reassign_partitions"] = b"{}"
    everywhere = {str(number): [1, 2, 3] for number in range(1500)}
    znodes["/brokers/topics/telemetry"] = json.dumps({"version": 3, "partitions": everywhere}).encode()
    znodes["/brokers/topics/fresh"] = json.dumps({"version": 3, "partitions": {"0": [1]}}).encode()
    changes = await kept.notes.of_metadata("m1", kept.cluster.record())
    assert changes is not None
    assert changes.in_words.partition(" UTC: ")[2] == (
        "topic /brokers/topics/telemetry is new: 1500 partitions; "
        "ACL of /kafka-acl/Topic/orders: Deny Read to User:a from * is new; "
        "order /admin/reassign_partitions is new; "
        "/config/topics/orders: retention.ms=1 → compression.type=gzip,retention.ms=2; "
        "topic_id in /brokers/topics/orders: jRlSXXUVQGmuAq3eN5FHnA → WUR1tvXZRoWzjjEWbIJC9w; "
        "partitions of /brokers/topics/orders: 1 → 2"
    )


async def test_rules_that_were_noted_otherwise_are_not_new() -> None:
    """By an earlier version: all of a resource in one."""
    kept = Kept(FakeCluster())
    kept.cluster.znodes["/kafka-acl/Topic/orders"] = ALLOWED
    await kept.keep()
    noted = kept.ledger.notes[ZOOKEEPER]
    earlier = {kind: found for kind, found in noted.facts.items() if kind not in {"acl rule", "cluster acl"}}
    earlier["acl"] = {"/kafka-acl/Topic/orders": "Allow Read to User:a from *"}
    kept.ledger.notes[ZOOKEEPER] = noted.model_copy(update={"facts": earlier})
    assert not await kept.notes.of_metadata("m1", kept.cluster.record())


async def test_of_many_rules_the_one_that_is_gone_is_told_and_a_secret_that_was_set_anew_without_it() -> None:
    """Of six brokers with long names one may not do what nodes do any more, and somebody has set the password of all."""
    kept = Kept(FakeCluster())
    names = [f"User:CN=broker-{number}.kafka.example.com,OU=Kafka,O=Example" for number in range(1, 7)]
    rules = [{"principal": name, "permissionType": "Allow", "operation": "ClusterAction", "host": "*"} for name in names]
    scram = '{"version":1,"config":{"SCRAM-SHA-512":"salt=%s,stored_key=x,server_key=y,iterations=4096"}}'
    znodes = kept.cluster.znodes
    znodes["/kafka-acl/Cluster/kafka-cluster"] = json.dumps({"version": 1, "acls": rules}).encode()
    znodes["/config/users/kafka"] = (scram % "b2xk").encode()
    await kept.keep()
    assert "b2xk" not in str(kept.ledger.notes[ZOOKEEPER].facts)
    znodes["/kafka-acl/Cluster/kafka-cluster"] = json.dumps({"version": 1, "acls": rules[:5]}).encode()
    znodes["/config/users/kafka"] = (scram % "bmV3").encode()
    changes = await kept.notes.of_metadata("m1", kept.cluster.record())
    assert changes is not None
    gone, anew = changes.changes
    assert gone == f"ACL of /kafka-acl/Cluster/kafka-cluster: Allow ClusterAction to {names[5]} from * is gone"
    assert anew.startswith("SCRAM-SHA-512 in /config/users/kafka: (not shown), digest ")
    assert "bmV3" not in anew


async def test_a_list_of_names_that_has_grown_too_long_is_told_with_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer ends the session of every broker that asks for it, and the log has only the packet's length."""
    monkeypatch.setattr("activities.diagnosis.metadata_notes.LONG_LIST_BYTES", 4000)
    kept = Kept(FakeCluster())
    znodes = kept.cluster.znodes
    znodes["/kafka-acl-changes/acl_changes_0000000000"] = b""
    await kept.keep()
    assert not await kept.notes.of_metadata("m1", kept.cluster.record())
    for number in range(200):
        znodes[f"/kafka-acl-changes/acl_changes_{number:010}"] = b""
    changes = await kept.notes.of_metadata("m1", kept.cluster.record())
    assert changes is not None
    assert changes.changes == ("long list of names below /kafka-acl-changes is new: 200 names, 5,200 bytes",)


async def test_more_topics_than_anybody_waits_for_are_left_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(FakeCluster())
    kept.cluster.znodes["/config/topics/orders"] = CONFIGURED
    kept.cluster.znodes["/config/topics/payments"] = CONFIGURED
    monkeypatch.setattr(metadata_notes, "MOST_ZNODES", 1)
    await kept.keep()
    assert kept.ledger.notes[ZOOKEEPER].facts.keys() == {"list", "config", "cluster acl", "acl rule", "order", "deletion"}


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/config/brokers/1", "my.reporter.passwd"),
        ("/config/brokers/1", "ldap.bind.pwd"),
        ("/config/brokers/1", "ssl.keystore.key"),
        ("/config/users/olga", "SCRAM-SHA-256"),
    ],
)
async def test_no_secret_config_is_kept(path: str, key: str) -> None:
    kept = Kept(FakeCluster())
    kept.cluster.znodes[path] = b'{"version":1,"config":{"%s":"tiger"}}' % key.encode()
    await kept.keep()
    assert kept.ledger.notes[ZOOKEEPER].facts["config"][f"{key} in {path}"] == "(not shown)"


@pytest.mark.parametrize("error", [ValueError("no JSON"), RuntimeError("can't start new thread"), KeyError("facts")])
async def test_no_error_of_a_note_reaches_a_migration_and_it_is_not_tried_at_once(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(FakeCluster())
    tries = 0

    async def fail() -> MachineNote:
        nonlocal tries
        tries += 1
        raise error

    monkeypatch.setattr("activities.diagnosis.machine_notes._take_ours", fail)
    await kept.keep()
    await kept.keep()
    assert OURS not in kept.ledger.notes
    assert "broker-1" in kept.ledger.notes
    assert tries == 1


async def test_a_process_that_goes_while_it_is_noted_is_not_noted() -> None:
    kept = Kept(FakeCluster())
    observation = await observe(kept.cluster.record(), kept.ports)
    kept.cluster.nodes[1].die()
    await ActivityEnvironment().run(kept.notes.keep, "m1", kept.cluster.record(), observation)
    assert "broker-1" not in kept.ledger.notes
    assert "broker-2" in kept.ledger.notes


async def test_notes_are_kept_beside_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look takes no longer for them, and no second one begins meanwhile."""
    kept = Kept(FakeCluster())
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def wait() -> MachineNote:
        assert not begun.is_set()
        begun.set()
        await may_end.wait()
        return MachineNote(about=OURS, at=NOON, identity=None, facts={})

    monkeypatch.setattr("activities.diagnosis.machine_notes._take_ours", wait)
    request = AssessRequest(kind="zk-to-kraft", migration_id="m1", cluster="orders", generation=1)
    assessing = Assessing(kept.ports, kept.notes)
    for _ in range(2):
        await ActivityEnvironment().run(assessing.assess, request)
    await begun.wait()
    may_end.set()
    async with asyncio.timeout(10):
        while OURS not in kept.ledger.notes:
            kept.ledger.is_noted.clear()
            await kept.ledger.is_noted.wait()


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


async def test_a_worker_that_ends_lets_notes_under_way_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(FakeCluster())
    observation = await observe(kept.cluster.record(), kept.ports)

    async def begin(*, is_endless: bool) -> None:
        async def take() -> MachineNote:
            await asyncio.sleep(3600 if is_endless else 0.05)
            return MachineNote(about=OURS, at=NOON, identity=None, facts={})

        monkeypatch.setattr("activities.diagnosis.machine_notes._take_ours", take)
        async with kept.notes:
            kept.notes.begin("m1", kept.cluster.record(), observation)
            await asyncio.sleep(0)

    monkeypatch.setattr("activities.diagnosis.machine_notes.LEAVE_SECONDS", 0.5)
    await ActivityEnvironment().run(begin, is_endless=True)
    assert OURS not in kept.ledger.notes
    await ActivityEnvironment().run(begin, is_endless=False)
    assert OURS in kept.ledger.notes
