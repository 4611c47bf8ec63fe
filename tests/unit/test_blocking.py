"""`find_blockers` on a simulated cluster: what it looks up besides the look, and what it does when that does not come."""

import asyncio
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from activities.adapters.machine_doctor import LinuxDoctor
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.nodes.local import LocalMachine
from activities.diagnosis import brokers, lookups, machine_notes, machines, metadata, nodes_to_ask
from activities.diagnosis.find_blockers import Blocking, _as_seen_before
from activities.diagnosis.machine_notes import MachineNotes, look_here
from activities.observing import member_trees, topics
from activities.observing.observe import observe
from activities.own_network import Unresolved
from activities.ports.kafka import LookedUp
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from activities.zk_to_kraft import lookups as migration_lookups
from domain.cluster import ZooKeeperMemberSpec, host_and_port
from domain.contracts import workflow_id
from domain.decisions import Intent
from domain.diagnosis.causes.hints import Serving
from domain.diagnosis.machines.notes import Facts, MachineNote
from domain.diagnosis.machines.vital_signs import VitalSigns
from domain.errors import NotLetIn, OtherLedger
from domain.health.quorum import quorum_leader
from domain.observed.ensemble import MemberTree
from domain.observed.observation import PartitionFault, Unanswered
from domain.questions import BlockersRequest, BlockersSeen
from domain.quorum_log.record_types import RecordType
from domain.records import MigrationRecord, MigrationState, Progress, Waiting
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import case_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import LONG_AGO, FakeCluster
from playground.fakes.hands import in_dual_write, provision, roll
from playground.fakes.machine import text_file
from playground.fakes.metadata_log import FakeLog
from playground.fakes.node import FakeDriver
from playground.fakes.spec import fake_spec
from playground.wanted import wanted_of
from tests.unit.conftest import Point, cluster_spec, observation, signs_of, stopped, with_kafka, with_part
from tests.unit.fake_walk import NOW, LedgerInMemory, add_coordinating_partitions

POLICY = ZkToKraftPolicy(compare_copy=False, compare_messages=False)


@pytest.fixture(autouse=True)
def a_machine_of_ours_that_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else runs where these tests do is nobody's cause."""
    looks: list[dict[str, Any]] = []

    async def look_once(_noted: Facts | None = None) -> dict[str, Any]:
        looks[:] = looks or [await look_here()]
        return looks[0]

    async def watch_ourselves(_self: LinuxDoctor) -> VitalSigns:
        return signs_of()

    for pausing in (metadata, brokers):
        monkeypatch.setattr(pausing, "SECONDS_BETWEEN", 0.01)
    monkeypatch.setattr(machine_notes, "look_here", look_once)
    monkeypatch.setattr(LinuxDoctor, "watch_ourselves", watch_ourselves)


class Ledger(LedgerInMemory):
    """With one migration in it."""

    def __init__(self, cluster: FakeCluster, progress: Progress) -> None:
        super().__init__(cluster)
        self.progress = progress

    async def migration(self, migration_id: str) -> MigrationRecord | None:
        if migration_id != "m1":
            return None
        return MigrationRecord(
            id="m1",
            cluster="orders",
            cluster_id="c",
            kind="zk-to-kraft",
            policy=POLICY,
            wanted=wanted_of(fake_spec()),
            spec_revision=1,
            requested_by="olga",
            created_at=NOW,
            workflow_id=workflow_id("c"),
            progress=self.progress,
        )


class Servers:
    """`ZooKeeperServers`, as told."""

    def __init__(self, *states: Serving, trees: Sequence[MemberTree | None] = ()) -> None:
        self._states, self._trees = list(states), list(trees)
        self.asked: list[tuple[str, int]] = []
        self.counted: list[tuple[str, int]] = []

    async def serving(self, host: str, port: int) -> Serving:
        self.asked.append((host, port))
        return self._states[len(self.asked) - 1] if self._states else Serving.YES

    async def tree(self, host: str, port: int) -> MemberTree | None:
        """One after the other; then as all are that are well."""
        self.counted.append((host, port))
        return self._trees.pop(0) if self._trees else MemberTree(0x100000002, 30)


class Knocked:
    """`Listeners`: Kafka is at its listeners, but for those that are `shut`."""

    def __init__(self, shut: str | set[str] = "", unresolved: str = "", brokers: int = 3) -> None:
        self._unresolved = unresolved
        spec = fake_spec(brokers=brokers)
        controllers = (f"{c.host}:{c.port}" for c in spec.controllers)
        kafka = {*controllers, *(f"{b.host}:9092" for b in spec.brokers), *spec.kafka.bootstrap_servers}
        self._places = kafka - ({shut} if isinstance(shut, str) else shut)

    async def is_answering(self, host: str, port: int) -> bool:
        if host == self._unresolved:
            raise Unresolved(host, "Name or service not known")
        return f"{host}:{port}" in self._places

    async def is_cut_off(self, host: str, port: int) -> bool:
        return False

    async def look_up(self, host: str) -> LookedUp:
        return LookedUp(why_not="Name or service not known") if host == self._unresolved else LookedUp((host,))


async def found(
    cluster: FakeCluster,
    progress: Progress | None = None,
    servers: Servers | None = None,
    listeners: Knocked | None = None,
    ledger: Ledger | None = None,
    **request: Any,
) -> BlockersSeen:
    ledger = ledger or Ledger(cluster, progress or Progress(state=MigrationState.HELD))
    ports = Ports(cast("Any", ledger), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS, LinuxDoctor())
    asked = BlockersRequest(kind="zk-to-kraft", **({"migration_id": "m1", "cluster": "orders", "policy": POLICY} | request))
    seen: BlockersSeen = await ActivityEnvironment().run(
        Blocking(ports, servers or Servers(), listeners or Knocked(), SpecDrivers()).find_blockers, asked
    )
    return seen


def keys(seen: BlockersSeen) -> list[tuple[str, str]]:
    return [(entry.code, entry.object) for entry in seen.blockers]


async def test_a_cluster_that_is_well_has_no_blocker() -> None:
    seen = await found(await in_dual_write())
    assert (keys(seen), seen.phase, seen.unlooked) == ([], "DUAL_WRITE", ())


async def test_the_hold_is_looked_through() -> None:
    """What lies behind it is what somebody who thinks of resuming wants to know."""
    cluster = await in_dual_write()
    cluster.nodes[2].die("java.io.IOException: No space left on device")
    seen = await found(cluster, Progress(state=MigrationState.HELD))
    assert keys(seen) == [("node-down", "broker-2")]
    assert "No space left on device" in seen.blockers[0].observed


async def test_of_one_that_is_down_it_is_told_which_budget_is_used_up() -> None:
    cluster = await in_dual_write()
    cluster.nodes[2].die("java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory")
    cluster.nodes[2].machine.place = {"budgets": [["machine-tasks", "", 32768, 32768]]}
    (entry,) = (await found(cluster)).blockers
    assert entry.observed.endswith("its machine has 32768 processes and threads, of at most 32768")
    assert entry.fix.startswith("Raise kernel.threads-max and kernel.pid_max")


