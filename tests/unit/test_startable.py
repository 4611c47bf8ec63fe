"""A node that runs, and would not start again, is not stopped."""

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from activities.adapters.machine_doctor import LinuxDoctor
from activities.looking import LastLook
from activities.own_network import Resolved
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.rolling import remaining_nodes, roll
from activities.rolling.startable import _why_not_its_program, why_not_startable
from activities.shipped_kinds import SHIPPED_KINDS
from domain.contracts import StepOutcome
from domain.errors import Unsafe
from domain.policy import AcceptedFinding
from domain.rolling.change import Restart
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from tests.unit.fake_walk import KillAfter, LedgerInMemory, Scene, Walk, add_coordinating_partitions, is_roll


async def rolled(cluster: FakeCluster, scene: Scene) -> StepOutcome:
    return await scene.attempt(cluster, KillAfter())


async def scene_of_a_roll(*, of_controller: bool = False) -> Scene:
    """Not the first roll: before that the preflight is asked once more, and says it first."""
    walk = Walk(LedgerInMemory(FakeCluster()), FakeCluster())
    stage = NodeStage.KRAFT if of_controller else NodeStage.MIGRATION
    await walk.to("step", {"first": lambda step: is_roll(step, NodeStage.MIGRATION)})
    await walk.to("step", {"roll": lambda step: is_roll(step, stage, of_controller=of_controller)})
    before, request, _ = walk.found["roll"]
    return Scene(before, walk.ledger, request)


def accepting(code: str, scene: Scene) -> Scene:
    """The same under a policy that accepts this finding of everybody."""
    accepted = AcceptedFinding(code=code, object="*", by="ann", reason="a test cluster")
    policy = scene.request.policy.model_copy(update={"accepted_findings": (accepted,)})
    return replace(scene, request=scene.request.model_copy(update={"policy": policy}))


@pytest.mark.parametrize("of_controller", [False, True])
async def test_a_node_whose_installation_is_gone_runs_on(of_controller: bool) -> None:
    scene = await scene_of_a_roll(of_controller=of_controller)
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    name = cluster.spec.node_name(node.id)
    driver = cluster.driver(node)
    await driver.remove_tree(f"{node.kafka_home}/libs")
    before = cluster.restarts[name]
    outcome = await rolled(cluster, scene)
    assert f"{node.kafka_home}/libs has no Kafka" in (outcome.blocked or "")
    assert (await driver.process()).is_running
    assert cluster.restarts[name] == before


@pytest.mark.parametrize("is_accepted", [False, True])
async def test_no_broker_restarts_where_others_would_find_other_coordinators(is_accepted: bool) -> None:
    """Somebody has given __consumer_offsets more partitions while all brokers ran."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    add_coordinating_partitions(cluster)
    outcome = await rolled(cluster, accepting("PF46", scene) if is_accepted else scene)
    assert outcome.is_done is is_accepted
    assert is_accepted or "topic __consumer_offsets: it has 2 partitions" in (outcome.blocked or "")


async def test_on_the_way_back_and_where_zookeeper_is_silent_nobody_waits_for_coordinators() -> None:
    """Half of a way back is the worst place to rest; and once the migration is final ZooKeeper may be gone."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    add_coordinating_partitions(cluster)
    ports = Ports(cast("Any", scene.ledger), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS, LinuxDoctor())
    asked = (cluster.record(), cluster.spec.brokers[:1], Restart(), scene.request.policy, ports)
    assert "__consumer_offsets" in (await why_not_startable(*asked) or "")
    assert await why_not_startable(*asked, is_back=True) is None
    cluster.faults.silent_zookeeper = True
    assert await why_not_startable(*asked) is None


