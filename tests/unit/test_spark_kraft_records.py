"""Metadata records: what is written is read, one by one and all at once; what cannot be read is named and refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import Permanent
from domain.quorum_log.record_types import RecordType
from playground.log_bytes import raw_batch
from playground.metadata_files import SNAPSHOT_HEADER, batch_of, control_batch, message, varint
from spark.codec.metadata_partitions import Partitions, partitions_of
from spark.codec.metadata_records import Frames, control_types, decoded, frames_of
from spark.codec.metadata_schema import SCHEMAS, SchemaField
from spark.codec.record_batch import Piece, walk

FILE = "00000000000000000000.log"
UNHURRIED = settings(deadline=None, max_examples=60)
TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
SCALARS = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "string": TEXT,
    "bytes": st.binary(max_size=200),
    "uuid": st.binary(min_size=16, max_size=16),
}


def values_of(field: SchemaField) -> st.SearchStrategy[Any]:
    kind = field.type.removeprefix("[]")
    value = structures(field.fields, 0) if field.fields else SCALARS[kind]
    if field.type.startswith("[]"):
        value = st.lists(value, max_size=5).map(tuple)
    return st.none() | value if field.is_nullable else value


def structures(fields: tuple[SchemaField, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    plain = {f.name: values_of(f) for f in fields if f.since <= version and f.tag is None}
    tagged = {f.name: values_of(f) | st.just(f.default) for f in fields if f.since <= version and f.tag is not None}
    later = {f.name: st.just(f.default) for f in fields if f.since > version and f.tag is not None}
    return st.fixed_dictionaries(plain | tagged | later)


@st.composite
def records(draw: st.DrawFn, kind: int | None = None) -> tuple[int, int, dict[str, Any]]:
    """Kind, version and fields of any record."""
    chosen = draw(st.sampled_from(sorted(SCHEMAS))) if kind is None else kind
    version = draw(st.integers(0, SCHEMAS[chosen].newest))
    return chosen, version, draw(structures(SCHEMAS[chosen].fields, version))


def framed(*batches: bytes) -> Frames:
    return frames_of(piece_of(*batches))


def piece_of(*batches: bytes) -> Piece:
    data = b"".join(batches)
    found, used = walk(data, FILE)
    assert used == len(data)
    return Piece(0, data, found)


@UNHURRIED
@given(st.lists(records(), min_size=1, max_size=20))
def test_what_is_written_is_read(told: list[tuple[int, int, dict[str, Any]]]) -> None:
    frames = framed(batch_of(7, [message(*record) for record in told]))
    found = list(decoded(frames))
    assert [(record.kind, record.values) for record in found] == [(kind, values) for kind, _, values in told]
    assert frames.versions.tolist() == [version for _, version, _ in told]
    assert [record.origin.at for record in found] == list(range(7, 7 + len(told)))


@UNHURRIED
@given(st.lists(records(RecordType.PARTITION), min_size=1, max_size=20))
def test_partitions_all_at_once_are_what_they_are_one_by_one(told: list[tuple[int, int, dict[str, Any]]]) -> None:
    """Every version, with and without tagged fields; sets sorted, replicas in their order."""
    found = partitions_of(framed(batch_of(0, [message(*record) for record in told])))
    assert [row(found, index) for index in range(len(found))] == [
        {
            "key": (v["topicId"], v["partitionId"]),
            "replicas": v["replicas"],
            "sets": [sorted(set(v[name])) for name in ("isr", "removingReplicas", "addingReplicas")],
            "state": (v["leader"], v["leaderEpoch"], v["leaderRecoveryState"]),
        }
        for _, _, v in told
    ]


def row(found: Partitions, index: int) -> dict[str, Any]:
    return {
        "key": (found.topic_ids[index].tobytes(), int(found.numbers[index])),
        "replicas": found.replicas.row(index),
        "sets": [list(lists.row(index)) for lists in (found.isr, found.removing, found.adding)],
        "state": (int(found.leaders[index]), int(found.leader_epochs[index]), int(found.recovery[index])),
    }


@UNHURRIED
@given(records(), st.data())
def test_a_record_that_is_cut_is_refused_and_one_that_is_changed_at_least_ends(
    told: tuple[int, int, Any], data: st.DataObject
) -> None:
    """With a checksum that is right: whoever wrote these bytes meant them. Nothing hangs, nothing else is raised."""
    whole = message(*told)
    cut = whole[: data.draw(st.integers(3, len(whole)))]
    changed = bytearray(whole)
    changed[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(0, 255))
    assert is_refused(whole + b"\0")
    assert is_refused(cut) or cut == whole
    is_refused(bytes(changed))


def is_refused(value: bytes) -> bool:
    """Whether reading it raises `Permanent`; anything else that is raised fails the test."""
    try:
        frames = framed(batch_of(0, [value]))
        list(decoded(frames))
        partitions_of(frames.where(frames.kinds == RecordType.PARTITION))
    except Permanent:
        return True
    return False


@UNHURRIED
@given(records(RecordType.PARTITION), st.data())
def test_a_partition_that_is_cut_is_refused_all_at_once_as_well(told: tuple[int, int, Any], data: st.DataObject) -> None:
    whole = message(*told)
    cut = whole[: data.draw(st.integers(3, len(whole) - 1))]
    with pytest.raises(Permanent, match="PartitionRecord"):
        partitions_of(framed(batch_of(0, [whole, cut, whole])))


def test_unknown_kinds_and_versions_are_named() -> None:
    with pytest.raises(Permanent, match=r"offset 1, .* unknown kind 99, version 3"):
        framed(batch_of(0, [message(RecordType.NO_OP, 0, {}), b"\x01" + varint(99) + varint(3) + b"\0"]))
    with pytest.raises(Permanent, match=r"offset 0, .* PartitionRecord of version 3, known are 0 to 2"):
        framed(batch_of(0, [b"\x01" + varint(RecordType.PARTITION) + varint(3)]))


def test_unknown_tagged_fields_are_refused() -> None:
    value = message(RecordType.NO_OP, 0, {})[:-1] + b"\x01" + varint(9) + varint(1) + b"x"
    with pytest.raises(Permanent, match="NoOpRecord of version 0, cannot be read: unknown tagged field 9"):
        list(decoded(framed(batch_of(0, [value]))))


@pytest.mark.parametrize(
    ("batch", "what"),
    [
        (raw_batch(0, [(None, b"\x02\x14\x00\x00")]), "frame version"),
        (raw_batch(0, [(b"k", b"\x01\x14\x00\x00")]), "it has a key"),
        (raw_batch(0, [(None, b"\x01")]), "too short|cannot be read"),
        (raw_batch(0, [(None, b"\x01" + b"\xff" * 12)]), "a number that does not end"),
        (raw_batch(0, [(None, b"\x01\x14\x00\x00")], attributes=1), "compressed"),
    ],
)
def test_what_the_quorum_never_writes_is_refused(batch: bytes, what: str) -> None:
    with pytest.raises(Permanent, match=what):
        framed(batch)


def test_control_records_only_take_offsets() -> None:
    both = control_batch(0, SNAPSHOT_HEADER), batch_of(1, [message(RecordType.NO_OP, 0, {})])
    assert framed(*both).offsets.tolist() == [1]
    assert control_types(piece_of(*both)) == [SNAPSHOT_HEADER]


def test_a_batch_that_its_records_do_not_fill_is_refused() -> None:
    whole = bytearray(batch_of(0, [message(RecordType.NO_OP, 0, {})] * 2))
    whole[60] = 1
    found, _ = walk(bytes(whole), FILE, verify=False)
    with pytest.raises(Permanent, match="records that do not fill it"):
        frames_of(Piece(0, bytes(whole), found))
