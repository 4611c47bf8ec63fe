"""OIDC tokens of a real Keycloak, through the API as a process of its own. Needs no Docker. Run by `make keycloak-test`.

The realm is tests/system/realm.json. Its client and the API's settings are those of docs/people.md.
"""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from api.people.identity import COOKIE
from api.people.tokens import LEEWAY_SECONDS, REFRESH_PAUSE
from playground.example import example_cluster
from playground.keycloak import KeycloakServer
from playground.ports import PortLease
from playground.processes import wait_until
from playground.services import Program, Services
from playground.temporal import TemporalPorts, TemporalServer
from playground.wanted import before, wanted_json

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

REALM = Path(__file__).with_name("realm.json")
PAGE = Path(__file__).parents[2] / "docs" / "people.md"
APPROVER = "keeperless-approver"
CLIENT = "keeperless-cli"
LIFESPAN = 5
"""Seconds that an access token lives, where a test waits for its end."""


class People:
    """The people of the realm, at the API. Each call brings an access token that was made for it."""

    def __init__(self, keycloak: KeycloakServer, http: httpx.Client) -> None:
        self.keycloak = keycloak
        self._http = http

    def tokens(self, name: str, client: str = CLIENT, **more: str) -> dict[str, Any]:
        return self.keycloak.tokens(client, name, f"not-a-secret-of-{name}", **more)

    def call(self, name: str, method: str, path: str, body: Any = None) -> httpx.Response:
        return self.bring(self.tokens(name)["access_token"], method, path, body)

    def bring(self, token: str, method: str = "GET", path: str = "/clusters", body: Any = None) -> httpx.Response:
        return self._http.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})

    def cookie_for(self, token: str) -> str:
        """Of a browser's session."""
        answer = self._http.post("/session", json={"key": token}).raise_for_status()
        self._http.cookies.clear()
        return str(answer.cookies[COOKIE])

    def principal_of(self, cookie: str) -> str:
        answer = self._http.get("/session", headers={"Cookie": f"{COOKIE}={cookie}"})
        return str(answer.raise_for_status().json()["principal"])


def documented_settings() -> dict[str, str]:
    section = PAGE.read_text(encoding="utf-8").partition("## With Keycloak")[2]
    return dict(re.findall(r"^export (KEEPERLESS_(?:AUTH|OIDC_\w+))=(\S+)$", section, re.MULTILINE))


@pytest.fixture(scope="module")
def lease() -> Iterator[PortLease]:
    with PortLease(6) as lease:
        yield lease


@pytest.fixture(scope="module")
def keycloak(lease: PortLease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeycloakServer]:
    with KeycloakServer(tmp_path_factory.mktemp("keycloak"), lease.take(), REALM) as server:
        yield server


@pytest.fixture(scope="module")
def people(lease: PortLease, keycloak: KeycloakServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """With the API and Temporal, and without any worker."""
    directory = tmp_path_factory.mktemp("service")
    settings = {
        **documented_settings(),
        "KEEPERLESS_FIRST_KEY_FILE": str(directory / "first-key"),
        "KEEPERLESS_OIDC_ISSUER": keycloak.issuer,
    }
    with TemporalServer(directory, TemporalPorts.leased(lease)) as temporal:
        services = Services(directory, temporal.address, lease.take(), extra_environment=settings)
        try:
            services.start(Program.API)
            services.await_ready()
            with httpx.Client(base_url=services.api_url, timeout=30, trust_env=False) as http:
                yield People(keycloak, http)
        finally:
            services.stop([Program.API])


@pytest.fixture
def short_lived(keycloak: KeycloakServer) -> Iterator[None]:
    keycloak.administer("PUT", "", {"accessTokenLifespan": LIFESPAN})
    yield
    keycloak.administer("PUT", "", {"accessTokenLifespan": 300})


def claims_of(token: str) -> dict[str, Any]:
    return jwt.decode(token, options={"verify_signature": False})


def refusal(answer: httpx.Response) -> str:
    """Why a credential was refused."""
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), answer.text
    return str(answer.json()["detail"])


def test_a_token_names_a_person_with_roles(people: People) -> None:
    token = people.tokens("olga")["access_token"]
    print("claims:", claims_of(token))
    who = people.bring(token, path="/session").json()
    assert (who["principal"], who["roles"], who["via"]) == ("olga", ["approver", "operator"], "oidc-token")


