"""The image at a cut and the versions after it, held against the plainest replay there is, over generated histories."""

import pickle
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.drift.digests import Digester
from domain.drift.normalise import uuid_text
from domain.drift.records import KINDS, PARTITION, TOPIC, TOPIC_CONFIG
from domain.errors import Permanent, Transient
from domain.quorum_log.record_types import RecordType
from playground.metadata_files import (
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    SyntheticCluster,
    append,
    batch_of,
    control_batch,
    message,
    write_checkpoint,
    write_log,
)
from spark.job import KraftFiles
from spark.rows import journal_schema_of, schema_of
from spark.sources.kraft import KraftSource
from spark.sources.source import Rows

DIGESTER = Digester(b"a key of sixteen bytes")
TOLD = (TOPIC.name, PARTITION.name, TOPIC_CONFIG.name)
Told = tuple[int, dict[str, Any]]
Key = tuple[Any, ...]
Rows_ = dict[Key, tuple[Any, ...]]


# ---- the oracle: every record in its turn, every state kept ----


@dataclass
class Oracle:
    """Rows by kind and key as they are now."""

    topics: dict[bytes, str] = field(default_factory=dict)
    rows: Rows_ = field(default_factory=dict)

    def apply(self, told: Told) -> None:
        kind, v = told
        match kind:
            case RecordType.TOPIC:
                self.topics[v["topicId"]] = v["name"]
                self.rows[TOPIC.name, v["name"]] = (uuid_text(v["topicId"]),)
            case RecordType.PARTITION:
                self.rows[PARTITION.name, v["topicId"], v["partitionId"]] = _state(v, v["leaderEpoch"])
            case RecordType.PARTITION_CHANGE:
                self._change(v)
            case RecordType.CONFIG if v["value"] is None:
                self.rows.pop((TOPIC_CONFIG.name, v["resourceName"], v["name"]), None)
            case RecordType.CONFIG:
                self.rows[TOPIC_CONFIG.name, v["resourceName"], v["name"]] = (v["value"],)
            case RecordType.REMOVE_TOPIC:
                name = self.topics.pop(v["topicId"])
                gone = [k for k in self.rows if k[1] == v["topicId"] or (k[0] != PARTITION.name and k[1] == name)]
                for key in gone:
                    del self.rows[key]

    def _change(self, v: dict[str, Any]) -> None:
        key = (PARTITION.name, v["topicId"], v["partitionId"])
        replicas, adding, removing, leader, isr, epoch, recovery = self.rows[key]
        if v["leader"] != -2:
            leader, epoch = v["leader"], epoch + 1
        now = {"replicas": replicas, "addingReplicas": adding, "removingReplicas": removing, "isr": isr}
        now |= {name: v[name] for name in now if v[name] is not None}
        recovery = recovery if v["leaderRecoveryState"] == -1 else v["leaderRecoveryState"]
        self.rows[key] = _state(now | {"leader": leader, "leaderRecoveryState": recovery}, epoch)


def _state(v: dict[str, Any], epoch: int) -> tuple[Any, ...]:
    sets = {name: tuple(sorted(set(v[name]))) for name in ("addingReplicas", "removingReplicas", "isr")}
    return (
        tuple(v["replicas"]), sets["addingReplicas"], sets["removingReplicas"], v["leader"], sets["isr"], epoch,
        v["leaderRecoveryState"],
    )  # fmt: skip


def effects(log: Sequence[Told]) -> Iterator[tuple[int, list[Told]]]:
    """What takes effect, and at which offset: a transaction's records at its end, or never."""
    pending: list[Told] | None = None
    for offset, told in enumerate(log):
        if told[0] == RecordType.BEGIN_TRANSACTION:
            pending = []
        elif told[0] in (RecordType.END_TRANSACTION, RecordType.ABORT_TRANSACTION):
            assert pending is not None
            if told[0] == RecordType.END_TRANSACTION:
                yield offset, pending
            pending = None
        elif pending is None:
            yield offset, [told]
        else:
            pending.append(told)


