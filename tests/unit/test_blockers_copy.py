"""What is told of the copy, of dual write, and of changes that were not written."""

from collections.abc import Callable

import pytest

from domain.diagnosis.causes.hints import Hints, Serving
from domain.observed.observation import (
    ControllerZnode,
    MigrationZnode,
    Observation,
    PartitionFault,
    Suspect,
    Unanswered,
)
from domain.zk_to_kraft.blockers import blockers_of
from domain.zk_to_kraft.causes.case import MigrationLookups, Unwritten
from domain.zk_to_kraft.probed import with_probed
from tests.unit.blocked import (
    BEFORE,
    DUAL,
    HYBRID,
    SAID,
    SERVERS,
    SOAK,
    SPEC,
    STALE_COPY,
    STANDBY,
    STARTED,
    behind,
    found,
    keys,
    looked_at,
    trees_of,
    without,
)
from tests.unit.conftest import (
    LEADER,
    LOG_END,
    Point,
    observation,
    stopped,
    with_file,
    with_kafka,
    with_metrics,
    with_node,
    with_part,
    with_zookeeper,
)

WAITING = "[2026-11-20 03:00:00,100] INFO Still waiting for ZK brokers [9] found in metadata to register with KRaft."


def test_an_id_that_nobody_has_is_named_with_its_partitions_and_the_controllers_own_words() -> None:
    seen = with_zookeeper(HYBRID, assigned_broker_ids=(1, 2, 3, 9))
    entries = found(
        seen, hints=Hints(logs={LEADER: (WAITING,)}, of_kind=MigrationLookups(assigned={9: ("orders-0", "orders-1")}))
    )
    assert keys(entries) == [("copy-not-complete", "broker 9")]
    assert "orders-0, orders-1" in entries[0].observed
    assert "Still waiting for ZK brokers [9]" in entries[0].observed


def test_an_id_that_has_been_reassigned_is_over_whatever_the_log_still_says() -> None:
    assert ("copy-not-complete", "broker 9") not in keys(found(HYBRID, hints=Hints(logs={LEADER: (WAITING,)})))


def test_a_stranger_that_is_registered_is_waited_for_too() -> None:
    entries = found(with_zookeeper(HYBRID, broker_ids=(1, 2, 3, 7)))
    assert keys(entries) == [("copy-not-complete", "broker 7")]
    assert "not in the cluster's specification" in entries[0].observed


def test_a_controller_that_never_had_the_flag_is_named_by_the_active_one() -> None:
    line = "WARN Not ready due to:Controller 3003 has not enabled zookeeper.metadata.migration.enable"
    entries = found(HYBRID, hints=Hints(logs={LEADER: (line,)}))
    assert keys(entries) == [("controller-lost-its-flag", "controller-3003")]


def test_a_controller_that_never_registered_is_named_with_what_helps() -> None:
    seen = with_probed(observation(Point.CONTROLLERS_UP), unregistered=(STANDBY,))
    (entry,) = found(seen)
    assert (entry.code, entry.object) == ("controllers-not-ready", SPEC.node_name(STANDBY))
    assert f"restart {SPEC.node_name(STANDBY)}" in entry.fix


@pytest.mark.parametrize(("what", "said"), [("registrations", "registered"), ("suspects", "failover")])
def test_a_search_that_could_not_be_made_says_what_is_not_known(what: str, said: str) -> None:
    missing = Unanswered(what=what, why="the log may not be read")
    (entry,) = found(observation(Point.CONTROLLERS_UP).model_copy(update={"unanswered": (missing,)}))
    assert (entry.code, entry.observed) == ("part-unknown", missing.why)
    assert said in entry.object


def test_poisoned_znodes_are_each_an_entry() -> None:
    suspects = tuple(Suspect(what=f"/config/users/{n}", why="not a number") for n in range(2))
    seen = with_probed(HYBRID, poisoned_znodes=suspects)
    assert {("copy-cannot-finish", s.what) for s in suspects} <= set(keys(found(seen)))


