"""A rig: a real cluster under load, a real Temporal, and Keeperless as processes of its own, driven through HTTP alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from domain.errors import Transient
from playground.cluster import PlaygroundCluster
from playground.load import Load
from playground.load_report import LoadReport
from playground.processes import wait_until
from playground.services import Services
from playground.temporal import TemporalServer

POLICY = {"poll_interval": "PT0.5S", "stable_samples": 2}
"""Quicker looks than the defaults, and nothing else: deadlines stay generous, because this machine may be busy."""


BUSY_TRIES = 20


@dataclass
class Rig:
    """Everything that a migration needs, running."""

    cluster: PlaygroundCluster
    temporal: TemporalServer
    services: Services
    load: Load
    seen: list[dict[str, Any]] = field(default_factory=list)

    def call(self, method: str, path: str, body: object = None) -> httpx.Response:
        return httpx.request(method, f"{self.services.api_url}{path}", json=body, timeout=30, trust_env=False)

    def answer(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """The answer's body. A busy server (503) is asked again, as it asks us to; anything else raises, with what it said."""
        response = self.call(method, path, body)
        for _ in range(BUSY_TRIES):
            if response.status_code != httpx.codes.SERVICE_UNAVAILABLE or method == "POST":
                break
            time.sleep(float(response.headers.get("Retry-After", "1")))
            response = self.call(method, path, body)
        if not response.is_success:
            raise Transient(f"{method} {path}: {response.status_code} {response.text}")
        return dict(response.json())

    def register(self, change: Callable[[dict[str, Any]], None] = lambda spec: None) -> str:
        """PUT the cluster, as described or changed; its name."""
        spec = self.cluster.spec.model_dump(mode="json")
        change(spec)
        self.answer("PUT", f"/clusters/{spec['name']}", spec)
        return str(spec["name"])

    def migrate(self, **policy: object) -> str:
        """POST a migration; its id."""
        body = {"cluster": self.cluster.spec.name, "kind": "zk-to-kraft", "policy": POLICY | policy}
        return str(self.answer("POST", "/migrations", body)["id"])

    def migration(self, migration_id: str) -> dict[str, Any]:
        return self.answer("GET", f"/migrations/{migration_id}")

    def events(self, migration_id: str) -> list[dict[str, Any]]:
        """All events so far, printing those not printed before."""
        events = list(self.answer("GET", f"/migrations/{migration_id}/events?limit=1000")["items"])
        for event in events[len(self.seen) :]:
            print(event["at"][11:19], event["kind"], str(event["data"])[:160])
        self.seen = events
        return events

    def await_event(
        self, migration_id: str, is_wanted: Callable[[dict[str, Any]], bool], what: str, deadline_seconds: float = 240
    ) -> dict[str, Any]:
        """The first event that is wanted, as soon as it is there."""

        def found() -> list[dict[str, Any]]:
            return [event for event in self.events(migration_id) if is_wanted(event)]

        def is_there() -> bool:
            try:
                return bool(found())
            except (httpx.TransportError, Transient):
                return False

        wait_until(is_there, what, deadline_seconds)
        return found()[0]

    def await_gate(self, migration_id: str, deadline_seconds: float = 400) -> dict[str, Any]:
        """The open gate, as soon as there is one."""
        wait_until(lambda: bool(self._gate(migration_id)), "gate finalize", deadline_seconds, every_seconds=0.5)
        return self._gate(migration_id)

    def _gate(self, migration_id: str) -> dict[str, Any]:
        self.events(migration_id)
        gates = self.migration(migration_id)["gates"]
        return dict(gates[0]) if gates else {}

    def approve(self, migration_id: str, evidence_hash: str) -> httpx.Response:
        body = {"gate": "finalize", "decision": "approve", "reason": "all is well", "evidence_hash": evidence_hash}
        return self.call("POST", f"/migrations/{migration_id}/approvals", body)

    def await_end(self, migration_id: str, deadline_seconds: float = 300) -> dict[str, Any]:
        """The migration once it has ended."""

        def has_ended() -> bool:
            self.events(migration_id)
            return self.migration(migration_id)["state"] not in {"planning", "running", "waiting", "held"}

        wait_until(has_ended, "the end of the migration", deadline_seconds, every_seconds=0.5)
        self.events(migration_id)
        return self.migration(migration_id)

    def pid(self, node_id: int) -> int:
        """The pid in a node's pid file, alive or not."""
        return int(Path(self.cluster.spec.node(node_id).driver.service.pid_file).read_text())

    def restarts(self, migration_id: str) -> dict[str, int]:
        return {node["name"]: node["restarts"] for node in self.migration(migration_id)["nodes"]}

    def verify(self) -> LoadReport:
        """Stop writing and read everything back; prints what was found."""
        self.load.await_acknowledged(200)
        self.load.stop()
        report = self.load.verify()
        print(
            f"acknowledged {report.acknowledged}, read back {report.read_back}, lost {len(report.lost)}, "
            f"duplicated {len(report.duplicated)}, longest pause {report.longest_pause_seconds:.2f} s"
        )
        return report


PLANNED_RESTARTS = {f"broker-{i}": 2 for i in (1, 2, 3)} | {f"controller-{i}": 1 for i in (3001, 3002, 3003)}
