"""Principals, their roles, and the API keys and sessions that identify them.

A principal is one person or program, by its name. Two keys of one principal are the same principal: whoever asked for a
migration cannot approve it through a second key.
"""

from datetime import datetime
from enum import StrEnum

from domain.records import Record

LOCAL = "local (unauthenticated)"
"""Everybody, where authentication is off. No key and no token can carry this name."""


class Permission(StrEnum):
    """What a call needs."""

    READ = "read"
    OPERATE = "operate"
    STOP = "stop"
    """Hold a migration: always the safe direction, so approvers may do it as well."""
    DECIDE = "decide"
    ADMINISTER = "administer"


class Role(StrEnum):
    """What a principal may do. Roles add up."""

    VIEWER = "viewer"
    """Reads everything."""
    OPERATOR = "operator"
    """Also registers clusters, makes plans and checks, starts migrations, holds, resumes and rolls back."""
    APPROVER = "approver"
    """Also approves and rejects at gates, and holds."""
    ADMIN = "admin"
    """All of it; makes and revokes keys, withdraws approvals of others, and may break glass."""


PERMISSIONS: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.READ}),
    Role.OPERATOR: frozenset({Permission.READ, Permission.OPERATE, Permission.STOP}),
    Role.APPROVER: frozenset({Permission.READ, Permission.STOP, Permission.DECIDE}),
    Role.ADMIN: frozenset(Permission),
}


class Via(StrEnum):
    """How a command came."""

    LOCAL = "api"
    """Through an API without authentication."""
    KEY = "api-key"
    TOKEN = "oidc-token"  # noqa: S105 - a kind of credential, and none
    SESSION = "session"
    SIGNAL = "temporal-signal"
    """As a bare message to Temporal: its sender is whoever the message says."""


AUTHENTICATED = frozenset({Via.KEY, Via.TOKEN, Via.SESSION})


class Principal(Record):
    """The caller. `clusters`: the only ones it may see and touch; `None`: all. `key_id`: of its key, or its session's key."""

    name: str
    roles: frozenset[Role]
    clusters: frozenset[str] | None = None
    via: Via = Via.LOCAL
    key_id: str | None = None

    def may(self, permission: Permission) -> bool:
        return any(permission in PERMISSIONS[role] for role in self.roles)

    def is_in_scope(self, cluster: str) -> bool:
        return self.clusters is None or cluster in self.clusters

    @property
    def is_admin(self) -> bool:
        return Role.ADMIN in self.roles


EVERYBODY = Principal(name=LOCAL, roles=frozenset(Role))


class ApiKey(Record):
    """A key as the ledger keeps it: never the secret, only its SHA-256. `id` is the key's readable prefix."""

    id: str
    principal: str
    secret_hash: str
    roles: tuple[Role, ...]
    clusters: tuple[str, ...] | None = None
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None = None
    revoked_by: str | None = None

    def is_valid(self, now: datetime) -> bool:
        return self.revoked_at is None and now < self.expires_at


class Session(Record):
    """A browser's session. `id`: the SHA-256 of the cookie. `key_id`: the key it was exchanged for, whose end is its own."""

    id: str
    principal: str
    roles: tuple[Role, ...]
    clusters: tuple[str, ...] | None = None
    key_id: str | None = None
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        return self.ended_at is None and now < self.expires_at
