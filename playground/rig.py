"""A rig: a real cluster under load, a real Temporal, and Keeperless as processes of its own, driven through HTTP alone."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from domain.cluster import ClusterSpec
from domain.configuration.properties import ENCODING, parse
from domain.errors import Transient
from domain.zk_to_kraft.node_config import stage_of
from playground.by_hand import MIGRATION, ByHand
from playground.cluster import PlaygroundCluster
from playground.content import Content, content_of
from playground.load import Load
from playground.load_report import LoadReport, duplicates_in_words
from playground.own_unit import accepting
from playground.processes import running, wait_until
from playground.services import Services
from playground.temporal import TemporalServer
from playground.wanted import before, wanted_json
from playground.waypoints import Waypoint

POLICY = {"poll_interval": "PT0.25S", "stable_samples": 2, "min_zookeeper_silence": "PT5S"}
"""Quicker looks than the defaults, and nothing else: deadlines stay generous, because this machine may be busy."""

BUSY_TRIES = 20
GOING_ON = frozenset({"planning", "running", "waiting", "held", "reverting"})
"""States of a migration that has not ended."""
CALL_SECONDS = 30
FORWARD_SECONDS = 800.0
BACK_SECONDS = 600.0
ROLLBACK_TRIES = 3
NO_WAY_BACK = "no-way-back"
METADATA_LOG = "__cluster_metadata-0"


@dataclass(frozen=True)
class FileSeen:
    """A file as it lies on disk: what a way back has to restore."""

    content: bytes
    mode: int
    uid: int
    gid: int

    @classmethod
    def at(cls, path: Path) -> "FileSeen":
        seen = path.stat()
        return cls(path.read_bytes(), seen.st_mode, seen.st_uid, seen.st_gid)


@dataclass(frozen=True)
class Snapshot:
    """A cluster before anything is done to it: what a way back has to restore. `files` by path."""

    files: dict[str, FileSeen]
    content: Content


@dataclass
class Rig:
    """Everything that a migration needs, running. `seen`: the events of the migration looked at last.

    One client for all calls, because making one costs more than a call; no connection outlives its call, because servers die.
    """

    cluster: PlaygroundCluster
    temporal: TemporalServer
    services: Services
    load: Load
    http: httpx.Client
    seen: list[dict[str, Any]] = field(default_factory=list)
    spec: ClusterSpec = field(init=False)
    """As it was registered last, with what its migration wants."""

    def __post_init__(self) -> None:
        self.spec = self.cluster.spec

    def call(self, method: str, path: str, body: object = None) -> httpx.Response:
        return self.http.request(method, f"{self.services.api_url}{path}", json=body)

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
        told = self.cluster.spec.model_dump(mode="json")
        change(told)
        self.spec = ClusterSpec.model_validate(told)
        self.answer("PUT", f"/clusters/{self.spec.name}", before(self.spec).model_dump(mode="json"))
        return self.spec.name

    @property
    def by_hand(self) -> ByHand:
        return ByHand(self.cluster)

    def plan(self, **policy: object) -> dict[str, Any]:
        """POST a plan; the plan once it is made. One that could not look at everything is made again, for two minutes: a
        broker's first page of metrics takes its time on a busy machine.
        """
        deadline = time.monotonic() + 120
        while (plan := self._plan(policy))["unknown"] and time.monotonic() < deadline:
            pass
        return plan

    def _plan(self, policy: dict[str, object]) -> dict[str, Any]:
        body = self._asked(policy)
        url = str(self.answer("POST", "/plans", body)["links"]["self"])
        wait_until(lambda: self.answer("GET", url)["state"] != "running", "the plan", 120, every_seconds=0.2)
        made = self.answer("GET", url)
        if made["plan"] is None:
            raise Transient(f"the plan was not made: {made['detail']}")
        return dict(made["plan"])

    def _asked(self, policy: dict[str, object]) -> dict[str, object]:
        return {
            "cluster": self.spec.name,
            "kind": "zk-to-kraft",
            "policy": accepting(POLICY | policy),
            "wanted": wanted_json(self.spec),
        }

    def migrate_as_planned(self, plan: dict[str, Any]) -> httpx.Response:
        """POST a migration that names the plan."""
        self.seen = []
        body = {"cluster": self.cluster.spec.name, "kind": "zk-to-kraft", "plan_id": plan["id"]}
        return self.call("POST", "/migrations", body)

    def migrate(self, *, hold: bool = False, **policy: object) -> str:
        """POST a migration; its id. `hold`: it looks, and waits for somebody to say where to go."""
        body = self._asked(policy)
        self.seen = []
        return str(self.answer("POST", "/migrations", body | ({"hold": True} if hold else {}))["id"])

    def migration(self, migration_id: str) -> dict[str, Any]:
        return self.answer("GET", f"/migrations/{migration_id}")

    def events(self, migration_id: str) -> list[dict[str, Any]]:
        """All events so far, asking for those not seen before, and printing them."""
        if any(event["migration_id"] != migration_id for event in self.seen[:1]):
            self.seen = []
        after = self.seen[-1]["seq"] if self.seen else 0
        events = list(self.answer("GET", f"/migrations/{migration_id}/events?limit=1000&after={after}")["items"])
        for event in events:
            print(event["at"][11:19], event["kind"], str(event["data"])[:400])
        self.seen = [*self.seen, *events]
        return self.seen

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

        self._await(migration_id, is_there, what, deadline_seconds)
        return found()[0]

    def await_gate(
        self, migration_id: str, name: str = "finalize", deadline_seconds: float = FORWARD_SECONDS
    ) -> dict[str, Any]:
        """The open gate with this name, as soon as there is one."""
        self.await_migration(migration_id, lambda m: bool(gates_of(m, name)), f"gate {name}", deadline_seconds)
        return gates_of(self.migration(migration_id), name)[0]

    def await_migration(
        self, migration_id: str, is_wanted: Callable[[dict[str, Any]], bool], what: str, deadline_seconds: float = 120.0
    ) -> dict[str, Any]:
        """The migration, as soon as it is as wanted. An API that is busy or restarting is asked again."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            try:
                self.events(migration_id)
                found[:] = [self.migration(migration_id)]
            except (httpx.TransportError, Transient):
                return False
            return is_wanted(found[0])

        self._await(migration_id, is_there, what, deadline_seconds)
        return found[0]

    def _await(self, migration_id: str, is_there: Callable[[], bool], what: str, deadline_seconds: float) -> None:
        """As `wait_until`; in vain, it says what holds the migration."""
        try:
            wait_until(is_there, what, deadline_seconds, every_seconds=0.3)
        except Transient as error:
            held_by = self.answer("GET", f"/migrations/{migration_id}/blockers")
            raise Transient(f"{error}; {json.dumps(held_by, indent=1)}") from error

    def await_phase(self, migration_id: str, phase: str, deadline_seconds: float = 120.0) -> None:
        self.await_migration(migration_id, lambda m: m["phase"] == phase, f"phase {phase}", deadline_seconds)

    def await_wait(self, migration_id: str, reason: str, deadline_seconds: float = 120.0) -> dict[str, Any]:
        """What it waits for, once it waits for this reason."""
        wanted = self.await_migration(
            migration_id, lambda m: (m["waiting"] or {}).get("reason") == reason, f"the wait {reason}", deadline_seconds
        )
        return dict(wanted["waiting"])

    def forward_to(self, waypoint: Waypoint, migration_id: str) -> None:
        """Leads a migration to a point on its way, and holds it there, where it can be held."""
        self.await_event(
            migration_id, lambda _: waypoint.is_reached(self.seen), f"what leads to {waypoint.name}", FORWARD_SECONDS
        )
        last = [e["data"] for e in self.seen if e["kind"] == "step-started" and e["data"]["node"] != "cluster"][-1]
        wait_until(lambda: self._is_begun(last), f"the first write of step {last}", 60, every_seconds=0.05)
        if not waypoint.can_hold:
            return
        self.hold(migration_id)
        self.await_migration(migration_id, lambda m: m["state"] == "held", f"the hold at {waypoint.name}")
        self.await_phase(migration_id, waypoint.phase)
        print(f"--- held: {waypoint.name}")

    def _is_begun(self, step: dict[str, Any]) -> bool:
        """Whether the node's file is that of the step: a hold that came before would keep it from being taken at all."""
        node = next(n for n in self.cluster.spec.nodes if self.cluster.spec.node_name(n.id) == step["node"])
        path = Path(node.properties_file)
        if not path.exists():
            return False
        return bool(stage_of(parse(path.read_text(ENCODING)), self.cluster.spec.role(node.id)) == step["stage"])

    def hold(self, migration_id: str) -> None:
        self.answer("POST", f"/migrations/{migration_id}/hold", {"reason": "a person has to check"})

    def resume(self, migration_id: str) -> None:
        self.answer("POST", f"/migrations/{migration_id}/resume", {"reason": "somebody has looked"})

    def approve(self, migration_id: str, evidence_hash: str, gate: str = "finalize") -> httpx.Response:
        body = {"gate": gate, "decision": "approve", "reason": "all is well", "evidence_hash": evidence_hash}
        return self.call("POST", f"/migrations/{migration_id}/approvals", body)

    def preview(self, migration_id: str) -> dict[str, Any]:
        """What a rollback would do now. A node that is just restarting is unknown: then it is looked at again."""
        path = f"/migrations/{migration_id}/rollback-preview"
        wait_until(lambda: self.call("GET", path).json().get("code") != NO_WAY_BACK, "a look at all nodes", 30)
        preview = self.answer("GET", path)
        losses = [loss["name"] for loss in preview["losses"]]
        print(
            f"--- preview in {preview['phase']}: {len(preview['steps'])} steps, losses {losses}, unknown {preview['unknown']}"
        )
        return preview

    def rollback(self, migration_id: str, accept_loss: Sequence[str] = ()) -> dict[str, Any]:
        """Ask for the way back: bound to a preview of this moment, or with the losses named. Gives the preview.

        One that does not hold any more when it is verified is looked at and asked for again, as people would.
        """
        for _ in range(ROLLBACK_TRIES):
            preview = self.preview(migration_id)
            bound = {"accept_loss": list(accept_loss)} if accept_loss else {"preview_hash": preview["preview_hash"]}
            response = self.call("POST", f"/migrations/{migration_id}/rollback", {"reason": "not today", **bound})
            if response.is_success and self._fate(migration_id, response.json()["id"]) != "refused":
                return preview
            print(f"--- the rollback was refused: {response.text}")
        raise Transient(f"the rollback was refused {ROLLBACK_TRIES} times")

    def _fate(self, migration_id: str, command_id: str) -> str:
        """What became of a command, once its migration has looked."""
        fates: list[str] = []

        def is_known() -> bool:
            commands = self.answer("GET", f"/migrations/{migration_id}/commands")["items"]
            fates[:] = [command["status"] for command in commands if command["id"] == command_id]
            return fates != ["pending"]

        wait_until(is_known, "the answer to the rollback", 60, every_seconds=0.3)
        return fates[0]

    def await_end(self, migration_id: str, deadline_seconds: float = BACK_SECONDS) -> dict[str, Any]:
        """The migration once it has ended."""
        ended = self.await_migration(
            migration_id, lambda m: m["state"] not in GOING_ON, "the end of the migration", deadline_seconds
        )
        self.events(migration_id)
        return ended

    def complete(self, migration_id: str) -> dict[str, Any]:
        """Through the gate to the end."""
        gate = self.await_gate(migration_id)
        response = self.approve(migration_id, gate["evidence_hash"])
        if not response.is_success:
            raise Transient(f"the approval was refused: {response.text}")
        return self.await_end(migration_id)

    # --- what the cluster looks like from outside --------------------------------------------------------------------

    def files(self) -> dict[str, FileSeen]:
        """Every properties file that exists, by its path."""
        paths = [Path(node.properties_file) for node in self.cluster.spec.nodes]
        return {str(path): FileSeen.at(path) for path in paths if path.exists()}

    def snapshot(self) -> Snapshot:
        return Snapshot(self.files(), content_of(self.cluster.bootstrap_servers))

    def differences(self, before: Snapshot) -> list[str]:
        """What is not as it was, in plain ZooKeeper mode; empty after a way back that deserves its name."""
        self.cluster.await_in_sync()
        now = self.snapshot()
        paths = sorted({*before.files, *now.files})
        found = [f"{path} differs" for path in paths if before.files.get(path) != now.files.get(path)]
        found += [f"topic {name} differs" for name in lost_topics(before.content, now.content)]
        found += [] if before.content.acls == now.content.acls else ["the ACLs differ"]
        found += [] if before.content.scram == now.content.scram else ["the SCRAM users differ"]
        found += [] if self.by_hand.is_controller_of_zookeeper() else ["no broker holds /controller"]
        return found + [f"left behind: {what}" for what in self.remains_of_kraft()]

    def remains_of_kraft(self) -> list[str]:
        """What a way back should have removed: processes, storage and files of controllers, copies of the quorum's log."""
        spec = self.cluster.spec
        running = [f"process of {c.id}" for c in spec.controllers if running_node(self.cluster, c.id) is not None]
        kept = [path for c in spec.controllers for path in map(Path, (c.properties_file, *c.log_dirs)) if _holds(path)]
        logs = [path / METADATA_LOG for b in spec.brokers for path in map(Path, b.log_dirs)]
        znodes = [MIGRATION] if self.by_hand.znode(MIGRATION) is not None else []
        return running + [str(path) for path in kept] + [str(path) for path in logs if path.exists()] + znodes

    def pid(self, node_id: int) -> int:
        """The pid in a node's pid file, alive or not."""
        return self.cluster.pid(node_id)

    def restarts(self, migration_id: str) -> dict[str, int]:
        return {node["name"]: node["restarts"] for node in self.migration(migration_id)["nodes"]}

    def verify(self) -> LoadReport:
        """Stop writing and read everything back; prints what was found."""
        self.load.await_acknowledged(200)
        self.load.stop()
        report = self.load.verify()
        duplicates = duplicates_in_words(len(report.duplicated), len(report.sent_again))
        print(
            f"acknowledged {report.acknowledged}, read back {report.read_back}, lost {len(report.lost)}, "
            f"{duplicates}, longest pause {report.longest_pause_seconds:.2f} s"
        )
        return report


def http_client() -> httpx.Client:
    return httpx.Client(timeout=CALL_SECONDS, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


def running_node(cluster: PlaygroundCluster, node_id: int) -> psutil.Process | None:
    return running(cluster.launch(node_id))


def gates_of(migration: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [gate for gate in migration["gates"] if gate["name"] == name]


def lost_topics(before: Content, now: Content) -> list[str]:
    """Those that are gone or are not what they were; new ones are nobody's loss."""
    return [name for name, topic in before.topics.items() if now.topics.get(name) != topic]


def _holds(path: Path) -> bool:
    """A file, or a directory with something in it."""
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


PLANNED_RESTARTS = {f"broker-{i}": 2 for i in (1, 2, 3)} | {f"controller-{i}": 1 for i in (3001, 3002, 3003)}
