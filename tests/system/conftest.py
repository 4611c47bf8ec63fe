"""The service as docker-compose.yml deploys it, in containers of a project of its own, with volumes of its own."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import httpx
import pytest
from docker.models.containers import Container
from playwright.sync_api import Page, sync_playwright
from testcontainers.compose import DockerCompose

from playground.ports import LOOPBACK, PortLease
from playground.processes import wait_until

REPOSITORY = Path(__file__).parent.parent.parent
PROJECT = "keeperless-system-test"
NEWER = "newer"


class Service:
    """The containers of the profile `demo`, and the API on this machine: olga asks, and anna approves."""

    def __init__(self, compose: DockerCompose, client: docker.DockerClient, api: httpx.Client) -> None:
        self.compose = compose
        self._docker = client
        self._api = api
        admin = {"Authorization": f"Bearer {self.in_container('api', 'cat', 'first-key').strip()}"}

        def key_of(principal: str, *roles: str) -> str:
            body = {"principal": principal, "roles": roles}
            return str(api.post("/keys", json=body, headers=admin).raise_for_status().json()["key"])

        self._api.headers["Authorization"] = f"Bearer {key_of('olga', 'operator', 'approver')}"
        self._anna = key_of("anna", "approver")

    def containers(self) -> dict[str, Container]:
        """By service, those that have ended as well."""
        return {c.Service: self._docker.containers.get(c.ID) for c in self.compose.get_containers(include_all=True)}

    def kill(self, service: str) -> None:
        """SIGKILL, as a crash of the machine would; then its start, and the proof that it is another process."""
        container = self.containers()[service]
        began = container.attrs["State"]["StartedAt"]
        container.kill()
        container.start()
        container.reload()
        assert container.attrs["State"]["StartedAt"] > began

    def down(self) -> None:
        """Without `--volumes`."""
        subprocess.run([*self.compose.compose_command_property, "down"], cwd=REPOSITORY, check=True)

    def up_with_a_newer_image(self) -> None:
        """Another tag, and so another image for Docker. (Its content is the same: there is no other release yet.)"""
        os.environ["KEEPERLESS_VERSION"] = NEWER
        self.compose.start()

    def in_container(self, service: str, *command: str) -> str:
        return str(self.compose.exec_in_container(list(command), service)[0])

    def approve(self, migration_id: str, gate: dict[str, Any]) -> None:
        """As anna, on the page. Olga asked for it, so hers is refused first."""
        path = f"/migrations/{migration_id}"
        body = {"gate": gate["name"], "evidence_hash": gate["evidence_hash"], "decision": "approve", "reason": "a test"}
        own = self._api.post(f"{path}/approvals", json=body)
        assert (own.status_code, own.json()["code"]) == (403, "own-request")
        with sync_playwright() as playwright:
            program = os.environ.get("CHROMIUM", "/usr/bin/chromium")
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            try:
                self._approve_in(browser.new_page(), str(self._api.base_url.join(path)), gate["name"])
            finally:
                browser.close()

    def _approve_in(self, page: Page, address: str, gate: str) -> None:
        page.goto(address)
        page.get_by_label("API key or token").fill(self._anna)
        page.get_by_role("button", name="Sign in").click()
        page.locator(f"#gate-{gate}").get_by_label("Reason").fill("all reports are clean")
        with page.expect_response("**/approvals", timeout=60_000) as answer:
            page.get_by_role("button", name=f"Approve {gate}").click()
        assert answer.value.status in {201, 202}, answer.value.text()

    def put(self, path: str, body: Any) -> Any:
        return self._api.put(path, json=body).raise_for_status().json()

    def post(self, path: str, body: Any) -> Any:
        return self._api.post(path, json=body).raise_for_status().json()

    def get(self, path: str) -> Any:
        """`None` while what answers is down, or what it asks."""
        try:
            answer = self._api.get(path)
        except httpx.TransportError:
            return None
        return None if answer.is_server_error else answer.raise_for_status().json()

    def await_answer(self, path: str, is_wanted: Callable[[Any], bool], what: str, deadline_seconds: float = 600.0) -> Any:
        """The first answer that is as wanted."""
        answers: list[Any] = []

        def is_so() -> bool:
            answers.append(self.get(path))
            return answers[-1] is not None and is_wanted(answers[-1])

        wait_until(is_so, what, deadline_seconds, every_seconds=0.5)
        return answers[-1]


class Writer:
    """Writes with `acks=all` from a container of its own, inside the network of the service."""

    def __init__(self, container: Container, servers: str) -> None:
        self._container = container
        self._servers = servers

    def run(self, command: str) -> str:
        code, output = self._container.exec_run(["python", "-m", "playground.load", command, "load", self._servers])
        assert code == 0, output.decode()
        return str(output.decode())

    def verify(self) -> dict[str, Any]:
        """Stop writing, and compare what was acknowledged with what can be read."""
        report: dict[str, Any] = json.loads(self.run("verify").splitlines()[-1])
        return report


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture(scope="module")
def service(client: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Up; at the end down, with its volumes. The log of all containers is kept in a file."""
    log = tmp_path_factory.mktemp("system") / "containers.log"
    with PortLease(2) as ports, pytest.MonkeyPatch.context() as environment:
        url = f"http://{LOOPBACK}:{(port := ports.take())}"
        environment.setenv("COMPOSE_PROJECT_NAME", PROJECT)
        environment.setenv("KEEPERLESS_VERSION", "older")
        environment.setenv("KEEPERLESS_PORT", str(port))
        environment.setenv("KEEPERLESS_TEMPORAL_UI_PORT", str(ports.take()))
        compose = DockerCompose(REPOSITORY, profiles=["demo"], build=True)
        try:
            compose.start()
            with httpx.Client(base_url=url, timeout=30.0, trust_env=False) as api:
                yield Service(compose, client, api)
        finally:
            log.write_text("".join(compose.get_logs()), encoding="utf-8")
            print("the containers' log:", log)
            compose.stop()


@pytest.fixture(scope="module")
def cluster(service: Service) -> dict[str, Any]:
    """The cluster of the profile, registered as the README says."""
    spec: dict[str, Any] = json.loads(service.in_container("nodes", "cat", "cluster.json"))
    service.put("/clusters/demo", spec)
    return spec


@pytest.fixture(scope="module")
def wanted(service: Service) -> dict[str, Any]:
    """The controllers that its migration creates."""
    told: dict[str, Any] = json.loads(service.in_container("nodes", "cat", "wanted.json"))
    return told


@pytest.fixture(scope="module")
def writer(service: Service, client: docker.DockerClient, cluster: dict[str, Any]) -> Iterator[Writer]:
    image = service.containers()["nodes"].image
    container = client.containers.run(image, ["sleep", "infinity"], detach=True, init=True, network=f"{PROJECT}_default")
    try:
        writer = Writer(container, ",".join(cluster["kafka"]["bootstrap_servers"]))
        writer.run("start")
        yield writer
    finally:
        container.remove(force=True)
