"""Files that nobody else may read, there whole or not at all."""

import contextlib
import os
import tempfile
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """In place of what is there."""
    _written(path, text).replace(path)


def write_private_once(path: Path, text: str) -> None:
    """What is there already stays: of two that write at the same time, both find the first one's."""
    fresh = _written(path, text)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink()


def _written(path: Path, text: str) -> Path:
    """Beside it. `mkstemp` lets nobody else read, from the first moment."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)