def expected(log: Sequence[Told], cut: int) -> tuple[Rows_, set[tuple[Key, Any]]]:
    """The rows at the cut, and the versions after it; none for a key that is gone."""
    oracle, at_cut, versions = Oracle(), None, set()
    for offset, those in effects(log):
        if offset >= cut and at_cut is None:
            at_cut = dict(oracle.rows)
        for told in those:
            before = dict(oracle.rows)
            oracle.apply(told)
            if at_cut is not None:
                changed = before.keys() | oracle.rows.keys()
                versions |= {(key, oracle.rows.get(key)) for key in changed if before.get(key) != oracle.rows.get(key)}
    return (dict(oracle.rows) if at_cut is None else at_cut), versions


# ---- histories that Kafka could have written ----


class History:
    """A log that grows by what people and brokers do. `quiet`: offsets at which no transaction is open."""

    def __init__(self, luck: random.Random) -> None:
        self.log: list[Told] = [(RecordType.NO_OP, {})]
        self.quiet = [1]
        self._luck = luck
        self._ids = 0
        self._topics: dict[str, tuple[bytes, int]] = {}

    def happen(self) -> None:
        if self._luck.random() < 0.2:
            self._transaction()
        else:
            self._something()
        self.quiet.append(len(self.log))

    def _transaction(self) -> None:
        before = dict(self._topics)
        self._say(RecordType.BEGIN_TRANSACTION, name="ZK Migration")
        for _ in range(self._luck.randint(0, 3)):
            self._something()
        if self._luck.random() < 0.5:
            self._say(RecordType.END_TRANSACTION)
            return
        self._say(RecordType.ABORT_TRANSACTION, reason=None)
        self._topics = before

    def _something(self) -> None:
        doings = [self._create, self._change, self._configure, self._remove, self._grow, lambda: self._say(RecordType.NO_OP)]
        self._luck.choices(doings, [3, 8, 3, 1, 1, 1])[0]()

    def _say(self, kind: int, **values: Any) -> None:
        self.log.append((kind, values))

    def _create(self) -> None:
        free = sorted({"a", "b.c", "ünï", "d"} - self._topics.keys())
        if not free:
            return
        name, self._ids = self._luck.choice(free), self._ids + 1
        id_ = self._ids.to_bytes(16, "big")
        self._topics[name] = (id_, 0)
        self._say(RecordType.TOPIC, name=name, topicId=id_)
        for _ in range(self._luck.randint(0, 3)):
            self._grow(name)

    def _grow(self, name: str | None = None) -> None:
        name = name or self._some_topic()
        if name is None:
            return
        id_, count = self._topics[name]
        self._topics[name] = (id_, count + 1)
        lists = {key: self._brokers() for key in ("replicas", "isr", "removingReplicas", "addingReplicas")}
        epochs = {"leaderEpoch": self._luck.randint(0, 9), "partitionEpoch": 0, "directories": ()}
        state = {"leader": self._luck.randint(-1, 5), "leaderRecoveryState": self._luck.randint(0, 1)}
        rest = {"eligibleLeaderReplicas": None, "lastKnownElr": None}
        self._say(RecordType.PARTITION, partitionId=count, topicId=id_, **lists, **epochs, **state, **rest)

    def _change(self) -> None:
        name = self._some_topic()
        if name is None or not self._topics[name][1]:
            return
        id_, count = self._topics[name]
        names = ("isr", "replicas", "removingReplicas", "addingReplicas")
        lists = {key: self._luck.choice([None, self._brokers()]) for key in names}
        state = {"leader": self._luck.randint(-2, 5), "leaderRecoveryState": self._luck.randint(-1, 1)}
        rest = {"directories": None, "eligibleLeaderReplicas": None, "lastKnownElr": None}
        self._say(RecordType.PARTITION_CHANGE, partitionId=self._luck.randrange(count), topicId=id_, **lists, **state, **rest)

    def _configure(self) -> None:
        name = self._some_topic()
        if name is not None:
            told = {"name": self._luck.choice(["retention.ms", "cleanup.policy"]), "value": self._luck.choice([None, "", "1"])}
            self._say(RecordType.CONFIG, resourceType=2, resourceName=name, **told)

    def _remove(self) -> None:
        name = self._some_topic()
        if name is not None:
            self._say(RecordType.REMOVE_TOPIC, topicId=self._topics.pop(name)[0])

    def _some_topic(self) -> str | None:
        return self._luck.choice(sorted(self._topics)) if self._topics else None

    def _brokers(self) -> tuple[int, ...]:
        return tuple(self._luck.sample(range(6), self._luck.randint(0, 3)))


