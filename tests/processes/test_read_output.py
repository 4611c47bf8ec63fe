"""What a process prints is read where it prints it: of real processes, whose files are renamed, deleted, or others."""

import json
import locale
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from activities.on_node import command_of, kernel, look_at_volumes, read_output, volumes
from tests.unit.conftest import await_environment

OLD = "[2026-11-20 02:00:00,000] INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)"
NEW = "[2026-11-20 03:00:01,000] INFO new (x)"
FENCED = "[2026-11-20 03:00:02,000] INFO Fencing broker 2 because its session has timed out. (x)"
LAST = "[2026-11-20 03:00:03,000] WARN last (x)"


def ask(path: Path, pid: int | None, lines: int = 100, logs: tuple[Path, ...] = (), **environment: str) -> dict[str, Any]:
    words = ["Fencing broker", "Registered"]
    asked = {"id": 3001, "pid": pid, "output_file": str(path), "lines": lines, "lasting": words, "places": [str(path)]}
    asked["logs"] = [str(log) for log in logs]
    command = command_of("read_output", asked, sys.executable)
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, **environment})
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@contextmanager
def process(*opened: Path, stdout: Path | None = None, environment: dict[str, str] | None = None) -> Iterator[int]:
    """Who has these files open to write."""
    files = [path.open("a") for path in opened]
    out = stdout.open("a") if stdout is not None else None
    started = subprocess.Popen(
        ["sleep", "60"],
        stdout=out or subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[file.fileno() for file in files],
        env=environment,
    )
    try:
        await_environment(started.pid)
        yield started.pid
    finally:
        started.kill()
        started.wait()
        for file in [*files, *([out] if out else [])]:
            file.close()


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return written(tmp_path / "broker.out", OLD)


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_of_a_process_that_prints_into_its_output_file_all_is_read(output: Path) -> None:
    with process(stdout=output) as pid:
        told = ask(output, pid)
        assert (told["lines"], told["elsewhere"]) == ([OLD], "")
        assert told["changed_at"] == pytest.approx(output.stat().st_mtime)
        assert ask(output, pid, 0)["lines"] == []


def test_of_one_that_was_started_by_hand_its_own_output_is_read_and_not_that_of_the_one_before(output: Path) -> None:
    own = written(output.parent / "kafkaServer.out", NEW)
    with process(stdout=own) as pid:
        told = ask(output, pid)
    assert (told["lines"], told["elsewhere"]) == ([NEW], str(own))


def test_of_a_process_whose_output_was_rotated_away_what_it_prints_is_read(output: Path) -> None:
    with process(stdout=output) as pid:
        aside = output.rename(f"{output}.1")
        output.touch()
        told = ask(output, pid)
        assert (told["lines"], told["elsewhere"]) == ([OLD], str(aside))
        aside.unlink()
        told = ask(output, pid)
        assert (told["lines"], told["elsewhere"]) == ([OLD], f"{aside} (deleted)")


def test_of_a_process_that_prints_into_a_log_service_nothing_old_is_read(output: Path) -> None:
    os.utime(output, (0, 0))
    with process() as pid:
        told = ask(output, pid)
        assert (told["lines"], told["elsewhere"], told["changed_at"]) == ([], "/dev/null", None)
        written(output, NEW)  # as tee would
        assert ask(output, pid)["lines"] == [NEW]


def test_logs_that_a_process_has_open_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    output = written(tmp_path / "broker.out", NEW, LAST, "\tat some.Place(Place.java:1)")
    server = written(tmp_path / "server.log", NEW, LAST)
    debug = "[2026-11-20 03:00:02,500] DEBUG [Controller id=1] Preferred replicas (kafka.controller.KafkaController)"
    controller = written(tmp_path / "controller.log", FENCED, debug)
    segment = written(tmp_path / "00000000000000000000.log", NEW.replace("new", "a message"))
    collector = written(tmp_path / "kafkaServer-gc.log", NEW.replace("new", "a pause"))
    with process(server, controller, segment, collector, stdout=output) as pid:
        told = ask(output, pid)
    assert told["lines"] == [NEW, FENCED, LAST, "\tat some.Place(Place.java:1)"]


