"""How this machine is set, by the program that others are asked with, in a process of its own: one that hangs is left."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from activities.node_survey import CannotLook
from activities.on_node import program

PROGRAM = program("note_machine")
SECONDS = 8.0


async def look_here() -> dict[str, Any]:
    """Facts of this machine and of this process, and what the kernel has said. Raises `CannotLook`."""
    try:
        request = {
            "identity": _identity(),
            "places": [],
            "files": [sys.executable, str(Path(__file__)), *([sys.argv[0]] if Path(sys.argv[0]).is_absolute() else [])],
            "data": [_directory()],
        }
        command = [sys.executable, "-I", "-c", PROGRAM, json.dumps(request)]
        done = await asyncio.to_thread(subprocess.run, command, cwd="/", capture_output=True, timeout=SECONDS, check=True)
        told: dict[str, Any] = json.loads(done.stdout)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:  # no thread, no process, no answer
        raise CannotLook(f"this machine was not looked at: {error}") from error
    return told


def _directory() -> str:
    """Where this process works, also where that is gone."""
    return str(Path("/proc/self/cwd").readlink()).removesuffix(" (deleted)")


def _identity() -> str:
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return f"{os.getpid()}@{fields[19]}"
