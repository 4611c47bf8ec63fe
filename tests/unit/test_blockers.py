"""Why nothing happens: every wait has an entry, every cause has one and no more, and all causes are told at once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest

from domain.decisions import Wait
from domain.diagnosis.blocker import Blocker
from domain.diagnosis.causes.hints import Hints, Pace, Serving
from domain.diagnosis.machines.notes import ZOOKEEPER, MachineChanges
from domain.drift.report import Verdict
from domain.observed.observation import (
    ControllerZnode,
    LogDir,
    MigrationGauge,
    NodeView,
    Observation,
    PartitionFault,
    RollMark,
    StorageState,
    Unanswered,
)
from domain.records import Waiting
from domain.rulings import Ruling
from domain.waits import WAITS, WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.blockers import blockers_of
from domain.zk_to_kraft.causes.case import case_of
from domain.zk_to_kraft.guards import fenced
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.waits import ZkWait
from tests.unit.blocked import (
    BEFORE,
    DUAL,
    GAPS,
    HYBRID,
    POLICY,
    SAID,
    SERVERS,
    SOAK,
    SPEC,
    STALE_COPY,
    STANDBY,
    STARTED,
    dead,
    edited,
    found,
    keys,
    looked_at,
    silent,
    unclaimed,
    without,
)
from tests.unit.conftest import (
    LEADER,
    LOG_END,
    NOW,
    Point,
    mark_of,
    observation,
    report_of,
    with_file,
    with_kafka,
    with_metrics,
    with_node,
    with_part,
    with_zookeeper,
)

# --- every wait has an entry -----------------------------------------------------------------------------------------


NATURAL: dict[str, tuple[Observation, Ruling]] = {
    WaitReason.HELD: (DUAL, Ruling(is_held=True)),
    WaitReason.PART_UNKNOWN: (silent(DUAL, 2), Ruling()),
    WaitReason.NODE_DOWN: (dead(DUAL, 2), Ruling()),
    WaitReason.NODE_NOT_READY: (with_metrics(DUAL, 2, broker_state=2), Ruling()),
    WaitReason.FILE_CHANGED: (edited(DUAL, 1), Ruling()),
    WaitReason.CONTROLLERS_NOT_READY: (with_metrics(DUAL, STANDBY, raft_log_end=LOG_END - 400), Ruling()),
    WaitReason.BROKERS_NOT_REGISTERED: (with_metrics(DUAL, LEADER, migrating_broker_count=2), Ruling()),
    WaitReason.PARTITIONS_NOT_IN_SYNC: (with_kafka(DUAL, under_replicated=GAPS), Ruling()),
    WaitReason.PARTITIONS_WOULD_STOP: (with_kafka(DUAL, needs={1: ("single-0",), 2: (), 3: ()}), Ruling()),
    ZkWait.QUORUM_CANNOT_MIGRATE: (with_metrics(DUAL, LEADER, migration_gauge=MigrationGauge.NONE), Ruling()),
    ZkWait.TOPIC_WITHOUT_ID: (with_zookeeper(DUAL, topics_without_id=("orders",)), Ruling()),
    ZkWait.COPY_LEFT_OVER: (
        with_zookeeper(HYBRID, migration=STALE_COPY),
        Ruling(),
    ),
    ZkWait.COPY_NOT_COMPLETE: (HYBRID, Ruling()),
    ZkWait.DUAL_WRITE_NOT_CURRENT: (
        with_metrics(with_zookeeper(DUAL, migration=STALE_COPY.model_copy(update={"offset": 1})), LEADER, write_behind_lag=9),
        Ruling(),
    ),
    WaitReason.SOAK_NOT_OVER: (SOAK, Ruling()),
    ZkWait.DRIFT_FOUND: (SOAK, Ruling(reports=(report_of(SOAK, Verdict.DRIFT),), drifts=1)),
    WaitReason.CHECK_INCONCLUSIVE: (SOAK, Ruling(reports=(report_of(SOAK, Verdict.INCONCLUSIVE),))),
    WaitReason.CHECKS_WORKER_MISSING: (SOAK, Ruling(unchecked_since=NOW)),
}
"""Looks of which `assess` makes that very wait."""


@pytest.mark.parametrize("reason", WaitReason)
def test_every_wait_gives_an_entry_that_says_what_to_do(reason: WaitReason) -> None:
    """Whatever the look shows: one that shows nothing is told in the wait's own words."""
    for seen in (DUAL, HYBRID, SOAK, NATURAL.get(reason, (DUAL, Ruling()))[0]):
        entries, explained = blockers_of(looked_at(seen), Wait(reason=reason, objects=("broker-2",)))
        if reason != WaitReason.PREFLIGHT_BLOCKERS:
            assert reason in explained
        for entry in entries:
            assert all((entry.code, entry.object, entry.observed, entry.expected, entry.fix, entry.docs))
            assert entry.since <= seen.ended_at


