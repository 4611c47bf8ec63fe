"""Segments of user data: batches of 16 KB that do not compress, each with its checksum."""

import struct
from pathlib import Path

import numpy as np

from playground.metadata_files import batch, record

FILES = 4
BATCH_BYTES = 16 * 1024
CONTENTS = 64
"""So many batches differ; a batch's first offset is no part of its checksum."""
RECORDS = 16


def batches_of(mebibytes: int) -> int:
    """Of all files together."""
    return FILES * (mebibytes * 2**20 // FILES // BATCH_BYTES)


def write_segments(folder: Path, mebibytes: int) -> None:
    contents = [_content(number) for number in range(CONTENTS)]
    folder.mkdir(parents=True, exist_ok=True)
    count = batches_of(mebibytes) // FILES
    for number in range(FILES):
        with (folder / f"{number * count * RECORDS:020}.log").open("wb") as file:
            for at in range(number * count, (number + 1) * count):
                file.write(struct.pack(">q", at * RECORDS) + contents[at % CONTENTS][8:])


def truth(folder: Path, mebibytes: int) -> dict[str, int]:
    return {"batches": batches_of(mebibytes), "bytes": sum(path.stat().st_size for path in folder.glob("*.log"))}


def _content(number: int) -> bytes:
    octets = np.random.default_rng(number).bytes(BATCH_BYTES // RECORDS - 16)
    return batch(0, RECORDS, b"".join(record(delta, None, octets) for delta in range(RECORDS)))
