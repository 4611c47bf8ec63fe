"""The first key: an admin's. It is made if authentication is on and no valid one is there, and left in a file of mode 0600.

The file is written before the ledger knows the key, so that no crash loses the key. Copies of the API that
start at the same time on the same files find the same key.
"""

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from api.people.credentials import key_record, new_key, parts_of
from api.routes.keys import key_made
from domain.principals import Role
from ledger.people import SqlPeople

PRINCIPAL = "first-admin"
BY = "keeperless-api"
LIFE = timedelta(days=90)

log = structlog.get_logger()


async def ensure_first_key(people: SqlPeople, file: Path, *, has_provider: bool) -> None:
    """`has_provider`: an OIDC provider may name admins, so that no first key is needed once people are known.

    Raises `OSError` where the file cannot be written, or `ValueError` where it holds something else.
    """
    if await people.has_admin() or (has_provider and await people.are_known()):
        return
    now, text = datetime.now(UTC), _kept_in(file)
    known = await people.key(parts[0]) if (parts := parts_of(text)) is not None else None
    if known is not None and known.is_valid(now):
        return  # Another copy was faster.
    if known is not None:
        text = _without(text, file)
    text = text or _written_to(file, new_key(PRINCIPAL, (Role.ADMIN,), None, BY, now, LIFE).text)
    record = key_record(text, PRINCIPAL, (Role.ADMIN,), None, BY, now, LIFE)
    if await people.add_first_key(record, key_made(record)):
        log.warning(
            "the first admin key is in a file: make keys for people with it, then revoke it", file=str(file), key=record.id
        )


def _kept_in(file: Path) -> str:
    with suppress(FileNotFoundError):
        return file.read_text(encoding="ascii").strip()
    return ""


def _without(spent: str, file: Path) -> str:
    """The key that the file has instead: that of another copy, if it was faster."""
    if _kept_in(file) == spent:
        file.unlink(missing_ok=True)
    return _kept_in(file)


def _written_to(file: Path, text: str) -> str:
    """The key that the file has then: ours, or that of another copy, which was faster."""
    file.parent.mkdir(parents=True, exist_ok=True)
    ours = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(ours, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(f"{text}\n")
        opened.flush()
        os.fsync(opened.fileno())
    with suppress(FileExistsError):
        os.link(ours, file)
    ours.unlink()
    return _kept_in(file)
