"""Bad days on real servers: what does not answer is waited for by name, what does not come up stops everything else."""

import os
import signal
from pathlib import Path

import pytest

from playground.processes import wait_until
from playground.rig import PLANNED_RESTARTS, Rig

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.mark.chaos
def test_a_broker_that_does_not_come_up_stops_everything_else_until_it_is_mended(rig: Rig) -> None:
    """A setting that Kafka reads without complaint and fails with as it starts, in a file whose edit was accepted."""
    broken = Path(rig.cluster.spec.brokers[1].properties_file)
    bad, good = (f"metric.reporters={name}" for name in ("org.example.Missing", "org.apache.kafka.common.metrics.JmxReporter"))
    broken.write_text(f"{broken.read_text('latin-1')}\n{bad}\n", "latin-1")
    rig.register()
    refused = rig.await_end(rig.migrate())
    assert [f["object"] for f in refused["findings"] if f["code"] == "PF44"] == ["broker-2"], (
        "it is seen before anything starts"
    )
    accepted = {"code": "PF44", "object": "broker-2", "by": "ann", "reason": "it looked harmless"}
    migration_id = rig.migrate(accepted_findings=[accepted])

    waiting = rig.await_event(
        migration_id,
        lambda e: e["kind"] == "waiting" and e["data"]["reason"] == "node-down",
        "the wait for the broker that died",
    )
    assert waiting["data"]["objects"] == ["broker-2"]
    assert "org.example.Missing" in rig.migration(migration_id)["waiting"]["detail"]
    stages = {node["name"]: node["stage"] for node in rig.migration(migration_id)["nodes"]}
    untouched = [name for name, stage in stages.items() if stage == "zookeeper"]
    assert set(untouched) <= {"broker-1", "broker-3"}, "at most the brokers before it were rolled"
    before = {node_id: rig.pid(node_id) for node_id in (1, 3)}

    broken.write_text(broken.read_text("latin-1").replace(bad, good), "latin-1")
    assert {node_id: rig.pid(node_id) for node_id in (1, 3)} == before
    rig.cluster.start_node(2)
    gate = rig.await_gate(migration_id)
    assert rig.approve(migration_id, gate["evidence_hash"]).status_code == 201
    assert rig.await_end(migration_id)["state"] == "succeeded"
    assert rig.restarts(migration_id) == PLANNED_RESTARTS
    assert good in broken.read_text("latin-1"), "the operator's own edit was kept"
    assert rig.verify().lost == frozenset()


@pytest.mark.chaos
def test_a_node_that_does_not_answer_is_waited_for_by_name(rig: Rig) -> None:
    """A controller is stopped in its tracks (SIGSTOP): no metrics, no quorum member. Then it goes on."""
    rig.register()
    migration_id = rig.migrate(restart_deadline="PT20S")
    rig.await_event(
        migration_id,
        lambda e: e["kind"] == "step-started" and e["data"]["action"] == "roll-node",
        "the first roll of a broker",
    )
    os.kill(rig.pid(3003), signal.SIGSTOP)
    try:
        wait_until(lambda: waits_for(rig, migration_id, "controller-3003"), "the wait for controller-3003", 120)
    finally:
        os.kill(rig.pid(3003), signal.SIGCONT)
    rig.await_gate(migration_id)
    assert rig.restarts(migration_id)["controller-3003"] == 0


def waits_for(rig: Rig, migration_id: str, node: str) -> bool:
    rig.events(migration_id)
    waiting = rig.migration(migration_id)["waiting"]
    return waiting is not None and any(node in part for part in waiting["objects"])
