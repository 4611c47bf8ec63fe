"""What the logs of brokers say of replicas that lag between them, in the words of Kafka 3.9."""

import pytest

from domain.diagnosis.logs.catalogue import Told
from domain.diagnosis.logs.connecting import (
    CLUSTER_ACTION_REFUSED,
    LOGIN_FAILED,
    NODE_REFUSED,
    PEER_CUT,
    PEER_UNREACHABLE,
    TLS_FAILED,
)
from domain.diagnosis.logs.lines import LASTING_WORDS
from domain.diagnosis.logs.replication import (
    CHANNEL_DIED,
    FETCH_INVALID,
    FETCH_REFUSED,
    FETCH_STOPPED,
    FETCHER_DIED,
    ISR_REFUSED,
    LOG_DIR_FAILED,
    REMOTE_STATE,
    SEGMENT_TOO_SMALL,
    TOPIC_ID_DIFFERS,
    said_by_controller,
    said_by_follower,
    said_by_leader,
)

FETCHER = "[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] "
BY_FETCHER = "(kafka.server.ReplicaFetcherThread)"
UNEXPECTED = f"ERROR {FETCHER}Unexpected error occurred while processing data for partition orders-3 at offset 120 {BY_FETCHER}"
MISMATCH = (
    "java.lang.IllegalStateException: Offset mismatch for partition orders-3: fetched offset = 120, log end offset = 118."
)
TOO_LARGE = (
    "org.apache.kafka.common.errors.RecordBatchTooLargeException: Message batch size is 916304 bytes in append to partition "
    "orders-3, which exceeds the maximum configured segment size of 262144."
)
UNAUTHORIZED = (
    "ERROR [KafkaApi-2] Unexpected error handling request RequestHeader(apiKey={}, apiVersion=8, clientId=3001, correlationId="
    "7, headerVersion=2) -- X() with context RequestContext(header=x, connectionId='x', clientAddress=/10.0.0.3, principal="
    "User:CN=kafka-c1, listenerName=ListenerName(SSL), securityProtocol=SSL) (kafka.server.KafkaApis)",
    "org.apache.kafka.common.errors.ClusterAuthorizationException: Request Request(processor=3, connectionId="
    "10.0.0.2:9092-10.0.0.3:41522-0, session=org.apache.kafka.network.Session@6a1f, listenerName=ListenerName(SSL), "
    "securityProtocol=SSL, buffer=null, envelope=None) is not authorized.",
)
DENIED = (
    "INFO Principal = User:admin is Denied operation = CLUSTER_ACTION from host = 10.9.9.9 on resource = "
    "Cluster:LITERAL:kafka-cluster for request = {} with resourceRefCount = 1 based on rule "
    "DefaultDeny (kafka.authorizer.logger)"
)
UNBUILT = f"ERROR {FETCHER}Error building remote log auxiliary state for orders-3 {BY_FETCHER}"
NOT_FOUND = (
    "org.apache.kafka.server.log.remote.storage.RemoteStorageException: Couldn't build the state from remote store for "
    "partition: orders-3, currentLeaderEpoch: 5, leaderLocalLogStartOffset: 90, leaderLogStartOffset: 0, epoch: 4as the "
    "previous remote log segment metadata was not found"
)
EXPIRED = (
    "org.apache.kafka.server.log.remote.storage.RemoteStorageException: Failed to fetch, secretKey=Hunter2000x",
    "Caused by: software.amazon.awssdk.services.s3.model.S3Exception: The security token included in the request is expired",
)
STOPPED = f"WARN {FETCHER}Partition orders-3 marked as failed {BY_FETCHER}"
UNREACHABLE = f"WARN {FETCHER}Connection to node 1 (/127.0.0.1:1) could not be established. Node may not be available."
OTHER_ID = (
    "ERROR [Broker id=2] Topic ID in memory: WUR1tvXZRoWzjjEWbIJC9w does not match the topic ID for partition {} received: "
    "jRlSXXUVQGmuAq3eN5FHnA. (state.change.logger)"
)
TO_CONTROLLER = "[NodeToControllerChannelManager id=1 name=alter-partition] "


def at(*lines: str) -> list[str]:
    """Exceptions have no stamp."""
    return [line if line.startswith(("java", "org", "Caused", "\t")) else f"[2026-11-20 03:00:00,000] {line}" for line in lines]


