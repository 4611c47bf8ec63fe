"""Bad days on real servers, under continuous writes: what breaks on the way, by itself or by somebody's hand."""

import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kazoo.security import make_acl

from domain.errors import Transient
from playground.by_hand import CONTROLLER, MIGRATION, frozen
from playground.clients import admin_client
from playground.processes import is_alive, wait_until
from playground.rig import Rig, Snapshot, lost_topics
from playground.services import Program
from playground.waypoints import ALL_HYBRID, DUAL_WRITE, ONE_HYBRID, ONE_KRAFT, rolled

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(900)]

FREEZE_SECONDS = 5.2
FREEZES = 5
NAMED_WITHIN_SECONDS = 10
POISON = "/kafka-acl/Topic/poison"


OLDER_EPOCH, NEWER_EPOCH = 0, 99


def left_over(epoch: int) -> dict[str, int]:
    """`/migration` as an attempt leaves it that was ended without cleaning up.

    A quorum whose log is ahead of it by epoch, then by offset, takes ZooKeeper for its own copy, and deletes at once; one that
    is behind waits until it is ahead (KRaftMigrationDriver, SyncKRaftMetadataEvent).
    """
    return {
        "version": 0,
        "kraft_controller_id": 3001,
        "kraft_controller_epoch": epoch,
        "kraft_metadata_offset": 400,
        "kraft_metadata_epoch": epoch,
    }


def begin_by_hand(rig: Rig, epoch: int) -> None:
    """Controllers and all brokers but the last one, beside what was left over."""
    rig.by_hand.put_znode(MIGRATION, left_over(epoch))
    rig.by_hand.add_controllers()
    for broker in (1, 2):
        rig.by_hand.to_hybrid(broker)


# --- an earlier attempt's /migration ---------------------------------------------------------------------------------


def test_a_left_over_migration_znode_destroys_topics_when_nobody_is_there(rig: Rig) -> None:
    """Why the product refuses and stops it: the trap is real. The product does not take part in this."""
    before = rig.snapshot().content
    begin_by_hand(rig, OLDER_EPOCH)
    rig.by_hand.to_hybrid(3, is_awaited=False)
    with rig.by_hand.zookeeper() as client:
        wait_until(lambda: not client.get_children("/brokers/topics"), "all topics deleted from ZooKeeper", 90)
    assert before.topics


def test_a_left_over_migration_znode_is_stopped_before_anything_is_deleted(rig: Rig) -> None:
    """Begun by somebody's hand while we watch: the new quorum waits until its log is ahead, and we do not."""
    before = rig.snapshot()
    rig.register()
    begin_by_hand(rig, NEWER_EPOCH)
    migration_id = rig.migrate()
    rig.await_wait(migration_id, "copy-left-over")
    rig.by_hand.to_hybrid(3, is_awaited=False)
    rig.by_hand.await_claim_of_kraft(90)
    wait_until(rig.by_hand.is_controller_of_zookeeper, "a broker holds /controller again", 60)
    with rig.by_hand.zookeeper() as client:
        assert set(before.content.topics) <= set(client.get_children("/brokers/topics"))
    wait_until(lambda: is_every_topic_told(rig, before), "every topic as it was, as the brokers tell it", 60)

    rig.await_wait(migration_id, "file-changed")
    losses = [loss["name"] for loss in rig.preview(migration_id)["losses"]]
    assert {f"original-of-broker-{n}" for n in (1, 2, 3)} <= set(losses)
    rig.rollback(migration_id, accept_loss=losses)
    assert rig.await_end(migration_id)["state"] == "reverted"
    assert lost_topics(before.content, rig.snapshot().content) == []
    assert rig.remains_of_kraft() == []
    assert rig.verify().lost == frozenset()


def is_every_topic_told(rig: Rig, before: Snapshot) -> bool:
    """A broker knows nothing for a moment, when it has just started and its new controller has not told it yet."""
    try:
        return lost_topics(before.content, rig.snapshot().content) == []
    except KafkaException:
        return False


