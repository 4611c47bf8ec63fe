"""The runbook's commands for one node, run by a real shell: files become what they must, processes stop and start."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from domain.by_hand import shell
from domain.cluster import BrokerSpec, ClusterSpec, JolokiaEndpoint, NodeDriverSpec, PlainProcess, Role
from domain.configuration.properties import edit, parse
from domain.questions import Runbook, RunbookAction
from domain.rolling.change import NodeFile
from domain.zk_to_kraft.node_config import stage_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.runbook.whole import runbook_of
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import BROKER_STAGE, CONNECT, Point, broker_text, cluster_spec, observation, text_at
from tests.unit.properties_cases import SHAPES, UNREADABLE, Shape

SPEC = cluster_spec()
SECRET = "sesame"


def run(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": "/", **environment}
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30, env=env, check=False)


def ran(command: str, **environment: str) -> str:
    done = run(command, **environment)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a name that a shell would take apart."""
    folder = tmp_path / "a b'c $HOME;"
    folder.mkdir()
    return folder


def edited(path: Path, text: str, removed: tuple[str, ...], assigned: dict[str, str]) -> str:
    path.write_text(text, "latin-1")
    ran(shell.edit_file(str(path), removed, assigned))
    return path.read_text("latin-1")


def lines_without(text: str, keys: set[str]) -> str:
    return edit(text, {}, frozenset(keys))


@pytest.mark.parametrize("node_id", [1, 2, 3])
@pytest.mark.parametrize("stage", [NodeStage.MIGRATION, NodeStage.KRAFT])
def test_an_edit_says_to_java_what_the_products_own_edit_says(folder: Path, node_id: int, stage: NodeStage) -> None:
    """Three ways of writing a file, continued lines among them."""
    text, wanted = broker_text(node_id), parse(text_at(SPEC, node_id, stage))
    before = parse(text)
    removed = tuple(key for key in before if key not in wanted)
    assigned = {key: value for key, value in wanted.items() if before.get(key) != value}
    result = edited(folder / "x.properties", text, removed, assigned)
    assert parse(result) == wanted
    kept = lines_without(text, {*removed, *assigned})
    assert result.startswith(kept), "all that is not named stays as it is, byte for byte"


def of_one_broker(book: Runbook, way: str) -> list[RunbookAction]:
    actions = book.back if way == "back" else book.forward
    return [action for action in actions if action.node == "broker-2" and action.title.startswith("Restart")]


@pytest.mark.parametrize(
    ("point", "way", "stages"),
    [
        (Point.SOAK, "back", [NodeStage.MIGRATION, NodeStage.ZOOKEEPER]),
        (Point.DUAL_WRITE, "back", [NodeStage.ZOOKEEPER]),
        (Point.CONTROLLERS_UP, "forward", [NodeStage.MIGRATION, NodeStage.KRAFT]),
        (Point.DUAL_WRITE, "forward", [NodeStage.KRAFT]),
    ],
)
@pytest.mark.parametrize("is_archived", [True, False])
def test_the_edits_of_a_runbook_lead_a_file_from_stage_to_stage(
    folder: Path, point: Point, way: str, stages: list[NodeStage], is_archived: bool
) -> None:
    """One after the other, as somebody follows them; without an archive too: another broker's file has what is gone."""
    path, archive = folder / "2.properties", folder / ".keeperless" / "original"
    spec = ClusterSpec.model_validate_json(SPEC.model_dump_json().replace("/etc/kafka/2.properties", str(path)))
    has_changed = BROKER_STAGE[point] is not NodeStage.ZOOKEEPER
    path.write_text(text_at(SPEC, 2, BROKER_STAGE[point]))
    if is_archived and has_changed:
        archive.parent.mkdir()
        archive.write_text(broker_text(2))
    files = {1: NodeFile(broker_text(1), None, "/archive")}
    files[2] = NodeFile(path.read_text(), broker_text(2) if archive.exists() else None, str(archive))
    actions = of_one_broker(runbook_of(observation(point), spec, ZkToKraftPolicy(), files), way)
    assert len(actions) == len(stages)
    for action, stage in zip(actions, stages, strict=True):
        for command in action.commands[:-2]:
            ran(command)
        expected = parse(text_at(SPEC, 2, stage)) | {"zookeeper.connect": CONNECT}
        if stage is NodeStage.KRAFT:
            del expected["zookeeper.connect"]
        if archive.exists() or way == "forward":
            assert parse(path.read_text()) == expected
        assert stage_of(parse(path.read_text()), Role.BROKER) is stage
    if archive.exists():
        assert archive.read_text() == broker_text(2), "kept where the product would keep it"
    if archive.exists() and way == "back":
        assert path.read_text() == broker_text(2), "byte for byte"