def history(luck: random.Random, steps: int) -> History:
    found = History(luck)
    for _ in range(steps):
        found.happen()
    return found


# ---- files of a history ----


def encoded(told: Told) -> bytes:
    return message(told[0], 0, told[1])


def write_segment(path: Path, log: Sequence[Told], first: int, luck: random.Random) -> None:
    """Offset 0 is a control record, as in a real log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    at = first
    with path.open("wb") as file:
        if at == 0:
            file.write(control_batch(0, LEADER_CHANGE))
            at = 1
        while at < len(log):
            count = luck.randint(1, 5)
            file.write(batch_of(at, [encoded(told) for told in log[at : at + count]]))
            at += len(log[at : at + count])


def write_image(directory: Path, log: Sequence[Told], end: int, luck: random.Random) -> Path:
    """A checkpoint of what the oracle says, in Kafka's order of kinds, in small batches."""
    oracle = Oracle()
    for _, those in effects(log[:end]):
        for told in those:
            oracle.apply(told)
    values = [encoded((RecordType.FEATURE_LEVEL, {"name": "metadata.version", "featureLevel": 21}))]
    for id_, name in oracle.topics.items():
        values.append(encoded((RecordType.TOPIC, {"name": name, "topicId": id_})))
        values += [_partition(key, row) for key, row in oracle.rows.items() if key[:2] == (PARTITION.name, id_)]
    for (kind, *key), row in oracle.rows.items():
        if kind == TOPIC_CONFIG.name:
            config = {"resourceType": 2, "resourceName": key[0], "name": key[1], "value": row[0]}
            values.append(encoded((RecordType.CONFIG, config)))
    path = directory / f"{end:020}-0000000001.checkpoint"
    path.write_bytes(checkpoint_of(values, luck))
    return path


def checkpoint_of(values: Sequence[bytes], luck: random.Random) -> bytes:
    batches, at = [control_batch(0, SNAPSHOT_HEADER)], 0
    while at < len(values):
        some = values[at : at + luck.randint(1, 4)]
        batches.append(batch_of(at + 1, some))
        at += len(some)
    return b"".join([*batches, control_batch(at + 1, SNAPSHOT_FOOTER)])


def _partition(key: Key, row: tuple[Any, ...]) -> bytes:
    names = ("replicas", "addingReplicas", "removingReplicas", "leader", "isr", "leaderEpoch", "leaderRecoveryState")
    rest = {"partitionEpoch": 7, "directories": [], "partitionId": key[2], "topicId": key[1]}
    return message(RecordType.PARTITION, 1, dict(zip(names, row, strict=True)) | rest)


# ---- what our reader says ----


def read(source: KraftSource, wanted: int = 3) -> tuple[Rows_, set[tuple[Key, Any]]]:
    """The same as `expected`, of all splits, each read by a copy of the source. No key may come twice."""
    rows: Rows_ = {}
    versions: set[tuple[Key, Any]] = set()
    for split in source.splits(wanted):
        for part in pickle.loads(pickle.dumps(source)).read(split, frozenset(TOLD)):  # noqa: S301 - our own
            for key, values, is_deleted in told_in(part):
                if part.is_journal:
                    versions.add((key, None if is_deleted else values))
                else:
                    assert key not in rows
                    rows[key] = values
    return rows, versions


