"""What is told of nodes that are down, silent or without gauges, by their last words."""

from datetime import timedelta

import pytest

from activities.diagnosis.nodes_to_ask import worth_reading
from domain.diagnosis.causes.hints import Hints
from domain.diagnosis.machines.node_output import NodeOutput
from domain.diagnosis.machines.notes import ZOOKEEPER, MachineChanges
from domain.diagnosis.machines.start import StartPlace, StartUnit
from domain.errors import Obstacle
from domain.observed.observation import (
    LogDir,
    Observation,
    Process,
    StorageState,
)
from domain.observed.parts import GAUGES_OF_ANOTHER
from domain.zk_to_kraft.blockers import blockers_of
from domain.zk_to_kraft.causes.case import case_of
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.blocked import (
    BEFORE,
    DUAL,
    FRAMES,
    POLICY,
    SAID,
    SOAK,
    SPEC,
    STANDBY,
    STARTED,
    dead,
    found,
    keys,
    looked_at,
    rolling,
    silent,
    without_gauges,
)
from tests.unit.conftest import (
    NOW,
    Point,
    mark_of,
    observation,
    signs_of,
    with_file,
    with_kafka,
    with_metrics,
    with_part,
)


def test_a_process_that_stands_still_is_told_as_such() -> None:
    (entry,) = found(silent(DUAL, 2, is_paused=True))
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert "kill -CONT 77" in entry.fix
    (entry,) = found(silent(DUAL, 2))
    assert "kill" not in entry.fix


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("Could not start Jolokia agent: java.net.BindException: Address already in use", STARTED), "ss -ltnp"),
        ((STARTED, "java.io.IOException: Too many open files"), "LimitNOFILE"),
        ((STARTED, "java.lang.OutOfMemoryError: Java heap space"), "-Xmx"),
        ((STARTED, "WARNING: A JVM TI agent has been loaded dynamically (/opt/apm/libagent.so)"), "APM agent"),
        (("java.lang.OutOfMemoryError: Java heap space", STARTED), "exporter's port"),
    ],
)
def test_a_node_whose_metrics_are_silent_says_why_in_its_log(lines: tuple[str, ...], told: str) -> None:
    """The agent speaks before Kafka does; what a process before this one said is no news."""
    (entry,) = found(silent(DUAL, 2), hints=Hints(logs={2: lines}))
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert told in entry.fix


@pytest.mark.parametrize(
    ("obstacle", "about", "says", "fix"),
    [
        (Obstacle.TLS, "broker-2", "no TLS", "SSL_CERT_FILE"),
        (Obstacle.FORBIDDEN, "broker-2", "refuses us", "jolokia-access.xml"),
        (Obstacle.ANOTHERS, "broker-2", "not its gauges", "another program"),
        (Obstacle.LATE, "broker-2", "takes our connection", "includeObjectNames"),
        (None, "broker-2", "gives no answer", "exporter's port"),
        (Obstacle.OURS, "keeperless-activities", "timed out", "Restart none of them"),
        (Obstacle.UNRESOLVED, "keeperless-activities", "timed out", "resolvectl status"),
    ],
)
def test_an_endpoint_that_does_not_hang_is_told_by_what_it_does(
    obstacle: Obstacle | None, about: str, says: str, fix: str
) -> None:
    (entry,) = found(silent(DUAL, 2, obstacle=obstacle))
    assert (entry.code, entry.object) == ("part-unknown" if about == "broker-2" else "machine", about)
    assert says in entry.observed
    assert fix in entry.fix
    assert ("a heap that is full" in entry.fix) == (obstacle is None)


def test_who_has_the_port_in_place_of_the_agent_is_told_by_the_agent() -> None:
    lines = ("Could not start Jolokia agent: java.net.BindException: Address already in use", STARTED)
    (entry,) = found(silent(DUAL, 2, obstacle=Obstacle.ANOTHERS), hints=Hints(logs={2: lines}))
    assert "ss -ltnp" in entry.fix
    of_another = f"{GAUGES_OF_ANOTHER} 1"
    (entry,) = found(silent(DUAL, 2, of_another, obstacle=Obstacle.ANOTHERS), hints=Hints(logs={2: lines}))
    assert of_another in entry.observed
    assert "ss -ltnp" not in entry.fix, "nobody is to stop a node that is well"