def test_a_claim_that_a_broker_has_taken_is_named() -> None:
    claim = ControllerZnode(broker_id=2, kraft_epoch=None, is_ephemeral=True)
    (entry,) = found(with_zookeeper(DUAL, controller=claim))
    assert (entry.code, entry.object) == ("dual-write-not-current", "/controller")
    assert "broker 2" in entry.observed


def test_zookeeper_with_data_from_before_the_copy_is_told_as_such() -> None:
    old = MigrationZnode(controller_id=-1, controller_epoch=-1, offset=-1)
    entries = found(with_zookeeper(DUAL, controller=None, migration=old))
    assert keys(entries) == [("dual-write-not-current", "ZooKeeper")]
    assert "newest dataDir" in entries[0].fix


def test_a_dual_write_that_has_died_quotes_its_controller() -> None:
    seen = with_zookeeper(DUAL, migration=STALE_COPY.model_copy(update={"offset": 3}))
    seen = with_probed(seen, failover_hazards=())
    line = "[2026-11-20 03:00:00,1] INFO Check op on KRaft Migration ZNode failed. Sent zkVersion = 5."
    entry = next(e for e in found(seen, hints=Hints(logs={LEADER: (line,)})) if e.object == "/migration")
    assert "Check op on KRaft Migration ZNode failed" in entry.observed
    assert "fail-over" in entry.fix


def test_a_stray_config_is_named_before_any_failover() -> None:
    stray = Suspect(what="client metrics config interval.ms of all", why="a new leader cannot compare it")
    entries = found(DUAL, hints=Hints(of_kind=MigrationLookups(strays=(stray,))))
    assert ("failover-would-hurt", stray.what) in keys(entries)


def test_an_acl_that_zookeeper_cannot_hold_is_told_in_place_of_the_error_that_names_nothing() -> None:
    """Its printed fix, another active controller, is what would end dual write for good."""
    line = (
        f"{SAID} INFO [KRaftMigrationDriver id={LEADER}] Encountered ZooKeeper error during event MetadataChangeEvent{{"
        "provenance=MetadataProvenance(lastContainedOffset=1237)}. Will retry. (org.apache.kafka.metadata.migration.X)"
    )
    logs = {LEADER: (line,)}
    assert ("dual-write-not-current", SPEC.node_name(LEADER)) in keys(found(DUAL, hints=Hints(logs=logs)))
    acl = Suspect(what="ACL of User:alice for group team-a/loader", why="no znode", is_lost_change=True, offset=1236)
    (entry,) = found(DUAL, hints=Hints(logs=logs, of_kind=MigrationLookups(strays=(acl,))))
    assert (entry.code, entry.object) == ("failover-would-hurt", acl.what)
    older = acl.model_copy(update={"offset": 7})
    told = keys(found(DUAL, hints=Hints(logs=logs, of_kind=MigrationLookups(strays=(older,)))))
    assert ("dual-write-not-current", SPEC.node_name(LEADER)) in told, "that was another change"


def test_a_znode_that_would_kill_the_copy_is_told_before_it_begins() -> None:
    suspect = Suspect(what="/config/users/u", why="its quota is no number")
    entries = found(HYBRID, hints=Hints(of_kind=MigrationLookups(unreadable=(suspect,))))
    assert keys(entries) == [("copy-cannot-finish", "/config/users/u")]
    assert "has not begun" in entries[0].observed


@pytest.mark.parametrize(
    ("znode", "says"),
    [(None, "no such znode"), (MigrationZnode(controller_id=None, controller_epoch=None, offset=None), "cannot be parsed")],
)
def test_a_migration_znode_that_somebody_touched_is_told_as_such(znode: MigrationZnode | None, says: str) -> None:
    (entry,) = found(with_zookeeper(DUAL, migration=znode))
    assert (entry.code, entry.object) == ("dual-write-not-current", "/migration")
    assert says in entry.observed


def test_a_stranger_in_dual_write_is_not_of_the_copy() -> None:
    assert keys(found(with_zookeeper(DUAL, broker_ids=(1, 2, 3, 7)))) == [("brokers-not-registered", "broker 7")]


