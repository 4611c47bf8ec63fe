"""`make demo-start`, on a real Temporal and our real programs: whoever was killed runs again, where it did before."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import Permanent
from playground.demo.__main__ import start
from playground.demo.cast import Cast, RollCall, cast_of, kept_cast
from playground.demo.directory import DemoDirectory
from playground.demo.leftovers import stop_all
from playground.demo.state import Tone
from playground.ports import PortLease
from playground.progress import wait_while_working
from playground.services import Program
from playground.temporal import TemporalPorts, temporal_program


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[DemoDirectory]:
    directory = DemoDirectory(tmp_path / "demo")
    directory.hold().close()
    yield directory
    stop_all(directory.path)


@pytest.fixture
def cast(directory: DemoDirectory) -> Iterator[Cast]:
    with PortLease(5) as lease:
        cast = cast_of(directory, temporal_program(), TemporalPorts.leased(lease), lease.take())
        cast.keep(directory)
        yield cast


def await_serving(cast: Cast) -> None:
    """A worker that does not find Temporal when it starts ends by itself."""
    workers = [cast.services.launch(program) for program in Program if program is not Program.API]
    logs = [worker.output_file for worker in workers]
    wait_while_working(lambda: all('"event": "serving"' in log.read_text("utf-8") for log in logs), "the workers", workers)


@pytest.mark.timeout(300)
def test_who_was_killed_is_told_and_runs_again(
    directory: DemoDirectory, cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cast.start_missing() == ("temporal", *(f"keeperless-{program.name.lower()}" for program in Program))
    await_serving(cast)
    roll_call = RollCall(cast, directory)
    assert roll_call.changes() == []

    with directory.hold():  # as a demo does that is running
        cast.temporal.kill()
        cast.services.kill(Program.ACTIVITIES)
        survivors = cast.services.pids()
        told = roll_call.changes()
        assert [(text.split()[0], tone) for text, tone in told] == [
            ("temporal", Tone.ALERT),
            ("keeperless-activities", Tone.ALERT),
        ]
        assert all(f"start --directory {directory.path}" in text for text, _ in told)
        assert roll_call.changes() == []

        assert start(directory) == 0
        assert capsys.readouterr().out.endswith("\nStarted again: temporal, keeperless-activities.\n")
        assert cast.missing() == ()
        assert set(survivors) < set(cast.services.pids())
        assert [tone for _, tone in roll_call.changes()] == [Tone.GOOD, Tone.GOOD]

        assert start(directory) == 0
        assert "nothing to start" in capsys.readouterr().out

    with pytest.raises(Permanent, match="that demo has ended"):
        start(directory)
    directory.kept.touch()
    assert start(directory) == 0


def test_where_no_demo_was_there_is_nothing_to_start(directory: DemoDirectory) -> None:
    with pytest.raises(Permanent, match="make demo"):
        start(directory)
    shutil.rmtree(directory.path)
    with pytest.raises(Permanent, match="make demo"):
        kept_cast(directory)
