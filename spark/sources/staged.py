"""Staged rows as a source, and range by range for a comparison."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from domain.errors import Permanent
from spark.rows import journal_schema_of, schema_of
from spark.sources.source import Rows, Split
from spark.staging import MANIFEST, Manifest, StagedFile, layout, staged_schema_of

BATCH_ROWS = 100_000


def open_staged(directory: Path) -> Manifest:
    """The manifest, when every file is what it says. `Permanent` for what is not whole, damaged, or of another layout."""
    manifest = read_manifest(directory)
    if manifest.layout != layout():
        raise Permanent(f"rows in {directory} have layout {manifest.layout}, this version has {layout()}: capture them again")
    for file in manifest.files:
        _verify(directory, file)
    return manifest


def read_manifest(directory: Path) -> Manifest:
    try:
        return Manifest.model_validate_json((directory / MANIFEST).read_bytes())
    except FileNotFoundError as lacking:
        raise Permanent(
            f"{directory} has no {MANIFEST}: it is no directory of staged rows, or was never completed"
        ) from lacking
    except ValidationError as damaged:
        raise Permanent(
            f"{directory / MANIFEST} is damaged: {damaged.error_count()} errors; capture the rows again"
        ) from damaged


def _verify(directory: Path, file: StagedFile) -> None:
    try:
        with (directory / file.path).open("rb") as staged:
            sha256 = hashlib.file_digest(staged, "sha256").hexdigest()
    except FileNotFoundError as lacking:
        raise Permanent(f"{directory / file.path} is missing, and the manifest names it: capture the rows again") from lacking
    if sha256 != file.sha256:
        raise Permanent(f"{directory / file.path} has sha256 {sha256}, the manifest says {file.sha256}: capture the rows again")


@dataclass(frozen=True)
class StagedSource:
    """Rows that were written before, each file a split."""

    directory: Path
    manifest: Manifest = field(repr=False)

    @classmethod
    def open(cls, directory: Path) -> "StagedSource":
        return cls(directory, open_staged(directory))

    def splits(self, wanted: int) -> Sequence[Split]:
        return [Split(file.path, str(self.directory / file.path)) for file in self.manifest.files]

    def read(self, split: Split, kinds: frozenset[str]) -> Iterator[Rows]:
        file = next(file for file in self.manifest.files if file.path == split.name)
        if file.kind not in kinds:
            return
        names = (journal_schema_of if file.is_journal else schema_of)(file.kind).names
        with pq.ParquetFile(split.path) as parquet:
            for batch in parquet.iter_batches(BATCH_ROWS, columns=names):
                yield Rows(file.kind, batch, file.is_journal)

    def not_read(self) -> tuple[str, ...]:
        return self.manifest.not_read


@dataclass(frozen=True)
class StagedRange:
    """The rows of one kind whose buckets are in `[begin, end)`: their order is the same whichever columns are read."""

    directory: Path
    manifest: Manifest = field(repr=False)
    kind: str
    begin: int
    end: int
    is_journal: bool = False

    def columns(self, names: Sequence[str]) -> pa.Table:
        schema = staged_schema_of(self.kind, self.is_journal)
        parts = [schema.empty_table().select(names)]
        for file in self.manifest.files:
            if file.kind == self.kind and file.is_journal == self.is_journal:
                parts.extend(self._parts_of(file, names))
        return pa.concat_tables(parts)

    def whole(self) -> pa.Table:
        return self.columns(staged_schema_of(self.kind, self.is_journal).names)

    def _parts_of(self, file: StagedFile, names: Sequence[str]) -> Iterator[pa.Table]:
        with pq.ParquetFile(self.directory / file.path, memory_map=True) as parquet:
            leaf = parquet.schema.names.index("bucket")
            for group in range(parquet.num_row_groups):
                told = parquet.metadata.row_group(group).column(leaf).statistics
                if told.max < self.begin or told.min >= self.end:
                    continue
                yield self._within(parquet, group, names, (told.min, told.max))

    def _within(self, parquet: pq.ParquetFile, group: int, names: Sequence[str], spread: tuple[int, int]) -> pa.Table:
        if self.begin <= spread[0] and spread[1] < self.end:
            return parquet.read_row_group(group, columns=list(names)).select(names)
        table = parquet.read_row_group(group, columns=list({*names, "bucket"}))
        edges = np.searchsorted(table.column("bucket").to_numpy(), (self.begin, self.end))
        return table.slice(edges[0], edges[1] - edges[0]).select(names)
