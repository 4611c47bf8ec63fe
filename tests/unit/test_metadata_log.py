"""The quorum's log, read from bytes that another implementation has built."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from domain.errors import Unsafe
from domain.observed.observation import MigrationGauge
from domain.quorum_log.metadata_log import CLIENT_METRICS, GROUP, NEVER_IN_ZOOKEEPER, LogFacts
from domain.quorum_log.record_batches import read_batches, size_of_first
from domain.quorum_log.record_types import RecordType
from playground.log_bytes import batch, control, raw_batch, value

NO_OP = (RecordType.NO_OP, b"\0")
TOPIC = (RecordType.TOPIC, b"any message")


def state(gauge: MigrationGauge) -> tuple[int, bytes]:
    return RecordType.ZK_MIGRATION_STATE, bytes((gauge, 0))


def compact(text: str | None) -> bytes:
    return b"\0" if text is None else bytes((len(text) + 1,)) + text.encode()


def config(kind: int, resource: str, name: str, setting: str | None) -> tuple[int, bytes]:
    return RecordType.CONFIG, bytes((kind,)) + compact(resource) + compact(name) + compact(setting) + b"\0"


def facts_of(*batches: bytes, beyond: int = -1) -> LogFacts:
    found, used = read_batches(b"".join(batches))
    assert used == sum(map(len, batches))
    return LogFacts().counting_beyond(beyond).after(found)


def test_offsets_states_and_changes_beyond_an_offset() -> None:
    facts = facts_of(
        control(0, 2),
        batch(1, [state(MigrationGauge.PRE_MIGRATION), NO_OP]),
        batch(3, [TOPIC, TOPIC, state(MigrationGauge.MIGRATION)]),
        batch(6, [NO_OP]),
        batch(7, [TOPIC, (RecordType.PARTITION, b""), (RecordType.PARTITION, b""), (99, b"")]),
        beyond=4,
    )
    assert (facts.end, facts.state, facts.state_at) == (11, MigrationGauge.MIGRATION, 5)
    assert facts.changes == {RecordType.TOPIC: 1, RecordType.PARTITION: 2, 99: 1}
    assert facts.change_names == ("1 topic", "2 partition", "1 record of unknown kind 99")


def test_whose_configs_are_changed_beyond_an_offset() -> None:
    orders, broker = config(2, "orders", "flush.ms", "1"), config(4, "", "log.cleaner.threads", None)
    facts = facts_of(batch(0, [config(2, "old", "flush.ms", "1")]), batch(1, [orders, broker, orders]), beyond=0)
    assert facts.change_names == ("3 config",)
    assert facts.most_configured == ("topic orders", "broker <default>")
    assert facts.counting_beyond(3).most_configured == ()


def test_housekeeping_of_the_quorum_is_no_change() -> None:
    facts = facts_of(batch(0, [(kind, b"\0\0") for kind in NEVER_IN_ZOOKEEPER]))
    assert facts.changes == {}
    others = set(RecordType) - NEVER_IN_ZOOKEEPER - {RecordType.CONFIG, RecordType.ACCESS_CONTROL_ENTRY}
    assert facts_of(batch(0, [(kind, b"\0\0") for kind in others])).changes == dict.fromkeys(others, 1)


def test_configs_that_zookeeper_cannot_hold_are_named_until_they_are_deleted() -> None:
    facts = facts_of(
        batch(
            0,
            [
                config(2, "orders", "retention.ms", "1"),
                config(CLIENT_METRICS, "all", "interval.ms", "1000"),
                config(CLIENT_METRICS, "all", "match", ""),
                config(GROUP, "billing", "consumer.session.timeout.ms", "45000"),
            ],
        ),
        batch(4, [config(CLIENT_METRICS, "all", "interval.ms", None)]),
    )
    assert facts.stray_configs == {(CLIENT_METRICS, "all", "match"), (GROUP, "billing", "consumer.session.timeout.ms")}
    assert facts.changes == {RecordType.CONFIG: 1}, "what ZooKeeper cannot hold is not missing there"


ACL_ID, OTHER_ID = b"\1" * 16, b"\2" * 16


def acl(acl_id: bytes, kind: int, name: str) -> tuple[int, bytes]:
    """Literal, for everybody's host, to read, allowed, no tagged fields."""
    body = acl_id + bytes([kind]) + compact(name) + b"\3" + compact("User:alice") + compact("*") + b"\3\3\0"
    return RecordType.ACCESS_CONTROL_ENTRY, body


def test_acls_whose_names_no_znode_can_have_are_named_until_they_are_removed() -> None:
    """KAFKA-13983."""
    made = batch(0, [acl(ACL_ID, 3, "team-a/loader"), acl(OTHER_ID, 3, "team-a"), acl(b"\3" * 16, 5, "flink/1")])
    facts = facts_of(made)
    assert [stray.what for stray in facts.strays] == [
        "ALLOW of READ to User:alice for group team-a/loader",
        "ALLOW of READ to User:alice for transactional id flink/1",
    ]
    assert all(stray.is_acl for stray in facts.strays)
    assert facts.changes == {RecordType.ACCESS_CONTROL_ENTRY: 1}, "what ZooKeeper cannot hold is not missing there"
    removed = [(RecordType.REMOVE_ACCESS_CONTROL_ENTRY, one + b"\0") for one in (ACL_ID, OTHER_ID)]
    facts = facts_of(made, batch(3, removed))
    assert [stray.what for stray in facts.strays] == ["ALLOW of READ to User:alice for transactional id flink/1"]


