"""Settings of the activity worker, from `KEEPERLESS_…` variables. Temporal's own are Temporal's: `TEMPORAL_ADDRESS`, …"""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

STATE = Path.home() / ".local" / "state" / "keeperless"


class ActivitySettings(BaseSettings):
    """Read once, when the worker starts."""

    model_config = SettingsConfigDict(env_prefix="KEEPERLESS_", frozen=True)

    ledger_url: str = Field(
        default=f"sqlite:///{STATE / 'ledger.db'}",
        description="SQLAlchemy URL of the ledger: `sqlite:///…` or `postgresql://…`. The API needs the same.",
    )
    artefacts: Path = Field(
        default=STATE / "artefacts",
        description="Directory for observations and reports. All activity workers need the same.",
    )
    signal_approvals: bool = Field(
        default=False,
        description="Whether a bare `approve` signal counts as an approval. Whoever reaches Temporal can send one, so it is "
        "off where people have names; the playground turns it on.",
    )
    max_effects: int = Field(
        default=8, ge=2, description="Effects and looks at once, over all clusters. Each takes a few threads and connections."
    )
    max_watches: int = Field(
        default=200, ge=2, description="Waiting migrations that this worker watches at once: cheap, and many."
    )