# --- controllers -----------------------------------------------------------------------------------------------------


def test_the_active_controller_is_killed_in_the_copy_and_again_in_dual_write(rig: Rig) -> None:
    before = rig.snapshot().content
    rig.register()
    migration_id = rig.migrate(restart_deadline="PT20S")
    rig.await_event(migration_id, lambda _: DUAL_WRITE.is_reached(rig.seen), "the roll of the last broker")
    copying = rig.by_hand.await_claim_of_kraft(120)
    rig.cluster.kill_node(copying)
    assert f"controller-{copying}" in rig.await_wait(migration_id, "node-down")["objects"]
    assert (rig.by_hand.znode(CONTROLLER) or {})["brokerid"] != copying
    rig.hold(migration_id)
    rig.cluster.start_node(copying)
    rig.await_migration(
        migration_id,
        lambda m: m["phase"] == "DUAL_WRITE" and m["state"] == "held" and all(node["is_ready"] for node in m["nodes"]),
        "dual write with every node, and the hold: no quorum survives two that are down",
    )
    writing = int((rig.by_hand.znode(CONTROLLER) or {})["brokerid"])
    rig.cluster.kill_node(writing)
    rig.resume(migration_id)
    assert f"controller-{writing}" in rig.await_wait(migration_id, "node-down")["objects"]
    rig.cluster.start_node(writing)

    assert rig.complete(migration_id)["state"] == "succeeded"
    assert rig.snapshot().content == before
    assert rig.verify().lost == frozenset()


def test_a_controller_that_lost_its_flag_in_dual_write_gets_it_back(rig: Rig) -> None:
    rig.register()
    migration_id = rig.migrate()
    rig.forward_to(DUAL_WRITE, migration_id)
    leader = int((rig.by_hand.znode(CONTROLLER) or {})["brokerid"])
    standby = next(c.id for c in rig.cluster.spec.controllers if c.id != leader)
    with_flag = rig.by_hand.properties(standby)
    rig.by_hand.take_flag_away(standby)
    rig.await_event(
        migration_id,
        lambda e: (
            e["kind"] == "step-done" and e["data"]["node"] == f"controller-{standby}" and e["data"]["action"] == "roll-node"
        ),
        "the flag is given back, although somebody holds",
    )
    assert rig.by_hand.properties(standby) == with_flag
    rig.resume(migration_id)
    assert rig.complete(migration_id)["state"] == "succeeded"
    assert rig.verify().lost == frozenset()


# --- ZooKeeper -------------------------------------------------------------------------------------------------------


def test_dual_write_that_died_in_a_frozen_ensemble_is_named_and_cured(rig: Rig) -> None:
    rig.register()
    migration_id = rig.migrate()
    rig.await_gate(migration_id)
    gate, seconds = died_in_a_freeze(rig, migration_id)
    print(f"named {seconds:.1f} s after the ensemble went on")
    assert seconds < NAMED_WITHIN_SECONDS
    assert rig.approve(migration_id, gate["evidence_hash"], "fail-over").status_code == 201

    assert rig.complete(migration_id)["state"] == "succeeded"
    assert rig.verify().lost == frozenset()


def died_in_a_freeze(rig: Rig, migration_id: str) -> tuple[dict[str, Any], float]:
    """The gate that names it, and the seconds from the thaw to it.

    It dies when an answer is given up and the question is answered all the same: the freeze is longer than a client's patience,
    two thirds of its session, and shorter than the session. That is a race, so it is frozen until it has happened. A death that
    nobody named would be taken for a survival, and the next freeze for its cause: so what has survived has to write on.
    """
    for _ in range(FREEZES):
        with frozen(*rig.by_hand.ensemble_pids()):
            time.sleep(FREEZE_SECONDS)  # how long the ensemble is frozen: nothing is waited for
        began = time.monotonic()
        with suppress(Transient):
            return rig.await_gate(migration_id, "fail-over", 2 * NAMED_WITHIN_SECONDS), time.monotonic() - began
        await_writing_on(rig)
    raise Transient(f"dual write has survived {FREEZES} freezes of the ensemble")


