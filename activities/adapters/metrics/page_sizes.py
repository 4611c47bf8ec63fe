"""What pages of metrics were like that came: what makes one too long for an answer in time was in the last one already."""

import re
import time

from domain.quorum_log.metadata_log import shown as printable

MUCH = 512 * 1024
"""Bytes. A broker's page by the default rules, with some hundred partitions, is half of that. What is larger is read in a
thread of its own, so that all else goes on meanwhile."""
SAMPLED = 4000
"""Lines that are looked at of a page."""
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
MOST_OF_A_VALUE = 60


class LastPage:
    """Of one endpoint. What it is full of is reckoned when somebody wants to know: of a page that has come nobody does."""

    def __init__(self, page: str, seconds: float) -> None:
        """`seconds`: how long it took."""
        self._came_at, self._seconds, self._size = time.monotonic(), seconds, len(page)
        lines = [line for line in page.splitlines() if line and not line.startswith("#")] if len(page) >= MUCH else []
        self._lines, self._sampled = len(lines), lines[:: max(1, len(lines) // SAMPLED)]

    @property
    def in_words(self) -> str:
        came = f"the last page came {time.monotonic() - self._came_at:.0f} s ago, after {self._seconds:.1f} s"
        return f"{came}: {self._size / 1e6:.1f} MB, {self._lines} lines{self._crowd()}" if self._lines else came

    def _crowd(self) -> str:
        values: dict[str, list[str]] = {}
        for line in self._sampled:
            for label, value in LABEL.findall(line):
                values.setdefault(label, []).append(value)
        most = max(values, key=lambda label: len(set(values[label])), default=None)
        if most is None:
            return ""
        share = 100 * len(values[most]) // len(self._sampled)
        example = printable(values[most][-1])[:MOST_OF_A_VALUE]
        return f", {share} % of them with {most}, of which there are most ({example}, for example)"
