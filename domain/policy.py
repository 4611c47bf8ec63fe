"""`MigrationPolicy`: what people may tune about one migration. Every duration is here, so that tests run in milliseconds."""

from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field


class MigrationPolicy(BaseModel):
    """Travels with the migration from its start: a running migration keeps its policy. Durations are ISO 8601 or seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_soak: timedelta = Field(
        default=timedelta(0),
        ge=timedelta(0),
        description="How long all brokers must have run in KRaft mode, in dual write, before finalize can be approved. "
        "The upstream guide mentions weeks; zero leaves the moment to the approver.",
    )
    poll_interval: timedelta = Field(
        default=timedelta(seconds=1),
        gt=timedelta(0),
        description="Pause between two observations while something is awaited.",
    )
    stable_samples: int = Field(
        default=3,
        ge=1,
        description="Consecutive good observations that prove a restarted node well. One sample can be luck.",
    )
    restart_deadline: timedelta = Field(
        default=timedelta(minutes=1),
        gt=timedelta(0),
        description="After this time a node that was restarted and is not yet proven is reported as a wait that names what is "
        "missing. Nothing else happens at the deadline: it is how long we look before we say so.",
    )
    stop_deadline: timedelta = Field(
        default=timedelta(minutes=6),
        gt=timedelta(0),
        description="How long a clean stop may take. Kafka's own controlled shutdown may use five minutes. "
        "A node that has not stopped by then is left alone and reported: it is never killed.",
    )
    max_offset_distance: int = Field(
        default=20,
        ge=2,
        description="How far the offset in `/migration` may be behind the quorum's log for dual write to count as current. "
        "An idle quorum writes two records a second.",
    )
    may_be_unavailable: tuple[str, ...] = Field(
        default=(),
        description="Topics whose partitions may be without enough replicas while one of their brokers restarts: those that "
        "cannot spare one, such as topics with a replication factor of 1. Every other such topic stops the migration.",
    )
