"""Lines of other layouts are judged like Kafka's own: with their level, their time, and what was thrown below them."""

import json

import pytest

from domain.diagnosis.logs.endings import ending_of
from domain.diagnosis.logs.layouts import in_kafkas_layout

KAFKAS = "[2026-11-23 08:00:00,123] ERROR [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)"
THROWN = ("java.io.IOException: No space left on device", "\tat kafka.log.LogManager.load(LogManager.scala:7)")
SAID = "[KafkaServer id=1] shut down completed"


@pytest.mark.parametrize(
    "line",
    [
        KAFKAS,
        f"2026-11-23 08:00:00,123 ERROR kafka.server.KafkaServer: {SAID}",
        f"2026-11-23 08:00:00,123 [main] ERROR kafka.server.KafkaServer - {SAID}",
        f"2026-11-23T08:00:00.123Z ERROR [main] kafka.server.KafkaServer - {SAID}",
        f"2026-11-23T08:00:00.123+0100 [main] [ERROR] {SAID} (kafka.server.KafkaServer)",
        f"ERROR [2026/11/23 08:00:00.123] kafka.server.KafkaServer: {SAID}",
        f"\x1b[31m2026-11-23 08:00:00,123\x1b[0m ERROR {SAID} (kafka.server.KafkaServer)",
        f"2026-11-23T07:00:00.000000000Z stdout F {KAFKAS}",
        json.dumps({"log": f"{KAFKAS}\n", "stream": "stdout", "time": "2026-11-23T07:00:00Z"}),
    ],
)
def test_a_line_of_a_known_layout_is_as_kafkas_own(line: str) -> None:
    assert in_kafkas_layout([line]) == (KAFKAS,)


@pytest.mark.parametrize(
    "said",
    [
        {"timestamp": "2026-11-23T08:00:00.123Z", "level": "ERROR", "logger_name": "kafka.server.KafkaServer"}
        | {"message": SAID, "stack_trace": "\n".join(THROWN)},
        {"@timestamp": "2026-11-23T08:00:00.123Z", "log": {"level": "ERROR", "logger": "kafka.server.KafkaServer"}}
        | {"message": SAID, "error": {"stack_trace": "\n".join(THROWN)}},
        {"timeMillis": 1795420800123, "level": "ERROR", "loggerName": "kafka.server.KafkaServer", "message": SAID}
        | {"thrown": {"name": "java.io.IOException", "message": "x", "extendedStackTrace": "\n".join(THROWN)}},
    ],
)
def test_an_object_of_json_is_a_line_with_what_was_thrown(said: dict[str, object]) -> None:
    first, *below = in_kafkas_layout([json.dumps(said)])
    assert first.replace(",000]", ",123]") == KAFKAS
    assert tuple(below) == THROWN


@pytest.mark.parametrize(
    "line",
    [
        *THROWN,
        "",
        "{not json",
        '{"a": 1}',
        '{"message": {"a": NaN}, "time": Infinity}',
        "[0.001s][error][logging] Error opening log file",
        "[2026-11-23T08:00:00.123+0000][info][gc] Pause Young",
        "# A fatal error has been detected by the Java Runtime Environment:",
        "2026-11-23 is a date",
    ],
)
def test_all_else_stays_as_it_is(line: str) -> None:
    assert in_kafkas_layout([line]) == (line,)


def test_an_error_of_hours_ago_is_no_cause_of_death_whatever_the_layout() -> None:
    lines = (
        "2026-11-23 08:00:00,000 INFO kafka.utils.X$: Registered kafka:type=kafka.Log4jController MBean",
        "2026-11-23 08:10:00,000 ERROR kafka.server.ReplicaManager: Error processing append operation on partition t-0",
        "org.apache.kafka.common.errors.CorruptRecordException: Record is corrupt (stored crc = 1)",
        "2026-11-23 11:59:00,000 INFO kafka.coordinator.group.GroupMetadataManager: Removed 0 expired offsets",
    )
    assert "it was killed" in ending_of(in_kafkas_layout(lines)).observed


@pytest.mark.parametrize(
    "line",
    [
        '{"level": "ERROR", "message": "a caf\\ud83d", "time": 1%s}' % ("0" * 400),
        '{"log": "a caf\\ud83d"}',
        '{"a":' * 5000,
    ],
)
def test_what_no_program_should_print_can_be_written_down(line: str) -> None:
    assert "".join(in_kafkas_layout([line])).encode()