def test_a_write_that_zookeeper_refused_is_told_although_every_gauge_looks_well() -> None:
    said = "ERROR Encountered zk migration fault: Encountered ZooKeeper authentication in MetadataChangeEvent{"
    (entry,) = found(DUAL, hints=Hints(logs={LEADER: (said,)}))
    assert (entry.code, entry.object) == ("dual-write-not-current", f"controller-{LEADER}")
    assert "is not tried again" in entry.fix
    assert found(observation(Point.FINAL), hints=Hints(logs={LEADER: (said,)})) == []


def test_a_broker_that_was_put_back_into_zookeeper_mode_in_dual_write_is_named_and_nobody_else() -> None:
    """It serves, gets no metadata from anybody, and lists nobody: what it lacks is told of the others by turns."""
    plain = with_node(DUAL, 3, lambda _: BEFORE.node(3))
    plain = with_metrics(plain, LEADER, migrating_broker_count=2, active_broker_count=2)
    for seen in (with_kafka(plain, broker_ids=()), without(plain, "kafka", "broker 3 lists brokers [], another one [1, 2, 3]")):
        (entry,) = found(seen)
        assert (entry.code, entry.object) == ("brokers-not-registered", "broker-3")
        assert "ZooKeeper mode" in entry.observed
        assert "/etc/kafka/3.properties" in entry.fix


@pytest.mark.parametrize("seen", [BEFORE, observation(Point.CONTROLLERS_UP)])
def test_before_the_copy_a_broker_in_zookeeper_mode_is_what_is_wanted(seen: Observation) -> None:
    assert list(blockers_of(looked_at(seen))[0]) == []


def test_a_flood_of_changes_is_told_with_what_is_changed() -> None:
    lacking = Unwritten(("390 config", "2 topic"), ("topic orders", "topic payments"), more=53, seconds=1.1)
    entry = behind(unwritten=lacking)
    assert "ZooKeeper lacks 390 config, 2 topic (topic orders, topic payments); 53 more came in 1.1 s" in entry.observed
    assert "Pause it until finalize" in entry.fix


@pytest.mark.parametrize(
    ("more", "first"),
    [
        (0, "If the gate fail-over is open"),
        (5, "Check again, and find what makes changes all the time"),
        (None, "Check again first"),
    ],
)
def test_that_dual_write_is_dead_is_said_at_once_only_where_nothing_is_changed(more: int | None, first: str) -> None:
    """Its offset is read before the log's end: while somebody makes topics all the time it is always behind."""
    assert behind(lag=0, unwritten=None if more is None else Unwritten(("15 topic",), (), more, 1.6)).fix.startswith(first)


def test_a_burst_that_is_over_needs_time_only() -> None:
    entry = behind(unwritten=Unwritten(("390 config",), ("topic orders",), more=0, seconds=1.1))
    assert "0 more came" in entry.observed
    assert "Check again in a moment" in entry.fix


@pytest.mark.parametrize(("holder", "fix"), [(LEADER, "has another epoch"), (STANDBY, "Request a rollback now")])
def test_a_claim_whose_answer_was_lost_is_made_again_by_the_next_epoch(holder: int, fix: str) -> None:
    said = f"{SAID} ERROR Cannot register KRaft controller {LEADER} with epoch 7 as the current controller register in ZK has "
    claim = ControllerZnode(broker_id=holder, kraft_epoch=7, is_ephemeral=False)
    seen = with_zookeeper(HYBRID, controller=claim)
    entries = found(seen, hints=Hints(logs={LEADER: (STARTED, f"{said}the same or newer epoch")}))
    assert any(fix in entry.fix for entry in entries)


def test_access_lists_that_no_znode_can_hold_are_told() -> None:
    entry = behind(
        unwritten=Unwritten(("600 access control entry",), (), 0, 2.0), crowded=("/kafka-acl/Topic/t (1,044,104 bytes)",)
    )
    assert "/kafka-acl/Topic/t (1,044,104 bytes)" in entry.observed
    assert "jute.maxbuffer" in entry.fix


