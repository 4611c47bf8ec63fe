"""How a machine is set, and what is told of it when somebody has changed it: on this machine, by real changes."""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.on_node import (
    command_of,
    facts_of_files,
    facts_of_kernel,
    facts_of_process,
    facts_of_zookeeper,
    kernel,
    note_machine,
)
from domain.diagnosis.machines.notes import JAVA_HOME, SIDES, Facts, MachineNote, changes_between
from playground.processes import wait_until
from tests.unit.conftest import NOW, await_environment

NOTHING: dict[str, Any] = {"identity": None, "places": [], "files": [], "data": [], "settings": [], "named": []}


def identity_of(pid: int) -> str:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return f"{pid}@{fields[19]}"


def noted(**request: Any) -> Facts:
    """As a node does: from the command line, without this repository."""
    command = command_of("note_machine", NOTHING | request, sys.executable)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd="/")
    found: Facts = json.loads(done.stdout)["facts"]
    return found


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a secret in its environment, and a proxy with a password."""
    environment = {
        "SHLVL": "2",
        "PATH": "/usr/bin:/bin",
        "SASL_PASSWORD": "tiger",
        "HTTPS_PROXY": "http://olga:tiger@proxy.example:3128",
    }
    with subprocess.Popen(["/bin/sleep", "60"], env=environment) as process:
        await_environment(process.pid)
        yield process
        process.kill()


def test_what_nobody_has_changed_is_the_same(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("a=1")
    request = {"identity": identity_of(sleeper.pid), "places": [str(tmp_path)], "data": [str(tmp_path)]}
    first, second = noted(**request), noted(**request)
    # Others use this machine: their programs, links, services and mounts come and go.
    for kind in first.keys() - {"program", "mount", "address", "neighbour", "route", "link"}:
        assert first[kind] == second[kind], kind
    assert len(first["sysctl"]) > 100
    assert "/" in first["mount"]


def test_nothing_of_a_process_is_told_where_none_runs() -> None:
    assert not noted().keys() & {"limit", "process", "environment", "group"}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PATH", "/usr/bin:/bin", "/usr/bin:/bin"),
        ("SASL_PASSWORD", "tiger", "(not shown)"),
        ("KAFKA_OPTS", "-Dpassword=tiger", "(not shown)"),
        ("HTTPS_PROXY", "http://olga:ti/ger@proxy.example:3128", "proxy.example:3128"),
        ("http_proxy", "olga:tiger@proxy.example:3128", "proxy.example:3128"),
        ("HTTP_PROXY", "http://olga:ti@ger@proxy.example:3128", "proxy.example:3128"),
        ("KAFKA_HEAP_OPTS", "-Xmx4g -Djavax.net.ssl.keyStorePassword=tiger", "-Xmx4g"),
        ("SSL_CERT_FILE", "/etc/ssl/ca.pem", "/etc/ssl/ca.pem"),
    ],
)
def test_no_secret_of_an_environment_is_told(name: str, value: str, told: str) -> None:
    assert facts_of_process.shown(name, value) == told


def test_no_secret_is_told(sleeper: subprocess.Popen[bytes]) -> None:
    found = noted(identity=identity_of(sleeper.pid))
    assert found["environment"].keys() == {"PATH", "SASL_PASSWORD", "HTTPS_PROXY"}
    assert "tiger" not in json.dumps(found)
    assert not [name for name in found["sysctl"] if name.endswith(("_key", "secret"))]
    assert note_machine.printable("ftp://olga:ti@ger@files.example/kafka (fuse)") == "ftp://…@files.example/kafka (fuse)"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("java", "-Dzookeeper.sessionRequireClientSASLAuth=true"),
            {"-Dzookeeper.sessionRequireClientSASLAuth": "true"},
        ),
        (("java", "-Djavax.net.ssl.trustStorePassword=1234"), {"-Djavax.net.ssl.trustStorePassword": "(not shown)"}),
        (("java", "-Dx=ti ger"), {"-Dx": "(not shown)"}),
        (("java", "-agentlib:jdwp=transport=dt_socket,suspend=y"), {"-agentlib:jdwp": "transport=dt_socket,suspend=y"}),
        (("java", "-Xmx1g", "-XX:MaxRAMPercentage=50.0"), {"-Xmx1g": "there", "-XX:MaxRAMPercentage": "50.0"}),
        (
            ("java", "-cp", "/opt/kafka/libs/*:/opt/a.jar", "kafka.Kafka", "/etc/kafka/1.properties"),
            {"kafka.Kafka": "there", "/etc/kafka/1.properties": "there"},
        ),
        (("tool", "--password", "tiger"), None),
        (("tool", "--token", "eyJhbGci.eyJzdWI.abc"), None),
        (("tool", "--password", "/Qk3+secret=="), None),
        (("tool", "-ptiger", "-u:admin:tiger"), None),
        (("java", "-Djwt=a.b.c", "-Dpin=1234"), {"-Djwt": "(not shown)", "-Dpin": "(not shown)"}),
        (("java", "-Dzookeeper.ssl.keyStore.password=1234"), {"-Dzookeeper.ssl.keyStore.password": "(not shown)"}),
        (("java", "-javaagent:/a.jar=tok.en"), {"-javaagent:/a.jar": "(not shown)"}),
        (("java", "-XX:OnOutOfMemoryError=curl -H 'Authorization: Bearer abc'"), None),
        (("java", "-Djute.maxbuffer=4194304"), {"-Djute.maxbuffer": "4194304"}),
        ((), None),
    ],
)
def test_no_secret_of_a_command_line_is_told(
    words: tuple[str, ...], told: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts_of_process, "text", lambda _: "\0".join(words))
    assert facts_of_process.arguments("/proc/1") == told


def test_a_name_that_is_no_utf8_is_told_all_the_same(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("x")
    found = noted(places=[str(tmp_path)])["file"]
    assert f"{tmp_path}/caf?" in found


def test_a_process_that_has_gone_is_not_told_as_one_without_limits(sleeper: subprocess.Popen[bytes]) -> None:
    pid = sleeper.pid
    before = noted(identity=identity_of(pid))
    assert {"limit", "process", "environment", "group"} <= before.keys()
    assert not noted(identity=f"{pid}@1").keys() & {"limit", "process", "environment", "group"}, "another with its number"
    sleeper.kill()
    sleeper.wait()
    assert not noted(identity=f"{pid}@1").keys() & {"limit", "process", "environment", "group"}


def test_what_hangs_is_left_out_and_the_rest_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_machine, "DEADLINE_SECONDS", 1.0)
    hangs = threading.Event()

    def wait() -> dict[str, str]:
        hangs.wait(30)
        return {"never": "told"}

    found, _ = note_machine.in_time({"file": wait, "line": facts_of_files.lines_of})
    hangs.set()
    assert found.keys() == {"line"}


def test_what_may_not_be_looked_at_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for part in (kernel, facts_of_process):
        monkeypatch.setattr(part, "text", lambda _path: None)
    assert facts_of_files.mounts("/proc/1") is None
    assert facts_of_process.limits("/proc/1") is None
    assert facts_of_process.traits("/proc/1") is None
    assert facts_of_process.environment("/proc/1") is None
    assert facts_of_process.group_limits("/proc/1") is None


def test_a_process_is_found_by_the_port_at_which_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert noted(port=port)["process"]["program"] == str(Path(sys.executable).resolve())
    assert "process" not in noted(port=port)


def test_what_a_server_of_zookeeper_is_configured_with_is_told_without_passwords(tmp_path: Path) -> None:
    listens = (
        "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); time.sleep(60)"
    )
    (tmp_path / "myid").write_text("2\n")
    dynamic, config = tmp_path / "zoo.cfg.dynamic", tmp_path / "zoo.cfg"
    dynamic.write_text("server.1=zk1:2888:3888;2181\n")
    config.write_text(
        f"# initLimit=5\ninitLimit=10\n\nssl.quorum.keyStore.location=/etc/zk.jks\nssl.quorum.keyStore.password=tiger\n"
        f"dataDir={tmp_path}\ndynamicConfigFile: {dynamic}\n"
        "superDigest:super:tigerDyrcZhDfgcjhwe=\nsasl.jaas.config=org.example.Login required \\\n  tiger=tiger;\n"
    )
    command = [sys.executable, "-c", listens, "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        told = noted(port=port)["setting"]
        server.kill()
    assert told == {
        facts_of_zookeeper.SERVER_FILE: str(config),
        f"initLimit in {config}": "10",
        f"ssl.quorum.keyStore.location in {config}": "(not shown)",
        f"superDigest in {config}": "(not shown)",
        f"sasl.jaas.config in {config}": "(not shown)",
        f"ssl.quorum.keyStore.password in {config}": "(not shown)",
        f"dataDir in {config}": str(tmp_path),
        f"dynamicConfigFile in {config}": str(dynamic),
        f"server.1 in {dynamic}": "zk1:2888:3888;2181",
        f"{tmp_path}/myid": "2",
    }
    assert noted(port=port, config=str(config))["setting"] == told, "it is found where none runs"
    config.unlink()
    gone = noted(port=port, config=str(config))["setting"]
    assert gone == {facts_of_zookeeper.SERVER_FILE: f"{config}, and nothing can be read in it"}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        *(
            (f"{name}=40000", "40000")
            for name in ("minSessionTimeout", "maxSessionTimeout", "tickTime", "initLimit", "syncLimit")
        ),
        *((f"{name}=60", "60") for name in ("maxClientCnxns", "maxCnxns", "autopurge.purgeInterval", "jute.maxbuffer")),
        *((f"{name}=2", "2") for name in ("cnxTimeout", "globalOutstandingLimit", "snapSizeLimitInKb")),
        ("ssl.handshakeDetectionTimeoutPassword=1", "(not shown)"),
        ("ssl.keyStore.password=40000", "(not shown)"),
        ("pin=1234", "(not shown)"),
    ],
)
def test_numbers_of_a_server_of_zookeeper_that_hold_no_secret_are_shown(
    line: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text(f"{line}\n")
    monkeypatch.setattr(facts_of_zookeeper, "configuration_of", lambda _process: str(config))
    told = facts_of_zookeeper.server_settings("", {"port": 2181})
    assert told is not None
    assert told[f"{line.partition('=')[0]} in {config}"] == shown


def test_only_a_server_of_zookeeper_is_asked_for_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.conf").write_text("dataDir=/srv\n")
    monkeypatch.setattr(facts_of_zookeeper, "text", lambda _path: f"nginx\0-c\0{tmp_path}/app.conf\0")
    assert facts_of_zookeeper.configuration_of("/proc/1") is None


@pytest.mark.parametrize(
    ("words", "group", "told"),
    [
        (["mydaemon --password hunter2"], "/system.slice/my.service", "mydaemon"),
        (["/usr/bin/python3", "-u", "/opt/agent.py", "hunter2"], "/system.slice/my.service", "python3 /opt/agent.py"),
        (["sshd: root@pts/0"], "/system.slice/ssh.service", None),
        (["/usr/lib/systemd/systemd", "--user"], "/user.slice/user-0.slice/user@0.service/init.scope", None),
        (["java", "-cp", "x", "org.apache.spark.sql.connect.service.SparkConnectServer"], "/system.slice/my.service", None),
        (["(sd-pam)"], "/user.slice/user-0.slice/user@0.service/init.scope", None),
        (["tail", "-f", "/var/log/syslog"], "/user.slice/user-0.slice/session-12.scope", None),
        (["sh", "-c", "sleep 240; fsfreeze -u /data"], "/system.slice/my.service", None),
        (["bash", "/opt/repair.sh"], "/system.slice/my.service", "bash /opt/repair.sh"),
    ],
)
def test_what_of_a_program_is_told(words: list[str], group: str, told: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "/proc/uptime": "100000.0 1.0",
        "/proc/7/cmdline": "\0".join(words),
        "/proc/7/cgroup": f"0::{group}\n",
        "/proc/7/stat": "7 (x) " + " ".join(["S", "1", "7", "7", "0", *["0"] * 6, *["50000"] * 4, *["0"] * 4, "100"]),
    }
    monkeypatch.setattr(note_machine, "names", lambda _path: ["7"])
    monkeypatch.setattr(note_machine, "text", found.get)
    monkeypatch.setattr(note_machine, "owner_of", lambda _pid: "0")
    assert note_machine.programs() == ({f"{told} of user 0": "runs"} if told else {})


@pytest.mark.parametrize(("ticks", "told"), [(["0", "0", "0", "0"], "idles"), (["0", "0", "90000", "20000"], "runs")])
def test_a_program_that_does_nothing_is_no_news(ticks: list[str], told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has begun and waited for counts: a loop in a shell does nothing itself."""
    found = {
        "/proc/uptime": "100000.0 1.0",
        "/proc/7/cmdline": "mydaemon",
        "/proc/7/stat": "7 (x) " + " ".join(["S", "1", "7", "7", "0", *["0"] * 6, *ticks, *["0"] * 4, "100"]),
    }
    monkeypatch.setattr(note_machine, "names", lambda _path: ["7"])
    monkeypatch.setattr(note_machine, "text", found.get)
    monkeypatch.setattr(note_machine, "owner_of", lambda _pid: "0")
    assert note_machine.programs() == {"mydaemon of user 0": told}


