"""What a load run has proved: identifiers acknowledged, and identifiers that can be read."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class LoadReport:
    """`lost` and `duplicated` are identifiers; they come from comparing sets, never from subtracting counts."""

    acknowledged: int
    """Messages whose delivery was acknowledged by all in-sync replicas."""
    read_back: int
    """Distinct identifiers read from the beginning of the topics to their end."""
    lost: frozenset[str]
    """Acknowledged and not read back."""
    duplicated: frozenset[str]
    """Read more than once."""
    unacknowledged: int
    """Given up by the producer, with an error: such a message may be there or not, and counts as neither."""
    longest_pause_seconds: float
    """The largest gap between two consecutive acknowledgements, whatever their partition."""
    slowest_acknowledgement_seconds: float
    """The longest that one message waited. It shows a stalled partition that the others' traffic hides above."""


def compare(
    acknowledged: Iterable[str],
    read: Iterable[str],
    unacknowledged: int,
    longest_pause_seconds: float,
    slowest_acknowledgement_seconds: float,
) -> LoadReport:
    promised, times_read = set(acknowledged), Counter(read)
    return LoadReport(
        acknowledged=len(promised),
        read_back=len(times_read),
        lost=frozenset(promised - times_read.keys()),
        duplicated=frozenset(identifier for identifier, times in times_read.items() if times > 1),
        unacknowledged=unacknowledged,
        longest_pause_seconds=longest_pause_seconds,
        slowest_acknowledgement_seconds=slowest_acknowledgement_seconds,
    )
