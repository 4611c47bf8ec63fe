"""Reads along, and misses what was acknowledged and cannot be read.

While messages flow nobody can say that one is lost: a reader may be behind because its partition's leader just restarted.
What can be said is how many were acknowledged a while ago and have not been read yet. In health that is none; a message
that is lost stays among them. The verdict is `Load.verify`'s, at the end.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from playground.acknowledgements import IDENTIFIERS_FILE
from playground.clients import client_configuration
from playground.load import LOAD_TOPICS
from playground.seed import Topic

PATIENCE_SECONDS = 10.0
log = logging.getLogger("playground.demo.witness")


class Reconciliation:
    """Two streams of identifiers, in any order: those acknowledged, and those read. Keeps only what is in one of them."""

    def __init__(self) -> None:
        self.read_back = 0
        self._awaited: OrderedDict[str, float] = OrderedDict()
        self._early: set[str] = set()

    def acknowledged(self, identifier: str, now: float) -> None:
        if identifier in self._early:
            self._early.discard(identifier)
        else:
            self._awaited[identifier] = now

    def read(self, identifier: str) -> None:
        self.read_back += 1
        if self._awaited.pop(identifier, None) is None:
            self._early.add(identifier)

    def missing(self, now: float) -> int:
        """How many were acknowledged more than `PATIENCE_SECONDS` ago and have not been read."""
        count = 0
        for since in list(self._awaited.values()):
            if now - since <= PATIENCE_SECONDS:
                break
            count += 1
        return count


class Witness:
    """A thread with a consumer of its own, outside of any group. `read_back` and `missing` may be read at any moment."""

    def __init__(self, bootstrap_servers: Sequence[str], directory: Path, topics: Sequence[Topic] = LOAD_TOPICS) -> None:
        settings = {"group.id": "demo-witness", "enable.auto.commit": False}
        self.read_back = self.missing = 0
        self._consumer = Consumer(client_configuration(bootstrap_servers) | settings, logger=log)
        self._partitions = [TopicPartition(t.name, n, OFFSET_BEGINNING) for t in topics for n in range(t.partitions)]
        self._file = directory / IDENTIFIERS_FILE
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="witness", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        both = Reconciliation()
        lines = _new_lines(self._file)
        self._consumer.assign(self._partitions)
        while not self._stopped.is_set():
            for message in self._consumer.consume(1000, timeout=0.3):
                if message.error() is None:
                    both.read((message.key() or b"").decode("ascii"))
            now = time.monotonic()
            for identifier in next(lines):
                both.acknowledged(identifier, now)
            self.read_back, self.missing = both.read_back, both.missing(now)
        self._consumer.close()


def _new_lines(path: Path) -> Iterator[list[str]]:
    """Each time the whole lines that were appended since; a line that is being written comes the next time."""
    while not path.exists():
        yield []
    rest = ""
    with path.open(encoding="ascii") as file:
        while True:
            *lines, rest = (rest + file.read()).split("\n")
            yield lines
