"""Programs that are run once on a machine, where nothing is put for them: the standard library only, Python 3.7 or later."""

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
    return OF_OURS.sub(lambda shared: _text(shared.group(1)).replace(OF_THE_FUTURE, ""), _text(name))


def _text(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")
