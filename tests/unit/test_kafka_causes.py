"""Why Kafka does not answer as a whole, and why replicas lag: each reason with its own object and fix."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.cluster import ClusterSpec, JolokiaEndpoint, host_of
from domain.decisions import Wait
from domain.diagnosis.blocker import Blocker
from domain.diagnosis.causes.case import restart_of
from domain.diagnosis.causes.hints import Asked, ConnectionLimit, Hints, Serving
from domain.diagnosis.causes.reachability import PROXY_HEADER, listening
from domain.diagnosis.machines.notes import MachineChanges
from domain.errors import Obstacle
from domain.observed.observation import ControllerZnode, Observation, PartitionFault, Unanswered
from domain.waits import WaitReason
from domain.zk_to_kraft.blockers import blockers_of
from domain.zk_to_kraft.causes.case import MigrationCase, case_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.probed import with_probed
from tests.unit.conftest import (
    CONNECT,
    LEADER,
    Point,
    cluster_spec,
    observation,
    signs_of,
    stopped,
    with_file,
    with_kafka,
    with_metrics,
    with_part,
    with_zookeeper,
)

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy()
BEFORE, DUAL = observation(Point.CONTROLLERS_UP), observation(Point.DUAL_WRITE)
REFUSED = "Error for partition orders-1 at offset 9"
MANY = (
    "INFO Rejected connection from /10.0.0.7, address already has the configured maximum of 20 connections. (kafka.network.A)"
)
FETCHER = "[2026-11-20 03:00:00,000] WARN [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] "


def looked_at(seen: Observation, **hints: object) -> MigrationCase:
    return replace(case_of(seen, SPEC, POLICY), hints=Hints(**hints))  # type: ignore[arg-type]


def entries(seen: Observation, **hints: object) -> list[Blocker]:
    return list(blockers_of(looked_at(seen, **hints))[0])


def silent(seen: Observation, why: str = "it says so", **about: object) -> Observation:
    part = Unanswered(what="kafka", why=why, **about)  # type: ignore[arg-type]
    return seen.model_copy(update={"kafka": None, "unanswered": (*seen.unanswered, part)})


def dead(seen: Observation, node_id: int) -> Observation:
    return with_part(seen, node_id, process=stopped("x"), metrics=None)


def lagging(seen: Observation, *faults: tuple[str, tuple[int, ...], int | None], **kafka: object) -> Observation:
    found = tuple(PartitionFault(partition=name, missing=missing, leader=leader) for name, missing, leader in faults)
    return with_kafka(seen, under_replicated=found, **kafka)


REWRITTEN = (
    "[2026-11-20 03:00:00,000] INFO [Controller id=3] Failed to update ISR to LeaderAndIsr(leader=1, leaderEpoch=2, "
    "isrWithBrokerEpoch=List(BrokerState(brokerId=1, brokerEpoch=-1)), leaderRecoveryState=RECOVERED, partitionEpoch=3) for "
    "partition orders-1, bad ZK version. (kafka.controller.KafkaController)"
)


def test_a_broker_that_zookeepers_controller_does_not_reach_is_not_to_be_restarted_for_it() -> None:
    assert BEFORE.zookeeper is not None
    owner = BEFORE.zookeeper.controller
    assert owner is not None
    name, other = SPEC.node_name(owner.broker_id), next(b.id for b in SPEC.brokers if b.id != owner.broker_id)
    said = (
        f"[2026-11-20 03:00:00,000] WARN [RequestSendThread controllerId={owner.broker_id}] Controller {owner.broker_id}'s "
        f"connection to broker h:9092 (id: {other} rack: null) was unsuccessful (kafka.controller.RequestSendThread)"
    )
    seen = lagging(BEFORE, ("orders-1", (other,), owner.broker_id))
    (entry,) = entries(seen, logs={owner.broker_id: (said,)})
    assert entry.object == name
    assert f"{name} is the controller, and its log says: " in entry.observed
    assert entry.fix.startswith("Check the way from ")
    connected = (
        f"[2026-11-20 03:00:01,000] INFO [RequestSendThread controllerId={owner.broker_id}] Controller {owner.broker_id} "
        f"connected to h:9092 (id: {other} rack: null) for sending state change requests (kafka.controller.RequestSendThread)"
    )
    (entry,) = entries(seen, logs={owner.broker_id: (said, connected)})
    assert "does not reach that one" not in entry.fix


def test_a_state_that_somebody_has_written_past_the_controller_is_told_with_the_cure() -> None:
    """By the log of whoever is the controller: the followers are well, and their restart is not the first to try."""
    assert BEFORE.zookeeper is not None
    owner = BEFORE.zookeeper.controller
    assert owner is not None
    seen = lagging(BEFORE, ("orders-1", (2,), 1), ("orders-2", (2,), 1))
    (entry,) = entries(seen, logs={owner.broker_id: (REWRITTEN,)})
    assert "cannot write down their in-sync sets: for partition orders-1, bad ZK version" in entry.observed
    assert ("zkCli.sh delete /controller" in entry.fix, "restart" in entry.fix.lower()) == (True, False)
    (entry,) = entries(lagging(BEFORE, ("orders-2", (2,), 1)), logs={owner.broker_id: (REWRITTEN,)})
    assert "zkCli.sh" not in entry.fix, "of another partition, and over perhaps"


def test_a_broker_that_only_the_controllers_know_is_named_and_no_session_is_waited_for() -> None:
    """As of a scale-out from a KRaft template, in the middle of it."""
    seen = with_metrics(with_kafka(DUAL, broker_ids=(1, 2, 3, 4)), LEADER, active_broker_count=4)
    (entry,) = entries(seen)
    assert (entry.code, entry.object) == ("brokers-not-registered", "broker 4")
    assert "kafka-cluster.sh unregister --id 4" in entry.fix
    apart = with_metrics(silent(DUAL, broker_id=2, listed=(1, 2, 3, 4)), LEADER, active_broker_count=4)
    assert [entry.object for entry in entries(apart)] == ["broker 4"], "whoever lists it, and whoever does not yet"
    (entry,) = entries(with_metrics(DUAL, LEADER, active_broker_count=4))
    assert "session" in entry.fix, "who is not listed may just have ended"


def test_who_follows_a_leader_that_stands_still_is_not_to_be_restarted() -> None:
    seen = lagging(DUAL, ("orders-1", (3,), 2), ("orders-2", (3,), 2))
    hints = {"signs": {"broker-2": signs_of(stuck_threads=4)}}
    (entry,) = entries(seen, **hints)
    assert (entry.object, "4 of its threads wait in the kernel" in entry.observed) == ("broker-2", True)
    assert "fsfreeze" in entry.fix
    (entry,) = entries(seen)
    assert entry.object == "broker-3"
    silent_too = with_part(seen, 2, metrics=None)
    part = Unanswered(what="metrics of broker-2", why="timed out")
    silent_too = silent_too.model_copy(update={"unanswered": (*silent_too.unanswered, part)})
    assert [entry.object for entry in entries(silent_too)] == ["broker-2"]


# --- no answer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "told", "fix"),
    [
        ({"is_refused": True}, "kafka client_properties", "kafka.client_properties"),
        ({"broker_id": 2, "address": "127.0.0.1:1"}, "broker-2", "/etc/kafka/2.properties"),
        ({"broker_id": 2}, "broker-2", "hears from no controller"),
        ({}, "kafka", "RequestHandlerAvgIdlePercent"),
    ],
)
def test_each_reason_why_kafka_is_silent_has_its_object_and_its_fix(about: dict[str, object], told: str, fix: str) -> None:
    (entry,) = entries(silent(DUAL, **about))
    assert (entry.code, entry.object, fix in entry.fix) == ("part-unknown", told, True)


def test_what_we_lack_ourselves_is_no_brokers_fault() -> None:
    (entry,) = entries(silent(DUAL, obstacle=Obstacle.OURS))
    assert (entry.code, entry.object) == ("machine", "keeperless-activities")
    assert "Restart none of them" in entry.fix


@pytest.mark.parametrize("claim", [None, ControllerZnode(broker_id=3, kraft_epoch=None, is_ephemeral=True)])
def test_while_two_controllers_rule_what_brokers_list_is_no_cause_of_its_own(claim: ControllerZnode | None) -> None:
    """Some hear from the one and some from the other: by turns they disagree, or list too few."""
    torn = with_zookeeper(DUAL, controller=claim)
    torn = with_probed(torn, failover_hazards=())
    for seen in (silent(torn, broker_id=2), with_kafka(torn, broker_ids=(2, 3))):
        looked = case_of(seen, SPEC, POLICY)
        waits = [Wait(reason=reason) for reason in (WaitReason.PART_UNKNOWN, WaitReason.PARTITIONS_NOT_IN_SYNC)]
        found, _ = blockers_of(looked, *waits)
        assert [(entry.code, entry.object) for entry in found] == [("dual-write-not-current", "/controller")]


def test_a_dead_broker_explains_silence_and_disagreement_but_no_refusal() -> None:
    def objects(**about: object) -> list[str]:
        return [entry.object for entry in entries(dead(silent(DUAL, **about), 3))]

    assert objects() == objects(broker_id=2) == objects(broker_id=3, address="127.0.0.1:1") == ["broker-3"]
    assert objects(is_refused=True) == ["broker-3", "kafka client_properties"]


def test_an_address_in_the_file_is_corrected_there() -> None:
    (entry,) = entries(silent(DUAL, broker_id=2, address="127.0.0.1:1"))
    assert "127.0.0.1:1" in entry.observed
    assert "it says PLAINTEXT://127.0.0.1:9094" in entry.fix


def test_an_address_that_is_set_dynamically_is_taken_back_where_that_works() -> None:
    """Not through the broker itself, which the tool would look for at that very address."""
    hints = {"unheard": {2: ("127.0.0.1:1",)}, "set_dynamically": {2: ("127.0.0.1:1",)}}
    (entry,) = entries(silent(BEFORE), **hints)
    assert ("/config/brokers/2" in entry.observed, "/config/changes/config_change_" in entry.fix) == (True, True)
    assert "--zookeeper 127.0.0.1:2181" in entry.fix
    assert "--add-config" not in entry.fix
    (entry,) = entries(silent(DUAL), **hints)
    assert "Stop broker-2, kafka-configs.sh --zookeeper 127.0.0.1:2181" in entry.fix
    assert "--add-config" in entry.fix, "the quorum's log has it too, and the tool deletes only what the broker has"
    assert "/config/changes" not in entry.fix, "a change of address reaches the controllers with a start only"
    (entry,) = entries(silent(DUAL), unheard={2: ("127.0.0.1:1",)}, set_dynamically={2: ("127.0.0.1:12",)})
    assert "/etc/kafka/2.properties" in entry.fix


@pytest.mark.parametrize("at", ["10.90.0.3:29187", "broker-2.internal:29187"])
def test_an_address_that_its_machine_has_lost_is_named_first_and_nobody_restarts_for_it(at: str) -> None:
    """A lease that has ended, a networkd that was upgraded: the broker listens at what is not there any more."""
    lines = ("address 3: eth1 inet 10.90.0.3/24 scope global secondary eth1 is gone", "route default is gone")
    changes = {"broker-1": MachineChanges(since=datetime(2026, 11, 26, tzinfo=UTC), changes=lines)}
    hints = {"unheard": {2: (at,)}, "changes": changes, "numbers": {"broker-2.internal": ("10.90.0.3",)}}
    entry = next(one for one in entries(silent(DUAL), **hints) if one.object == "broker-2")
    assert "10.90.0.3 is no address of its machine any more: it was on eth1" in entry.observed
    assert entry.fix.startswith("Have it back: `ip addr add 10.90.0.3/24 dev eth1`")
    assert "Restart nothing" in entry.fix
    moved_to = "address 2: eth0 inet 10.90.0.3/24 scope global dynamic eth0 is new"
    moved = {"broker-1": MachineChanges(since=datetime(2026, 11, 26, tzinfo=UTC), changes=(*lines, moved_to))}
    others = entries(silent(DUAL), unheard={2: ("10.90.0.4:1",)}, changes=changes)
    others += entries(silent(DUAL), **{**hints, "changes": moved})
    assert not any("is no address" in one.observed for one in others)


def test_a_broker_whose_answers_arrive_changed_is_left_running() -> None:
    odd = Asked("127.0.0.1:9094", "its answer is not one of Kafka's protocol", Obstacle.GARBLED)
    (entry,) = entries(silent(DUAL), asked={1: WELL, 2: odd, 3: WELL})
    assert entry.object == "broker-2"
    assert "leave the broker running" in entry.fix
    assert "jstack" not in entry.fix


@pytest.mark.parametrize("found", [{"unheard": {2: ("127.0.0.1:1",)}}, {"partly": {2: {"127.0.0.1:1": (3, 8)}}}])
def test_connections_that_are_reset_are_told_as_that_and_the_broker_is_left_alone(found: dict[str, object]) -> None:
    (entry,) = entries(silent(DUAL), **found, cut=frozenset({"127.0.0.1:1"}))
    assert "reset as soon as they are made" in entry.observed
    assert "no connection is accepted" not in entry.observed
    assert "port 1'" in entry.fix
    assert "restart" not in entry.fix


def test_where_brokers_answer_too_late_their_logs_are_asked_why() -> None:
    (entry,) = entries(silent(DUAL), logs={2: (f"[2026-11-20 03:00:00,000] {MANY}",)})
    assert (entry.object, "The log of broker-2 says: Rejected connection from" in entry.observed) == ("kafka", True)
    assert "max.connections.per.ip" in entry.fix
    (entry,) = entries(silent(DUAL), logs={2: (f"[2026-11-20 03:00:00,000] {MANY}".replace("INFO Rejected", "WARN Left"),)})
    assert "The last complaint in the log of broker-2" in entry.observed
    assert "RequestHandlerAvgIdlePercent" in entry.fix


MUTE = Asked("127.0.0.1:9094", "it accepts the connection, but answers no request within 2 s", Obstacle.LATE)
WELL = Asked("127.0.0.1:9093")


def test_no_broker_is_restarted_while_zookeeper_is_gone() -> None:
    servers = {"zk-1:2181": Serving.REFUSED, "zk-2:2181": Serving.REFUSED, "zk-3:2181": Serving.NO}
    found = entries(silent(DUAL), asked={1: WELL, 2: MUTE, 3: WELL}, servers=servers)
    (mute,) = [entry for entry in found if entry.object == "broker-2"]
    assert mute.fix.startswith("First restore ZooKeeper's ensemble")


BY_ADDRESS = ConnectionLimit("connection_creation_rate", "1", "/config/ips/<default>")
CLOSED = Asked("127.0.0.1:9093", "it closes our connection, or cannot be reached", Obstacle.LATE)


def test_brokers_that_close_connections_above_a_rate_are_told_by_that_and_none_is_blamed() -> None:
    """They do not say so, and who answers changes from look to look."""
    (entry,) = entries(silent(DUAL), asked={1: CLOSED, 2: MUTE, 3: WELL}, limits=(BY_ADDRESS,))
    assert (entry.code, entry.object) == ("part-unknown", "connection_creation_rate in /config/ips/<default>")
    assert "no more than 1 new connections a second come, from any one address" in entry.observed
    assert "--entity-type ips --entity-default --delete-config connection_creation_rate" in entry.fix


def test_a_rate_that_is_in_a_brokers_file_is_raised_without_a_restart() -> None:
    seen = with_file(silent(DUAL), 2, "broker.id=2\nmax.connection.creation.rate=2\n", None)
    (entry,) = (one for one in entries(seen, asked={1: WELL, 2: CLOSED}) if one.code == "part-unknown")
    assert entry.object == "max.connection.creation.rate in /etc/kafka/2.properties"
    assert "--entity-type brokers --entity-default --add-config max.connection.creation.rate=NUMBER" in entry.fix
    raised = ConnectionLimit("max.connection.creation.rate", "2000", "/config/brokers/<default>")
    found = entries(seen, asked={1: WELL, 2: CLOSED}, limits=(raised,))
    (entry,) = (one for one in found if one.code == "part-unknown")
    assert entry.object == "broker-2"


def test_of_a_broker_that_is_only_late_a_rate_is_the_first_thing_to_look_at() -> None:
    (entry,) = entries(silent(DUAL), asked={1: WELL, 2: MUTE}, limits=(BY_ADDRESS,))
    assert entry.object == "broker-2"
    assert "connection_creation_rate=1 in /config/ips/<default>" in entry.observed
    assert entry.fix.startswith("Raise or remove it")


@pytest.mark.parametrize(
    "limit",
    [
        ConnectionLimit("max.connections", "20", "/config/brokers/<default>"),
        ConnectionLimit("connection_creation_rate", "500", "/config/ips/<default>"),
    ],
)
def test_a_limit_that_need_not_be_reached_is_named_beside_who_closes(limit: ConnectionLimit) -> None:
    (entry,) = entries(silent(DUAL), asked={1: WELL, 2: CLOSED}, limits=(limit,))
    assert entry.object == "broker-2"
    assert f"Its connections are limited: {limit.in_words}" in entry.observed


DIRECT = "java.lang.OutOfMemoryError: Cannot reserve 54525990 bytes of direct buffer memory (allocated: 9, limit: 50331648)"


def test_a_mute_broker_that_says_what_it_lacks_is_told_by_that() -> None:
    (entry,) = entries(
        silent(DUAL), asked={1: WELL, 2: MUTE}, logs={2: ("[2026-11-20 03:00:00,000] ERROR Processor got uncaught", DIRECT)}
    )
    assert entry.object == "broker-2"
    assert "54525990 bytes of direct buffer memory" in entry.observed
    assert "-XX:MaxDirectMemorySize" in entry.fix
    assert "jstack" not in entry.fix


@pytest.mark.parametrize("seen", ["late", "forbidden"])
def test_what_it_lacked_long_ago_or_what_keeps_nobody_out_is_no_cause(seen: str) -> None:
    heap = "java.lang.OutOfMemoryError: Java heap space"
    if seen == "late":
        logs = {2: ("[2026-11-20 03:00:00,000] ERROR x", heap, "[2026-11-26 03:00:00,000] INFO all is well")}
        (entry,) = entries(silent(DUAL), asked={1: WELL, 2: MUTE}, logs=logs)
    else:
        barred = Asked("127.0.0.1:9094", "it rejects the login", Obstacle.FORBIDDEN)
        (entry,) = entries(silent(DUAL), asked={1: WELL, 2: barred}, logs={2: ("[2026-11-20 03:00:00,000] ERROR x", heap)})
    assert entry.object == "broker-2"
    assert "-Xmx" not in entry.fix


def test_a_leader_that_says_what_it_lacks_is_told_by_that_before_its_followers() -> None:
    faults = (PartitionFault(partition="orders-1", missing=(2,), leader=1),)
    logs = {1: ("[2026-11-20 03:00:00,000] ERROR Processor got uncaught exception.", DIRECT)}
    (entry,) = (one for one in entries(with_kafka(DUAL, under_replicated=faults), logs=logs) if one.object == "broker-1")
    assert "direct buffer memory" in entry.observed
    assert "-XX:MaxDirectMemorySize" in entry.fix


@pytest.mark.parametrize(("unread", "is_told"), [(0, True), (9, False)])
def test_a_leader_whose_link_is_slow_is_told_and_nobody_is_to_be_restarted(unread: int, is_told: bool) -> None:
    """Followers' logs say that it does not answer in time; one that reads nothing is to blame itself."""
    faults = (PartitionFault(partition="orders-1", missing=(2,), leader=1),)
    silence = f"{FETCHER}Disconnecting from node 1 due to request timeout."
    host = host_of(next(address for address, name in listening(looked_at(DUAL)) if name == "broker-2"))
    sends = signs_of(unsent=((f"{host}:45678", 44_000, 3_000.0),), on_cpu=0.1)
    signs = {"broker-1": sends, "broker-2": signs_of(unread=unread, on_cpu=0.1)}
    found = entries(with_kafka(DUAL, under_replicated=faults), logs={2: (silence,)}, signs=signs)
    entry = next(one for one in found if one.code == "partitions-not-in-sync")
    assert ("its link may carry less than is written" in entry.observed) is is_told
    assert ("44 kB wait, 3.0 kB a second get through" in entry.observed) is is_told
    assert (entry.object, "Restart none of them" in entry.fix) == (("broker-1", True) if is_told else ("broker-2", False))


