"""ZooKeeper as it was when a KRaft controller claimed it, put together from rows of a while before and of some time after.

From the claim on nobody but KRaft's dual write writes what was copied. So a znode that was written last before the claim says
today what the copy found. Of what dual write has written since, or removed, only the earlier rows are left: they may have
changed in the time between, so that their `at` is `OLDER`. That is so of all quotas, SCRAM credentials and delegation tokens:
the first thing a KRaft controller does after the copy is to write them (KRaftMigrationZkWriter.handleSnapshot).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from domain.drift.normalise import uuid_bytes, uuid_text
from domain.drift.records import COPIED_KINDS, KINDS, PARTITION, TOKEN, TOPIC
from domain.drift.znode_paths import own_paths_of
from domain.errors import Transient
from spark.comparing.fields import OLDER
from spark.digest import BUCKETS
from spark.rows import schema_of
from spark.sources.source import Rows
from spark.sources.staged import StagedRange, open_staged
from spark.staging import Manifest, write_rows

DIGEST_KEY = "digest-key"
"""What a manifest tells of the key that secrets were digested with: a digest of it by itself."""


@dataclass(frozen=True)
class AtClaim:
    """`zxid`: the transaction that made `/controller` KRaft's. `unchanged`: paths of znodes, states of partitions aside, that
    are there and were written last before that. `milliseconds`: of the claim, by the ensemble's clock.
    """

    zxid: int
    unchanged: frozenset[str]
    milliseconds: int | None = None


def as_of_claim(kept: Path, now: Path, claim: AtClaim, directory: Path) -> None:
    """Into the new `directory`. `kept`, `now`: staged rows.

    `Transient` where they were digested with different keys: somebody has to give both workers the same.
    """
    earlier, later = ((side, open_staged(side)) for side in (kept, now))
    if earlier[1].about.get(DIGEST_KEY) != later[1].about.get(DIGEST_KEY):
        raise Transient(
            "what ZooKeeper had before the copy was kept with another digest key than this worker's, so its secrets cannot be "
            "compared: run keeperless-checks where they were kept, or give it the same KEEPERLESS_DIGEST_KEY"
        )
    write_rows(directory, _Sides(earlier, later, claim).rows(), earlier[1].not_read)


@dataclass(frozen=True)
class _Sides:
    earlier: tuple[Path, Manifest] = field(repr=False)
    later: tuple[Path, Manifest] = field(repr=False)
    claim: AtClaim

    def rows(self) -> Iterator[Rows]:
        for kind in COPIED_KINDS:
            exact = self._exact(kind)
            for table in (self._older(kind, exact), exact):
                for batch in table.combine_chunks().to_batches():
                    yield Rows(kind, batch)

    def _table(self, side: tuple[Path, Manifest], kind: str) -> pa.Table:
        return StagedRange(*side, kind, 0, BUCKETS).columns(schema_of(kind).names)

    def _exact(self, kind: str) -> pa.Table:
        """Rows of which today's say what they were. A partition's come of two znodes, and say nothing without its state."""
        rows = self._table(self.later, kind)
        is_exact = pc.less_equal(rows.column("at"), self.claim.zxid)
        if kind == PARTITION.name:
            is_exact = pc.and_not(is_exact, pc.is_in(rows.column("topic_id"), self._moved_topics()))
            is_exact = pc.and_(is_exact, pc.is_valid(rows.column("leader_epoch")))
        return rows.filter(is_exact)

    def _moved_topics(self) -> pa.Array:
        """Ids of topics whose assignment was written since."""
        topics = self._table(self.later, TOPIC.name)
        ids = topics.filter(pc.greater(topics.column("at"), self.claim.zxid)).column("topic_id").drop_null()
        return pa.array([uuid_bytes(text) for text in ids.to_pylist()], schema_of(PARTITION.name).field("topic_id").type)

    def _older(self, kind: str, exact: pa.Table) -> pa.Table:
        """Those of the earlier rows that nothing better is known of."""
        rows = self._table(self.earlier, kind)
        keys = [field.name for field in KINDS[kind].keys]
        numbered = rows.select(keys).append_column("number", pa.array(range(rows.num_rows), pa.int64()))
        rows = rows.take(
            numbered.join(exact.select(keys), keys, join_type="left anti").column("number").combine_chunks().sort()
        )
        rows = rows.filter(pa.array([not gone for gone in self._are_gone(kind, rows)], pa.bool_()))
        at = rows.schema.get_field_index("at")
        return rows.set_column(at, rows.schema.field(at), pa.repeat(pa.scalar(OLDER, pa.int64()), rows.num_rows))

    def _are_gone(self, kind: str, rows: pa.Table) -> Iterator[bool]:
        """Rows of znodes that are there without them, and were so at the claim; and tokens that were past their time."""
        if kind == TOKEN.name:
            yield from map(self._is_past, rows.column("expires").to_pylist())
        elif kind == PARTITION.name:
            yield from map(self._was_made_anew, rows.column("topic_id").to_pylist())
        else:
            keys = (rows.column(field.name).to_pylist() for field in KINDS[kind].keys)
            yield from (self._stands(kind, key) for key in zip(*keys, strict=True))

    def _is_past(self, expires: int | None) -> bool:
        return self.claim.milliseconds is not None and (expires or 0) < self.claim.milliseconds

    def _was_made_anew(self, topic_id: bytes) -> bool:
        """The topic, under its name: with the same id its partitions are still there."""
        name = self._names.get(uuid_text(topic_id))
        return name is not None and self._stands(TOPIC.name, (name,)) and topic_id not in self._ids

    def _stands(self, kind: str, key: Sequence[object]) -> bool:
        return not self.claim.unchanged.isdisjoint(own_paths_of(kind, key, {}))

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Of the topics that there were, by id."""
        topics = self._table(self.earlier, TOPIC.name)
        return dict(zip(topics.column("topic_id").to_pylist(), topics.column("topic").to_pylist(), strict=True))

    @cached_property
    def _ids(self) -> frozenset[bytes]:
        """Of the topics that there are."""
        ids = self._table(self.later, TOPIC.name).column("topic_id").drop_null().to_pylist()
        return frozenset(uuid_bytes(text) for text in ids)
