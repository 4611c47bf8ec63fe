"""What the workers' health rows say where work is not taken."""

from datetime import UTC, datetime, timedelta

from domain.worker_health import FRESH, WorkerHealth, ended_lately, of_program, of_unlike_copies

NOW = datetime(2026, 3, 1, 3, 0, 7, tzinfo=UTC)
ALIVE = WorkerHealth(
    id="1",
    program="keeperless-activities",
    host="kafka-1",
    pid=7,
    release="0.1.0",
    settings_fingerprint="abc",
    started_at=NOW - timedelta(hours=1),
    beat_at=NOW - timedelta(seconds=2),
)
WHO = "keeperless-activities (process 7 on kafka-1, release 0.1.0) last beat at 2026-03-01 "


def other(ago: float = 2, **more: object) -> WorkerHealth:
    return ALIVE.model_copy(update={"id": "2", "pid": 8, "beat_at": NOW - timedelta(seconds=ago), **more})


def test_a_worker_that_was_killed_is_told_by_its_last_beat_and_error() -> None:
    killed = ALIVE.model_copy(
        update={"beat_at": NOW - timedelta(seconds=40), "last_error": "tcp connect error", "last_error_at": NOW}
    )
    told = of_program([other(90), killed], ALIVE.program, {"7@kafka-1"}, NOW)
    end = "02:59:27 UTC, 40 s ago, and did not report a clean stop; its last error, at 03:00:07 UTC: tcp connect error"
    assert told == WHO + end


def test_a_worker_that_stopped_cleanly_is_told_so() -> None:
    stopped = ALIVE.model_copy(update={"stopped_at": NOW - timedelta(seconds=2)})
    told = of_program([stopped], ALIVE.program, set(), NOW)
    assert told == WHO + "03:00:05 UTC, 2 s ago, and stopped cleanly at 03:00:05 UTC"


def test_a_worker_that_beats_and_does_not_poll_is_told_so() -> None:
    told = of_program([other(90), ALIVE], ALIVE.program, {"9@elsewhere"}, NOW)
    assert told == WHO + "03:00:05 UTC, 2 s ago: it runs and does not poll this task queue"
    assert of_program([ALIVE], ALIVE.program, {ALIVE.identity}, NOW) == WHO + "03:00:05 UTC, 2 s ago"


def test_a_program_that_never_beat_is_told_so() -> None:
    assert of_program([ALIVE], "keeperless-checks", set(), NOW).startswith("No keeperless-checks has written a heartbeat")


def test_live_copies_of_two_releases_or_settings_are_one_entry() -> None:
    for difference in ({"release": "0.2.0"}, {"settings_fingerprint": "def"}):
        (entry,) = of_unlike_copies([other(**difference), ALIVE], NOW)
        assert (entry.code, entry.object) == ("machine", "copies of keeperless-activities")
        assert "7@kafka-1" in entry.observed
        assert "8@kafka-1" in entry.observed
        assert all(value in entry.observed for value in difference.values())


def test_only_live_copies_of_one_program_are_compared() -> None:
    alike, elsewhere = other(), other(program="keeperless-workflows", settings_fingerprint="def")
    dead = other(FRESH.total_seconds() + 1, release="0.2.0")
    assert list(of_unlike_copies([dead, alike, elsewhere, ALIVE], NOW)) == []


def test_processes_that_ended_lately_are_counted() -> None:
    killed, stopped, long_ago = other(40, pid=1), other(5, pid=2, stopped_at=NOW), other(200, pid=3)
    workers = [ALIVE, long_ago, killed, stopped, other(40, pid=4, program="keeperless-checks")]
    assert ended_lately(workers, ALIVE.program, NOW) == ["1@kafka-1", "2@kafka-1"]
