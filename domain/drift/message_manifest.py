"""One look at clients' data, as it is kept for a later one, and the comparison of two."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from domain.drift.messages import BATCH, GROUP_OFFSET, PARTITION_LOG, REPLICA_LOG, Sight
from domain.drift.report import CheckName, DriftModel
from domain.drift.tolerations import Toleration


class NodeWalked(DriftModel):
    """What the walk on one broker's machine did. `method`: what computed checksums; counts are of batches.

    `knows_page_cache`: the walk could tell what the page cache had, and has forgotten what it read besides.
    """

    broker: int
    method: str
    verified: int
    not_verified: int
    damaged: int
    read_bytes: int
    knows_page_cache: bool
    seconds: float


class MessageManifest(DriftModel):
    """`batches`: artefacts, Parquet files of `domain.drift.messages.BATCH_ROWS`. `since`: the manifest whose offsets it looked
    at again. `not_read`: what should have been looked at, and did not answer.
    """

    cluster: str
    taken_at: datetime
    sight: Sight
    batches: tuple[str, ...] = ()
    walks: tuple[NodeWalked, ...] = ()
    since: str | None = None
    not_read: tuple[str, ...] = ()


@dataclass(frozen=True)
class MessageComparison:
    """Two looks. Batches are Parquet files, any number of them. `out`: a new, private directory.

    `not_read`: what should have been looked at, and did not answer.
    """

    id: str
    before: Sight
    after: Sight
    before_batches: tuple[Path, ...]
    after_batches: tuple[Path, ...]
    out: Path
    tolerated: tuple[Toleration, ...] = ()
    not_read: tuple[str, ...] = ()
    check: CheckName = CheckName.MESSAGES
    kinds: tuple[str, ...] = (PARTITION_LOG, REPLICA_LOG, BATCH, GROUP_OFFSET)
