"""Counts the demo's processes from outside: who lives now, and how often each node was really started.

The migration tells how often it restarted a node. This is the second opinion: every broker and controller process that was
ever seen, known by its pid and the moment of its start. A rehearsal's throw-away controllers are none of the cluster's nodes.
"""

import os
from collections import defaultdict
from pathlib import Path

import psutil

from playground.demo.leftovers import processes_of

NODE_CLASS = "kafka.Kafka"
Identity = tuple[int, float]


class Census:
    """Belongs to the thread that calls `pids`, once a second or so: no Kafka node lives shorter than that."""

    def __init__(self, directory: Path, cluster: Path) -> None:
        """`cluster`: where the nodes' own folders are, in the demo's `directory`."""
        self._directory = directory
        self._cluster = cluster
        self._seen: dict[str, set[Identity]] = defaultdict(set)
        self._before: dict[str, int] = {}

    def pids(self) -> list[int]:
        """Of everything that belongs to the demo: what it has started, itself, and its guardian."""
        living = processes_of(self._directory)
        for process in living:
            name = node_of(process.info["cmdline"], self._cluster)
            if name is not None:
                self._seen[name].add(_identity(process))
        return [os.getpid(), os.getppid(), *(process.pid for process in living)]

    def begin(self) -> None:
        """A migration starts: what was started until now was not its doing."""
        self._before = {name: len(identities) for name, identities in self._seen.items()}

    def restarts(self) -> dict[str, int]:
        """By node: how often it was started again; after `begin`, or after its first start where it was not seen by then."""
        return {name: len(identities) - self._before.get(name, 1) for name, identities in sorted(self._seen.items())}


def node_of(arguments: list[str], cluster: Path) -> str | None:
    """The name of the cluster's broker or controller that a command line runs: that of its properties file's folder."""
    if Path(arguments[0]).name != "java" or arguments[-2:-1] != [NODE_CLASS]:
        return None
    folder = Path(arguments[-1]).parent
    return folder.name if folder.parent == cluster else None


def _identity(process: psutil.Process) -> Identity:
    """psutil remembers the time of the start: it is asked once, also when the process ends meanwhile."""
    return process.pid, process.create_time()
