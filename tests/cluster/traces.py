"""Looks for texts in all that our programs and Temporal have written: raw, in Parquet, and in archives."""

import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq

PARQUET, ARCHIVE = b"PAR1", b"PK\x03\x04"


def traces_of(texts: Mapping[str, bytes], directories: Iterable[Path]) -> set[tuple[str, str]]:
    """Which text is in which file, by their names."""
    files = [path for directory in directories for path in directory.rglob("*") if path.is_file()]
    return {
        (name, str(path))
        for path in files
        for content in contents_of(what_is_in(path))
        for name, text in texts.items()
        if text in content
    }


def what_is_in(path: Path) -> bytes:
    """Empty where it is gone by now: a database's journal comes and goes while the programs run."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def contents_of(data: bytes) -> Iterator[bytes]:
    """The file, and what is packed in it."""
    yield data
    if data.startswith(ARCHIVE):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield from contents_of(archive.read(name))
    elif data.startswith(PARQUET) and data.endswith(PARQUET):
        table = pq.read_table(io.BytesIO(data))
        yield "\n".join(str(row) for row in table.to_pylist()).encode()