@pytest.mark.parametrize(
    ("lines", "told", "words"),
    [
        ((f"WARN {FETCHER}Error in response for fetch request (type=FetchRequest)", UNREACHABLE), PEER_UNREACHABLE, "node 1"),
        ((UNEXPECTED, MISMATCH, "\tat kafka.X", STOPPED), FETCH_STOPPED, "IllegalStateException: Offset mismatch"),
        ((STOPPED,), FETCH_STOPPED, "Partition orders-3 marked as failed"),
        ((UNEXPECTED, TOO_LARGE, "\tat kafka.X", STOPPED), SEGMENT_TOO_SMALL, "segment size of 262144"),
        (
            (
                f"INFO {FETCHER}Partition orders-3 has an older epoch (4) than the current leader. Will await the new "
                "LeaderAndIsr state before resuming fetching.",
                STOPPED,
            ),
            FETCH_STOPPED,
            "older epoch (4)",
        ),
        (
            (
                f"ERROR {FETCHER}Error for partition orders-3 at offset 12 {BY_FETCHER}",
                "org.apache.kafka.common.errors.KafkaStorageException: Disk error when trying to access log file on the disk.",
            ),
            FETCH_REFUSED,
            "KafkaStorageException: Disk error",
        ),
        (
            (
                f"ERROR {FETCHER}Found invalid messages during fetch for partition orders-3 offset 9 {BY_FETCHER}",
                "org.apache.kafka.common.errors.CorruptRecordException: Record is corrupt (stored crc = 1, computed crc = 2)",
            ),
            FETCH_INVALID,
            "CorruptRecordException",
        ),
        (
            (f"ERROR {FETCHER}Error due to {BY_FETCHER}", "java.lang.OutOfMemoryError: Java heap space", UNREACHABLE),
            FETCHER_DIED,
            "OutOfMemoryError",
        ),
        (
            (f"ERROR {FETCHER}Connection to node 1 (h/1.2.3.4:9) failed authentication due to: Invalid username or password",),
            LOGIN_FAILED,
            "failed authentication",
        ),
        (
            (f"ERROR {FETCHER}Connection to node 1 (h/1.2.3.4:9) failed authentication due to: SSL handshake failed",),
            TLS_FAILED,
            "SSL handshake failed",
        ),
        (
            (
                "WARN [ReplicaManager broker=2] Stopping serving replicas in dir /data/2b with uuid None because the log",
                STOPPED,
            ),
            LOG_DIR_FAILED,
            "/data/2b",
        ),
        ((UNAUTHORIZED[0].format("UPDATE_METADATA"), UNAUTHORIZED[1]), NODE_REFUSED, "0.3:41522-0, principal=User:CN=kafka-c1"),
        ((DENIED.format("UpdateMetadata"), UNREACHABLE), NODE_REFUSED, "User:admin is Denied"),
        ((DENIED.format("FETCH"), UNREACHABLE), NODE_REFUSED, "from host = 10.9.9.9"),
        ((UNBUILT, NOT_FOUND, DENIED.format("Fetch")), REMOTE_STATE, "Couldn't build the state"),
        ((UNBUILT, NOT_FOUND), REMOTE_STATE, "Couldn't build the state from remote store for partition: orders-3"),
        ((UNBUILT, *EXPIRED), REMOTE_STATE, "S3Exception: The security token included in the request is expired"),
        ((OTHER_ID.format("orders-3"), UNREACHABLE), TOPIC_ID_DIFFERS, "received: jRlSXXUVQGmuAq3eN5FHnA"),
    ],
)
def test_what_a_follower_says_is_told_with_its_reason(lines: tuple[str, ...], told: Told, words: str) -> None:
    found = said_by_follower(at(*lines), ["orders-3"], [1])
    assert found is not None
    assert found.told is told
    assert words in found.quote
    assert "Hunter2000x" not in found.quote


@pytest.mark.parametrize(
    "line",
    [
        STOPPED.replace("orders-3", "payments-3"),
        f"ERROR {FETCHER}Error for partition my-orders-3 at offset 12",
        UNREACHABLE.replace("leaderId=1", "leaderId=7").replace("node 1", "node 7"),
        "INFO [SocketServer] Failed authentication with /127.0.0.1 (channelId=1) (Unexpected Kafka request)",
        "WARN [NodeToControllerChannelManager id=2 name=x] Connection to node 1 (h/1.2.3.4:9) could not be established.",
        "\n".join((UNAUTHORIZED[0].format("CREATE_TOPICS"), UNAUTHORIZED[1])),
        DENIED.format("IncrementalAlterConfigs"),
        DENIED.format("INCREMENTAL_ALTER_CONFIGS"),
        DENIED.format("FetchOffsets"),
        "INFO all is well",
    ],
)
def test_what_is_of_others_is_no_reason(line: str) -> None:
    """A client that cannot log in, another partition, another leader."""
    assert said_by_follower(at(*line.split("\n")), ["orders-3"], [1]) is None


