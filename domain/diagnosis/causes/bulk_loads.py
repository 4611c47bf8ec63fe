"""Whether replicas lag because what they lack is written faster than a follower fetches it. Pure.

Nothing is broken: a cluster has a load that writes as fast as it may every night, and a broker that was away for a moment
does not get back what it missed while that goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MUCH = 2e6
"""Bytes a second."""
MOST_TOLD = 3
SLOW_DOWN = (
    "Where the number does not fall with the next looks, have whoever writes that pause until they are in sync, or limit it: "
    "kafka-configs.sh --alter --entity-type clients --entity-name CLIENT (or --entity-type users) --add-config "
    "producer_byte_rate=BYTES. Brokers with processors to spare may get more fetchers meanwhile, without a restart: "
    "--entity-type brokers --entity-default --add-config num.replica.fetchers=4. Restart none of them: all that is written "
    "meanwhile would be missing as well. The migration goes on by itself."
)


@dataclass(frozen=True)
class Pace:
    """Of what is written to the partitions of a topic that lag."""

    topic: str
    bytes_per_second: float


def in_words(paces: Sequence[Pace]) -> str:
    """The fastest; empty where none is fast."""
    fast = [f"{one.topic} with {one.bytes_per_second / 1e6:.0f} MB a second" for one in paces if one.bytes_per_second >= MUCH]
    return f"They are written meanwhile, {', '.join(fast[:MOST_TOLD])}: who was away may not catch up with that" if fast else ""