def told_in(part: Rows) -> Iterator[tuple[Key, tuple[Any, ...], bool]]:
    part.batch.validate(full=True)
    assert part.batch.schema.equals(journal_schema_of(part.kind) if part.is_journal else schema_of(part.kind))
    kind = KINDS[part.kind]
    for row in part.batch.to_pylist():
        key = (part.kind, *(row[f.name] for f in kind.keys))
        values = tuple(tuple(v) if isinstance(v := row[f.name], list) else v for f in kind.values)
        yield key, values, row.get("is_deleted", False)


def agrees(found: tuple[Rows_, set[tuple[Key, Any]]], wanted: tuple[Rows_, set[tuple[Key, Any]]]) -> bool:
    """A value that is written once more is no other value: whether it is told again does not matter."""
    (rows, versions), (wanted_rows, wanted_versions) = found, wanted
    return rows == wanted_rows and wanted_versions <= versions <= wanted_versions | set(wanted_rows.items())


def source_of(directory: Path, **limits: int) -> KraftSource:
    return KraftSource(KraftFiles(directory=directory, **limits), DIGESTER)


@settings(deadline=None, max_examples=50)
@given(st.randoms(use_true_random=False), st.integers(0, 30), st.data())
def test_any_history_is_read_as_the_oracle_reads_it(
    tmp_path_factory: pytest.TempPathFactory, luck: random.Random, steps: int, data: st.DataObject
) -> None:
    """From the log alone, and from any checkpoint with the log after it: the same rows, the same versions."""
    told = history(luck, steps)
    log = told.log
    cut = data.draw(st.integers(1, len(log)), label="cut")
    directory = tmp_path_factory.mktemp("log")
    write_segment(directory / f"{0:020}.log", log, 0, luck)
    wanted = expected(log, cut)
    assert agrees(read(source_of(directory, cut=cut, end=len(log))), wanted)
    assert read(source_of(directory))[0] == expected(log, len(log))[0]

    end = data.draw(st.sampled_from([offset for offset in told.quiet if offset <= cut] or [1]), label="checkpoint")
    checkpoint = write_image(directory, log, end, luck)
    assert agrees(read(source_of(directory, cut=cut, end=len(log))), wanted)
    (directory / f"{0:020}.log").unlink()
    write_segment(directory / f"{end:020}.log", log, end, luck)
    assert agrees(read(source_of(directory, cut=cut, end=len(log)), wanted=100), wanted)
    shutil.copy(checkpoint, directory / f"{len(log) + 5:020}-0000000002.checkpoint")
    assert agrees(read(source_of(directory, cut=cut, end=len(log))), wanted), "a checkpoint after the cut is of no use"