async def test_a_name_that_is_not_resolved_is_named_and_costs_nobody_the_answer() -> None:
    cluster = await in_dual_write()
    cluster.faults.silent_kafka = True
    host, _ = host_and_port(cluster.spec.kafka.bootstrap_servers[0])
    seen = await found(cluster, listeners=Knocked(unresolved=host))
    assert ("part-unknown", f"kafka {cluster.spec.kafka.bootstrap_servers[0]}") not in keys(seen)
    cluster.faults.silent_kafka = False
    controller = cluster.spec.controllers[0].host
    seen = await found(cluster, listeners=Knocked(unresolved=controller))
    assert keys(seen) == [("machine", "keeperless-activities")]
    assert f"{controller}: Name or service not known" in seen.blockers[0].observed


WAITS_FOR_REPLICAS = Waiting(reason=WaitReason.PARTITIONS_NOT_IN_SYNC, means="", since=NOW)
WAITS_FOR_A_PART = Waiting(reason=WaitReason.PART_UNKNOWN, means="", since=NOW, objects=("kafka",))


@pytest.mark.parametrize(
    ("progress", "is_told"),
    [
        (Progress(state=MigrationState.WAITING, waiting=WAITS_FOR_REPLICAS), False),
        (Progress(state=MigrationState.WAITING, waiting=WAITS_FOR_A_PART), True),
        (Progress(state=MigrationState.HELD), True),
        (Progress(state=MigrationState.RUNNING), True),
    ],
)
async def test_what_only_this_look_had_no_time_for_holds_nothing_up(
    progress: Progress, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large cluster, far away: the migration's own looks wait longer for it."""
    cluster = await in_dual_write()
    hang(cluster, monkeypatch)
    seen = await found(cluster, progress)
    assert (("part-unknown", "kafka") in keys(seen)) is is_told
    assert any(part.startswith("kafka: no answer within") for part in seen.unlooked) is not is_told
    if is_told:
        assert "less time than the migration's own" in seen.blockers[0].observed


@pytest.mark.parametrize(("reason", "is_told"), [(WaitReason.PARTITIONS_NOT_IN_SYNC, False), (WaitReason.PART_UNKNOWN, True)])
async def test_a_search_that_only_this_look_had_no_time_for_holds_nothing_up(
    reason: WaitReason, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = FakeCluster()
    await provision(cluster)
    monkeypatch.setattr("activities.zk_to_kraft.suspects.registered_controllers", lambda *_: asyncio.Event().wait())
    monkeypatch.setattr("activities.diagnosis.find_blockers.OBSERVATION_SECONDS", 1.5)
    waiting = Waiting(reason=reason, means="", since=NOW)
    seen = await found(cluster, Progress(state=MigrationState.WAITING, waiting=waiting))
    assert (("part-unknown", "which controllers have registered") in keys(seen)) is is_told
    assert any(part.startswith("registrations: no answer within") for part in seen.unlooked) is not is_told


@pytest.mark.parametrize("state", [MigrationState.WAITING, MigrationState.HELD])
async def test_a_broker_that_answers_no_request_is_named_where_all_of_kafka_is_late(
    state: MigrationState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the migration waits for: no longer look would end."""
    cluster = await in_dual_write()
    cluster.faults.mute_brokers = {2}
    cluster.nodes[2].machine.signs["unread"] = 4
    hang(cluster, monkeypatch)
    waiting = WAITS_FOR_REPLICAS if state is MigrationState.WAITING else None
    seen = await found(cluster, Progress(state=state, waiting=waiting))
    (entry,) = (entry for entry in seen.blockers if entry.code == "part-unknown")
    assert (entry.object, "broker-2:9092" in entry.observed) == ("broker-2", True)
    assert "broker-1, broker-3 answer" in entry.observed
    assert "what 4 of its connections have brought" in entry.observed
    assert not any(part.startswith("kafka:") for part in seen.unlooked)


def hang(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(cluster, "view", slow)
    monkeypatch.setattr("activities.diagnosis.find_blockers.PART_SECONDS", 1.0)


async def test_what_was_left_out_for_want_of_time_is_told_where_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the API, which knows what else there is."""
    cluster = await in_dual_write()
    hang(cluster, monkeypatch)
    seen = await found(cluster, Progress(state=MigrationState.WAITING, waiting=WAITS_FOR_REPLICAS))
    assert (keys(seen), [(entry.code, entry.object) for entry in seen.late]) == ([], [("part-unknown", "kafka")])
    assert "each of broker-1, broker-2, broker-3 answers" in seen.late[0].observed


async def test_what_may_explain_it_is_looked_up_beside_a_look_that_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nothing comes before that: and what does come at last counts."""
    monkeypatch.setattr("activities.diagnosis.find_blockers.EARLY_SECONDS", 0.1)
    cluster, is_asked = await in_dual_write(), asyncio.Event()
    view, ask = cluster.view, cluster.ask_broker

    async def late(record: Any) -> Any:
        await is_asked.wait()
        return await view(record)

    async def asked(*args: Any) -> None:
        is_asked.set()
        await ask(*args)

    monkeypatch.setattr(cluster, "view", late)
    monkeypatch.setattr(cluster, "ask_broker", asked)
    chosen: list[tuple[bool, bool]] = []
    hinting = lookups.Hinting.hints

    async def noting(self: lookups.Hinting, *args: Any) -> Any:
        is_told = any(part.what == "kafka" for part in args[0].observation.unanswered)
        chosen.append((args[0].observation.kafka is not None, is_told))
        return await hinting(self, *args)

    monkeypatch.setattr(lookups.Hinting, "hints", noting)
    assert keys(await found(cluster)) == []
    assert is_asked.is_set()
    assert chosen == [(False, True), (True, False)], "what explains the rest is chosen by what has come late"
    chosen.clear()
    hang(cluster, monkeypatch)
    assert keys(await found(cluster)) == [("part-unknown", "kafka")]
    assert chosen == [(False, True)], "once, where it has not come"


async def test_kafka_is_no_matter_of_time_where_a_broker_was_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the one that is mute."""
    cluster = await in_dual_write()
    hang(cluster, monkeypatch)
    ask = cluster.ask_broker

    async def late(record: Any, broker_id: int, address: str, seconds: float) -> None:
        await (asyncio.sleep(60) if broker_id == 2 else ask(record, broker_id, address, seconds))

    monkeypatch.setattr(cluster, "ask_broker", late)
    monkeypatch.setattr("activities.observing.in_time.HINT_SECONDS", 1.5)
    seen = await found(cluster, Progress(state=MigrationState.WAITING, waiting=WAITS_FOR_REPLICAS))
    assert keys(seen) == [("part-unknown", "kafka")]
    assert "of broker-2 this look has heard nothing" in seen.blockers[0].observed


async def test_no_broker_is_asked_by_itself_where_kafka_answers_or_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = await in_dual_write()
    await found(cluster)
    assert cluster.asked_alone == []

    async def refused(_: object) -> None:
        raise NotLetIn("wrong password")

    monkeypatch.setattr(cluster, "view", refused)
    assert keys(await found(cluster)) == [("part-unknown", "kafka client_properties")]
    assert cluster.asked_alone == []


async def test_of_many_brokers_the_one_that_does_not_answer_has_its_machine_asked() -> None:
    cluster = await in_dual_write(FakeCluster(fake_spec(brokers=8)))
    cluster.faults.mute_brokers = {8}
    cluster.nodes[8].machine.signs["stuck_threads"] = 4
    seen = await found(cluster, listeners=Knocked(brokers=8))
    assert keys(seen) == [("part-unknown", "broker-8")]
    assert "4 of its threads wait in the kernel" in seen.blockers[0].observed


async def test_configuration_management_that_only_this_look_had_no_time_for_counts_as_it_was() -> None:
    seen = observation(Point.DUAL_WRITE)
    slow = Unanswered(what="configuration management of broker-2", why="no answer within 5 s", is_cut_short=True)
    before = _as_seen_before(seen, cluster_spec(), [slow])
    assert (before.node(2).is_configuration_paused, before.node(1).is_configuration_paused) == (True, None)


async def noted(cluster: FakeCluster) -> Ledger:
    """The ledger, with notes of all nodes as they are."""
    ledger = Ledger(cluster, Progress(state=MigrationState.RUNNING))
    ports = Ports(cast("Any", ledger), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS, LinuxDoctor())
    observation = await observe(cluster.record(), ports)
    await ActivityEnvironment().run(MachineNotes(ports, SpecDrivers()).keep, "m1", cluster.record(), observation)
    return ledger


async def test_what_has_changed_on_the_machine_of_a_node_in_trouble_is_told() -> None:
    cluster = await in_dual_write()
    ledger = await noted(cluster)
    cluster.nodes[2].die("java.io.IOException: No space left on device")
    cluster.nodes[2].machine.facts["sysctl"]["vm.max_map_count"] = "65530"
    cluster.nodes[2].machine.kernel = [(0.0, "EXT4-fs error (device sdb): bad block")]
    seen = await found(cluster, ledger=ledger)
    assert keys(seen) == [("node-down", "broker-2")]
    assert "Changed on its machine since " in seen.blockers[0].observed
    assert seen.blockers[0].observed.endswith(
        "UTC: vm.max_map_count: 262144 → 65530. Its kernel has said: EXT4-fs error (device sdb): bad block"
    )
    assert seen.blockers[0].fix.endswith("restore what was not intended.")


async def test_of_a_dead_node_the_logs_are_read_that_it_wrote_into_when_it_was_noted() -> None:
    cluster = await in_dual_write()
    node, log = cluster.nodes[2], "/var/log/kafka/server.log"
    node.machine.facts["log"] = {log: "open"}
    ledger = await noted(cluster)
    node.die()
    node.output, node.logs = [], {log: ["[2026-03-01 12:00:00,000] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)"]}
    seen = await found(cluster, ledger=ledger)
    assert keys(seen) == [("node-down", "broker-2")]
    assert "Exiting Kafka due to fatal exception" in seen.blockers[0].observed
    assert "Changed on its machine" not in seen.blockers[0].observed, "logs come and go"


async def test_where_nobody_may_read_what_a_kernel_says_that_is_told() -> None:
    """And what it has killed for memory is counted for everybody."""
    cluster = await in_dual_write()
    machine = cluster.nodes[2].machine
    machine.facts["kill"] = {"": "0"}
    ledger = await noted(cluster)
    cluster.nodes[2].die("[2026-03-01 12:00:00,000] INFO Rolled new log segment (kafka.log.LocalLog)")
    machine.kernel, machine.facts["kill"] = None, {"": "1"}
    seen = await found(cluster, ledger=ledger)
    assert "The kernel has killed 1 process of its machine for want of memory since" in seen.blockers[0].observed
    assert any(words.startswith("what the kernel of the machine of broker-2 has logged: only root") for words in seen.unlooked)


async def test_where_nothing_is_in_the_way_a_change_is_no_entry() -> None:
    cluster = await in_dual_write()
    ledger = await noted(cluster)
    cluster.nodes[2].machine.facts["sysctl"]["vm.max_map_count"] = "65530"
    seen = await found(cluster, ledger=ledger)
    assert (keys(seen), seen.changed) == ([], ())


async def test_a_node_in_hand_on_whose_machine_something_has_changed_is_told_beside_other_trouble() -> None:
    cluster = await in_dual_write()
    ledger = await noted(cluster)
    cluster.nodes[2].machine.facts["sysctl"]["vm.max_map_count"] = "65530"
    seen = await found(cluster, ledger=ledger, in_hand=("broker-2",))
    assert keys(seen) == []
    assert [(entry.code, entry.object) for entry in seen.changed] == [("machine", "broker-2")]
    assert "vm.max_map_count: 262144 → 65530" in seen.changed[0].observed


async def test_every_server_of_the_ensemble_is_asked() -> None:
    cluster = await in_dual_write()
    addresses = cluster.spec.ensemble.connect.partition("/")[0].split(",")
    servers = Servers(*[Serving.YES] * (len(addresses) - 1), Serving.SILENT)
    seen = await found(cluster, servers=servers)
    assert [f"{host}:{port}" for host, port in servers.asked] == addresses
    assert keys(seen) == [("GF11", f"zookeeper {addresses[-1]}")]


FULL, POOR, AHEAD = MemberTree(0x1000000A0, 30), MemberTree(0x1000000A0, 28), MemberTree(0x1000000A1, 30)
LEADS = replace(FULL, is_leader=True)


@pytest.mark.parametrize(
    ("looks", "is_told", "asked"),
    [
        ([(FULL, LEADS, FULL)], False, 1),
        ([(FULL, LEADS, POOR)] * 2, True, 2),
        ([(FULL, LEADS, POOR), (FULL, LEADS, FULL)], False, 2),
        ([(FULL, LEADS, POOR), (POOR, LEADS, FULL), (FULL, LEADS, FULL)], False, 3),
        ([(FULL, LEADS, POOR), (FULL, LEADS, AHEAD), (FULL, LEADS, POOR)], True, 3),
        ([(AHEAD, LEADS, MemberTree(7, 2))] * 5, False, 5),
        ([(None, LEADS, POOR)] * 2, True, 2),
        ([(None, LEADS, None)], False, 1),
    ],
    ids=["agree", "differ", "a race", "two races", "is asked amid writes", "never as far", "one is mute", "one tells"],
)
async def test_members_with_different_trees_are_told_where_they_are_seen_so_twice(
    looks: list[tuple[MemberTree | None, ...]], is_told: bool, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member_trees, "PAUSE_SECONDS", 0.001)
    servers = Servers(trees=[tree for look in looks for tree in look])
    seen = await found(await in_dual_write(), servers=servers)
    assert [entry.code for entry in seen.blockers] == ["GF11"] * is_told
    assert len(servers.counted) == 3 * asked


@pytest.mark.parametrize(
    ("states", "asked"),
    [
        ((Serving.YES, Serving.SILENT, Serving.YES), 2),
        ((Serving.YES, Serving.SILENT, Serving.STUCK), 0),
    ],
)
async def test_only_members_that_serve_are_asked_how_much_they_have(states: tuple[Serving, ...], asked: int) -> None:
    servers = Servers(*states)
    await found(await in_dual_write(), servers=servers)
    assert len(servers.counted) == asked


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_server_that_does_not_serve_is_told_of_in_its_own_words(tmp_path: Path, *, is_told: bool) -> None:
    """Where its log is, somebody has said, or it was noted while it ran."""
    cluster = await in_dual_write()
    address = cluster.spec.ensemble.connect.partition("/")[0].split(",")[0]
    host, port = host_and_port(address)
    log = tmp_path / "zookeeper.log"
    log.write_text(
        "x" * 300_000 + "\n[2026-11-23 08:26:36,822] ERROR Unable to load database on disk (…QuorumPeer)\n"
        "java.io.IOException: Found null in /data/version-2/currentEpoch\n"
    )
    file = str(log) if is_told else None
    members = tuple(ZooKeeperMemberSpec(host=host, port=at, data_dir="/data", output_file=file) for at in (port, port + 1))
    zookeeper = cluster.spec.ensemble.model_copy(update={"members": members})
    cluster.spec = cluster.spec.model_copy(update={"zookeeper": zookeeper})
    ledger = Ledger(cluster, Progress(state=MigrationState.WAITING))
    noted_log = {} if is_told else {"log": {str(log): "open"}}
    await ledger.put_note("m1", MachineNote(about=f"zookeeper {address}", at=NOW, identity=None, facts=noted_log))
    seen = await found(cluster, servers=Servers(Serving.REFUSED, *[Serving.YES] * 9), ledger=ledger)
    (entry,) = seen.blockers
    assert "Its log says: Found null in /data/version-2/currentEpoch." in entry.observed
    assert "move currentEpoch and acceptedEpoch away" in entry.fix


@pytest.mark.parametrize("is_cut_off", [True, False])
async def test_the_log_of_a_member_that_serves_is_read_where_a_node_gets_no_session(tmp_path: Path, is_cut_off: bool) -> None:
    cluster = await in_dual_write()
    host, port = host_and_port(cluster.spec.ensemble.connect.partition("/")[0].split(",")[0])
    log = tmp_path / "zookeeper.log"
    log.write_text("WARN Message:Error accepting new connection: Too many connections from /10.0.0.1 - max is 60 Value:null\n")
    member = ZooKeeperMemberSpec(host=host, port=port, data_dir="/data", output_file=str(log))
    zookeeper = cluster.spec.ensemble.model_copy(update={"members": (member,)})
    cluster.spec = cluster.spec.model_copy(update={"zookeeper": zookeeper})
    timeout = "kafka.zookeeper.ZooKeeperClientTimeoutException: Timed out waiting for connection while in state: CONNECTING"
    cluster.nodes[2].die(timeout if is_cut_off else "java.io.IOException: No space left on device")
    (entry,) = (await found(cluster)).blockers
    assert ("Too many connections from /10.0.0.1 - max is 60" in entry.observed) is is_cut_off


async def test_the_log_of_a_member_that_serves_tells_that_its_tree_is_not_the_leaders(tmp_path: Path) -> None:
    cluster = await in_dual_write()
    address = cluster.spec.ensemble.connect.partition("/")[0].split(",")[0]
    host, port = host_and_port(address)
    log = tmp_path / "zookeeper.log"
    log.write_text("[2026-11-24 04:34:23,896] WARN Message:Digests are not matching. Value is Zxid. Value:8589934593 (x)")
    member = ZooKeeperMemberSpec(host=host, port=port, data_dir="/data", output_file=str(log))
    zookeeper = cluster.spec.ensemble.model_copy(update={"members": (member,)})
    cluster.spec = cluster.spec.model_copy(update={"zookeeper": zookeeper})
    (entry,) = (await found(cluster)).blockers
    assert (entry.code, entry.object) == ("GF11", f"zookeeper {address}")


@pytest.mark.parametrize("states", [(), (Serving.NO, Serving.LEADS)])
async def test_a_log_of_a_member_that_may_not_be_read_is_told_where_it_is_missed(
    tmp_path: Path, states: tuple[Serving, ...]
) -> None:
    cluster = await in_dual_write()
    address = cluster.spec.ensemble.connect.partition("/")[0].split(",")[0]
    host, port = host_and_port(address)
    member = ZooKeeperMemberSpec(host=host, port=port, data_dir=str(tmp_path), output_file=str(tmp_path))
    zookeeper = cluster.spec.ensemble.model_copy(update={"members": (member,)})
    cluster.spec = cluster.spec.model_copy(update={"zookeeper": zookeeper})
    seen = await found(cluster, servers=Servers(*states, *[Serving.YES] * 9) if states else None)
    assert any(part.startswith(f"log of zookeeper {address}") for part in seen.unlooked) is bool(states)


async def test_what_lies_in_the_data_directories_of_members_is_looked_at(tmp_path: Path) -> None:
    cluster = await in_dual_write()
    addresses = [host_and_port(address) for address in cluster.spec.ensemble.connect.partition("/")[0].split(",")]
    members = tuple(
        ZooKeeperMemberSpec(host=host, port=port, data_dir=str(tmp_path / str(number)))
        for number, (host, port) in enumerate(addresses)
    )
    for member in members:
        Path(member.data_dir, "version-2").mkdir(parents=True)  # noqa: ASYNC240
        Path(member.data_dir, "version-2", "snapshot.0").touch()  # noqa: ASYNC240
        Path(member.data_dir, "myid").write_text("1\n")  # noqa: ASYNC240
    zookeeper = cluster.spec.ensemble.model_copy(update={"members": members})
    cluster.spec = cluster.spec.model_copy(update={"zookeeper": zookeeper})
    seen = await found(cluster, servers=Servers(Serving.NO, Serving.LEADS, *[Serving.YES] * (len(members) - 2)))
    (entry,) = seen.blockers
    assert "Its dataDir/myid says 1, and so does that of " in entry.observed


async def test_a_member_whose_files_are_deleted_under_it_is_found_while_all_is_well(tmp_path: Path) -> None:
    cluster = await in_dual_write()
    host, port = host_and_port(cluster.spec.ensemble.connect.partition("/")[0].split(",")[0])
    member = ZooKeeperMemberSpec(host=host, port=port, data_dir=str(tmp_path))
    zookeeper = cluster.spec.ensemble.model_copy(update={"members": (member,)})
    cluster.spec = cluster.spec.model_copy(update={"zookeeper": zookeeper})
    version = tmp_path / "version-2"
    version.mkdir()
    (version / "snapshot.0").touch()
    assert keys(await found(cluster)) == []
    (version / "snapshot.0").unlink()
    assert keys(await found(cluster)) == [("GF11", f"zookeeper {host}:{port}")]
    version.rmdir()
    assert keys(await found(cluster)) == [("GF11", f"zookeeper {host}:{port}")]
    tmp_path.rmdir()  # noqa: ASYNC240
    assert keys(await found(cluster)) == [], "a path inside its container"


async def test_a_node_in_hand_is_left_out() -> None:
    cluster = await in_dual_write()
    cluster.nodes[2].die()
    assert keys(await found(cluster, in_hand=("broker-2",))) == []


@pytest.mark.parametrize("is_down", [False, True])
async def test_of_a_node_in_hand_it_is_told_that_no_program_comes_back_on_its_machine(
    is_down: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name service of users hangs: `sudo`, `id` and a shell's start-up files wait for it, and files can be read."""
    cluster = await in_dual_write()
    broker = cluster.nodes[2]
    if is_down:
        broker.die()
    run_there, read_there = FakeDriver.run, FakeDriver.output

    async def run(driver: FakeDriver, arguments: Sequence[str], *others: Any) -> Any:
        if driver._simulated is broker and arguments[0] == "python3":
            await asyncio.Event().wait()
        return await run_there(driver, arguments, *others)

    async def read(driver: FakeDriver, *asked: Any) -> Any:
        if driver._simulated is broker:
            await asyncio.Event().wait()
        return await read_there(driver, *asked)

    monkeypatch.setattr(FakeDriver, "run", run)
    monkeypatch.setattr(lookups, "HINTS_SECONDS", 1.5)
    step = {"in_hand": ("broker-2",), "step_since": datetime.now(UTC) - timedelta(seconds=9)}
    assert keys(await found(cluster, **step)) == [], "its log comes: others tell what is in it"
    monkeypatch.setattr(FakeDriver, "output", read)
    (entry,) = (await found(cluster, **step)).blockers
    assert (entry.code, entry.object) == ("machine", "broker-2")
    assert "programs that run on its machine do not end: " in entry.observed
    assert "log of broker-2: no answer within " in entry.observed
    assert "`getent passwd`" in entry.fix
    assert keys(await found(cluster, **step | {"step_since": None})) == [], "nobody knows for how long"


async def test_the_wait_that_the_ledger_knows_gives_the_age() -> None:
    cluster = await in_dual_write()
    cluster.nodes[2].die()
    waiting = Waiting(reason=WaitReason.NODE_DOWN, means="-", since=NOW, objects=("broker-2",))
    seen = await found(cluster, Progress(state=MigrationState.WAITING, waiting=waiting))
    assert seen.blockers[0].since == NOW


async def test_dead_ids_are_looked_up_where_they_are_assigned() -> None:
    cluster = FakeCluster()
    await provision(cluster)
    path = "/brokers/topics/orders"
    content = json.loads(cluster.znodes[path])
    content["partitions"]["0"].append(9)
    cluster.znodes[path] = json.dumps(content).encode()
    seen = await found(cluster)
    entry = next(entry for entry in seen.blockers if entry.object == "broker 9")
    assert "orders-0" in entry.observed


async def test_a_log_that_does_not_answer_is_named_and_the_rest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = await in_dual_write()
    cluster.nodes[2].die()

    class Slow:
        def __init__(self, driver: Any) -> None:
            self._driver = driver

        def __getattr__(self, name: str) -> Any:
            return getattr(self._driver, name)

        async def output(self, _lines: int, _logs: object) -> None:
            await asyncio.sleep(60)

    class Drivers:
        def driver(self, node: Any) -> Any:
            return Slow(cluster.driver(node))

    monkeypatch.setattr("activities.observing.in_time.HINT_SECONDS", 1.0)
    ledger = Ledger(cluster, Progress(state=MigrationState.HELD))
    ports = Ports(
        cast("Any", ledger), cast("Any", Drivers()), cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS, LinuxDoctor()
    )
    asked = BlockersRequest(kind="zk-to-kraft", migration_id="m1", cluster="orders", policy=POLICY)
    seen: BlockersSeen = await ActivityEnvironment().run(
        Blocking(ports, Servers(), Knocked(), SpecDrivers()).find_blockers, asked
    )
    assert keys(seen) == [("node-down", "broker-2")]
    assert any(part.startswith("log of broker-2: no answer") for part in seen.unlooked)


HUNG = (1, 3001)
"""The active controller among them, in whose log the look searches for more."""


@pytest.mark.parametrize("hangs", ["properties", "metadata log"])
async def test_files_that_hang_cost_look_after_look_only_their_own_nodes(
    hangs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open() that stands in the kernel, as on a mount that is dead, keeps its thread: here in each node's file."""
    cluster = FakeCluster()
    await provision(cluster)
    if hangs == "metadata log":
        monkeypatch.setattr("activities.zk_to_kraft.suspects.registered_controllers", lambda *_: asyncio.Event().wait())
    released, machine, calls = threading.Event(), LocalMachine(), 0

    def read(path: Path) -> FileContent:
        nonlocal calls
        calls += 1
        released.wait(60)
        return text_file(path.name)

    class Here(FakeDriver):
        """Its properties file is one of this machine's."""

        async def read_file(self, path: str) -> FileContent | None:
            node = self._simulated.spec
            if hangs == "properties" and node.id in HUNG and path == node.properties_file:
                return await machine.read_file(str(tmp_path / str(node.id)))
            return await super().read_file(path)

    drivers = SimpleNamespace(driver=lambda node: Here(cluster.nodes[node.id], cluster.faults))
    monkeypatch.setattr("activities.adapters.nodes.local._read", read)
    monkeypatch.setattr("activities.diagnosis.find_blockers.PART_SECONDS", 1.0)
    monkeypatch.setattr("activities.diagnosis.find_blockers.OBSERVATION_SECONDS", 2.0)
    ledger = Ledger(cluster, Progress(state=MigrationState.HELD))
    ports = Ports(
        cast("Any", ledger), cast("Any", drivers), cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS, LinuxDoctor()
    )
    blocking = Blocking(ports, Servers(), Knocked(), SpecDrivers())
    threads = ThreadPoolExecutor(len(HUNG) + 2)
    asyncio.get_running_loop().set_default_executor(threads)
    try:
        for _ in range(len(HUNG) + 3):
            asked = BlockersRequest(kind="zk-to-kraft", migration_id="m1", cluster="orders", policy=POLICY)
            async with asyncio.timeout(20):
                seen: BlockersSeen = await ActivityEnvironment().run(blocking.find_blockers, asked)
            told = {entry.object: entry.observed for entry in seen.blockers}
            if hangs == "properties":
                assert set(told) == {cluster.spec.node_name(node_id) for node_id in HUNG}
                assert all(words.startswith("files: no answer within ") for words in told.values())
            else:
                assert list(told) == ["which controllers have registered"]
                assert told["which controllers have registered"].startswith("no answer within ")
    finally:
        released.set()
    assert calls == (len(HUNG) if hangs == "properties" else 0), "who waits for a file takes no thread"


async def test_a_search_that_follows_another_ends_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has a port is asked once the log has named it: that must not cost who waits all the rest."""
    cluster = await in_dual_write()
    cluster.nodes[2].die("org.apache.kafka.common.KafkaException: Socket server failed to bind to 0.0.0.0:9092: in use.")

    async def hangs(*_: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(LinuxDoctor, "holders", hangs)
    monkeypatch.setattr("activities.observing.in_time.HINT_SECONDS", 60)
    monkeypatch.setattr(lookups, "HINTS_SECONDS", 2.0)
    seen = await asyncio.wait_for(found(cluster), 10)
    assert keys(seen) == [("node-down", "broker-2")]
    assert "failed to bind" in seen.blockers[0].observed
    assert any(part.startswith("who has the ports of broker-2: no answer within") for part in seen.unlooked)


async def test_a_broker_that_serves_and_never_registers_is_named_with_its_own_words() -> None:
    cluster = FakeCluster()
    await provision(cluster)
    cluster.faults.never_registers.add(1)
    await roll(cluster, 1, NodeStage.MIGRATION)
    cluster.advance(9)
    cluster.nodes[1].output.append("Unable to register broker 1 because the controller returned error UNSUPPORTED_VERSION")
    seen = await found(cluster)
    assert ("brokers-not-registered", "broker-1") in keys(seen)


async def test_on_the_way_back_a_loss_that_may_have_been_accepted_is_no_blocker() -> None:
    """A preview's hash accepts what it names: only the migration knows. Where it waits for it, it is told."""
    cluster = await in_dual_write()
    node = cluster.nodes[1]
    text = node.machine.read(node.spec.properties_file)
    assert text is not None
    node.machine.write(node.spec.properties_file, text_file(text.content.decode() + "\n# edited\n"))
    back = Progress(state=MigrationState.REVERTING, intent=Intent.REVERT)
    assert "file-changed" not in {entry.code for entry in (await found(cluster, back)).blockers}
    waiting = Waiting(reason=WaitReason.FILE_CHANGED, means="-", since=NOW, objects=("broker-1",))
    waits = back.model_copy(update={"waiting": waiting})
    assert "file-changed" in {entry.code for entry in (await found(cluster, waits)).blockers}


async def test_a_migration_that_the_ledger_does_not_know_is_an_error() -> None:
    with pytest.raises(OtherLedger, match="migration m2 is not in the ledger of this worker, memory"):
        await found(await in_dual_write(), migration_id="m2")


async def test_a_silent_ensemble_and_silent_brokers_are_two_entries() -> None:
    cluster = await in_dual_write()
    cluster.faults.silent_zookeeper = True
    cluster.faults.silent_kafka = True
    servers = Servers(Serving.YES, Serving.YES, Serving.YES)
    assert {entry.object for entry in (await found(cluster, servers=servers)).blockers} == {"ZooKeeper", "kafka"}


async def test_the_log_of_a_node_whose_metrics_are_silent_is_read() -> None:
    cluster = await in_dual_write()
    cluster.faults.silent_metrics = {2}
    cluster.nodes[2].output.append("java.io.IOException: Too many open files")
    seen = await found(cluster)
    (entry,) = seen.blockers
    assert (entry.code, entry.object, "LimitNOFILE" in entry.fix) == ("part-unknown", "broker-2", True)


async def test_a_controller_that_nobody_reaches_is_named_though_it_follows() -> None:
    """It has every record, and can neither vote nor lead: no gauge of its own shows that."""
    cluster = await in_dual_write()
    controller = cluster.record().spec.controllers[0]
    address = f"{controller.host}:{controller.port}"
    (entry,) = (await found(cluster, listeners=Knocked(shut=address))).blockers
    assert (entry.code, entry.object) == ("controllers-not-ready", cluster.record().spec.node_name(controller.id))
    assert address in entry.observed
    assert keys(await found(cluster, listeners=Knocked(shut=address), in_hand=(entry.object,))) == []
    cluster.nodes[controller.id].machine.signs["unsent"] = [["broker-1:9092", 70_000, None]]
    (entry,) = (await found(cluster, listeners=Knocked(shut=address))).blockers
    assert "waits in its machine's queues" in entry.observed, "its machine is asked, and says why"


FIRST_LINE = "[2026-11-20 03:00:00,000] INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jController$)"
FAILED = (
    "[2026-11-20 02:59:58,000] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)",
    "org.apache.kafka.common.KafkaException: Failed to acquire lock on file .lock in /data/2. A Kafka instance in another "
    "process or thread is using this directory.",
)


@pytest.mark.parametrize("is_looping", [True, False])
@pytest.mark.parametrize("has_said_something", [True, False])
async def test_a_node_that_was_started_since_the_look_was_not_killed(
    monkeypatch: pytest.MonkeyPatch, *, is_looping: bool, has_said_something: bool
) -> None:
    """Its output ends amid ordinary lines, as that of everybody does who runs. Whoever starts it again and again has to be told
    what it dies of."""
    cluster = await in_dual_write()
    cluster.nodes[2].die(*(FAILED if is_looping else ()), *((FIRST_LINE,) if has_said_something else ()))
    driver = cluster.driver(cluster.spec.node(2))
    output = type(driver).output

    said = await output(driver, 100)

    async def starts(itself: Any, lines: int) -> Any:
        if itself is not driver:
            return await output(itself, lines)
        await driver.start()
        return said

    monkeypatch.setattr(cluster, "driver", lambda node, of=cluster.driver: driver if node.id == 2 else of(node))
    monkeypatch.setattr(type(driver), "output", starts)
    (entry,) = (await found(cluster)).blockers
    assert (entry.code, entry.object) == ("node-not-ready", "broker-2")
    assert "was started while its log was read" in entry.observed
    assert ("Failed to acquire lock" in entry.observed) is is_looping
    assert ("Where it ends again" in entry.fix) is is_looping


async def test_a_controller_that_has_ended_since_the_look_is_none_that_nobody_reaches() -> None:
    """As where the way back has just stopped it."""

    class Ends(Knocked):
        async def is_answering(self, host: str, port: int) -> bool:
            cluster.nodes[controller.id].die()
            return await super().is_answering(host, port)

    cluster = await in_dual_write()
    controller = cluster.record().spec.controllers[0]
    assert keys(await found(cluster, listeners=Ends(shut=f"{controller.host}:{controller.port}"))) == []


async def test_where_kafka_is_silent_the_broker_that_nobody_reaches_is_named() -> None:
    """Whether it is among the bootstrap servers or not."""
    cluster = await in_dual_write()
    cluster.faults.silent_kafka = True
    for broker in cluster.spec.brokers:
        address = f"broker-{broker.id}:9092"
        (entry,) = (await found(cluster, listeners=Knocked(shut=address))).blockers
        assert (entry.code, entry.object) == ("part-unknown", f"broker-{broker.id}")
        assert address in entry.observed
        assert "firewall" in entry.fix


async def test_an_address_that_takes_every_second_connection_is_told_as_such() -> None:
    class EverySecond(Knocked):
        knocks = 0

        async def is_answering(self, host: str, port: int) -> bool:
            self.knocks += host == "broker-2"
            return await super().is_answering(host, port) and (host != "broker-2" or self.knocks % 2 == 1)

    cluster = await in_dual_write()
    cluster.faults.silent_kafka = True
    (entry,) = (await found(cluster, listeners=EverySecond())).blockers
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert "4 of 8 connections that were opened to broker-2:9092 at the same time got through" in entry.observed


async def test_a_broker_in_kraft_mode_is_looked_for_where_its_file_says() -> None:
    cluster = await in_dual_write()
    for broker in cluster.spec.brokers:
        await roll(cluster, broker.id, NodeStage.KRAFT)
    cluster.advance(9)
    cluster.faults.silent_kafka = True
    assert "/brokers/ids/2" not in cluster.znodes
    (entry,) = (await found(cluster, listeners=Knocked(shut="broker-2:9092"))).blockers
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert cluster.spec.node(2).properties_file in entry.fix


async def test_where_we_reach_nobody_the_bootstrap_servers_are_named() -> None:
    cluster = await in_dual_write()
    cluster.faults.silent_kafka = True
    shut = {f"broker-{broker.id}:9092" for broker in cluster.spec.brokers}
    seen = await found(cluster, listeners=Knocked(shut=shut))
    assert keys(seen) == [("part-unknown", f"kafka {address}") for address in cluster.spec.kafka.bootstrap_servers]


async def test_an_address_that_somebody_has_set_dynamically_is_told_as_such() -> None:
    cluster = FakeCluster()
    cluster.faults.silent_kafka = True
    wrong = "PLAINTEXT://127.0.0.1:1"
    cluster.znodes["/brokers/ids/3"] = json.dumps({"version": 5, "endpoints": [wrong]}).encode()
    cluster.znodes["/config/brokers/3"] = json.dumps({"version": 1, "config": {"advertised.listeners": wrong}}).encode()
    (entry,) = (await found(cluster)).blockers
    assert (entry.code, entry.object) == ("part-unknown", "broker-3")
    assert "127.0.0.1:1" in entry.observed
    assert "/config/brokers/3" in entry.observed
    assert "/config/changes" in entry.fix


async def test_a_broker_that_nobody_reaches_explains_the_replicas_that_it_leads() -> None:
    """Kafka answers where the others' listeners are asked only, as through a load balancer's address."""
    cluster = await lagging(leader=1)
    assert keys(await found(cluster)) == [("partitions-not-in-sync", "broker-3")]
    (entry,) = (await found(cluster, listeners=Knocked(shut="broker-1:9092"))).blockers
    assert (entry.code, entry.object) == ("part-unknown", "broker-1")


async def test_the_logs_between_which_replicas_lag_are_read() -> None:
    """Although their brokers serve."""
    cluster = await lagging(leader=1)
    said = "[ReplicaFetcher replicaId=3, leaderId=1, fetcherId=0] Partition orders-0 marked as failed (kafka.server.X)"
    cluster.nodes[3].output.append(f"[2026-11-20 03:00:00,000] WARN {said}")
    (entry,) = (await found(cluster)).blockers
    assert (entry.code, entry.object) == ("partitions-not-in-sync", "broker-3")
    assert "Partition orders-0 marked as failed" in entry.observed
    assert "restart broker-3" in entry.fix
    assert "by themselves" not in entry.fix


async def lagging(leader: int) -> FakeCluster:
    """Broker 3 serves again, and has replicas to catch up with, which another broker leads."""
    cluster = await in_dual_write()
    cluster.nodes[3].die()
    cluster.nodes[3].start()
    for broker_id in (1, 2):
        process = cluster.nodes[broker_id].process
        assert process is not None
        process.looks = LONG_AGO
    cluster._catch_up_looks = 99
    cluster.advance(5)
    cluster.leaders.of.update(dict.fromkeys(cluster.leaders.of, leader))
    return cluster


async def test_a_topic_that_brokers_serve_and_zookeeper_has_forgotten_is_told_until_the_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topics, "SETTLED_SECONDS", 0.0)
    cluster = FakeCluster()
    cluster.faults.remembered_topics = {"refunds"}
    (entry,) = [e for e in (await found(cluster)).blockers if e.code == "GF02"]
    assert entry.object == "topic refunds"
    cluster = await in_dual_write()
    cluster.faults.remembered_topics = {"refunds"}
    assert keys(await found(cluster)) == []


async def test_a_topic_that_loses_its_id_in_dual_write_is_told_with_the_id_to_put_back() -> None:
    cluster = await in_dual_write()
    path = "/brokers/topics/orders"
    content = json.loads(cluster.znodes[path])
    topic_id = content.pop("topic_id")
    cluster.znodes[path] = json.dumps(content).encode()
    for broker in cluster.spec.brokers:
        metadata = FileContent(f"version: 0\ntopic_id: {topic_id}\n".encode(), 0o644, 0, 0)
        cluster.nodes[broker.id].machine.write(f"{broker.log_dirs[0]}/orders-0/partition.metadata", metadata)
    (entry,) = (await found(cluster)).blockers
    assert (entry.code, entry.object) == ("topic-without-id", "topic orders")
    assert topic_id in entry.observed
    assert f'"topic_id":"{topic_id}"' in entry.fix
    assert "do not delete /controller" in entry.fix


async def test_partitions_that_coordinate_and_that_brokers_do_not_count_are_told_before_any_restart() -> None:
    cluster = await in_dual_write()
    add_coordinating_partitions(cluster)
    assert keys(await found(cluster)) == [("PF46", "topic __consumer_offsets")]


async def test_a_parent_that_somebody_has_deleted_is_told() -> None:
    cluster = await in_dual_write()
    del cluster.znodes["/config/changes"]
    assert keys(await found(cluster)) == [("GF11", "/config/changes")]


async def test_where_replicas_lag_their_brokers_are_asked_whether_they_are_themselves() -> None:
    cluster = await in_dual_write()
    cluster.nodes[3].die()
    cluster.nodes[3].start()
    cluster._catch_up_looks = 99
    cluster.advance(5)
    assert {code for code, _ in keys(await found(cluster))} == {"partitions-not-in-sync"}
    cluster.faults.led_elsewhere = {3: 1}
    assert ("part-unknown", "broker-3") in keys(await found(cluster))


async def test_throttles_are_looked_for_where_replicas_lag() -> None:
    cluster = await in_dual_write()
    cluster.znodes["/config/brokers/1"] = b'{"version":1,"config":{"follower.replication.throttled.rate":"10"}}'
    cluster.znodes["/config/brokers/2"] = b'{"version":1,"config":{"log.cleaner.threads":"2"}}'
    assert keys(await found(cluster)) == []
    cluster.nodes[3].die()
    cluster.nodes[3].start()
    cluster._catch_up_looks = 99
    cluster.advance(5)
    (entry,) = (await found(cluster)).blockers
    assert (entry.code, "/config/brokers/1" in entry.observed) == ("partitions-not-in-sync", True)
    assert "/config/brokers/2" not in entry.observed


async def test_limits_of_connections_are_looked_for_where_replicas_lag() -> None:
    cluster = await lagging(leader=1)
    cluster.znodes["/config/ips/<default>"] = b'{"version":1,"config":{"connection_creation_rate":"2"}}'
    cluster.znodes["/config/brokers/2"] = b'{"version":1,"config":{"max.connections":"9", "log.cleaner.threads":"2"}}'
    (entry,) = (await found(cluster)).blockers
    assert "connection_creation_rate=2 in /config/ips/<default>" in entry.observed
    assert "log.cleaner.threads" not in entry.observed


async def test_a_znode_that_the_copy_cannot_read_is_looked_for_before_it_begins() -> None:
    cluster = FakeCluster()
    await provision(cluster)
    cluster.znodes["/config/users/u"] = b'{"version":1,"config":{"consumer_byte_rate":"much"}}'
    assert ("copy-cannot-finish", "/config/users/u") in keys(await found(cluster))


async def test_what_zookeeper_lacks_is_told_where_dual_write_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration_lookups, "MEANWHILE_SECONDS", 0.0)
    cluster = await in_dual_write()
    log = FakeLog(cluster)
    cluster.metadata_log = log
    assert keys(await found(cluster)) == []
    cluster.faults.is_dual_write_stuck = True
    orders = b"\x02" + b"\x07orders" + b"\x09flush.ms" + b"\x021" + b"\0"
    log.stray = ((RecordType.CONFIG, orders),) * 30
    for _ in range(30):
        await found(cluster)
    (entry,) = (await found(cluster)).blockers
    assert entry.object == "/migration"
    assert "config (topic orders)" in entry.observed
    assert "jute.maxbuffer" not in entry.fix
    cluster.znodes["/kafka-acl"], cluster.znodes["/kafka-acl/Topic"] = b"", b""
    cluster.znodes["/kafka-acl/Topic/payments"] = bytes(1_040_000)
    (entry,) = (await found(cluster)).blockers
    assert "/kafka-acl/Topic/payments (1,040,000 bytes)" in entry.observed
    assert "jute.maxbuffer" in entry.fix


@pytest.mark.parametrize("is_down", [False, True])
def test_where_only_who_is_down_lags_nobody_else_has_a_part_in_it(*, is_down: bool) -> None:
    spec, fault = cluster_spec(), PartitionFault(partition="orders-0", missing=(2,), leader=1)
    seen = with_kafka(observation(Point.CONTROLLERS_UP), under_replicated=(fault,))
    seen = with_part(seen, 2, process=stopped("1@1"), metrics=None) if is_down else seen
    case = case_of(seen, spec, POLICY)
    assert nodes_to_ask.worth_watching(case, ()) == ([] if is_down else [2, 1])
    assert {1, 2} & {*nodes_to_ask.worth_reading(case)} == ({2} if is_down else {1, 2})


def test_who_leads_the_quorum_is_watched_while_a_node_is_in_hand_which_asks_it() -> None:
    """A controller one thread of which stands leads on, and lets no broker go."""
    spec, seen = cluster_spec(), observation(Point.SOAK)
    case = case_of(seen, spec, POLICY)
    leader = quorum_leader(seen, spec)
    assert leader is not None
    assert nodes_to_ask.worth_watching(case, ()) == []
    assert nodes_to_ask.worth_watching(case, ("broker-2",)) == [2, leader.id]


@pytest.mark.parametrize(
    ("point", "down", "in_hand", "is_told"),
    [
        (Point.CONTROLLERS_UP, 2, (), True),
        (Point.CONTROLLERS_UP, 2, ("broker-2",), False),
        (Point.CONTROLLERS_UP, 3001, (), False),
        (Point.CONTROLLERS_UP, None, (), False),
        (Point.SOAK, 2, (), False),
    ],
)
def test_the_ensemble_is_asked_what_has_changed_where_a_broker_needs_it_to_come_up(
    point: Point, down: int | None, in_hand: tuple[str, ...], *, is_told: bool
) -> None:
    """Not where a step is about to start it, nor where its file says nothing of ZooKeeper."""
    seen = observation(point)
    seen = with_part(seen, down, process=stopped("1@1"), metrics=None) if down is not None else seen
    assert nodes_to_ask.is_awaited(case_of(seen, cluster_spec(), POLICY), in_hand) is is_told


@pytest.mark.parametrize("are_awaited", [False, True])
async def test_of_servers_that_serve_only_what_has_changed_is_asked(
    *, are_awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, silent, asked = await in_dual_write(), list[str](), list[str]()
    addresses = cluster.spec.ensemble.connect.partition("/")[0].split(",")
    members = tuple(
        ZooKeeperMemberSpec(host=host, port=int(port), data_dir="/zk") for host, port in (a.split(":") for a in addresses)
    )
    record = cluster.record()
    zookeeper = record.spec.ensemble.model_copy(update={"members": members})
    record = record.model_copy(update={"spec": record.spec.model_copy(update={"zookeeper": zookeeper})})

    async def changes(_self: MachineNotes, _migration: str, _member: Any, name: str) -> None:
        asked.append(name)

    async def watch(*_args: Any, **_more: Any) -> None:
        raise AssertionError("it is well")

    monkeypatch.setattr(MachineNotes, "of_server", changes)
    monkeypatch.setattr(LinuxDoctor, "watch_server", watch)
    seen = observation(Point.DUAL_WRITE)
    asking = machines.MachineHints(Ports(*[cast("Any", None)] * 6, doctor=LinuxDoctor()), SpecDrivers())
    serving = dict.fromkeys(addresses, Serving.YES)
    await asking.of_servers("m1", record, seen, serving, silent, are_awaited=are_awaited)
    assert (sorted(asked), silent) == (sorted(f"zookeeper {address}" for address in addresses) if are_awaited else [], [])
