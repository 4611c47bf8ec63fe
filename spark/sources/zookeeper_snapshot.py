"""A snapshot file of a ZooKeeper server as a source of rows.

Before any split is read, the file is read once to be believed: every seal holds, and the digest of all nodes, recomputed, is
the one that the server wrote at the end. Servers write a snapshot while they go on serving, so nodes that were written early
may be older than the digest, which is of the last moment; ZooKeeper mends that by replaying its log, and compares digests
when it arrives at the digest's transaction (DataTree.compareSnapshotDigests). Nothing is replayed here. So an equal digest
proves that the file is the tree after exactly that transaction, nothing lost or changed meanwhile, and that it was read here
rightly; one that differs is that of a snapshot taken amid writes, or of a server that is wrong. The digest says nothing of
access lists, nor of what is below `/zookeeper/`. A server that was restarted and has had no transaction since has none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from domain.drift.digests import Digester
from domain.errors import Permanent
from spark.codec.octets import Positions
from spark.codec.zookeeper_snapshot import Content, Frame, Nodes, boundary_from, ensure_intact, frame_of, opened
from spark.job import ZooKeeperSnapshot
from spark.sources.source import Rows, Split
from spark.sources.topic_znodes import MOST_PARTITION, States
from spark.sources.zookeeper_forms import Reading
from spark.sources.zookeeper_regions import partition_numbers, regions_of, topics_folder
from spark.sources.zookeeper_rows import Gathered, Notes
from spark.sources.zookeeper_survey import Known, all_nodes, surveyed


@dataclass
class ZooKeeperSnapshotSource:
    """`splits` and `not_read` read the whole file once; `read` only its split, which brings what the others have to say."""

    spec: ZooKeeperSnapshot
    digester: Digester
    encoder_secret: bytes | None = field(default=None, repr=False)
    is_before_dual_write: bool = False

    @cached_property
    def known(self) -> Known:
        content = opened(self.spec.path)
        frame = frame_of(content, self._name)
        ensure_intact(content, self._name, frame)
        return surveyed(content, self._name, frame, self.spec.chroot)

    def splits(self, wanted: int) -> Sequence[Split]:
        """Cut where no topic is in two parts."""
        content, left_out = opened(self.spec.path), tuple(sorted(self.known.left_out))
        frame = frame_of(content, self._name)
        starts = {frame.begin}
        for part in range(1, wanted):
            starts.add(self._cut(content, frame, frame.begin + part * (frame.end - frame.begin) // wanted))
        bounds = sorted(starts | {frame.end})
        return [Split(f"{self.spec.path.name}-{begin}", self._name, begin, end, left_out) for begin, end in pairwise(bounds)]

    def read(self, split: Split, kinds: frozenset[str]) -> Iterator[Rows]:
        content, notes = opened(self.spec.path), Notes()
        secret = None if self.encoder_secret is None else self.encoder_secret.decode()
        reading = Reading(self.digester, secret, kinds, self.spec.path.name, self.is_before_dual_write)
        gathered = Gathered(reading, notes, split.left_out)
        columns = _Columns(gathered, self.spec.chroot)
        for nodes in all_nodes(content, self._name, split.begin, split.end):
            yield from columns.add(nodes)
            self._ensure_read(notes)
        yield from gathered.rest()
        self._ensure_read(notes)

    def not_read(self) -> tuple[str, ...]:
        return self.known.not_read

    @property
    def _name(self) -> str:
        return str(self.spec.path)

    def _cut(self, content: Content, frame: Frame, position: int) -> int:
        start = boundary_from(content, position, frame.end)
        for nodes in all_nodes(content, self._name, start, frame.end):
            outside = np.flatnonzero(~regions_of(nodes, self.spec.chroot).below)
            if len(outside):
                return int(nodes.begin[outside[0]])
        return frame.end

    def _ensure_read(self, notes: Notes) -> None:
        """A topic without an id is told in `not_read`; for anything else it is too late for that."""
        if (unread := notes.damaged) is not None:
            raise Permanent(f"{self._name}, byte {unread.position}: {self.spec.chroot}{unread.path} {unread.why}")


class _Columns:
    """Nodes, as columns, on their way into rows. A topic's states may come with the nodes after those of its own.

    `_slot`: of the last topic among those gathered, -1 where it is left out, and before the first one.
    """

    def __init__(self, gathered: Gathered, chroot: str) -> None:
        self._gathered = gathered
        self._chroot = chroot
        self._folder = len(topics_folder(chroot))
        self._slot = -1
        self._length = 0

    def add(self, nodes: Nodes) -> Iterator[Rows]:
        if self._gathered.is_full:
            yield from self._gathered.taken()
            self._slot = min(self._slot, 0)
        regions = regions_of(nodes, self._chroot)
        self._add_others(nodes.taken(regions.others))
        slots, lengths = self._add_topics(nodes.taken(regions.topics))
        owners = np.searchsorted(regions.topics, regions.states)
        self._add_states(nodes.taken(regions.states), slots[owners], lengths[owners])
        self._slot, self._length = int(slots[-1]), int(lengths[-1])

    def _add_topics(self, nodes: Nodes) -> tuple[Positions, Positions]:
        """Slots and lengths of paths: of the last topic before these, then of these."""
        topics, left_out = self._gathered.topics, self._gathered.left_out
        names = [path[self._folder :].decode(errors="replace") for path in nodes.paths()]
        is_kept = np.array([name not in left_out for name in names], np.bool_)
        slots = np.where(is_kept, len(topics.names) + np.cumsum(is_kept) - 1, -1)
        kept = nodes.taken(is_kept)
        kept_names = [name for name in names if name not in left_out]
        topics.add_topics(kept_names, kept.contents(), kept.modified_zxids().tolist(), kept.begin.tolist())
        return np.append(self._slot, slots), np.append(self._length, nodes.path_length)

    def _add_states(self, nodes: Nodes, slots: Positions, lengths: Positions) -> None:
        topics, numbers = self._gathered.topics, partition_numbers(nodes, lengths)
        is_kept = (slots >= 0) & (numbers >= 0) & (numbers <= MOST_PARTITION)
        kept = nodes.taken(is_kept)
        columns = (slots[is_kept], numbers[is_kept], kept.modified_zxids(), kept.begin)
        topics.add_states(States(kept.window, kept.data, kept.data_length, *columns))

    def _add_others(self, nodes: Nodes) -> None:
        columns = (nodes.paths(), nodes.contents(), nodes.modified_zxids().tolist(), nodes.begin.tolist())
        for path, data, mzxid, position in zip(*columns, strict=True):
            parts = path.decode(errors="replace")[len(self._chroot) :].split("/")[1:]
            self._gathered.add(parts, data, mzxid, position)
