"""Sessions: progress, cancellation, and attempts that died and left their work in Spark."""

import asyncio
import random
import time
from typing import Any

import psutil
import pytest

from domain.errors import Permanent, Transient
from spark.engine.progress import Progress
from spark.engine.watched import watched
from spark.session.connect import interrupt_attempt, is_answering, new_session_id, session
from spark.session.embedded import EmbeddedSpark
from spark.session.endpoint import Endpoint
from spark.session.running import OpenSessions
from spark.session.server import DAEMON
from tests.spark.slow_jobs import BEAT_SECONDS, TASKS, Beats, Client, RunningJobs

PYTHON_SECONDS = 3.5
"""A Python process of a task that was cancelled: Spark looks for those every two seconds, and then ends them."""
BEATS_LEFT = TASKS * PYTHON_SECONDS / BEAT_SECONDS
"""Counted, and not timed: a job has its own beat, also where this process, or the whole machine, stands still for a while."""


async def test_work_runs_beside_the_event_loop_and_tells_how_far_it_is(endpoint: Endpoint, beats: Beats) -> None:
    seen: list[Progress] = []
    job = beats.job(tasks=8, beats=10)

    def watch(spark: Any) -> int:
        with watched(spark, "beat", seen.append):
            return job(spark)

    assert await OpenSessions().run(endpoint, new_session_id(), watch, "a-tag") == 8
    begun, *told = seen
    assert (begun.stage, begun.done, begun.running) == ("beat", 0, None)
    assert [at.done for at in told] == sorted(at.done for at in told)
    assert all(0 <= at.done <= at.total for at in told)
    assert told[-1].total >= 8
    assert any(at.running for at in told), "it says of tasks that they run"
    assert {at.host for at in told} == {"localhost"}


def allowed_seconds(endpoint: Endpoint, jobs: RunningJobs) -> float:
    """A second, and what a machine that is busy with something else takes to ask how many jobs there are, and simple things."""
    jobs.count()
    began = time.monotonic()
    assert is_answering(endpoint, 30)
    jobs.count()
    return 1 + 4 * (time.monotonic() - began)


async def test_cancelled_work_is_gone_from_spark_within_a_second(endpoint: Endpoint, beats: Beats, jobs: RunningJobs) -> None:
    session_id = new_session_id()
    running = asyncio.create_task(OpenSessions().run(endpoint, session_id, beats.job()))
    await asyncio.to_thread(beats.wait_for_some)
    assert jobs.count() == 1
    allowed = allowed_seconds(endpoint, jobs)
    began, beaten = time.monotonic(), beats.count()
    running.cancel()
    silent = asyncio.create_task(asyncio.to_thread(beats.seconds_to_the_last, PYTHON_SECONDS))
    gone = asyncio.create_task(asyncio.to_thread(jobs.seconds_until_none))
    with pytest.raises(asyncio.CancelledError):
        await running
    returned = time.monotonic() - began
    print(f"cancelled: returned after {returned:.2f} s, no job after {await gone:.2f} s, no Python after {await silent:.2f} s")
    assert await gone < allowed
    assert beats.count() - beaten < BEATS_LEFT
    with pytest.raises(Transient, match="SESSION_CLOSED"), session(endpoint, session_id) as spark:
        spark.range(1).count()


@pytest.mark.chaos
async def test_sessions_leave_no_process_behind_and_one_that_lives_goes_on(
    endpoint: Endpoint, embedded: EmbeddedSpark, beats: Beats
) -> None:
    """A session is one look's, and a worker lives for months. Spark ends idle processes after a minute, then daemons end."""
    with session(endpoint, new_session_id()) as spark:
        assert beats.job(beats=1)(spark) == 2
        for _ in range(3):
            await OpenSessions().run(endpoint, new_session_id(), beats.job(beats=1))
        found = daemons_of(embedded)
        assert len(found) >= 4, "Spark starts one for each session"
        _, alive = await asyncio.to_thread(psutil.wait_procs, found, 180)
        assert alive == []
        assert beats.job(tasks=3, beats=1)(spark) == 3


def daemons_of(embedded: EmbeddedSpark) -> list[psutil.Process]:
    """Each forks the Python processes of one sort of session."""
    everyone = psutil.Process(embedded.pid).children(recursive=True)
    python = [each for each in everyone if DAEMON in each.cmdline()]
    return [each for each in python if each.parent() not in python]


def test_a_plan_that_can_never_run_is_permanent(endpoint: Endpoint) -> None:
    with pytest.raises(Permanent, match="no_such_column"), session(endpoint, new_session_id()) as spark:
        spark.range(1).select("no_such_column").count()


def test_a_server_that_is_not_there_is_transient() -> None:
    began = time.monotonic()
    with pytest.warns(UserWarning, match="RETRIES_EXCEEDED"), pytest.raises(Transient, match="UNAVAILABLE"):
        interrupt_attempt(Endpoint("sc://localhost:9", "token"), new_session_id())
    assert time.monotonic() - began < 60


def test_an_attempt_that_never_came_to_spark_never_will(endpoint: Endpoint) -> None:
    """Its request may still be under way when the next attempt ends it."""
    session_id = new_session_id()
    interrupt_attempt(endpoint, session_id)
    interrupt_attempt(endpoint, session_id)
    with pytest.raises(Transient, match="SESSION_CLOSED"), session(endpoint, session_id) as spark:
        spark.range(1).count()


def the_next_attempt_ends_a_killed_one(endpoint: Endpoint, beats: Beats, jobs: RunningJobs, after_seconds: float | None) -> str:
    """Killed so long after it began, or while its job runs. Gives what was seen."""
    with Client(endpoint, beats) as client:
        client.begin()
        if after_seconds is None:
            beats.wait_for_some()
        else:
            time.sleep(after_seconds)
        client.kill()
    left = jobs.count()
    if after_seconds is None:
        beats.wait_for_some(5)  # the job has outlived its client: there is something to end
        assert left == 1
    allowed = allowed_seconds(endpoint, jobs)
    began, beaten = time.monotonic(), beats.count()
    interrupt_attempt(endpoint, client.session_id)
    jobs.seconds_until_none()
    gone = time.monotonic() - began
    assert gone < allowed, f"the job was there for {gone:.2f} s"
    python = beats.seconds_to_the_last(PYTHON_SECONDS)
    assert beats.count() - beaten < BEATS_LEFT
    with session(endpoint, new_session_id()) as spark:
        assert spark.range(10).count() == 10
    assert jobs.count() == 0
    return f"killed: left {left} jobs, beats {beats.count()}; gone {gone:.2f} s after the interrupt, its Python {python:.2f} s"


@pytest.mark.parametrize("after_seconds", [None, 0.05, 0.6])
def test_the_next_attempt_ends_what_a_killed_one_left(
    endpoint: Endpoint, beats: Beats, jobs: RunningJobs, after_seconds: float | None
) -> None:
    print(the_next_attempt_ends_a_killed_one(endpoint, beats, jobs, after_seconds))


@pytest.mark.chaos
@pytest.mark.timeout(1200)
def test_the_next_attempt_ends_what_a_killed_one_left_at_any_moment(
    endpoint: Endpoint, beats: Beats, jobs: RunningJobs
) -> None:
    seed = random.randrange(2**32)  # noqa: S311
    moments = random.Random(seed)  # noqa: S311
    print(f"seed {seed}")
    for number in range(20):
        one = Beats(beats.path.with_name(f"beats-{number}"))
        moment = moments.choice([None, moments.uniform(0, 3)])
        print(moment, the_next_attempt_ends_a_killed_one(endpoint, one, jobs, moment))