async def test_a_node_that_serves_without_its_pid_file_is_not_rolled(monkeypatch: pytest.MonkeyPatch) -> None:
    """No look that still knew its process allows it: whoever rolls looks for himself."""

    async def allowing(*_: object) -> LastLook:
        await asyncio.sleep(0)
        return LastLook(None)

    monkeypatch.setattr("activities.rolling.roll.last_look", allowing)
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.nodes[cluster.spec.node(scene.request.step.node).id]
    process, starts, answer = node.process, node.starts, cluster.read

    async def read(endpoint: Any) -> Any:
        is_asked = endpoint == node.spec.metrics
        node.process = process if is_asked else node.process
        try:
            return await answer(endpoint)
        finally:
            node.process = None if is_asked else node.process

    node.process = None
    cluster.read = read  # type: ignore[method-assign]
    with pytest.raises(Unsafe, match=r"kafka\.pid names no process"):
        await rolled(cluster, scene)
    assert node.starts == starts


MAPS = """7f0 r-xp 0 07:05 12 /opt/java/lib/server/libjvm.so
7f1 r-xp 0 07:05 13 {0}/snappy-1.1.10-00cefe29-0e07-4e68-ab6e-e0bf6849e3ac-libsnappyjava.so
"""
MOUNTS = "/dev/vda / ext4 rw,relatime 0 0\nproc /proc proc rw,nosuid,noexec 0 0\ntmpfs /scratch tmpfs rw,nosuid,{0} 0 0\n"


@pytest.mark.parametrize(
    ("folder", "option", "told"),
    [("/scratch/kafka", "noexec", True), ("/scratch/kafka", "nodev", False), ("/data", "noexec", False)],
)
async def test_a_broker_that_would_lose_its_codecs_runs_on(folder: str, option: str, told: bool) -> None:
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    driver = cluster.driver(cluster.spec.node(scene.request.step.node))
    pid = ((await driver.process()).identity or "").partition("@")[0]
    await driver.write_file(f"/proc/{pid}/maps", FileContent(MAPS.format(folder).encode(), 0o444, 0, 0))
    await driver.write_file(f"/proc/{pid}/mounts", FileContent(MOUNTS.format(option).encode(), 0o444, 0, 0))
    outcome = await rolled(cluster, scene)
    assert ("mount -o remount,exec /scratch" in (outcome.blocked or "")) is told


@pytest.mark.parametrize(
    ("program", "ignored", "caught", "told"),
    [
        ("java", "0000000000004000", "2000000101001ccf", "`kill -INT {pid}`"),
        ("java", "0000000000004002", "2000000101001ccd", "`kill -HUP {pid}`"),
        ("java", "0000000000004003", "2000000101001ccc", "Once every partition of it that has other replicas"),
        ("java", "0000000000000000", "2000000101005ccf", None),
        ("start.sh", "0000000000004000", "0000000000010002", None),
    ],
)
async def test_a_node_that_ignores_what_it_would_be_stopped_by_runs_on(
    program: str, ignored: str, caught: str, told: str | None
) -> None:
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    driver = cluster.driver(node)
    pid = (await driver.process()).pid
    status = f"Name:\t{program}\nSigBlk:\t0000000000000000\nSigIgn:\t{ignored}\nSigCgt:\t{caught}\n"
    await driver.write_file(f"/proc/{pid}/status", FileContent(status.encode(), 0o444, 0, 0))
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    blocked = (await rolled(cluster, scene)).blocked or ""
    assert (f"its process {pid} ignores SIGTERM. Nothing was stopped" in blocked) is (told is not None)
    assert (told or "").format(pid=pid) in blocked
    assert (cluster.restarts[cluster.spec.node_name(node.id)] == before) is (told is not None)


@pytest.mark.parametrize(("line", "is_told"), [(b"inter.broker.listener.name=REPLICATION", True), (b"num.io.threads=9", False)])
async def test_a_broker_that_would_not_find_the_others_runs_on(line: bytes, is_told: bool) -> None:
    """Somebody has written a change of the brokers' own listener into the files, and restarted nobody."""
    scene = accepting("PF44", await scene_of_a_roll())
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    driver = cluster.driver(node)
    file = await driver.read_file(node.properties_file)
    assert file is not None
    await driver.write_file(node.properties_file, replace(file, content=file.content + b"\n" + line + b"\n"))
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    outcome = await rolled(cluster, scene)
    assert ("the other brokers' listener REPLICATION, and broker-" in (outcome.blocked or "")) is is_told
    assert cluster.restarts[cluster.spec.node_name(node.id)] - before == (not is_told)


