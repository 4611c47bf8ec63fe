"""API keys and session cookies: what is given out, and what is kept of it.

A key is `keeperless_<id>_<secret>`: the id is readable in lists and audits, the secret is 32 random bytes. Only the secret's
SHA-256 is stored; a slow hash is for passwords, which can be guessed.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.principals import ApiKey, Principal, Role, Session
from domain.redaction import HIDDEN

SECRET_BYTES = 32
KEY = re.compile(r"keeperless_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
SESSION_LIFE = timedelta(hours=8)


@dataclass(frozen=True)
class NewKey:
    """A key as it is given out, once."""

    text: str
    record: ApiKey


def new_key(
    principal: str, roles: tuple[Role, ...], clusters: tuple[str, ...] | None, by: str, now: datetime, life: timedelta
) -> NewKey:
    text = f"keeperless_{secrets.token_hex(6)}_{secrets.token_urlsafe(SECRET_BYTES)}"
    return NewKey(text, key_record(text, principal, roles, clusters, by, now, life))


def key_record(
    text: str,
    principal: str,
    roles: tuple[Role, ...],
    clusters: tuple[str, ...] | None,
    by: str,
    now: datetime,
    life: timedelta,
) -> ApiKey:
    """What is kept of a key. Raises `ValueError` where `text` is none."""
    parts = parts_of(text)
    if parts is None:
        raise ValueError("this is not an API key of Keeperless")
    key_id, secret = parts
    return ApiKey(
        id=key_id,
        principal=principal,
        secret_hash=digest(secret),
        roles=tuple(sorted(set(roles))),
        clusters=clusters,
        created_at=now,
        created_by=by,
        expires_at=now + life,
    )


def parts_of(text: str) -> tuple[str, str] | None:
    """A key's id and secret; `None` where it is no key of ours."""
    match = KEY.fullmatch(text)
    return None if match is None else (match[1], match[2])


def without_secrets(text: str) -> str:
    """Keys in it are cut down to their ids."""
    return KEY.sub(rf"keeperless_\1_{HIDDEN}", text)


def is_secret_of(secret: str, key: ApiKey) -> bool:
    return hmac.compare_digest(digest(secret), key.secret_hash)


def new_cookie() -> str:
    return secrets.token_urlsafe(SECRET_BYTES)


def new_session(cookie: str, principal: Principal, now: datetime) -> Session:
    return Session(
        id=digest(cookie),
        principal=principal.name,
        roles=tuple(sorted(principal.roles)),
        clusters=None if principal.clusters is None else tuple(sorted(principal.clusters)),
        key_id=principal.key_id,
        created_at=now,
        expires_at=now + SESSION_LIFE,
    )


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
