"""An approval at the gate of a real cluster: what waits in a hold begins only by its name, and what a hold has voided never."""

from typing import Any

import pytest

from playground.processes import wait_until
from playground.rig import Rig

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

TOPIC = "/brokers/topics/payments"


def approvals_of(rig: Rig, migration_id: str) -> list[dict[str, Any]]:
    """All that were taken, as the ledger has them."""
    commands = rig.answer("GET", f"/migrations/{migration_id}/commands")["items"]
    return [command for command in commands if command["kind"] == "approve" and command["status"] != "refused"]


def decide(rig: Rig, migration_id: str, gate: dict[str, Any], decision: str) -> int:
    body = {"gate": gate["name"], "decision": decision, "reason": "tried", "evidence_hash": gate["evidence_hash"]}
    return rig.call("POST", f"/migrations/{migration_id}/approvals", body).status_code


def has_all_flags(rig: Rig) -> bool:
    return all(rig.by_hand.has_flag(controller.id) for controller in rig.cluster.spec.controllers)


def hold(rig: Rig, migration_id: str) -> None:
    rig.hold(migration_id)
    rig.await_migration(migration_id, lambda m: m["state"] == "held" and m["gates"], "the hold, with the gate behind it")


def close_the_gate_and_open_it(rig: Rig, migration_id: str) -> None:
    """A topic that loses its id closes the gate. The fix puts back the id that its replicas have, and the gate opens again."""
    znode = rig.by_hand.znode(TOPIC) or {}
    rig.by_hand.put_znode(TOPIC, {key: value for key, value in znode.items() if key != "topic_id"})
    seen = rig.await_migration(
        migration_id, lambda m: m["waiting"] and m["waiting"]["reason"] == "topic-without-id", "the wait for the lost id"
    )
    assert seen["gates"] == []
    blockers = rig.answer("GET", f"/migrations/{migration_id}/blockers")["items"]
    rig.by_hand.type_fix(next(item["fix"] for item in blockers if item["code"] == "topic-without-id"))
    assert (rig.by_hand.znode(TOPIC) or {})["topic_id"] == rig.by_hand.topic_id_on_disk("payments")


@pytest.mark.chaos
def test_an_approval_in_a_hold_begins_only_by_its_name(rig: Rig) -> None:
    rig.register()
    migration_id = rig.migrate()
    rig.await_gate(migration_id)
    close_the_gate_and_open_it(rig, migration_id)
    gate = rig.await_gate(migration_id)

    # Approved, and held a moment later: it is void, and the resume only leads to the gate again.
    assert decide(rig, migration_id, gate, "approve") == 201
    hold(rig, migration_id)
    assert [one["approval"] for one in approvals_of(rig, migration_id)] == ["void"]
    assert "approval-void" in [event["kind"] for event in rig.events(migration_id)]
    rig.resume(migration_id)
    gate = rig.await_gate(migration_id)
    assert has_all_flags(rig)

    # Approved while it is held: it is armed, and shown wherever the hold is.
    hold(rig, migration_id)
    assert decide(rig, migration_id, gate, "approve") == 201
    seen = rig.await_migration(migration_id, lambda m: bool(m["approvals"]), "the armed approval")
    (armed,) = seen["approvals"]
    assert (seen["state"], armed["state"], armed["gate"], armed["at"] < armed["until"]) == ("held", "armed", "finalize", True)
    held = [item for item in rig.answer("GET", f"/migrations/{migration_id}/blockers")["items"] if item["code"] == "held"]
    assert "The approval of finalize by" in held[0]["observed"]
    assert '"begin": "finalize"' in held[0]["fix"]

    # A plain resume is refused with the gate's name, and nothing has begun.
    plain = rig.call("POST", f"/migrations/{migration_id}/resume", {"reason": "the next shift"})
    assert (plain.status_code, plain.json()["code"], plain.json()["gate"]) == (409, "begin-not-named", "finalize")
    assert rig.migration(migration_id)["state"] == "held"
    assert has_all_flags(rig)

    # Withdrawn, it needs no name any more; given again, the resume that names it finalises.
    assert decide(rig, migration_id, gate, "reject") == 201
    assert rig.migration(migration_id)["approvals"] == []
    # The migration opens the gate again with its next look, and `gates` may show the one of before until then.
    wait_until(lambda: decide(rig, migration_id, gate, "approve") == 201, "the gate behind the hold", 60, every_seconds=1)
    begun = rig.call("POST", f"/migrations/{migration_id}/resume", {"reason": "now", "begin": "finalize"})
    assert begun.status_code == 202
    assert rig.await_end(migration_id)["state"] == "succeeded"

    given = approvals_of(rig, migration_id)
    assert [one["approval"] for one in given] == ["void", "withdrawn", "done"]
    consumed = rig.await_event(migration_id, lambda e: e["kind"] == "approval-consumed", "the consumption")
    first = rig.await_event(
        migration_id,
        lambda e: e["kind"] == "step-started" and e["data"]["node"].startswith("controller-") and e["data"]["stage"] == "kraft",
        "the first controller without its flag",
    )
    assert given[-1]["consumed_by"] == consumed["data"]["attempt"] == f"{migration_id}/{first['data']['step']}"
    print(f"--- consumed at {given[-1]['consumed_at']} by {given[-1]['consumed_by']}")
    assert rig.verify().lost == frozenset()


@pytest.mark.chaos
def test_a_hold_in_the_middle_of_a_finalisation_takes_effect_after_it(rig: Rig) -> None:
    rig.register()
    migration_id = rig.migrate()
    gate = rig.await_gate(migration_id)
    assert decide(rig, migration_id, gate, "approve") == 201
    rig.await_event(migration_id, lambda e: e["kind"] == "approval-consumed", "the first irreversible write")
    late = rig.call("POST", f"/migrations/{migration_id}/approvals", {
        "gate": "finalize", "decision": "reject", "reason": "too late", "evidence_hash": gate["evidence_hash"],
    })  # fmt: skip
    assert late.status_code == 409
    assert "was consumed at" in late.json()["detail"]
    held = rig.call("POST", f"/migrations/{migration_id}/hold", {"reason": "wait"}).json()
    assert held["takes_effect_after"] == "finalize"
    seen = rig.await_migration(migration_id, lambda m: m["state"] == "held", "the hold after the end")
    assert (seen["phase"], seen["hold"]["takes_effect"]) == ("KRAFT", "after-section")
    rig.resume(migration_id)
    assert rig.await_end(migration_id)["state"] == "succeeded"
    assert len([event for event in rig.events(migration_id) if event["kind"] == "approved"]) == 1
    assert rig.verify().lost == frozenset()