def test_one_asks_and_only_another_approves(people: People) -> None:
    spec = before(example_cluster()).model_dump(mode="json")
    assert people.call("anna", "PUT", "/clusters/example", spec).json()["code"] == "forbidden"
    assert people.call("olga", "PUT", "/clusters/example", spec).status_code == 201
    asked = {"cluster": "example", "kind": "zk-to-kraft", "wanted": wanted_json(example_cluster())}
    started = people.call("olga", "POST", "/migrations", asked)
    assert started.status_code == 202, started.text
    path = f"/migrations/{started.json()['id']}"
    assert people.call("anna", "GET", path).json()["requested_by"] == "olga"

    approval = {"gate": "finalize", "evidence_hash": "e" * 64, "decision": "approve", "reason": "a test"}
    own = people.call("olga", "POST", f"{path}/approvals", approval)
    assert (own.status_code, own.json()["code"]) == (403, "own-request")
    other = people.call("anna", "POST", f"{path}/approvals", approval)
    assert (other.status_code, other.json()["status"]) == (202, "pending"), "no worker runs that could take it"
    assert [(one["by"], one["kind"]) for one in people.call("olga", "GET", f"{path}/commands").json()["items"]] == [
        ("anna", "approve")
    ]


WITHOUT_RIGHTS: dict[str, tuple[Callable[[People], str], str]] = {
    "for another client": (lambda p: p.tokens("olga", "other")["access_token"], "InvalidAudienceError"),
    "of the client admin-cli": (lambda p: p.tokens("olga", "admin-cli")["access_token"], "no claim aud"),
    "an ID token": (lambda p: p.tokens("olga", scope="openid")["id_token"], "InvalidAudienceError"),
    "a refresh token": (lambda p: p.tokens("olga")["refresh_token"], "no key with the token's key id"),
}


@pytest.mark.parametrize("kind", WITHOUT_RIGHTS)
def test_a_token_of_the_realm_for_something_else_is_refused(people: People, kind: str) -> None:
    token_of, why = WITHOUT_RIGHTS[kind]
    token = token_of(people)
    assert why in refusal(people.bring(token)), claims_of(token)


@pytest.mark.usefixtures("short_lived")
def test_a_token_counts_until_it_expires_also_after_logout(people: People) -> None:
    tokens = people.tokens("anna")
    claims = claims_of(tokens["access_token"])
    assert claims["exp"] - claims["iat"] == LIFESPAN
    cookie = people.cookie_for(tokens["access_token"])
    people.keycloak.log_out(CLIENT, tokens["refresh_token"])
    assert people.bring(tokens["access_token"]).status_code == 200
    wait_until(
        lambda: people.bring(tokens["access_token"]).status_code == 401, "the token's end", LIFESPAN + LEEWAY_SECONDS + 5
    )
    print(f"refused {time.time() - claims['exp']:.1f} s after its end")
    assert time.time() >= claims["exp"]
    assert "ExpiredSignatureError" in refusal(people.bring(tokens["access_token"]))
    assert people.principal_of(cookie) == "anna", "a browser's session lasts longer than its token"


def test_a_disabled_user_gets_no_new_token(people: People) -> None:
    """What is out already counts to its end."""
    user = {"enabled": True, "email": "tim@example.org", "firstName": "Tim", "lastName": "Example", "username": "tim"}
    password = {"type": "password", "value": "not-a-secret-of-tim"}
    imported = {"ifResourceExists": "OVERWRITE", "users": [user | {"credentials": [password], "realmRoles": [APPROVER]}]}
    people.keycloak.administer("POST", "/partialImport", imported)
    token = people.tokens("tim")["access_token"]
    people.keycloak.administer("PUT", f"/users/{claims_of(token)['sub']}", user | {"enabled": False})
    with pytest.raises(httpx.HTTPStatusError, match="400"):
        people.tokens("tim")
    assert people.bring(token).status_code == 200


def test_a_new_key_of_the_realm_is_accepted_within_the_pause(people: People) -> None:
    """Also if a stranger's key id has just made the API read the keys, which it does once in that pause."""
    tokens = people.tokens("olga")
    old = tokens["access_token"]
    assert people.bring(old).status_code == 200
    refusal(people.bring(tokens["refresh_token"]))
    key = {
        "name": "rotated",
        "providerId": "rsa-generated",
        "providerType": "org.keycloak.keys.KeyProvider",
        "config": {"priority": ["200"], "enabled": ["true"], "active": ["true"], "keySize": ["2048"]},
    }
    people.keycloak.administer("POST", "/components", key)
    new = people.tokens("olga")["access_token"]
    assert jwt.get_unverified_header(new)["kid"] != jwt.get_unverified_header(old)["kid"]
    took = wait_until(lambda: people.bring(new).status_code == 200, "the new key", REFRESH_PAUSE + 5)
    print(f"the new key is accepted after {took:.1f} s")
    assert people.bring(old).status_code == 200, "the old key is still published"