@pytest.mark.parametrize(
    ("lines", "says", "fix"),
    [
        (
            ("09:05:11 start-kafka: waiting for secrets agent",),
            "for secrets agent",
            "--forest",
        ),
        ((), "It has printed nothing", "--forest"),
        (("{now} INFO starting",), "gives no answer", "exporter's port"),
    ],
)
def test_of_a_process_that_is_new_what_the_one_before_said_is_no_news(lines: tuple[str, ...], says: str, fix: str) -> None:
    """Its start script waits for something, below the errors with which the process before it went."""
    seen = silent(DUAL, 2)
    process = seen.node(2).process
    assert process is not None
    seen = with_part(seen, 2, process=process.model_copy(update={"started_at": seen.ended_at - timedelta(seconds=20)}))
    old, end, now = (f"[{seen.ended_at - timedelta(seconds=ago):%Y-%m-%d %H:%M:%S},123]" for ago in (22, 20, 10))
    before = (
        f"{old} ERROR java.lang.OutOfMemoryError: Java heap space",
        f"{end} WARN Partition x-5 marked as failed",
        f"{end} INFO [KafkaServer id=2] shut down completed (kafka.server.KafkaServer)",
    )
    hints = Hints(logs={2: (*before, *(line.format(now=now) for line in lines))})
    (entry,) = found(seen, hints=hints)
    assert says in entry.observed
    assert fix in entry.fix
    assert "OutOfMemoryError" not in entry.observed


@pytest.mark.parametrize(("on_cpu", "is_at_work"), [(0.98, True), (0.0, False), (None, False)])
def test_a_jvm_that_is_at_its_heap_before_kafka_begins_is_to_be_let_alone(on_cpu: float | None, is_at_work: bool) -> None:
    """With AlwaysPreTouch it says nothing for a minute."""
    seen = silent(DUAL, 2)
    process = seen.node(2).process
    assert process is not None
    seen = with_part(seen, 2, process=process.model_copy(update={"started_at": seen.ended_at - timedelta(seconds=50)}))
    end = f"[{seen.ended_at - timedelta(seconds=60):%Y-%m-%d %H:%M:%S},123]"
    lines = (
        f"{end} INFO [KafkaServer id=2] shut down completed (kafka.server.KafkaServer)",
        "OpenJDK 64-Bit Server VM warning: Option UseConcMarkSweepGC was deprecated in version 9.0",
    )
    (entry,) = found(seen, hints=Hints(logs={2: lines}, signs={"broker-2": signs_of(on_cpu=on_cpu)}))
    assert "Kafka has not begun in it" in entry.observed
    assert entry.fix.startswith("It is at work: let it.") is is_at_work
    assert "a mount, a secret, a lock" in entry.fix


def test_a_dead_node_says_why_where_its_last_words_are_known() -> None:
    (entry,) = found(dead(DUAL, 2, "[x] ERROR", "java.net.BindException: Address already in use"))
    assert "Address already in use" in entry.observed
    assert "ss -tanp" in entry.fix
    (entry,) = found(dead(DUAL, 2, "something nobody has seen before"))
    assert "something nobody has seen before" in entry.observed


STOPPED_SAID = ("INFO Terminating process due to signal SIGTERM (x)", "INFO x shut down completed (kafka.server.KafkaServer)")


@pytest.mark.parametrize("output", [(), ("start.sh: line 3: numactl: command not found",)])
@pytest.mark.parametrize("is_started", [True, False])
def test_a_start_of_ours_that_fails_before_kafka_is_not_told_as_a_stop(output: tuple[str, ...], is_started: bool) -> None:
    """The log ends with the orderly stop of the process before; only who knows that another was started tells them apart."""
    said = (STARTED, *(f"[{NOW - timedelta(seconds=20):%Y-%m-%d %H:%M:%S},000] {line}" for line in STOPPED_SAID), *output)
    process = Process(
        is_running=False, identity=None, last_identity="78@2" if is_started else "77@1", started_at=NOW - timedelta(seconds=12)
    )
    marked = with_file(DUAL, 2, "broker.id=2\n", mark_of("b", before_identity="77@1"))
    seen = with_part(marked, 2, process=process, metrics=None)
    (entry,) = [one for one in found(seen, hints=Hints(logs={2: said})) if one.code == "node-down"]
    assert ("ended before Kafka began" in entry.observed) is is_started
    assert ("stopped in order" in entry.observed) is not is_started
    assert "numactl" in entry.observed or not output
    assert "by hand" in entry.fix or not (output or is_started)


