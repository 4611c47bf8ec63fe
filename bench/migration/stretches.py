"""Seconds by phase and by step. Both contenders tell the same phases, so that they can be laid side by side."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

PHASES = ("preflight", "controllers", "roll 1", "copy", "roll 2", "before the gate", "finalising", "afterwards")
"""In their order. `copy`: from the last broker of roll 1 to the first of roll 2, comparisons included."""


@dataclass(frozen=True)
class Stretch:
    """`begun`, `ended`: seconds since the migration began. `node`: empty where the step is of the whole cluster."""

    phase: str
    node: str
    begun: float
    ended: float


@dataclass
class Stretches:
    """One migration, as its contender tells it."""

    steps: list[Stretch] = field(default_factory=list)
    total: float = 0.0
    _zero: float = field(default_factory=time.monotonic)

    @contextmanager
    def step(self, phase: str, node: str = "") -> Iterator[None]:
        begun = time.monotonic() - self._zero
        yield
        self.total = time.monotonic() - self._zero
        self.steps.append(Stretch(phase, node, begun, self.total))

    def phases(self) -> dict[str, float]:
        """Seconds from the end of the phase before to the end of this one: what lies between belongs to the later."""
        ends = {phase: max((one.ended for one in self.steps if one.phase == phase), default=0.0) for phase in PHASES}
        told, last = {}, 0.0
        for phase in PHASES:
            told[phase] = max(ends[phase] - last, 0.0)
            last = max(last, ends[phase])
        return told

    def rolls(self) -> list[float]:
        """Seconds of each broker's roll, in both rolls: from the end of the step before to the end of its own."""
        ordered = sorted(self.steps, key=lambda one: one.ended)
        before = [0.0, *(one.ended for one in ordered)]
        return [one.ended - last for one, last in zip(ordered, before, strict=False) if one.node.startswith("broker")]

    def gaps(self) -> list[float]:
        """Seconds from the end of each step to the begin of the next."""
        ordered = sorted((one for one in self.steps if one.node), key=lambda one: one.begun)
        return [max(later.begun - one.ended, 0.0) for one, later in pairwise(ordered)]
