"""Throttles of a change: what is set while it moves, and what has to be there again at the end. From what is seen alone."""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from domain.observed.replicas import LISTS, RATES, Throttles
from domain.replication_factor.change import Change
from domain.replication_factor.window import slowed

K = TypeVar("K")


def wanted_while(moving: Iterable[Change], rate: int, before: Throttles) -> Throttles:
    """What to set, before these move: the rate at every broker that sends or receives for them, and the lists of their topics.
    A list of before stays in force besides: `*` covers everything, and stays alone.
    """
    changes = [change for change in moving if change.added]
    brokers = {i for change in changes for i in (*change.partition.replicas, *change.added)}
    topics = {
        topic: {key: _joined(before.topics.get(topic, {}).get(key, ""), listed) for key, listed in lists.items()}
        for topic, lists in slowed(changes).items()
    }
    return Throttles({i: dict.fromkeys(RATES, str(rate)) for i in sorted(brokers)}, {}, topics)


def _joined(before: str, ours: str) -> str:
    if before == "*":
        return before
    return ",".join(dict.fromkeys([*filter(None, before.split(",")), *ours.split(",")]))


def left_over(now: Throttles, before: Throttles, brokers: Collection[int], topics: Collection[str]) -> Throttles:
    """What to set so that these brokers and topics have what they had before: nothing of what is so already."""
    return Throttles(
        _differing({i: now.brokers.get(i, {}) for i in brokers}, before.brokers, RATES),
        {},
        _differing({name: now.topics[name] for name in topics if name in now.topics}, before.topics, LISTS),
    )


def _differing(
    now: Mapping[K, Mapping[str, str]], before: Mapping[K, Mapping[str, str]], keys: Collection[str]
) -> dict[K, dict[str, str]]:
    found = {
        one: {key: then for key in keys if values.get(key, "") != (then := before.get(one, {}).get(key, ""))}
        for one, values in now.items()
    }
    return {one: values for one, values in found.items() if values}
