"""ZooKeeper as it was when a KRaft controller claimed it, put together from rows of a while before and of some time after.

From the claim on nobody but KRaft's dual write writes what was copied. So a znode that was written last before the claim says
today what the copy found. Of what dual write has written since, or removed, only the earlier rows are left: they may have
changed in the time between, so that their `at` is `OLDER`.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from domain.drift.normalise import uuid_bytes
from domain.drift.records import COPIED_KINDS, KINDS, PARTITION, TOPIC
from domain.errors import Transient
from spark.checks.fields import OLDER
from spark.digest import BUCKETS
from spark.rows import schema_of
from spark.sources.source import Rows
from spark.sources.staged import StagedRange, open_staged
from spark.staging import Manifest, write_rows

DIGEST_KEY = "digest-key"
"""What a manifest tells of the key that secrets were digested with: a digest of it by itself."""


def as_of_claim(kept: Path, now: Path, claim: int, directory: Path) -> None:
    """Into the new `directory`. `kept`, `now`: staged rows. `claim`: the transaction that made `/controller` KRaft's.

    `Transient` where they were digested with different keys: somebody has to give both workers the same.
    """
    earlier, later = ((side, open_staged(side)) for side in (kept, now))
    if earlier[1].about.get(DIGEST_KEY) != later[1].about.get(DIGEST_KEY):
        raise Transient(
            "what ZooKeeper had before the copy was kept with another digest key than this worker's, so its secrets cannot be "
            "compared: run keeperless-checks where they were kept, or give it the same KEEPERLESS_DIGEST_KEY"
        )
    moved = _moved_topics(StagedRange(*later, TOPIC.name, 0, BUCKETS), claim)
    write_rows(directory, _rows(earlier, later, claim, moved), earlier[1].not_read)


def _rows(earlier: tuple[Path, Manifest], later: tuple[Path, Manifest], claim: int, moved: pa.Array) -> Iterator[Rows]:
    for kind in COPIED_KINDS:
        before, after = (StagedRange(*side, kind, 0, BUCKETS).columns(schema_of(kind).names) for side in (earlier, later))
        is_of_then = pc.less_equal(after.column("at"), claim)
        if kind == PARTITION.name:
            is_of_then = pc.and_not(is_of_then, pc.is_in(after.column("topic_id"), moved))
        for table in (_without(kind, before, after.filter(is_of_then)), after.filter(is_of_then)):
            for batch in table.combine_chunks().to_batches():
                yield Rows(kind, batch)


def _without(kind: str, before: pa.Table, exact: pa.Table) -> pa.Table:
    """Those of the rows that nothing better is known of."""
    keys = [field.name for field in KINDS[kind].keys]
    numbered = before.select(keys).append_column("number", pa.array(range(before.num_rows), pa.int64()))
    left = numbered.join(exact.select(keys), keys, join_type="left anti").column("number").combine_chunks().sort()
    rows = before.take(left)
    at = rows.schema.get_field_index("at")
    return rows.set_column(at, rows.schema.field(at), pa.repeat(pa.scalar(OLDER, pa.int64()), rows.num_rows))


def _moved_topics(topics: StagedRange, claim: int) -> pa.Array:
    """Ids of topics whose assignment was written since: their partitions' rows have it too, whatever their states' own say."""
    table = topics.columns(["topic_id", "at"])
    ids = table.filter(pc.greater(table.column("at"), claim)).column("topic_id").drop_null()
    return pa.array([uuid_bytes(text) for text in ids.to_pylist()], schema_of(PARTITION.name).field("topic_id").type)
