"""What a running process complains of: the last error, else the last warning, for people's eyes, and nothing that is over."""

import time
from dataclasses import replace
from datetime import timedelta

import pytest

from activities.diagnosis.nodes_to_ask import worth_reading
from domain.diagnosis.causes.hints import Hints
from domain.diagnosis.logs.complaints import complaint_in, trouble_with, with_thrown
from domain.diagnosis.logs.lines import all_found
from domain.diagnosis.logs.redaction import without_secrets
from domain.diagnosis.logs.replication import REMOTE_STATE
from domain.observed.observation import Observation, PartitionFault, Unanswered
from domain.zk_to_kraft.blockers import blockers_of
from domain.zk_to_kraft.causes.case import case_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from tests.unit.conftest import Point, cluster_spec, observation, with_kafka, with_metrics, with_part, with_zookeeper

SPEC, POLICY = cluster_spec(), ZkToKraftPolicy()
DUAL = observation(Point.DUAL_WRITE)
INFO = "[2026-11-20 03:00:30,000] INFO Awaiting socket connections on 0.0.0.0:9092. (kafka.network.DataPlaneAcceptor)"
ERROR = "[2026-11-20 03:00:10,000] ERROR The moon is in the wrong house (kafka.server.Astrologer)"
WARN = "[2026-11-20 03:00:20,000] WARN Clouds gather (kafka.server.Astrologer)"
TRACE = (
    "java.io.IOException: it does not shine",
    "\tat kafka.server.Astrologer.look(Astrologer.scala:7)",
    "Caused by: java.nio.file.FileSystemException: /data/moon: gone",
)


def test_what_every_change_of_a_leader_leaves_is_no_complaint() -> None:
    stopped = "[2026-11-20 03:00:25,000] WARN [ReplicaFetcher replicaId=2, leaderId=1] Partition a-0 marked as failed"
    assert complaint_in([INFO, stopped]) == ""
    said = "[Controller id=3001] Not sending request UpdateMetadata with *** to broker 2, since it is offline."
    offline = WARN.replace("Clouds gather", said)
    assert trouble_with([offline], "broker 2") == "", "said of whom a step of ours has stopped, and long after it is back"
    back = WARN.replace("Clouds gather", "[UnifiedLog partition=a-0] Non-monotonic update of high watermark from 7 to 5")
    assert complaint_in([INFO, back]) == "", "said by every follower of whom the leader was restarted"
    assert "Clouds gather" in complaint_in([WARN, stopped, INFO])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("[LocalLog partition=a-3, dir=/data/Kafka1] Error while reading", "[LocalLog partition=a-3, dir=/data/Kafka1] Error"),
        (
            "[Producer clientId=Audit-9, id=T1] Abort",
            "[Producer clientId=Audit-9, id=T1] Abort",
        ),
        ("[kafka-log-cleaner-thread-0]: Error due to", "[kafka-log-cleaner-thread-0]: Error due to"),
        ("[Login user=a, password=Hunter2000x] Failed", "*** Failed"),
        ("Broker can't be reached, and it's over: [S3cretValue12] and 'S3cretValue12'", "can't be reached, and it's over"),
    ],
)
def test_who_speaks_and_of_what_is_shown_and_no_secret(said: str, told: str) -> None:
    shown = complaint_in([WARN.replace("Clouds gather", said)])
    assert told in shown
    assert "Hunter2000x" not in shown
    assert "S3cretValue12" not in shown


def test_what_a_jvm_that_runs_says_past_its_log_is_a_complaint() -> None:
    for said in (
        'Exception in thread "audit-shipper" java.lang.IllegalStateException: no route',
        "OpenJDK 64-Bit Server VM warning: CodeCache is full. Compiler has been disabled.",
    ):
        assert said[:40] in complaint_in([INFO, said, INFO])
    known = "OpenJDK 64-Bit Server VM warning: Option UseConcMarkSweepGC was deprecated in version 9.0"
    assert complaint_in([INFO, known, INFO]) == ""


