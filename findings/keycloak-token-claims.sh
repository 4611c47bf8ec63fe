#!/bin/bash
# What access tokens of Keycloak name by default, and what they lack. Seen with Keycloak 26.7.3:
#   - the audience is never the client: it is `account`, or absent where a user has no roles of the client `account` (users of an
#     imported realm have none, unless the file gives them the realm's default roles);
#   - tokens of `admin-cli`, which Keycloak's own examples use, have neither aud, nor sub, nor roles ("lightweight access token");
#   - ID tokens have the client as their audience, so a client must not be named like the audience that an API expects;
#   - a user without e-mail address and names gets no token from the password grant ("Account is not fully set up").
# Exit code 0 while that is so. Needs `make setup`; fetches Keycloak once.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.venv/bin/python - "$folder" <<'PROGRAM'
import sys
from pathlib import Path

import httpx
import jwt

from playground.keycloak import KeycloakServer
from playground.ports import PortLease

PASSWORD = "not-a-secret-of-olga"
DEFAULTS = {"enabled": True, "credentials": [{"type": "password", "value": PASSWORD}]}


def claims(keycloak, client, user, kind="access_token"):
    token = keycloak.tokens(client, user, PASSWORD, scope="openid")[kind]
    return jwt.decode(token, options={"verify_signature": False})


def refusal(keycloak, user):
    try:
        keycloak.tokens("other", user, PASSWORD)
    except httpx.HTTPStatusError as error:
        return error.response.json()["error_description"]


with PortLease(1) as lease, KeycloakServer(Path(sys.argv[1]), lease.take(), Path("tests/system/realm.json")) as keycloak:
    keycloak.administer("POST", "/users", {"username": "nameless", **DEFAULTS})
    imported = {"username": "imported", "email": "i@example.org", "firstName": "I", "lastName": "Example", **DEFAULTS}
    keycloak.administer("POST", "/partialImport", {"ifResourceExists": "FAIL", "users": [imported]})
    admin_cli = claims(keycloak, "admin-cli", "olga")
    seen = {
        "aud of another client": claims(keycloak, "other", "olga").get("aud"),
        "aud of an imported user": claims(keycloak, "other", "imported").get("aud"),
        "admin-cli has": sorted({"aud", "sub", "realm_access"} & set(admin_cli)),
        "aud of an ID token": claims(keycloak, "other", "olga", "id_token")["aud"],
        "without e-mail address and names": refusal(keycloak, "nameless"),
    }
for what, found in seen.items():
    print(f"{what}: {found!r}")
expected = ["account", None, [], "other", "Account is not fully set up"]
raise SystemExit(0 if list(seen.values()) == expected else 1)
PROGRAM