@pytest.mark.parametrize("reason", NATURAL)
def test_a_look_that_makes_a_wait_gives_its_entry(reason: WaitReason) -> None:
    seen, ruling = NATURAL[reason]
    policy = POLICY.model_copy(update={"min_soak": timedelta(days=7)}) if reason == WaitReason.SOAK_NOT_OVER else POLICY
    assessment = assess(seen, SPEC, policy, ruling, "")
    told = [d.reason for d in (assessment.decision, assessment.stands) if isinstance(d, Wait)]
    if reason != ZkWait.COPY_LEFT_OVER:
        assert told == [reason]
    entries, explained = blockers_of(looked_at(seen, policy), assessment.decision, assessment.stands)
    assert entries
    assert set(told) <= set(explained)
    assert reason in {entry.code for entry in entries}


@pytest.mark.parametrize("point", Point)
def test_a_healthy_cluster_has_no_cause_but_what_is_decided(point: Point) -> None:
    assert list(blockers_of(looked_at(observation(point)))[0]) == []


# --- all at once, each once ------------------------------------------------------------------------------------------

FAULTS: dict[tuple[str, str], Callable[[Observation], Observation]] = {
    ("node-down", "broker-2"): lambda seen: dead(seen, 2),
    ("node-down", "broker-3"): lambda seen: dead(seen, 3),
    ("file-changed", "broker-1"): lambda seen: edited(seen, 1),
    ("part-unknown", "controller-3001"): lambda seen: silent(seen, STANDBY),
    ("node-down", "controller-3003"): lambda seen: dead(seen, 3003),
    ("dual-write-not-current", "/controller"): unclaimed,
    ("GF10", f"controller-{LEADER}"): lambda seen: with_metrics(seen, LEADER, metadata_error_count=2),
}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_faults_together_are_told_together(number: int) -> None:
    """However many there are: each has its entry, and none has another one beside it."""
    for chosen in combinations(FAULTS, number):
        seen = DUAL
        for fault in chosen:
            seen = FAULTS[fault](seen)
        assert sorted(keys(found(seen))) == sorted(chosen)


def test_two_dead_brokers_a_changed_file_and_a_member_of_the_ensemble_are_four_entries() -> None:
    seen = edited(dead(dead(DUAL, 2), 3), 1)
    lagging = tuple(PartitionFault(partition=f"orders-{n}", missing=(2, 3)) for n in range(9))
    seen = with_kafka(seen, under_replicated=lagging, offline=("orders-9",), broker_ids=(1,))
    seen = with_metrics(seen, LEADER, active_broker_count=1, fenced_broker_count=2, migrating_broker_count=1)
    servers = dict.fromkeys(SERVERS, Serving.YES) | {SERVERS[1]: Serving.REFUSED}
    assert keys(found(seen, hints=Hints(servers=servers))) == [
        ("file-changed", "broker-1"),
        ("node-down", "broker-2"),
        ("node-down", "broker-3"),
        ("GF11", f"zookeeper {SERVERS[1]}"),
    ]


def test_what_lags_elsewhere_is_a_cause_of_its_own() -> None:
    faults = (PartitionFault(partition="a-0", missing=(2,)), PartitionFault(partition="b-0", missing=(2, 3)))
    seen = with_kafka(dead(DUAL, 2), under_replicated=faults)
    assert keys(found(seen)) == [("node-down", "broker-2"), ("partitions-not-in-sync", "broker-3")]