def test_an_error_counts_since_what_it_may_explain_has_begun_and_a_warning_for_minutes() -> None:
    late = INFO.replace("03:00:30", "03:10:00")
    assert complaint_in([ERROR, WARN, late]) == ""
    assert "wrong house" in complaint_in([ERROR, WARN, late], timedelta(minutes=10))
    assert complaint_in([WARN, late], timedelta(minutes=10)) == ""


def test_an_error_is_told_before_a_later_warning_and_with_its_cause() -> None:
    told = complaint_in([INFO, ERROR, *TRACE, WARN, INFO])
    assert "03:00:10" in told
    assert "The moon is in the wrong house" in told
    assert "FileSystemException: /data/moon" in told
    assert "Clouds" not in told
    assert "Astrologer.scala" not in told


@pytest.mark.parametrize(
    "said",
    [
        "ERROR [ReplicaManager broker=2] Error processing append operation on partition clicks-4 (kafka.server.ReplicaManager)",
        "ERROR [KafkaApi-2] Unexpected error handling request RequestHeader(apiKey=PRODUCE, apiVersion=9, clientId=x, "
        "correlationId=7, headerVersion=2) -- {} with context RequestContext() (kafka.server.KafkaApis)",
        "WARN [SocketServer listenerType=ZK_BROKER, nodeId=1] Unexpected error from /10.0.0.9 (channelId=x); closing "
        "connection (org.apache.kafka.common.network.Selector)",
        "WARN [Producer clientId=CruiseControlMetricsReporter] Connection to node -1 (localhost/127.0.0.1:9092) could not be "
        "established. Node may not be available. (org.apache.kafka.clients.NetworkClient)",
    ],
)
def test_what_is_said_of_clients_is_told_where_nothing_else_is(said: str) -> None:
    of_a_client = (
        f"[2026-11-20 03:00:25,000] {said}",
        "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 52001",
    )
    assert "Clouds gather" in complaint_in([WARN, *of_a_client, INFO])
    assert "wrong house" in complaint_in([ERROR, *of_a_client, INFO])
    assert "OutOfOrderSequenceException" in complaint_in([*of_a_client, INFO])


def test_a_request_of_a_node_that_fails_is_of_no_client() -> None:
    words = "[KafkaApi-2] Unexpected error handling request RequestHeader(apiKey=UPDATE_METADATA, apiVersion=8, clientId=3001)"
    assert "apiKey=UPDATE_METADATA" in complaint_in([WARN, WARN.replace("Clouds gather", words), INFO])


def test_a_warning_is_told_where_there_is_no_error() -> None:
    assert "Clouds gather" in complaint_in([INFO, WARN, INFO])
    assert complaint_in([INFO]) == complaint_in([]) == ""


def test_what_is_long_over_or_was_said_by_a_process_before_is_not_told() -> None:
    later = INFO.replace("03:00:30", "03:09:30")
    start = "[2026-11-20 03:00:25,000] INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4j)"
    assert complaint_in([ERROR, later]) == ""
    assert complaint_in([ERROR, WARN, start, INFO]) == ""


def test_values_are_not_shown() -> None:
    told = complaint_in([ERROR.replace("The moon", 'password=hunter2 sasl.jaas.config="x password=hunter3" The moon')])
    assert "The moon" in told
    assert "hunter" not in told


@pytest.mark.parametrize(
    "words",
    [
        "[RaftManager id=3001] Connection to node 2 could not be made",
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] It failed",
        "[NodeToControllerChannelManager id=1 name=registration] It failed",
        "[Partition orders-3 broker=1] It failed",
        "Session 0x0 for server zk1/10.0.0.1:2181, Closing socket connection",
        "Cannot open channel to 2 at election address zk2/10.0.0.2:3888",
    ],
)
def test_who_speaks_and_of_whom_is_shown(words: str) -> None:
    assert words in complaint_in([WARN.replace("Clouds gather", words)])


def test_what_a_request_asks_for_is_no_secret() -> None:
    words = "Error for RequestHeader(apiKey=API_VERSIONS, apiVersion=3, clientId=a)"
    assert "apiKey=API_VERSIONS, apiVersion=3" in complaint_in([WARN.replace("Clouds gather", words)])


