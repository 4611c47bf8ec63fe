"""Of a stack trace its head is told, with the cause, and no frame."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from activities.last_words import LINES_READ, LINES_TOLD, MOST_TOLD, last_words, why_failed
from activities.ports.nodes import Completed

VERIFY = "org.apache.kafka.metadata.properties.MetaPropertiesEnsemble.verify"
FRAMES = [f"\tat {VERIFY}(MetaPropertiesEnsemble.java:{n})" for n in range(40)]
CAUSE = "java.lang.RuntimeException: Invalid cluster.id in: /data/c1/meta.properties. Expected abc, but read iEJh7TwTEQ"
TRACE = [f'Exception in thread "main" {CAUSE}', *FRAMES, "Caused by: java.io.IOException: no", *FRAMES[:3], "\t... 12 more"]


def test_a_tool_s_failure_is_told_from_its_head_without_frames() -> None:
    told = why_failed(Completed(1, "Formatting.\n", "\n".join(TRACE)))
    assert told == f'Exception in thread "main" {CAUSE}\nCaused by: java.io.IOException: no'
    assert why_failed(Completed(1, "only this\n", " \n")) == "only this"
    assert why_failed(Completed(1, "", "the head" + "x" * 1000)).startswith("the head")
    assert len(why_failed(Completed(1, "", "x" * 1000))) == MOST_TOLD


async def words(*log: str, age: timedelta | None = None) -> tuple[str, ...]:
    async def output_tail(lines: int) -> tuple[str, ...]:
        return tuple(log[-lines:])

    return await last_words(cast("Any", SimpleNamespace(output_tail=output_tail)), age)


async def test_of_a_dead_process_the_cause_is_told_though_its_trace_is_long_and_it_closes_much_after_it() -> None:
    ordinary = [f"[2026-11-20 03:00:00,000] INFO {n} (kafka.server.X)" for n in range(300)]
    assert len(FRAMES) + 3 < LINES_READ
    assert await words(*ordinary, *TRACE, *ordinary) == (TRACE[0], "Caused by: java.io.IOException: no")


async def test_what_the_process_before_has_said_are_not_the_words_of_one_that_did_not_begin() -> None:
    now = datetime.now(UTC)
    before, after = (f"[{now - timedelta(seconds=ago):%Y-%m-%d %H:%M:%S},000] INFO " for ago in (20, 3))
    ended = f"{before}[KafkaServer id=1] shut down completed (kafka.server.KafkaServer)"
    age = timedelta(seconds=5)
    assert await words(ended, age=age) == ()
    assert await words(ended, f"{after}starting (kafka.Kafka$)", age=age) == (f"{after}starting (kafka.Kafka$)",)
    assert await words(ended, "no such java", age=age) == ("no such java",)
    assert await words("no such java", age=age) == ("no such java",), "whose it is cannot be told"
    assert await words(ended) == (ended,)


async def test_of_a_process_that_tells_no_error_the_last_lines_are_told() -> None:
    ordinary = [f"[2026-11-20 03:00:00,000] INFO {n} (kafka.server.X)" for n in range(300)]
    told = await words(*ordinary, *FRAMES)
    assert told == tuple(ordinary[-LINES_TOLD:])
