"""What pages of metrics were like that came: what makes one too long for an answer in time was in the last one already."""

import re
import time
from dataclasses import dataclass

from domain.metadata_log import shown as printable

MUCH = 512 * 1024
"""Bytes. A broker's page by the default rules, with some hundred partitions, is half of that. What is larger is read in a
thread of its own, so that all else goes on meanwhile."""
SAMPLED = 4000
"""Lines that are looked at of a page."""
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
MOST_OF_A_VALUE = 60


@dataclass(frozen=True)
class LastPage:
    """Of one endpoint, by the monotonic clock."""

    came_at: float
    seconds: float
    told: str

    @property
    def in_words(self) -> str:
        told = f": {self.told}" if self.told else ""
        return f"the last page came {time.monotonic() - self.came_at:.0f} s ago, after {self.seconds:.1f} s{told}"


def crowd(page: str) -> str:
    """What a large page is full of."""
    lines = [line for line in page.splitlines() if line and not line.startswith("#")]
    sampled = lines[:: max(1, len(lines) // SAMPLED)]
    values: dict[str, list[str]] = {}
    for line in sampled:
        for label, value in LABEL.findall(line):
            values.setdefault(label, []).append(value)
    told = f"{len(page) / 1e6:.1f} MB, {len(lines)} lines"
    most = max(values, key=lambda label: len(set(values[label])), default=None)
    if most is None:
        return told
    share, example = 100 * len(values[most]) // len(sampled), printable(values[most][-1])[:MOST_OF_A_VALUE]
    return f"{told}, {share} % of them with {most}, of which there are most ({example}, for example)"
