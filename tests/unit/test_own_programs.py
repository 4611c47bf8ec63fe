"""Our programs beside the API, found by what they are."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from api import programs, units
from api.journal import printed_by
from api.programs import Process, apart_from, running, signs_of_program
from api.temporal import Temporal
from api.units import signs_of_units
from api.unlike_copies import unlike_copies
from api.worker_log import last_words
from domain.machines.vital_signs import Sign

PROGRAM = "keeperless-activities"
OURS = Temporal({"target_host": "127.0.0.1:7233", "namespace": "default"})
LEDGER = "postgresql://keeperless:hunter2@db/ledger"
NOBODY = 65534
SLEEPS = "import time; time.sleep(600)"
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A script of that name, run by Python as the installed one is; with these variables."""
    with ExitStack() as stack:

        def begin(source: str = SLEEPS, **environment: str) -> "subprocess.Popen[bytes]":
            (script := tmp_path / "bin" / PROGRAM).parent.mkdir(exist_ok=True)
            script.write_text(source)
            given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **environment}
            with (tmp_path / "log").open("ab") as log:
                command = [sys.executable, "-I", str(script)]
                process = subprocess.Popen(command, env=given, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield begin


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Other tests, and the machine, have such programs too: here are those that this test has started."""
    seen = programs.running
    monkeypatch.setattr(programs, "running", lambda program: [one for one in seen(program) if is_from(one.pid, tmp_path)])
    monkeypatch.setattr(programs, "AGAIN", programs.YOUNG / 100)
    monkeypatch.setattr(programs, "signs_of_units", lambda names: ())


def is_from(pid: int, place: Path) -> bool:
    return str(place) in Path(f"/proc/{pid}/cmdline").read_text()


def until_it_belongs_to(user: int, pid: int) -> None:
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").stat().st_uid != user:
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def told(known: int | None = None) -> tuple[str, str]:
    signs = await signs_of_program(PROGRAM, OURS, LEDGER, known)
    return ". ".join(sign.observed for sign in signs), " ".join(filter(None, (sign.fix for sign in signs)))


async def test_a_worker_that_was_given_another_temporal_is_told_with_both(start: Start) -> None:
    process = start(TEMPORAL_NAMESPACE="staging", TEMPORAL_ADDRESS="temporal.old:7233", TEMPORAL_API_KEY="hunter2")
    observed, fix = await told()
    since = datetime.now(UTC)
    assert f"Process {process.pid} is {PROGRAM}, runs since {since:%H:%M:}" in observed or since.second < 5
    both = "asks namespace staging at temporal.old:7233; the API uses namespace default at 127.0.0.1:7233"
    assert both in observed
    assert "EnvironmentFile" in fix
    assert "hunter2" not in observed + repr(running(PROGRAM))


async def test_of_one_that_has_just_been_started_nobody_is_to_start_another(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(TEMPORAL_ADDRESS="127.0.0.1:7233")
    assert "look again before anybody starts one more" in (await told())[1]
    monkeypatch.setattr("api.programs.FRESH", timedelta(0))
    assert "look again before anybody" not in (await told())[1]


async def test_settings_of_its_own_file_are_read_as_it_reads_them(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "temporal.toml"
    file.write_text('[profile.prod]\naddress = "prod:7233"\nnamespace = "kafka"\n')
    start(TEMPORAL_CONFIG_FILE=str(file), TEMPORAL_PROFILE="prod")
    assert "asks namespace kafka at prod:7233" in (await told())[0]
    file.unlink()
    assert "its settings of Temporal cannot be read" in (await told())[0]


async def test_settings_that_could_keep_who_opens_them_waiting_are_not_opened(start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = str(tmp_path / "pipe")
    start(TEMPORAL_CONFIG_FILE=pipe)
    assert "its settings of Temporal cannot be read" in (await asyncio.wait_for(told(), 5))[0]
    start(TEMPORAL_ADDRESS="127.0.0.1:7233", TEMPORAL_TLS_SERVER_CA_CERT_PATH=pipe)
    assert "and is to ask the Temporal that the API uses" in (await asyncio.wait_for(told(), 5))[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start a program as somebody else")
async def test_what_another_users_program_names_is_not_opened(start: Start) -> None:
    process = start(f"import os; os.setuid({NOBODY}); {SLEEPS}", TEMPORAL_NAMESPACE="staging")
    until_it_belongs_to(NOBODY, process.pid)
    observed, _ = await told()
    assert observed.endswith("which Temporal it asks may not be read from here")


@pytest.mark.parametrize(
    "theirs",
    [
        "postgresql+psycopg://keeperless:hunter2@db/ledger",
        "postgresql://activities@db:5432/ledger?sslmode=require",
        "postgresql://activities@/ledger?host=db",
    ],
)
async def test_one_ledger_may_be_written_in_several_ways(start: Start, theirs: str) -> None:
    start(KEEPERLESS_LEDGER_URL=theirs)
    assert "Its ledger" not in (await told())[0]


async def test_one_with_the_same_temporal_and_another_ledger_is_told_without_a_password(start: Start) -> None:
    process = start(KEEPERLESS_LEDGER_URL="postgresql://keeperless:hunter2@old/ledger?password=hunter3")
    observed, fix = await told()
    assert "and is to ask the Temporal that the API uses" in observed
    assert "Its ledger is postgresql+psycopg://keeperless:***@old/ledger, that of the API" in observed
    assert "hunter" not in observed
    assert "KEEPERLESS_LEDGER_URL" in fix
    assert await told(known=process.pid) == ("", ""), "it was told already"


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({}, "sqlite+aiosqlite:///{0}/.local/state/keeperless/ledger.db"),
        ({"KEEPERLESS_LEDGER_URL": "postgresql://u:hunter2@db/another"}, "postgresql+psycopg://u:***@db/another"),
        ({"KEEPERLESS_LEDGER_URL": "postgresql://u:hunter2@pgbouncer:6432/ledger"}, None),
        ({"KEEPERLESS_LEDGER_URL": LEDGER}, None),
        ({"TEMPORAL_NAMESPACE": "others"}, None),
    ],
    ids=["none was given", "another one", "by another name", "the same", "another installation"],
)
async def test_a_worker_that_goes_by_another_ledger_is_found_though_it_is_well(
    given: dict[str, str], place: str | None, start: Start, tmp_path: Path
) -> None:
    process = start(**given)
    wanted = [] if place is None else [(PROGRAM, process.pid, place.format(tmp_path))]
    assert [(one.program, one.pid, one.ledger) for one in await apart_from(OURS, LEDGER)] == wanted


async def test_copies_that_were_not_started_alike_are_told_by_names_only(start: Start) -> None:
    """One by its unit, and one by hand without a secret: every second attempt fails."""
    given = {"TEMPORAL_ADDRESS": "127.0.0.1:7233"}
    more = {"KAFKA_PASSWORD": "hunter2", "KEEPERLESS_MAX_EFFECTS": "8", "INVOCATION_ID": "1"}
    unit = start(**given, **more)
    by_hand = start(**given, KEEPERLESS_MAX_EFFECTS="2", SHLVL="1")
    (entry,) = await unlike_copies(OURS)
    assert (entry.code, entry.object) == ("machine", f"copies of {PROGRAM}")
    only, other = f"KAFKA_PASSWORD only in {unit.pid}", "other values of KEEPERLESS_MAX_EFFECTS"
    assert entry.observed == f"processes {unit.pid} and {by_hand.pid} differ: {only}; {other}"
    assert "hunter2" not in entry.model_dump_json()
    assert await unlike_copies(Temporal({"target_host": "others:7233"})) == [], "another installation's"


def instance(name: str) -> dict[str, str]:
    """Of what systemd gives each of a template's (systemd.exec), with directories of its own."""
    places = ("RUNTIME", "STATE", "CACHE", "LOGS", "CONFIGURATION", "CREDENTIALS")
    watchdog = {"WATCHDOG_PID": name, "WATCHDOG_USEC": "30000000", "MANAGERPID": "1"}
    return {f"{place}_DIRECTORY": f"/run/keeperless@{name}" for place in places} | watchdog


async def test_copies_that_were_started_alike_are_no_cause(start: Start) -> None:
    """Nor are instances of one template unit, nor one from a terminal that sudo was asked in."""
    theirs = ({"TMUX": "/run/t", "SUDO_COMMAND": "/bin/sh"}, *({"INVOCATION_ID": n, **instance(n)} for n in "12"))
    for variables in theirs:
        start(TEMPORAL_ADDRESS="127.0.0.1:7233", **variables)
    assert await unlike_copies(OURS) == []


async def test_one_whose_code_was_replaced_while_it_runs_is_told_with_both_times(start: Start, tmp_path: Path) -> None:
    process = start(TEMPORAL_ADDRESS="127.0.0.1:7233")
    (contracts := tmp_path / "lib" / "python3.11" / "site-packages" / "domain" / "contracts.py").parent.mkdir(parents=True)
    contracts.touch()
    assert "its code on disk is of" not in (await told())[0]
    later = (datetime.now(UTC) + timedelta(minutes=88)).timestamp()
    os.utime(contracts, (later, later))
    observed, fix = await told()
    assert re.search(rf"Process {process.pid} runs since \S+ \S+ UTC, and its code on disk is of \S+ \S+ UTC", observed)
    assert f"Restart {PROGRAM}" in fix


async def test_one_file_may_have_several_names(start: Start, tmp_path: Path) -> None:
    (tmp_path / "ledger.db").touch()
    (tmp_path / "other.db").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "ledger.db")
    start(KEEPERLESS_LEDGER_URL=f"sqlite:///{tmp_path}/link.db")
    assert await apart_from(OURS, f"sqlite:///{tmp_path}/ledger.db") == []
    assert len(await apart_from(OURS, f"sqlite:///{tmp_path}/other.db")) == 1
    assert await apart_from(OURS, f"sqlite:///{tmp_path}/gone.db") == [], "what is not there is not known"


