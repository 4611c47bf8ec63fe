"""Settings from files: a setting that holds a secret may be a file, named like its variable in small letters, in the directory
in which Docker and its kin mount secrets: `/run/secrets/keeperless_ledger_url`. A variable of that name takes precedence.
"""

from pathlib import Path

MOUNTED = Path("/run/secrets")


def secrets_directory() -> Path | None:
    """For pydantic's `secrets_dir`. None where nothing is mounted: pydantic warns of a directory that is not there."""
    return MOUNTED if MOUNTED.is_dir() else None