def test_an_acl_that_is_not_whole_is_refused_and_no_name_is_a_command_to_a_terminal() -> None:
    kind, body = acl(ACL_ID, 3, "a/b")
    with pytest.raises(Unsafe, match="not whole"):
        facts_of(batch(0, [(kind, body[:25])]))
    (stray,) = facts_of(batch(0, [acl(ACL_ID, 3, "a/\x1b[2J")])).strays
    assert stray.what.endswith(r"for group a/\x1b[2J")


@pytest.mark.parametrize(
    ("name", "is_stray"),
    [("a", False), ("a.b-c_d", False), ("...", False), ("*", False), ("a/b", True), (".", True), ("..", True), ("a\x07", True)],
)
def test_what_the_name_of_a_znode_can_be(name: str, is_stray: bool) -> None:
    assert bool(facts_of(batch(0, [acl(ACL_ID, 2, name)])).strays) is is_stray


WHOLE = (batch(0, [TOPIC]), batch(1, [TOPIC, NO_OP]), batch(3, [TOPIC] * 3))


@given(st.integers(min_value=0, max_value=sum(map(len, WHOLE))))
def test_an_incomplete_last_batch_is_not_read(length: int) -> None:
    ends = list(accumulate(map(len, WHOLE)))
    found, used = read_batches(b"".join(WHOLE)[:length])
    complete = [end for end in ends if end <= length]
    assert (len(found), used) == (len(complete), max(complete, default=0))


@given(
    st.lists(st.tuples(st.sampled_from(list(RecordType)), st.binary(min_size=2, max_size=300)), min_size=1),
    st.integers(0, 2**40),
)
def test_what_another_implementation_writes_is_read(records: list[tuple[int, bytes]], base: int) -> None:
    data = batch(base, records)
    (found,), used = read_batches(data)
    theirs = list(DefaultRecordBatch(data))
    assert used == len(data) == size_of_first(data)
    assert [(r.offset, value(r.api_key, r.body)) for r in found.records] == [(r.offset, r.value) for r in theirs]


@pytest.mark.parametrize("position", [17, 25, 60, 70, -1])
def test_a_damaged_batch_is_refused(position: int) -> None:
    data = bytearray(batch(0, [TOPIC, TOPIC]))
    data[position] ^= 1
    with pytest.raises(Unsafe, match="damaged"):
        read_batches(bytes(data))


def test_what_is_not_this_log_is_refused() -> None:
    for data, reason in (
        (batch(0, [NO_OP], frame=2), "frame version 2"),
        (raw_batch(0, [(None, value(*NO_OP))], attributes=1), "compressed"),
        (b"\0" * 100, "no record batch"),
        (batch(0, [NO_OP])[:16] + b"\1" + batch(0, [NO_OP])[17:], "no record batch"),
    ):
        with pytest.raises(Unsafe, match=reason):
            read_batches(data)
    with pytest.raises(Unsafe, match="something is missing"):
        facts_of(batch(0, [NO_OP]), batch(2, [NO_OP]))
    for record, version in (
        (state(MigrationGauge.MIGRATION), 1),
        (config(GROUP, "g", "k", "v"), 1),
        (state(MigrationGauge.ZK), 0),
    ):
        content = raw_batch(0, [(None, value(*record, version=version))])
        with pytest.raises(Unsafe, match="version"):
            facts_of(content)


def test_batches_before_the_wanted_offset_are_passed_over_unread() -> None:
    broken = bytearray(batch(0, [TOPIC, TOPIC]))
    broken[-1] ^= 1
    data = bytes(broken) + batch(2, [NO_OP])
    found, used = read_batches(data, wanted_from=2)
    assert ([b.base_offset for b in found], used) == ([2], len(data))
    with pytest.raises(Unsafe, match="damaged"):
        read_batches(data, wanted_from=1)


def test_a_checkpoint_stands_for_all_before_its_end() -> None:
    taken, _ = read_batches(
        control(0, 3) + batch(1, [state(MigrationGauge.MIGRATION), config(GROUP, "g", "k", "v")]) + control(3, 4)
    )
    facts = LogFacts().after_checkpoint(taken, 100)
    assert (facts.end, facts.state, facts.state_at) == (100, MigrationGauge.MIGRATION, 99)
    assert facts.stray_configs == {(GROUP, "g", "k")}
    assert taken[-1].control == (4,)
    later, _ = read_batches(batch(98, [TOPIC]) + batch(99, [TOPIC]) + batch(100, [TOPIC]))
    assert facts.counting_beyond(99).after(later).changes == {RecordType.TOPIC: 1}
    assert facts.counting_beyond(90).after(later).change_names == ("9 untold", "1 topic")
