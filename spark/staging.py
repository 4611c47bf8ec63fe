"""Rows on disk: Parquet for each kind, sorted by the hash of the key, and a manifest that names every file by its sha256.

    <directory>/<kind>/<name>.parquet            rows
    <directory>/<kind>.journal/<name>.parquet    versions of a journal
    <directory>/manifest.json                    written last: without it nothing here is ever read

Three columns are added: `bucket`, `key_hash`, `row_hash`. Each row group is one range of buckets, so that both sides of a
comparison are read range by range and meet without being shuffled. A directory as a whole, and each file, is written under
another name first; what a crash leaves behind has no manifest, or not the manifest's sha256.
"""

import hashlib
import io
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field

from domain.drift.digests import DIGEST_BYTES
from domain.drift.records import KINDS, RowKind, Rule
from domain.errors import Permanent
from spark.digest import BUCKETS, HASH_VERSION, Words, buckets_of, key_hashes, row_hashes
from spark.rows import journal_schema_of, schema_of
from spark.sources.source import Rows

MANIFEST = "manifest.json"
ADDED = (
    pa.field("bucket", pa.int32(), nullable=False),
    pa.field("key_hash", pa.int64(), nullable=False),
    pa.field("row_hash", pa.int64(), nullable=False),
)
ROWS_PER_FILE = 1_000_000
"""More are another file: what a writer holds in memory is bounded, however large a split."""
ROWS_PER_GROUP = 65_536
_REDACTED = f"^([0-9a-f]{{{2 * DIGEST_BYTES}}})?$"


class StagedModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StagedFile(StagedModel):
    """`path`: relative to the directory."""

    path: str
    kind: str
    is_journal: bool
    rows: int
    sha256: str


class Manifest(StagedModel):
    """`layout`: of which declarations and hashes the rows are made. `about`: what the writer wants to be known of them."""

    layout: str
    files: tuple[StagedFile, ...]
    not_read: tuple[str, ...] = ()
    about: Mapping[str, str] = Field(default_factory=dict)

    def rows_of(self, kind: str) -> int:
        return sum(file.rows for file in self.files if file.kind == kind and not file.is_journal)


@cache
def layout() -> str:
    """Rows of another layout are not compared: their hashes or columns mean something else."""
    told = [f"{HASH_VERSION} {BUCKETS}"]
    for name, kind in KINDS.items():
        compared = [field.name for field in kind.values if field.rule is not Rule.NOT_COMPARED]
        told.append(f"{name} {[field.name for field in kind.keys]} {compared} {journal_schema_of(name)}")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def staged_schema_of(kind: str, is_journal: bool) -> pa.Schema:
    own = journal_schema_of(kind) if is_journal else schema_of(kind)
    return pa.schema([*own, *ADDED])


def write_rows(
    directory: Path, rows: Iterable[Rows], not_read: Sequence[str] = (), about: Mapping[str, str] | None = None
) -> Manifest:
    """A whole directory of rows, by one process: it appears under its name when it is complete, or not at all."""
    if directory.exists():
        raise Permanent(f"{directory} exists already: staged rows are written once, into a directory of their own")
    directory.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        manifest = publish(unfinished, stage_part(unfinished, "rows", rows), not_read, about)
        unfinished.rename(directory)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return manifest


def publish(
    directory: Path, files: Iterable[StagedFile], not_read: Sequence[str] = (), about: Mapping[str, str] | None = None
) -> Manifest:
    """Make what tasks have written readable. Files that are not named here stay unread, such as a dead attempt's."""
    named = tuple(sorted(files, key=lambda file: file.path))
    manifest = Manifest(layout=layout(), files=named, not_read=tuple(not_read), about=about or {})
    unfinished = directory / f".{MANIFEST}.unfinished"
    unfinished.write_text(manifest.model_dump_json(indent=1))
    unfinished.replace(directory / MANIFEST)
    return manifest