@pytest.mark.parametrize(
    ("lines", "observed", "fix"),
    [
        ((), "It printed nothing", "by hand"),
        ((f"{SAID} INFO all is well (kafka.X)",), "it was killed", "dmesg"),
        ((f"{SAID} INFO Terminating process due to signal SIGTERM (x)",), "stopped in order", "Start it."),
        (
            (f"{SAID} ERROR no (x)", "my.Exception: the moon is full", *FRAMES, f"{SAID} INFO closing (x)"),
            "the moon is full",
            "log",
        ),
        ((f"{SAID} ERROR no (x)", "java.io.IOException: No space left on device", *FRAMES), "No space left", "Make room"),
    ],
)
def test_a_dead_node_is_told_by_how_it_ended(lines: tuple[str, ...], observed: str, fix: str) -> None:
    """From its log where it could be read, which may be long, or from its last words."""
    for seen, hints in ((dead(DUAL, 2, *lines), Hints()), (dead(DUAL, 2), Hints(logs={2: lines}))):
        (entry,) = found(seen, hints=hints)
        assert (entry.code, entry.object) == ("node-down", "broker-2")
        assert observed in entry.observed
        assert "\tat" not in entry.observed
        assert fix in entry.fix
        assert entry.expected.startswith("broker-2 runs")


def test_a_time_that_its_last_words_name_is_told_with_the_setting_that_it_is() -> None:
    """Seconds where milliseconds are meant."""
    file = "broker.id=2\nzookeeper.connection.timeout.ms=18\nzookeeper.session.timeout.ms=18000\nport=18\n"
    said = f"{SAID} ERROR Timed out after waiting for 18ms for FeatureCache to be updated. (kafka.server.KafkaServer)"
    entry = next(e for e in found(dead(with_file(DUAL, 2, file), 2, STARTED, said)) if e.code == "node-down")
    assert "Its file has zookeeper.connection.timeout.ms=18" in entry.observed
    assert "18000" not in entry.observed


def test_a_node_that_serves_without_a_pid_file_is_told_as_such() -> None:
    (entry,) = found(with_part(dead(DUAL, 2), 2, is_unowned=True))
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert "/run/2.pid" in entry.observed
    assert "start it" not in entry.fix, "a second process beside the first is the last thing that helps"


def test_where_nobody_s_process_can_be_seen_whoever_looks_is_to_blame() -> None:
    seen = DUAL
    for node in SPEC.nodes:
        seen = with_part(dead(seen, node.id), node.id, is_unowned=True)
    (entry,) = found(seen)
    assert (entry.code, entry.object) == ("part-unknown", "keeperless-activities")
    assert "PID namespace" in entry.fix


@pytest.mark.parametrize(("node_id", "gauge"), [(2, "BrokerState"), (3001, "raft-metrics")])
def test_an_agent_that_leaves_kafkas_gauges_out_is_no_node_that_does_not_serve(node_id: int, gauge: str) -> None:
    seen, name = without_gauges(DUAL, node_id, 600), SPEC.node_name(node_id)
    complains = {node_id: ("[2026-11-20 03:00:00,000] WARN [X] Connection to node 1 (/10.0.0.7:1) could not be established",)}
    (entry,) = [e for e in blockers_of(looked_at(seen, hints=Hints(logs=complains)))[0] if e.object == name]
    assert (entry.code, gauge in entry.observed, "includeObjectNames" in entry.fix) == ("node-not-ready", True, True)


def test_a_node_that_has_just_started_may_not_have_its_gauges_yet() -> None:
    (entry,) = blockers_of(looked_at(without_gauges(DUAL, 2, 20)))[0]
    assert "does not serve yet" in entry.observed


