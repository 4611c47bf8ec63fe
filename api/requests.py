"""What comes in, besides `ClusterSpec`."""

from enum import StrEnum
from typing import Annotated
from uuid import UUID

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from domain.decisions import GateName
from domain.policy import MigrationPolicy
from domain.records import CommandKind, MigrationKind

ClusterName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
Reason = Annotated[
    str,
    # Databases cannot store the character NUL in text.
    Field(min_length=1, max_length=1000, pattern=r"^[^\x00]*$", description="For whoever reads it a year later."),
]

NamedCluster = Annotated[ClusterName, Path(alias="name")]
NamedMigration = Annotated[UUID, Path(alias="migration_id")]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many items.")]


class Incoming(BaseModel):
    """A misspelt field is an error, not a silent default."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MigrationRequest(Incoming):
    """`POST /migrations`."""

    cluster: ClusterName
    kind: MigrationKind
    policy: MigrationPolicy = MigrationPolicy()


class GateDecision(StrEnum):
    """What a person decides at a gate."""

    APPROVE = "approve"
    REJECT = "reject"

    @property
    def command(self) -> CommandKind:
        return CommandKind(self.value)


class ApprovalRequest(Incoming):
    """`POST /migrations/{id}/approvals`. `evidence_hash` is the open gate's: what the decision is bound to."""

    gate: GateName
    decision: GateDecision
    reason: Reason
    evidence_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class HoldRequest(Incoming):
    """`POST /migrations/{id}/hold` and `/resume`."""

    reason: Reason