async def test_nobody_restarts_who_would_forget_a_topic() -> None:
    """Somebody has deleted its znodes, and the brokers that run serve it."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    cluster.faults.remembered_topics = {"refunds"}
    driver = cluster.driver(cluster.spec.node(scene.request.step.node))
    outcome = await rolled(cluster, scene)
    assert "brokers serve refunds, and ZooKeeper has no such topic" in (outcome.blocked or "")
    assert (await driver.process()).is_running


@pytest.mark.parametrize("left", [b"", b"\0\0\0\0"])
async def test_a_node_whose_upgrade_was_cut_off_runs_on(left: bytes) -> None:
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    driver = cluster.driver(node)
    await driver.write_file(f"{node.kafka_home}/libs/kafka-raft-3.9.2.jar", FileContent(left, 0o644, 0, 0))
    outcome = await rolled(cluster, scene)
    assert f"{node.kafka_home}/libs/kafka-raft-3.9.2.jar is empty, or not a jar" in (outcome.blocked or "")
    assert (await driver.process()).is_running


async def test_a_node_under_which_another_version_was_installed_runs_on() -> None:
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    driver, libs = cluster.driver(node), f"{node.kafka_home}/libs"
    await driver.write_file(f"{libs}/kafka_2.13-4.0.0.jar", FileContent(b"PK", 0o644, 0, 0))
    outcome = await rolled(cluster, scene)
    assert f"{libs} has 4.0.0 by now" in (outcome.blocked or "")
    assert (await driver.process()).is_running


@pytest.mark.parametrize(("replaced", "told"), [("broker.id=", "the id 9"), ("log.dirs=", "/var/lib/broker-1 of broker-1")])
async def test_a_node_that_has_another_ones_file_runs_on(replaced: str, told: str) -> None:
    """What the roll made of it would have the directories of the one with the id of the other."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    assert node.id != 1
    value = "9" if replaced == "broker.id=" else cluster.spec.node(1).log_dirs[0]
    driver = cluster.driver(node)
    file = await driver.read_file(node.properties_file)
    assert file is not None
    lines = [f"{replaced}{value}" if line.startswith(replaced) else line for line in file.content.decode().splitlines()]
    assert f"{replaced}{value}" in lines
    await driver.write_file(node.properties_file, replace(file, content="\n".join(lines).encode()))
    outcome = await rolled(cluster, scene)
    assert told in (outcome.blocked or "")
    assert (await driver.process()).is_running


