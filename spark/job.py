"""One check as data: what `spark-submit` takes as JSON, what the activity sends, and what comes back."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from domain.drift.records import COMPARED_KINDS
from domain.drift.report import CheckName
from domain.drift.tolerations import Toleration


class JobModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KraftFiles(JobModel):
    """A copy of `__cluster_metadata-0`: checkpoints and segments.

    `end`: the high watermark, exclusive; nothing at or beyond it is read. `cut`: the image is the one before this offset, and
    the changes from there to `end` are the journal; without it the image is the one at `end`.
    """

    kind: Literal["kraft-files"] = "kraft-files"
    directory: Path
    end: int | None = None
    cut: int | None = None


class ZooKeeperSnapshot(JobModel):
    """A snapshot file of an ensemble's member. Its own digest is checked."""

    kind: Literal["zookeeper-snapshot"] = "zookeeper-snapshot"
    path: Path
    chroot: str = ""


class StagedRows(JobModel):
    """Rows that were written before: a baseline, or a capture of a live tree. Named files only, with their sha256."""

    kind: Literal["staged-rows"] = "staged-rows"
    directory: Path


SourceSpec = Annotated[KraftFiles | ZooKeeperSnapshot | StagedRows, Field(discriminator="kind")]

SecretRef = Annotated[str, Field(pattern=r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$")]


class CheckJob(JobModel):
    """Compare two sides. `out` is a new, empty directory. Secrets come by reference, on every machine that reads."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,80}$")]
    check: CheckName = CheckName.METADATA
    left: SourceSpec
    right: SourceSpec
    kinds: tuple[str, ...] = COMPARED_KINDS
    out: Path
    digest_key: SecretRef
    encoder_secret: SecretRef | None = None
    tolerated: tuple[Toleration, ...] = ()
    is_before_dual_write: bool = False
    """Compares the copy itself: KRaft's next producer id is then the end of ZooKeeper's block, and a partition without a state
    is what the copy makes of it."""
    is_left_older: bool = False
    """The left side was read a while before the copy. What only the right one has was made meanwhile: that is for information.
    What changes by itself counts where the row is known to be of that time only."""
    tasks: Annotated[int, Field(ge=1, le=4096)] = 2
