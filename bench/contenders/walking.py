"""Segments read: as they are, and as record batches with every checksum computed."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from bench.contenders import Play
from spark.codec.record_batch import PIECE, pieces

Told = dict[str, int]


@contextmanager
def plain(inputs: Path, own: Path) -> Iterator[Play]:
    yield lambda _: _added(map(_read, _segments(inputs)))


@contextmanager
def walked(inputs: Path, own: Path) -> Iterator[Play]:
    yield lambda _: _added(map(walk, _segments(inputs)))


@contextmanager
def walked_by_two(inputs: Path, own: Path) -> Iterator[Play]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield lambda _: _added(pool.map(walk, _segments(inputs)))


def _segments(inputs: Path) -> list[Path]:
    return sorted(inputs.glob("*.log"))


def _read(path: Path) -> Told:
    held, size = bytearray(PIECE), 0
    with path.open("rb", buffering=0) as file:
        while read := file.readinto(held):
            size += read
    return {"bytes": size}


def walk(path: Path) -> Told:
    """Raises at the first checksum that is wrong."""
    found = {"bytes": 0, "batches": 0}
    for piece in pieces(path):
        found["bytes"] += len(piece.data)
        found["batches"] += len(piece.batches)
    return found


def _added(parts: Iterator[Told]) -> Told:
    total: Told = {}
    for part in parts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return total