def test_of_a_log_that_another_node_writes_too_its_own_lines_are_read(tmp_path: Path) -> None:
    """Controllers of one installation all have its controller.log."""
    speakers: tuple[str, ...] = ("QuorumController id=3001", "RequestSendThread controllerId=3001")
    speakers += ("ReplicaFetcher replicaId=3001, leaderId=2",)
    speakers += ("SocketServer listenerType=BROKER, nodeId=3001", "Partition a-0 broker=3001", "GroupCoordinator 3001")
    own = [FENCED.replace("Fencing", f"[{whose}] Fencing") for whose in speakers]
    foreign = ("QuorumController id=3002", "Topic valid=3001", "Controller id=3002, targetBrokerId=3001", "GroupCoordinator 1")
    others = [FENCED.replace("Fencing", f"[{whose}] Fencing") for whose in foreign]
    output, shared = written(tmp_path / "broker.out", NEW), written(tmp_path / "controller.log", FENCED, *own, *others)
    java = tmp_path / "java"
    java.symlink_to("/bin/sleep")
    with process(shared, stdout=output) as pid:
        assert ask(output, pid)["lines"] == [NEW, FENCED, *own, *others]
        with shared.open("a") as file:
            other = subprocess.Popen([java, "60"], pass_fds=[file.fileno()])
        try:
            assert ask(output, pid)["lines"] == [NEW, *own]
        finally:
            other.kill()
            other.wait()


