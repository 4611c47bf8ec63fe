"""A controller's log, read: how far its copy is, and nothing of anybody's secrets."""

from datetime import datetime

import pytest

from domain.redaction import stripped
from domain.zk_to_kraft.rehearsal.copy_log import read_log

DRIVER = "(org.apache.kafka.metadata.migration.KRaftMigrationDriver)"


def moved(second: str, old: str, new: str) -> str:
    return f"2026-11-22 10:12:{second} INFO [KRaftMigrationDriver id=1] 1 transitioning from {old} to {new} state {DRIVER}"


def said(second: str, text: str, level: str = "INFO") -> str:
    return f"2026-11-22 10:12:{second} {level} [KRaftMigrationDriver id=1] {text} {DRIVER}"


COMPLETED = (
    "Completed migration of metadata from ZooKeeper to KRaft. 86 records were generated in 254 ms across 1 batches. The "
    "average time spent waiting on a batch was 29.00 ms. The record types were {TOPIC_RECORD=6, PARTITION_RECORD=48, "
    "CONFIG_RECORD=32}. The current metadata offset is now 13 with an epoch of 1. Saw 1 brokers in the migrated metadata [1]."
)


def test_a_copy_from_its_claim_to_dual_write() -> None:
    log = read_log(
        [
            moved("41,000", "WAIT_FOR_BROKERS", "BECOME_CONTROLLER"),
            moved("41,100", "BECOME_CONTROLLER", "ZK_MIGRATION"),
            said("41,500", COMPLETED),
            moved("42,750", "KRAFT_CONTROLLER_TO_BROKER_COMM", "DUAL_WRITE"),
        ]
    )
    assert (log.records, log.copy_ms, log.state) == (86, 254, "DUAL_WRITE")
    assert log.kinds == {"TOPIC_RECORD": 6, "PARTITION_RECORD": 48, "CONFIG_RECORD": 32}
    assert log.seconds_without_controller == pytest.approx(1.75)
    assert log.has_claimed


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Still waiting for ZK brokers [9] found in metadata to register with KRaft.", (9,)),
        ("Still waiting for ZK brokers [2, 13] to register with KRaft.", (2, 13)),
        ("No brokers are known to KRaft, waiting for brokers to register.", ()),
        ("Still waiting for all controller nodes ready to begin the migration. Not ready due to:x", ()),
    ],
)
def test_what_it_waits_for_until_it_moves_on(text: str, ids: tuple[int, ...]) -> None:
    waiting = [moved("41,000", "WAIT_FOR_CONTROLLER_QUORUM", "WAIT_FOR_BROKERS"), said("42,000", text)]
    log = read_log(waiting)
    assert (log.waits, log.unregistered, log.has_claimed) == (text, ids, False)
    assert log.complained_at == datetime(2026, 11, 22, 10, 12, 42)  # noqa: DTZ001 - the log's own clock
    on = read_log([*waiting, moved("43,000", "WAIT_FOR_BROKERS", "BECOME_CONTROLLER")])
    assert (on.waits, on.unregistered) == ("", ())


def test_failures_at_zookeeper_count_from_the_last_step_forward() -> None:
    retry = "Encountered ZooKeeper error during event SyncKRaftMetadataEvent. Will retry."
    before = [said("40,000", retry), moved("41,000", "ZK_MIGRATION", "SYNC_KRAFT_TO_ZK")]
    assert read_log(before).retries == 0
    assert read_log([*before, said("42,000", retry), said("43,000", retry)]).retries == 2


def test_errors_are_told_by_type_and_place_and_without_what_they_hold() -> None:
    log = read_log(
        [
            said("41,000", 'Encountered zk migration fault: user "alice" has salt=c2FsdA==', "ERROR"),
            'java.lang.NumberFormatException: For input string: "hunter2"',
            "\tat java.base/jdk.internal.math.FloatingDecimal.readJavaFormatString(FloatingDecimal.java:2054)",
            "\tat kafka.zk.migration.ZkConfigMigrationClient.$anonfun$x$1(ZkConfigMigrationClient.scala:94)",
            "org.apache.zookeeper.KeeperException: KeeperErrorCode = Directory not empty for /kafka-acl/Group",
        ]
    )
    told = "\n".join(log.errors)
    assert "hunter2" not in told
    assert "alice" not in told
    assert "c2FsdA" not in told
    assert "java.lang.NumberFormatException" in told
    assert "ZkConfigMigrationClient.scala:94" in told
    assert "Directory not empty for /kafka-acl/Group" in told


@pytest.mark.parametrize(
    "secret",
    [
        "salt=MTIzNDU2Nzg5MDEyMzQ1Ng==,stored_key=AAAAAAAAAAAAAAAAAAAAAA==,server_key=BBB,iterations=4096",
        'For input string: "geheim"',
        "config {SCRAM-SHA-256=abc} of a user",
        "password: geheim",
        "the value MTIzNDU2Nzg5MDEyMzQ1Ng== is broken",
        "unexpected 'geheim' here",
    ],
)
def test_nothing_secret_stays(secret: str) -> None:
    left = stripped(secret)
    assert not any(part in left for part in ("MTIz", "AAAA", "BBB", "4096", "geheim", "abc"))


def test_what_a_program_says_of_itself_stays_and_what_sounds_like_a_secret_does_not() -> None:
    said = "start.sh: line 3: numactl: command not found"
    assert stripped(said, is_prose=True) == said
    for secret in (
        "keystore password: geheim",
        "token:geheim",
        "PGPASSWORD=geheim",
        "user: geheim",
        "export A=geheim",
        "the password is not valid: geheim",
        "Cannot send: https://anna:geheim@registry:8081 answered 500",
        "no answer: jdbc:postgresql://db/x?pwd=geheim",
        "asked: https://host/?apikey=geheim",
        "pwd: geheim",
        "kafka: password: geheim",
        "pin: geheim",
        "AdminClient error: Bearer geheim",
    ):
        assert "geheim" not in stripped(secret, is_prose=True)


def test_no_memory_is_seen() -> None:
    assert read_log(["Terminating due to java.lang.OutOfMemoryError: Java heap space"]).is_out_of_memory
