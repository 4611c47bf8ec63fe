"""Lines of Kafka's logs: each is known by the very words of 3.9.2, quoted and nothing more, and only as long as it is news."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.diagnosis.logs.lines import Told, current, found_in
from domain.diagnosis.logs.running_lines import LASTING_WORDS, RUNNING
from domain.diagnosis.logs.said import with_thrown
from domain.diagnosis.logs.start_lines import epochs_lately, loading_in, waiting_in
from domain.diagnosis.logs.times import age_of, stamp_of

STAMP = "[2026-11-20 03:00:{:02},123] "
LIVING = {
    "waiting-for-brokers": "INFO [KRaftMigrationDriver id=3002] Still waiting for ZK brokers [9, 11] found in metadata to "
    "register with KRaft. (org.apache.kafka.metadata.migration.KRaftMigrationDriver)",
    "no-brokers-known": "INFO No brokers are known to KRaft, waiting for brokers to register.",
    "controller-without-flag": "WARN Still waiting for all controller nodes ready to begin the migration. Not ready due to:"
    "Controller 3003 has not enabled zookeeper.metadata.migration.enable",
    "zookeeper-write-refused": "ERROR Encountered zk migration fault: Encountered ZooKeeper authentication in "
    "MetadataChangeEvent{provenance=MetadataProvenance(lastContainedOffset=386, lastContainedEpoch=4, "
    "lastContainedLogTimeMs=1795374628835), "
    "isSnapshot=false} (org.apache.kafka.server.fault.LoggingFaultHandler)",
    "zookeeper-write-failed": "INFO [KRaftMigrationDriver id=3000] Encountered ZooKeeper error during event "
    "MetadataChangeEvent{provenance=MetadataProvenance(lastContainedOffset=900, lastContainedEpoch=4), isSnapshot=false}. Will "
    "retry. (org.apache.kafka.metadata.migration.KRaftMigrationDriver)",
    "migration-error": "ERROR Encountered zk migration fault: Unhandled error in MetadataChangeEvent{provenance="
    "MetadataProvenance(lastContainedOffset=900, lastContainedEpoch=4, lastContainedLogTimeMs=1795374628835), isSnapshot="
    "false} (org.apache.kafka.server.fault.LoggingFaultHandler)",
    "metadata-fault": "ERROR Encountered metadata publishing fault: Error updating topic orders with new configuration: "
    "segment.bytes=7 in MetadataDelta up to 900 (org.apache.kafka.server.fault.LoggingFaultHandler)",
    "broker-unreached": "WARN [RequestSendThread controllerId=3001] Controller 3001's connection to broker b2:9092 (id: 2 "
    "rack: null) was unsuccessful (kafka.controller.RequestSendThread)",
    "registration-of-other-mode": "INFO [BrokerLifecycleManager id=1] Unable to register broker 1 because the controller "
    "returned error BROKER_ID_NOT_REGISTERED (kafka.server.BrokerLifecycleManager)",
    "registration-misunderstood": "ERROR [BrokerLifecycleManager id=1] Unable to register broker 1 because of an API version "
    "problem. (kafka.server.BrokerLifecycleManager)",
    "isr-ineligible": "INFO [Partition orders-3 broker=1] Failed to alter partition to PendingExpandIsr(newInSyncReplicaId=2, "
    "sentLeaderAndIsr=x) since the controller rejected the request with INELIGIBLE_REPLICA. Partition state has been reset to "
    "the latest committed state CommittedPartitionState(isr=Set(1)). (kafka.cluster.Partition)",
    "check-op-failed": "INFO Check op on KRaft Migration ZNode failed. Sent zkVersion = 812. This indicates that another",
    "unknown-config-resource": "java.lang.RuntimeException: Unknown config resource type CLIENT_METRICS",
    "registration-unsupported-version": "INFO Unable to register broker 1 because the controller returned error "
    "UNSUPPORTED_VERSION",
    "registration-duplicate": "INFO Unable to register broker 1 because the controller returned error "
    "DUPLICATE_BROKER_REGISTRATION",
    "registration-removed": "INFO [BrokerLifecycleManager id=3] Broker 3 sent a heartbeat request but received error "
    "STALE_BROKER_EPOCH. (kafka.server.BrokerLifecycleManager)",
    "registration-refused": "INFO Unable to register broker 1 because the controller returned error INCONSISTENT_CLUSTER_ID",
    "cluster-action-refused": "WARN [BrokerLifecycleManager id=1] Broker 1 sent a heartbeat request but received error "
    "CLUSTER_AUTHORIZATION_FAILED. (kafka.server.BrokerLifecycleManager)",
    "node-refused": "INFO Principal = User:CN=kafka-c1,O=x is Denied Operation = ClusterAction from host = 10.0.0.3 on "
    "resource = Cluster:LITERAL:kafka-cluster for request = UpdateMetadata with resourceRefCount = 1 (kafka.authorizer.logger)",
    "broker-fenced": "INFO [QuorumController id=3001] Fencing broker 1 because its session has timed out. "
    "(org.apache.kafka.controller.ReplicationControlManager)",
    "inconsistent-cluster-id": "ERROR [RaftManager id=3001] Unexpected error INCONSISTENT_CLUSTER_ID in FETCH response: "
    "InboundResponse(correlationId=7, data=FetchResponseData(throttleTimeMs=0, errorCode=104, sessionId=0, responses=[]))",
    "claim-refused": "ERROR Cannot register KRaft controller 3002 with epoch 7 as the current controller register in ZK has "
    "the same or newer epoch",
    "migration-without-claim": "ERROR KRaft controller indicates an active migration, but the ZK state does not.",
    "protocol-differs": "WARN [NodeToControllerChannelManager id=1 name=registration] Connection to node 3001 "
    "(127.0.0.1/127.0.0.1:9093) terminated during authentication. This may happen due to any of the following reasons: (1) "
    "Authentication failed due to invalid credentials with brokers older than 1.0.0",
    "tls-handshake-failed": "ERROR [SocketServer] Failed authentication (SSL handshake failed)",
    "login-failed": "INFO Failed authentication with /127.0.0.1 (channelId=1) (Unexpected Kafka request)",
    "zookeeper-answer-too-large": "java.io.IOException: Packet len4194310 is out of range!",
    "peer-unreachable": "WARN [NodeToControllerChannelManager id=1] Connection to node 3002 (127.0.0.1/127.0.0.1:9093) could "
    "not be established. Node may not be available.",
    "no-listener": "java.lang.IllegalArgumentException: Cannot connect to empty node :-1 (id: -1 rack: null)",
    "peer-cut": "INFO [NodeToControllerChannelManager id=1 name=heartbeat] Cancelled in-flight BROKER_HEARTBEAT request with "
    "correlation id 132 due to node 3002 being disconnected (elapsed time since creation: 2ms, elapsed time since send: 1ms, "
    "throttle time: 0ms, request timeout: 4500ms) (org.apache.kafka.clients.NetworkClient)",
    "peer-silent": "INFO [ReplicaFetcher replicaId=2, leaderId=3, fetcherId=1] Disconnecting from node 3 due to request "
    "timeout. (org.apache.kafka.clients.NetworkClient)",
    "too-many-connections": "INFO Rejected connection from /127.0.0.1, address already has the configured maximum of 2 "
    "connections. (kafka.network.DataPlaneAcceptor)",
    "agent-failed": "Could not start Jolokia agent: java.net.BindException: Address already in use",
    "log-dir-failed": "WARN [ReplicaManager broker=1] Stopping serving replicas in dir /data/1b with uuid Some(x) because the "
    "log directory has failed. (kafka.server.ReplicaManager)",
    "partition-state-rewritten": "INFO [Controller id=3] Failed to update ISR to LeaderAndIsr(leader=3, leaderEpoch=2, "
    "isrWithBrokerEpoch=List(BrokerState(brokerId=3, brokerEpoch=-1)), leaderRecoveryState=RECOVERED, partitionEpoch=3) for "
    "partition orders-1, bad ZK version. (kafka.controller.KafkaController)",
    "topic-id-differs": "ERROR [Broker id=2] Topic ID in memory: WUR1tvXZRoWzjjEWbIJC9w does not match the topic ID for "
    "partition customers-0 received: jRlSXXUVQGmuAq3eN5FHnA. (state.change.logger)",
    "fetcher-died": "ERROR [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Error due to "
    "(kafka.server.ReplicaFetcherThread)",
    "fetch-stopped": "WARN [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Partition orders-3 marked as failed "
    "(kafka.server.ReplicaFetcherThread)",
    "fetch-refused": "ERROR [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Error for partition orders-3 at offset 120 "
    "(kafka.server.ReplicaFetcherThread)",
    "unknown-to-leader": "WARN [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Received UNKNOWN_TOPIC_ID from the leader "
    "for partition orders-3. This error may be returned transiently when the partition is being created or deleted, but it is "
    "not expected to persist. (kafka.server.ReplicaFetcherThread)",
    "fetch-invalid": "ERROR [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Found invalid messages during fetch for "
    "partition orders-3 offset 120 (kafka.server.ReplicaFetcherThread)",
    "remote-state-not-built": "ERROR [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Error building remote log auxiliary "
    "state for orders-3 (kafka.server.ReplicaFetcherThread)",
    "controller-channel-died": "ERROR [zk-broker-2-to-controller-alter-partition-channel-manager]: Error due to "
    "(kafka.server.NodeToControllerRequestThread)",
    "isr-refused": "WARN [Partition orders-3 broker=1] Failed to update ISR to PendingExpandIsr(newInSyncReplicaId=2) due to "
    "unexpected UNKNOWN_SERVER_ERROR. Retrying. (kafka.cluster.Partition)",
    "image-lacks-metadata": "INFO Ignoring image MetadataProvenance(offset=12) which does not contain a superset of the "
    "metadata in ZK. Staying in SYNC_KRAFT_TO_ZK until a newer image is loaded",
}


@pytest.mark.parametrize("kind", RUNNING, ids=lambda kind: kind.name)
def test_every_line_of_a_living_process_is_known(kind: Told) -> None:
    (found,) = found_in([STAMP.format(second) + LIVING[kind.name] for second in range(1, kind.least + 1)], RUNNING)
    assert found.told is kind
    assert found.quote in LIVING[kind.name]
    assert kind.fix
    assert kind.expected


def test_a_peer_that_ends_once_is_nothing_and_neither_are_answers_that_come_late() -> None:
    cut, other = LIVING["peer-cut"], LIVING["peer-cut"].replace("node 3002", "node 3003")
    late = cut.replace("since send: 1ms", "since send: 4501ms")

    def told(*lines: str) -> list[tuple[str, ...]]:
        return [one.named for one in found_in([STAMP.format(number) + line for number, line in enumerate(lines, 1)], RUNNING)]

    assert told(cut, cut, other, late, late, late) == []
    assert told(cut, other, cut, cut) == [("3002",)]
    assert found_in((STAMP.format(1) + cut,) * 5, RUNNING) == (), "threads of one moment"


def test_what_is_named_in_a_line_is_told() -> None:
    (found,) = found_in((LIVING["waiting-for-brokers"],), RUNNING)
    assert found.named == ("9", "11")


def test_a_line_of_the_process_before_is_no_news() -> None:
    start = "INFO Registered `kafka:type=kafka.Log4jController` MBean (kafka.utils.Log4jControllerRegistration$)"
    assert found_in((LIVING["no-brokers-known"], start, "INFO all is well"), RUNNING) == ()
    assert len(found_in((start, LIVING["no-brokers-known"]), RUNNING)) == 1


def test_a_line_that_was_not_repeated_for_minutes_is_over() -> None:
    old, new = "[2026-11-20 03:00:00,000] ", "[2026-11-20 03:03:00,000] "
    assert found_in((old + LIVING["no-brokers-known"], new + "INFO all is well"), RUNNING) == ()
    assert len(found_in((new + LIVING["no-brokers-known"], new + "INFO all is well"), RUNNING)) == 1


@pytest.mark.parametrize("kind", [kind for kind in RUNNING if kind.is_lasting], ids=lambda kind: kind.name)
def test_what_lasts_as_long_as_the_process_is_never_too_old(kind: Told) -> None:
    start = "INFO Registered `kafka:type=kafka.Log4jController` MBean (kafka.utils.Log4jControllerRegistration$)"
    old, new = "[2026-11-20 03:00:00,000] " + LIVING[kind.name], "[2026-11-20 09:00:00,000] INFO all is well"
    assert [found.told for found in found_in((old, new), RUNNING)] == [kind]
    assert found_in((old, start, new), RUNNING) == ()
    assert any(word in old for word in LASTING_WORDS)
    assert any(word in start for word in LASTING_WORDS)


def test_what_lasts_is_over_with_the_words_that_end_it() -> None:
    failed = LIVING["zookeeper-write-failed"]
    step = "INFO [KRaftMigrationDriver id=1] 1 transitioning from SYNC_KRAFT_TO_ZK to KRAFT_CONTROLLER_TO_BROKER_COMM state"
    assert found_in((failed, step), RUNNING) == ()
    assert any(word in step for word in LASTING_WORDS)
    assert len(found_in((step, failed), RUNNING)) == 1


def test_a_partition_that_was_fetched_again_long_ago_is_found_to_be() -> None:
    """What ends a stop is looked for as far above a log's end as the stop itself."""
    added = "INFO [ReplicaFetcherManager on broker 2] Added fetcher to broker 1 for partitions Map(orders-3 -> x)"
    assert any(word in added for word in LASTING_WORDS)