def test_what_lags_because_it_is_written_faster_than_anybody_fetches_is_told_with_its_topic() -> None:
    """The nightly load, in the middle of which a broker was restarted: nothing is broken."""
    paces = (Pace("import", 38.2e6), Pace("orders", 2.4e6), Pace("idle", 1e5))
    seen = with_kafka(DUAL, under_replicated=GAPS)
    (entry,) = found(seen, hints=Hints(written=paces))
    assert (entry.code, entry.object) == ("partitions-not-in-sync", "broker-2")
    assert "written meanwhile, import with 38 MB a second, orders with 2 MB a second: who was away" in entry.observed
    assert "producer_byte_rate" in entry.fix
    (slow,) = found(seen, hints=Hints(written=paces[2:]))
    assert "written" not in slow.observed
    (throttled,) = found(seen, hints=Hints(written=paces, throttles=("/config/brokers/2",)))
    assert "throttle" in throttled.fix, "what is to blame in any case comes first"


def test_replicas_that_a_throttle_holds_back_do_not_catch_up_by_themselves() -> None:
    (entry,) = found(with_kafka(DUAL, under_replicated=GAPS), hints=Hints(throttles=("/config/brokers/2",)))
    assert (entry.code, entry.object) == ("partitions-not-in-sync", "broker-2")
    assert "/config/brokers/2" in entry.observed
    assert "--delete-config" in entry.fix
    assert "Cruise Control" in entry.fix, "who has set it may set it again"


def test_while_a_broker_is_dead_what_the_others_cannot_tell_is_no_cause_of_its_own() -> None:
    assert keys(found(without(dead(DUAL, 2), "kafka"))) == [("node-down", "broker-2")]
    assert keys(found(without(DUAL, "kafka"))) == [("part-unknown", "kafka")]


# --- nodes -----------------------------------------------------------------------------------------------------------


def test_an_active_controller_that_is_silent_is_not_missing_where_others_follow_it() -> None:
    assert keys(found(silent(DUAL, LEADER))) == [("part-unknown", SPEC.node_name(LEADER))]
    lost = silent(DUAL, LEADER)
    for node in SPEC.nodes:
        lost = with_metrics(lost, node.id, raft_leader=None) if node.id != LEADER else lost
    assert ("controllers-not-ready", "the quorum") in keys(found(lost)), "where nobody follows anybody, there is none"


def file_entry(seen: Observation) -> Blocker:
    (entry,) = (e for e in found(seen) if e.code == "file-changed")
    return entry


def test_a_file_that_this_migration_never_wrote_is_not_told_as_written_by_it() -> None:
    entry = file_entry(with_file(DUAL, 1, "process.roles=nonsense\n"))
    assert "This migration has not written it" in entry.observed
    assert "configuration management or a backup" in entry.fix
    assert "what this migration wrote" not in entry.fix
    assert entry.expected == "the file as it was when the migration began"
    entry = file_entry(edited(DUAL, 1))
    assert "this migration left wwwwwwwwwwww…" in entry.observed
    assert "what this migration wrote" in entry.fix
    assert entry.expected == "the file as this migration left it"


@pytest.mark.parametrize(
    ("mark", "fix"), [(None, "a backup"), (mark_of("w" * 64, is_proven=True), "what this migration wrote")]
)
def test_an_empty_file_is_told_as_empty(mark: RollMark | None, fix: str) -> None:
    entry = file_entry(with_file(DUAL, 1, "", mark))
    assert entry.observed.startswith("/etc/kafka/1.properties is empty")
    assert fix in entry.fix
    assert ".keeperless" in entry.fix


def test_a_file_that_is_gone_is_told_as_gone() -> None:
    disk = DUAL.node(1).disk
    assert disk is not None
    seen = with_part(DUAL, 1, disk=disk.model_copy(update={"file": None}))
    (entry,) = (e for e in found(seen) if e.code == "file-changed")
    assert entry.observed == "/etc/kafka/1.properties does not exist, or is a link to nothing"
    assert "if it has" in entry.fix, "nothing of ours lies beside a file that we have not come to yet"


def test_a_controller_without_its_flag_is_an_alarm_until_the_end() -> None:
    seen = with_metrics(DUAL, STANDBY, write_behind_lag=None)
    assert ("controller-lost-its-flag", "controller-3001") in keys(found(seen))
    assert keys(found(observation(Point.FINAL))) == []


