"""The files by which a writing process tells others what it has seen: identifiers, and running counters."""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

IDENTIFIERS_FILE = "acknowledged.txt"
COUNTERS_FILE = "counters.json"


@dataclass(frozen=True)
class LoadCounters:
    """What is known while the load runs. Times in seconds; `updated_at` is Unix time."""

    sent: int = 0
    acknowledged: int = 0
    unacknowledged: int = 0
    consumed: int = 0
    longest_pause_seconds: float = 0.0
    slowest_acknowledgement_seconds: float = 0.0
    waiting_seconds: float = 0.0
    """Since the last acknowledgement, while messages are on their way."""
    updated_at: float = 0.0


class Recorder:
    """Belongs to the producer's thread; the reader's only adds to `consumed`. What is counted is in the file already."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._counters_file = directory / COUNTERS_FILE
        self._identifiers = (directory / IDENTIFIERS_FILE).open("a", encoding="ascii", buffering=1)
        self.sent = self.acknowledged = self.unacknowledged = self.consumed = 0
        self._longest_pause = self._slowest = 0.0
        self._last: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._identifiers.close()

    def acknowledge(self, identifier: str, sent_at: float, now: float) -> None:
        """`sent_at` and `now` are monotonic seconds."""
        self._identifiers.write(f"{identifier}\n")
        self.acknowledged += 1
        self._slowest = max(self._slowest, now - sent_at)
        if self._last is not None:
            self._longest_pause = max(self._longest_pause, now - self._last)
        self._last = now

    def give_up(self) -> None:
        self.unacknowledged += 1

    def counters(self, now: float) -> LoadCounters:
        """A pause that has not ended yet counts as long as it lasts, so that a stall at the end is not forgotten."""
        on_their_way = self.sent - self.acknowledged - self.unacknowledged
        waiting = now - self._last if self._last is not None and on_their_way else 0.0
        return LoadCounters(
            sent=self.sent,
            acknowledged=self.acknowledged,
            unacknowledged=self.unacknowledged,
            consumed=self.consumed,
            longest_pause_seconds=max(self._longest_pause, waiting),
            slowest_acknowledgement_seconds=self._slowest,
            waiting_seconds=waiting,
            updated_at=time.time(),
        )

    def publish(self, now: float) -> None:
        """By rename: a reader never sees half a file."""
        fresh = self._counters_file.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(self.counters(now))), encoding="ascii")
        fresh.replace(self._counters_file)


def read_counters(directory: Path) -> LoadCounters:
    """All zero before the first message."""
    try:
        return LoadCounters(**json.loads((directory / COUNTERS_FILE).read_text(encoding="ascii")))
    except FileNotFoundError:
        return LoadCounters()


def read_identifiers(directory: Path) -> list[str]:
    """The last line may be cut off when the writer was killed: then its counterpart was never acted upon."""
    text = (directory / IDENTIFIERS_FILE).read_text(encoding="ascii")
    return text[: text.rfind("\n") + 1].split()
