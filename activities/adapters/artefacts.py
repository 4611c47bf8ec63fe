"""Artefacts in a directory: `ab/abcdef…`, named by the sha256 of their bytes."""

import asyncio
import hashlib
import os
import re
import tempfile
from pathlib import Path

from domain.errors import Permanent, Transient

NAME = re.compile(r"[0-9a-f]{64}")
LOST = (
    "restore that file from a backup. If it is lost for good, what is compared with it cannot be compared any more: take "
    "over with a migration that has compare_copy: false (what ZooKeeper had before the copy) or compare_messages: false "
    "(clients' data), which proves nothing of that"
)


class DirectoryArtefacts:
    """An `ArtefactStore`. Written once, never changed; 256 folders, so that no folder grows without bound."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def put(self, content: bytes) -> str:
        return await asyncio.to_thread(self._put, content)

    async def get(self, name: str) -> bytes:
        return await asyncio.to_thread(self._get, name)

    def _path(self, name: str) -> Path:
        if NAME.fullmatch(name) is None:
            raise Permanent(f"artefact {name[:80]!r}: not a name; expected 64 hexadecimal digits")
        return self._root / name[:2] / name

    def _put(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        path = self._path(name)
        try:
            if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != name:
                _write(path, content)
        except OSError as error:
            raise Transient(f"artefact {name}: cannot be written to {self._root}: {error.strerror}") from error
        return name

    def _get(self, name: str) -> bytes:
        path = self._path(name)
        try:
            content = path.read_bytes()
        except FileNotFoundError as error:
            raise Permanent(f"artefact {name}: not in {self._root}; {self._why_not()} {LOST}") from error
        except OSError as error:
            raise Transient(f"artefact {name}: cannot be read from {self._root}: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != name:
            raise Permanent(f"artefact {name}: the bytes in {path} have another hash; they were changed or damaged: {LOST}")
        return content

    def _why_not(self) -> str:
        """A directory that was written before has the artefacts of every report."""
        if any(self._root.glob("??/*")):
            return "it has others. If it was cleaned, or restored from an older backup,"
        return (
            "it has none at all: this process was started with another KEEPERLESS_ARTEFACTS than the one that wrote it (by "
            "default it is below the HOME of the process's user), or the directory was moved or cleaned. Give all programs "
            "the same one, and restart this one. If that is not the cause,"
        )


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all: the bytes are on disk before they get their name. Two writers of one name write the same."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