def test_of_a_broker_whose_link_is_full_no_listener_is_to_be_opened() -> None:
    """A connection to it takes seconds, like all else."""
    host = host_of(next(address for address, name in listening(looked_at(DUAL)) if name == "broker-3"))
    signs = {"broker-2": signs_of(unsent=((f"{host}:45678", 44_000, 3_000.0),), on_cpu=0.1)}
    seen = with_kafka(DUAL, under_replicated=(PartitionFault(partition="a-0", missing=(1,), leader=2),))
    (entry,) = (one for one in entries(seen, unheard={2: ("10.0.0.2:9092",)}, signs=signs) if one.object == "broker-2")
    assert "its link may be full" in entry.observed
    assert "ethtool" in entry.fix
    assert "advertised.listeners" not in entry.fix


def test_a_broker_that_asks_at_a_listener_that_the_others_have_not_got_is_told_so() -> None:
    """Its own log has only that it connects to an empty node."""
    faults = (PartitionFault(partition="orders-1", missing=(2,), leader=1),)
    seen = with_kafka(DUAL, under_replicated=faults)
    seen = with_file(seen, 2, "broker.id=2\ninter.broker.listener.name=REPLICATION\n", None)
    said = (
        f"{FETCHER.replace('leaderId=1', 'leaderId=-1')}Error in response for fetch request (type=FetchRequest, replicaId=2)",
        "java.lang.IllegalArgumentException: Cannot connect to empty node :-1 (id: -1 rack: null)",
    )
    (entry,) = (one for one in entries(seen, logs={2: said}) if one.code == "partitions-not-in-sync")
    assert entry.object == "broker-2"
    assert "It asks at their listener REPLICATION" in entry.observed
    assert "inter.broker.listener.name" in entry.fix
    assert "look at disk" not in entry.fix


