"""Six brokers in three racks, on real servers under continuous writes: in waves, and one by one to compare the time."""

from collections import defaultdict
from datetime import datetime
from typing import Any

import pytest

from playground.rig import Rig

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(900)]

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
