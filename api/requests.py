"""What comes in, besides `ClusterSpec`."""

from enum import StrEnum
from typing import Annotated, Literal, Self
from uuid import UUID

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator

from domain.checks.acceptance import why_not_acceptable
from domain.decisions import Label
from domain.drift.report import CheckName
from domain.policy import MigrationPolicy, why_not_to_be_met
from domain.records import CommandKind, MigrationKind
from domain.zk_to_kraft.checks.catalogue import FINDING_CODES

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


def _refuse_what_nobody_may_accept(policy: MigrationPolicy) -> MigrationPolicy:
    whys = filter(
        None, dict.fromkeys(why_not_acceptable(accepted.code, FINDING_CODES) for accepted in policy.accepted_findings)
    )
    if text := " ".join(whys):
        raise ValueError(text)
    return policy


def _refuse_what_cannot_be_met(policy: MigrationPolicy) -> MigrationPolicy:
    if why := why_not_to_be_met(policy):
        raise ValueError(why)
    return policy


AskedPolicy = Annotated[
    MigrationPolicy, AfterValidator(_refuse_what_nobody_may_accept), AfterValidator(_refuse_what_cannot_be_met)
]


class PlanOrder(Incoming):
    """`POST /plans`. `rehearse`: make Kafka's copy beforehand, for real and away from the cluster (`docs/plans.md`)."""

    cluster: ClusterName
    kind: MigrationKind
    policy: AskedPolicy = MigrationPolicy()
    rehearse: StrictBool = False


class MigrationRequest(Incoming):
    """`POST /migrations`. `hold`: it starts held, looks, and touches nothing before it is resumed or led back.

    `plan_id`: starts only as long as the cluster is what this plan rests on, and with the plan's policy.
    """

    cluster: ClusterName
    kind: MigrationKind
    policy: AskedPolicy = MigrationPolicy()
    hold: StrictBool = False
    plan_id: UUID | None = None

    @model_validator(mode="after")
    def _take_the_plans_policy(self) -> Self:
        if self.plan_id is not None and "policy" in self.model_fields_set:
            raise ValueError("A plan has its policy: leave policy out, or make a plan with the policy that you want")
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
