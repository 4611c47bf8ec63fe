"""Programs that are run once on a machine, where nothing is put for them: the standard library only, Python 3.7 or later."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
OF_OURS = re.compile(r"^from activities\.on_node\.(\w+) import (?:\([^)]*\)|.*)\n", re.MULTILINE)
OF_THE_FUTURE = "from __future__ import annotations\n"
"""Only the first lines of a text may have it."""


@cache
def program(name: str) -> str:
    """The text of one, to be handed over as an argument of `python3 -c`: what it shares with others is in the place where it
    imports that. Read once: an upgrade under a worker that runs changes nothing."""
    return _whole(name, set())


def _whole(name: str, told: set[str]) -> str:
    def part(shared: re.Match[str]) -> str:
        is_told = shared.group(1) in told
        told.add(shared.group(1))
        return "" if is_told else _whole(shared.group(1), told).replace(OF_THE_FUTURE, "")

    return OF_OURS.sub(part, _text(name))


def _text(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")