@pytest.mark.parametrize(
    "words",
    [
        "[Login pin=1234]",
        "[Login secret=hunter2]",
        "password=10.0.0.1:9092",
        "me:hunter2@10.0.0.1:1",
        "[Login hunter2 id=1]",
        "RequestHeader(apiKey=hunter2, clientId=a)",
        "apiKey=SG.hunter2, apiVersion=1",
    ],
)
def test_what_looks_like_it_is_not_shown_where_it_may_be_a_secret(words: str) -> None:
    told = complaint_in([WARN.replace("Clouds gather", words)])
    assert not any(secret in told for secret in ("1234", "hunter2", "9092"))


@pytest.mark.parametrize(
    "words",
    [
        "Could not read properties from file /opt/kafka/secrets.properties",
        "Password file read access must be restricted: /tmp/keeperless-ci.nLuXZL/jmx/jmxremote.password",
        "org.apache.kafka.common.KafkaException: javax.security.auth.login.LoginException: it is full moon",
        "Could not load /srv/Kafka_2.13-3.9.1/libs/Auth-Plugin.jar",
        "Cannot open /data01/KAFKA/logs: gone",
        "Unrecognized VM option 'UseConcMarkSweepGC'",
        "Improperly specified VM option 'MaxGCPauseMillis=2x'",
    ],
)
def test_paths_and_options_of_a_jvm_and_kinds_of_exceptions_are_shown(words: str) -> None:
    assert without_secrets(words) == words


@pytest.mark.parametrize(
    "words",
    [
        "the value /opt/MTIzNDU2Nzg5MDEy+Q is broken",
        "the value /tmp/MTIzNDU2Nzg5MDEyMzQ1Ng== is broken",
        "the value /MTIzNDU2/Nzg5MDEyMzQ1Ng is broken",
        "the value TIz/opt/MTIzNDU2Nzg5MDEyMzQ1Ng is broken",
    ],
)
def test_what_may_be_encoded_is_no_path(words: str) -> None:
    assert not any(part in without_secrets(words) for part in ("MTI", "TIz", "Nzg5"))


def entries(seen: Observation, logs: dict[int, tuple[str, ...]]) -> dict[str, str]:
    looked = replace(case_of(seen, SPEC, POLICY), hints=Hints(logs=logs))
    return {entry.object: entry.observed for entry in blockers_of(looked)[0]}


LAGGING = with_kafka(DUAL, under_replicated=(PartitionFault(partition="orders-1", missing=(2,), leader=1),))
SILENT = with_part(DUAL, 2, metrics=None)
DISAGREEING = DUAL.model_copy(update={"kafka": None, "unanswered": (Unanswered(what="kafka", why="lists 2", broker_id=2),)})
UNREGISTERED = with_metrics(DUAL, 3002, active_broker_count=2, migrating_broker_count=2)


@pytest.mark.parametrize(
    ("seen", "about"),
    [(LAGGING, "broker-2"), (SILENT, "broker-2"), (DISAGREEING, "broker-2"), (UNREGISTERED, "controller-3002")],
)
def test_where_nothing_known_explains_it_the_last_complaint_is_told(seen: Observation, about: str) -> None:
    observed = entries(seen, {2: (INFO, ERROR)})[about]
    assert "The last complaint in the log of broker-2: " in observed
    assert "The moon is in the wrong house" in observed


def test_what_is_known_is_told_without_it() -> None:
    known = "[2026-11-20 03:00:20,000] ERROR [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Error due to"
    observed = entries(LAGGING, {2: (ERROR, known)})["broker-2"]
    assert "complaint" not in observed


def test_a_quorum_without_a_leader_tells_what_its_controllers_complain_of() -> None:
    seen = DUAL
    for controller in SPEC.controllers:
        seen = with_metrics(seen, controller.id, active_controller_count=0)
    observed = entries(seen, {3002: (ERROR,)})["the quorum"]
    assert {c.id for c in SPEC.controllers} <= set(worth_reading(case_of(seen, SPEC, POLICY)))
    assert "The last complaint in the log of controller-3002: " in observed


