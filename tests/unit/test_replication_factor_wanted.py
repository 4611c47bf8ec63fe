"""What one asks for: each mistake is named, and a pattern is expanded by us."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.replication_factor.wanted import ReplicationFactorWanted, bytes_of

TOPICS = ("__consumer_offsets", "orders", "orders.eu", "ordersXeu", "payments")


def wanted(*changes: dict[str, Any], **others: Any) -> ReplicationFactorWanted:
    return ReplicationFactorWanted.model_validate({"changes": list(changes), **others})


def assignment(*partitions: dict[str, Any]) -> dict[str, Any]:
    return {"assignment": {"version": 1, "partitions": list(partitions)}}


ONE = {"topic": "orders", "partition": 0, "replicas": [1, 2]}

REFUSED: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str]] = {
    "nothing": ([], {}, "at least 1 item"),
    "a factor without topics": ([{"replication_factor": 3}], {}, "exactly one of topics, pattern and assignment"),
    "topics and a pattern": ([{"topics": ["a"], "pattern": "a", "replication_factor": 3}], {}, "exactly one of"),
    "no factor": ([{"topics": ["a"]}], {}, "need replication_factor"),
    "an assignment with a factor": ([{**assignment(ONE), "replication_factor": 2}], {}, "an assignment has its own"),
    "factor 0": ([{"topics": ["a"], "replication_factor": 0}], {}, "greater than or equal to 1"),
    "a factor as text": ([{"topics": ["a"], "replication_factor": "3"}], {}, "valid integer"),
    "no name": ([{"topics": ["a/b"], "replication_factor": 3}], {}, "'a/b' is no name of a topic"),
    "no expression": ([{"pattern": "(", "replication_factor": 3}], {}, "is no regular expression"),
    "a broker twice": ([assignment({**ONE, "replicas": [1, 2, 1]})], {}, "orders-0: broker 1 is named twice"),
    "a partition twice": ([assignment(ONE, ONE)], {}, "orders-0 is assigned twice"),
    "no replicas": ([assignment({**ONE, "replicas": []})], {}, "at least 1 item"),
    "directories": ([assignment({**ONE, "log_dirs": ["/a", "any"]})], {}, "log_dirs names directories"),
    "a throttle without unit": ([{"topics": ["a"], "replication_factor": 3}], {"throttle": "20"}, "such as 20MB/s"),
    "a throttle that is no rate": ([{"topics": ["a"], "replication_factor": 3}], {"throttle": "20MB"}, "such as 20MB/s"),
    "a throttle of nothing": ([{"topics": ["a"], "replication_factor": 3}], {"throttle": "0MB/s"}, "would never end"),
    "an engine that is not there": ([{"topics": ["a"], "replication_factor": 3}], {"engine": "magic"}, "'native'"),
    "bytes without unit": ([{"topics": ["a"], "replication_factor": 3}], {"limits": {"bytes_in_flight": "7"}}, "such as 20MB"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_named(mistake: str) -> None:
    changes, others, words = REFUSED[mistake]
    with pytest.raises(ValidationError) as refused:
        wanted(*changes, **others)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "count"), [("20MB", 20_000_000), ("20MiB", 20 * 1024**2), ("1.5 GB", 1_500_000_000), ("3kB", 3000), ("3KiB", 3072)]
)
def test_a_unit_is_decimal_or_binary_as_it_says(text: str, count: int) -> None:
    assert bytes_of(text) == count
    assert wanted({"topics": ["a"], "replication_factor": 2}, throttle=f"{text}/s").bytes_per_second == count


def test_a_pattern_matches_whole_names_and_never_kafkas_own() -> None:
    assert wanted({"pattern": r"orders\.eu", "replication_factor": 3}).factors(TOPICS) == {"orders.eu": 3}
    assert wanted({"pattern": "orders", "replication_factor": 3}).factors(TOPICS) == {"orders": 3}
    assert wanted({"pattern": ".*", "replication_factor": 3}).factors(TOPICS) == dict.fromkeys(TOPICS[1:], 3)
    assert wanted({"topics": ["__consumer_offsets"], "replication_factor": 3}).factors(TOPICS) == {"__consumer_offsets": 3}


def test_what_names_no_topic_and_what_is_named_twice_is_told() -> None:
    asked = wanted(
        {"pattern": "nothing.*", "replication_factor": 3},
        {"topics": ["orders", "lost"], "replication_factor": 3},
        {"pattern": "orders.*", "replication_factor": 2},
        assignment({**ONE, "topic": "gone"}),
    )
    assert list(asked.unmatched(TOPICS)) == [
        "pattern 'nothing.*' matches no topic",
        "there is no topic lost",
        "there is no topic gone",
    ]
    assert asked.doubly_matched(TOPICS) == ["orders"]
