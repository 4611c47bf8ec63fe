"""What a rehearsal may take, and what it has shown: data, read by plans, pages and the worker that makes it."""

from collections.abc import Mapping
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from domain.decisions import Finding
from domain.drift.report import DriftFinding, RecordCounts, Verdict


class RehearsalModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RehearsalLimits(RehearsalModel):
    """What a rehearsal may take. It runs on the machine of the activity worker."""

    deadline: timedelta = Field(
        default=timedelta(hours=1),
        gt=timedelta(0),
        description="Limit for all of it: no round begins that could exceed it, and what is not over then is cut off.",
    )
    round_deadline: timedelta = Field(
        default=timedelta(minutes=5), gt=timedelta(0), description="One copy, from the start of its servers."
    )
    stuck_after: timedelta = Field(
        default=timedelta(seconds=4),
        gt=timedelta(0),
        description="Limit without any progress, while the controller logs what it waits for, or fails at: it would do so "
        "for ever.",
    )
    max_rounds: int = Field(default=16, ge=1, description="How many copies are made to find out what stops them.")
    controller_heap_mib: int = Field(
        default=1024, ge=128, description="Heap of the throw-away controller: generous, since it is measured."
    )
    zookeeper_heap_mib: int = Field(default=512, ge=64)
    kafka_home: str | None = Field(
        default=None,
        description="Where the worker's machine has the cluster's Kafka; the first controller's kafka_home without it.",
    )
    java_home: str | None = Field(default=None, description="The same of Java; the first controller's JAVA_HOME without it.")


class Usage(RehearsalModel):
    """What the controller needed, in MiB: `heap` after collections, at its highest, and resident memory. `None`: not seen."""

    heap_mib: float | None = None
    rss_mib: float | None = None
    heap_given_mib: int = 0
    was_out_of_memory: bool = False


class Equality(RehearsalModel):
    """What the comparison of the copied tree with the throw-away quorum's log says."""

    verdict: Verdict
    counts: Mapping[str, RecordCounts] = Field(default_factory=dict)
    differences: tuple[DriftFinding, ...] = ()
    not_read: tuple[str, ...] = ()


class RehearsalReport(RehearsalModel):
    """`refused`: why nothing ran; empty where it did. `has_passed`: a copy of the cluster as it is. `has_passed_in_part`: a
    copy could only pass without the znodes `left_out`; all that follows is of that one then.

    `records`: by Kafka's own names of kinds. `copy_seconds`: the copy alone, by Kafka's own clock.
    `seconds_without_controller`: how long the real cluster would be without a ZooKeeper controller: from the claim to dual
    write. Both, and `equality`, are `None` where no copy has passed. `seconds`: what the rehearsal has taken, by part.
    """

    refused: str = ""
    has_passed: bool = False
    has_passed_in_part: bool = False
    left_out: tuple[str, ...] = ()
    rounds: int = 0
    records: Mapping[str, int] = Field(default_factory=dict)
    copy_seconds: float | None = None
    seconds_without_controller: float | None = None
    controller: Usage = Usage()
    advice: str = ""
    findings: tuple[Finding, ...] = ()
    equality: Equality | None = None
    copied_from: str = ""
    copied_bytes: int = 0
    seconds: Mapping[str, float] = Field(default_factory=dict)

    @property
    def ran(self) -> bool:
        return not self.refused
