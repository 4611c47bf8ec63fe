"""Where Kafka's copy ends in the quorum's log, and who made it.

The copy is one transaction (KIP-868) where the metadata.version knows them, and its last record is the state MIGRATION: see
`QuorumController.MigrationRecordConsumer`.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from domain.observed.observation import MigrationGauge
from domain.quorum_log.metadata_log import EndOfCopy
from domain.quorum_log.record_types import RecordType
from spark.codec.metadata_records import Frames, decoded, frames_of
from spark.codec.metadata_schema import TRANSACTION_MARKERS
from spark.codec.record_batch import pieces


def end_of_copy(directory: Path) -> EndOfCopy | None:
    """`None` where the segments that are left do not tell of one that is complete."""
    is_open = is_told = False
    for kind, state, end in _told(directory):
        if kind in TRANSACTION_MARKERS:
            is_open = kind == RecordType.BEGIN_TRANSACTION
            is_told &= kind == RecordType.END_TRANSACTION
        else:
            is_told = state == MigrationGauge.MIGRATION
        if is_told and not is_open:
            return end
    return None


def _told(directory: Path) -> Iterator[tuple[int, int | None, EndOfCopy]]:
    """Kind, migration state, and what the copy's end is if this record is its last one."""
    for segment in sorted(directory.glob("*.log")):
        for piece in pieces(segment):
            frames = frames_of(piece)
            found = np.flatnonzero(np.isin(frames.kinds, (RecordType.ZK_MIGRATION_STATE, *TRANSACTION_MARKERS)))
            for row, record in zip(found.tolist(), decoded(frames, found), strict=True):
                yield record.kind, record.values.get("zkMigrationState"), _end_at(frames, row)


def _end_at(frames: Frames, row: int) -> EndOfCopy:
    batches = frames.piece.batches
    batch = int(np.searchsorted(batches.positions, frames.batch[row]))
    return EndOfCopy(int(frames.offsets[row]) + 1, int(batches.headers["leader_epoch"][batch]))
