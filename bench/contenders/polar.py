"""Polars on the staged Parquet: full join on the key, field by field."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_
from pathlib import Path

import polars as pl

from bench.contenders import Play
from bench.contenders.fields import compared
from bench.raw import KINDS
from domain.drift import records


@contextmanager
def full_join(inputs: Path, own: Path) -> Iterator[Play]:
    def play(out: Path) -> dict[str, int]:
        found = {"missing_left": 0, "missing_right": 0, "differs": 0}
        for kind in KINDS:
            for what, count in _told(inputs / "staged", kind).items():
                found[what] += count
        return found

    yield play


def _told(staged: Path, name: str) -> dict[str, int]:
    """All rows that differ, with both sides' values, are collected, then counted."""
    kind = records.KINDS[name]
    keys, values = [key.name for key in kind.keys], compared(kind)
    left, right = (pl.scan_parquet(staged / side / name / "*.parquet") for side in ("left", "right"))
    joined = left.join(right, on=keys, how="full", suffix="_right")
    no_left, no_right = pl.col(keys[0]).is_null(), pl.col(f"{keys[0]}_right").is_null()
    differs = [pl.col(value).ne_missing(pl.col(f"{value}_right")) for value in values]
    drift = joined.filter(reduce(or_, differs, no_left | no_right)).collect(engine="streaming")
    both = drift.filter(~no_left & ~no_right)
    counted = sum(both.select(one.sum()).item() for one in differs)
    return {
        "missing_left": drift.select(no_left.sum()).item(),
        "missing_right": drift.select(no_right.sum()).item(),
        "differs": counted,
    }