def test_what_a_log_says_for_sure_is_told_before_a_limit_or_a_link_that_may_be_the_cause() -> None:
    faults = (PartitionFault(partition="orders-1", missing=(2,), leader=1),)
    dead_disk = "[2026-11-20 03:00:00,000] WARN [ReplicaManager broker=2] Stopping serving replicas in dir /data/2 with uuid x"
    (entry,) = entries(with_kafka(DUAL, under_replicated=faults), logs={2: (dead_disk,)}, limits=(BY_ADDRESS,))
    assert "Stopping serving replicas" in entry.observed


def test_followers_do_not_come_by_the_limit_of_a_broker() -> None:
    """Where brokers have a listener for themselves it is spared."""
    faults = (PartitionFault(partition="a-0", missing=(2,)),)
    limit = ConnectionLimit("max.connection.creation.rate", "1", "/config/brokers/<default>")
    (entry,) = entries(with_kafka(DUAL, under_replicated=faults), limits=(limit,))
    assert "limited" not in entry.observed


def test_replicas_that_lag_where_new_connections_are_limited_are_told_so() -> None:
    faults = (PartitionFault(partition="a-0", missing=(2,)),)
    (entry,) = entries(with_kafka(DUAL, under_replicated=faults), limits=(BY_ADDRESS,))
    assert (entry.code, BY_ADDRESS.in_words in entry.observed) == ("partitions-not-in-sync", True)