def packed(directory: Path) -> bytes:
    """A directory of rows as one file, an archive. Its rows are compressed already."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            file.write(path, path.relative_to(directory))
    return archive.getvalue()


def unpack(archive: bytes, directory: Path) -> None:
    """Into the new `directory`. Whoever opens it verifies what is there."""
    directory.mkdir(mode=0o700)
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as file:
            file.extractall(directory)
    except zipfile.BadZipFile as damaged:
        raise Permanent(f"kept rows are no archive that can be read: {damaged}") from damaged


def stage_part(directory: Path, name: str, rows: Iterable[Rows]) -> tuple[StagedFile, ...]:
    """What one task read, into a directory that is there. `name` is its own, of this attempt too: nobody else may write it."""
    waiting: dict[tuple[str, bool], list[pa.RecordBatch]] = {}
    files: list[StagedFile] = []
    for part in rows:
        held = waiting.setdefault((part.kind, part.is_journal), [])
        held.append(_checked(part))
        if sum(batch.num_rows for batch in held) >= ROWS_PER_FILE:
            files.append(_write_file(directory, f"{name}-{len(files)}", part.kind, part.is_journal, held))
            held.clear()
    for (kind, is_journal), held in waiting.items():
        if held:
            files.append(_write_file(directory, f"{name}-{len(files)}", kind, is_journal, held))
    return tuple(files)


def _checked(rows: Rows) -> pa.RecordBatch:
    """Only what the declaration says, and no secret where a digest belongs: a reader's error ends here, loudly."""
    kind = KINDS[rows.kind]
    schema = journal_schema_of(rows.kind) if rows.is_journal else schema_of(rows.kind)
    if not rows.batch.schema.equals(schema):
        raise Permanent(f"rows of {rows.kind} have the schema {rows.batch.schema}, expected {schema}: their reader is wrong")
    for field in schema:
        if not field.nullable and rows.batch.column(field.name).null_count:
            raise Permanent(f"rows of {rows.kind} have a null in {field.name}, which every row has: their reader is wrong")
    _refuse_secrets(kind, rows.batch)
    return rows.batch


def _refuse_secrets(kind: RowKind, batch: pa.RecordBatch) -> None:
    for field in kind.values:
        if field.rule is Rule.DIGEST:
            is_digest = pc.match_substring_regex(batch.column(field.name), _REDACTED)
            if pc.all(is_digest, min_count=0).as_py() is False:
                raise Permanent(f"rows of {kind.name} have in {field.name} what is no keyed digest: nothing was written")


def _write_file(directory: Path, name: str, kind: str, is_journal: bool, batches: Sequence[pa.RecordBatch]) -> StagedFile:
    relative = f"{kind}{'.journal' if is_journal else ''}/{name}.parquet"
    path = directory / relative
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    table, keys = _with_hashes(KINDS[kind], pa.Table.from_batches(batches))
    _write_parquet(unfinished, table, keys)
    with unfinished.open("rb") as written:
        sha256 = hashlib.file_digest(written, "sha256").hexdigest()
    unfinished.replace(path)
    return StagedFile(path=relative, kind=kind, is_journal=is_journal, rows=table.num_rows, sha256=sha256)


def _with_hashes(kind: RowKind, table: pa.Table) -> tuple[pa.Table, Words]:
    """Sorted by the key's hash, and so by bucket."""
    keys = key_hashes(kind, table)
    order = np.argsort(keys)
    rows = row_hashes(kind, table, keys)[order]
    keys = keys[order]
    added = (pa.array(buckets_of(keys)), pa.array(keys.view(np.int64)), pa.array(rows.view(np.int64)))
    table = table.take(pa.array(order))
    for field, column in zip(ADDED, added, strict=True):
        table = table.append_column(field, column)
    return table, keys


def _write_parquet(path: Path, table: pa.Table, keys: Words) -> None:
    """Hashes are stored as they are: they neither compress nor repeat. Of all statistics only those of buckets are read."""
    hashes = ("key_hash", "row_hash")
    codecs = {name: "none" if name in hashes else "lz4" for name in _leaves(table.schema)}
    worded = [name for name in _leaves(table.schema) if name not in hashes]
    told = ["bucket"]
    with pq.ParquetWriter(path, table.schema, compression=codecs, use_dictionary=worded, write_statistics=told) as writer:
        for group in _groups(table, keys):
            writer.write_table(group, row_group_size=max(1, group.num_rows))


def _leaves(schema: pa.Schema) -> list[str]:
    """The names that Parquet has for columns: a list's numbers are one level down."""
    return [f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name for field in schema]


def _groups(table: pa.Table, keys: Words) -> Iterator[pa.Table]:
    """One for each range of buckets. The number of ranges is a power of two, so that ranges of two files nest."""
    ranges = 1
    while ranges * ROWS_PER_GROUP < table.num_rows and ranges < BUCKETS:
        ranges *= 2
    edges = np.searchsorted(buckets_of(keys), np.arange(ranges + 1) * (BUCKETS // ranges))
    for begin, end in pairwise(edges):
        if end > begin:
            yield table.slice(begin, end - begin)
