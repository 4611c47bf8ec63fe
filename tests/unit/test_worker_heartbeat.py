"""A worker's heartbeat: its row, its file, and what it does where either cannot be written."""

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog
from structlog.testing import capture_logs
from temporalio.contrib.pydantic import pydantic_data_converter

from console.health import beat_file, why_unhealthy, write_beat
from console.logs import LastError
from console.polls import SDK_LOG
from console.worker_settings import WorkerSettings
from domain.worker_health import WorkerHealth
from ledger import worker_heartbeat
from ledger.errors import LedgerUnavailable
from ledger.ledger import open_ledger
from ledger.worker_heartbeat import beating, ledger_as_it_is

PROGRAM = "keeperless-workflows"
STATUS = 'Status { code: Unavailable, message: "no route", source: None }'
CLIENT = cast(
    "Any",
    SimpleNamespace(
        namespace="default",
        config=lambda: {"data_converter": pydantic_data_converter},
        service_client=SimpleNamespace(config=SimpleNamespace(target_host="127.0.0.1:7233")),
    ),
)


class Polls:
    """Polls that fail while `said` says so."""

    said = ""

    def trouble(self) -> str:
        return self.said


class Ledger:
    """Keeps every beat, and does not answer while `is_down`."""

    def __init__(self) -> None:
        self.beats: list[WorkerHealth] = []
        self.is_down, self.asked = False, 0

    async def beat(self, worker: WorkerHealth) -> None:
        self.asked += 1
        if self.is_down:
            raise LedgerUnavailable("its database does not answer")
        self.beats.append(worker)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkerSettings:
    monkeypatch.setattr(worker_heartbeat, "BEAT", worker_heartbeat.BEAT / 500)
    return WorkerSettings(ledger_url="postgresql://k:hunter2@db/ledger", runtime_directory=tmp_path / "run")


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


def heart(settings: WorkerSettings, ledger: Ledger, polls: Polls | None = None, **shared: object) -> Any:
    return beating(PROGRAM, settings, cast("Any", ledger), CLIENT, cast("Any", polls or Polls()), **shared)


async def test_a_worker_beats_until_it_says_that_it_has_stopped(settings: WorkerSettings) -> None:
    ledger, file = Ledger(), beat_file(settings.runtime_directory, PROGRAM)
    async with heart(settings, ledger):
        await until(lambda: len(ledger.beats) > 2)
        assert why_unhealthy(file) == ""
    first, last = ledger.beats[0], ledger.beats[-1]
    assert (first.program, first.pid, first.stopped_at, first.last_error) == (PROGRAM, os.getpid(), None, None)
    assert {beat.id for beat in ledger.beats} == {first.id}
    assert last.stopped_at is not None
    assert last.beat_at > first.beat_at
    assert why_unhealthy(file).startswith("There is no heartbeat")


async def test_copies_differ_by_what_they_must_share_and_no_secret_counts(settings: WorkerSettings) -> None:
    async def fingerprint(of: WorkerSettings, **shared: object) -> str:
        async with heart(of, ledger := Ledger(), **shared):
            await until(lambda: ledger.beats)
        return ledger.beats[0].settings_fingerprint

    ours = await fingerprint(settings, artefacts=Path("/data"))
    other_password = settings.model_copy(update={"ledger_url": "postgresql://k:swordfish@db/ledger"})
    assert await fingerprint(other_password, artefacts=Path("/data")) == ours
    assert await fingerprint(settings, artefacts=Path("/elsewhere")) != ours
    other_ledger = settings.model_copy(update={"ledger_url": "postgresql://k:hunter2@db/other"})
    assert await fingerprint(other_ledger, artefacts=Path("/data")) != ours


async def test_without_a_ledger_the_worker_goes_on_and_logs_that_once(settings: WorkerSettings) -> None:
    ledger, file = Ledger(), beat_file(settings.runtime_directory, PROGRAM)
    ledger.is_down = True
    with capture_logs() as logs:
        async with heart(settings, ledger):
            await until(lambda: ledger.asked > 3)
            assert why_unhealthy(file) == ""
            ledger.is_down = False
            await until(lambda: ledger.beats)
    assert [(line["log_level"], line["event"].partition(";")[0]) for line in logs] == [
        ("error", "the heartbeat in the ledger cannot be written"),
        ("info", "the heartbeat in the ledger is written again"),
    ]