async def test_a_broker_that_a_quota_would_keep_from_its_registration_runs_on() -> None:
    """ZooKeeper takes what is there already, and refuses the next znode: of a broker as it registers."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    cluster.faults.is_quota_reached = True
    outcome = await rolled(cluster, scene)
    assert "a hard quota of ZooKeeper's on a znode above /brokers/ids is reached" in (outcome.blocked or "")
    assert (await cluster.driver(cluster.spec.node(scene.request.step.node)).process()).is_running


@pytest.mark.parametrize("left", [None, "AAAAAAAAAAAAAAAAAAAAAA"])
async def test_a_broker_that_would_find_another_cluster_in_zookeeper_runs_on(left: str | None) -> None:
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    if left is None:
        del cluster.znodes["/cluster/id"]
    else:
        cluster.znodes["/cluster/id"] = json.dumps({"version": "1", "id": left}).encode()
    outcome = await rolled(cluster, scene)
    assert "/cluster/id in ZooKeeper " + ("does not exist" if left is None else f"says {left}") in (outcome.blocked or "")
    assert (await cluster.driver(cluster.spec.node(scene.request.step.node)).process()).is_running


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (b"#!/bin/sh\nexec java", None),
        (b"#! /bin/sh -e\nexec java", None),
        (b"\x7fELF", None),
        (b"#!/bin/sh\r\nexec java\r\n", "sed -i 's/\\r$//' /opt/start.sh"),
        (b"#!/opt/bash\nexec java", "is to be run by /opt/bash, which does not exist"),
    ],
)
async def test_a_node_whose_start_script_nobody_can_run_is_not_stopped(first: bytes, told: str | None) -> None:
    cluster = FakeCluster()
    node = cluster.spec.brokers[0]
    service = node.driver.service.model_copy(update={"start_command": ("/opt/start.sh", "{properties}")})
    node = node.model_copy(update={"driver": node.driver.model_copy(update={"service": service})})
    driver = cluster.driver(node)
    await driver.write_file("/bin/sh", FileContent(b"\x7fELF", 0o755, 0, 0))
    await driver.write_file("/opt/start.sh", FileContent(first, 0o755, 0, 0))
    record, ports = SimpleNamespace(spec=cluster.spec), SimpleNamespace(drivers=cluster)
    why = await _why_not_its_program(cast("Any", record), node, cast("Any", ports))
    assert why is None if told is None else told in (why or "")


async def test_a_node_that_would_end_with_keeperless_activities_runs_on() -> None:
    """Somebody has put the worker into a unit of systemd since: a restart of that unit would end what it has started."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    machine = cluster.nodes[node.id].machine
    machine.unit = {"name": "keeperless-activities.service", "kill_mode": "control-group"}
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    outcome = await rolled(cluster, scene)
    assert "KillMode=control-group" in (outcome.blocked or "")
    assert "systemctl edit keeperless-activities.service" in (outcome.blocked or "")
    assert cluster.restarts[cluster.spec.node_name(node.id)] == before
    machine.unit["kill_mode"] = "process"
    assert (await rolled(cluster, scene)).blocked is None


async def test_a_node_whose_files_could_only_be_read_in_the_unit_of_keeperless_activities_runs_on() -> None:
    """ProtectSystem=strict of that unit: the node was started outside, and can write there."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    machine = cluster.nodes[node.id].machine
    machine.unit = {"name": "k.service", "kill_mode": "process", "inherits": ["ProtectSystem=strict"]}
    machine.place = {"read_only": ["/var/log/kafka"]}
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    outcome = await rolled(cluster, scene)
    assert "the mounts of k.service (ProtectSystem=strict), in which /var/log/kafka are read-only" in (outcome.blocked or "")
    assert "Nothing was stopped: Run `systemctl edit k.service`" in (outcome.blocked or "")
    assert cluster.restarts[cluster.spec.node_name(node.id)] == before
    ends = AcceptedFinding(code="PF43", object="keeperless-activities", by="ann", reason="nodes may end with it")
    policy = scene.request.policy.model_copy(update={"accepted_findings": (ends,)})
    scene = replace(scene, request=scene.request.model_copy(update={"policy": policy}))
    assert (await rolled(cluster, scene)).blocked is not None, "they may end, and have to start"


@pytest.mark.parametrize(
    ("budget", "told", "setting"),
    [
        (["cpu-time", "", 0, 600], "inherits its limit of 600 s of CPU time", "LimitCPU="),
        (["file-size", "", 0, 8 * 1024 * 1024], "inherits its limit of 8 MiB for a file", "LimitFSIZE="),
    ],
)
async def test_a_node_that_would_inherit_a_limit_that_ends_it_runs_on(budget: list[object], told: str, setting: str) -> None:
    """LimitCPU= of a unit, for CPUQuota=, or `ulimit -f` of a shell: each node would end after a while, one after the other."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    machine = cluster.nodes[node.id].machine
    machine.place = {"budgets": [budget]}
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    outcome = await rolled(cluster, scene)
    assert told in (outcome.blocked or "")
    assert setting in (outcome.blocked or "")
    assert cluster.restarts[cluster.spec.node_name(node.id)] == before
    machine.place = {"budgets": [["file-size", "", 0, 2**31 - 1]]}
    assert (await rolled(cluster, scene)).blocked is None, "as large as Kafka's ever are"