def test_why_dual_write_does_not_go_on_is_told_before_how_much_it_lacks() -> None:
    said = "[2026-11-20 03:00:00,000] ERROR Check op on KRaft Migration ZNode failed. Expected zkVersion = 7"
    entry = behind(logs={LEADER: (said,)}, unwritten=Unwritten(("390 config",), (), more=53, seconds=1.1))
    assert "Check op on KRaft Migration ZNode failed" in entry.observed
    assert "Pause it" not in entry.fix


FAILED = (
    f"{SAID} INFO [KRaftMigrationDriver id={LEADER}] Encountered ZooKeeper error during event MetadataChangeEvent{{}}. Will "
    "retry.",
    "org.apache.zookeeper.KeeperException$NoNodeException: KeeperErrorCode = NoNode for /config/users/x",
)
BEHIND = with_metrics(with_zookeeper(DUAL, migration=STALE_COPY.model_copy(update={"offset": 1})), LEADER, write_behind_lag=9)


@pytest.mark.parametrize("seen", [HYBRID, BEHIND])
def test_what_zookeeper_has_answered_the_driver_is_told_though_it_says_so_in_passing(seen: Observation) -> None:
    (entry,) = [entry for entry in found(seen, hints=Hints(logs={LEADER: FAILED})) if "says" in entry.observed]
    assert "NoNode for /config/users/x" in entry.observed
    assert "NoNode" in entry.fix


def test_a_change_that_was_lost_is_told_although_every_gauge_looks_well() -> None:
    (entry,) = found(DUAL, hints=Hints(logs={LEADER: FAILED}))
    assert entry.object == f"controller-{LEADER}"
    assert "ZooKeeper lacks that change" in entry.observed
    claiming = (FAILED[0].replace("MetadataChangeEvent", "BecomeZkControllerEvent"), FAILED[1])
    assert found(DUAL, hints=Hints(logs={LEADER: claiming})) == []


UNHANDLED = (
    f"{SAID} ERROR Encountered zk migration fault: Unhandled error in MetadataChangeEvent{{provenance=MetadataProvenance("
    "lastContainedOffset=900, lastContainedEpoch=4, lastContainedLogTimeMs=1795374628835), isSnapshot=false} "
    "(org.apache.kafka.server.fault.LoggingFaultHandler)",
    "java.lang.IllegalStateException: Topic foo not in image",
)


@pytest.mark.parametrize("seen", [DUAL, BEHIND])
def test_a_change_that_the_driver_has_given_up_with_an_error_of_its_own_is_told(seen: Observation) -> None:
    """No gauge counts it, and with the next change the offset goes on."""
    (entry,) = [entry for entry in found(seen, hints=Hints(logs={LEADER: UNHANDLED})) if "says" in entry.observed]
    assert "Unhandled error in MetadataChangeEvent: java.lang.IllegalStateException: Topic foo not in image" in entry.observed
    assert "the next one writes what differs" in entry.fix
    assert "ZooKeeper lacks that change" not in entry.observed, (
        "brokers are told after ZooKeeper has it, and that fails likewise"
    )
    assert ("ZooKeeper may lack that change" in entry.observed) is (seen is DUAL)
    assert "A rollback may lose that change" in entry.fix
    thrown = "java.lang.RuntimeException: Unknown config resource type CLIENT_METRICS"
    assert found(DUAL, hints=Hints(logs={LEADER: (UNHANDLED[0], thrown)})) == [], "what that is is told of itself"


BATCH = FAILED[0].replace("{}", "{provenance=MetadataProvenance(lastContainedOffset=445, lastContainedEpoch=2)}")
OUT_OF_SYNC = (PartitionFault(partition="orders-3", missing=(2,), leader=1),)


def test_of_a_batch_that_failed_it_is_told_that_kafka_names_no_znode_and_how_to_find_it() -> None:
    (entry,) = found(DUAL, hints=Hints(logs={LEADER: (BATCH,)}))
    assert "MetadataChangeEvent (up to offset 445 of the quorum's log)" in entry.observed
    assert "Kafka leaves that out" in entry.observed
    assert "brokers in migration mode did not get it" in entry.observed
    assert "kafka-dump-log.sh" in entry.fix
    (entry,) = found(SOAK, hints=Hints(logs={LEADER: FAILED}))
    assert "migration mode" not in entry.observed
    assert "kafka-dump-log.sh" not in entry.fix