def test_of_a_log_that_is_loud_its_troubles_are_read_however_far_up(tmp_path: Path) -> None:
    """Kafka's own log4j.properties have it that nothing of this is said anywhere else."""
    traced = "[2026-11-20 03:00:02,500] TRACE [Broker id=3001] Cached leader info (state.change.logger)"
    refused = "[2026-11-20 03:00:01,500] WARN [Broker id=3001] Ignoring LeaderAndIsr request (state.change.logger)"
    output = written(tmp_path / "broker.out", NEW)
    for times in (3, 2 * read_output.MOST_BYTES // len(traced)):
        states = written(tmp_path / "state-change.log", refused, *[traced] * times)
        with process(states, stdout=output) as pid:
            assert ask(output, pid)["lines"] == [NEW, refused]


def test_of_all_that_an_authorizer_denies_what_nodes_ask_for_is_read(tmp_path: Path) -> None:
    denied = (
        "[2026-11-20 03:00:01,{}] INFO Principal = User:kafka is Denied {} from host = 10.0.0.1 on resource = "
        "Cluster:LITERAL:kafka-cluster for request = {} with resourceRefCount = 1 (kafka.authorizer.logger)"
    )
    of_zookeepers = denied.format("500", "Operation = ClusterAction", "UpdateMetadata")
    of_kraft = denied.format("600", "operation = CLUSTER_ACTION", "BROKER_HEARTBEAT")
    of_a_client = denied.format("700", "operation = DESCRIBE", "METADATA")
    output = written(tmp_path / "broker.out", NEW)
    audit = written(tmp_path / "kafka-authorizer.log", of_zookeepers, of_kraft, of_a_client)
    with process(audit, stdout=output) as pid:
        assert ask(output, pid)["lines"] == [NEW, of_zookeepers, of_kraft]


def test_of_a_dead_process_the_logs_are_read_that_it_had_open(tmp_path: Path) -> None:
    output, died = tmp_path / "broker.out", LAST.replace("WARN last", "ERROR Exiting Kafka due to fatal exception")
    server = written(tmp_path / "server.log", NEW, died)
    assert ask(output, None, logs=(server, tmp_path / "gone.log", tmp_path))["lines"] == [NEW, died]
    assert ask(written(output, OLD), None, logs=(server, output))["lines"] == [OLD, NEW, died]
    with process(stdout=output) as pid:
        assert ask(output, pid, logs=(server,))["lines"] == [OLD], "one that runs is asked what it has open"


def test_of_a_dead_process_what_was_rotated_away_is_read_too(tmp_path: Path) -> None:
    output = tmp_path / "broker.out"
    assert ask(output, None)["lines"] == []
    written(Path(f"{output}.1"), OLD)
    os.utime(f"{output}.1", (1, 1))
    written(Path(f"{output}.2.gz"), "no text")
    assert ask(output, None)["lines"] == [OLD]
    written(output, NEW)
    told = ask(output, None)
    assert (told["lines"], told["changed_at"]) == ([OLD, NEW], None)
    written(output)
    os.utime(output, (0, 0))
    assert ask(output, None)["lines"] == [OLD]


def test_no_secret_of_another_file_is_read(tmp_path: Path) -> None:
    """Only logs, by their names, and what is open for writing."""
    output, other = written(tmp_path / "broker.out", NEW), written(tmp_path / "jaas.conf", "password=s3cret")
    with process(other, stdout=output) as pid:
        assert ask(output, pid)["lines"] == [NEW]


def test_the_systems_errors_are_told_in_english_whatever_the_host_calls_them() -> None:
    german = {
        "Auf dem Gerät ist kein Speicherplatz mehr verfügbar": "No space left on device",
        "Keine Berechtigung": "Permission denied",
    }
    said = ["java.io.IOException: Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "INFO Keine Berechtigung.", NEW]
    assert read_output.in_english(said, german) == [
        "java.io.IOException: No space left on device",
        "INFO Permission denied.",
        NEW,
    ]


def test_the_language_of_errors_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    german, english = "Datei oder Verzeichnis nicht gefunden", "No such file or directory"
    monkeypatch.setenv("LANGUAGE", "")
    monkeypatch.setattr(read_output, "errors_in", lambda name: {2: german if name == "de_DE.UTF-8" else english})
    assert read_output.translations({"LANG": "de_DE.UTF-8", "LC_ALL": ""}) == {german: english}
    assert read_output.translations({"LANG": "C", "LC_MESSAGES": "de_DE.UTF-8"}) == {german: english}
    assert read_output.translations({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}) == {}
    assert read_output.translations({}) == {}
    with process(environment={"LANG": "de_DE.UTF-8"}) as pid:
        assert read_output.environment(pid)["LANG"] == "de_DE.UTF-8"


def test_a_look_leaves_the_language_of_its_own_process_as_it_was() -> None:
    before = locale.setlocale(locale.LC_ALL)
    read_output.translations({"LANG": "C"})
    read_output.translations({"LANG": "xx_XX.UTF-8"})
    assert locale.setlocale(locale.LC_ALL) == before


def test_what_is_english_or_not_installed_is_left_as_it_is(output: Path) -> None:
    written(output, "java.io.IOException: No space left on device")
    for name in ("C", "C.UTF-8", "xx_XX.UTF-8"):
        assert ask(output, None, LC_ALL=name)["lines"] == ["java.io.IOException: No space left on device"]


def test_a_volume_without_room_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place, real = tmp_path / "not" / "there.pid", os.statvfs(tmp_path)

    def sizes(**changed: int) -> None:
        fields = {name: getattr(real, name) for name in dir(real) if name.startswith("f_")}
        fields |= {"f_blocks": 10, "f_bavail": 10**6, "f_bfree": 10**6, "f_files": 9, "f_favail": 9, "f_flag": 0}
        monkeypatch.setattr(os, "statvfs", lambda _: type("Sizes", (), fields | changed))

    sizes()
    assert not volumes.is_full(place)
    for changed in ({"f_bavail": 0, "f_bfree": 0}, {"f_favail": 0}):
        sizes(**changed)
        assert volumes.is_full(place)
        sizes(**changed, f_flag=os.ST_RDONLY)
        assert not volumes.is_full(place)


def test_who_has_much_open_that_was_deleted_is_named_where_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch, output: Path, tmp_path: Path
) -> None:
    """`du` does not show it."""
    large = written(tmp_path / "large", "x" * 4096)
    monkeypatch.setattr(volumes, "MUCH_DELETED", 4096)
    with process(large, large) as pid:
        assert pid not in {int(holder.partition(" ")[0]) for holder, _ in volumes.deleted_on([str(output)])}
        large.unlink()
        found = {int(holder.partition(" ")[0]): size for holder, size in volumes.deleted_on([str(output)])}
        assert 4096 <= found[pid] < 8192 * 2, "each file once"
        assert volumes.deleted_on([]) == []
        monkeypatch.setattr(read_output, "is_full", lambda _: True)
        asked: dict[str, Any] = {"id": 1, "pid": None, "output_file": str(output), "lines": 9, "lasting": [], "logs": []}
        assert read_output.answer({**asked, "places": [str(output)]})["deleted"] == volumes.deleted_on([str(output)])
    assert "deleted" in ask(output, None)


@pytest.mark.parametrize(
    ("options", "is_told"),
    [("rw,relatime rw", False), ("ro,relatime rw", False), ("rw ro", True), ("rw rw,emergency_ro", True)],
)
def test_a_file_system_that_nobody_writes_is_named_where_no_process_runs(
    monkeypatch: pytest.MonkeyPatch, output: Path, options: str, is_told: bool
) -> None:
    """A mount that can only be read where this program runs says nothing of the node's."""
    own, of_all = options.split()
    line = f"36 35 8:17 / {output.parent} {own} shared:1 - ext4 /dev/sdb1 {of_all}\n"
    monkeypatch.setattr(kernel, "text", lambda _: f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n{line}")
    asked = {"id": 1, "pid": None, "output_file": str(output), "lines": 9, "lasting": [], "logs": [], "places": [str(output)]}
    assert read_output.answer(asked)["read_only"] == ([str(output)] if is_told else [])
    told = look_at_volumes.answer({"places": [str(output)]})
    assert told == {"full": [], "deleted": [], "read_only": asked["places"] if is_told else []}
    with process(stdout=output) as pid:
        assert read_output.answer({**asked, "pid": pid})["read_only"] == [], "it is looked at for itself"


TRACED = "[2026-11-20 03:00:02,500] TRACE [KRaftMigrationDriver id=3001] Did not make any ZK writes (x)"
THROWN = "org.apache.zookeeper.KeeperException$NoNodeException: KeeperErrorCode = NoNode for /brokers/topics/clicks"


@pytest.mark.parametrize("traced", [50, read_output.MOST_BYTES // len(TRACED) * 3])
def test_what_lasts_is_read_however_much_was_traced_since(output: Path, traced: int) -> None:
    many = [FENCED] * (2 * read_output.MOST_OF_A_WORD)
    written(output, OLD, *many[1:], FENCED, THROWN, NEW, *[TRACED] * traced, LAST)
    with process(stdout=output) as pid:
        lines = ask(output, pid, 10)["lines"]
    assert lines[-10:] == [*[TRACED] * 9, LAST]
    assert lines[-12:-10] == [FENCED, THROWN]
    assert set(lines[:-12]) == {FENCED}
    assert len(lines) <= 10 + 1 + 2 * read_output.MOST_OF_A_WORD


def test_what_lasts_is_read_far_up_in_a_log_beside_the_output(output: Path) -> None:
    log = written(output.parent / "controller.log", FENCED, THROWN, *[TRACED] * (read_output.MOST_BYTES // len(TRACED) * 2))
    with process(log, stdout=output) as pid:
        assert ask(output, pid)["lines"] == [OLD, FENCED, THROWN]


def test_what_lasts_keeps_the_line_that_it_was_thrown_below(output: Path) -> None:
    """Else it would stand below what was said an hour before."""
    uncaught, thrown = NEW.replace("INFO new", "ERROR Uncaught exception"), "x.IllegalState: Fencing broker 3 in vain"
    traced = [TRACED] * (read_output.MOST_BYTES // len(TRACED) * 2)
    written(output, OLD, FENCED, uncaught, "\tat some.Place(Place.java:1)", thrown, *traced)
    with process(stdout=output) as pid:
        lines = ask(output, pid, 3)["lines"]
    assert lines == [FENCED, uncaught, "\tat some.Place(Place.java:1)", thrown, *[TRACED] * 3]


def test_what_lasts_is_dropped_where_the_line_that_it_belongs_to_is_too_far_away(output: Path) -> None:
    long = ["\tat some.Place(Place.java:1)"] * (read_output.MOST_OF_A_BLOCK // 20)
    traced = [TRACED] * (read_output.MOST_BYTES // len(TRACED) * 2)
    written(output, FENCED, NEW, *long, "Fencing broker 3 in vain", *traced)
    with process(stdout=output) as pid:
        assert ask(output, pid, 3)["lines"] == [FENCED, *[TRACED] * 3]
    written(output, "Fencing broker 2, in a layout without times", *["a line"] * (read_output.MOST_BYTES // 3))
    with process(stdout=output) as pid:
        assert ask(output, pid, 1)["lines"][0] == "Fencing broker 2, in a layout without times"
