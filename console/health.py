"""A worker's beat on its own machine: a file that `--health` reads, as a container's health check does."""

import os
import time
from datetime import timedelta
from pathlib import Path

FRESH = timedelta(seconds=30)


def beat_file(directory: Path, program: str) -> Path:
    return directory / f"{program}.beat"


def write_beat(file: Path, trouble: str) -> None:
    """Replace the file in one step. `trouble`: what keeps the worker from its work, empty if nothing does. Raises `OSError`."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(trouble, encoding="utf-8")
    new.replace(file)


def why_unhealthy(file: Path) -> str:
    """One sentence; empty if the last beat is fresh and told of no trouble."""
    try:
        age, trouble = time.time() - file.stat().st_mtime, file.read_text(encoding="utf-8")
    except OSError as error:
        return f"There is no heartbeat: {file} cannot be read ({error.strerror})."
    if age > FRESH.total_seconds():
        return f"The last heartbeat is {age:.0f} s old: the process has ended or is stopped, or its event loop is blocked."
    return trouble