@pytest.mark.parametrize(
    ("seen", "node_id", "stage", "gauges", "lacks"),
    [
        (DUAL, 1, NodeStage.MIGRATION, {"migration_gauge": None}, "name=ZkMigrationState"),
        (DUAL, 1, NodeStage.MIGRATION, {"raft_epoch": None}, "type=raft-metrics"),
        (SOAK, 1, NodeStage.KRAFT, {"raft_epoch": None}, "type=raft-metrics"),
        (DUAL, STANDBY, NodeStage.MIGRATION, {"write_behind_lag": None}, "name=ZkWriteBehindLag"),
    ],
)
def test_a_proven_process_of_which_a_gauge_is_not_shown_any_more_is_not_taken_for_another(
    seen: Observation, node_id: int, stage: NodeStage, gauges: dict[str, None], lacks: str
) -> None:
    """Without the mark it would be a broker in KRaft or ZooKeeper mode, and a controller that has lost its flag."""
    view = seen.node(node_id)
    assert view.process is not None
    assert view.disk is not None
    assert view.disk.file is not None
    marked = mark_of(view.disk.file.sha256, is_proven=True).model_copy(
        update={"stage": stage, "proven_identity": view.process.identity}
    )
    disk = view.disk.model_copy(update={"file": view.disk.file.model_copy(update={"mark": marked})})
    seen = with_part(seen, node_id, disk=disk)
    assert keys(found(seen)) == keys(found(observation(Point.DUAL_WRITE if stage is NodeStage.MIGRATION else Point.SOAK)))
    entries = found(with_metrics(seen, node_id, **gauges))
    assert keys(entries) == [("part-unknown", SPEC.node_name(node_id))]
    assert lacks in entries[0].observed
    assert "JMX exporter" in entries[0].fix
    name, ended_at = SPEC.node_name(node_id), seen.ended_at
    ours = {"in_hand": frozenset({name}), "step_since": ended_at - timedelta(seconds=15)}
    told = keys(found(with_metrics(seen, node_id, **gauges), **ours))
    assert ("part-unknown", name) not in told, "the step may have told it to stop since: its gauges go one by one"
    ours["step_since"] = ended_at - timedelta(minutes=1)
    assert ("part-unknown", name) in keys(found(with_metrics(seen, node_id, **gauges), **ours))


@pytest.mark.parametrize(("partitions", "is_small"), [(68, True), (200_000, False), (None, False)])
def test_a_heap_that_the_metadata_do_not_fill_is_not_to_be_raised_first(*, partitions: int | None, is_small: bool) -> None:
    """It dies of the next probe as well."""
    seen = dead(
        BEFORE,
        2,
        "[2026-11-26 05:08:05,000] INFO [KafkaServer id=2] started (k)",
        "java.lang.OutOfMemoryError: Java heap space",
    )
    assert seen.kafka is not None
    kafka = seen.kafka.model_copy(update={"partition_count": partitions}) if partitions is not None else None
    entries = {entry.object: entry for entry in found(seen.model_copy(update={"kafka": kafka}))}
    fix = entries["broker-2"].fix
    assert fix.startswith("First find what fills the heap: the metadata of 68 partitions do not" if is_small else "Raise -Xmx")
    assert ("socket.request.max.bytes" in fix, "Raise -Xmx" in fix) == (is_small, True)


def test_where_a_node_prints_is_told_where_it_is_in_trouble() -> None:
    by_hand = {"broker-1": NodeOutput((), elsewhere="/opt/kafka/logs/kafkaServer.out")}
    (entry,) = found(silent(BEFORE, 1), hints=Hints(outputs=by_hand))
    assert "its process prints to /opt/kafka/logs/kafkaServer.out, and not to /log/1" in entry.observed
    assert found(BEFORE, hints=Hints(outputs=by_hand)) == []


@pytest.mark.parametrize(("milliseconds", "is_told"), [(1, True), (10, False), (-1, False)])
def test_loggers_that_somebody_has_left_at_trace_are_told(milliseconds: int, is_told: bool) -> None:
    """A thousand lines a second; a tenth of that, as of a controller that traces its migration; a clock that was set back."""
    ticks = [1000 + tick * milliseconds for tick in range(600)]
    times = [f"[2026-11-20 02:59:{t // 1000:02},{t % 1000:03}]" for t in ticks]
    lines = tuple(f"{at} TRACE [KafkaApi-1] Handling request:x from y (kafka.server.KafkaApis)" for at in times)
    (entry,) = found(silent(BEFORE, 1), hints=Hints(logs={1: lines}, outputs={"broker-1": NodeOutput(lines)}))
    told = "lines of TRACE and DEBUG a second, most of them of kafka.server.KafkaApis: its loggers were set to that"
    assert (told in entry.observed, "--add-config root=INFO,kafka.server.KafkaApis=INFO" in entry.fix) == (is_told, is_told)