@pytest.mark.parametrize(
    ("inherits", "runs", "is_refused"),
    [
        (None, b"Seccomp:\t0\n", True),
        (["SystemCallFilter=@system-service"], b"Name:\tjava\nSeccomp:\t0\n", True),
        (["NoNewPrivileges=yes"], b"Seccomp:\t0\n", False),
        (None, b"Seccomp:\t2\n", False),
        (None, None, False),
    ],
)
async def test_a_node_that_would_inherit_a_filter_of_system_calls_runs_on(
    *, inherits: list[str] | None, runs: bytes | None, is_refused: bool
) -> None:
    """It would start, and follow, and nobody could fetch from it; unless it runs under one already, or nobody knows."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    machine = cluster.nodes[node.id].machine
    machine.place = {"is_filtered": True}
    machine.unit = {"name": "k.service", "kill_mode": "process", "inherits": inherits} if inherits else None
    if runs is not None:
        machine.write(f"/proc/{(await cluster.driver(node).process()).pid}/status", FileContent(runs, 0o444, 0, 0))
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    blocked = (await rolled(cluster, scene)).blocked or ""
    assert ("filter of system calls (Seccomp: 2" in blocked) is is_refused
    assert cluster.restarts[cluster.spec.node_name(node.id)] == before + (not is_refused)


@pytest.mark.parametrize("of_controller", [False, True])
@pytest.mark.parametrize(
    ("signs", "why"),
    [
        ({"stuck_threads": 4}, "4 of its threads wait in the kernel"),
        ({"frozen": "/k.service"}, "its control group /k.service is frozen"),
    ],
)
async def test_no_broker_is_stopped_while_another_node_stands_still(
    of_controller: bool, signs: dict[str, object], why: str
) -> None:
    """Its disk hangs since a second: it is in sync still, and its gauges are answered from memory."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    others = cluster.spec.controllers if of_controller else cluster.spec.brokers
    other = next(one for one in others if one.id != node.id)
    cluster.nodes[other.id].machine.signs = dict(signs)
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    outcome = await rolled(cluster, scene)
    assert f"{cluster.spec.node_name(other.id)} is unresponsive: " in (outcome.blocked or "")
    assert why in (outcome.blocked or "")
    assert "Nothing was stopped" in (outcome.blocked or "")
    assert cluster.restarts[cluster.spec.node_name(node.id)] == before
    cluster.nodes[other.id].machine.signs = {"debugger": "10.0.0.1:5005"}
    assert (await rolled(cluster, scene)).blocked is None, "who is only watched gets on"


async def test_a_node_that_stands_still_since_the_trial_began_is_found_before_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial may take a minute: what machines said of the others when it began is too old by then."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    other = next(one for one in cluster.spec.brokers if one.id != node.id)
    look_again = roll.look_again

    async def long_after(*given: Any) -> Any:
        cluster.nodes[other.id].machine.signs = {"stuck_threads": 4}
        monkeypatch.setattr("activities.rolling.remaining_nodes.MAX_AGE_OF_SIGNS", -1.0)
        return await look_again(*given)

    monkeypatch.setattr("activities.rolling.roll.look_again", long_after)
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    outcome = await rolled(cluster, scene)
    assert f"{cluster.spec.node_name(other.id)} is unresponsive: " in (outcome.blocked or "")
    assert cluster.restarts[cluster.spec.node_name(node.id)] == before


