"""Amounts are told as people say them."""

import pytest

from domain.amounts import counted, roughly
from playground.demo.report import at_length


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (counted(1, "blocker"), "1 blocker"),
        (counted(0, "blocker"), "0 blockers"),
        (counted(51_253, "record batch", "record batches"), "51,253 record batches"),
        (counted(1, "record batch", "record batches"), "1 record batch"),
    ],
)
def test_one_is_one_and_more_are_many(told: str, expected: str) -> None:
    assert told == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "about 10 seconds"), (37, "about 40 seconds"), (89.9, "about 90 seconds"), (115.5, "about 2 minutes"),
     (3600, "about 60 minutes")],
)  # fmt: skip
def test_a_guess_is_no_more_exact_than_it_can_be(seconds: float, expected: str) -> None:
    assert roughly(seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.2, "0 seconds"), (61.4, "1 minute 1 second"), (120, "2 minutes"), (322.6, "5 minutes 23 seconds")],
)
def test_what_was_measured_is_told_to_the_second(seconds: float, expected: str) -> None:
    assert at_length(seconds) == expected
