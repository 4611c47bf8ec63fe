"""Processor seconds by class of process, from outside: what lives is looked at four times a second.

A process that ends between two looks is missing since the last one. What Keeperless's workers have waited for and no look has
seen is added as `short programs`: the kernel has added it to them.
"""

import os
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

LOOK_SECONDS = 0.25
TICKS = os.sysconf("SC_CLK_TCK")
CLASSES = (
    ("spark", ("org.apache.spark", "pyspark")),
    ("brokers", ("kafka.Kafka", "/broker-")),
    ("controllers", ("kafka.Kafka", "/controller-")),
    ("zookeeper", ("QuorumPeerMain",)),
    ("load", ("playground.load_process",)),
    ("workflows", ("workflows.worker",)),
    ("activities", ("activities.worker",)),
    ("checks", ("activities.checks_worker",)),
    ("api", ("api.server",)),
    ("temporal", ("start-dev",)),
    ("other java", ("/bin/java",)),
)
"""By all words of the command line; the first that fits. `spark` also has what it has started."""
OURS = frozenset({"activities", "checks"})
COUNTED = frozenset({*(name for name, _ in CLASSES), "bare script", "short programs"}) - {"load", "zookeeper"}
"""What the ratio is made of: neither the load nor what both contenders leave alone."""


@dataclass
class _Seen:
    kind: str
    first: float
    last: float
    children: tuple[float, float]
    parent: int
    looked_at: float


@dataclass
class Meter:
    """Enter it as the migration begins, and leave it at its end. `root`: only processes whose command line or working folder
    names it count."""

    root: Path
    _seen: dict[tuple[int, str], _Seen] = field(default_factory=dict)
    _looked_at: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._look(is_first=True)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def seconds(self) -> dict[str, float]:
        """By class; without what each process had used before."""
        told: dict[str, float] = defaultdict(float)
        for one in self._seen.values():
            told[one.kind] += one.last - one.first
        workers = {pid: one for (pid, _), one in self._seen.items() if one.kind in OURS}
        waited_for = sum(one.children[1] - one.children[0] for one in workers.values())
        ended = [one for one in self._seen.values() if one.parent in workers and one.looked_at < self._looked_at]
        known = sum(one.last for one in ended)
        told["short programs"] = max(waited_for - known, 0.0)
        return {name: round(told[name], 2) for name in sorted(told)}

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._look()

    def _look(self, *, is_first: bool = False) -> None:
        self._looked_at = time.monotonic()
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal() and int(folder.name) != os.getpid():
                try:
                    self._note(folder, is_first)
                except (FileNotFoundError, ProcessLookupError):
                    continue

    def _note(self, folder: Path, is_first: bool) -> None:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        parent, began = int(fields[1]), fields[19]
        used = (int(fields[11]) + int(fields[12])) / TICKS
        children = (int(fields[13]) + int(fields[14])) / TICKS
        known = self._seen.get((int(folder.name), began))
        if known is not None:
            known.last, known.children, known.looked_at = used, (known.children[0], children), self._looked_at
            return
        kind = self._kind(folder, parent)
        if kind is not None:
            before = used if is_first else 0.0
            of_children = (children if is_first else 0.0, children)
            self._seen[int(folder.name), began] = _Seen(kind, before, used, of_children, parent, self._looked_at)

    def _kind(self, folder: Path, parent: int) -> str | None:
        line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        theirs = next((one.kind for (pid, _), one in self._seen.items() if pid == parent), None)
        named = next((name for name, words in CLASSES if all(word in line for word in words)), None)
        if theirs == "spark":
            return "spark"
        if str(self.root) in line or theirs is not None:
            return named or ("programs" if theirs is not None else None)
        return None
