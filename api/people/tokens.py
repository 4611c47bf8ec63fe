"""OIDC bearer tokens: verified by PyJWT against the provider's published keys.

Pinned: the issuer, the audience, and asymmetric algorithms. Required: `exp`, `iss`, `aud`, `sub`. Keys are cached; a key id
that is not known yet is looked for at the provider. Whether it answers or not, it is asked at most once in `REFRESH_PAUSE`.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import jwt

from domain.principals import LOCAL, Principal, Role, Via

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_SECONDS = 10
PATIENCE_SECONDS = 1.5
"""A caller is answered within two seconds."""
KEYS_LIFE_SECONDS = 600
REFRESH_PAUSE = 10
LONGEST_NAME = 200


class TokenRefused(Exception):
    """Its text says why, and repeats nothing of the token."""


class ProviderUnavailable(Exception):
    """The provider's keys cannot be read now."""


@dataclass(frozen=True)
class Provider:
    """An OIDC provider as it is configured. `roles_claim`: dotted, such as `realm_access.roles`."""

    issuer: str
    audience: str
    principal_claim: str
    roles_claim: str
    role_prefix: str


class Tokens:
    """Verifies tokens of one provider. For one event loop."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._keys: Mapping[str | None, jwt.PyJWK] = {}
        self._read_at = self._asked_at = float("-inf")
        self._why_not: ProviderUnavailable | None = None
        self._reading = asyncio.Lock()

    async def principal_of(self, token: str) -> Principal:
        """Verify a token and return its principal. Raises `TokenRefused` or `ProviderUnavailable`."""
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = await self._key(key_id)
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._provider.audience,
                issuer=self._provider.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.MissingRequiredClaimError as error:
            raise TokenRefused(f"the token has no claim {error.claim}") from error
        except jwt.InvalidTokenError as error:
            raise TokenRefused(f"the token is not valid: {type(error).__name__}") from error
        return principal_in(claims, self._provider)

    async def _key(self, key_id: str | None) -> jwt.PyJWK:
        async with self._reading:
            is_old = time.monotonic() - self._read_at > KEYS_LIFE_SECONDS
            if (is_old or key_id not in self._keys) and time.monotonic() - self._asked_at > REFRESH_PAUSE:
                await self._refresh()
            if self._why_not is not None and (is_old or key_id not in self._keys):
                raise ProviderUnavailable(str(self._why_not))
        if key_id not in self._keys:
            raise TokenRefused("the provider has published no key with the token's key id")
        return self._keys[key_id]

    async def _refresh(self) -> None:
        try:
            self._keys, self._why_not = await self._read_keys(), None
            self._read_at = time.monotonic()
        except ProviderUnavailable as error:
            self._why_not = error
        self._asked_at = time.monotonic()

    async def _read_keys(self) -> Mapping[str | None, jwt.PyJWK]:
        """By discovery, so that a provider may move its keys."""
        issuer = self._provider.issuer
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), httpx.AsyncClient(follow_redirects=False) as http:
                found = (await http.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")).raise_for_status().json()
                if found["issuer"] != issuer:
                    raise ProviderUnavailable(f"{issuer} answers discovery as another issuer")
                keys = (await http.get(found["jwks_uri"])).raise_for_status().json()
            return {key.key_id: key for key in jwt.PyJWKSet.from_dict(keys).keys if key.public_key_use in {None, "sig"}}
        except (httpx.HTTPError, TimeoutError, ValueError, KeyError, TypeError, jwt.PyJWTError) as error:
            raise ProviderUnavailable(f"the keys of {issuer} cannot be read: {type(error).__name__}") from error


def principal_in(claims: Mapping[str, Any], provider: Provider) -> Principal:
    """Return the principal of verified claims, with its roles. Raises `TokenRefused`."""
    claim = claims.get(provider.principal_claim)
    name = claim.casefold() if isinstance(claim, str) else ""
    if not name.isprintable() or not 0 < len(name) <= LONGEST_NAME or name == LOCAL:
        raise TokenRefused(f"the token's claim {provider.principal_claim} is not a usable name")
    granted = [value.removeprefix(provider.role_prefix) for value in _strings_at(claims, provider.roles_claim, provider)]
    roles = frozenset(Role(value) for value in granted if value in set(Role))
    if not roles:
        wanted = ", ".join(f"{provider.role_prefix}{role}" for role in Role)
        raise TokenRefused(f"the token's claim {provider.roles_claim} has none of {wanted}")
    return Principal(name=name, roles=roles, via=Via.TOKEN)


def _strings_at(claims: Mapping[str, Any], path: str, provider: Provider) -> list[str]:
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    values = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    return [one for one in values if isinstance(one, str) and one.startswith(provider.role_prefix)]
