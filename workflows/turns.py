"""Whose turn it is, where the interpreter and the record of what happened could both go on: always the interpreter's.

A worker that has to read a run from its history may be given two of its tasks as one: where the first two had nothing to do but
take a record's end, and the next one brings an order (an update), Temporal's core takes the first for a sign of life
(`find_end_index_of_next_wft_seq`). The order then comes before the record's end, though whoever reads that history later is
given them in their own order. Commands have to be the same either way, or the run stands still for ever: so the record that an
order asks for always goes out last.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Turn:
    """What the interpreter waits for in this moment."""

    def __init__(self) -> None:
        self._awaited: Callable[[], bool] | None = None

    @contextmanager
    def awaiting(self, condition: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
        """For the time of a `workflow.wait_condition` of the interpreter's."""
        self._awaited = condition
        try:
            yield condition
        finally:
            self._awaited = None

    @property
    def is_interpreters(self) -> bool:
        """It goes on by itself, before anything else."""
        return self._awaited is not None and self._awaited()