def test_a_write_that_failed_and_members_of_different_trees_are_told_of_each_other() -> None:
    hints = Hints(logs={LEADER: FAILED}, servers=dict.fromkeys(SERVERS, Serving.YES), trees=trees_of(31, 31, 28, leader=0))
    entries = {entry.code: entry for entry in found(DUAL, hints=hints)}
    assert entries["dual-write-not-current"].fix.startswith("First fix the member that has another tree, as the entry GF11")
    assert entries["GF11"].fix.endswith(f"controller-{LEADER}: ZooKeeper has refused what it wrote (dual-write-not-current).")


UNREACHED = next(f"{c.host}:{c.port}" for c in SPEC.controllers if c.id == STANDBY)
STRAY = Suspect(what="CLIENT_METRICS config interval.ms of slow", why="a new leader cannot compare it")
NOT_BEFORE = "restart the active controller not before this is so"


@pytest.mark.parametrize(
    ("changed", "hints", "first"),
    [
        (lambda seen: seen, {"shut": frozenset({UNREACHED})}, "controller-3001 runs, follows and accepts connections"),
        (lambda seen: with_metrics(seen, STANDBY, raft_log_end=LOG_END - 400), {}, "controller-3001 runs, follows"),
        (lambda seen: with_part(seen, STANDBY, process=stopped("x"), metrics=None), {}, "controller-3001 runs, follows"),
        (lambda seen: seen, {"of_kind": MigrationLookups(strays=(STRAY,))}, f"{STRAY.what} is fixed"),
        (lambda seen: with_file(seen, STANDBY, "process.roles=controller\n"), {}, "controller-3001 has the flag"),
    ],
)
def test_nobody_is_told_to_restart_the_active_controller_where_that_would_hurt(
    changed: Callable[[Observation], Observation], hints: dict[str, object], first: str
) -> None:
    """What our own failover is held up by."""
    trees = {"servers": dict.fromkeys(SERVERS, Serving.YES), "trees": trees_of(31, 31, 28, leader=0)}
    seen = with_kafka(changed(DUAL), under_replicated=OUT_OF_SYNC)
    told = [entry for entry in found(seen, hints=Hints(logs={LEADER: (BATCH,)}, **trees, **hints)) if NOT_BEFORE in entry.fix]
    assert {"dual-write-not-current", "partitions-not-in-sync", "GF11"} == {entry.code for entry in told}
    assert all(first in entry.fix for entry in told)
    well = found(with_kafka(DUAL, under_replicated=OUT_OF_SYNC), hints=Hints(logs={LEADER: (BATCH,)}, **trees))
    assert not [entry for entry in well if NOT_BEFORE in entry.fix]


def test_replicas_that_lag_since_a_change_was_lost_are_no_reason_to_restart_a_broker() -> None:
    seen = with_kafka(DUAL, under_replicated=OUT_OF_SYNC)
    entries = {entry.code: entry for entry in found(seen, hints=Hints(logs={LEADER: (BATCH,)}))}
    assert set(entries) == {"dual-write-not-current", "partitions-not-in-sync"}
    restart = "First fix what ZooKeeper has answered the active controller"
    assert entries["partitions-not-in-sync"].fix.startswith(restart)
    (entry,) = [one for one in found(seen) if one.code == "partitions-not-in-sync"]
    assert "Restart the active controller" not in entry.fix
    on_disk = f"{SAID} ERROR [ReplicaManager broker=2] Error processing append: java.io.IOException: Input/output error"
    entries = {entry.code: entry for entry in found(seen, hints=Hints(logs={LEADER: (BATCH,), 2: (on_disk,)}))}
    assert "Input/output error" in entries["partitions-not-in-sync"].observed, "it may have been lost long ago"
    assert entries["partitions-not-in-sync"].fix.startswith(
        f"If one of the complaints explains it, fix that. If not: {restart}"
    )


