"""How far a check has come."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Tasks of the stage that runs: `stage` rows, `compare` them, `conclude`."""

    stage: str
    done: int
    total: int


OnProgress = Callable[[Progress], None]
"""Called often, in the thread that called `run`. What it raises ends the check, which leaves nothing running."""


def ignore(progress: Progress) -> None:
    """For callers that do not ask."""
