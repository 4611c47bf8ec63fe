"""Time in the revert window: how long it looks and waits, and how long the cluster was without a controller."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """In seconds: between two looks; until the sockets of a killed process count as somebody else's, for a busy kernel takes
    its time to close them; how long a controller that has begun to write to ZooKeeper may write nothing, which it does twice a
    second; and how long `/controller` is watched after the window.
    """

    poll: float = 0.05
    settle: float = 5.0
    stall: float = 10.0
    watch: float = 2.0


USUAL = Pace()


class Gap:
    """How long the cluster was without a controller, all windows of one attempt together. Beginning or ending twice is once."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._seconds: float | None = None

    def begin(self) -> None:
        self._since = self._since or time.monotonic()

    def end(self) -> None:
        if self._since is not None:
            self._seconds = (self._seconds or 0.0) + time.monotonic() - self._since
        self._since = None

    @property
    def words(self) -> tuple[str, ...]:
        """Nothing where this attempt has not seen it all."""
        return (f"{self._seconds:.2f} s without a controller",) if self._seconds is not None else ()
