"""One look at clients' data, as it is kept: the artefact that a later look is compared with."""

from datetime import datetime

from domain.drift.messages import Sight
from domain.drift.report import DriftModel


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
