"""What an operator may set for the API: environment variables with the prefix `KEEPERLESS_`.

Temporal's own settings are not here: `TEMPORAL_ADDRESS` and its kin, read by `temporalio.envconfig`.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field, HttpUrl, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

LOOPBACK = "127.0.0.1"


STATE = Path.home() / ".local" / "state" / "keeperless"
"""Where the activity worker looks as well."""


class ApiSettings(BaseSettings):
    """Settings of `keeperless-api`. Durations are ISO 8601 or seconds."""

    model_config = SettingsConfigDict(env_prefix="KEEPERLESS_", env_ignore_empty=True, frozen=True, hide_input_in_errors=True)

    ledger_url: str = Field(
        default=f"sqlite:///{STATE / 'ledger.db'}",
        description="Where the ledger is: sqlite:////path or postgresql://…. The activity worker needs the same one.",
    )
    artefacts: Path = Field(
        default=STATE / "artefacts",
        description="Directory of the rows of reports, which the workers write. It may be mounted for reading only.",
    )
    bind_address: str = Field(
        default=LOOPBACK,
        description="Address to listen on. Only 127.0.0.1 as long as there is no authentication.",
    )
    port: Annotated[int, Field(ge=0, le=65535)] = Field(default=8080, description="Port to listen on. 0: any free one.")
    temporal_ui_url: HttpUrl | None = Field(
        default=None,
        description="Base address of Temporal's web UI, for links. None: migrations carry no such link.",
    )
    event_stream_life: timedelta = Field(
        default=timedelta(minutes=10),
        gt=timedelta(0),
        description="After this time an event stream ends, and the client comes back with Last-Event-ID: "
        "so no connection outlives a deployment, or a client that is gone.",
    )
    event_poll_interval: timedelta = Field(
        default=timedelta(milliseconds=500),
        gt=timedelta(0),
        description="How often an event stream looks into the ledger.",
    )
    care_interval: timedelta = Field(
        default=timedelta(seconds=5),
        gt=timedelta(0),
        description="Pause between two attempts at what could not be done at once: undelivered commands, abandoned migrations.",
    )
    start_patience: timedelta = Field(
        default=timedelta(seconds=15),
        ge=timedelta(0),
        description="A migration older than this that has no run was abandoned by a crash. Longer than any start takes.",
    )

    plan_life: timedelta = Field(
        default=timedelta(days=14),
        gt=timedelta(0),
        description="A plan that is older than this starts no migration: people should read a new one.",
    )

    @field_validator("bind_address")
    @classmethod
    def _refuse_other_addresses(cls, address: str) -> str:
        if address != LOOPBACK:
            raise ValueError(
                f"there is no authentication yet, so the API listens on {LOOPBACK} only: unset KEEPERLESS_BIND_ADDRESS, "
                "and reach it through an SSH tunnel"
            )
        return address
