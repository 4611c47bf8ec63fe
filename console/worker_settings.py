"""Settings that all worker programs share, from `KEEPERLESS_…` variables."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from console.secrets_directory import secrets_directory

STATE = Path.home() / ".local" / "state" / "keeperless"


class WorkerSettings(BaseSettings):
    """Read once, when a worker starts."""

    model_config = SettingsConfigDict(env_prefix="KEEPERLESS_", frozen=True, secrets_dir=secrets_directory())

    ledger_url: str = Field(
        default=f"sqlite:///{STATE / 'ledger.db'}",
        description="SQLAlchemy URL of the ledger: `sqlite:///…` or `postgresql://…`. The API needs the same. "
        "keeperless-workflows only writes its heartbeat there, and works without it.",
    )
    runtime_directory: Path = Field(
        default=Path("/tmp/keeperless"),  # noqa: S108 - a container with a read-only root has a tmpfs there
        description="Directory of a worker's heartbeat file, which `--health` reads. Copies of one program on one machine "
        "need one each, or the check reports the one with the newest heartbeat.",
    )