def test_a_line_is_found_with_what_was_thrown_there() -> None:
    code = "org.apache.zookeeper.KeeperException$NoNodeException: KeeperErrorCode = NoNode for /config/users/x"
    (found,) = found_in((LIVING["zookeeper-write-failed"], code, "\tat a.b.C(D.java:1)", "INFO all is well"), RUNNING)
    assert found.thrown == (code,)
    assert "NoNode for /config/users/x" in with_thrown(found)


def test_lines_without_a_stamp_stay_as_long_as_the_line_before() -> None:
    """A stack trace belongs to it."""
    lines = ("[2026-11-20 03:00:00,000] ERROR", LIVING["unknown-config-resource"])
    assert current(lines) == lines
    later = "[2026-11-20 03:05:00,000] INFO all is well"
    assert current((*lines, later)) == (later,)
    assert current(("no time at all", later)) == ("no time at all", later)


def test_a_time_that_there_is_not_is_none() -> None:
    assert stamp_of("[2026-11-20 03:00:60,000] INFO a leap second") is None


def test_what_comes_after_a_clock_was_set_back_is_news_and_what_was_long_before_is_not() -> None:
    old, before, after = (f"[2026-10-25 {time},000] INFO x" for time in ("02:00:00", "02:59:50", "02:00:01"))
    assert current((old, before, after)) == (before, after)
    epochs = [f"{after} Completed transition to Leader(localId=1, epoch={epoch}, x)" for epoch in (7, 8, 9)]
    assert epochs_lately((before, *epochs), timedelta(hours=5), timedelta(seconds=60)) == 3


