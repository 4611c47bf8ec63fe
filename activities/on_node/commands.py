"""Other programs of the machine, asked for what no file says. A part of each that imports it."""

from __future__ import annotations

import os
import shutil
import subprocess

PROGRAM_SECONDS = 1.5


def run(*command: str) -> str | None:
    """What it prints; `None` where there is no such program, or it may not look. It gets nothing of our environment."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
    path = shutil.which(command[0], path=search)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": search, "LC_ALL": "C"},
            timeout=PROGRAM_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