CUT_FROM_ZOOKEEPER = (
    "[2026-11-20 03:00:12,000] WARN Session 0x0 for server zk1/10.0.0.1:2181, Closing socket connection. Attempting reconnect "
    "except it is a SessionExpiredException. (org.apache.zookeeper.ClientCnxn)",
    "java.net.NoRouteToHostException: No route to host",
)


def test_a_quorum_whose_controllers_do_not_let_each_other_in_is_told_so() -> None:
    seen = DUAL
    for controller in SPEC.controllers:
        seen = with_metrics(seen, controller.id, active_controller_count=0)
    refused = (
        "[2026-11-20 03:00:20,000] ERROR [RaftManager id=3002] Connection to node 3001 (c1/10.0.0.1:9093) failed "
        "authentication due to: SSL handshake failed (org.apache.kafka.clients.NetworkClient)"
    )
    hints = Hints(logs={3001: CUT_FROM_ZOOKEEPER, 3002: (ERROR, refused)})
    looked = replace(case_of(seen, SPEC, POLICY), hints=hints)
    (entry,) = [one for one in blockers_of(looked)[0] if one.object == "the quorum"]
    assert "The log of controller-3002 says: Connection to node 3001 (c1/10.0.0.1:9093) failed authen" in entry.observed
    assert "key and trust stores" in entry.fix


def test_logs_are_read_of_whom_something_is_to_be_said() -> None:
    def read(seen: Observation) -> set[int]:
        return set(worth_reading(case_of(seen, SPEC, POLICY)))

    assert read(DUAL) == {3002}
    assert read(DISAGREEING) == {1, 2, 3, 3002}
    before = observation(Point.BEFORE)
    assert read(before) == set(), "controllers that are not there yet have none"
    assert read(with_zookeeper(before, controller=None)) == {1, 2, 3}, "none of them becomes the controller"


def test_the_log_of_a_node_in_our_hands_is_read_whatever_it_seems_to_be() -> None:
    seen = observation(Point.SOAK)
    assert 2 not in worth_reading(case_of(seen, SPEC, POLICY))
    assert 2 in worth_reading(case_of(seen, SPEC, POLICY), {"broker-2"})


RETRIED = "[2026-11-20 03:00:25,000] INFO Encountered ZooKeeper error during event BecomeZkControllerEvent. Will retry. (x)"
NO_NODE = "org.apache.zookeeper.KeeperException$NoNodeException: KeeperErrorCode = NoNode for /config/users/x"


def test_what_has_thrown_something_or_will_be_tried_again_is_a_complaint_however_softly_it_is_said() -> None:
    assert "KeeperErrorCode = NoNode for /config/users/x" in complaint_in([INFO, RETRIED, NO_NODE, INFO])
    assert "Will retry" in complaint_in([RETRIED, INFO])
    assert "does not shine" in complaint_in([INFO, *TRACE[:2], INFO])


def test_who_is_named_below_a_line_is_named_with_it() -> None:
    warned = "[2026-11-20 03:00:20,000] WARN Controller 3001's connection to broker b2:9092 (id: 2 rack: null) was unsuccessful"
    thrown = "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed: Invalid username or password"
    told = trouble_with([warned, thrown, INFO], "broker 2", "id: 2 rack")
    assert "was unsuccessful" in told
    assert "Invalid username or password" in told
    assert trouble_with([warned, thrown], "broker 22", "id: 22 rack") == ""


@pytest.mark.parametrize("words", ["a" * 16_384, "1." * 8_192, "a-" * 8_192], ids=["letters", "numbers", "dashes"])
def test_what_was_thrown_is_told_in_no_time_however_long_it_is(words: str) -> None:
    """An event loop waits for it."""
    head = "[2026-11-20 03:00:20,000] ERROR Error building remote log auxiliary state for orders-3 (x)"
    (found,) = all_found([head, f"java.io.IOException: the moon is full {words}"], (REMOTE_STATE,))
    begun = time.process_time()
    told = with_thrown(found)
    assert time.process_time() - begun < 0.5
    assert "the moon is full" in told
