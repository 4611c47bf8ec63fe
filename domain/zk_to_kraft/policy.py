"""What people may tune about a migration from ZooKeeper to KRaft, besides what every kind has."""

from datetime import timedelta

from pydantic import ConfigDict, Field, StrictBool, StrictInt

from domain.policy import STEP_MARGIN, Duration, MigrationPolicy

FLUSHES = 3
"""How often the revert window starts the controllers again, so that they write what ZooKeeper lacks."""


class ZkToKraftPolicy(MigrationPolicy):
    """A misspelt field is an error, not a silent default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_soak: Duration = Field(
        default=timedelta(0),
        ge=timedelta(0),
        description="How long all brokers must have run in KRaft mode, in dual write, before finalize can be approved. "
        "The upstream guide mentions weeks; zero leaves the moment to the approver.",
    )
    max_offset_distance: StrictInt = Field(
        default=16,
        ge=2,
        description="How far the offset in `/migration` may be behind the quorum's log for dual write to count as current. "
        "An idle quorum writes two records a second.",
    )
    cure_dual_write: StrictBool = Field(
        default=False,
        description="Whether dual write that has died without an error is repaired without asking, by a failover of the "
        "active controller. Otherwise the gate `fail-over` asks a person. Never done if the failover would make "
        "things worse.",
    )
    revert_failed_copy: StrictBool = Field(
        default=True,
        description="Whether a copy that cannot finish, and leaves the cluster without any controller, is rolled back "
        "immediately. This is the only rollback without a request.",
    )
    min_zookeeper_silence: Duration = Field(
        default=timedelta(minutes=5),
        ge=timedelta(0),
        description="How long ZooKeeper must have given no answer to any observation before the gate "
        "`finalize-without-return` asks whether it is lost for good. A restart of the ensemble, or a broken "
        "link that is repaired, is no such loss.",
    )
    copy_deadline: Duration = Field(
        default=timedelta(seconds=30),
        gt=timedelta(0),
        description="How long after KRaft's claim the copy may be without an active controller before it counts as failed.",
    )
    drain_deadline: Duration = Field(
        default=timedelta(seconds=30),
        gt=timedelta(0),
        description="How long a rollback waits until ZooKeeper has all that the quorum has, before it stops the "
        "controllers. What is not there by then is flushed afterwards.",
    )
    election_deadline: Duration = Field(
        default=timedelta(seconds=30),
        gt=timedelta(0),
        description="How long a broker may take to become ZooKeeper controller after the KRaft controllers have stopped. "
        "Measured: 0.04 s. After this time it is an alarm.",
    )
    compare_copy: StrictBool = Field(
        default=True,
        description="Whether ZooKeeper's metadata is kept before the last broker restarts into the migration, which starts "
        "Kafka's copy. The copy is compared with it before any broker restarts into KRaft mode.",
    )


def longest_window(policy: ZkToKraftPolicy) -> timedelta:
    """How long the revert window may take: all its own deadlines, and a margin."""
    flushes = FLUSHES * (policy.restart_deadline + policy.drain_deadline)
    return policy.drain_deadline + flushes + policy.election_deadline + STEP_MARGIN
