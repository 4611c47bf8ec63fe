"""Programs that are run once on a machine, where nothing is put for them: the standard library only, Python 3.7 or later."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

BARE = ("-I", "-S")
"""Options of `python3`: nothing of its site is imported, no variable is heeded. An empty program takes a third of the time."""

FOLDER = Path(__file__).parent
OF_OURS = re.compile(r"^from activities\.on_node\.(\w+) import (?:\([^)]*\)|.*)\n", re.MULTILINE)
OF_THE_FUTURE = "from __future__ import annotations\n"
"""Only the first lines of a text may have it."""


def command_of(name: str, asked: Mapping[str, object], python: str = "python3") -> list[str]:
    """What to run: the whole program is on its command line, with what it is asked."""
    return [python, *BARE, "-c", program(name), json.dumps(asked)]


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