def test_a_broker_that_serves_and_is_refused_says_so_in_its_log() -> None:
    line = "[2026-11-20 03:00:00,1] INFO Unable to register broker 2 because the controller returned error UNSUPPORTED_VERSION"
    seen = with_metrics(DUAL, LEADER, migrating_broker_count=2, active_broker_count=2)
    (entry,) = found(seen, hints=Hints(logs={2: (line,)}))
    assert (entry.code, entry.object) == ("brokers-not-registered", "broker-2")
    assert "inter.broker.protocol.version" in entry.fix


def test_a_way_to_the_controllers_that_is_open_again_is_no_reason() -> None:
    """Another broker is not registered: who has got through for half a minute is not blamed for it."""
    said = f"{SAID} WARN [NodeToControllerChannelManager] Connection to node 3001 (/127.0.0.1:9093) could not be established."
    later = "[2026-11-20 03:01:00,000] INFO [Broker id=2] Transitioned partition orders-9 (state.change.logger)"
    seen = with_metrics(DUAL, LEADER, active_broker_count=2, migrating_broker_count=2)
    assert [entry.object for entry in found(seen, hints=Hints(logs={2: (STARTED, said)}))] == ["broker-2"]
    assert "broker-2" not in {entry.object for entry in found(seen, hints=Hints(logs={2: (STARTED, said, later)}))}


def test_what_a_broker_said_of_a_peer_is_no_reason_while_all_that_serve_are_counted() -> None:
    """One has died, and its own lines of a controller that was restarted earlier are nobody else's."""
    said = f"{SAID} WARN [NodeToControllerChannelManager] Connection to node 3001 (/127.0.0.1:9093) could not be established."
    seen = dead(with_metrics(DUAL, LEADER, active_broker_count=2, migrating_broker_count=3), 1)
    assert [entry.object for entry in found(seen, hints=Hints(logs={2: (STARTED, said), 3: (STARTED, said)}))] == ["broker-1"]


def test_what_a_broker_said_before_the_controllers_took_it_is_over() -> None:
    refused = (
        "[2026-11-20 03:00:00,1] INFO Unable to register broker 2 because the controller returned error UNSUPPORTED_VERSION"
    )
    taken = "[2026-11-20 03:00:01,1] INFO [BrokerLifecycleManager id=2] Successfully registered broker 2 with broker epoch 175"
    seen = with_metrics(DUAL, LEADER, migrating_broker_count=2, active_broker_count=2)
    assert "broker-2" not in {entry.object for entry in found(seen, hints=Hints(logs={2: (refused, taken)}))}
    assert "broker-2" in {entry.object for entry in found(seen, hints=Hints(logs={2: (taken, refused)}))}


@pytest.mark.parametrize(("counted", "told"), [(2, "has not registered"), (4, "until its session is over")])
def test_counts_that_differ_say_whether_a_broker_is_missing_or_still_counted(counted: int, told: str) -> None:
    (entry,) = found(with_metrics(DUAL, LEADER, migrating_broker_count=counted, active_broker_count=counted))
    assert (entry.code, entry.object) == ("brokers-not-registered", SPEC.node_name(LEADER))
    assert told in entry.fix


def test_what_the_controller_has_against_a_broker_is_quoted_from_its_own_log() -> None:
    refused = f"{SAID} INFO Unable to register broker 2 because the controller returned error INVALID_REGISTRATION"
    told = (
        f"{SAID} INFO [QuorumController id=3001] registerBroker: event failed with InvalidRegistrationException in 9 us. "
        "Exception message: Broker 1 is already registered with directory"
    )
    seen = with_metrics(DUAL, LEADER, migrating_broker_count=2, active_broker_count=2)
    hints = Hints(logs={2: (refused,), LEADER: (told,)})
    entry = next(e for e in found(seen, hints=hints) if e.object == "broker-2")
    assert "Broker 1 is already registered" in entry.observed
    assert SPEC.node_name(LEADER) in entry.observed