def test_the_logs_that_a_process_has_open_are_noted_and_no_data(tmp_path: Path) -> None:
    wanted = [tmp_path / name for name in ("server.log", "state-change.log", "kafka.out")]
    others = [tmp_path / name for name in ("00000000000000000000.log", "kafkaServer-gc.log", "notes.txt")]
    files = [path.open("a") for path in (*wanted, *others)]
    with subprocess.Popen(["/bin/sleep", "60"], pass_fds=[file.fileno() for file in files]) as process:
        found = noted(identity=identity_of(process.pid))["log"]
        process.kill()
    for file in files:
        file.close()
    assert found == {str(path): "open" for path in wanted}


def test_a_process_in_another_network_is_told(sleeper: subprocess.Popen[bytes]) -> None:
    assert noted(identity=identity_of(sleeper.pid))["process"]["network namespace"] == "the one that we look from"
    with subprocess.Popen(["unshare", "-n", "sleep", "60"]) as process:
        deadline = time.monotonic() + 30
        while Path(f"/proc/{process.pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        found = noted(identity=identity_of(process.pid))["process"]
        process.kill()
    assert found["network namespace"] == "another one"


def test_limits_of_a_process(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identity_of(sleeper.pid)
    before = noted(identity=identity)
    subprocess.run(["prlimit", f"--pid={sleeper.pid}", "--nofile=64:128"], check=True)
    os.setpriority(os.PRIO_PROCESS, sleeper.pid, 7)
    after = noted(identity=identity)
    assert after["limit"]["Max open files"] == "64 128"
    assert {name for name in before["limit"] if before["limit"][name] != after["limit"][name]} == {"Max open files"}
    assert (before["process"]["nice value"], after["process"]["nice value"]) == (str(os.nice(0)), "7")


def test_files_are_told_with_rights_owner_size_and_time(tmp_path: Path) -> None:
    jar, own, log, pid = (tmp_path / name for name in ("kafka.jar", "server.properties", "kafka.log", "kafka.pid.identity"))
    for path in (jar, own, log, pid):
        path.write_text("x")
    (tmp_path / "now").symlink_to(jar)
    before = noted(places=[str(tmp_path)], data=[str(own)])
    assert not {str(log), str(pid)} & before["file"].keys(), "they are written all the time"
    own.write_text("longer, which somebody else compares")
    jar.write_text("longer")
    after = noted(places=[str(tmp_path)], data=[str(own)])
    assert str(own) not in after["file"]
    assert after["data"] == before["data"]
    assert before["file"][str(jar)].startswith("1 bytes, written ")
    assert after["file"][str(jar)].startswith("6 bytes, written ")
    assert after["file"][str(tmp_path / "now")] == f"→ {jar}"
    own.chmod(0o400)
    assert noted(data=[str(own)])["data"][f"{own}, rights"].startswith("-r-------- ")


@pytest.mark.parametrize("name", ["zoo.cfg", "zookeeper.properties", "log4j.xml"])
def test_a_configuration_file_that_was_written_anew_as_it_was_is_no_change(name: str, tmp_path: Path) -> None:
    config = tmp_path / name
    notes = []
    for content, written in (("tickTime=2000", 1), ("tickTime=2000", 90_000), ("tickTime=3000", 90_000)):
        config.write_text(content)
        os.utime(config, (written, written))
        notes.append({kind: noted(places=[str(tmp_path)], named=[str(config)])[kind] for kind in ("file", "named")})
    first, touched, other = ({kind: {k: v for k, v in found[kind].items() if name in k} for kind in found} for found in notes)
    assert set(first["file"]) == {str(config), f"{config}, rights", f"{config}, content"}
    assert "tickTime" not in str(first)

    def between(before: dict[str, dict[str, str]], now: dict[str, dict[str, str]]) -> tuple[str, ...]:
        return changes_between(MachineNote(about="broker-1", at=NOW, identity=None, facts=before), now, [], NOW).changes

    assert between(first, touched) == ()
    dates = "13 bytes, written 1970-01-01 00:00:01Z → 13 bytes, written 1970-01-02 01:00:00Z"
    assert between(first, other) == (f"{config}: {dates}",), "once, and without the digest"
    assert between(touched, other) == (), "the machine's key may be another one"
    without = {"file": {str(config): first["file"][str(config)]}}
    assert between(without, touched) == (f"{config}: {dates}",), "of a note without it the date is all that is known"


def test_no_content_of_a_configuration_file_is_told_without_a_key_of_that_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads the note could try passwords otherwise."""
    config = tmp_path / "zoo.cfg"
    config.write_text("superDigest=tiger")
    told = dict(facts_of_files.described(str(config)))
    monkeypatch.setattr(facts_of_files, "text", lambda _path: "another machine")
    assert dict(facts_of_files.described(str(config)))[f"{config}, content"] != told[f"{config}, content"]
    monkeypatch.setattr(facts_of_files, "text", lambda _path: None)
    assert f"{config}, content" not in dict(facts_of_files.described(str(config)))


def test_files_that_a_process_was_started_with_are_known_wherever_they_lie_and_also_when_it_has_died(tmp_path: Path) -> None:
    """What a JVM reads as it starts: whoever changes that later is seen by nobody until it is started again."""
    names = ("jmxremote.password", "rules.yml", "trust.jks", "secrets.properties", "server.log", "of-data", "unnamed")
    places = {name: tmp_path / name for name in names}
    for place in places.values():
        place.write_text("x", encoding="utf-8")
        place.chmod(0o600)
    settings = tmp_path / "server.properties"
    settings.write_text(
        f"ssl.truststore.location={places['trust.jks']}\npassword=${{file:{places['secrets.properties']}:password}}\n"
        f"a={places['server.log']},{places['of-data']},{tmp_path},{tmp_path}/gone\n",
        encoding="utf-8",
    )
    option = f"-Dcom.sun.management.jmxremote.password.file={places['jmxremote.password']}"
    command = [sys.executable, "-c", "import time; time.sleep(60)", option]
    asked = {"settings": [str(settings)], "data": [str(settings), str(places["of-data"])]}
    with subprocess.Popen(command, env={**os.environ, "OPTS": f"-javaagent:/a.jar=1:{places['rules.yml']}"}) as process:
        try:
            await_environment(process.pid)
            before = noted(identity=identity_of(process.pid), **asked)["named"]
        finally:
            process.kill()
    found = {Path(name).name for name in before if not name.endswith(SIDES) and name.startswith(str(tmp_path))}
    assert found == {"jmxremote.password", "rules.yml", "trust.jks", "secrets.properties"}
    places["jmxremote.password"].chmod(0o640)
    places["rules.yml"].unlink()
    after = noted(named=[name for name in before if not name.endswith(SIDES)], **asked)["named"]
    note = MachineNote(about="broker-1", at=NOW, identity=None, facts={"named": before})
    assert changes_between(note, {"named": {**after, "/new": "1 bytes"}}, [], NOW).changes == (
        f"{places['jmxremote.password']}, rights: {' → '.join(f'{mode} {os.geteuid()}:{os.getegid()}' for mode in MODES)}",
        f"{places['rules.yml']} is gone (it was {before[str(places['rules.yml'])]})",
    )


MODES = ("-rw-------", "-rw-r-----")


def test_a_file_that_is_known_for_two_reasons_is_told_once() -> None:
    """Java's own program is named by the command line, too."""
    was, now = ({kind: {"/bin/java": size} for kind in ("java", "named")} for size in ("1 bytes", "2 bytes"))
    before = MachineNote(about="broker-1", at=NOW, identity=None, facts=was)
    assert changes_between(before, now, [], NOW).changes == ("/bin/java: 1 bytes → 2 bytes",)


def test_of_data_only_rights_and_owners_are_looked_at(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir(mode=0o700)
    before = noted(data=[str(tmp_path)])["data"]
    assert before[f"{partition}, rights"] == f"drwx------ {os.getuid()}:{os.getgid()}"
    os.utime(partition, (0, 0))
    assert noted(data=[str(tmp_path)])["data"] == before


@pytest.mark.parametrize(("flags", "marks"), [(0x10, ["immutable"]), (0x30, ["immutable", "append-only"]), (0x80000, [])])
def test_a_file_that_nobody_may_change_is_marked(
    flags: int, marks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ioctl_iflags(2) says; not every file system on which tests run has it."""

    def ioctl(_handle: int, request: int, found: "array[int]", _mutate: bool) -> int:
        assert request == facts_of_files.FS_IOC_GETFLAGS
        found[0] = flags
        return 0

    (tmp_path / "server.properties").write_text("x")
    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    assert facts_of_files.marks_of(str(tmp_path / "server.properties")) == marks


def test_code_that_a_process_has_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a tool that is attached while it runs: no command line tells of it."""
    mapped = (
        "/opt/jdk-17/lib/server/libjvm.so",
        "/opt/jdk-17/lib/libinstrument.so",
        "/opt/jdk-17/lib/modules",
        "/usr/lib/x86_64-linux-gnu/libnss_files.so.2",
        "/srv/tmp/snappy-1.1.10-21c4-libsnappyjava.so",
        "/srv/tmp/libzstd-jni-1.5.6-414.so",
        "/opt/keeperless/lib/python3.11/site-packages/pydantic_core/_pydantic_core.cpython-311-x86_64-linux-gnu.so",
        "/opt/keeperless/lib/python3.11/site-packages/cryptography/_rust.abi3.so",
        "/opt/apm/libagent.so",
        "/opt/apm/agent.jar",
        "[heap]",
    )
    files = {
        "/proc/7/maps": "\n".join(f"7f00-7f10 r-xp 00000000 08:01 4711   {path}" for path in mapped)
        + "\n7f20-7f30 rw-p 0 0 0\n"
    }
    monkeypatch.setattr(facts_of_process, "text", files.get)
    monkeypatch.setattr(facts_of_process, "opened_by", lambda _process: ["/opt/kafka/libs/kafka.jar", "socket:[1]"])
    told = dict.fromkeys(["/opt/apm/libagent.so", "jars in /opt/apm", "jars in /opt/kafka/libs"], "there")
    assert facts_of_process.code("/proc/7") == told
    assert facts_of_process.code("/proc/8") is None


def test_a_file_of_its_java_that_was_changed_under_it_is_told_when_it_has_died(tmp_path: Path) -> None:
    """Who runs has read it; the next start reads what is there by then, as a hardening of java.security."""
    home = tmp_path / "jre"
    for part in ("bin", "conf/security", "lib"):
        (home / part).mkdir(parents=True)
    shutil.copy("/bin/sleep", home / "bin" / "java")
    security = home / "conf" / "security" / "java.security"
    security.write_text("security.provider.1=SUN")
    with subprocess.Popen([home / "bin" / "java", "60"]) as process:
        wait_until(lambda: Path(f"/proc/{process.pid}/exe").readlink() == home / "bin" / "java", "its program", 60)
        before = noted(identity=identity_of(process.pid))
        process.kill()
    security.write_text("security.provider.1=BCFIPS")
    assert before["java"][JAVA_HOME] == str(home)
    after = noted(java=before["java"][JAVA_HOME])
    note = MachineNote(about="broker-1", at=NOW, identity=None, facts={"java": before["java"]})
    (change,) = changes_between(note, {"java": after["java"]}, [], NOW).changes
    assert change.startswith(str(security))
    assert "java" not in noted(), "of whom nothing was noted nothing is looked for"


def test_limits_of_the_control_groups_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/7/cgroup": "0::/system.slice/kafka.service\n",
        "/sys/fs/cgroup/system.slice/kafka.service/cpu.max": "20000 100000\n",
        "/sys/fs/cgroup/system.slice/pids.max": "512\n",
    }
    for part in (facts_of_process, kernel):
        monkeypatch.setattr(part, "text", files.get)
    monkeypatch.setattr(
        facts_of_process,
        "names",
        lambda folder: [path.rpartition("/")[2] for path in files if path.rpartition("/")[0] == folder],
    )
    assert facts_of_process.group_limits("/proc/7") == {
        "/system.slice/kafka.service/cpu.max": "20000 100000",
        "/system.slice/pids.max": "512",
    }


def test_when_the_machine_was_booted_is_noted() -> None:
    up = float(Path("/proc/uptime").read_text().split()[0])
    assert abs(int(noted()["boot"]["at"]) - (time.time() - up)) < 60


def test_how_many_were_killed_for_memory_is_counted_by_group_and_for_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody may read that, of both versions."""
    files = {
        "/proc/7/cgroup": "0::/system.slice/k.service\n4:memory:/docker/1\n",
        "/sys/fs/cgroup/system.slice/k.service/memory.events": "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n",
        "/sys/fs/cgroup/memory/docker/1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        "/proc/vmstat": "pgfault 1\noom_kill 5\n",
    }
    for part in (facts_of_process, kernel):
        monkeypatch.setattr(part, "text", files.get)
    assert dict(facts_of_process.kills("/proc/7")) == {"/system.slice/k.service": "1", "/docker/1": "3", "": "5"}


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (
            '{"__REALTIME_TIMESTAMP": "1000000", "PRIORITY": "3", "MESSAGE": "Out of memory: Killed process 4711 (java)"}\n'
            '{"__REALTIME_TIMESTAMP": "2000000", "PRIORITY": "6", "MESSAGE": "eth0: link is up"}\n',
            ["Out of memory: Killed process 4711 (java)"],
        ),
        ('{"__REALTIME_TIMESTAMP": "2000000", "PRIORITY": "6", "MESSAGE": "eth0: link is up"}\n', []),
        ("", None),
        (None, None),
    ],
    ids=["trouble", "none", "may not read it", "no journal"],
)
def test_where_only_root_reads_the_kernels_log_the_journal_has_it(
    printed: str | None, told: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts_of_kernel, "of_kernel", lambda: None)
    monkeypatch.setattr(facts_of_kernel, "run", lambda *_: printed)
    found = facts_of_kernel.kernel_log()
    assert (found and [line for _, line in found]) == told


LOOP = "import os, time; print('begun', flush=True); time.sleep(600)"


def test_programs_that_go_on_are_told_without_what_they_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "agent.py"
    script.write_text(LOOP)
    command = [sys.executable, str(script), "--password", "tiger", "token=tiger"]
    monkeypatch.setattr(note_machine, "LASTING_SECONDS", 0.0)
    monkeypatch.setattr(note_machine, "LEAST_BUSY", 0.0)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as agent:
        assert agent.stdout is not None
        agent.stdout.readline()
        found = note_machine.programs()
        monkeypatch.setattr(note_machine, "LASTING_SECONDS", 3600.0 * 24 * 365)
        later = note_machine.programs()
        agent.kill()
    name = f"{Path(sys.executable).name} {script} of user {os.getuid()}"
    assert found is not None
    assert found[name] == "runs"
    assert "tiger" not in json.dumps(found)
    assert set((later or {}).values()) == {"has begun"}, "what has just begun may end as soon"


def test_options_of_proc_are_told_which_may_hide_processes() -> None:
    assert "/proc, file system" in noted()["mount"]
    assert not [point for point in noted()["mount"] if point.startswith("/proc/")]


@pytest.mark.parametrize(
    "line",
    [
        'audit: type=1400 audit(1.2:3): apparmor="DENIED" operation="open" profile="java" name="/data/meta.properties"',
        "audit: type=1400 audit(1.2:3): avc:  denied  { write } for  pid=812 comm=java",
        "audit: type=1326 audit(1.2:3): auid=0 uid=0 comm=java sig=31 syscall=257",
        "audit: backlog limit exceeded",
    ],
)
def test_what_a_security_module_refuses_is_trouble(line: str) -> None:
    assert facts_of_kernel.TROUBLE.search(line)


QUERY, BY_ID, INFO, CONNECT_6 = 16, 13, 15, 11


def test_who_has_started_it_is_no_change_of_its_environment() -> None:
    variables = {"HOME": "/root", "LOGNAME": "root", "KAFKA_OPTS": "-Dx"}
    with subprocess.Popen(["/bin/sleep", "60"], env=variables) as process:
        await_environment(process.pid)
        assert facts_of_process.environment(f"/proc/{process.pid}") == {"KAFKA_OPTS": "(not shown)"}
        process.kill()