def test_who_was_denied_is_let_in_only_where_it_is_a_node() -> None:
    """Whoever has ClusterAction may fetch every partition as a follower does."""
    assert NODE_REFUSED.fix.startswith("Only if that principal and host are one of this cluster's nodes")


def test_a_leader_that_is_cut_off_again_and_again_is_told_so() -> None:
    """Between that it is told as one that cannot be reached, which somebody would look for at its listener. One end leaves
    a line of every fetcher."""
    cut = (
        f"INFO {FETCHER}Cancelled in-flight FETCH request with correlation id 9 due to node 1 being disconnected (elapsed time "
        "since creation: 0ms, elapsed time since send: 0ms, throttle time: 0ms, request timeout: 30000ms)"
    )
    for seconds, told in (("00", PEER_UNREACHABLE), ("0011", PEER_UNREACHABLE), ("012", PEER_CUT)):
        lines = [f"[2026-11-20 02:59:5{second},000] {cut}" for second in seconds * 2]
        found = said_by_follower([*lines, *at(UNREACHABLE)], ["orders-3"], [1])
        assert found is not None
        assert found.told is told


def test_a_partition_that_is_fetched_again_is_over() -> None:
    added = (
        "INFO [ReplicaFetcherManager on broker 2] Added fetcher to broker 1 for partitions HashMap({} -> InitialFetchState())"
    )
    assert said_by_follower(at(STOPPED, added.format("orders-3")), ["orders-3"], [1]) is None
    assert said_by_follower(at(STOPPED, added.format("my-orders-3")), ["orders-3"], [1]) is not None
    assert said_by_follower(at(added.format("orders-3"), STOPPED), ["orders-3"], [1]) is not None


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"WARN {TO_CONTROLLER}Connection to node 3001 (h/1.2.3.4:9) could not be established.", PEER_UNREACHABLE),
        (f"ERROR {TO_CONTROLLER}Connection to node 3001 (h/1.2.3.4:9) failed authentication due to: no", LOGIN_FAILED),
        (
            "WARN [Partition orders-3 broker=1] Failed to update ISR to Pending(x) due to unexpected UNKNOWN_X. Retrying.",
            ISR_REFUSED,
        ),
        (
            "WARN [ReplicaManager broker=1] Stopping serving replicas in dir /data/1 with uuid None because the log",
            LOG_DIR_FAILED,
        ),
        (
            "ERROR Broker is not authorized to send AlterPartition to controller (kafka.server.DefaultAlterPartitionManager)",
            CLUSTER_ACTION_REFUSED,
        ),
        (OTHER_ID.format("orders-3"), TOPIC_ID_DIFFERS),
        (OTHER_ID.format("my-orders-3"), None),
        ("ERROR [zk-broker-1-to-controller-alter-partition-channel-manager]: Error due to (kafka.server.X)", CHANNEL_DIED),
        (UNREACHABLE, None),
    ],
)
def test_a_leader_that_cannot_tell_who_is_in_sync_says_so(line: str, told: Told | None) -> None:
    found = said_by_leader(at(line), ["orders-3"])
    assert (found.told if found is not None else None) is told


@pytest.mark.parametrize(
    ("thrown", "words", "fix"),
    [
        ("java.io.IOException: No space left on device", "No space left on device", "Make room"),
        ("java.io.IOException: Structure needs cleaning", "Structure needs cleaning", "e2fsck -f"),
        ("java.io.IOException: Read-only file system", "Read-only file system", "repair or replace the disk"),
        ("java.nio.file.NoSuchFileException: /data/2b/orders-3/0.log", "/data/2b/orders-3/0.log", "tmpreaper"),
        ("java.io.IOException: the moon is full", "java.io.IOException: the moon is full", "Repair that directory"),
        (None, "in dir /data/2b", "Repair that directory"),
    ],
)
def test_a_directory_that_has_failed_is_told_with_what_was_thrown_before(thrown: str | None, words: str, fix: str) -> None:
    """Far above the line that says that it is not served any more."""
    channel = "(org.apache.kafka.storage.internals.log.LogDirFailureChannel)"
    other = f"ERROR Error while flushing log for a-0 in dir /data/2b-other with offset 7 {channel}"
    failed = f"ERROR Error while appending records to orders-3 in dir /data/2b {channel}"
    stops = "WARN [ReplicaManager broker=2] Stopping serving replicas in dir /data/2b (kafka.server.ReplicaManager)"
    lines = (
        *at(other),
        "java.io.IOException: Bad address",
        *at(failed),
        *([thrown, "\tat java.base/sun.nio.ch.FileDispatcherImpl.force0(Native Method)"] if thrown else []),
        *at(stops),
    )
    for found in (said_by_follower(lines, ["orders-3"], [1]), said_by_leader(lines, ["orders-3"])):
        assert found is not None
        assert found.quote.startswith("Stopping serving replicas in dir /data/2b")
        assert words in found.quote
        assert fix in found.told.fix
        assert found.told.fix.endswith("until the broker restarts: then restart it.")
    assert any(word in failed for word in LASTING_WORDS)