def test_a_broker_whose_heartbeats_are_refused_is_told_with_the_principal_that_the_controllers_deny() -> None:
    """It had registered before: an ACL was removed while it ran, or its certificate was renewed with another subject."""
    refused = (
        f"{SAID} WARN [BrokerLifecycleManager id=2] Broker 2 sent a heartbeat request but received error "
        "CLUSTER_AUTHORIZATION_FAILED. (kafka.server.BrokerLifecycleManager)"
    )
    denied = (
        f"{SAID} INFO Principal = User:CN=b2,O=new is Denied operation = CLUSTER_ACTION from host = 10.0.0.2 on resource = "
        "Cluster:LITERAL:kafka-cluster for request = BROKER_HEARTBEAT with resourceRefCount = 1 based on rule DefaultDeny "
        "(kafka.authorizer.logger)"
    )
    seen = with_metrics(DUAL, LEADER, migrating_broker_count=2, active_broker_count=2, fenced_broker_count=1)
    entry = next(e for e in found(seen, hints=Hints(logs={2: (refused,), LEADER: (denied,)})) if e.object == "broker-2")
    assert "received error CLUSTER_AUTHORIZATION_FAILED" in entry.observed
    assert "Principal = User:CN=b2,O=new is Denied operation = CLUSTER_ACTION from host = 10.0.0.2" in entry.observed
    assert "--operation ClusterAction --cluster" in entry.fix
    assert "inter.broker.protocol.version" not in entry.fix


@pytest.mark.parametrize(("times", "is_told"), [(1, False), (2, True)])
def test_a_broker_that_is_fenced_again_and_again_is_named_between_as_well(times: int, is_told: bool) -> None:
    """Once is what a broker leaves that was killed; at the moment of a look it may be registered."""
    lines = (f"{SAID} INFO Fencing broker 2 because its session has timed out. (x)",) * times
    entries = [e for e in found(DUAL, hints=Hints(logs={LEADER: lines})) if e.object == "broker-2"]
    assert bool(entries) is is_told
    assert all("broker.heartbeat.interval.ms" in entry.fix for entry in entries)


@pytest.mark.parametrize(("epochs", "is_told"), [(2, False), (9, True)])
def test_elections_without_an_end_are_told_also_while_somebody_leads(epochs: int, is_told: bool) -> None:
    line = "[2026-11-20 03:01:{:02},123] INFO Completed transition to CandidateState(localId=3001, epoch={}, "
    lines = (STARTED, line.format(1, 0), *(line.format(10 + n, 40 + n) for n in range(epochs)))
    hints = Hints(logs={STANDBY: lines})
    entries = [e for e in found(since(DUAL, 150), hints=hints) if e.object == "the quorum"]
    assert bool(entries) is is_told
    assert all("election.timeout.ms" in entry.fix for entry in entries)
    assert found(since(DUAL, 30), hints=hints) == [], "before a majority runs, whoever does stands again and again"
    assert found(since(DUAL, 7200), hints=hints) == [], "those are over"
    assert found(since(DUAL, 160), hints=hints) == [], "the last one lasts"


def since(seen: Observation, seconds: int) -> Observation:
    """With controllers that have run for so long."""
    for controller in SPEC.controllers:
        process = seen.node(controller.id).process
        assert process is not None
        begun = seen.ended_at - timedelta(seconds=seconds)
        seen = with_part(seen, controller.id, process=process.model_copy(update={"started_at": begun}))
    return seen


def test_a_wait_that_nothing_explains_is_told_with_what_the_nodes_complain_of() -> None:
    hints = Hints(logs={LEADER: (f"{SAID} ERROR the moon is in the way (x)",)})
    (entry,), _ = blockers_of(looked_at(DUAL, hints=hints), Wait(reason=ZkWait.FINALIZATION_NOT_SEEN))
    assert "the moon is in the way" in entry.observed
    (entry,), _ = blockers_of(looked_at(DUAL, hints=hints), Wait(reason=WaitReason.HELD))
    assert "moon" not in entry.observed


