"""Jute's binary archive, as ZooKeeper writes its files: big-endian numbers, and texts and buffers after their length."""

import struct
from dataclasses import dataclass

from domain.errors import Permanent

_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")


@dataclass
class Archive:
    """Reads on from `at`. `name` stands in errors, which are `Permanent` and tell the byte position."""

    content: memoryview
    name: str
    at: int = 0

    def integer(self) -> int:
        return int(_INT.unpack(self._next(4))[0])

    def long(self) -> int:
        return int(_LONG.unpack(self._next(8))[0])

    def buffer(self) -> bytes:
        """Empty also for none at all, which has the length -1."""
        began, length = self.at, self.integer()
        if length < -1:
            raise damaged(self.name, began, f"a length of {length}")
        return bytes(self._next(max(length, 0)))

    def text(self) -> str:
        began = self.at
        try:
            return self.buffer().decode()
        except UnicodeDecodeError:
            raise damaged(self.name, began, "a text that is not UTF-8") from None

    def count(self) -> int:
        """Of a vector; none at all counts as empty."""
        began, found = self.at, self.integer()
        if found < -1:
            raise damaged(self.name, began, f"{found} elements")
        return max(found, 0)

    def _next(self, size: int) -> memoryview:
        if self.at + size > len(self.content):
            raise damaged(self.name, self.at, f"it ends here, and {size} more bytes were expected")
        self.at += size
        return self.content[self.at - size : self.at]


def damaged(name: str, at: int, what: str) -> Permanent:
    return Permanent(f"{name} is damaged at byte {at}: {what}")