ODD = (
    "a=1\\\n  2\nb = 2\n#a=no\n! b=no\n  c : x\\\\\nd=e\\\\\\\n f\nlong.name=\\\n\\\n   v\n",
    "a 1\r\nb:2\\\r\n  3\r\n# end \\\nc=4\r\n",
    "a=1\nb=2",
    "a=caf\xe9\nb=1\n\n\n",
    "a\nb\n",
    "   # a=1\\\na=2\n",
    "a=1\nc=ends in a backslash\\",
)
KEYS = ("a", "b", "c", "d", "long.name")


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("key", KEYS)
def test_odd_ways_of_writing_a_line(folder: Path, text: str, key: str) -> None:
    before = parse(text)
    assert parse(edited(folder / "x", text, (key,), {})) == {k: v for k, v in before.items() if k != key}
    after = edited(folder / "x", text, (), {key: "new value", "z": ' a\'b "c" $d \\e'})
    assert parse(after) == before | {key: "new value", "z": ' a\'b "c" $d \\e'}


ADDED = {"zookeeper.metadata.migration.enable": "true", "controller.quorum.voters": "3001@h:9093,3002@h:9094"}
OF_ZOOKEEPER = ("zookeeper.", "inter.broker.protocol.version", "process.roles")
READABLE = {name: shape for name, shape in SHAPES.items() if "alone" not in name}


@pytest.mark.parametrize("shape", READABLE.values(), ids=READABLE)
def test_a_shape_becomes_what_the_product_makes_of_it(folder: Path, shape: Shape) -> None:
    path, removed = folder / "x", tuple(key for key in shape.decoded if key.startswith(OF_ZOOKEEPER))
    kept = {key: value for key, value in shape.decoded.items() if key not in removed}
    after = edited(path, shape.text, removed, ADDED)
    assert parse(after) == parse(edit(shape.text, ADDED, frozenset(removed) - ADDED.keys())) == kept | ADDED
    assert parse(edited(path, after, tuple(ADDED), {})) == kept
    named = frozenset(ran(shell.key_names(str(path))).splitlines())
    assert {key for key in named if key.isascii()} == {key for key in kept if key.isascii()}
    target = folder / "y"
    target.write_text("")
    path.write_text(shape.text, "latin-1")
    ran(shell.append_keys(str(path), removed, str(target)))
    assert parse(target.read_text("latin-1")) == {key: shape.decoded[key] for key in removed}


REFUSED = {
    **UNREADABLE,
    **{name: shape.text for name, shape in SHAPES.items() if name not in READABLE},
    "a carriage return in a comment": "a=1\n# x\rzookeeper.connect=z:2181\n",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_it_cannot_read_as_java_does_stays_as_it_is(folder: Path, text: str) -> None:
    path, target = folder / "x", folder / "y"
    path.write_bytes(text.encode("latin-1"))
    for command in (
        shell.edit_file(str(path), ("zookeeper.connect",), ADDED),
        shell.append_keys(str(path), ("zookeeper.connect",), str(target)),
    ):
        done = run(command)
        assert done.returncode != 0
        assert f"{path}, line " in done.stderr
        assert "Nothing was changed." in done.stderr
    assert path.read_bytes() == text.encode("latin-1")
    assert sorted((file.name, file.stat().st_size > 0) for file in folder.iterdir()) == [("x", True), ("y", False)]


def test_a_list_of_keys_shows_no_line_of_a_secret(folder: Path) -> None:
    """A continued value may look like a key and its value: base64 ends in `=`."""
    path = folder / "x"
    path.write_text("ssl.keystore.key=-----BEGIN PRIVATE KEY----- \\\n  MIIEsesame== \\\n  -----END PRIVATE KEY-----\nb=1\n")
    assert ran(shell.key_names(str(path))) == "b\nssl.keystore.key\n"


words = st.text(st.sampled_from("ab =:#!\\\t.'\"$`é"), max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(words, max_size=5), value=words)
@example(lines=["a\\"], value="")
def test_any_value_survives_and_no_other_key_changes(folder: Path, lines: list[str], value: str) -> None:
    text = "".join(f"{line}\n" for line in ("k1=v1", *(line for line in lines if "\\" not in line), "k2 = v2"))
    assert parse(edited(folder / "x", text, (), {"k2": value})) == parse(text) | {"k2": value}


def test_an_edit_keeps_mode_and_owner_and_leaves_nothing_beside(folder: Path) -> None:
    path = folder / "x.properties"
    path.write_text("a=1\n")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    ran(shell.edit_file(str(path), ("a",), {"b": "2"}))
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert [file.name for file in folder.iterdir()] == ["x.properties"]


def test_a_secret_that_is_put_back_is_asked_for_and_never_in_the_command(folder: Path) -> None:
    path = folder / "x.properties"
    path.write_text("a=1\n")
    command = shell.edit_file(str(path), (), {"ssl.key.password": SECRET, "b": "2"})
    assert SECRET not in command
    assert run(command).returncode != 0, "nothing is written without it"
    assert path.read_text() == "a=1\n"
    ran(command, SSL_KEY_PASSWORD=SECRET)
    assert parse(path.read_text()) == {"a": "1", "b": "2", "ssl.key.password": SECRET}


def test_keys_are_copied_unseen(folder: Path) -> None:
    source, target = folder / "source", folder / "target"
    source.write_text("a=1\nssl.key.password=se\\\n  same\nb=2\n")
    ran(shell.write_file(str(target), "# it's new, 100%\nc=3\n"))
    assert ran(shell.append_keys(str(source), ("ssl.key.password",), str(target))) == ""
    assert parse(target.read_text()) == {"c": "3", "ssl.key.password": SECRET}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert ran(shell.key_names(str(target))) == "c\nssl.key.password\n"


@pytest.fixture
def node(folder: Path) -> Iterator[BrokerSpec]:
    """A node whose process sleeps, and takes a moment to end."""
    program = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), sys.exit()))\n"
    program += "print('up', flush=True)\ntime.sleep(60)"
    service = PlainProcess(
        start_command=(sys.executable, "-c", program, "{properties}"),
        pid_file=str(folder / "run" / "node.pid"),
        output_file=str(folder / "log" / "node.log"),
    )
    node = BrokerSpec(
        id=1,
        host="127.0.0.1",
        driver=NodeDriverSpec(service=service),
        kafka_home="/opt/kafka",
        environment={"SAID": "it's $HOME", "THE_PASSWORD": "hidden"},
        properties_file=str(folder / "server.properties"),
        log_dirs=(str(folder / "data"),),
        metrics=JolokiaEndpoint(url="http://127.0.0.1:1/jolokia"),
    )
    (folder / "server.properties").write_text("a=1\n")
    yield node
    run(shell.stop(node, "KILL"))