@pytest.mark.parametrize("line", ["[2026-11-20 02:59:30,000] INFO Rolled new log segment (kafka.log.UnifiedLog)", ""])
def test_a_node_whose_last_words_had_no_room_is_not_told_to_be_killed_or_to_say_nothing(line: str) -> None:
    lines = (line,)
    hints = Hints(logs={1: lines}, outputs={"broker-1": NodeOutput(lines, full=("/log/1", "/run/1.pid"))})
    (entry,) = found(dead(BEFORE, 1), hints=hints)
    assert "it was killed" not in entry.observed
    assert "It printed nothing" not in entry.observed
    assert "no room left for /log/1, /run/1.pid" in entry.observed
    assert entry.fix.startswith("Make room")
    held = NodeOutput(lines, full=("/log/1",), deleted=(("4711 (java)", 5 << 30),))
    (entry,) = found(dead(BEFORE, 1), hints=Hints(logs={1: lines}, outputs={"broker-1": held}))
    assert "so that their room is not given back: files of process 4711 (java), 5120 MiB" in entry.observed
    assert entry.fix.startswith("Make that program reopen its files, or end or restart it")


@pytest.mark.parametrize("line", ["[2026-11-20 02:59:30,000] INFO Rolled new log segment (kafka.log.UnifiedLog)", ""])
def test_a_node_whose_last_words_nobody_could_write_down_is_not_told_to_be_killed(line: str) -> None:
    """As where the kernel has made the file system read-only, with its log on it."""
    for places, is_told in ((("/log/1", "/data/1"), True), (("/data/1",), False)):
        hints = Hints(logs={1: (line,)}, outputs={"broker-1": NodeOutput((line,), read_only=places)})
        (entry,) = found(dead(BEFORE, 1), hints=hints)
        assert ("Its last words are missing" in entry.observed) is is_told
        assert f"{', '.join(places)} can only be read" in entry.observed
        assert entry.fix.startswith("Check what the kernel says of that disk (dmesg). Repair it, and mount it for writing.")
        assert "start it" in entry.fix


@pytest.mark.parametrize(("full", "is_below"), [((), True), (("/data/1",), False)])
def test_where_a_file_system_that_refused_has_room_what_lies_below_it_has_none(full: tuple[str, ...], is_below: bool) -> None:
    """As on a thin pool, or in a datastore: `df` shows room, and a larger volume makes it worse."""
    lines = ("[2026-11-20 02:59:30,000] ERROR Error while flushing log: java.io.IOException: No space left on device (x.Y)",)
    hints = Hints(logs={1: lines}, outputs={"broker-1": NodeOutput(lines, full=full)})
    (entry,) = found(dead(BEFORE, 1), hints=hints)
    assert ("its file system has room now" in entry.observed) is is_below
    assert ("thin pool" in entry.fix) is is_below
    assert ("grow the volume" in entry.fix) is not is_below
    assert "Then start it" in entry.fix


def test_a_cause_that_was_written_before_there_was_no_room_is_told() -> None:
    lines = (
        "[2026-11-20 02:59:30,000] ERROR Shutdown broker because all log dirs in /data/1 have failed (kafka.log.LogManager)",
    )
    hints = Hints(logs={1: lines}, outputs={"broker-1": NodeOutput(lines, full=("/log/1",))})
    (entry,) = found(dead(BEFORE, 1), hints=hints)
    assert "all log dirs" in entry.observed