def await_writing_on(rig: Rig) -> None:
    """ZooKeeper's offset moves by itself where dual write lives: the active controller writes no-ops all the time."""

    def offset() -> int:
        return int((rig.by_hand.znode(MIGRATION) or {})["kraft_metadata_offset"])

    seen = offset()
    wait_until(lambda: offset() > seen, "dual write goes on, as nobody has named its death", NAMED_WITHIN_SECONDS)


REFUSED = "Encountered ZooKeeper authentication in MetadataChangeEvent"
SETTINGS = "/config/topics/customers"


def test_a_change_that_zookeeper_has_refused_is_not_lost_on_the_way_back(rig: Rig) -> None:
    """The active controller tries it once, and the offset in /migration goes past it: only its log tells of it."""
    rig.register()
    migration_id = rig.migrate(compare_messages=False)
    rig.forward_to(DUAL_WRITE, migration_id)
    assert rig.preview(migration_id)["losses"] == []
    with rig.by_hand.zookeeper() as client:
        rights, _ = client.get_acls(SETTINGS)
        client.set_acls(SETTINGS, [make_acl("world", "anyone", read=True, admin=True)])
        change = ConfigEntry("max.message.bytes", "1234567", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, "customers", incremental_configs=[change])
        admin = admin_client(rig.cluster.bootstrap_servers)
        for changed in admin.incremental_alter_configs([resource]).values():
            changed.result(30)
        writing = int((rig.by_hand.znode(CONTROLLER) or {})["brokerid"])
        log = Path(rig.cluster.spec.node(writing).driver.service.output_file)
        wait_until(lambda: REFUSED in log.read_text(encoding="utf-8"), "the refusal in the controller's log", 60)
        client.set_acls(SETTINGS, rights)
    await_writing_on(rig)
    (loss,) = rig.preview(migration_id)["losses"]
    assert (loss["name"], f"restart controller-{writing}" in loss["what"]) == ("metadata-changes", True)
    answer = rig.call("POST", f"/migrations/{migration_id}/rollback", {"reason": "not today", "accept_loss": []}).json()
    asked = answer.get("command_id") or answer["id"]  # refused while the call waited, or accepted and refused later

    def fate() -> str:
        commands = rig.answer("GET", f"/migrations/{migration_id}/commands")["items"]
        return str(next(command["status"] for command in commands if command["id"] == asked))

    wait_until(lambda: fate() == "refused", "the refusal of a rollback that names no loss", 60)

    rig.cluster.kill_node(writing, signal.SIGTERM)
    rig.cluster.start_node(writing)
    wait_until(lambda: not rig.preview(migration_id)["losses"], "a preview without losses", 120)
    rig.rollback(migration_id)
    assert rig.await_end(migration_id)["state"] == "reverted"
    assert (rig.by_hand.znode(SETTINGS) or {})["config"]["max.message.bytes"] == "1234567"
    assert rig.verify().lost == frozenset()


def test_zookeeper_lost_for_good_in_soak_leaves_the_way_forward(rig: Rig) -> None:
    before = rig.snapshot().content
    rig.register()
    migration_id = rig.migrate()
    rig.await_gate(migration_id)
    rig.by_hand.kill_zookeeper()
    gate = rig.await_gate(migration_id, "finalize-without-return")
    assert rig.approve(migration_id, gate["evidence_hash"], "finalize-without-return").status_code == 201
    ended = rig.await_end(migration_id)
    assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
    assert rig.snapshot().content == before
    assert rig.verify().lost == frozenset()


# --- brokers, the copy, ourselves ------------------------------------------------------------------------------------


