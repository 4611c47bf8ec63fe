"""How a change of replication factors may be tuned."""

from pydantic import ConfigDict, Field, StrictInt

from domain.policy import MigrationPolicy


class ReplicationFactorPolicy(MigrationPolicy):
    """Every field of `MigrationPolicy`, and how much begins at the same time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: StrictInt = Field(default=500, ge=1, le=1000, description="How many partitions one request begins to move at most.")
