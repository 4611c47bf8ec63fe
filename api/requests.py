"""What comes in, besides `ClusterSpec`. What depends on the kind of migration is read as `by_kind` says."""

from enum import StrEnum
from typing import Annotated, Literal, Self
from uuid import UUID

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator

from domain.decisions import Label
from domain.drift.report import CheckName
from domain.of_kind import Wanted
from domain.policy import MigrationPolicy
from domain.records import CommandKind

ClusterName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
Reason = Annotated[
    str,
    # Databases cannot store the character NUL in text.
    Field(min_length=1, max_length=1000, pattern=r"^[^\x00]*$", description="For the auditor who reads it a year later."),
]

ReportId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,80}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
LossName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,99}$")]

NamedCluster = Annotated[ClusterName, Path(alias="name")]
NamedMigration = Annotated[UUID, Path(alias="migration_id")]
NamedReport = Annotated[ReportId, Path(alias="report_id")]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many items.")]


class Incoming(BaseModel):
    """A misspelt field is an error, not a silent default."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PlanOrder(Incoming):
    """`POST /plans`. `wanted`: what the migration leads to. `rehearse`: make Kafka's copy beforehand, for real and away from
    the cluster (`docs/plans.md`).
    """

    cluster: ClusterName
    kind: str
    policy: MigrationPolicy = MigrationPolicy()
    wanted: Wanted
    rehearse: StrictBool = False


class MigrationRequest(Incoming):
    """`POST /migrations`. `hold`: it starts held, looks, and touches nothing before it is resumed or led back.

    `wanted`: what it leads to. `plan_id`: starts only as long as the cluster is what this plan rests on. It has a policy and
    what is wanted: then neither is given here.
    """

    cluster: ClusterName
    kind: str
    policy: MigrationPolicy = MigrationPolicy()
    wanted: Wanted | None = None
    hold: StrictBool = False
    plan_id: UUID | None = None

    @model_validator(mode="after")
    def _take_what_the_plan_has(self) -> Self:
        if self.plan_id is None and self.wanted is None:
            raise ValueError("wanted is missing: say what the migration leads to, or name a plan, which says so")
        given = [name for name in ("policy", "wanted") if name in self.model_fields_set] if self.plan_id is not None else []
        if given:
            name = " and ".join(given)
            raise ValueError(f"A plan has its {name}: leave {name} out, or make a plan with the {name} that you want")
        return self


class GateDecision(StrEnum):
    """What a person decides at a gate."""

    APPROVE = "approve"
    REJECT = "reject"

    @property
    def command(self) -> CommandKind:
        return CommandKind(self.value)


class ApprovalRequest(Incoming):
    """`POST /migrations/{id}/approvals`. `evidence_hash` is the open gate's: what the decision is bound to. `break_glass`: an
    admin takes four eyes on themselves, alone and also for their own request; the audit says so for good."""

    gate: Label
    decision: GateDecision
    reason: Reason
    evidence_hash: Sha256
    break_glass: StrictBool = False

    @model_validator(mode="after")
    def _break_no_glass_to_reject(self) -> Self:
        if self.break_glass and self.decision is GateDecision.REJECT:
            raise ValueError("Breaking glass is not needed to reject: leave break_glass out")
        return self


class RollbackRequest(Incoming):
    """`POST /migrations/{id}/rollback`: bound to a preview by its hash, or with the losses that are accepted, by name: an empty
    list where nothing would be lost."""

    reason: Reason
    preview_hash: Sha256 | None = None
    accept_loss: Annotated[list[LossName], Field(max_length=500, description="As the preview names them.")] = []

    @model_validator(mode="after")
    def _say_what_is_given_up(self) -> Self:
        if self.preview_hash is None and "accept_loss" not in self.model_fields_set:
            raise ValueError(
                "Read GET /migrations/{id}/rollback-preview. Then send its preview_hash, or the names of the losses that "
                "you accept in accept_loss ([] if nothing would be lost)"
            )
        return self


def _refuse_what_no_worker_makes(check: object) -> object:
    if check in list(CheckName) and check != CheckName.METADATA:
        raise ValueError(f"No worker makes this check: only {CheckName.METADATA} can be asked for")
    return check


class CheckOrder(Incoming):
    """`POST /clusters/{name}/checks`. Only what keeperless-checks compares: it refuses every other check."""

    check: Annotated[Literal[CheckName.METADATA], BeforeValidator(_refuse_what_no_worker_makes)] = CheckName.METADATA


class HoldRequest(Incoming):
    """`POST /migrations/{id}/hold`."""

    reason: Reason


class ResumeRequest(Incoming):
    """`POST /migrations/{id}/resume`. `begin`: the gate whose armed approval it may begin; without one it begins none."""

    reason: Reason
    begin: Label | None = None