@pytest.mark.parametrize(
    ("znode", "observed", "fix"),
    [
        (None, "no broker is the controller", "getAcl /"),
        (ControllerZnode(broker_id=1, kraft_epoch=None, is_ephemeral=False), "is persistent", "delete /controller"),
        (ControllerZnode(broker_id=9, kraft_epoch=-1, is_ephemeral=True), "not registered", "ephemeralOwner"),
    ],
)
def test_who_holds_the_controllers_znode_is_told_as_long_as_zookeeper_has_the_metadata(
    znode: ControllerZnode | None, observed: str, fix: str
) -> None:
    seen = with_zookeeper(observation(Point.CONTROLLERS_UP), controller=znode)
    (entry,) = found(seen)
    assert (entry.code, entry.object) == ("GF11", "/controller")
    assert observed in entry.observed
    assert fix in entry.fix


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("02:41:30", "By their logs, a clock was set back under controller-3001 by 1:59:30, controller-3002 by 1:59:30"),
        ("04:40:59", ""),
        ("04:41:30", ""),
    ],
)
def test_a_quorum_whose_clock_was_set_back_elects_nobody_whatever_its_listeners_do(at: str, words: str) -> None:
    """Timers stand until it is there again."""
    seen = DUAL
    for controller in SPEC.controllers:
        seen = with_metrics(seen, controller.id, active_controller_count=0, raft_leader=-1)
    follows = (
        "Completed transition to FollowerState(fetchTimeoutMs=2000, epoch=7, leader=3002) (org.apache.kafka.raft.QuorumState)"
    )
    lines = (
        STARTED.replace("02:59:00", "04:40:00"),
        f"[2026-11-20 04:41:00,000] INFO [RaftManager id=3001] {follows}",
        f"[2026-11-20 {at},000] INFO [RaftManager id=3001] Node 3002 disconnected. (org.apache.kafka.clients.NetworkClient)",
    )
    logs = {controller.id: lines for controller in SPEC.controllers[:2]}
    (entry,) = (one for one in found(seen, hints=Hints(logs=logs)) if one.object == "the quorum")
    assert words in entry.observed
    assert ("a clock was set back" in entry.observed, "chronyc tracking" in entry.fix) == (bool(words), bool(words))
    assert entry.fix.startswith("An election takes a second") is not bool(words)


def test_a_leader_whose_thread_has_died_is_to_be_restarted_though_its_partitions_cannot_spare_it() -> None:
    """As seen on a way back: waiting does not bring the replica that could stand in for it."""
    said = (
        f"{SAID} ERROR [zk-broker-1-to-controller-alter-partition-channel-manager]: Error due to (kafka.server.X)",
        "java.lang.IllegalArgumentException: A metric named 'MetricName [name=successful-reauthentication-total]' already "
        "exists",
    )
    lags = (PartitionFault(partition="orders-3", missing=(2,), leader=1),)
    seen = with_kafka(DUAL, under_replicated=lags, needs={1: ("orders-3",), 2: (), 3: ()})
    entry = next(e for e in found(seen, hints=Hints(logs={1: (STARTED, *said)})) if e.code == "partitions-not-in-sync")
    assert entry.object == "broker-1"
    assert "channel-manager]: Error due to" in entry.observed
    assert "Restart broker-1: orders-3 cannot be written meanwhile, and nothing that was acknowledged is lost" in entry.fix
    assert "acknowledged is lost, unless unclean.leader.election.enable is true there" in entry.fix


def test_an_order_in_zookeeper_is_nobodys_once_kraft_has_the_metadata() -> None:
    (entry,) = found(with_zookeeper(DUAL, pending_deletions=("orders",)))
    assert (entry.code, entry.object) == ("GF02", "topic deletion")
    assert "no controller takes orders" in entry.observed
    assert "Delete that znode" in entry.fix
    (entry,) = [e for e in found(with_zookeeper(BEFORE, pending_deletions=("orders",))) if e.code == "GF02"]
    assert "Let it finish" in entry.fix


# --- ZooKeeper -------------------------------------------------------------------------------------------------------


# --- the copy --------------------------------------------------------------------------------------------------------


# --- dual write ------------------------------------------------------------------------------------------------------


# --- since when ------------------------------------------------------------------------------------------------------


def test_since_is_when_the_wait_began_and_else_this_look() -> None:
    began = NOW - timedelta(hours=3)
    waiting = Waiting(reason=WaitReason.NODE_DOWN, means="-", since=began, objects=("broker-2",))
    entries = found(dead(dead(DUAL, 2), 3), waiting=waiting)
    assert [(e.object, e.since) for e in entries] == [("broker-2", began), ("broker-3", NOW)]


# --- on the way back -------------------------------------------------------------------------------------------------


def test_the_way_back_has_its_causes_too() -> None:
    ruling = Ruling(accepted_losses=tuple(f"original-of-broker-{n}" for n in (1, 2, 3)))
    assert keys(found(dead(SOAK, 2), ruling)) == [("node-down", "broker-2")]