@pytest.mark.parametrize("about", [{"is_cut_short": True}, {"broker_id": 2, "obstacle": Obstacle.LATE}])
def test_the_one_broker_that_does_not_answer_is_named_with_those_that_do(about: dict[str, object]) -> None:
    (entry,) = entries(silent(DUAL, "no answer within 5 s", **about), asked={1: WELL, 2: MUTE, 3: WELL})
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert entry.observed.startswith(
        "asked by itself at 127.0.0.1:9094, it accepts the connection, but answers no request within 2 s; broker-1, "
        "broker-3 answer"
    )
    assert "restart broker-2 once its partitions can spare it" in entry.fix


@pytest.mark.parametrize(("size", "is_told"), [(218762506, True), (1347571544, True), (1195725856, False)])
def test_a_balancer_that_sends_headers_of_its_own_is_told_and_no_broker_is_to_be_restarted(*, size: int, is_told: bool) -> None:
    """The third is an HTTP request (`GET `): some scanner's, which keeps nobody from anything."""
    said = (
        "[2026-11-26 02:33:53,160] WARN [SocketServer listenerType=ZK_BROKER, nodeId=2] Unexpected error from "
        "/127.0.0.1 (channelId=127.0.0.1:27444-127.0.0.1:40922-34); closing connection (org.apache.kafka.common.network.X)",
        f"org.apache.kafka.common.network.InvalidReceiveException: Invalid receive (size = {size} larger than 104857600)",
        "\tat org.apache.kafka.common.network.NetworkReceive.readFrom(NetworkReceive.java:95)",
    )
    (entry,) = entries(silent(DUAL), asked={1: WELL, 2: MUTE, 3: WELL}, logs={2: said})
    assert (entry.object, "PROXY protocol" in entry.observed) == ("broker-2", is_told)
    assert (entry.fix == PROXY_HEADER.fix, "restart broker-2 once" in entry.fix) == (is_told, not is_told)
    busy = {"broker-2": signs_of(on_cpu=0.05, awaiting_cpu=0.95)}
    (entry,) = entries(silent(DUAL), asked={1: WELL, 2: MUTE, 3: WELL}, logs={2: said}, signs=busy)
    assert entry.fix.startswith(PROXY_HEADER.fix if is_told else "Check what broker-2 waits for")
    assert "Find what else has its CPUs" in entry.fix
    lagging = with_kafka(DUAL, under_replicated=(PartitionFault(partition="a-0", missing=(1,), leader=2),))
    (entry,) = entries(lagging, logs={2: said})
    assert (entry.object == "broker-2", "PROXY protocol" in entry.observed) == (is_told, is_told)


