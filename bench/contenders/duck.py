"""DuckDB on the staged Parquet: who has which key, and what differs. Two plans: field by field, or by our row hash."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from bench.contenders import Play
from bench.contenders.fields import compared
from bench.raw import KINDS
from domain.drift import records
from domain.drift.records import RowKind

THREADS = 2


@contextmanager
def full_join(inputs: Path, own: Path) -> Iterator[Play]:
    yield _play(inputs, own, lambda kind: ([key.name for key in kind.keys], compared(kind)))


@contextmanager
def row_hash_join(inputs: Path, own: Path) -> Iterator[Play]:
    """What the reference measurements called DuckDB: it trusts hashes that we have computed, and names no field."""
    yield _play(inputs, own, lambda _: (["key_hash"], ["row_hash"]))


def _play(inputs: Path, own: Path, columns: Callable[[RowKind], tuple[Sequence[str], Sequence[str]]]) -> Play:
    connection = duckdb.connect(config={"threads": THREADS, "temp_directory": str(own)})

    def play(out: Path) -> dict[str, int]:
        found = {"missing_left": 0, "missing_right": 0, "differs": 0}
        for name in KINDS:
            drift = connection.sql(_query(inputs / "staged", name, *columns(records.KINDS[name]))).to_arrow_table()
            for what in found:
                found[what] += _count(drift, what)
        return found

    return play


def _query(staged: Path, kind: str, keys: Sequence[str], values: Sequence[str]) -> str:
    """All rows that differ, with both sides' values."""
    sides = [f"read_parquet('{staged / side / kind}/*.parquet')" for side in ("left", "right")]
    same_key = " and ".join(f"l.{key} = r.{key}" for key in keys)
    differs = [f"l.{value} is distinct from r.{value}" for value in values]
    return f"""
        select l.{keys[0]} is null as missing_left, r.{keys[0]} is null as missing_right,
            {" + ".join(f"({one})::int" for one in differs)} as fields, l.* exclude (bucket), r.* exclude (bucket)
        from {sides[0]} l full join {sides[1]} r on {same_key}
        where l.{keys[0]} is null or r.{keys[0]} is null or {" or ".join(differs)}
    """  # noqa: S608 - names of our own declaration


def _count(drift: pa.Table, what: str) -> int:
    is_missing = pc.or_(drift.column("missing_left"), drift.column("missing_right"))
    if what == "differs":
        return pc.sum(drift.filter(pc.invert(is_missing)).column("fields"), min_count=0).as_py() or 0
    return pc.sum(drift.column(what), min_count=0).as_py() or 0
