"""What counts as lost, duplicated and paused."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from playground.acknowledgements import LoadCounters, Recorder, read_counters, read_identifiers
from playground.load_report import Copy, LoadReport, compare, duplicates_in_words

IDENTIFIERS = st.lists(st.sampled_from("abcdefgh"), max_size=20)


def report_of(acknowledged: list[str], read: list[str]) -> LoadReport:
    return compare(acknowledged, [Copy(identifier, 7) for identifier in read], 0, 0.0, 0.0)


def test_a_duplicate_is_of_the_load_or_of_its_producer() -> None:
    read = [Copy("once", 1), Copy("resent", 2), Copy("retried", 3), Copy("retried", 3), Copy("resent", 4)]
    report = compare(["once", "resent", "retried"], read, 0, 0.0, 0.0)
    assert (report.duplicated, report.sent_again, report.repeated) == ({"resent", "retried"}, {"resent"}, {"retried"})


def test_duplicates_say_whose_they_are() -> None:
    assert duplicates_in_words(0, 0) == "0 twice"
    both = duplicates_in_words(3, 1)
    assert both.startswith("3 twice (1 the load sent again")
    assert "2 the idempotent producer" in both
    assert "the load sent again" not in duplicates_in_words(2, 0)
    assert "producer" not in duplicates_in_words(2, 2)


def test_equal_counts_do_not_hide_a_loss() -> None:
    report = report_of(["a", "b", "c"], ["a", "b", "b"])
    assert report.lost == {"c"}
    assert report.duplicated == {"b"}


def test_read_but_not_acknowledged_is_neither_lost_nor_duplicated() -> None:
    report = report_of(["a"], ["a", "x"])
    assert (report.acknowledged, report.read_back, report.lost, report.duplicated) == (1, 2, set(), set())


@given(IDENTIFIERS, IDENTIFIERS)
def test_lost_is_exactly_what_was_promised_and_is_not_there(acknowledged: list[str], read: list[str]) -> None:
    report = report_of(acknowledged, read)
    for identifier in "abcdefgh":
        assert (identifier in report.lost) == (identifier in acknowledged and identifier not in read)
        assert (identifier in report.duplicated) == (read.count(identifier) > 1)


def test_the_longest_pause_is_between_acknowledgements_whatever_one_message_waited(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        for identifier, sent_at, now in (("a", 10.0, 10.1), ("b", 10.0, 12.1), ("c", 12.0, 12.2), ("d", 9.0, 12.3)):
            recorder.sent += 1
            recorder.acknowledge(identifier, sent_at, now)
        counters = recorder.counters(99.0)
    assert round(counters.longest_pause_seconds, 3) == 2.0
    assert round(counters.slowest_acknowledgement_seconds, 3) == 3.3
    assert counters.waiting_seconds == 0, "nothing is on its way: this is not a pause"


def test_a_pause_that_has_not_ended_counts_already(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        recorder.sent = 2
        recorder.acknowledge("a", 10.0, 10.1)
        counters = recorder.counters(15.1)
    assert counters.waiting_seconds == counters.longest_pause_seconds == 5.0


def test_what_is_acknowledged_is_in_the_file_before_anybody_hears_of_it(tmp_path: Path) -> None:
    assert read_counters(tmp_path) == LoadCounters()
    with Recorder(tmp_path) as recorder:
        recorder.sent = 2
        recorder.acknowledge("a-1", 0.0, 1.0)
        recorder.give_up()
        assert read_identifiers(tmp_path) == ["a-1"]
        recorder.publish(2.0)
    counters = read_counters(tmp_path)
    assert (counters.sent, counters.acknowledged, counters.unacknowledged) == (2, 1, 1)


def test_a_line_cut_off_by_a_kill_is_not_an_identifier(tmp_path: Path) -> None:
    (tmp_path / "acknowledged.txt").write_text("a-1\na-2\na-", encoding="ascii")
    assert read_identifiers(tmp_path) == ["a-1", "a-2"]
