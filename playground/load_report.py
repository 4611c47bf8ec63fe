"""What a load run has proved: identifiers acknowledged, and identifiers that can be read."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Copy(NamedTuple):
    """One message as it was read. `sending`: the load's number of the call that sent it; a producer's retry keeps it."""

    identifier: str
    sending: int


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
    sent_again: frozenset[str]
    """Those of the duplicated that the load itself sent more than once. The others its idempotent producer has repeated."""
    unacknowledged: int
    """Given up by the producer, with an error: such a message may be there or not, and counts as neither."""
    longest_pause_seconds: float
    """The largest gap between two consecutive acknowledgements, whatever their partition."""
    slowest_acknowledgement_seconds: float
    """The longest that one message waited. It shows a stalled partition that the others' traffic hides above."""

    @property
    def repeated(self) -> frozenset[str]:
        """Duplicated though the load sent them once: the producer tried again after an outcome that it did not know."""
        return self.duplicated - self.sent_again


def compare(
    acknowledged: Iterable[str],
    read: Iterable[Copy],
    unacknowledged: int,
    longest_pause_seconds: float,
    slowest_acknowledgement_seconds: float,
) -> LoadReport:
    promised, copies = set(acknowledged), defaultdict[str, list[int]](list)
    for copy in read:
        copies[copy.identifier].append(copy.sending)
    duplicated = {identifier: sendings for identifier, sendings in copies.items() if len(sendings) > 1}
    return LoadReport(
        acknowledged=len(promised),
        read_back=len(copies),
        lost=frozenset(promised - copies.keys()),
        duplicated=frozenset(duplicated),
        sent_again=frozenset(identifier for identifier, sendings in duplicated.items() if len(set(sendings)) > 1),
        unacknowledged=unacknowledged,
        longest_pause_seconds=longest_pause_seconds,
        slowest_acknowledgement_seconds=slowest_acknowledgement_seconds,
    )


def duplicates_in_words(count: int, sent_again: int) -> str:
    """How many were read twice, and whose doing that is."""
    if not count:
        return "0 twice"
    told = (
        (sent_again, "the load sent again after an unknown outcome"),
        (count - sent_again, "the idempotent producer repeated after an unknown outcome; the load sent them once"),
    )
    return f"{count} twice ({', '.join(f'{number} {whose}' for number, whose in told if number)})"
