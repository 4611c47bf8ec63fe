"""Whether a JVM would start on a node's machine as the one that runs there did: tried by programs that stand for java."""

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from activities.on_node import program, try_java
from domain.diagnosis.machines.start import JavaTrial
from playground.java import java_home
from playground.stand_in import standing_for_broker


def a_java(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def tried(pid: int, kafka_home: Path, *, has_file: bool = False) -> JavaTrial:
    return JavaTrial.model_validate(try_java.trial(asked(pid, kafka_home, "digest" if has_file else None)))


def asked(pid: int, kafka_home: Path, file: str | None, known: Sequence[str] = ()) -> dict[str, Any]:
    return {"pid": pid, "kafka_home": str(kafka_home), "file": file, "has_agents": True, "known": known}


def test_it_is_run_with_its_jars_and_without_its_heap_its_logs_and_its_agents(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    java = a_java(tmp_path / "bin" / "java", f'printf "%s\\n" "$@" "$JAVA_TOOL_OPTIONS" >{shlex.quote(str(heard))}')
    options = (
        "-Xms6g",
        "-Xmx6g",
        "-XX:+UseG1GC",
        "-XX:+AlwaysPreTouch",
        "-Xlog:gc*:file=/gc.log",
        "-javaagent:/a.jar=1",
        "-Dcom.sun.management.jmxremote.port=9999",
        "-Dlog4j.configuration=file:/l.properties",
        "-Djavax.net.ssl.keyStore=/k.p12",
    )
    class_path = f"{tmp_path}/libs/kafka_2.13-3.9.1.jar:{tmp_path}/bin/../libs/*:/opt/plugins/*:own.jar"
    with standing_for_broker(str(java), *options, "-cp", class_path, cwd=tmp_path) as pid:
        found = tried(pid, tmp_path)
    assert found == JavaTrial(command=str(java))
    words = heard.read_text(encoding="utf-8").splitlines()
    own = f"{tmp_path}/libs/*:/opt/plugins/*:{tmp_path}/own.jar"
    assert words[-5:] == ["-cp", own, "kafka.Kafka", "--version", ""], "its jars as they are by now, and what else it has"
    assert [word for word in words if word in options] == ["-XX:+UseG1GC", "-Djavax.net.ssl.keyStore=/k.p12"]


def test_options_of_a_file_are_those_that_it_has_by_now(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    java = a_java(tmp_path / "bin" / "java", f'printf "%s\\n" "$@" >{shlex.quote(str(heard))}')
    options = tmp_path / "jvm.options"
    options.write_text("-Xmx6g\n", encoding="utf-8")
    with standing_for_broker(str(java), "@jvm.options", "-XX:MaxGCPauseMillis=50", cwd=tmp_path) as pid:
        since = [
            "-Xms6g",
            "-XX:+AlwaysPreTouch",
            "-XX:MaxGCPauseMillis=20",
            '"-Dmy.name=a b"',
            "-Xlog:gc:/gc.log",
            "-Xcheck:jni",
        ]
        options.write_text("# by the platform team\n" + "\n".join(since), encoding="utf-8")
        assert tried(pid, tmp_path) == JavaTrial(command=str(java))
        words = heard.read_text(encoding="utf-8").splitlines()
        assert words[len(try_java.OWN) : -4] == ["-XX:MaxGCPauseMillis=20", "-Dmy.name=a b", "-Xcheck:jni"]
        options.unlink()
        assert tried(pid, tmp_path).failed == (f"its options cannot be read: [Errno 2] No such file or directory: '{options}'")


@pytest.mark.parametrize(
    ("option", "is_given_as", "told"),
    [
        ("/a/jmx_prometheus.jar=9404:/e.yml", "/a/jmx_prometheus.jar=0:/e.yml", "/a/jmx_prometheus.jar with /e.yml"),
        ("/jmx_exporter.jar=[::1]:9404:/e.yml", "/jmx_exporter.jar=[::1]:0:/e.yml", "/jmx_exporter.jar with /e.yml"),
        (
            "a/jmx-exporter.jar=b1:9404:e.yml",
            "/run/a/jmx-exporter.jar=b1:0:/run/e.yml",
            "/run/a/jmx-exporter.jar with /run/e.yml",
        ),
        ("/jolokia.jar=port=8778,host=::1", "/jolokia.jar=host=::1,port=0,discoveryEnabled=false", "/jolokia.jar"),
        ("/a/jolokia.jar", "/a/jolokia.jar=port=0,discoveryEnabled=false", "/a/jolokia.jar"),
    ],
)
def test_an_agent_that_is_known_is_started_at_a_port_that_is_free(option: str, is_given_as: str, told: str) -> None:
    assert try_java.agent(f"-javaagent:{option}", "/run") == (f"-javaagent:{is_given_as}", told)


@pytest.mark.parametrize("option", ["-javaagent:/apm.jar=key=hunter2", "-javaagent:/apm.jar=1:/f", "-Dx=-javaagent:y", "-cp"])
def test_of_another_agent_nobody_knows_what_it_would_do(option: str) -> None:
    assert try_java.agent(option, "/run") is None


def test_an_agent_is_to_blame_where_java_is_well_without_it(tmp_path: Path) -> None:
    java = a_java(tmp_path / "java", 'case "$*" in *javaagent*) echo Failed to start Prometheus; exit 1;; esac')
    with standing_for_broker(str(java), "-javaagent:/jmx-exporter.jar=9404:/e.yml") as pid:
        found = tried(pid, tmp_path, has_file=True)
    assert (found.agents, found.refused) == ("/jmx-exporter.jar with /e.yml", None)
    assert found.failed == "exit code 1; Failed to start Prometheus"
    java = a_java(tmp_path / "java", "exit 3")
    with standing_for_broker(str(java), "-javaagent:/jmx-exporter.jar=9404:/e.yml") as pid:
        assert (tried(pid, tmp_path).agents, tried(pid, tmp_path).failed) == (None, "exit code 3")


LATE = "it had not ended after 2 s"


def test_what_went_well_is_tried_again_only_when_something_that_it_rests_on_has_changed(tmp_path: Path) -> None:
    log, jar, rules = tmp_path / "log", tmp_path / "libs" / "kafka.jar", tmp_path / "rules.yml"
    java = a_java(tmp_path / "java", f"echo ran >>{log}; echo Found log directory:")
    jar.parent.mkdir()
    for file in (jar, rules):
        file.write_text("one", encoding="utf-8")
    with standing_for_broker(str(java), f"-javaagent:/jmx-exporter.jar=9404:{rules}") as pid:

        def runs(file: str = "digest") -> int:
            log.unlink(missing_ok=True)
            known.extend(try_java.trial(asked(pid, tmp_path, file, known))["proven"])
            return len(log.read_text().splitlines()) if log.exists() else 0

        known: list[str] = []
        assert [runs(), runs()] == [1, 0]
        assert [runs("of another file"), runs("of another file")] == [1, 0]
        jar.write_text("replaced", encoding="utf-8")
        assert [runs(), runs()] == [1, 0]
        rules.write_text("replaced", encoding="utf-8")
        assert [runs(), runs()] == [1, 0]
        a_java(java, f"echo ran >>{log}; echo no memory; exit 1")
        assert runs() > 0, "another java"
        assert runs() > 0, "what failed is tried again"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            "echo 'log4j:WARN No appenders'; echo 'Error: Could not find or load main class kafka.Kafka'; exit 1",
            "exit code 1; Error: Could not find or load main class kafka.Kafka",
        ),
        ("echo Unrecognized VM option >&2; exit 1", "exit code 1; Unrecognized VM option"),
        ("kill -KILL $$", "killed by SIGKILL"),
        ("exec sleep 600", "it had not ended after 1 s"),
    ],
)
def test_how_a_trial_has_failed(script: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(try_java, "SECONDS", 1 if "sleep" in script else 60)
    java = a_java(tmp_path / "java", script)
    with standing_for_broker(str(java)) as pid:
        assert tried(pid, tmp_path).failed == told


@pytest.mark.parametrize(
    ("of_file", "of_version", "failed", "refused"),
    [
        ("echo Found log directory:", "exit 9", None, None),
        ("echo Found problem:; exit 1", "exit 9", None, None),
        ("echo ConfigException; exit 1", "exit 0", None, "exit code 1; ConfigException"),
        ("echo no memory; exit 1", "echo none at all; exit 1", "exit code 1; none at all", None),
    ],
)
def test_a_file_is_to_blame_only_where_java_is_not(
    of_file: str, of_version: str, failed: str | None, refused: str | None, tmp_path: Path
) -> None:
    """Directories that are not formatted as a file has them are no matter: that is done before a start."""
    java = a_java(tmp_path / "java", f'case "$*" in *--version) {of_version};; *" info -c /dev/stdin") {of_file};; esac')
    with standing_for_broker(str(java)) as pid:
        assert tried(pid, tmp_path, has_file=True) == JavaTrial(command=str(java), failed=failed, refused=refused)


def test_a_java_that_may_not_be_run_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java = a_java(tmp_path / "java", "exit 0")
    with standing_for_broker(str(java)) as pid:
        java.write_bytes(b"\x7fELF, and no more")
        assert tried(pid, tmp_path).failed == "Exec format error"
        java.unlink()
        assert tried(pid, tmp_path) == JavaTrial(command=str(java), failed="there is no such program any more")


def test_another_java_in_its_place_is_what_a_start_would_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade of the package: its folder is named after its version, and JAVA_HOME, or the PATH, leads to the new one."""
    new = a_java(tmp_path / "17.0.9" / "bin" / "java", "exit 0")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "17.0.9"))
    with standing_for_broker(str(tmp_path / "17.0.8" / "bin" / "java")) as pid:
        assert tried(pid, tmp_path) == JavaTrial(command=str(new))
    monkeypatch.setenv("PATH", str(new.parent))
    with standing_for_broker("java") as pid:
        assert tried(pid, tmp_path).command == str(new)
    (tmp_path / "run").mkdir()
    with standing_for_broker("../17.0.9/bin/java", cwd=tmp_path / "run") as pid:
        assert tried(pid, tmp_path).failed is None


def test_what_is_no_plain_java_or_not_there_is_not_tried(tmp_path: Path) -> None:
    with standing_for_broker("/usr/bin/java", main="org.apache.zookeeper.server.quorum.QuorumPeerMain") as pid:
        assert "no plain `java … kafka.Kafka`" in (tried(pid, tmp_path).untried or "")
    assert "may not be read" in (tried(pid, tmp_path).untried or ""), "it has ended"


def test_a_real_java_without_jars(tmp_path: Path) -> None:
    """As it is sent to a node: by the command line, without this repository."""
    with standing_for_broker(str(java_home() / "bin" / "java"), "-XX:+UseSerialGC") as pid:
        request = json.dumps(asked(pid, tmp_path, None))
        command = [sys.executable, "-I", "-c", program("try_java"), request]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd="/")
    found = JavaTrial.model_validate_json(done.stdout)
    assert (found.failed or "").startswith("exit code 1; Error: Could not find or load main class kafka.Kafka")


def test_what_stands_in_a_file_with_a_mistake_is_not_repeated(tmp_path: Path) -> None:
    said = "mapping values are not allowed here\\n in 'reader', line 2, column 9:\\n password: hunter2: x"
    java = a_java(tmp_path / "java", f'printf "{said}"; exit 1')
    with standing_for_broker(str(java)) as pid:
        assert tried(pid, tmp_path).failed == "exit code 1; mapping values are not allowed here; in 'reader', line 2, column 9:"


def test_relative_paths_are_those_of_the_nodes_own_process(tmp_path: Path) -> None:
    java = a_java(tmp_path / "java", "pwd; exit 1")
    with standing_for_broker(str(java), cwd=tmp_path) as pid:
        assert tried(pid, tmp_path).failed == f"exit code 1; {tmp_path}"


def test_a_java_that_hangs_is_not_tried_without_its_agents_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(try_java, "SECONDS", 1)
    runs = tmp_path / "runs"
    java = a_java(tmp_path / "java", f"echo x >>{shlex.quote(str(runs))}; exec sleep 600")
    with standing_for_broker(str(java), "-javaagent:/jmx-exporter.jar=9404:/e.yml") as pid:
        found = tried(pid, tmp_path)
    assert (found.failed, found.agents) == ("it had not ended after 1 s", None)
    assert runs.read_text(encoding="utf-8").split() == ["x"]


@pytest.mark.parametrize(("does_java_hang", "failed", "refused"), [(False, None, LATE), (True, LATE, None)])
def test_whether_the_file_or_java_hangs_is_told_apart(
    does_java_hang: bool, failed: str | None, refused: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A config provider may read from a mount that does not answer; on the way back only the file counts."""
    monkeypatch.setattr(try_java, "SECONDS", 2)
    hangs = "*" if does_java_hang else "*StorageTool*"
    java = a_java(tmp_path / "java", f'case "$*" in {hangs}) exec sleep 600;; esac')
    with standing_for_broker(str(java)) as pid:
        found = tried(pid, tmp_path, has_file=True)
    assert (found.failed, found.refused, found.is_late) == (failed, refused, refused is not None)
