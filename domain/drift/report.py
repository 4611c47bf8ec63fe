"""Findings and reports: what an approver reads, and what an approval is bound to."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from domain.drift.records import Severity


class DriftModel(BaseModel):
    model_config = ConfigDict(frozen=True)


class FindingKind(StrEnum):
    """What was found of one row, or of one field of it."""

    MISSING_LEFT = "missing_left"
    MISSING_RIGHT = "missing_right"
    DIFFERS = "differs"
    TOLERATED = "tolerated"
    """Would be one of the above, and the policy tolerates it by name."""
    UNVERIFIABLE = "unverifiable"
    """One side cannot be read well enough to tell: never a pass of that row, never a drift."""


class Verdict(StrEnum):
    """What a whole check says. `INCONCLUSIVE`: no consistent cut could be had, or a part was not read."""

    CLEAN = "clean"
    DRIFT = "drift"
    INCONCLUSIVE = "inconclusive"


class CheckName(StrEnum):
    """What is compared with what."""

    METADATA = "metadata"
    """ZooKeeper as it is with KRaft as it is: the dual write."""
    BEFORE_COPY = "before-copy"
    """ZooKeeper's metadata right before the copy: kept, and compared with nothing yet."""
    COPY = "copy"
    """ZooKeeper before the copy with KRaft's image at the copy's offset: Kafka's own copy."""
    BASELINE = "baseline"
    """Clients' data before the first broker is rolled: kept, and compared with nothing yet."""
    MESSAGES = "messages"
    """Record batches and committed offsets, before and now."""
    END = "end"
    """What ZooKeeper had when KRaft stopped writing to it with KRaft's log from there to now: nothing was lost at the end."""
    TREE = "tree"
    """Two ZooKeeper trees, znode by znode."""


class DriftFinding(DriftModel):
    """One row of a report. Texts are shown to people, so a secret's are redacted.

    `key`: the row's key as text. `field`: empty where the whole row is missing. `left_at`, `right_at`: where it was read: a
    znode's path with its mzxid, or a segment with byte position of the batch and offset of the record.
    """

    record: str
    finding: FindingKind
    severity: Severity
    rule: str
    key: str
    field: str = ""
    left: str | None = None
    right: str | None = None
    left_at: str = ""
    right_at: str = ""
    is_redacted: bool = False
    tolerated_by: str = ""


class RecordCounts(DriftModel):
    """Rows of one kind on both sides, and what came out. `equal` counts rows, the others findings."""

    left: int = 0
    right: int = 0
    equal: int = 0
    missing_left: int = 0
    missing_right: int = 0
    differs: int = 0
    tolerated: int = 0
    unverifiable: int = 0


class CheckResult(DriftModel):
    """What an engine found. `findings`: a Parquet file of all findings, sorted, below the comparison's `out`, or `None` if
    nothing was compared; `first`: the gravest. `tolerated`: the tolerations that were used, as `comparison.names_of` names
    them. `engine`: which one has compared. `content_hash`: as in `DriftReport`.
    """

    verdict: Verdict
    counts: dict[str, RecordCounts] = Field(default_factory=dict)
    first: tuple[DriftFinding, ...] = ()
    finding_count: int = 0
    not_read: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    findings: Path | None = None
    rules_fingerprint: str
    content_hash: str
    engine: str = ""
    seconds: dict[str, float] = Field(default_factory=dict)


class Cut(DriftModel):
    """Between which points the two sides were read.

    `migration_offset`: in `/migration`, after a sync, before the scan. `high_watermark`: the quorum's, after the scan.
    `claim`: the claim of `/controller` that began this dual write: a report counts for this one only.
    """

    migration_offset: int = -1
    high_watermark: int = -1
    claim: str = ""
    looks: int = 1


class DriftReport(DriftModel):
    """The summary of one check. The rows are the artefact `findings` (Parquet), with `first` of them here.

    `content_hash` covers what is material: check, verdict, counts by finding without rows' numbers, every finding that is
    not tolerated, the rules' fingerprint, what was not read. So two clean reports of the same rules have the same.
    `baseline`: the artefact that a later look is compared with: clients' data (`MessageManifest`), or rows of ZooKeeper.
    """

    id: str
    cluster: str
    migration_id: str | None = None
    check: CheckName
    verdict: Verdict
    started_at: datetime
    ended_at: datetime
    cut: Cut = Cut()
    counts: dict[str, RecordCounts] = Field(default_factory=dict)
    first: tuple[DriftFinding, ...] = ()
    not_read: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    rules_fingerprint: str
    content_hash: str
    findings: str | None = None
    manifest: str | None = None
    baseline: str | None = None
    engine: str = ""
    seconds: dict[str, float] = Field(default_factory=dict)
