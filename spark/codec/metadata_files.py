"""Which files of a `__cluster_metadata-0` directory say what the image was before an offset, and what came after it.

A checkpoint `<end>-<epoch>.checkpoint` stands for all records before offset `<end>`. It counts only with raft's footer as its
last record: Kafka renames it when it is whole, but a copy of the directory may have been cut (KRaft's `SnapshotFooterRecord`).
"""

import re
import struct
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from domain.errors import Permanent, Transient
from domain.quorum_log.record_types import RecordType
from spark.codec.metadata_records import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, Malformed, control_types, read_varint
from spark.codec.record_batch import HEADER_BYTES, Batches, damaged, headers_of, pieces

_CHECKPOINT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_SEGMENT = re.compile(r"(\d{20})\.log")
_FIRST_RECORD = 64
"""Bytes that hold the beginning of a batch's first record, up to its kind."""
TOPICS = frozenset({int(RecordType.TOPIC), int(RecordType.PARTITION)})


@dataclass(frozen=True)
class LogFiles:
    """`checkpoint`: stands for what is before `begin`; none where the log has its beginning. `segments`: the log from there."""

    checkpoint: Path | None
    begin: int
    segments: tuple[Path, ...]


def files_before(directory: Path, cut: int | None) -> LogFiles:
    """The newest whole checkpoint that ends at `cut` or before it, and the segments after it.

    Raises `Permanent` where the log that is needed is not there any more, `Transient` where there is nothing to read yet.
    """
    names = sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []
    segments = [(int(found[1]), directory / name) for name in names if (found := _SEGMENT.fullmatch(name))]
    checkpoints = [(int(found[1]), directory / name) for name in names if (found := _CHECKPOINT.fullmatch(name))]
    usable = [(end, path) for end, path in reversed(checkpoints) if cut is None or end <= cut]
    begin, checkpoint = next(((end, path) for end, path in usable if is_whole(path)), (0, None))
    if not segments and checkpoint is None:
        raise Transient(f"{directory} has neither a segment nor a whole checkpoint of the quorum's log: copy it again")
    following = [first for first, _ in segments[1:]]
    needed = [path for (_, path), after in zip_longest(segments, following) if after is None or after > begin]
    if segments and segments[-len(needed)][0] > begin:
        raise Permanent(
            f"{directory}: the log begins after offset {begin}, which the newest whole checkpoint up to offset {cut} ends at: "
            "what is between them has been deleted. Compare at a later offset"
        )
    return LogFiles(checkpoint, begin, tuple(needed))


def is_whole(checkpoint: Path) -> bool:
    """Whether its last batch ends the file, and holds the footer. Checksums are verified when its records are read."""
    batches, end = headers_of(checkpoint)
    if not len(batches) or end != checkpoint.stat().st_size or not batches.is_control[[0, -1]].all():
        return False
    return _control(checkpoint, batches, 0)[:1] == [SNAPSHOT_HEADER] and _control(checkpoint, batches, -1)[-1:] == [
        SNAPSHOT_FOOTER
    ]


def _control(path: Path, batches: Batches, index: int) -> list[int]:
    begin = int(batches.positions[index])
    (piece,) = pieces(path, begin, begin + int(batches.sizes[index]))
    return control_types(piece)


def refuse_gaps(batches: Batches, reached: int) -> None:
    """The quorum's log is never compacted: a batch begins where the one before it has ended, the first at `reached`."""
    expected = np.concatenate([[reached], batches.last_offsets[:-1] + 1])
    is_gap = batches.base_offsets > expected
    if is_gap.any():
        first = int(np.argmax(is_gap))
        raise damaged(batches, first, f"comes right after offset {int(expected[first]) - 1}, so something is missing")


@dataclass(frozen=True)
class Bulk:
    """A checkpoint's batches: `pure` ones have topics and partitions only, and may be millions of records. By byte ranges."""

    pure: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, int], ...]


def bulk_of(checkpoint: Path) -> Bulk:
    """Told from the first records of neighbours: a checkpoint is written kind by kind (MetadataImage.write). Only a guess:

    whoever reads a `pure` batch has to refuse it when there is something else in it.
    """
    batches, _ = headers_of(checkpoint)
    refuse_gaps(batches, 0)
    kinds = [_first_kind(checkpoint, batches, index) for index in range(len(batches))]
    is_pure = [a in TOPICS and b in TOPICS for a, b in zip(kinds, [*kinds[1:], None], strict=True)]
    spans = list(zip(batches.positions.tolist(), (batches.positions + batches.sizes).tolist(), strict=True))
    pure = tuple(span for span, pure in zip(spans, is_pure, strict=True) if pure)
    return Bulk(pure, tuple(span for span, pure in zip(spans, is_pure, strict=True) if not pure))


def _first_kind(path: Path, batches: Batches, index: int) -> int | None:
    """The kind of a batch's first record; none for control batches and empty ones."""
    if batches.is_control[index] or not batches.headers["count"][index]:
        return None
    with path.open("rb") as file:
        file.seek(int(batches.positions[index]) + HEADER_BYTES)
        return _kind(file.read(_FIRST_RECORD), path, int(batches.positions[index]))


def _kind(data: bytes, path: Path, position: int) -> int:
    try:
        _, at = read_varint(data, 0)
        at += 1
        for _ in range(5):
            _, at = read_varint(data, at)
        return read_varint(data, at)[0]
    except (IndexError, Malformed, struct.error) as error:
        raise Permanent(f"{path.name}: the first record of the batch at byte {position} cannot be read: {error}") from error


def grouped(spans: tuple[tuple[int, int], ...], wanted: int) -> list[tuple[int, int]]:
    """Neighbouring spans put together to about `wanted` of similar size, none across a gap."""
    if not spans:
        return []
    begins = np.array([begin for begin, _ in spans])
    ends = np.array([end for _, end in spans])
    share = max(1, -(-int((ends - begins).sum()) // max(1, wanted)))
    groups: list[tuple[int, int]] = []
    for begin, end in spans:
        if groups and groups[-1][1] == begin and groups[-1][1] - groups[-1][0] < share:
            groups[-1] = (groups[-1][0], end)
        else:
            groups.append((begin, end))
    return groups
