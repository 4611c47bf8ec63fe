"""Lines of Kafka's logs: each is known by the very words of 3.9.2, quoted and nothing more, and only as long as it is news."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.diagnosis.logs.catalogue import KAFKA, Told
from domain.diagnosis.logs.complaints import with_thrown
from domain.diagnosis.logs.lines import LASTING_WORDS, age_of, current, found_in, stamp_of
from domain.diagnosis.logs.running import epochs_lately, loading_in, waiting_in
from domain.zk_to_kraft.migration_lines import MIGRATION

STAMP = "[2026-11-20 03:00:{:02},123] "
RUNNING = (*MIGRATION.of("running"), *KAFKA.of("running"))
LIVING = {told.name: told.sample for told in RUNNING}


def test_a_peer_that_ends_once_is_nothing_and_neither_are_answers_that_come_late() -> None:
    cut, other = LIVING["peer-cut"], LIVING["peer-cut"].replace("node 3002", "node 3003")
    late = cut.replace("since send: 1ms", "since send: 4501ms")

    def told(*lines: str) -> list[tuple[str, ...]]:
        return [one.named for one in found_in([STAMP.format(number) + line for number, line in enumerate(lines, 1)], RUNNING)]

    assert told(cut, cut, other, late, late, late) == []
    assert told(cut, other, cut, cut) == [("3002",)]
    assert found_in((STAMP.format(1) + cut,) * 5, RUNNING) == (), "threads of one moment"


def test_what_is_named_in_a_line_is_told() -> None:
    (found,) = found_in((LIVING["waiting-for-brokers"],), RUNNING)
    assert found.named == ("9", "11")


def test_a_line_of_the_process_before_is_no_news() -> None:
    start = "INFO Registered `kafka:type=kafka.Log4jController` MBean (kafka.utils.Log4jControllerRegistration$)"
    assert found_in((LIVING["no-brokers-known"], start, "INFO all is well"), RUNNING) == ()
    assert len(found_in((start, LIVING["no-brokers-known"]), RUNNING)) == 1


def test_a_line_that_was_not_repeated_for_minutes_is_over() -> None:
    old, new = "[2026-11-20 03:00:00,000] ", "[2026-11-20 03:03:00,000] "
    assert found_in((old + LIVING["no-brokers-known"], new + "INFO all is well"), RUNNING) == ()
    assert len(found_in((new + LIVING["no-brokers-known"], new + "INFO all is well"), RUNNING)) == 1


@pytest.mark.parametrize("kind", [kind for kind in RUNNING if kind.is_lasting], ids=lambda kind: kind.name)
def test_what_lasts_as_long_as_the_process_is_never_too_old(kind: Told) -> None:
    start = "INFO Registered `kafka:type=kafka.Log4jController` MBean (kafka.utils.Log4jControllerRegistration$)"
    old, new = "[2026-11-20 03:00:00,000] " + LIVING[kind.name], "[2026-11-20 09:00:00,000] INFO all is well"
    assert [found.told for found in found_in((old, new), RUNNING)] == [kind]
    assert found_in((old, start, new), RUNNING) == ()
    assert any(word in old for word in LASTING_WORDS)
    assert any(word in start for word in LASTING_WORDS)


def test_what_lasts_is_over_with_the_words_that_end_it() -> None:
    failed = LIVING["zookeeper-write-failed"]
    step = "INFO [KRaftMigrationDriver id=1] 1 transitioning from SYNC_KRAFT_TO_ZK to KRAFT_CONTROLLER_TO_BROKER_COMM state"
    assert found_in((failed, step), RUNNING) == ()
    assert any(word in step for word in LASTING_WORDS)
    assert len(found_in((step, failed), RUNNING)) == 1


def test_a_partition_that_was_fetched_again_long_ago_is_found_to_be() -> None:
    """What ends a stop is looked for as far above a log's end as the stop itself."""
    added = "INFO [ReplicaFetcherManager on broker 2] Added fetcher to broker 1 for partitions Map(orders-3 -> x)"
    assert any(word in added for word in LASTING_WORDS)