@pytest.mark.parametrize("of_controller", [False, True])
@pytest.mark.parametrize(
    ("unheard", "is_refused"),
    [
        ("10.77.0.3:9092", True),
        ("10.77.0.3:9093", True),
        ("10.1.1.1:50412", False),
        ("10.77.0.9:9092", False),
    ],
    ids=["another broker", "a controller", "a client that has gone", "the one that is to restart"],
)
async def test_no_broker_is_stopped_while_another_node_is_cut_off(
    of_controller: bool, unheard: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in sync still: replica.lag.time.max.ms has not passed since its packets are lost."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    spec, node = cluster.spec, cluster.spec.node(scene.request.step.node)

    async def resolve(host: str, seconds: float) -> Resolved:
        return Resolved(0.0, ("10.77.0.9",))

    monkeypatch.setattr(remaining_nodes, "resolve", resolve)
    other = next(one for one in (spec.controllers if of_controller else spec.brokers) if one.id != node.id)
    cluster.nodes[other.id].machine.signs = {"unheard": [unheard]}
    before = cluster.restarts[spec.node_name(node.id)]
    blocked = (await rolled(cluster, scene)).blocked or ""
    told = f"{spec.node_name(other.id)}: what it sends to {unheard} is not acknowledged. Nothing was stopped"
    assert (told in blocked) is is_refused
    assert cluster.restarts[spec.node_name(node.id)] == before + (not is_refused)


async def test_a_node_whose_start_could_not_open_its_output_runs_on() -> None:
    """A rotation of logs has given it to somebody else since."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    machine = cluster.nodes[node.id].machine
    machine.place = {"unopened": [["/var/log/kafka.out", "Permission denied"]]}
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    outcome = await rolled(cluster, scene)
    assert "appends to a file that cannot be opened: /var/log/kafka.out: Permission denied. Nothing was stopped" in (
        outcome.blocked or ""
    )
    assert cluster.restarts[cluster.spec.node_name(node.id)] == before
    machine.place = {}
    assert (await rolled(cluster, scene)).blocked is None


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ({"moved": ["{data}"]}, "{data} leads elsewhere than when its process"),
        ({"held_by": ["6708 (java)"]}, "echo 6708 > {pid_file}"),
        ({"denied": [["{file}", "it is 0:0 with -rw-------"]]}, "{file}: it is 0:0 with -rw-------"),
    ],
    ids=["its link leads to a copy", "its pid file names a wrapper", "its user may not use its file"],
)
async def test_a_node_that_would_not_start_as_what_it_is_runs_on(place: dict[str, Any], told: str) -> None:
    """It has all of that open, and goes on: only its next start would come out otherwise."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    paths = {"{data}": node.log_dirs[0], "{pid_file}": node.driver.service.pid_file, "{file}": node.properties_file}
    seen = json.dumps([place, told])
    for name, path in paths.items():
        seen = seen.replace(name, path)
    cluster.nodes[node.id].machine.place, told = json.loads(seen)
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    outcome = await rolled(cluster, scene)
    assert told in (outcome.blocked or "")
    assert "Nothing was stopped" in (outcome.blocked or "")
    assert cluster.restarts[cluster.spec.node_name(node.id)] == before


async def test_nodes_that_may_end_with_keeperless_activities_are_rolled() -> None:
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    machine = cluster.nodes[cluster.spec.node(scene.request.step.node).id].machine
    machine.unit = {"name": "keeperless-activities.service", "kill_mode": "control-group"}
    assert (await rolled(cluster, accepting("PF43", scene))).blocked is None


@pytest.mark.parametrize("what", ["failed", "refused"])
async def test_a_node_whose_java_would_not_start_any_more_runs_on(what: str) -> None:
    """One that only the kernel, or a security program, keeps from it, or Kafka, which does not take its next file: nothing else
    on the machine shows that."""
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    cluster.nodes[node.id].machine.trial[what] = "exit code 1; Error: Could not find or load main class kafka.Kafka"
    before = cluster.restarts[cluster.spec.node_name(node.id)]
    outcome = await rolled(cluster, scene)
    assert "Could not find or load main class" in (outcome.blocked or "")
    assert "Nothing was stopped" in (outcome.blocked or "")
    assert cluster.restarts[cluster.spec.node_name(node.id)] == before
    assert (await rolled(cluster, accepting("PF45", scene))).blocked is None
