"""Staged rows: whole or not there, what the manifest says or refused, the same rows range by range."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spark.staging
from domain.drift.records import KINDS
from domain.errors import Permanent
from spark.digest import BUCKETS
from spark.rows import schema_of
from spark.sources.source import Rows
from spark.sources.staged import StagedRange, StagedSource, open_staged
from spark.staging import MANIFEST, stage_part, write_rows
from tests.unit.drift_oracle import Row
from tests.unit.generated_clusters import generate, rows_of

SECRET = "s3cr3t-that-nobody-digested"


def topics(*names: str) -> Rows:
    rows = [{"topic": name, "topic_id": None, "segment": "", "batch": -1, "at": 1} for name in names]
    return Rows("topic", pa.RecordBatch.from_pylist(rows, schema_of("topic")))


def scram(stored_key: str) -> Rows:
    row = {"user": "u", "mechanism": "SCRAM-SHA-256", "salt": "", "stored_key": stored_key, "server_key": "", "iterations": 1}
    return Rows("scram", pa.RecordBatch.from_pylist([{**row, "segment": "", "batch": -1, "at": 1}], schema_of("scram")))


@pytest.fixture
def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a few rows were very many."""
    monkeypatch.setattr(spark.staging, "ROWS_PER_FILE", 40)
    monkeypatch.setattr(spark.staging, "ROWS_PER_GROUP", 8)


def a_side(seed: int) -> dict[str, list[Row]]:
    random = Random(seed)  # noqa: S311
    cluster = generate(random, most=30)
    for number in range(10):
        cluster.add(generate(random, tag=f"c{number:02}", most=30))
    return cluster.right


@pytest.mark.usefixtures("in_small_pieces")
def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    side = a_side(1)
    write_rows(tmp_path / "side", in_small_batches(side), not_read=["the moon"], about={"cut": "7"})
    source = StagedSource.open(tmp_path / "side")
    assert source.not_read() == ("the moon",)
    assert source.manifest.about == {"cut": "7"}
    assert len(source.splits(2)) > len(side)
    read = [rows for split in source.splits(2) for rows in source.read(split, frozenset(KINDS))]
    for kind, rows in side.items():
        found = pa.Table.from_batches([part.batch for part in read if part.kind == kind], schema_of(kind))
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, in_order_of_columns(kind, rows)))


def in_small_batches(side: dict[str, list[Row]]) -> Iterator[Rows]:
    for rows in rows_of(side):
        for at in range(0, rows.batch.num_rows, 15):
            yield Rows(rows.kind, rows.batch.slice(at, 15))


def in_order_of_columns(kind: str, rows: list[Row]) -> Iterator[Row]:
    return ({name: row[name] for name in schema_of(kind).names} for row in rows)