async def test_that_none_runs_is_told_and_is_no_cause_by_itself() -> None:
    sign = Sign(f"No process of {PROGRAM} runs on the API's machine", "", is_slight=True)
    assert await signs_of_program(PROGRAM, OURS, LEDGER, None) == (sign,)


async def test_a_journal_that_takes_its_time_holds_up_nobody_else(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    monkeypatch.setattr(programs, "complaint_of", lambda *_: time.sleep(1))
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await told()
    assert time.monotonic() - began < 0.9


async def test_one_that_is_started_and_ends_again_and_again_is_told_with_the_error_that_ends_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a loop of a shell, or by a manager of services: one was there at the first look, another at the second."""
    first = start("import nowhere")
    first.wait()
    second = start()
    seen = programs.running
    before = [[Process(first.pid, datetime.now(UTC), {})]]
    monkeypatch.setattr(programs, "running", lambda program: before.pop() if before else seen(program))
    observed, _ = await told()
    assert f"{PROGRAM} is started, and ends: process {first.pid} has" in observed
    assert f"Process {second.pid} is {PROGRAM}" in observed
    assert "The last complaint in its log: ModuleNotFoundError: No module named 'nowhere'" in observed


SERVING = json.dumps({"event": "serving", "level": "info", "timestamp": "2026-11-23T13:20:30Z"})
TRACEBACK = ("Traceback (most recent call last):", '  File "/opt/x.py", line 3, in <module>', "    import yarl")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((*TRACEBACK, "ModuleNotFoundError: No module named 'yarl'"), "ModuleNotFoundError: No module named 'yarl'"),
        ((*TRACEBACK, "ledger.errors.LedgerUnavailable: it waits for 'x'"), "LedgerUnavailable: it waits for 'x'"),
        ((*TRACEBACK, "ValueError: bad 'hunter2'"), "ValueError: bad ***"),
        (
            (
                *TRACEBACK,
                "ValueError: of before",
                SERVING,
            ),
            "",
        ),
        ((*TRACEBACK,), ""),
    ],
)
def test_the_error_that_ended_a_program_is_told_without_values(lines: tuple[str, ...], words: str) -> None:
    assert last_words(lines) == words


WELL = "ActiveState=active\nSubState=running\nNRestarts=0\n"
SHOWN = "ActiveState=activating\nSubState=auto-restart\nResult=exit-code\nExecMainStatus=203\nNRestarts=41\n"
NOW_AND_THEN = "ActiveState=active\nSubState=running\nResult=success\nExecMainStatus=0\nNRestarts=41\n"
NEVER = "ActiveEnterTimestampMonotonic=0\n"
LATELY = "ActiveEnterTimestampMonotonic={lately}\n"
LONG_AGO = "ActiveEnterTimestampMonotonic={long_ago}\n"
OFTEN = ", restarted 41 times"
FAILS, LIVES = (
    "activating (auto-restart), result exit-code, last exit status 203",
    "active (running), result success, last exit status 0",
)


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (SHOWN + LATELY, FAILS + OFTEN),
        (SHOWN + NEVER, FAILS),
        (SHOWN, FAILS),
        (NOW_AND_THEN + LATELY, LIVES + OFTEN),
        (NOW_AND_THEN + LONG_AGO, None),
        (WELL, None),
        ("", None),
    ],
)
def test_what_systemd_says_of_its_unit_is_told_and_restarts_only_of_now(
    shown: str, state: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "workers.service").write_text("[Service]\nExecStart=/opt/k/bin/keeperless-activities\n")
    (tmp_path / "other.service").write_text("[Service]\nExecStart=/opt/k/bin/keeperless-activities-of-old\n")
    denied = "PermissionError: [Errno 13] Permission denied: '/etc/k/tls'"
    asked: list[tuple[str, ...]] = []

    def printed(*command: str) -> list[str]:
        asked.append(command)
        now = time.monotonic()
        return shown.format(lately=int(now * 1e6), long_ago=int((now - 3600) * 1e6)).splitlines()

    monkeypatch.setattr(units, "printed_by", printed)
    monkeypatch.setattr(units, "journal", lambda *_: [*TRACEBACK, denied])
    signs = signs_of_units((PROGRAM, "activities.worker"), (tmp_path,))
    assert [command[-1] for command in asked] == ["workers.service"]
    told = f"systemd says of its unit workers.service: {state}. Its journal: {denied}"
    assert [sign.observed for sign in signs] == ([told] if state is not None else [])


def test_what_we_ask_systemd_with_gets_no_secret_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPERLESS_LEDGER_URL", LEDGER)
    given = {line.partition("=")[0] for line in printed_by("env")}
    assert {"PATH", "LC_ALL"} <= given <= {"PATH", "LC_ALL", "XDG_RUNTIME_DIR", "SYSTEMD_PAGER", "SYSTEMD_COLORS"}
