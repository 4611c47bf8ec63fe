"""What an operator may set for the API: environment variables with the prefix `KEEPERLESS_`.

Temporal's own settings are not here: `TEMPORAL_ADDRESS` and its kin, read by `temporalio.envconfig`.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, HttpUrl, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from api.people.tokens import Provider
from console.secrets_directory import secrets_directory
from console.worker_settings import STATE

LOOPBACK = "127.0.0.1"


class ApiSettings(BaseSettings):
    """Settings of `keeperless-api`. Durations are ISO 8601 or seconds."""

    model_config = SettingsConfigDict(
        env_prefix="KEEPERLESS_",
        env_ignore_empty=True,
        frozen=True,
        hide_input_in_errors=True,
        secrets_dir=secrets_directory(),
    )

    ledger_url: str = Field(
        default=f"sqlite:///{STATE / 'ledger.db'}",
        description="URL of the ledger: sqlite:////path or postgresql://…. The activity worker needs the same one.",
    )
    artefacts: Path = Field(
        default=STATE / "artefacts",
        description="Directory of the rows of reports, which the workers write. Read access is enough.",
    )
    bind_address: str = Field(
        default=LOOPBACK,
        description="Address to listen on. Only 127.0.0.1 without authentication.",
    )
    port: Annotated[int, Field(ge=0, le=65535)] = Field(default=8080, description="Port to listen on. 0: any free one.")
    temporal_ui_url: HttpUrl | None = Field(
        default=None,
        description="Base address of Temporal's web UI, for links. None: migrations carry no such link.",
    )
    event_stream_life: timedelta = Field(
        default=timedelta(minutes=10),
        gt=timedelta(0),
        description="An event stream ends after this time, and the client reconnects with Last-Event-ID, so that no "
        "connection outlives a deployment, or a client that is gone.",
    )
    event_poll_interval: timedelta = Field(
        default=timedelta(milliseconds=500),
        gt=timedelta(0),
        description="How often an event stream reads the ledger.",
    )
    care_interval: timedelta = Field(
        default=timedelta(seconds=5),
        gt=timedelta(0),
        description="Pause between two attempts at what failed the first time: undelivered commands, abandoned migrations.",
    )
    start_patience: timedelta = Field(
        default=timedelta(seconds=15),
        ge=timedelta(0),
        description="A migration that is older than this and has no run was abandoned by a crash. Longer than any start takes.",
    )

    plan_life: timedelta = Field(
        default=timedelta(days=14),
        gt=timedelta(0),
        description="A plan that is older than this starts no migration: make and read a new one.",
    )

    auth: Literal["on", "off"] = Field(
        default="off",
        description="Whether callers must authenticate. `off`: every caller is the same principal, and the API listens on "
        "127.0.0.1 only.",
    )
    first_key_file: Path = Field(
        default=STATE / "first-key",
        description="Where the API leaves the first admin's key (mode 0600), with authentication and no valid admin's key.",
    )
    public_url: HttpUrl | None = Field(
        default=None,
        description="Address under which browsers reach the API, if a proxy serves TLS. With https, the session's cookie is "
        "sent through TLS only.",
    )
    oidc_issuer: str | None = Field(
        default=None,
        description="Issuer of OIDC tokens that are accepted beside API keys, exactly as the provider names itself. https, "
        "except on this machine itself.",
    )
    oidc_audience: str | None = Field(default=None, description="Audience that such a token must be for.")
    oidc_principal_claim: str = Field(
        default="sub", description="The claim that names the principal: one that users cannot change themselves."
    )
    oidc_roles_claim: str = Field(
        default="roles", description="The claim with the roles, with dots if it is nested, such as `realm_access.roles`."
    )
    oidc_role_prefix: str = Field(default="keeperless-", description="Prefix of a role's name in that claim.")

    @property
    def is_auth_on(self) -> bool:
        return self.auth == "on"

    @property
    def is_served_by_https(self) -> bool:
        return self.public_url is not None and self.public_url.scheme == "https"

    @property
    def oidc(self) -> Provider | None:
        """The provider, if one is configured."""
        if self.oidc_issuer is None or self.oidc_audience is None:
            return None
        claims = (self.oidc_principal_claim, self.oidc_roles_claim)
        return Provider(self.oidc_issuer, self.oidc_audience, *claims, self.oidc_role_prefix)

    @model_validator(mode="after")
    def _refuse_other_addresses(self) -> Self:
        if self.bind_address != LOOPBACK and not self.is_auth_on:
            raise ValueError(
                f"KEEPERLESS_BIND_ADDRESS: without authentication the API listens on {LOOPBACK} only. Set KEEPERLESS_AUTH=on, "
                "or unset it and reach the API through an SSH tunnel"
            )
        return self

    @model_validator(mode="after")
    def _need_whole_providers(self) -> Self:
        if (self.oidc_issuer is None) is not (self.oidc_audience is None):
            raise ValueError("KEEPERLESS_OIDC_ISSUER: set it and KEEPERLESS_OIDC_AUDIENCE, or neither")
        issuer = urlsplit(self.oidc_issuer or "https://")
        if issuer.scheme != "https" and issuer.hostname not in {LOOPBACK, "localhost"}:
            raise ValueError(
                "KEEPERLESS_OIDC_ISSUER: use https, because anyone who can change the answers of an http:// provider can "
                "make tokens"
            )
        return self
