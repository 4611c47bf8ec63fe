"""How many partitions each broker counts of the topics whose leaders coordinate groups, and transactions. Pure.

A broker counts them once, as it starts (KIP-895; KafkaServer.startup and BrokerServer.startup); where there is no such topic
yet, it goes by its setting. Who coordinates a group is found by that number: brokers that count otherwise send each other's
clients away, and do not find what was committed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.cluster import ClusterSpec
from domain.observed.observation import Observation, Process
from domain.observed.parts import ObservedPart

COORDINATED: Mapping[str, str] = {"__consumer_offsets": "groups", "__transaction_state": "transactions"}
"""By topic, whom its leaders coordinate."""

SETTINGS: Mapping[str, str] = {
    "__consumer_offsets": "offsets.topic.num.partitions",
    "__transaction_state": "transaction.state.log.num.partitions",
}
DEFAULT_PARTITIONS = 50
"""Of both settings."""

AS_IT_WAS_MADE = timedelta(seconds=60)
"""A topic's partitions are made within moments of each other."""

AS_IT_STARTS = timedelta(seconds=30)
"""A broker counts some seconds after its process began, and ZooKeeper's clock is another one. One that recovers its logs counts
later: who adds partitions meanwhile is not told of as who does that afterwards."""

MadeAt = Mapping[str, Mapping[int, datetime]]
"""By topic and number, when each partition was."""


class Miscount(ObservedPart):
    """A topic with so many `partitions`, and how many each broker counts that is known to count fewer. `agree`: so do all."""

    topic: str
    partitions: int
    counted: dict[int, int]
    agree: bool


@dataclass(frozen=True)
class Counter:
    """A broker that runs: when its process began, and its file."""

    started_at: datetime
    properties: Mapping[str, str]


def counters(seen: Mapping[int, tuple[Process | None, Mapping[str, str]]]) -> dict[int, Counter]:
    """By broker, from its process and its file: of those that run, and of which it is known since when."""
    return {
        broker: Counter(process.started_at, properties)
        for broker, (process, properties) in seen.items()
        if process is not None and process.is_running and process.started_at is not None
    }


def counters_seen(observation: Observation, spec: ClusterSpec) -> dict[int, Counter]:
    """The same, as a look has seen them."""
    views = {broker.id: observation.node(broker.id) for broker in spec.brokers}
    files = {broker: view.disk.file if view.disk is not None else None for broker, view in views.items()}
    return counters({b: (view.process, file.known if (file := files[b]) else {}) for b, view in views.items()})


def miscounts(made_at: MadeAt, brokers: Mapping[int, Counter]) -> tuple[Miscount, ...]:
    """Of whom it is not known it is not told."""
    return tuple(found for topic, made in made_at.items() if (found := _miscount(topic, made, brokers)) is not None)


def _miscount(topic: str, made: Mapping[int, datetime], brokers: Mapping[int, Counter]) -> Miscount | None:
    if not made or sorted(made) != list(range(len(made))):
        return None  # not a topic as Kafka makes it
    counts = {broker: _counted(topic, made, counter) for broker, counter in brokers.items()}
    fewer = {broker: count for broker, count in sorted(counts.items()) if count is not None and count < len(made)}
    if not fewer:
        return None
    return Miscount(topic=topic, partitions=len(made), counted=fewer, agree=len(set(counts.values())) == 1)


def _counted(topic: str, made: Mapping[int, datetime], counter: Counter) -> int | None:
    until, first = counter.started_at + AS_IT_STARTS, min(made.values())
    if until < first:
        setting = counter.properties.get(SETTINGS[topic], str(DEFAULT_PARTITIONS)).strip()
        as_made = sum(at <= first + AS_IT_WAS_MADE for at in made.values())
        return as_made if setting == str(as_made) else None
    there = [number for number, at in made.items() if at <= max(until, first + AS_IT_WAS_MADE)]
    return len(there) if max(there) < len(there) else None  # what was added has the highest numbers
