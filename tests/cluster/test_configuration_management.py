"""Configuration management that writes the original files back every second, on real servers."""

from pathlib import Path
from typing import Any

import pytest

from domain.configuration.properties import parse
from playground.processes import wait_until
from playground.rig import PLANNED_RESTARTS, Rig
from playground.write_back import WriteBack

WITHOUT_COMPARISONS = {"compare_messages": False, "compare_copy": False}
"""Of clients' data and of Kafka's copy, which other tests are about."""

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(900)]


def with_hooks(loop: WriteBack) -> Any:
    def change(spec: dict[str, Any]) -> None:
        for node in (*spec["brokers"], *spec["quorum"]["controllers"]):
            node["driver"]["configuration_management"] = loop.hook(node["id"])

    return change


def test_with_a_hook_it_is_paused_for_the_whole_migration_and_runs_again_at_the_end(rig: Rig, tmp_path: Path) -> None:
    spec = rig.cluster.spec
    with WriteBack(spec.nodes, tmp_path / "agent") as loop:
        wait_until(lambda: min(loop.written[b.id] for b in spec.brokers) > 0, "its first run", 20)
        name = rig.register(with_hooks(loop))
        migration_id = rig.migrate(**WITHOUT_COMPARISONS)
        gate = rig.await_gate(migration_id, deadline_seconds=600)
        sight = rig.answer("GET", f"/clusters/{name}/observation")
        assert {node["configuration_management"] for node in sight["nodes"]} == {"paused-by-us"}
        assert all(loop.is_paused(node.id) for node in spec.nodes)
        written = dict(loop.written)
        loop.learn()  # It would put ZooKeeper back: so it is given the files of the last stage.
        assert rig.approve(migration_id, gate["evidence_hash"]).status_code == 201
        ended = rig.await_end(migration_id)
        assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
        assert rig.restarts(migration_id) == PLANNED_RESTARTS
        done = [event["data"] for event in rig.seen if event["kind"] == "step-done"]
        assert done[-1]["action"] == "release-configuration"
        assert len(done[-1]["changes"]) == len(spec.nodes)
        assert sum("configuration management paused" in step.get("changes", ()) for step in done) == len(spec.nodes)
        assert not any(loop.is_paused(node.id) for node in spec.nodes)
        wait_until(lambda: all(loop.written[b.id] > written[b.id] for b in spec.brokers), "its next run", 20)
    assert not list(Path(spec.brokers[0].properties_file).parent.glob(".keeperless/*.paused"))
    for broker in spec.brokers:
        assert parse(Path(broker.properties_file).read_text("latin-1"))["process.roles"] == "broker"
    report = rig.verify()
    assert report.lost == frozenset()
    print(f"written back while it ran: {loop.written}, until the pause {written}")


def test_without_a_hook_the_migration_waits_and_names_the_node(rig: Rig, tmp_path: Path) -> None:
    """Its run comes when the first broker is hybrid."""
    rig.register()
    loop = WriteBack(rig.cluster.spec.brokers, tmp_path / "agent")
    migration_id = rig.migrate(restart_deadline="PT40S", **WITHOUT_COMPARISONS)
    first = rig.await_event(
        migration_id, lambda e: e["kind"] == "step-done" and e["data"]["action"] == "roll-node", "a hybrid broker", 400
    )
    with loop:
        waiting = rig.await_wait(migration_id, "file-changed")
        assert first["data"]["node"] in waiting["objects"]
        sight = rig.answer("GET", f"/clusters/{rig.cluster.spec.name}/observation")
        assert {node["configuration_management"] for node in sight["nodes"]} == {None}
