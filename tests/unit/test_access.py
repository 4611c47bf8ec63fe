"""Whether whoever a node is started as may use its files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from activities.on_node.access import User, denied, user_named, user_of
from domain.diagnosis.machines.start import user_of_start

SOMEBODY = User(4242, frozenset({4243}))
ALL_ENTER = 0o011
IS_ROOT = os.geteuid() == 0


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    """A node's folders, as whoever runs the tests makes them: nobody else may use any of it."""
    for folder in ("config", "libs", "data/orders-0", "data/lost+found"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("config/server.properties", "libs/kafka.jar", "data/.lock", "data/meta.properties", "data/orders-0/0.log"):
        (tmp_path / name).touch(0o600)
    for path in [tmp_path, *tmp_path.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)
    (tmp_path / "data/lost+found").chmod(0o700)
    return tmp_path


def told(kafka: Path, user: User | None = SOMEBODY) -> list[str]:
    for above in kafka.parents:
        if above.stat().st_mode & ALL_ENTER != ALL_ENTER:
            above.chmod(above.stat().st_mode | ALL_ENTER)
    found = denied(user, [str(kafka / "config/server.properties"), str(kafka / "libs")], [str(kafka / "data")])
    return [path.removeprefix(f"{kafka}/") for path, _ in found]


def test_who_may_use_all_of_it_is_not_told_of(kafka: Path) -> None:
    """A folder that is none of Kafka's is nobody's matter."""
    assert told(kafka) == []


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("config/server.properties", 0o600),
        ("config", 0o700),
        ("libs", 0o700),
        ("libs/kafka.jar", 0o640),
        ("data", 0o755),
        ("data/.lock", 0o644),
        ("data/meta.properties", 0o600),
        ("data/orders-0", 0o755),
        ("data/orders-0/0.log", 0o644),
    ],
)
def test_what_he_may_not_use_is_named(kafka: Path, path: str, mode: int) -> None:
    (kafka / path).chmod(mode)
    assert told(kafka) == [path]
    assert told(kafka, User(os.getuid(), frozenset())) == []
    assert told(kafka, None) == []


def test_a_group_of_his_counts(kafka: Path) -> None:
    (kafka / "libs/kafka.jar").chmod(0o640)
    assert told(kafka, User(4242, frozenset({os.getgid()}))) == []


def test_what_is_told_says_whose_it_is(kafka: Path) -> None:
    (kafka / "data/.lock").chmod(0o644)
    ((_, why),) = denied(SOMEBODY, [], [str(kafka / "data")])
    assert why == f"it is {os.getuid()}:{os.getgid()} with -rw-r--r--, and is to be written by user 4242"


def test_who_a_process_is() -> None:
    """Who may do all is not asked for. Another one's groups are those of its process, not of its name."""
    assert (user_of(os.getpid()) is None) is IS_ROOT
    as_another = ("setpriv", "--reuid=4242", "--regid=4243", "--clear-groups") if IS_ROOT else ()
    with subprocess.Popen(
        (*as_another, sys.executable, "-c", "input()"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        if IS_ROOT:
            while (found := user_of(process.pid)) is None or found.uid != 4242:
                assert process.poll() is None
            assert found == SOMEBODY
        else:
            assert user_of(process.pid) == User(os.getuid(), frozenset({os.getgid(), *os.getgroups()}))
        process.communicate(b"\n")
    assert user_of(process.pid) is None


def test_who_a_name_is() -> None:
    assert user_named("root") == User(0, frozenset(os.getgrouplist("root", 0)))
    assert user_named("424242") == User(424242, frozenset())
    assert user_named("nobody-here") is None


@pytest.mark.parametrize(
    ("command", "user"),
    [
        ("setpriv --reuid=4242 --regid=4242 --init-groups kafka-server-start.sh {properties}", "4242"),
        ("/usr/bin/setpriv --reuid kafka kafka-server-start.sh {properties}", "kafka"),
        ("sudo -u kafka kafka-server-start.sh {properties}", "kafka"),
        ("runuser -u kafka -- kafka-server-start.sh {properties}", "kafka"),
        ("gosu kafka:kafka kafka-server-start.sh {properties}", "kafka"),
        ("su - kafka -c kafka-server-start.sh", "kafka"),
        ("kafka-server-start.sh {properties}", ""),
        ("env -u kafka kafka-server-start.sh {properties}", ""),
    ],
)
def test_whom_a_start_command_makes_of_itself(command: str, user: str) -> None:
    assert user_of_start(command.split()) == user