def pid_of(node: BrokerSpec) -> int:
    return int(Path(node.driver.service.pid_file).read_text())


def test_a_node_starts_once_and_stops(node: BrokerSpec) -> None:
    command = shell.start(node)
    assert "hidden" not in command
    ran(command, THE_PASSWORD=SECRET)
    pid = pid_of(node)
    assert run(shell.is_up(node)).returncode == 0
    assert os.getsid(pid) == pid, "in a session of its own"
    environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
    assert {"SAID=it's $HOME", f"THE_PASSWORD={SECRET}"} <= set(environment)
    ran(command, THE_PASSWORD=SECRET)
    assert pid_of(node) == pid, "running already"

    began = time.monotonic()
    ran(shell.stop(node))
    assert time.monotonic() - began >= 0.3, "it waits for the end"
    assert run(shell.is_gone(node)).returncode == 0
    assert run(shell.is_up(node)).returncode != 0
    ran(shell.stop(node))
    assert Path(node.driver.service.output_file).read_text() == "up\n"
    ran(command, THE_PASSWORD=SECRET)
    assert pid_of(node) != pid
    ran(shell.stop(node, "KILL"))
    assert run(shell.is_gone(node)).returncode == 0


def test_a_pid_that_is_somebody_elses_by_now_is_left_alone(node: BrokerSpec) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        pid_file = Path(node.driver.service.pid_file)
        pid_file.parent.mkdir()
        pid_file.write_text(f"{other.pid}\n")
        ran(shell.stop(node))
        assert run(shell.is_up(node)).returncode != 0
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_zombie_is_gone(node: BrokerSpec) -> None:
    """Its parent has not asked how it ended: a shell's `kill -0` would call it alive."""
    dead = subprocess.Popen([sys.executable, "-c", "", node.properties_file])
    try:
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        Path(node.driver.service.pid_file).parent.mkdir()
        Path(node.driver.service.pid_file).write_text(f"{dead.pid}\n")
        assert run(shell.is_gone(node)).returncode == 0
        ran(shell.stop(node))
    finally:
        dead.wait()


def test_an_archive_is_never_overwritten_and_gives_back_bytes_mode_and_owner(node: BrokerSpec, folder: Path) -> None:
    file, archived = folder / "server.properties", folder / ".keeperless" / "server.properties.original-1"
    file.chmod(0o640)
    ran(shell.archive(node, str(archived)))
    file.write_text("a=2\n")
    ran(shell.archive(node, str(archived)))
    ran(shell.restore(node, str(archived)))
    assert file.read_text() == "a=1\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert stat.S_IMODE(archived.parent.stat().st_mode) == 0o700


def test_waiting_ends_with_what_is_awaited_or_gives_up() -> None:
    assert run(f"{shell.until('true')}; echo went on").stdout == "went on\n"
    given_up = run(f"{shell.until('false', 1)} || echo gave up")
    assert given_up.stdout == "gave up\n"
