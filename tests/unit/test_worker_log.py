"""What a worker complained of last, as its log has it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from api.worker_log import complaint_of

NOW = datetime(2026, 11, 23, 13, 20, 30, tzinfo=UTC)
SDK = (
    "\x1b[2m2026-11-23T13:20:08.493369Z\x1b[0m \x1b[33m WARN\x1b[0m \x1b[2mtemporalio_client::retry\x1b[0m\x1b[2m:\x1b[0m "
    "gRPC call poll_workflow_task_queue retried 8 times \x1b[3merror\x1b[0m\x1b[2m=\x1b[0m"
    'Status { code: ResourceExhausted, message: "namespace concurrent poller limit exceeded" }'
)


FAILING = (
    "2026-11-23T13:20:09.493369Z  WARN temporalio_sdk_core::worker::workflow: Failing workflow task run_id=1 failure=Failure { "
    'failure: Some(Failure { message: "1 validation error, input_value=hunter2" }) }'
)
BROKEN = "2026-11-23T13:20:60.493369Z  WARN temporalio_sdk_core: no second of any minute"


def entry(event: str, level: str = "error", at: datetime = NOW, **more: str) -> str:
    return json.dumps({"event": event, "level": level, "timestamp": at.isoformat(), **more})


@contextmanager
def writing(log: Path, *lines: str) -> Iterator[int]:
    log.write_text("".join(f"{line}\n" for line in lines))
    with (
        log.open("a") as errors,
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stderr=errors) as process,
    ):
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            (SDK,),
            "gRPC call poll_workflow_task_queue retried 8 times: ResourceExhausted, namespace concurrent poller limit exceeded",
        ),
        ((FAILING,), "Failing workflow task"),
        ((SDK, entry("the ledger is away", "warning")), "the ledger is away"),
        ((entry("no", exception="Traceback\n  File x\nValueError: hunter2"),), "no (ValueError)"),
        (
            (entry("nothing is served yet", error="the ledger: FATAL: sorry, too many clients already, password=hunter2"),),
            "nothing is served yet: the ledger: FATAL: sorry, too many clients already",
        ),
        ((entry("no", exception="asyncio.exceptions.CancelledError"),), "no (asyncio.exceptions.CancelledError)"),
        ((entry("the key password=hunter2 of 'hunter2'"),), "the key password=*** of ***"),
    ],
)
def test_the_last_complaint_is_told_without_values(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    with writing(tmp_path / "log", *lines) as pid:
        sign = complaint_of(pid, NOW)
    assert sign is not None
    assert sign.is_slight
    assert words in sign.observed
    assert "hunter2" not in sign.observed


@pytest.mark.parametrize(
    "line",
    [
        entry("serving", "info"),
        entry("old", at=NOW - timedelta(minutes=5)),
        "{",
        "[]",
        '{"level": "error"}',
        "Traceback",
        BROKEN,
    ],
)
def test_what_is_no_complaint_of_now_is_none(tmp_path: Path, line: str) -> None:
    with writing(tmp_path / "log", line) as pid:
        assert complaint_of(pid, NOW) is None


def test_a_log_that_is_no_file_is_not_read() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stderr=subprocess.PIPE) as process:
        try:
            assert complaint_of(process.pid, NOW) is None
        finally:
            process.kill()
    assert complaint_of(process.pid, NOW) is None
