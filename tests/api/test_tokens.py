"""OIDC tokens, by an issuer of the suite's own on loopback: what it signs is real, what a forger makes of it is refused."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi import FastAPI
from jwt.algorithms import RSAAlgorithm

from api.app import create_app
from api.people.tokens import Provider, ProviderUnavailable, TokenRefused, Tokens, principal_in
from api.running.temporal import Temporal
from api.settings import ApiSettings
from domain.principals import Role, Via

AUDIENCE = "keeperless"

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]


class Issuer:
    """Publishes keys and signs tokens. `asked`: how often its keys were read."""

    def __init__(self) -> None:
        self.keys = {"k1": rsa.generate_private_key(65537, 2048)}
        self.asked = 0
        self.is_failing = False
        self.name_in_discovery: str | None = None
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(issuer.answer(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/realm"

    def answer(self, path: str) -> dict[str, Any]:
        if path.endswith("/openid-configuration"):
            return {"issuer": self.name_in_discovery or self.url, "jwks_uri": f"{self.url}/keys"}
        self.asked += 1
        if self.is_failing:
            return {}
        jwks = [RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": name} for name, key in self.keys.items()]
        return {"keys": jwks}

    def token(self, key: Any = None, kid: str = "k1", algorithm: str = "RS256", **changes: Any) -> str:
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "Anna",
            "exp": time.time() + 60,
            "realm": {"roles": ["keeperless-approver", "other"]},
        }
        claims |= changes
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, self.keys["k1"] if key is None else key, algorithm=algorithm, headers={"kid": kid})

    def provider(self, **changes: str) -> Provider:
        given = {"principal_claim": "sub", "roles_claim": "realm.roles", "role_prefix": "keeperless-"}
        return Provider(self.url, AUDIENCE, **given | changes)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    one = Issuer()
    thread = threading.Thread(target=one.server.serve_forever, args=(0.05,))
    thread.start()
    yield one
    one.server.shutdown()
    one.server.server_close()
    thread.join()


async def test_a_token_names_its_principal_and_roles(issuer: Issuer) -> None:
    principal = await Tokens(issuer.provider()).principal_of(issuer.token())
    assert (principal.name, principal.roles, principal.via) == ("anna", {Role.APPROVER}, Via.TOKEN)


FORGERIES: dict[str, Callable[[Issuer], str]] = {
    "expired": lambda i: i.token(exp=time.time() - 60),
    "not valid yet": lambda i: i.token(nbf=time.time() + 3600),
    "without an end": lambda i: i.token(exp=None),
    "without a subject": lambda i: i.token(sub=None),
    "for others": lambda i: i.token(aud="others"),
    "of another issuer": lambda i: i.token(iss="https://idp.example"),
    "signed by another key": lambda i: i.token(rsa.generate_private_key(65537, 2048)),
    "with a key that is not published": lambda i: i.token(kid="k2"),
    "signed with a shared secret": lambda i: i.token("x" * 32, algorithm="HS256"),
    "unsigned": lambda i: i.token(key="", algorithm="none"),
    "changed": lambda i: _changed(i.token()),
    "no token at all": lambda _: "hunter2",
    "without a role": lambda i: i.token(realm={"roles": ["admin", "keeperless-root"]}),
}


def _changed(token: str) -> str:
    header, _, signature = token.split(".")
    claims = jwt.decode(token, options={"verify_signature": False}) | {"sub": "olga"}
    return ".".join([header, jwt.utils.base64url_encode(json.dumps(claims).encode()).decode(), signature])


@pytest.mark.parametrize("forged", FORGERIES)
async def test_a_forged_token_is_refused(issuer: Issuer, forged: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        await Tokens(issuer.provider()).principal_of(FORGERIES[forged](issuer))
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("claim", ["aud", "sub", "exp"])
async def test_a_missing_claim_is_named(issuer: Issuer, claim: str) -> None:
    with pytest.raises(TokenRefused, match=f"the token has no claim {claim}"):
        await Tokens(issuer.provider()).principal_of(issuer.token(**{claim: None}))


async def test_keys_are_read_once_and_again_when_an_unknown_one_signs(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens(issuer.provider())
    for _ in range(3):
        await tokens.principal_of(issuer.token())
    assert issuer.asked == 1
    issuer.keys["k2"] = rsa.generate_private_key(65537, 2048)
    new = issuer.token(issuer.keys["k2"], "k2")
    with pytest.raises(TokenRefused, match="no key"):  # within the pause the provider is not asked again
        await tokens.principal_of(new)
    monkeypatch.setattr("api.people.tokens.REFRESH_PAUSE", 0)
    assert (await tokens.principal_of(new)).name == "anna"
    assert issuer.asked == 2


async def test_a_deleted_key_counts_no_longer_than_keys_live(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, old = Tokens(issuer.provider()), issuer.token()
    await tokens.principal_of(old)
    issuer.keys = {"k2": rsa.generate_private_key(65537, 2048)}
    await tokens.principal_of(old)
    for limit in ("KEYS_LIFE_SECONDS", "REFRESH_PAUSE"):
        monkeypatch.setattr(f"api.people.tokens.{limit}", 0)
    with pytest.raises(TokenRefused, match="no key"):
        await tokens.principal_of(old)


async def test_a_provider_that_fails_is_not_asked_by_every_call(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls wait for each other's reading: ten that each waited until the provider was given up would wait for a quarter of a
    minute."""
    tokens, issuer.is_failing = Tokens(issuer.provider()), True
    outcomes = await asyncio.gather(*(tokens.principal_of(issuer.token()) for _ in range(10)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ProviderUnavailable] * 10
    assert issuer.asked == 1
    issuer.is_failing = False
    monkeypatch.setattr("api.people.tokens.REFRESH_PAUSE", 0)
    assert (await tokens.principal_of(issuer.token())).name == "anna"


async def test_a_provider_that_names_itself_otherwise_is_not_believed(issuer: Issuer) -> None:
    issuer.name_in_discovery = "http://127.0.0.1/other"
    with pytest.raises(ProviderUnavailable, match="another issuer"):
        await Tokens(issuer.provider()).principal_of(issuer.token())


@pytest.mark.parametrize("name", [None, "", 7, "local (unauthenticated)", "Local (Unauthenticated)", "a\nb", "x" * 300])
def test_a_claim_that_names_nobody_is_refused(issuer: Issuer, name: object) -> None:
    with pytest.raises(TokenRefused, match="is not a usable name"):
        principal_in({"sub": name, "realm": {"roles": ["keeperless-admin"]}}, issuer.provider())


@pytest.mark.parametrize("roles", [["keeperless-viewer"], "keeperless-viewer other"])
def test_roles_are_a_list_or_words(issuer: Issuer, roles: object) -> None:
    principal = principal_in({"sub": "anna", "scope": roles}, issuer.provider(roles_claim="scope"))
    assert principal.roles == {Role.VIEWER}


# ---- Through the API ----


@pytest.fixture
async def api(
    settings: ApiSettings,
    issuer: Issuer,
    temporal_address: str,
    tmp_path: Path,
    serve: Callable[[FastAPI], AbstractAsyncContextManager[Any]],
) -> AsyncIterator[Any]:
    changes = {
        "auth": "on",
        "first_key_file": tmp_path / "first-key",
        "oidc_issuer": issuer.url,
        "oidc_audience": AUDIENCE,
        "oidc_roles_claim": "realm.roles",
    }
    app = create_app(settings.model_copy(update=changes), Temporal({"target_host": temporal_address}, timedelta(seconds=30)))
    async with serve(app) as running:
        yield running


async def test_the_api_takes_tokens_beside_keys(api: Any, issuer: Issuer, expect_problem: Expect) -> None:
    def bearer(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    me = await api.http.get("/session", headers=bearer(issuer.token()))
    assert (me.json()["principal"], me.json()["via"]) == ("anna", "oidc-token")
    expect_problem(await api.http.post("/plans", json={}, headers=bearer(issuer.token())), 403, "forbidden")
    problem = expect_problem(await api.http.get("/plans", headers=bearer(issuer.token(exp=1))), 401, "unauthenticated")
    assert "ExpiredSignatureError" in problem["detail"]
    signed_in = await api.http.post("/session", json={"key": issuer.token()})
    assert (signed_in.status_code, signed_in.json()["roles"]) == (201, ["approver"])


async def test_a_provider_that_is_down_is_a_503_and_keys_go_on(
    api: Any, issuer: Issuer, expect_problem: Expect, tmp_path: Path
) -> None:
    token = issuer.token()
    issuer.server.server_close()
    answer = await api.http.get("/plans", headers={"Authorization": f"Bearer {token}"})
    expect_problem(answer, 503, "identity-unavailable")
    admin = (tmp_path / "first-key").read_text().strip()
    assert (await api.http.get("/plans", headers={"Authorization": f"Bearer {admin}"})).status_code == 200


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"oidc_issuer": "https://idp.example"}, "or neither"),
        ({"oidc_issuer": "http://idp.example", "oidc_audience": "k"}, "use https"),
        ({"bind_address": "192.0.2.7"}, "without authentication"),
    ],
)
def test_settings_that_would_let_anybody_in_are_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ApiSettings(**given)  # type: ignore[arg-type]
