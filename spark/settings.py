"""Settings of the consistency checks, from `KEEPERLESS_…` variables."""

import secrets
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from spark.job import SecretRef
from spark.session.private import write_private_once
from spark.session.server import Profile

STATE = Path.home() / ".local" / "state" / "keeperless"


class CheckSettings(BaseSettings):
    """Read once, when the worker starts. Secrets are named, as `env:NAME` or `file:/path`, and never given here."""

    model_config = SettingsConfigDict(env_prefix="KEEPERLESS_", frozen=True, hide_input_in_errors=True)

    spark: Annotated[str, Field(pattern=r"^(embedded|off|sc://[^;\s]+(/;[^\s]*)?)$")] = Field(
        default="embedded",
        description="`embedded`: Keeperless starts a Spark Connect server on this machine when a check needs it. "
        "`sc://host:port`, with Spark Connect's parameters (`/;use_ssl=true`): a server of yours. `off`: the "
        "local engine.",
    )
    spark_token: SecretRef | None = Field(
        default=None,
        description="Where the token of a Spark of `sc://` is: `env:NAME` or `file:/path`. With one, Spark Connect wants TLS "
        "unless the server is `localhost`. The embedded one makes its own.",
    )
    spark_driver_memory: Annotated[str, Field(pattern=r"^[1-9][0-9]*[mg]$")] = Field(
        default="1g", description="Heap of the embedded Spark. Its Python processes come on top, some 200 MB for each core."
    )
    spark_cores: int | None = Field(default=None, ge=1, description="Cores that the embedded Spark uses. None: all of them.")
    spark_profile: Profile = Field(
        default=Profile.SMALL,
        description="`small`: starts fast and takes little memory. `large`: for more than some 200,000 partitions.",
    )
    spark_java_home: Path | None = Field(
        default=None, description="Java 17 or newer for the embedded Spark. None: the JRE that comes with PySpark's lock."
    )
    checks_directory: Path = Field(
        default=STATE / "checks",
        description="Where captures, staged rows and the embedded Spark's files are. All checks workers of a machine share it; "
        "with a Spark of `sc://` its machines need it too.",
    )
    digest_key: SecretRef | None = Field(
        default=None,
        description="Where the key is that secrets are compared by, 16 bytes or more. It has to stay the same from the "
        "baseline to the end, on all machines that read. None: a file in the directory of the checks, made when there is none.",
    )
    encoder_secret: SecretRef | None = Field(
        default=None,
        description="Where the brokers' `password.encoder.secret` is. None: passwords in dynamic configs are reported as "
        "`unverifiable`.",
    )

    @property
    def digest_key_reference(self) -> str:
        """As given; else of the file, which is there after `make_digest_key`."""
        return self.digest_key or f"file:{self._generated_key.absolute()}"

    @property
    def _generated_key(self) -> Path:
        return self.checks_directory / "digest.key"

    def make_digest_key(self) -> None:
        """Once for all workers that share the directory: whoever comes second keeps the first one's."""
        if self.digest_key is None and not self._generated_key.exists():
            self.checks_directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private_once(self._generated_key, secrets.token_hex(32))