def test_a_broker_to_which_the_way_is_long_accepts_connections_late() -> None:
    """Neither a firewall nor its address is to blame, and it is not to be restarted."""
    address = "127.0.0.1:9094"
    lagging = with_kafka(DUAL, under_replicated=(PartitionFault(partition="a-0", missing=(1,), leader=2),))
    for signs in ({"signs": {"broker-1": signs_of(far=((address, 6.0),))}}, {"own_signs": signs_of(far=((address, 6.0),))}):
        entry = next(one for one in entries(lagging, unheard={2: (address,)}, **signs) if one.object == "broker-2")
        assert "the way there and back takes 6.0 s" in entry.observed
        assert entry.fix.startswith("Find what made the way so long")
        assert "firewall" not in entry.fix


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_broker_in_whose_place_another_one_answers_is_told_and_no_broker_is_to_be_restarted(*, is_silent: bool) -> None:
    """What lags because of it is no entry of its own: neither what it leads, nor what it should follow."""
    other = Asked("127.0.0.1:9094", "broker 1 answers, and not broker 2", Obstacle.ANOTHERS)
    faults = (PartitionFault(partition="a-0", missing=(1,), leader=2), PartitionFault(partition="b-0", missing=(2,), leader=3))
    seen = silent(DUAL) if is_silent else with_kafka(DUAL, under_replicated=faults)
    (entry,) = entries(seen, asked={1: WELL, 2: other, 3: WELL}, signs={"broker-2": signs_of(on_cpu=0.05, awaiting_cpu=0.95)})
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert "at its address 127.0.0.1:9094 broker 1 answers, and not broker 2" in entry.observed
    assert entry.fix.startswith("Correct what leads there: the target of a load balancer")


