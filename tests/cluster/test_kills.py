"""The whole migration once more, with `kill -9` of everything of ours at the worst moments.

A kill is timed by what is observed, not by a clock: the node's old process is gone, the new one is not proven yet. That it
was felt shows in the attempt, which rose; that it did no harm shows in the restarts, which did not.
"""

from typing import Any

import pytest

from playground.processes import is_alive, wait_until
from playground.rig import PLANNED_RESTARTS, Rig
from playground.services import Program

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


def kill_worker_in_the_middle_of_a_roll(rig: Rig, migration_id: str, role: str, stage: str) -> int:
    """Kill the activity worker once the first node of a roll has gone down, start another; the step's number."""
    started = rig.await_event(
        migration_id,
        lambda e: e["kind"] == "step-started" and e["data"]["action"] == "roll-node" and is_of(e, role, stage),
        f"the roll of a {role} to {stage}",
    )
    node_id = int(started["data"]["node"].rpartition("-")[2])
    old = rig.pid(node_id)
    wait_until(lambda: not is_alive(old), f"{started['data']['node']} going down", 120, every_seconds=0.02)
    rig.services.kill(Program.ACTIVITIES)
    rig.services.start(Program.ACTIVITIES)
    print(f"killed the activity worker while {started['data']['node']} was between its two processes")
    return int(started["data"]["step"])


def is_of(event: dict[str, Any], role: str, stage: str) -> bool:
    return str(event["data"]["node"]).startswith(role) and event["data"]["stage"] == stage


@pytest.mark.chaos
def test_kills_in_every_roll_lose_nothing_and_restart_nothing_twice(rig: Rig) -> None:
    rig.register()
    migration_id = rig.migrate()
    killed = [
        kill_worker_in_the_middle_of_a_roll(rig, migration_id, "broker", "migration"),
        kill_worker_in_the_middle_of_a_roll(rig, migration_id, "broker", "kraft"),
    ]

    gate = rig.await_gate(migration_id)
    rig.services.kill(Program.WORKFLOWS)
    late = rig.approve(migration_id, gate["evidence_hash"])
    assert late.status_code == 202, "no workflow worker answers: the approval is delivered later"
    rig.services.start(Program.WORKFLOWS)
    killed.append(kill_worker_in_the_middle_of_a_roll(rig, migration_id, "controller", "kraft"))
    rig.temporal.kill()
    rig.temporal.start()

    ended = rig.await_end(migration_id)
    assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
    assert rig.restarts(migration_id) == PLANNED_RESTARTS
    done = [event["data"] for event in rig.events(migration_id) if event["kind"] == "step-done"]
    attempts = {step["step"]: step["attempt"] for step in done if step["action"] == "roll-node"}
    assert all(attempts[step] > 1 for step in killed), f"a kill was not felt: {attempts}"
    report = rig.verify()
    assert report.lost == frozenset()
