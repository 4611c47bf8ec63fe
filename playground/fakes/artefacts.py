"""Artefacts in memory."""

import hashlib

from domain.errors import Permanent


class FakeArtefacts:
    """An `ArtefactStore`."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def put(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        self.kept[name] = content
        return name

    async def get(self, name: str) -> bytes:
        if name not in self.kept:
            raise Permanent(f"artefact {name[:80]!r}: not there")
        return self.kept[name]