# --- what nothing waits for yet --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "about", "fix"),
    [
        ({"reassignments": ("orders-1",)}, "partition reassignment", "--cancel"),
        ({"reassignments": ("orders-1",)}, "partition reassignment", "stop_proposal_execution"),
        ({"pending_deletions": ("old",)}, "topic deletion", "every broker that holds a replica"),
        ({"is_preferred_election_pending": True}, "election", "delete its znode"),
    ],
)
def test_work_under_way_is_told_with_its_own_fix(parts: dict[str, object], about: str, fix: str) -> None:
    (entry,) = [one for one in found(with_zookeeper(BEFORE, **parts)) if one.code == "GF02"]
    assert entry.object == about
    assert fix in entry.fix


def test_a_broker_that_somebody_has_taken_out_of_zookeeper_is_named() -> None:
    """Where it is the controller itself, nothing else shows it."""
    for seen in (HYBRID, DUAL):
        gone = with_zookeeper(seen, broker_ids=(1, 3))
        entries, _ = blockers_of(looked_at(gone))
        assert ("brokers-not-registered", "broker-2") in keys(list(entries))
        apart = Unanswered(what="kafka", why="broker 3 lists brokers [1, 3], another one [1, 2, 3]", broker_id=3)
        entries, _ = blockers_of(looked_at(gone.model_copy(update={"kafka": None, "unanswered": (apart,)})))
        assert keys(list(entries)) == [("brokers-not-registered", "broker-2")], "whoever tells of it is well"
    in_kraft, _ = blockers_of(looked_at(SOAK))
    assert "brokers-not-registered" not in {entry.code for entry in in_kraft}


def test_a_broker_that_loses_its_session_again_and_again_registers_without_a_restart() -> None:
    gone = with_zookeeper(HYBRID, broker_ids=(1, 3))
    lost = f"{SAID} WARN Unable to reconnect to ZooKeeper service, session 0x100000d23 has expired (org.apache.z.ClientCnxn)"
    made = f"{SAID} INFO Session establishment complete on server zk1/10.0.0.1:2181, id = 0x1, negotiated timeout = {{}} (X)"
    told = {}
    full = f"{SAID} ERROR Error while creating ephemeral at /brokers/ids/2 with return code: QUOTAEXCEEDED (kafka.zk.X)"
    later = "[2026-11-20 03:10:00,000] INFO what it has said since (x)"
    said = {"lost": (lost,), "short": (made.format(40), lost), "usual": (made.format(18000),), "full": (lost, full, later)}
    for name, lines in said.items():
        entries, _ = blockers_of(looked_at(gone, hints=Hints(logs={2: lines})))
        (told[name],) = (entry for entry in entries if (entry.code, entry.object) == ("brokers-not-registered", "broker-2"))
    assert told["lost"].fix.startswith("Do not restart broker-2")
    assert "negotiated timeout = 40" in told["short"].observed
    assert "maxSessionTimeout" in told["short"].fix
    assert told["usual"].fix.startswith("Restart broker-2")
    assert told["full"].fix.startswith("Raise that quota")
    assert "Do not restart broker-2" not in told["full"].fix


def test_a_log_directory_that_is_somebody_elses_now_is_named_before_the_broker_restarts() -> None:
    def change(node: NodeView) -> NodeView:
        foreign = LogDir(path="/data/2", state=StorageState.FOREIGN, cluster_id="another", node_id=2)
        return node.model_copy(update={"disk": node.disk.model_copy(update={"log_dirs": (foreign,)})})

    entries, _ = blockers_of(looked_at(with_node(DUAL, 2, change)))
    (entry,) = (entry for entry in entries if entry.code == "PF03")
    assert (entry.object, "another" in entry.observed, entry.docs) == ("broker-2 /data/2", True, "docs/checks.md#pf03")


def test_where_all_nodes_are_of_another_cluster_nobody_is_told_to_touch_their_files() -> None:
    """Somebody has registered them under an id that he made up."""
    spec = SPEC.model_copy(update={"cluster_id": "AAAAAAAAAAAAAAAAAAAAAA"})
    entries, _ = blockers_of(case_of(DUAL, spec, POLICY))
    (entry,) = (entry for entry in entries if entry.code == "PF03")
    assert (entry.object, SPEC.cluster_id in entry.observed) == ("cluster_id of the specification", True)
    assert "Touch none of these files" in entry.fix
    emptied = with_zookeeper(DUAL, cluster_id=None)
    entries, _ = blockers_of(case_of(emptied, spec, POLICY))
    (fix,) = (entry.fix for entry in entries if entry.object == "/cluster/id")
    assert SPEC.cluster_id in fix, "the nodes' id, not the specification's"