@settings(deadline=None, max_examples=40)
@given(st.randoms(use_true_random=False), st.data())
def test_files_that_are_cut_or_changed_never_give_other_rows(
    tmp_path_factory: pytest.TempPathFactory, luck: random.Random, data: st.DataObject
) -> None:
    told = history(luck, 25)
    directory = tmp_path_factory.mktemp("log")
    end = luck.choice(told.quiet)
    write_image(directory, told.log, end, luck)
    write_segment(directory / f"{end:020}.log", told.log, end, luck)
    source = source_of(directory, cut=max(end, 1), end=len(told.log))
    wanted = read(source)
    hurt = data.draw(st.sampled_from(sorted(directory.iterdir())))
    whole = hurt.read_bytes()
    if not whole:
        return
    at = data.draw(st.integers(0, len(whole) - 1))
    hurt.write_bytes(whole[:at] if data.draw(st.booleans()) else whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
    try:
        found = read(source)
    except (Permanent, Transient):
        return
    assert found == wanted


def test_a_checkpoint_is_split_and_its_parts_are_the_whole(tmp_path: Path) -> None:
    cluster = SyntheticCluster(topics=600, partitions=20, version=1)
    write_checkpoint(tmp_path, cluster, end=50)
    splits = source_of(tmp_path).splits(4)
    assert [split.name for split in splits] == ["tail", "base-0000", "base-0001", "base-0002", "base-0003"]
    assert all(a.end == b.begin for a, b in pairwise(splits[1:]))
    rows, versions = read(source_of(tmp_path), wanted=4)
    assert not versions
    assert rows == rows_of(cluster)


def test_a_copy_in_one_transaction_is_read_from_the_log_alone(tmp_path: Path) -> None:
    cluster = SyntheticCluster(topics=50, partitions=60, configs=2)
    end = write_log(tmp_path, cluster)
    assert read(source_of(tmp_path, end=end)) == (rows_of(cluster), set())
    rows, versions = read(source_of(tmp_path, cut=end - 1, end=end))
    assert rows == {}, "it has not ended before its end"
    assert versions == set(rows_of(cluster).items())
    write_log(tmp_path, cluster, is_aborted=True)
    assert read(source_of(tmp_path, end=end)) == ({}, set())


def rows_of(cluster: SyntheticCluster) -> Rows_:
    rows: Rows_ = {}
    for topic in range(cluster.topics):
        name, id_ = cluster.name(topic), cluster.ids[topic].tobytes()
        rows[TOPIC.name, name] = (uuid_text(id_),)
        rows |= {(TOPIC_CONFIG.name, name, c[0]): (c[1],) for c in map(cluster.config, range(cluster.configs))}
        for number in range(cluster.partitions):
            replicas = tuple(cluster.replicas[topic * cluster.partitions + number].tolist())
            epoch = int(cluster.leader_epochs[topic * cluster.partitions + number])
            rows[PARTITION.name, id_, number] = (replicas, (), (), replicas[0], tuple(sorted(replicas)), epoch, 0)
    return rows


# ---- which files ----


def small_log(directory: Path) -> int:
    """Ten records; gives the offset after them."""
    log: list[Told] = [(RecordType.NO_OP, {})] * 5 + [
        (RecordType.TOPIC, {"name": f"t{n}", "topicId": bytes([n] * 16)}) for n in range(5)
    ]
    write_segment(directory / f"{0:020}.log", log, 0, random.Random(1))  # noqa: S311 - no secret comes from it
    return len(log)


def test_nothing_at_the_high_watermark_or_beyond_is_read(tmp_path: Path) -> None:
    small_log(tmp_path)
    rows, versions = read(source_of(tmp_path, cut=7, end=9))
    assert [key[1] for key in rows] == ["t0", "t1"]
    assert {key[1] for key, _ in versions} == {"t2", "t3"}


def test_a_log_that_ends_before_the_high_watermark_is_to_be_copied_again(tmp_path: Path) -> None:
    end = small_log(tmp_path)
    with pytest.raises(Transient, match=rf"{0:020}.log: whole batches end at offset {end}, expected {end + 1}"):
        read(source_of(tmp_path, end=end + 1))
    with pytest.raises(Transient, match="expected 99"):
        read(source_of(tmp_path, cut=99))


def test_a_checkpoint_without_its_footer_is_passed_over(tmp_path: Path) -> None:
    end = small_log(tmp_path)
    wanted = read(source_of(tmp_path, end=end))
    whole = write_checkpoint(tmp_path, SyntheticCluster(3, 3), end=2)
    whole.write_bytes(whole.read_bytes()[: -len(control_batch(0, SNAPSHOT_FOOTER))])
    assert read(source_of(tmp_path, end=end)) == wanted
    whole.write_bytes(b"")
    assert read(source_of(tmp_path, end=end)) == wanted


def test_a_log_that_begins_after_what_is_needed_is_refused(tmp_path: Path) -> None:
    small_log(tmp_path)
    (tmp_path / f"{0:020}.log").rename(tmp_path / f"{100:020}.log")
    with pytest.raises(Permanent, match="the log begins after offset 0"):
        read(source_of(tmp_path, end=9))


def test_a_gap_between_segments_is_refused(tmp_path: Path) -> None:
    end = small_log(tmp_path)
    append(tmp_path / f"{end + 3:020}.log", end + 3, [message(RecordType.NO_OP, 0, {})])
    with pytest.raises(Permanent, match=rf"ends at offset {end}, but {end + 3:020}.log comes next"):
        read(source_of(tmp_path))


def test_an_empty_directory_may_be_filled_later(tmp_path: Path) -> None:
    with pytest.raises(Transient, match="neither a segment nor a whole checkpoint"):
        read(source_of(tmp_path))


def test_a_cut_beyond_the_high_watermark_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="the cut 9 is beyond the high watermark 8"):
        read(source_of(tmp_path, cut=9, end=8))


