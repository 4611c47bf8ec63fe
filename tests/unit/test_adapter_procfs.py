"""What `/proc` says, in its odd corners."""

from datetime import UTC, datetime, timedelta

import pytest

from activities.adapters.nodes.procfs import (
    Stat,
    may_name_file,
    names_file,
    names_file_from,
    parse_boot_time,
    parse_stat,
    started_at,
)

PATH = "/etc/kafka/server.properties"
THREADS_FIELD = 20
"""`num_threads` of proc(5)."""


def stat_line(name: str, state: str = "S", threads: int = 1) -> bytes:
    numbers = " ".join(str(threads if n == THREADS_FIELD else n) for n in range(4, 53))
    return f"4711 ({name}) {state} {numbers}\n".encode()


@pytest.mark.parametrize("name", ["java", "a b", ") S 1 2 (", "((", ""])
def test_the_name_may_hold_anything(name: str) -> None:
    assert parse_stat(stat_line(name)) == Stat(4711, is_alive=True, start_ticks=22)


@pytest.mark.parametrize(
    ("state", "is_alive"), [("R", True), ("S", True), ("D", True), ("T", True), ("Z", False), ("X", False)]
)
def test_who_is_alive(state: str, is_alive: bool) -> None:
    assert parse_stat(stat_line("java", state)).is_alive is is_alive


def test_one_whose_first_thread_has_ended_is_alive_as_long_as_others_are() -> None:
    """They have its log directories locked: a node that is started beside them dies of that."""
    assert parse_stat(stat_line("java", "Z", threads=2)).is_alive
    assert not parse_stat(stat_line("java", "X", threads=2)).is_alive


def test_the_start_time() -> None:
    boot = parse_boot_time(b"cpu  1 2\nbtime 1700000000\nprocesses 5\n")
    assert boot is not None
    assert boot == datetime.fromtimestamp(1_700_000_000, tz=UTC)
    assert started_at(Stat(1, True, 250).identity, boot) == boot + timedelta(seconds=2.5)
    assert {started_at(unknown, boot) for unknown in (None, "", "1", "1@unknown")} == {None}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("java", "kafka.Kafka", PATH), True),
        (("java", f"--config={PATH}"), True),
        (("sh", "-c", f"exec java kafka.Kafka {PATH}"), True),
        (("vi", f"{PATH}.bak"), False),
        (("vi", f"/backup{PATH}"), False),
        (("java", "kafka.Kafka", "server.properties"), False),
        ((), False),
    ],
)
def test_which_command_lines_name_the_file(arguments: tuple[str, ...], expected: bool) -> None:
    assert names_file("\0".join(arguments).encode(), PATH) is expected


def test_a_relative_argument_depends_on_the_working_directory() -> None:
    line = b"java\0kafka.Kafka\0../kafka/server.properties"
    assert may_name_file(line, PATH)
    assert names_file_from(line, "/etc/other", PATH)
    assert not names_file_from(line, "/srv/other", PATH)
    assert not may_name_file(b"java\0kafka.Kafka\0/srv/kafka/server.properties", PATH)


def test_a_machine_that_does_not_say_when_it_was_booted() -> None:
    """As lxcfs does, and ProcSubset=pid of a unit, under which the file is not there."""
    assert {parse_boot_time(content) for content in (b"", b"cpu  1 2\nprocesses 5\n")} == {None}
    assert started_at("1@250", None) is None
