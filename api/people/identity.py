"""Which principal a call comes from: an API key, a token, or a browser's session.

Nothing is decided here about what they may do (`api.people.access`).
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from api.answers.problems import Problem, ProblemKind, retry_later
from api.people.credentials import digest, is_secret_of, parts_of
from api.people.tokens import ProviderUnavailable, TokenRefused, Tokens
from domain.principals import EVERYBODY, Principal, Via
from ledger.people import SqlPeople

COOKIE = "keeperless_session"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
CHALLENGE: Mapping[str, str] = {"WWW-Authenticate": "Bearer"}
HOW = (
    "Send `Authorization: Bearer` with an API key, which an admin makes with POST /keys, or with a token of the OIDC provider."
)


class Identity:
    """`people`: `None` where authentication is off: everybody may do everything then. `tokens`: of the OIDC provider."""

    def __init__(self, people: SqlPeople | None, tokens: Tokens | None) -> None:
        self._people = people
        self._tokens = tokens

    @property
    def is_on(self) -> bool:
        return self._people is not None

    async def of(self, method: str, headers: Headers) -> Principal | None:
        """`None` where a call brings no credentials. Raises `Problem` or `LedgerUnavailable`."""
        if self._people is None:
            return EVERYBODY
        scheme, _, credential = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return await self.holder_of(credential.strip())
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE)
        if not cookie:
            return None
        if method not in SAFE:
            _ensure_same_origin(headers)
        return await self._owner_of(cookie, self._people)

    async def holder_of(self, credential: str) -> Principal:
        """Return the holder of a key or token. Raises `Problem` or `LedgerUnavailable`."""
        if parts_of(credential) is not None:
            return await self._holder_of_key(credential)
        if self._tokens is None:
            raise unknown("This is not an API key, and no OIDC provider is configured.")
        try:
            return await self._tokens.principal_of(credential)
        except TokenRefused as error:
            raise unknown(f"{str(error)[:1].upper()}{str(error)[1:]}.") from error
        except ProviderUnavailable as error:
            raise retry_later(
                ProblemKind.IDENTITY_UNAVAILABLE, f"{str(error)[:1].upper()}{str(error)[1:]}. Repeat the call."
            ) from error

    async def _holder_of_key(self, text: str) -> Principal:
        parts = parts_of(text)
        key = await self._people.key(parts[0]) if self._people is not None and parts is not None else None
        if key is None or parts is None or not is_secret_of(parts[1], key):
            raise unknown("The ledger has no such API key.")
        if not key.is_valid(datetime.now(UTC)):
            what = "has been revoked" if key.revoked_at is not None else "has expired"
            raise unknown(f"The API key {key.id} {what}.")
        clusters = None if key.clusters is None else frozenset(key.clusters)
        return Principal(name=key.principal, roles=frozenset(key.roles), clusters=clusters, via=Via.KEY, key_id=key.id)

    async def _owner_of(self, cookie: str, people: SqlPeople) -> Principal:
        session = await people.session(digest(cookie))
        if session is None:
            raise unknown("The session has ended: sign in again at /session.")
        clusters = None if session.clusters is None else frozenset(session.clusters)
        roles = frozenset(session.roles)
        return Principal(name=session.principal, roles=roles, clusters=clusters, via=Via.SESSION, key_id=session.key_id)


def unknown(why: str) -> Problem:
    return Problem(ProblemKind.UNAUTHENTICATED, f"{why} {HOW}", headers=CHALLENGE)


def _ensure_same_origin(headers: Headers) -> None:
    """A page of another site can make a browser send the cookie's owner's calls, but not with our origin."""
    origin = urlsplit(headers.get("origin", ""))
    if not origin.netloc or origin.netloc != headers.get("host"):
        raise Problem(
            ProblemKind.FOREIGN_ORIGIN,
            "A call that changes something and sends the session's cookie needs the Origin header of the page itself.",
        )
