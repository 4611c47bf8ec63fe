"""Six brokers in three racks, on real servers under continuous writes: in waves, with a worker that is killed in the middle of
them, and one by one to compare the time."""

from collections import defaultdict
from datetime import datetime
from typing import Any

import pytest

from playground.processes import is_alive, wait_until
from playground.rig import FORWARD_SECONDS, Rig
from playground.services import Program

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(1500)]

BROKERS, RACKS = 6, 3
SIZE = {"broker_count": BROKERS, "rack_count": RACKS}
ROLLS = ("migration", "kraft")
RESTARTS = {f"broker-{i}": 2 for i in range(1, BROKERS + 1)} | {f"controller-{i}": 1 for i in (3001, 3002, 3003)}


@pytest.mark.parametrize(("max_parallel", "sizes"), [(2, [1, 2, 2, 1]), (1, [1] * 6)], ids=["in-waves", "one-by-one"])
@pytest.mark.parametrize("rig", [SIZE], indirect=True, ids=["six-brokers"])
def test_six_brokers_go_rack_by_rack_and_nothing_is_lost(rig: Rig, max_parallel: int, sizes: list[int]) -> None:
    name = rig.register()
    controller = rig.answer("GET", f"/clusters/{name}/observation")["gauges"]["zookeeper_controller"]
    migration_id = rig.migrate(max_parallel=max_parallel)
    ended = rig.complete(migration_id)
    assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
    assert rig.restarts(migration_id) == RESTARTS

    done = broker_events(rig.events(migration_id), "step-done")
    rolls = {stage: waves_told(done, stage) for stage in ROLLS}
    for stage, waves in rolls.items():
        print(f"{stage}: {waves}, {seconds_of(rig.seen, stage):.1f} s")
        assert [len(wave) for wave in waves] == sizes
        assert all(len({rack_of(node) for node in wave}) == 1 for wave in waves)
    assert rolls["migration"][-1] == [f"broker-{controller}"]
    returned = [event["data"]["leadership"] for event in done if "leadership" in event["data"]]
    print(f"max_parallel {max_parallel}: both rolls {sum(seconds_of(rig.seen, s) for s in ROLLS):.1f} s; {returned}")
    assert bool(returned) is (max_parallel > 1)
    assert all(said.startswith("preferred leaders lead") for said in returned), returned
    report = rig.verify()
    assert report.lost == frozenset()
    assert report.acknowledged > 1000


@pytest.mark.parametrize("rig", [SIZE], indirect=True, ids=["six-brokers"])
def test_our_worker_is_killed_in_a_wave_of_each_roll(rig: Rig) -> None:
    """Somebody of the wave is between two processes then. Each broker is restarted once, whoever finishes it."""
    rig.register()
    migration_id = rig.migrate(max_parallel=2)
    killed = [kill_worker_in_a_wave(rig, migration_id, stage) for stage in ROLLS]
    ended = rig.complete(migration_id)
    assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
    assert rig.restarts(migration_id) == RESTARTS
    ends = [e["data"] for kind in ("step-done", "step-blocked") for e in broker_events(rig.seen, kind)]
    for step in killed:
        told = [data for data in ends if data["step"] == step]
        assert len(told) == 2
        assert all(data["attempt"] > 1 for data in told), f"the kill was not felt: {told}"
    left_out = [data["node"] for data in ends if "decided again" in data.get("why", "")]
    print(f"killed in steps {killed}; left out and rolled by themselves: {left_out}")
    assert rig.verify().lost == frozenset()


def kill_worker_in_a_wave(rig: Rig, migration_id: str, stage: str) -> int:
    """Kill the activity worker as soon as a process of the first wave of two is gone, start another; the step's number."""
    data = rig.await_event(
        migration_id,
        lambda e: e["kind"] == "step-started" and "together" in e["data"] and e["data"]["stage"] == stage,
        f"the first wave of two to {stage}",
        FORWARD_SECONDS,
    )["data"]
    old = [rig.pid(int(node.removeprefix("broker-"))) for node in data["together"]]
    wait_until(lambda: not all(map(is_alive, old)), f"one of {data['together']} going down", 120, every_seconds=0.02)
    rig.services.kill(Program.ACTIVITIES)
    rig.services.start(Program.ACTIVITIES)
    return int(data["step"])


def broker_events(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [e for e in events if e["kind"] == kind and e["data"]["node"].startswith("broker")]


def waves_told(done: list[dict[str, Any]], stage: str) -> list[list[str]]:
    """Nodes by the step that rolled them; each event of a wave names all of them."""
    waves: defaultdict[int, list[str]] = defaultdict(list)
    for data in (event["data"] for event in done if event["data"]["stage"] == stage):
        waves[data["step"]].append(data["node"])
        assert data["restarted"]
    for data in (event["data"] for event in done if event["data"]["stage"] == stage):
        assert data.get("together", [data["node"]]) == waves[data["step"]]
    return [waves[step] for step in sorted(waves)]


def rack_of(node: str) -> int:
    return (int(node.removeprefix("broker-")) - 1) % RACKS


def seconds_of(events: list[dict[str, Any]], stage: str) -> float:
    """From the first start to the last end of a roll."""
    started, done = (
        [datetime.fromisoformat(e["at"]) for e in broker_events(events, kind) if e["data"]["stage"] == stage]
        for kind in ("step-started", "step-done")
    )
    return (max(done) - min(started)).total_seconds()