def test_a_line_is_found_with_what_was_thrown_there() -> None:
    code = "org.apache.zookeeper.KeeperException$NoNodeException: KeeperErrorCode = NoNode for /config/users/x"
    (found,) = found_in((LIVING["zookeeper-write-failed"], code, "\tat a.b.C(D.java:1)", "INFO all is well"), RUNNING)
    assert found.thrown == (code,)
    assert "NoNode for /config/users/x" in with_thrown(found)


def test_lines_without_a_stamp_stay_as_long_as_the_line_before() -> None:
    """A stack trace belongs to it."""
    lines = ("[2026-11-20 03:00:00,000] ERROR", LIVING["unknown-config-resource"])
    assert current(lines) == lines
    later = "[2026-11-20 03:05:00,000] INFO all is well"
    assert current((*lines, later)) == (later,)
    assert current(("no time at all", later)) == ("no time at all", later)


def test_a_time_that_there_is_not_is_none() -> None:
    assert stamp_of("[2026-11-20 03:00:60,000] INFO a leap second") is None


def test_what_comes_after_a_clock_was_set_back_is_news_and_what_was_long_before_is_not() -> None:
    old, before, after = (f"[2026-10-25 {time},000] INFO x" for time in ("02:00:00", "02:59:50", "02:00:01"))
    assert current((old, before, after)) == (before, after)
    epochs = [f"{after} Completed transition to Leader(localId=1, epoch={epoch}, x)" for epoch in (7, 8, 9)]
    assert epochs_lately((before, *epochs), timedelta(hours=5), timedelta(seconds=60)) == 3


def test_of_one_kind_the_last_line_counts() -> None:
    lines = tuple(f"Still waiting for ZK brokers [{ids}] found in metadata to register with KRaft" for ids in ("9, 11", "11"))
    (found,) = found_in(lines, RUNNING)
    assert found.named == ("11",)


OF_THE_START = (
    "INFO [LogLoader partition=__cluster_metadata-0] Recovering unflushed segment 0. 0/1 recovered for __cluster_metadata-0"
)
RECOVERING = "INFO Recovering 59 logs from /data since no clean shutdown file was found (kafka.log.LogManager)"
ONE_MORE = "INFO Completed load of Log(dir=/data/orders-9) with 1 segments in 4ms (7/59 completed in /data)"
ALL = "INFO Loaded 59 logs in 3161ms (kafka.log.LogManager)"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((OF_THE_START,), ""),
        ((RECOVERING,), "Recovering 59 logs from /data since no clean shutdown file was found"),
        ((RECOVERING, ONE_MORE), "7/59 completed in /data"),
        ((RECOVERING, ONE_MORE, ALL), ""),
        ((RECOVERING, "INFO Registered kafka:type=kafka.Log4jController MBean"), ""),
    ],
)
def test_how_far_a_broker_is_with_its_logs(lines: tuple[str, ...], told: str) -> None:
    assert loading_in(lines) == told


def test_what_a_broker_waits_for_at_its_start_is_told_until_it_has_it() -> None:
    begun = "[2026-11-20 03:00:01,000] INFO [BrokerServer id=1] Waiting for {} (kafka.server.BrokerServer)"
    ended = begun.replace("Waiting", "Finished waiting")
    first, second = "the controller quorum voters future", "the controller to acknowledge that we are caught up"
    lines = [begun.format(first), ended.format(first), begun.format(second)]
    assert waiting_in(lines) == second.removeprefix("the ")
    assert waiting_in([*lines, ended.format(second)]) == ""
    assert waiting_in([begun.format(first), begun.format(second), ended.format(second)]) == first.removeprefix("the ")


def test_what_is_of_the_next_moment_was_said_now() -> None:
    """Clocks and roundings differ by a moment; a quarter of an hour is no moment."""
    now = datetime(2026, 11, 20, 3, 0, 0, tzinfo=UTC)
    assert age_of("[2026-11-20 03:00:00,400] INFO x", now) == timedelta()
    assert age_of("[2026-11-20 04:59:50,000] INFO x", now) == timedelta(seconds=10), "in another zone"