@pytest.mark.parametrize("state", [StorageState.EMPTY, StorageState.ABSENT])
def test_a_log_directory_without_anything_under_a_broker_that_runs_is_no_place_for_meta_properties(state: StorageState) -> None:
    def change(node: NodeView) -> NodeView:
        empty = LogDir(path="/data/2", state=state, cluster_id=None, node_id=None)
        return node.model_copy(update={"disk": node.disk.model_copy(update={"log_dirs": (empty,)})})

    (entry,) = (entry for entry in found(with_node(DUAL, 2, change)) if entry.code == "PF03")
    assert "findmnt" in entry.fix
    assert "Write no meta.properties there" in entry.fix


@pytest.mark.parametrize(("peer", "told"), [(3002, True), (1, False)])
def test_a_broker_that_cannot_reach_another_broker_is_registered_all_the_same(peer: int, told: bool) -> None:
    line = f"Connection to node {peer} (/10.0.0.1:9092) could not be established. Node may not be available."
    seen = with_metrics(DUAL, LEADER, migrating_broker_count=2, active_broker_count=2)
    entries = found(seen, hints=Hints(logs={2: (line,)}))
    assert ("broker-2" in {entry.object for entry in entries}) is told


def test_a_controller_that_is_answered_with_another_cluster_s_id_is_named() -> None:
    said = "[x] ERROR [RaftManager id=3001] Unexpected error INCONSISTENT_CLUSTER_ID in FETCH response: InboundResponse(secret)"
    seen = with_metrics(observation(Point.CONTROLLERS_UP), STANDBY, raft_leader=-1)
    entries, _ = blockers_of(looked_at(seen, hints=Hints(logs={STANDBY: (said,)})))
    (entry,) = (entry for entry in entries if entry.object == "controller-3001")
    assert (entry.code, "INCONSISTENT_CLUSTER_ID in FETCH" in entry.observed) == ("controllers-not-ready", True)
    assert "secret" not in entry.observed
    assert "meta.properties" in entry.fix


def test_files_that_cannot_be_used_are_no_reason_to_look_for_the_host() -> None:
    why = "server.properties.mark cannot be read: it is ours. Restore it"
    unread = with_part(DUAL, 2, disk=None).model_copy(update={"unanswered": (Unanswered(what="files of broker-2", why=why),)})
    entries, _ = blockers_of(looked_at(unread))
    (entry,) = (entry for entry in entries if entry.object == "broker-2")
    assert (why in entry.observed, "fix what is named" in entry.fix, "reachable" in entry.fix) == (True, True, False)


def test_a_controller_that_runs_on_storage_that_is_gone_is_told_and_not_taken_for_fenced() -> None:
    """Somebody has emptied its directory: it runs on, and is not to be started again and again."""
    view = DUAL.node(STANDBY)
    assert view.disk is not None
    gone = tuple(one.model_copy(update={"state": StorageState.EMPTY}) for one in view.disk.log_dirs)
    seen = with_part(DUAL, STANDBY, disk=view.disk.model_copy(update={"log_dirs": gone}))
    assert not fenced(situation_of(seen, SPEC, POLICY))
    entries = [entry for entry in found(seen) if entry.code == "PF03"]
    assert [entry.object.split()[0] for entry in entries] == [SPEC.node_name(STANDBY)]
    assert "kafka-storage.sh format --cluster-id" in entries[0].fix


def test_where_min_insync_replicas_was_raised_for_all_brokers_no_topic_is_to_be_changed() -> None:
    """By no topic's config, and in no file."""
    seen = with_kafka(DUAL, needs={1: ("customers-0",), 2: (), 3: ()})
    line = "min.insync.replicas in /config/brokers/<default> is new: 3"
    changes = {ZOOKEEPER: MachineChanges(since=datetime(2026, 11, 26, tzinfo=UTC), where="there", changes=(line,))}
    (entry,) = (one for one in found(seen, hints=Hints(changes=changes)) if one.code == WaitReason.PARTITIONS_WOULD_STOP)
    assert line in entry.observed
    assert "--entity-default" in entry.fix
    (entry,) = found(seen)
    assert entry.fix == WAITS[WaitReason.PARTITIONS_WOULD_STOP].means