def test_a_partition_is_fetched_again_where_the_line_that_says_so_was_cut() -> None:
    """It names all partitions, and only so much of a line is read."""
    added = "INFO [ReplicaFetcherManager on broker 2] Added fetcher to broker 1 for partitions HashMap(a-0 -> Initi"
    assert said_by_follower(at(STOPPED, added), ["orders-3"], [1]) is None


OLDER = (
    f"INFO {FETCHER}Partition orders-3 has an older epoch (4) than the current leader. Will await the new LeaderAndIsr state"
)
REFUSED_HERE = (
    f"WARN {FETCHER}Error connecting to node 127.0.0.1:31303 (id: 1 rack: us-east-1a) (org.apache.kafka.clients.NetworkClient)",
    "java.net.SocketException: Operation not permitted",
)


def test_who_gets_through_to_no_leader_is_not_told_to_restart_for_what_follows_from_it() -> None:
    found = said_by_follower(at(OLDER, STOPPED, *REFUSED_HERE), ["orders-3"], [1])
    assert found is not None
    assert "Operation not permitted" in found.quote
    assert "forbids the connection on its own host" in found.told.fix
    for lines in ((UNEXPECTED, MISMATCH, STOPPED), (STOPPED,)):
        stopped = said_by_follower(at(*lines, *REFUSED_HERE), ["orders-3"], [1])
        assert stopped is not None
        assert stopped.told is FETCH_STOPPED


def test_a_topic_with_a_long_name_is_no_other_case() -> None:
    name = f"{'orders.' * 30}3"
    lines = at(*(line.replace("orders-3", f"{name}-3") for line in (UNEXPECTED, TOO_LARGE, STOPPED)))
    found = said_by_follower(lines, [f"{name}-3"], [1])
    assert found is not None
    assert found.told is SEGMENT_TOO_SMALL


def test_what_was_thrown_below_a_line_is_told_with_it() -> None:
    below = (
        "java.io.IOException: x",
        "Caused by: java.security.cert.CertificateExpiredException: NotAfter: Sun Nov 22 00:00:00",
    )
    login = "(h/1.2.3.4:9) failed authentication due to: SSL handshake failed"
    fetcher = f"ERROR [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Connection to node 1 {login}"
    follower = said_by_follower((*at(fetcher), *below), ["orders-3"], [1])
    leader = said_by_leader((*at(f"ERROR {TO_CONTROLLER}Connection to node 3001 {login}"), *below), ["orders-3"])
    for found in (follower, leader):
        assert found is not None
        assert "CertificateExpiredException" in found.quote
        assert "Renew it" in found.told.fix


def test_a_controller_that_is_connected_again_is_over_it() -> None:
    """A broker that restarts is not reached meanwhile."""
    unreached = "WARN Controller 9's connection to broker b2:1 (id: 2 rack: null) was unsuccessful"
    connected = "INFO Controller 9 connected to b{}:1 (id: {} rack: null) for sending state change requests"
    assert said_by_controller(at(unreached), 2) is not None
    assert said_by_controller(at(unreached), 1) is None
    assert said_by_controller(at(unreached, connected.format(2, 2)), 2) is None
    assert said_by_controller(at(unreached, connected.format(1, 1)), 2) is not None
    assert said_by_controller(at(connected.format(2, 2), unreached), 2) is not None


@pytest.mark.parametrize(("since", "is_told"), [("03:00:20", True), ("03:01:10", False)])
def test_a_way_that_is_open_again_is_no_reason(since: str, is_told: bool) -> None:
    """Who does not get through says so every second."""
    later = f"[2026-11-20 {since},000] INFO [Broker id=2] Transitioned partition orders-9 (state.change.logger)"
    told = said_by_follower([*at(UNREACHABLE), later], ["orders-3"], [1])
    assert (told is not None) is is_told
    to_controller = f"WARN {TO_CONTROLLER}Connection to node 3001 (/127.0.0.1:1) could not be established."
    assert (said_by_leader([*at(to_controller), later], ["orders-3"]) is not None) is is_told