@pytest.mark.parametrize(
    ("below", "printed", "told"),
    [
        ((), None, "printed, 90 s ago: [2026-11-20 02:58:30,000]"),
        ((), timedelta(seconds=30), "printed, 90 s ago: [2026-11-20 02:58:30,000]"),
        (("Waiting for the vault",), timedelta(seconds=30), "printed, 30 s ago: Waiting"),
        (("Waiting for the vault",), timedelta(seconds=3), "printed: Waiting"),
        (("Waiting for the vault",), None, "printed: Waiting"),
    ],
)
def test_of_a_line_without_a_time_the_one_above_tells_no_age(
    below: tuple[str, ...], printed: timedelta | None, told: str
) -> None:
    seen = with_metrics(DUAL, 2, broker_state=2)
    ended = seen.ended_at
    lines = (f"[{ended - timedelta(seconds=90):%Y-%m-%d %H:%M:%S},000] INFO starting (kafka.server.KafkaServer)", *below)
    output = NodeOutput(lines, changed_at=ended - printed if printed is not None else None)
    (entry,) = found(seen, hints=Hints(logs={2: lines}, outputs={"broker-2": output}))
    assert f"The last that it {told}" in entry.observed


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_sandbox_that_a_node_has_inherited_is_no_disk_to_be_replaced(*, is_ours: bool) -> None:
    """Where a step of ours has started it, and nobody else since."""
    seen = dead(DUAL, 2, "java.nio.file.FileSystemException: /data/.lock: Read-only file system")
    process = seen.node(2).process
    assert process is not None
    seen = rolling(seen, 2, "another" if is_ours else process.last_identity)
    unit = StartUnit(name="k.service", kill_mode="process", inherits=("ProtectSystem=strict",))
    (entry,) = found(seen, hints=Hints(places={"broker-2": StartPlace(unit=unit, read_only=("/data",))}))
    assert ("in which /data are read-only" in entry.observed) is is_ours
    assert ("replace the disk" in entry.fix) is not is_ours


def test_a_node_that_a_step_has_stopped_and_could_not_start_is_told_as_such() -> None:
    """Its mark is of the step, and the process of which it tells was the last."""
    ended = "[2026-11-20 04:00:00,373] INFO Terminating process due to signal SIGTERM (org.apache.kafka.common.utils.X)"
    seen = dead(DUAL, 2, ended)
    process = seen.node(2).process
    assert process is not None
    why = (("/var/log/kafka.out", "Permission denied"),)
    hints = Hints(places={"broker-2": StartPlace(unit=None, unopened=why)})
    (entry,) = found(rolling(seen, 2, process.last_identity), hints=hints)
    assert "The step of this migration that restarts it has not started it again" in entry.observed
    assert "appends to a file that cannot be opened: /var/log/kafka.out: Permission denied" in entry.observed
    (entry,) = found(rolling(seen, 2, "another"))
    assert "The step of this migration" not in entry.observed
    wrong = (
        f"{SAID} ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)",
        "org.apache.kafka.common.config.ConfigException: Invalid value abc for configuration num.io.threads: Not a number",
    )
    (entry,) = found(dead(DUAL, 2, *wrong), hints=hints)
    assert "chown" in entry.fix
    assert "Correct the named property" in entry.fix, "or it dies again of the same"


def test_a_controller_that_a_step_has_not_come_to_start_is_not_to_be_started_by_hand() -> None:
    """It may have no storage yet."""
    never = Process(is_running=False, identity=None, last_identity=None, started_at=None)
    seen = with_part(rolling(observation(Point.CONTROLLERS_UP), 3001, None), 3001, process=never, metrics=None)
    disk = seen.node(3001).disk
    assert disk is not None
    (entry,) = found(with_part(seen, 3001, disk=disk.model_copy(update={"log_dirs": ()})))
    assert (entry.code, entry.object) == ("node-down", "controller-3001")
    assert "Its storage is not formatted: the step of this migration that creates it has not started it yet" in entry.observed
    assert "Fix what the step failed at" in entry.fix


def left_over(*, is_formatted: bool) -> Observation:
    """Made by this migration, not started yet; the pid file and the output are those of a controller that was wiped."""
    old = f"{SAID} ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)"
    seen = dead(observation(Point.CONTROLLERS_UP), 3001, old, "java.lang.OutOfMemoryError: Java heap space")
    disk = seen.node(3001).disk
    assert disk is not None
    assert disk.file is not None
    sha256 = disk.file.sha256
    mark = mark_of(sha256, before_identity="pid-3001").model_copy(update={"original_sha256": sha256})
    dirs = disk.log_dirs if is_formatted else tuple(d.model_copy(update={"state": StorageState.EMPTY}) for d in disk.log_dirs)
    file = disk.file.model_copy(update={"mark": mark})
    return with_part(seen, 3001, disk=disk.model_copy(update={"log_dirs": dirs, "file": file}))


