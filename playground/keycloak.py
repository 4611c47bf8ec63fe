"""A real OIDC provider: Keycloak in development mode, one process on 127.0.0.1, with a realm from a file.

with KeycloakServer(directory, port, realm_file) as keycloak:
    keycloak.issuer
    keycloak.tokens("keeperless-cli", "olga", password)["access_token"]
"""

import json
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from playground import processes
from playground.jars import fetched_jars
from playground.java import java_home
from playground.ports import LOOPBACK
from playground.processes import Launch, plain_environment
from playground.progress import wait_while_working

LOCK_FILE = Path(__file__).with_name("keycloak.lock.toml")
ADMIN = "admin"
ADMIN_PASSWORD = "not-a-secret"  # noqa: S105 - a throw-away server on loopback
MEMORY = "-Xms64m -Xmx512m"


@dataclass(frozen=True)
class KeycloakServer:
    """`directory` takes the program, its database and its log; of these only the log stays at the end. Needs Java 21."""

    directory: Path
    port: int
    realm_file: Path

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @cached_property
    def realm(self) -> str:
        return str(json.loads(self.realm_file.read_text(encoding="utf-8"))["realm"])

    @property
    def issuer(self) -> str:
        return f"{self.url}/realms/{self.realm}"

    @property
    def home(self) -> Path:
        return self.directory.absolute() / "keycloak"

    @property
    def launch(self) -> Launch:
        """The first start in a directory prepares the program, and takes two Javas, one after the other: 30 s."""
        listen = ("--http-host", LOOPBACK, "--http-port", str(self.port))
        return Launch(
            name="keycloak",
            command=("sh", str(self.home / "bin" / "kc.sh"), "start-dev", *listen, "--import-realm"),
            pid_file=self.directory.absolute() / "keycloak.pid",
            output_file=self.directory.absolute() / "keycloak.log",
            environment={
                **plain_environment(java_home()),
                "JAVA_OPTS_KC_HEAP": MEMORY,
                "KC_BOOTSTRAP_ADMIN_USERNAME": ADMIN,
                "KC_BOOTSTRAP_ADMIN_PASSWORD": ADMIN_PASSWORD,
            },
            mark=str(self.home),
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> float:
        """Returns when the realm answers, with the seconds it took."""
        self._install()
        processes.start(self.launch)
        try:
            return wait_while_working(self._is_ready, f"Keycloak at {self.issuer}", [self.launch])
        except BaseException:
            self.stop()
            raise

    def stop(self, grace_seconds: float = 30.0) -> None:
        process = processes.running(self.launch)
        processes.stop([process] if process else [], grace_seconds)
        shutil.rmtree(self.home)

    def tokens(self, client: str, user: str, password: str, realm: str = "", **more: str) -> dict[str, Any]:
        """What the password grant of a public client gives: `access_token`, `refresh_token`, with `scope=openid` `id_token`."""
        body = {"grant_type": "password", "client_id": client, "username": user, "password": password, **more}
        return dict(self._post(realm or self.realm, "token", body).json())

    def log_out(self, client: str, refresh_token: str) -> None:
        """End the session that the token belongs to."""
        self._post(self.realm, "logout", {"client_id": client, "refresh_token": refresh_token})

    def administer(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        """A call of the admin API. `path`: below the realm, such as `/components`; empty for the realm itself."""
        token = self.tokens("admin-cli", ADMIN, ADMIN_PASSWORD, realm="master")["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{self.url}/admin/realms/{self.realm}{path}"
        httpx.request(method, url, json=body, headers=headers, timeout=30, trust_env=False).raise_for_status()

    def _post(self, realm: str, endpoint: str, body: Mapping[str, str]) -> httpx.Response:
        url = f"{self.url}/realms/{realm}/protocol/openid-connect/{endpoint}"
        return httpx.post(url, data=body, timeout=30, trust_env=False).raise_for_status()

    def _install(self) -> None:
        (archive,) = fetched_jars(LOCK_FILE)
        with zipfile.ZipFile(archive) as content:
            top = content.namelist()[0].partition("/")[0]
            content.extractall(self.directory)
        (self.directory / top).rename(self.home)
        imports = self.home / "data" / "import"
        imports.mkdir(parents=True)
        shutil.copy2(self.realm_file, imports)

    def _is_ready(self) -> bool:
        try:
            answer = httpx.get(f"{self.issuer}/.well-known/openid-configuration", timeout=5, trust_env=False)
        except httpx.TransportError:
            return False
        return answer.is_success
