"""How many partitions each broker counts of the topics whose leaders coordinate groups, and transactions. Pure.

A broker counts them once, as it starts (KIP-895; KafkaServer.startup and BrokerServer.startup). Who coordinates a group is
found by that number: brokers that count otherwise send each other's clients away, and do not find what was committed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from domain.observed import ObservedPart

COORDINATED: Mapping[str, str] = {"__consumer_offsets": "groups", "__transaction_state": "transactions"}
"""By topic, whom its leaders coordinate."""

AS_IT_WAS_MADE = timedelta(seconds=60)
"""A topic's partitions are made within moments of each other. Who ran before it was made by Kafka counts all of these."""

AS_IT_STARTS = timedelta(seconds=30)
"""A broker counts them some seconds after its process began; and ZooKeeper's clock is another one."""


class Miscount(ObservedPart):
    """A topic with so many `partitions`, and how many each broker counts that counts fewer."""

    topic: str
    partitions: int
    counted: dict[int, int]


def miscounts(made_at: Mapping[str, Sequence[datetime]], started_at: Mapping[int, datetime]) -> tuple[Miscount, ...]:
    """`made_at`: by topic, when each of its partitions was. `started_at`: by broker, its process."""
    return tuple(found for topic, times in made_at.items() if (found := _miscount(topic, times, started_at)) is not None)


def _miscount(topic: str, made_at: Sequence[datetime], started_at: Mapping[int, datetime]) -> Miscount | None:
    first = min(made_at, default=None)
    if first is None:
        return None
    known = {broker: max(first + AS_IT_WAS_MADE, started + AS_IT_STARTS) for broker, started in started_at.items()}
    counts = {broker: sum(made <= until for made in made_at) for broker, until in known.items()}
    fewer = {broker: count for broker, count in sorted(counts.items()) if count < len(made_at)}
    return Miscount(topic=topic, partitions=len(made_at), counted=fewer) if fewer else None
