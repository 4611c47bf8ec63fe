"""How this machine is set, by the program that others are asked with, in a process of its own: one that hangs is left."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from activities.observing.node_survey import CannotLook
from activities.on_node import command_of

SECONDS = 8.0
NOWHERE = {"identity": None, "places": (), "files": (), "settings": (), "named": ()}
"""What `note_machine` is asked where there is neither a process nor a place of a node's."""
PLACE = "place of the process"
"""A kind of facts: what the files were found by, and nothing to compare."""


async def look_here(noted: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, Any]:
    """Facts of this machine and of this process, and what the kernel has said. Raises `CannotLook`.

    `noted`: facts that these are to be held against. Who was started from elsewhere looks at the files of then.
    """
    place = dict(noted[PLACE]) if noted is not None and PLACE in noted else _place()
    try:
        request = {
            **NOWHERE,
            "identity": _identity(),
            "files": [place[name] for name in ("python", "code", "program") if name in place],
            "data": [place["directory"]],
        }
        command = command_of("note_machine", request, sys.executable)
        done = await asyncio.to_thread(subprocess.run, command, cwd="/", capture_output=True, timeout=SECONDS, check=True)
        told: dict[str, Any] = json.loads(done.stdout)
        told["facts"][PLACE] = place
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:  # no thread, no process, no answer
        raise CannotLook(f"this machine was not observed: {error}") from error
    return told


def _place() -> dict[str, str]:
    """What this process was started from, and where it works, also where that is gone."""
    program = {"program": sys.argv[0]} if Path(sys.argv[0]).is_absolute() else {}
    directory = str(Path("/proc/self/cwd").readlink()).removesuffix(" (deleted)")
    return {"python": sys.executable, "code": str(Path(__file__)), **program, "directory": directory}


def _identity() -> str:
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return f"{os.getpid()}@{fields[19]}"