def test_a_broker_frozen_in_another_ones_roll_is_waited_for_by_name(rig: Rig) -> None:
    rig.register()
    pids = {rig.cluster.spec.node_name(broker.id): rig.pid(broker.id) for broker in rig.cluster.spec.brokers}
    migration_id = rig.migrate(restart_deadline="PT20S")
    rig.await_event(migration_id, lambda _: ONE_HYBRID.is_reached(rig.seen), "the first roll of a broker")
    (rolling,) = rolled(rig.seen, "broker", "migration")
    wait_until(lambda: not is_alive(pids[rolling]), f"{rolling} is between its two processes", 60, every_seconds=0.02)
    other = next(b.id for b in rig.cluster.spec.brokers if rig.cluster.spec.node_name(b.id) != rolling)
    name = rig.cluster.spec.node_name(other)
    with frozen(rig.pid(other)):
        rig.await_migration(
            migration_id,
            lambda m: any(name in part for part in (m["waiting"] or {}).get("objects", ())),
            f"the wait for {name}",
        )
        assert rolled(rig.seen, "broker", "migration") == {rolling}, "no other broker was touched"
    assert rig.complete(migration_id)["state"] == "succeeded"
    assert rig.verify().lost == frozenset()


def test_a_copy_that_kills_the_controllers_is_reverted_at_once_and_the_znode_named(rig: Rig) -> None:
    """The poison comes when all brokers are hybrid: no broker in ZooKeeper mode could start with it either."""
    before = rig.snapshot()
    rig.register()
    migration_id = rig.migrate()
    rig.forward_to(ONE_HYBRID, migration_id)
    with rig.by_hand.stray_broker():
        rig.resume(migration_id)
        rig.forward_to(ALL_HYBRID, migration_id)
        rig.resume(migration_id)
        acl = {"principal": "nobody", "permissionType": "Allow", "operation": "Read", "host": "*"}
        rig.by_hand.put_znode(POISON, {"version": 1, "acls": [acl]})
    told = rig.await_event(migration_id, lambda e: POISON in str(e["data"]), "somebody names the znode")
    print(f"named by {told['kind']}: {told['data']}")
    rig.by_hand.delete_znode(POISON)
    assert rig.await_end(migration_id)["state"] == "reverted"
    assert rig.differences(before) == []
    assert rig.verify().lost == frozenset()


def test_our_worker_is_killed_in_every_part_of_the_way_back(rig: Rig) -> None:
    before = rig.snapshot()
    rig.register()
    migration_id = rig.migrate()
    rig.forward_to(ONE_KRAFT, migration_id)
    (in_kraft,) = (int(name.rpartition("-")[2]) for name in rolled(rig.seen, "broker", "kraft"))
    running = {node.id: rig.pid(node.id) for node in rig.cluster.spec.nodes}
    rig.rollback(migration_id)
    kill_worker_when_gone(rig, running[in_kraft], f"broker-{in_kraft} goes down for hybrid mode")
    controller = rig.cluster.spec.controllers[-1].id
    kill_worker_when_gone(rig, running[controller], f"controller-{controller} is killed in the window")
    hybrid = {broker.id: rig.pid(broker.id) for broker in rig.cluster.spec.brokers}
    wait_until(lambda: not all(is_alive(pid) for pid in hybrid.values()), "a broker goes down for ZooKeeper mode", 120, 0.02)
    kill_worker(rig, "the last roll")

    assert rig.await_end(migration_id)["state"] == "reverted"
    assert rig.differences(before) == []
    done = [event["data"] for event in rig.events(migration_id) if event["kind"] == "step-done"]
    assert sum(step.get("attempt", 1) > 1 for step in done) >= 3, f"a kill was not felt: {done}"
    report = rig.verify()
    assert report.lost == frozenset()


def kill_worker_when_gone(rig: Rig, pid: int, what: str) -> None:
    wait_until(lambda: not is_alive(pid), what, 180, every_seconds=0.02)
    kill_worker(rig, what)


def kill_worker(rig: Rig, what: str) -> None:
    rig.services.kill(Program.ACTIVITIES)
    rig.services.start(Program.ACTIVITIES)
    print(f"--- killed the activity worker: {what}")