@pytest.mark.usefixtures("in_small_pieces")
@pytest.mark.parametrize("width", [BUCKETS, BUCKETS // 2, 100, 7 * 64])
def test_ranges_of_buckets_are_all_rows_once(tmp_path: Path, width: int) -> None:
    side = a_side(2)
    manifest = write_rows(tmp_path / "side", rows_of(side))
    for kind in side:
        ranges = [StagedRange(tmp_path / "side", manifest, kind, at, at + width) for at in range(0, BUCKETS, width)]
        whole = StagedRange(tmp_path / "side", manifest, kind, 0, BUCKETS).whole()
        parts = [one.whole() for one in ranges]
        assert all(
            one.begin <= bucket < one.end
            for one, part in zip(ranges, parts, strict=True)
            for bucket in part["bucket"].to_pylist()
        )
        assert sorted(map(repr, pa.concat_tables(parts).to_pylist())) == sorted(map(repr, whole.to_pylist()))
        assert whole.num_rows == manifest.rows_of(kind) == len(side[kind])


@pytest.mark.usefixtures("in_small_pieces")
def test_columns_of_a_range_are_in_the_order_of_its_rows(tmp_path: Path) -> None:
    manifest = write_rows(tmp_path / "side", rows_of(a_side(3)))
    span = StagedRange(tmp_path / "side", manifest, "partition", 100, 3000)
    assert span.columns(["row_hash", "key_hash"]).equals(span.whole().select(["row_hash", "key_hash"]))


def test_a_directory_appears_when_it_is_whole(tmp_path: Path) -> None:
    def rows() -> Iterator[Rows]:
        yield topics("a")
        assert not (tmp_path / "side").exists()
        raise Permanent("the reader found damage")

    with pytest.raises(Permanent, match="damage"):
        write_rows(tmp_path / "side", rows())
    assert list(tmp_path.iterdir()) == []


def test_rows_are_never_written_over_others(tmp_path: Path) -> None:
    write_rows(tmp_path / "side", [topics("a")])
    with pytest.raises(Permanent, match="exists already"):
        write_rows(tmp_path / "side", [topics("b")])
    assert open_staged(tmp_path / "side").rows_of("topic") == 1


def test_without_a_manifest_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "side").mkdir()
    stage_part(tmp_path / "side", "part", [topics("a")])
    with pytest.raises(Permanent, match="never completed"):
        open_staged(tmp_path / "side")


def test_a_task_that_comes_late_does_not_bring_back_what_was_removed(tmp_path: Path) -> None:
    """Its check was ended, and its directory with secrets beside it is gone: it stays so."""
    with pytest.raises(FileNotFoundError):
        stage_part(tmp_path / "look-1" / "out" / "right", "part", [topics("a")])
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_the_manifest_does_not_name_is_not_read(tmp_path: Path) -> None:
    """Such as that of an attempt that was given up."""
    write_rows(tmp_path / "side", [topics("a")])
    stage_part(tmp_path / "side", "another-attempt", [topics("b")])
    source = StagedSource.open(tmp_path / "side")
    assert [
        rows.batch["topic"].to_pylist() for split in source.splits(1) for rows in source.read(split, frozenset(["topic"]))
    ] == [["a"]]


@pytest.mark.parametrize("damage", ["truncated", "changed", "missing", "manifest", "layout"])
def test_damage_is_refused(tmp_path: Path, damage: str) -> None:
    manifest = write_rows(tmp_path / "side", [topics("a", "b")])
    file, told = tmp_path / "side" / manifest.files[0].path, tmp_path / "side" / MANIFEST
    content = file.read_bytes()
    match damage:
        case "truncated":
            file.write_bytes(content[:-1])
        case "changed":
            file.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
        case "missing":
            file.unlink()
        case "manifest":
            told.write_text(told.read_text()[:-5])
        case "layout":
            told.write_text(told.read_text().replace(manifest.layout, "0" * 16))
    with pytest.raises(Permanent, match="capture"):
        open_staged(tmp_path / "side")


def test_a_secret_that_nobody_digested_is_refused_and_not_told(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="no keyed digest") as refused:
        write_rows(tmp_path / "side", [scram("ab" * 16), scram(SECRET)])
    assert SECRET not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    wrong = topics("a").batch.rename_columns(["name", "topic_id", "segment", "batch", "at"])
    with pytest.raises(Permanent, match="schema"):
        write_rows(tmp_path / "side", [Rows("topic", wrong)])
    lacking = pa.RecordBatch.from_pylist([{"topic": None, "segment": "", "batch": 1, "at": 1}], schema_of("topic"))
    with pytest.raises(Permanent, match="null in topic"):
        write_rows(tmp_path / "side", [Rows("topic", lacking)])


def test_files_hold_one_range_of_buckets_in_each_row_group(tmp_path: Path, in_small_pieces: None) -> None:
    manifest = write_rows(tmp_path / "side", rows_of(a_side(4)))
    with pq.ParquetFile(tmp_path / "side" / manifest.files[0].path) as parquet:
        spreads = [parquet.read_row_group(group)["bucket"].to_pylist() for group in range(parquet.num_row_groups)]
    assert len(spreads) > 1
    assert all(before[-1] < after[0] for before, after in pairwise(spreads))
