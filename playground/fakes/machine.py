"""A machine's files, in memory."""

from posixpath import dirname

from activities.ports.nodes import FileContent
from domain.errors import Permanent

PRIVATE = 0o600


def text_file(text: str, mode: int = PRIVATE) -> FileContent:
    return FileContent(text.encode(), mode, 0, 0)


class FakeMachine:
    """Files by absolute path. A directory exists when it was made, or has something in it."""

    def __init__(self) -> None:
        self.files: dict[str, FileContent] = {}
        self.signs: dict[str, object] = {}
        """What it says of its process, besides that all is well (`VitalSigns`)."""
        self.unit: dict[str, object] | None = None
        """Of systemd, in which what is started there would be (`StartUnit`)."""
        self.place: dict[str, object] = {}
        """What else is said of what is started there (`StartPlace`)."""
        self.trial: dict[str, object] = {}
        """What is said of a trial of its java, besides that all is well (`JavaTrial`)."""
        self.facts: dict[str, dict[str, str]] = {
            "sysctl": {"vm.max_map_count": "262144"},
            "limit": {"Max open files": "100000"},
        }
        self.kernel: list[tuple[float, str]] | None = []
        """How it is set, and what its kernel has said (`activities.on_node.note_machine`)."""
        self._made: set[str] = {"/"}

    def read(self, path: str) -> FileContent | None:
        if self.is_dir(path):
            raise Permanent(f"{path}: Is a directory")
        return self.files.get(path)

    def write(self, path: str, file: FileContent) -> None:
        if self.is_dir(path):
            raise Permanent(f"{path}: Is a directory")
        self.make_dir(dirname(path))
        self.files[path] = file

    def remove(self, path: str) -> None:
        if self.is_dir(path):
            raise Permanent(f"{path}: Is a directory")
        self.files.pop(path, None)

    def read_part(self, path: str, offset: int, length: int) -> bytes | None:
        file = self.read(path)
        return None if file is None else file.content[offset:][:length]

    def rename(self, old: str, new: str) -> None:
        if self.is_dir(new):
            raise Permanent(f"{new}: Is a directory")
        if old in self.files and self.is_dir(dirname(new)):
            self.files[new] = self.files.pop(old)
        elif new not in self.files:
            raise Permanent(f"{old}: not there, and neither is {new}; one of them was expected")

    def remove_tree(self, path: str) -> None:
        if path in self.files:
            raise Permanent(f"{path}: Not a directory")
        prefix = path.rstrip("/") + "/"
        self.files = {p: file for p, file in self.files.items() if not p.startswith(prefix)}
        self._made = {p for p in self._made if p != path and not p.startswith(prefix)}

    def is_dir(self, path: str) -> bool:
        return path in self._made

    def make_dir(self, path: str) -> None:
        while path not in self._made:
            if path in self.files:
                raise Permanent(f"{path}: File exists")
            self._made.add(path)
            path = dirname(path)

    def names(self, path: str) -> tuple[str, ...] | None:
        if path in self.files:
            raise Permanent(f"{path}: Not a directory")
        if not self.is_dir(path):
            return None
        prefix = path.rstrip("/") + "/"
        below = (entry[len(prefix) :] for entry in (*self.files, *self._made) if entry.startswith(prefix))
        return tuple(sorted({rest.partition("/")[0] for rest in below if rest}))
