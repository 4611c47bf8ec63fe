"""How far a check has come."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Tasks of the stage that runs: `stage` rows, `compare` them, `conclude`.

    `running`: how many of them run now, on the host of a Spark that says so.
    """

    stage: str
    done: int
    total: int
    running: int | None = None
    host: str = ""

    @property
    def words(self) -> str:
        """What is done, and whether nobody does it: a Spark without a free executor keeps its tasks, and reports no error."""
        if self.running == 0 and self.done < self.total:
            return f"{self.stage} on Spark at {self.host}, which has its tasks, and runs none of them"
        return self.stage


OnProgress = Callable[[Progress], None]
"""Called often, in the thread that called `run`. What it raises ends the check, which leaves nothing running."""


def ignore(progress: Progress) -> None:
    """For callers that do not ask."""
