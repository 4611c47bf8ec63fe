"""A cluster whose brokers and controllers speak SASL_SSL with each other goes to KRaft under writes, and nothing is lost."""

import pytest

from playground.rig import PLANNED_RESTARTS, Rig

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800), pytest.mark.chaos]


@pytest.mark.parametrize("rig", [{"is_secured": True}], ids=["secured"], indirect=True)
def test_a_cluster_with_tls_and_logins_goes_to_kraft(rig: Rig) -> None:
    rig.register()
    plan = rig.plan()
    assert (plan["is_blocked"], plan["unknown"]) == (False, []), plan["findings"]
    migration_id = rig.migrate_as_planned(plan).json()["id"]
    gate = rig.await_gate(migration_id, deadline_seconds=900)
    assert rig.approve(migration_id, gate["evidence_hash"]).status_code == 201
    ended = rig.await_end(migration_id)
    assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
    assert rig.restarts(migration_id) == PLANNED_RESTARTS
    report = rig.verify()
    assert report.lost == frozenset()
    assert report.acknowledged > 1000
    assert not [finding for finding in plan["findings"] if finding["code"] in {"PF29", "PF30"}]