def test_what_the_machine_says_of_the_one_that_does_not_answer_stands_in_its_entry() -> None:
    asked = {1: WELL, 2: MUTE, 3: WELL}
    found = entries(silent(DUAL), asked=asked, signs={"broker-2": signs_of(unread=4, on_cpu=0.1)})
    entry = next(entry for entry in found if entry.code == "part-unknown")
    assert (entry.object, "what 4 of its connections have brought" in entry.observed) == ("broker-2", True)
    assert not [entry for entry in found if entry.code == "machine"]


def test_a_broker_that_lets_us_not_in_alone_is_told_what_it_has_that_the_others_have_not() -> None:
    asked = {1: WELL, 2: Asked("127.0.0.1:9094", "the TLS handshake fails (certificate has expired)", Obstacle.TLS)}
    (entry,) = entries(silent(DUAL), asked=asked)
    assert (entry.object, "openssl s_client" in entry.fix) == ("broker-2", True)


def test_where_none_answers_or_each_does_no_broker_is_blamed() -> None:
    (entry,) = entries(silent(DUAL), asked=dict.fromkeys((1, 2, 3), MUTE))
    assert (entry.object, "Asked by itself, none answers: broker-1 at 127.0.0.1:9094: it accepts" in entry.observed) == (
        "kafka",
        True,
    )
    (entry,) = entries(silent(DUAL), asked=dict.fromkeys((1, 2, 3), WELL))
    assert (entry.object, "each of broker-1, broker-2, broker-3 answers" in entry.observed) == ("kafka", True)


def test_who_was_not_heard_is_none_of_those_that_answer() -> None:
    (entry,) = entries(silent(DUAL), asked={1: WELL, 3: WELL})
    assert "each of broker-1, broker-3 answers; of broker-2 this look has heard nothing" in entry.observed


@pytest.mark.parametrize(
    ("obstacle", "why"),
    [(Obstacle.UNRESOLVED, "the name kafka-2 is not resolved"), (Obstacle.OURS, "Too many open files")],
)
def test_a_broker_that_could_not_even_be_asked_is_not_mute(obstacle: Obstacle, why: str) -> None:
    asked = {1: WELL, 2: Asked("kafka-2:9092", why, obstacle), 3: WELL}
    (entry,) = entries(silent(DUAL, "no answer within 5 s", is_cut_short=True), asked=asked)
    assert (entry.code, entry.object) == ("machine", "keeperless-activities")
    assert f"kafka-2:9092: {why}" in entry.observed
    found = entries(silent(DUAL), asked=asked | {3: MUTE})
    assert [entry.object for entry in found] == ["keeperless-activities", "broker-3"]


def test_of_a_broker_that_is_dead_or_is_not_reached_no_more_is_told_and_no_less_of_another() -> None:
    gone, mute = Asked("127.0.0.1:9095", "it accepts no connection within 1 s"), {1: WELL, 2: MUTE}
    assert [entry.object for entry in entries(dead(silent(DUAL), 3), asked=mute)] == ["broker-3", "broker-2"]
    found = entries(silent(DUAL), asked=mute | {3: gone}, unheard={3: ("127.0.0.1:9095",)})
    assert [entry.object for entry in found] == ["broker-3", "broker-2"]