@pytest.mark.parametrize("is_formatted", [False, True])
def test_what_a_wiped_controller_has_left_is_not_told_of_the_new_one(*, is_formatted: bool) -> None:
    (entry,) = found(left_over(is_formatted=is_formatted))
    assert (entry.code, entry.object) == ("node-down", "controller-3001")
    assert entry.observed.startswith("it has not run in this migration. ")
    assert ("Its storage is not formatted" in entry.observed) is not is_formatted
    told = entry.observed + entry.fix
    assert not any(of_old in told for of_old in ("pid-3001", "heap", "data is not where it was", "Of its data"))
    assert "Fix what the step failed at" in entry.fix


def test_a_controller_that_died_in_its_first_start_is_told_by_its_own_words() -> None:
    seen = left_over(is_formatted=True)
    process = Process(is_running=False, identity=None, last_identity="new", started_at=NOW - timedelta(minutes=1))
    (entry,) = found(with_part(seen, 3001, process=process))
    assert "the last was new" in entry.observed


def test_gauges_that_kafka_was_told_to_leave_out_are_no_fault_of_an_agent() -> None:
    line = "metrics.jmx.include in /config/brokers/<default> is new: (not shown)"
    changes = {ZOOKEEPER: MachineChanges(since=NOW - timedelta(hours=1), where="there", changes=(line,))}
    entry, *_ = found(without_gauges(DUAL, 2, 600), hints=Hints(changes=changes))
    assert entry.object == "broker-2"
    assert f"Set in ZooKeeper since: {line}" in entry.observed
    assert "--delete-config metrics.jmx.include" in entry.fix
    entry, *_ = found(without_gauges(DUAL, 3001, 600), hints=Hints(changes=changes))
    assert "--delete-config" not in entry.fix, "controllers are not told of brokers' settings"


def signalled(at: str) -> tuple[str, ...]:
    return (
        f"[2026-11-20 {at},373] INFO Terminating process due to signal SIGTERM (org.apache.kafka.common.utils.X)",
        f"[2026-11-20 {at},900] INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)",
    )


def test_nodes_of_one_machine_that_one_hand_has_ended_are_one_entry() -> None:
    seen = dead(dead(BEFORE, 1, *signalled("03:00:43")), 2, *signalled("03:00:44"))
    (entry,) = found(seen)
    assert keys([entry]) == [("node-down", "broker-1, broker-2")]
    assert "all 2 got a signal at 03:00:43" in entry.observed
    assert entry.fix.startswith("Find what stopped all of them")


def test_nodes_that_have_ended_with_their_machine_are_one_entry_that_says_so() -> None:
    cut = ("[2026-11-20 02:59:30,000] INFO Rolled new log segment (kafka.log.UnifiedLog)",)
    at = NOW - timedelta(minutes=3)
    booted = MachineChanges(since=NOW - timedelta(hours=1), booted_at=at, changes=("kernel: 5.14.0-362 → 5.14.0-427",))
    changes = {SPEC.node_name(i): booted for i in (1, 2, 3001)}
    seen = dead(dead(dead(DUAL, 1, *cut), 2, *signalled("03:00:44")), 3001)
    (entry,) = found(seen, hints=Hints(changes=changes))
    assert keys([entry]) == [("node-down", "broker-1, broker-2, controller-3001")]
    assert f"the machine was booted at {at:%d %b %H:%M:%S} UTC" in entry.observed
    assert "broker-1, controller-3001 had no time to end in order: the machine has crashed" in entry.observed
    assert "kernel: 5.14.0-362 → 5.14.0-427" in entry.observed
    assert entry.fix.startswith("See first that all its volumes are mounted")
    (entry,) = found(dead(dead(DUAL, 1, *signalled("03:00:43")), 2, *signalled("03:00:44")), hints=Hints(changes=changes))
    assert "Before that all of them were stopped in order" in entry.observed
    (entry,) = found(dead(DUAL, 1, *cut), hints=Hints(changes=changes))
    assert (entry.object, "the machine was booted at" in entry.observed) == ("broker-1", True)
    place = StartPlace(unit=None, unopened=(("/logs/b1.out", "Permission denied"),))
    (entry,) = found(dead(DUAL, 1, *cut), hints=Hints(changes=changes, places={"broker-1": place}))
    assert "It could not be started from here" in entry.observed
    assert entry.observed.count("kernel: 5.14.0-362 → 5.14.0-427") == 1
    assert "See first that all its volumes are mounted" in entry.fix