def test_a_flood_is_told_beside_a_write_that_has_failed_before() -> None:
    own = MigrationLookups(unwritten=Unwritten(("300 config",), (), 50, 1.0))
    hints = Hints(logs={LEADER: FAILED}, of_kind=own)
    (entry,) = found(BEHIND, hints=hints)
    assert "NoNode" in entry.fix
    assert "Find what changes the cluster's metadata without pause" in entry.fix


def test_a_controller_that_does_not_get_through_to_a_broker_is_whose_fault_it_is() -> None:
    lines = (
        f"{SAID} WARN [RequestSendThread controllerId={LEADER}] Controller {LEADER}'s connection to broker b2:9092 (id: "
        "2 rack: null) was unsuccessful (kafka.controller.RequestSendThread)",
        "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed: Invalid username or password",
    )
    seen = with_kafka(DUAL, under_replicated=(PartitionFault(partition="orders-3", missing=(2,), leader=1),))
    (entry,) = found(seen, hints=Hints(logs={LEADER: lines}))
    assert entry.object == f"controller-{LEADER}"
    assert "SaslAuthenticationException" in entry.observed
    assert "restart broker" not in entry.fix
    (unlisted,) = found(with_kafka(DUAL, broker_ids=(1, 3)), hints=Hints(logs={LEADER: lines}))
    assert "Invalid username or password" in unlisted.observed


def test_a_controller_without_its_session_keeps_the_copy_waiting() -> None:
    lines = (f"{SAID} WARN Session 0x0 for server zk1/10.0.0.1:2181, Closing socket connection. Attempting reconnect",)
    seen = with_metrics(HYBRID, LEADER, zookeeper_session="CONNECTING")
    (entry,) = found(seen, hints=Hints(logs={LEADER: lines}))
    assert (entry.code, entry.object) == ("GF11", f"controller-{LEADER}")
    assert "Closing socket connection" in entry.observed


def test_an_error_in_applying_metadata_is_told_with_its_words() -> None:
    fault = (
        "Encountered metadata publishing fault: Error updating topic orders with new configuration: secret=hunter2 in "
        "MetadataDelta up to 900 (org.apache.kafka.server.fault.LoggingFaultHandler)"
    )
    lines = (f"{SAID} ERROR {fault}", "java.lang.IllegalArgumentException: the moon is full")
    (entry,) = found(with_metrics(DUAL, 2, metadata_error_count=1), hints=Hints(logs={2: lines}))
    assert "Error updating topic orders with new configuration: java.lang.IllegalArgumentException: the moon" in entry.observed
    assert "hunter2" not in entry.observed


def test_what_a_node_waits_for_does_not_hide_what_it_complains_of() -> None:
    lines = (
        f"{SAID} INFO [BrokerServer id=2] Waiting for the broker to be unfenced (kafka.server.BrokerServer)",
        f"{SAID} WARN Broker 2 sent a heartbeat request but received error NOT_CONTROLLER. (kafka.server.X)",
    )
    (entry,) = found(with_metrics(DUAL, 2, broker_state=2), hints=Hints(logs={2: lines}))
    assert "It waits for broker to be unfenced" in entry.observed
    assert "received error NOT_CONTROLLER" in entry.observed
    assert "unfences it" in entry.fix


def test_a_write_that_was_refused_is_told_until_another_controller_has_written_it() -> None:
    refused = (
        f"{STARTED[:26]} ERROR Encountered zk migration fault: Encountered ZooKeeper authentication in MetadataChangeEvent{{}}"
    )
    later = f"{SAID[:12]} 05:00:00,000] INFO all is well"
    step = f"{SAID[:12]} 04:00:00,000] INFO x transitioning from SYNC_KRAFT_TO_ZK to KRAFT_CONTROLLER_TO_BROKER_COMM state"
    assert keys(found(DUAL, hints=Hints(logs={LEADER: (refused, later)}))) == [
        ("dual-write-not-current", f"controller-{LEADER}")
    ]
    assert found(DUAL, hints=Hints(logs={LEADER: (refused, step, later)})) == []