def test_of_one_kind_the_last_line_counts() -> None:
    lines = tuple(f"Still waiting for ZK brokers [{ids}] found in metadata to register with KRaft" for ids in ("9, 11", "11"))
    (found,) = found_in(lines, RUNNING)
    assert found.named == ("11",)


OF_THE_START = (
    "INFO [LogLoader partition=__cluster_metadata-0] Recovering unflushed segment 0. 0/1 recovered for __cluster_metadata-0"
)
RECOVERING = "INFO Recovering 59 logs from /data since no clean shutdown file was found (kafka.log.LogManager)"
ONE_MORE = "INFO Completed load of Log(dir=/data/orders-9) with 1 segments in 4ms (7/59 completed in /data)"
ALL = "INFO Loaded 59 logs in 3161ms (kafka.log.LogManager)"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((OF_THE_START,), ""),
        ((RECOVERING,), "Recovering 59 logs from /data since no clean shutdown file was found"),
        ((RECOVERING, ONE_MORE), "7/59 completed in /data"),
        ((RECOVERING, ONE_MORE, ALL), ""),
        ((RECOVERING, "INFO Registered kafka:type=kafka.Log4jController MBean"), ""),
    ],
)
def test_how_far_a_broker_is_with_its_logs(lines: tuple[str, ...], told: str) -> None:
    assert loading_in(lines) == told


def test_what_a_broker_waits_for_at_its_start_is_told_until_it_has_it() -> None:
    begun = "[2026-11-20 03:00:01,000] INFO [BrokerServer id=1] Waiting for {} (kafka.server.BrokerServer)"
    ended = begun.replace("Waiting", "Finished waiting")
    first, second = "the controller quorum voters future", "the controller to acknowledge that we are caught up"
    lines = [begun.format(first), ended.format(first), begun.format(second)]
    assert waiting_in(lines) == second.removeprefix("the ")
    assert waiting_in([*lines, ended.format(second)]) == ""
    assert waiting_in([begun.format(first), begun.format(second), ended.format(second)]) == first.removeprefix("the ")


def test_what_is_of_the_next_moment_was_said_now() -> None:
    """Clocks and roundings differ by a moment; a quarter of an hour is no moment."""
    now = datetime(2026, 11, 20, 3, 0, 0, tzinfo=UTC)
    assert age_of("[2026-11-20 03:00:00,400] INFO x", now) == timedelta()
    assert age_of("[2026-11-20 04:59:50,000] INFO x", now) == timedelta(seconds=10), "in another zone"