@pytest.mark.parametrize("is_mute", [True, False])
def test_of_connections_some_get_through_and_that_is_all_that_is_told_of_the_broker(is_mute: bool) -> None:
    """As where one link of a port channel passes nothing: a single one says that all is well, or that nobody is there."""
    partly = {"127.0.0.1:9094": (5, 8)}
    seen = silent(DUAL, "no answer within 5 s", is_cut_short=True) if is_mute else lagging(DUAL, ("orders-1", (3,), 2))
    also = {"asked": {1: WELL, 2: MUTE, 3: WELL}, "unheard": {2: ("127.0.0.1:9094",)}} if is_mute else {}
    found = entries(seen, partly={2: partly}, **also)
    (entry,) = [one for one in found if one.object == "broker-2"]
    assert entry.code == "part-unknown"
    assert "5 of 8 connections that were opened to 127.0.0.1:9094 at the same time got through" in entry.observed
    assert "port channel" in entry.fix
    assert "jstack" not in entry.fix
    assert len(found) == 1, "replicas that lag are explained by it"


def test_whom_a_step_has_in_hand_nobody_is_told_to_restart_meanwhile() -> None:
    looked = looked_at(DUAL)
    ours = replace(looked, in_hand=frozenset({"broker-3"}), step_since=DUAL.ended_at - timedelta(minutes=1))
    assert restart_of(ours, 3) == "restart broker-3, but not while a step of this migration has it in hand"
    assert restart_of(looked, 3).startswith("restart broker-3 (its partitions can spare it now)")


def test_a_broker_that_is_not_ours_to_know_is_named_all_the_same() -> None:
    (entry,) = entries(silent(DUAL, broker_id=9, address="10.0.0.9:9092"))
    assert (entry.object, "not in the cluster's specification" in entry.fix) == ("broker 9", True)


@pytest.mark.parametrize(
    ("obstacle", "words"),
    [(Obstacle.TLS, "openssl s_client"), (Obstacle.FORBIDDEN, "JAAS section")],
)
def test_what_one_broker_has_that_the_others_have_not_is_told_of_that_one(obstacle: Obstacle, words: str) -> None:
    (entry,) = entries(silent(DUAL, "broker 2: TLS: certificate has expired", broker_id=2, obstacle=obstacle))
    assert (entry.object, entry.observed) == ("broker-2", "broker 2: TLS: certificate has expired")
    assert words in entry.fix
    assert "restart no other broker before" in entry.fix.lower()


def named(broker_host: str) -> ClusterSpec:
    """With a name in place of the address, where nodes and brokers are asked."""
    nodes = [SPEC.brokers[0].model_copy(update={"metrics": JolokiaEndpoint(url=f"http://{broker_host}:7071/")})]
    kafka = SPEC.kafka.model_copy(update={"bootstrap_servers": (f"{broker_host}:9092",)})
    return SPEC.model_copy(update={"brokers": (*nodes, *SPEC.brokers[1:]), "kafka": kafka})


def test_a_name_that_is_not_resolved_is_one_entry_of_our_own_machine() -> None:
    why = "the name Kafka-1 is not resolved"
    seen = silent(with_part(DUAL, 1, metrics=None), why, obstacle=Obstacle.UNRESOLVED)
    part = Unanswered(what="metrics of broker-1", why=why, obstacle=Obstacle.UNRESOLVED)
    seen = seen.model_copy(update={"unanswered": (*seen.unanswered, part)})
    spec = named("Kafka-1")
    hints = Hints(unresolved={"kafka-1": "Temporary failure in name resolution"})
    looked = replace(case_of(seen, spec, POLICY), hints=hints)
    (entry,) = blockers_of(looked)[0]
    assert (entry.code, entry.object) == ("machine", "keeperless-activities")
    assert "kafka-1: Temporary failure in name resolution" in entry.observed
    assert ("resolvectl status" in entry.fix, "firewall" in entry.fix) == (True, False)


def test_a_name_that_nothing_is_asked_at_in_vain_is_no_entry() -> None:
    assert entries(DUAL, unresolved={"kafka-9": "Name or service not known"}) == []


def test_a_member_whose_name_is_gone_explains_no_lag() -> None:
    address = CONNECT.partition(",")[0].replace("127.0.0.1", "zk")
    spec = SPEC.model_copy(update={"zookeeper": SPEC.ensemble.model_copy(update={"connect": f"{address},zk2:1,zk3:1"})})
    hints = Hints(unresolved={"zk": "Name or service not known"}, servers={address: Serving.UNREACHED, "zk2:1": Serving.YES})
    looked = replace(case_of(DUAL, spec, POLICY), hints=hints)
    found, explained = blockers_of(looked)
    assert [(entry.code, entry.object) for entry in found] == [("machine", "keeperless-activities")]
    assert explained.isdisjoint(WaitReason)


def test_a_controller_whose_name_is_not_resolved_is_not_told_to_be_shut() -> None:
    spec = SPEC.with_quorum_changed(controllers=tuple(c.model_copy(update={"host": "c"}) for c in SPEC.controllers))
    hints = Hints(unresolved={"c": "Name or service not known"}, shut=frozenset({"c:9001"}))
    looked = replace(case_of(DUAL, spec, POLICY), hints=hints)
    assert [entry.object for entry in blockers_of(looked)[0]] == ["keeperless-activities"]


# --- replicas that lag -----------------------------------------------------------------------------------------------


