"""Settings of the activity worker, from `KEEPERLESS_…` variables. Temporal's own are Temporal's: `TEMPORAL_ADDRESS`, …"""

from pathlib import Path

from pydantic import Field

from console.worker_settings import STATE, WorkerSettings


class ActivitySettings(WorkerSettings):
    """Read once, when the worker starts."""

    artefacts: Path = Field(
        default=STATE / "artefacts",
        description="Directory for observations and reports. All activity workers need the same.",
    )
    signal_approvals: bool = Field(
        default=False,
        description="Whether a bare `approve` signal counts as an approval. Anyone with access to Temporal can send one, so "
        "it is off if callers have identities; the playground turns it on.",
    )
    max_effects: int = Field(
        default=8,
        ge=2,
        description="Effects and observations at the same time, over all clusters. Each takes a few threads and connections.",
    )
    max_watches: int = Field(
        default=200, ge=2, description="Waiting migrations that this worker watches at the same time: cheap, and many."
    )