async def test_a_file_that_cannot_be_written_costs_no_row(settings: WorkerSettings) -> None:
    settings.runtime_directory.write_text("no directory")
    with capture_logs() as logs:
        async with heart(settings, ledger := Ledger()):
            await until(lambda: len(ledger.beats) > 2)
    assert ["KEEPERLESS_RUNTIME_DIRECTORY" in line["event"] for line in logs] == [True]


async def test_an_error_of_the_worker_is_in_its_next_beat_without_values(settings: WorkerSettings) -> None:
    async with heart(settings, ledger := Ledger()):
        logging.getLogger("elsewhere").error("no answer from password=hunter2")
        await until(lambda: ledger.beats and ledger.beats[-1].last_error)
    told = ledger.beats[-1]
    assert (told.last_error, told.last_error_at is not None) == ("no answer from password=***", True)


async def test_failing_polls_make_a_worker_unhealthy(settings: WorkerSettings) -> None:
    polls, file = Polls(), beat_file(settings.runtime_directory, PROGRAM)
    async with heart(settings, Ledger(), polls):
        polls.said = "Polls for tasks fail (TRANSPORT_ERROR)."
        await until(lambda: why_unhealthy(file) == polls.said)


async def test_a_blocked_event_loop_writes_no_beat(settings: WorkerSettings) -> None:
    file = beat_file(settings.runtime_directory, PROGRAM)
    async with heart(settings, ledger := Ledger()):
        await until(lambda: ledger.beats)
        before = file.stat().st_mtime_ns
        time.sleep(0.2)  # noqa: ASYNC251 - the loop is blocked
        assert file.stat().st_mtime_ns == before
        await until(lambda: file.stat().st_mtime_ns > before)


def test_an_old_beat_is_no_health(tmp_path: Path) -> None:
    write_beat(file := beat_file(tmp_path / "run", PROGRAM), "")
    os.utime(file, (time.time() - 31,) * 2)
    assert why_unhealthy(file).startswith("The last heartbeat is 31 s old")


async def test_who_only_beats_creates_no_ledger_and_finds_the_one_that_comes(tmp_path: Path) -> None:
    url, now = f"sqlite:///{tmp_path}/ledger.db", datetime.now(UTC)
    worker = WorkerHealth(
        id="1", program=PROGRAM, host="a", pid=7, release="1", settings_fingerprint="", started_at=now, beat_at=now
    )
    async with ledger_as_it_is(url) as ledger:
        with pytest.raises(LedgerUnavailable, match="there is no ledger at"):
            await ledger.beat(worker)
        assert os.listdir(tmp_path) == []  # noqa: PTH208 - at once
        async with open_ledger(url) as opened:
            await ledger.beat(worker)
            assert await opened.workers() == [worker]


@pytest.fixture
async def last() -> AsyncIterator[LastError]:
    logging.getLogger().addHandler(handler := LastError())
    yield handler
    logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize(
    ("name", "level", "is_kept"),
    [
        ("a", logging.ERROR, True),
        ("a", logging.WARNING, False),
        (SDK_LOG, logging.WARNING, True),
        (SDK_LOG, logging.INFO, False),
    ],
)
async def test_errors_are_kept_and_warnings_of_temporals_sdk(last: LastError, name: str, level: int, is_kept: bool) -> None:
    logging.getLogger(name).log(level, "it fails")
    assert last.said == ("it fails" if is_kept else "")


async def test_an_error_is_kept_with_what_is_named_beside_it(last: LastError) -> None:
    log = structlog.wrap_logger(logging.getLogger("x"), [structlog.stdlib.ProcessorFormatter.wrap_for_formatter])
    log.error("cannot do it", error="the disk is full")
    assert last.said == "cannot do it: the disk is full"
    try:
        json.loads("secret=hunter2")
    except ValueError:
        logging.getLogger("x").exception("it failed")
    assert last.said == "it failed: JSONDecodeError"
    status = SimpleNamespace(
        message="gRPC call poll retried 6 times", fields={"error": STATUS, "failure": 'message: "hunter2"'}
    )
    logging.getLogger(SDK_LOG).handle(record := logging.LogRecord(SDK_LOG, logging.WARNING, "", 0, "x", (), None))
    assert last.said == "x"
    record.temporal_log = status
    last.handle(record)
    assert last.said == "gRPC call poll retried 6 times: no route"
