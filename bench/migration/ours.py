"""The same cluster, led by Keeperless: every check on, a person who approves without delay, observations every 0.2 s.

Phases and steps come from the migration's events; the pause between two steps belongs to the later one.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.migration.scene import Scene
from bench.migration.stretches import Stretch, Stretches
from domain.errors import Transient
from playground.ports import PortLease
from playground.rig import GOING_ON, Rig, gates_of, http_client
from playground.services import Services
from playground.temporal import TemporalPorts, TemporalServer

POLICY: Mapping[str, object] = {"poll_interval": "PT0.2S", "stable_samples": 3}
PHASE_OF = {
    "provision-controller": "controllers",
    "capture-baseline": "roll 1",
    "keep-metadata": "roll 1",
    "compare-copy": "copy",
    "compare-metadata": "before the gate",
    "compare-messages": "before the gate",
    "compare-end": "afterwards",
}
LOOK_SECONDS = 0.5
"""Of the person."""
DEADLINE_SECONDS = 3600.0


@contextmanager
def programs(directory: Path, spark: str) -> Iterator[tuple[TemporalServer, Services]]:
    """Temporal and our programs, ready."""
    with PortLease(5) as lease, TemporalServer(directory / "temporal", TemporalPorts.leased(lease)) as temporal:
        environment = {"KEEPERLESS_SPARK": spark}
        with Services(
            directory / "services", temporal.address, lease.take(), temporal.ui_url, extra_environment=environment
        ) as services:
            yield temporal, services


class Ours:
    """One migration through the API. `policy`: what differs from the defaults."""

    def __init__(self, scene: Scene, temporal: TemporalServer, services: Services, policy: Mapping[str, object]) -> None:
        self._scene, self._temporal, self._services, self._policy = scene, temporal, services, policy
        self.plan: dict[str, float] = {}

    def play(self) -> Stretches:
        """The migration's events are printed into a file. `plan`: seconds of the plan that a person reads before the start, and
        what it expected of the migration.
        """
        with http_client() as http, (self._scene.directory / "events.log").open("w") as log, redirect_stdout(log):
            rig = Rig(self._scene.cluster, self._temporal, self._services, self._scene.load, http)
            rig.register()
            begun = time.monotonic()
            plan = rig.plan(**self._policy)
            self.plan = {"seconds": time.monotonic() - begun, "estimate": plan["estimate"]["seconds"]}
            migration_id = rig.migrate_as_planned(plan).raise_for_status().json()["id"]
            self._approve(rig, migration_id)
            events = rig.events(migration_id)
            ensure_waves(events, len(self._scene.cluster.spec.brokers), int(str(self._policy["max_parallel"])))
            return stretches_of(events)

    def _approve(self, rig: Rig, migration_id: str) -> None:
        """Until the migration has ended."""
        deadline, approved = time.monotonic() + DEADLINE_SECONDS, set[str]()
        while (migration := rig.migration(migration_id))["state"] in GOING_ON:
            for gate in gates_of(migration, "finalize"):
                if gate["evidence_hash"] not in approved:
                    rig.approve(migration_id, gate["evidence_hash"])
                    approved.add(gate["evidence_hash"])
            if time.monotonic() > deadline:
                raise Transient(f"the migration has not ended after {DEADLINE_SECONDS:g} s: {rig.events(migration_id)[-3:]}")
            time.sleep(LOOK_SECONDS)
        if migration["state"] != "succeeded":
            raise Transient(f"the migration has {migration['state']}: {rig.events(migration_id)[-3:]}")


def stretches_of(events: list[dict[str, Any]]) -> Stretches:
    """By the steps' actions and stages: `roll-node` of brokers is a roll, of controllers it is finalising. The time that a
    person takes at the gate is left out.
    """
    zero, opened = _at(events[0]), 0.0
    told = Stretches()
    begun: dict[tuple[str, str], float] = {}
    for event in events:
        at, data = _at(event) - zero, event["data"]
        if event["kind"] == "step-started":
            if not begun:
                told.steps.append(Stretch("preflight", "", 0.0, at))
            begun[str(data["step"]), data["node"]] = at
        elif event["kind"] == "step-done":
            told.steps.append(Stretch(_phase_of(data), data["node"], begun[str(data["step"]), data["node"]], at))
        elif event["kind"] == "gate-opened":
            opened = at
            told.steps.append(Stretch("before the gate", "", at, at))
        elif event["kind"] == "approved":
            zero += at - opened
    told.total = _at(events[-1]) - zero
    told.steps.append(Stretch("afterwards", "", told.total, told.total))
    return told


def ensure_waves(events: list[dict[str, Any]], brokers: int, parallel: int) -> None:
    """Roll 1 begins with one broker and ends with one, and no wave is larger than asked. Raises `Transient`."""
    begun = [event for event in events if event["kind"] == "step-started" and event["data"]["action"] == "roll-node"]
    for stage in ("migration", "kraft"):
        of_stage = [one["data"]["step"] for one in begun if one["data"]["stage"] == stage and _is_broker(one["data"])]
        waves = [of_stage.count(step) for step in dict.fromkeys(of_stage)]
        has_canary = stage == "kraft" or (waves[0], waves[-1]) == (1, 1)
        if sum(waves) != brokers or max(waves) > parallel or not has_canary:
            raise Transient(f"brokers were restarted into {stage} in waves of {waves}, at most {parallel} at a time")


def _is_broker(step: dict[str, Any]) -> bool:
    return str(step["node"]).startswith("broker")


def _phase_of(step: dict[str, Any]) -> str:
    """A comparison belongs to the wait that it ends."""
    if step["action"] == "roll-node":
        return f"roll {1 if step['stage'] == 'migration' else 2}" if _is_broker(step) else "finalising"
    return PHASE_OF[step["action"]]


def _at(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["at"]).timestamp()
