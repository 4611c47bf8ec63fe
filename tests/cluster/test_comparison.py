"""ZooKeeper and KRaft of a real cluster, and clients' data, compared under continuous writes before anybody may finalise."""

from typing import Any

import pytest

from playground.rig import PLANNED_RESTARTS, Rig
from playground.seed import TOPICS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

CONFIG = "/config/topics/orders"
EDITED = {"version": 1, "config": {"min.insync.replicas": "1", "compression.type": "zstd"}}


def report_of(rig: Rig, migration_id: str, check: str = "metadata") -> dict[str, Any]:
    """The newest of this check."""
    reports = rig.answer("GET", f"/migrations/{migration_id}/reports")["items"]
    newest = next(report for report in reports if report["check"] == check)
    print(f"--- {newest['verdict']} by {newest['engine']} in {newest['seconds']}: {newest['first']} {newest['not_read']}")
    return dict(newest)


def test_a_znode_edited_behind_kafkas_back_closes_the_gate_until_it_is_repaired(rig: Rig) -> None:
    name = rig.register()
    migration_id = rig.migrate(recheck_interval="PT5S")
    gate = rig.await_gate(migration_id)
    report = report_of(rig, migration_id)
    assert gate["evidence"]["report"]["content_hash"] == report["content_hash"]
    assert (report["verdict"], report["not_read"]) == ("clean", [])
    counts = report["counts"]
    assert counts["topic"]["equal"] >= len(TOPICS)
    assert counts["partition"]["equal"] >= sum(topic.partitions for topic in TOPICS)
    assert all(counts[kind]["equal"] for kind in ("topic-config", "broker-config", "quota", "scram", "acl"))
    baseline, messages = (report_of(rig, migration_id, check) for check in ("baseline", "messages"))
    assert (baseline["verdict"], messages["verdict"], messages["not_read"]) == ("clean", "clean", [])
    assert baseline["counts"]["batch"]["left"] > 0
    assert messages["counts"]["batch"]["equal"] > 0
    assert messages["counts"]["group-offset"]["equal"] > 0
    assert gate["evidence"]["messages"]["content_hash"] == messages["content_hash"]

    before = rig.by_hand.znode(CONFIG)
    assert before is not None
    rig.by_hand.put_znode(CONFIG, EDITED)
    rig.answer("POST", f"/clusters/{name}/checks", {})
    waiting = rig.await_wait(migration_id, "drift-found")
    assert waiting["objects"] == ["topic-config orders/min.insync.replicas"]
    assert rig.approve(migration_id, gate["evidence_hash"]).status_code == 409
    assert "drift" in {loss["name"] for loss in rig.preview(migration_id)["losses"]}

    rig.by_hand.put_znode(CONFIG, before)
    again = rig.await_gate(migration_id)
    assert again["evidence_hash"] != gate["evidence_hash"], "what was approved before the drift must not count after it"
    assert rig.approve(migration_id, again["evidence_hash"]).is_success
    assert rig.await_end(migration_id)["state"] == "succeeded"
    assert rig.restarts(migration_id) == PLANNED_RESTARTS