def test_lag_that_no_log_explains_may_pass_by_itself_and_says_what_to_do_if_it_does_not() -> None:
    (entry,) = entries(lagging(DUAL, ("orders-1", (2,), 1), ("orders-2", (2,), 1)))
    assert (entry.code, entry.object) == ("partitions-not-in-sync", "broker-2")
    assert "all led by broker-1" in entry.observed
    assert "If the number does not fall within a minute" in entry.fix
    assert "restart broker-2 (its partitions can spare it now)" in entry.fix


def test_a_restart_that_partitions_cannot_spare_is_not_advised() -> None:
    (entry,) = entries(lagging(DUAL, ("orders-1", (2,), 1), needs={1: (), 2: ("single-0",), 3: ()}))
    assert "restart broker-2, but not before single-0 can spare it" in entry.fix


def test_of_several_leaders_none_is_named() -> None:
    (entry,) = entries(lagging(DUAL, ("orders-1", (2,), 1), ("orders-2", (2,), 3)))
    assert "led by" not in entry.observed


def test_a_partition_that_is_not_fetched_any_more_does_not_catch_up_by_itself() -> None:
    said = f"{FETCHER}Partition orders-1 marked as failed"
    (entry,) = entries(lagging(DUAL, ("orders-1", (2,), 1)), logs={2: (said,)})
    assert (entry.object, "marked as failed" in entry.observed) == ("broker-2", True)
    assert "by themselves" not in entry.fix
    assert "restart broker-2" in entry.fix


def test_a_way_that_is_closed_between_two_brokers_is_quoted() -> None:
    said = f"{FETCHER}Connection to node 1 (/127.0.0.1:1) could not be established. Node may not be available."
    (entry,) = entries(lagging(DUAL, ("orders-1", (2,), 1)), logs={2: (said,)})
    assert "Connection to node 1 (/127.0.0.1:1)" in entry.observed
    assert "firewall" in entry.fix


def test_a_leader_that_reaches_no_controller_is_the_one_that_is_named() -> None:
    said = (
        "[2026-11-20 03:00:00,000] WARN [NodeToControllerChannelManager id=1 name=alter-partition] Connection to node 3002 "
        "(/127.0.0.1:12002) could not be established. Node may not be available."
    )
    seen = lagging(DUAL, ("orders-1", (2,), 1), ("orders-2", (3,), 1), ("orders-3", (2, 3), 1))
    (entry,) = entries(seen, logs={1: (said,)})
    assert (entry.code, entry.object) == ("partitions-not-in-sync", "broker-1")


@pytest.mark.parametrize("said", ["Found invalid messages during fetch for partition orders-1 offset 9", REFUSED])
def test_what_followers_say_of_the_leader_s_copy_names_the_leader(said: str) -> None:
    (entry,) = entries(lagging(DUAL, ("orders-1", (2, 3), 1)), logs={2: (FETCHER + said,)})
    assert (entry.object, said in entry.observed) == ("broker-1", True)


def test_a_broker_whose_registration_is_gone_has_one_entry() -> None:
    seen = with_zookeeper(with_kafka(DUAL, broker_ids=(1, 3)), broker_ids=(1, 3))
    assert [(entry.code, entry.object) for entry in entries(seen)] == [("brokers-not-registered", "broker-2")]


def test_a_leader_that_nobody_reaches_is_the_one_that_is_named() -> None:
    seen = lagging(DUAL, ("orders-1", (2,), 1), ("orders-2", (3,), 1))
    (entry,) = entries(seen, unheard={1: ("127.0.0.1:9093",)})
    assert (entry.code, entry.object) == ("part-unknown", "broker-1")


def test_a_broker_that_is_gone_for_good_is_replaced() -> None:
    (entry,) = entries(lagging(DUAL, ("orders-1", (9,), 1)))
    assert (entry.object, "kafka-reassign-partitions.sh" in entry.fix) == ("broker 9", True)


@pytest.mark.parametrize(
    "said",
    [
        "Received UNKNOWN_TOPIC_ID from the leader for partition orders-1. This error may be returned transiently when the "
        "partition is being created or deleted, but it is not expected to persist. (kafka.server.ReplicaFetcherThread)",
        "Retrying leaderEpoch request for partition orders-1 as the leader reported an error: NOT_LEADER_OR_FOLLOWER "
        "(kafka.server.ReplicaFetcherThread)",
    ],
)
def test_a_leader_that_does_not_know_what_it_leads_is_to_be_restarted_and_no_follower(said: str) -> None:
    seen = lagging(DUAL, ("orders-1", (2,), 1), ("orders-2", (2,), 3))
    line = f"{FETCHER}{said}"
    (entry,) = entries(seen, logs={2: (line, line.replace("03:00:00", "03:00:01"))})
    assert entry.object == "broker-1", "whom the fetcher asks, of all who lead"
    assert "Restarting the follower changes nothing. Restart broker-1" in entry.fix
    assert "restart broker-2" not in entry.fix
    elsewhere = line.replace("leaderId=1", "leaderId=7")
    (entry,) = entries(seen, logs={2: (elsewhere, elsewhere.replace("03:00:00", "03:00:01"))})
    assert entry.fix.endswith("Restarting the follower changes nothing."), "nobody knows which of those who lead is meant"
    (entry,) = entries(seen, logs={2: (line,)})
    assert entry.object == "broker-2", "as a topic is made, or its leader changes, it is said once"
