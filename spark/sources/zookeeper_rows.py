"""Znodes as rows, from a live tree or from a file: what both have in common.

Excluded, as Kafka's copy excludes them: topics that are being deleted, and configs of topics that are not there. A znode that
cannot be read well enough to compare is named, and makes a verdict inconclusive.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from domain.drift.digests import Digester
from domain.drift.records import PARTITION, TOPIC
from spark.sources.source import Rows
from spark.sources.topic_znodes import MOST_PARTITION, Topics, Unread
from spark.sources.zookeeper_forms import Reading, rows_of_znode
from spark.sources.zookeeper_survey import TOLD
from spark.sources.zookeeper_topics import record_batch, topic_rows

BATCH = 100_000


class CapturedZnode(Protocol):
    """What is known of a znode that was read from a live tree. `path`: below the chroot."""

    @property
    def path(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def mzxid(self) -> int: ...


@dataclass
class Notes:
    """What a reader has to tell besides rows. `not_read`: znodes that it could not read, the first ones by name. `damaged`:
    the first of them that is no topic without an id.
    """

    not_read: list[str] = field(default_factory=list)
    damaged: Unread | None = None
    _count: int = 0

    def name(self, unread: Unread) -> None:
        self._count += 1
        if self._count <= TOLD:
            self.not_read.append(f"{unread.path} {unread.why}")
        else:
            self.not_read[TOLD:] = [f"… and {self._count - TOLD} more like these"]
        if self.damaged is None and not unread.is_without_id:
            self.damaged = unread


def rows_of(
    znodes: Iterable[CapturedZnode],
    kinds: frozenset[str],
    digester: Digester,
    encoder_secret: str | None = None,
    notes: Notes | None = None,
    is_before_dual_write: bool = False,
) -> Iterator[Rows]:
    """Rows of a live tree. First the topics being deleted, each topic before its partitions, and topics before their configs:
    so `activities.comparison.capturing` reads them.
    """
    reading = Reading(digester, encoder_secret, kinds, is_before_dual_write=is_before_dual_write)
    gathered = Gathered(reading, notes if notes is not None else Notes())
    topics = set[str]()
    for znode in znodes:
        parts = znode.path.split("/")[1:]
        match parts:
            case ["admin", "delete_topics", topic]:
                gathered.left_out.add(topic)
                continue
            case ["brokers", "topics", topic]:
                topics.add(topic)
            case ["config", "topics", topic] if topic not in topics:
                continue
        if gathered.is_full:
            yield from gathered.taken()
        gathered.add(parts, znode.data, znode.mzxid)
    yield from gathered.rest()


class Gathered:
    """Rows as they come, until they are taken."""

    def __init__(self, reading: Reading, notes: Notes, left_out: Iterable[str] = ()) -> None:
        self.reading = reading
        self.notes = notes
        self.left_out = set(left_out)
        self.topics = Topics()
        self._rows: dict[str, list[tuple[object, ...]]] = {}
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Of what can be taken: of a topic that is still coming there may be more than that."""
        return self._count + self.topics.whole_count >= BATCH

    def add(self, parts: list[str], data: bytes, mzxid: int, position: int = -1) -> None:
        match parts:
            case ["brokers", "topics", topic]:
                self._add_topic(topic, data, mzxid, position)
            case ["brokers", "topics", topic, "partitions", number, "state"]:
                self._add_state(topic, number, data, mzxid, position)
            case ["config", "topics", topic] if topic in self.left_out:
                pass
            case _:
                self._add_other(parts, data, mzxid, position)

    def taken(self) -> Iterator[Rows]:
        """All but the last topic, whose states may still come."""
        rows, self._rows, self._count = self._rows, {}, 0
        for kind, found in rows.items():
            yield Rows(kind, record_batch(kind, list(zip(*found, strict=True))))
        yield from self._rows_of_topics(self.topics.taken())

    def rest(self) -> Iterator[Rows]:
        yield from self.taken()
        topics, self.topics = self.topics, Topics()
        yield from self._rows_of_topics(topics)

    def _rows_of_topics(self, topics: Topics) -> Iterator[Rows]:
        if not topics.names or not self.reading.kinds & {TOPIC.name, PARTITION.name}:
            return
        found = topic_rows(topics, self.reading.segment, self.reading.is_before_dual_write)
        for unread in found.unread:
            self.notes.name(unread)
        for kind, batch in ((TOPIC.name, found.topics), (PARTITION.name, found.partitions)):
            if kind in self.reading.kinds:
                yield Rows(kind, batch)

    def _add_topic(self, topic: str, data: bytes, mzxid: int, position: int) -> None:
        if topic in self.left_out:
            return
        self.topics.add_topics([topic], [data], [mzxid], [position])

    def _add_state(self, topic: str, number: str, data: bytes, mzxid: int, position: int) -> None:
        """Not of a topic that is left out, or that went away while the tree was read; nor of what is no partition's number:
        a topic that has such a one is named itself.
        """
        if not self.topics.names or self.topics.names[-1] != topic or not _is_partition(number):
            return
        self.topics.add_state(data, int(number), mzxid, position)

    def _add_other(self, parts: list[str], data: bytes, mzxid: int, position: int) -> None:
        origin = (self.reading.segment, position, mzxid)
        try:
            rows = list(rows_of_znode(parts, data, self.reading))
        except ValueError as error:
            self.notes.name(Unread(_shown(parts), str(error), position))
            return
        for kind, values in rows:
            if kind in self.reading.kinds:
                self._rows.setdefault(kind, []).append((*values, *origin))
                self._count += 1


def _is_partition(number: str) -> bool:
    return re.fullmatch("[0-9]{1,10}", number) is not None and int(number) <= MOST_PARTITION


def _shown(parts: list[str]) -> str:
    """The id of a delegation token is half of the token, so nobody is told it."""
    return "/" + "/".join([*parts[:2], "…"] if parts[:2] == ["delegation_token", "tokens"] else parts)
