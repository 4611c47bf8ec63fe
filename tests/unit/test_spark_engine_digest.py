"""Hashes of rows: the same for the same row however it lies in memory, others for what a careless hash takes for equal."""

from itertools import combinations
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from domain.drift.records import ACL, KINDS, PARTITION, TOPIC_CONFIG, RowKind
from spark.digest import digest_of, key_hashes, row_hashes
from spark.rows import schema_of
from tests.unit.drift_oracle import Row
from tests.unit.generated_clusters import generate

STATE = {"leader": 1, "isr": [1], "leader_epoch": 1, "recovery": 0, "segment": "", "batch": -1, "at": 1}
BASE: Row = {"topic_id": b"i" * 16, "partition": 0, "replicas": [1, 2], "adding": [], "removing": [], **STATE}


def partition_hash(**changed: object) -> int:
    batch = pa.RecordBatch.from_pylist([{**BASE, **changed}], schema_of("partition"))
    return int(row_hashes(PARTITION, batch, key_hashes(PARTITION, batch))[0])


def test_boundaries_nulls_and_sizes_are_told_apart() -> None:
    lists = [[], None, [4], [0], [4, 0], [0, 4], [4, 4], [0, 0], [4, 0, 0]]
    rows = [{"adding": adding, "removing": removing} for adding in lists for removing in lists]
    assert len({partition_hash(**row) for row in rows}) == len(rows)


def test_a_null_is_no_zero() -> None:
    for name in ("leader", "leader_epoch", "recovery"):
        assert len({partition_hash(**{name: value}) for value in (None, 0, 1, -1)}) == 4


def test_texts_of_all_sizes_are_told_apart() -> None:
    texts = [None, *("x" * size for size in range(40)), *("x" * size + "\0" for size in range(20)), "ä", "a\u0308"]
    schema = schema_of("topic-config")
    rows = [{"topic": "t", "name": "n", "value": text, "segment": "", "batch": -1, "at": 1} for text in texts]
    batch = pa.RecordBatch.from_pylist(rows, schema)
    hashes = row_hashes(TOPIC_CONFIG, batch, key_hashes(TOPIC_CONFIG, batch))
    assert len(set(hashes.tolist())) == len(texts)


def test_keys_do_not_run_into_each_other() -> None:
    pairs = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", ""), ("a" * 8, "b"), ("a" * 8 + "b", "")]
    rows = [{"topic": a, "name": b, "value": "v", "segment": "", "batch": -1, "at": 1} for a, b in pairs]
    batch = pa.RecordBatch.from_pylist(rows, schema_of("topic-config"))
    assert len(set(key_hashes(TOPIC_CONFIG, batch).tolist())) == len(pairs)


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_where_a_row_lies_in_memory_does_not_matter(kind: RowKind) -> None:
    random = Random(7)  # noqa: S311
    rows: list[Row] = []
    for number in range(20):
        rows.extend(generate(random, tag=f"c{number:02}").left.get(kind.name, []))
    rows = rows or generate(random, most=3).left.get(kind.name, [])
    whole = pa.RecordBatch.from_pylist(rows, schema_of(kind.name))
    keys = key_hashes(kind, whole)
    hashes = row_hashes(kind, whole, keys)
    for begin, end in combinations(range(0, len(rows) + 1, max(1, len(rows) // 6)), 2):
        part = whole.slice(begin, end - begin)
        assert np.array_equal(key_hashes(kind, part), keys[begin:end])
        assert np.array_equal(row_hashes(kind, part, keys[begin:end]), hashes[begin:end])
    chunked = pa.Table.from_batches([whole.slice(n, 1) for n in range(len(rows))], whole.schema)
    assert np.array_equal(row_hashes(kind, chunked, key_hashes(kind, chunked)), hashes)


def test_a_digest_is_of_the_rows_and_of_no_order() -> None:
    """Also for rows that are nothing but keys."""
    names = [f"topic-{number}" for number in range(50)]
    fields = {"resource_type": "Topic", "pattern": "LITERAL", "principal": "User:a", "host": "*", "operation": "READ"}
    rows = [{**fields, "resource": name, "permission": "ALLOW", "segment": "", "batch": -1, "at": 1} for name in names]
    batch = pa.RecordBatch.from_pylist(rows, schema_of("acl"))
    keys = key_hashes(ACL, batch)
    hashes = row_hashes(ACL, batch, keys)
    order = np.random.default_rng(1).permutation(len(keys))
    assert digest_of(keys, hashes) == digest_of(keys[order], hashes[order])
    digests = {digest_of(np.delete(keys, at), np.delete(hashes, at)) for at in range(len(keys))}
    assert len(digests) == len(keys)