def test_something_else_among_topics_is_refused(tmp_path: Path) -> None:
    """Splits guess from the first record of each batch; a batch that is not what they took it for is never half read."""
    topic = message(RecordType.TOPIC, 0, {"name": "t", "topicId": b"1" * 16})
    config = message(RecordType.CONFIG, 0, {"resourceType": 2, "resourceName": "t", "name": "n", "value": "v"})
    batches = [control_batch(0, SNAPSHOT_HEADER), batch_of(1, [topic, config]), batch_of(3, [topic]), batch_of(4, [topic])]
    path = tmp_path / f"{9:020}-{1:010}.checkpoint"
    path.write_bytes(b"".join([*batches, control_batch(5, SNAPSHOT_FOOTER)]))
    with pytest.raises(Permanent, match="a ConfigRecord among topics"):
        read(source_of(tmp_path))


@pytest.mark.parametrize("is_in_checkpoint", [True, False])
def test_a_partition_that_is_created_twice_is_refused(tmp_path: Path, is_in_checkpoint: bool) -> None:
    cluster = SyntheticCluster(400, 10)
    if is_in_checkpoint:
        write_checkpoint(tmp_path, cluster, end=0)
    log = tmp_path / f"{0:020}.log"
    again = next(value for value in cluster.values() if value[1] == RecordType.PARTITION)
    append(log, 0, [again] if is_in_checkpoint else [again, again])
    with pytest.raises(Permanent, match=r"creates partition 0 of topic [0-9a-f]{32} again"):
        read(source_of(tmp_path))


def test_a_change_of_what_nobody_has_created_is_refused(tmp_path: Path) -> None:
    change = message(RecordType.PARTITION_CHANGE, 0, {"partitionId": 3, "topicId": b"x" * 16, "leader": 1})
    append(tmp_path / f"{0:020}.log", 0, [change])
    with pytest.raises(Permanent, match=r"changes partition 3 of topic 7878.*, which nothing has created"):
        read(source_of(tmp_path))


def test_markers_of_transactions_must_fit(tmp_path: Path) -> None:
    append(tmp_path / f"{0:020}.log", 0, [message(RecordType.END_TRANSACTION, 0, {})])
    with pytest.raises(Permanent, match="is a EndTransactionRecord where a transaction is not open"):
        read(source_of(tmp_path))


def test_only_the_kinds_that_are_asked_for_are_read(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, SyntheticCluster(100, 30), end=0)
    source = source_of(tmp_path)
    for kind in TOLD:
        parts = [part for split in source.splits(2) for part in source.read(split, frozenset({kind}))]
        assert {part.kind for part in parts} == {kind}
        assert sum(part.batch.num_rows for part in parts) == {TOPIC.name: 100, PARTITION.name: 3000}.get(kind, 100)
    assert pa.types.is_fixed_size_binary(schema_of(PARTITION.name).field("topic_id").type)