def test_a_node_that_has_ended_otherwise_than_with_its_machine_says_how() -> None:
    """By what it has printed, or since its machine was booted, or because its data is not there."""
    cut = ("[2026-11-20 02:59:30,000] INFO Rolled new log segment (kafka.log.UnifiedLog)",)
    changes = {"broker-1": MachineChanges(since=NOW - timedelta(hours=1), booted_at=NOW - timedelta(minutes=3))}
    full = dead(DUAL, 1, "java.io.IOException: No space left on device")
    process = dead(DUAL, 1, *cut).node(1).process
    assert process is not None
    started = process.model_copy(update={"started_at": NOW - timedelta(minutes=2)})
    for seen in (full, with_part(dead(DUAL, 1, *cut), 1, process=started), bare(dead(DUAL, 1, *cut), 1, StorageState.EMPTY)):
        (entry,) = found(seen, hints=Hints(changes=changes))
        assert "was booted" not in entry.observed


def test_nodes_that_have_ended_at_other_times_or_otherwise_are_an_entry_each() -> None:
    each = [("node-down", "broker-1"), ("node-down", "broker-2")]
    for last in (signalled("03:09:43"), ("java.io.IOException: No space left on device",)):
        seen = dead(dead(BEFORE, 1, *signalled("03:00:43")), 2, *last)
        assert keys(found(seen)) == each
    seen = dead(dead(BEFORE, 1, *signalled("03:00:43")), 2, *signalled("03:00:43"), "exec: java: not found")
    assert keys(found(seen)) == each, "where a start has failed below that, what it printed is told"


def bare(seen: Observation, node_id: int, *states: StorageState) -> Observation:
    disk = seen.node(node_id).disk
    assert disk is not None
    dirs = tuple(LogDir(path=f"/data/{n}", state=state, cluster_id=None, node_id=None) for n, state in enumerate(states))
    return with_part(seen, node_id, disk=disk.model_copy(update={"log_dirs": dirs}))


@pytest.mark.parametrize("node_id", [2, STANDBY])
@pytest.mark.parametrize(("state", "words"), [(StorageState.EMPTY, "is empty"), (StorageState.ABSENT, "is not there")])
def test_a_dead_node_whose_volume_is_not_mounted_is_not_to_be_started(node_id: int, state: StorageState, words: str) -> None:
    """As after a boot of its machine that a volume has missed."""
    for lines in (("[2026-11-20 02:59:30,000] INFO Rolled new log segment (kafka.log.UnifiedLog)",), signalled("03:00:43")):
        (entry,) = found(bare(dead(DUAL, node_id, *lines), node_id, state))
        assert f"Of its data /data/0 {words}" in entry.observed
        assert entry.fix.startswith("Do not start it as it is")
    both = dead(dead(DUAL, 1, *signalled("03:00:43")), node_id, *signalled("03:00:43"))
    assert keys(found(bare(both, node_id, state))) == [
        ("node-down", "broker-1"),
        ("node-down", SPEC.node_name(node_id)),
    ], "whose data is there may be started"


def test_a_dead_controller_that_has_its_data_in_one_of_its_directories_is_to_be_started() -> None:
    (entry,) = found(bare(dead(DUAL, STANDBY, *signalled("03:00:43")), STANDBY, StorageState.OURS, StorageState.EMPTY))
    assert "Do not start it" not in entry.fix
    (entry,) = found(bare(dead(DUAL, 2, *signalled("03:00:43")), 2, StorageState.OURS, StorageState.EMPTY))
    assert entry.fix.startswith("Do not start it as it is"), "a broker's partitions lie in each"


def test_partitions_without_a_leader_are_told_with_whose_directory_has_failed() -> None:
    lines = (f"{SAID} WARN [ReplicaManager broker=2] Stopping serving replicas in dir /d2 with uuid Some(x) because the log",)
    seen = with_kafka(DUAL, offline=("orders-3", "orders-4"), last_in_sync={"orders-3": (2,), "orders-4": (3,)})
    failed, other = found(seen, hints=Hints(logs={2: lines}))
    assert failed.object == "broker-2"
    assert "orders-3" in failed.observed
    assert "/d2" in failed.observed
    assert "Repair that directory" in failed.fix
    assert other.object == "orders-4"
    assert "in sync last: broker-3" in other.observed
    assert {2, 3} <= set(worth_reading(case_of(seen, SPEC, POLICY)))
