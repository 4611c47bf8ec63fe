"""Record batches: found by their headers, verified by their checksums, and refused where they are not what they should be."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from domain.errors import Permanent
from playground.log_bytes import raw_batch
from spark.codec.record_batch import CRC_FROM, HEADER_BYTES, headers_of, pieces, walk

GZIP = 1
FILE = "00000000000000000000.log"
UNHURRIED = settings(deadline=None, max_examples=60)
Contents = st.lists(st.lists(st.binary(max_size=300), min_size=1, max_size=5), max_size=8)


def segment(contents: list[list[bytes]]) -> bytes:
    """Batches of these values, built by another implementation, with offsets that follow each other."""
    built, base = [], 0
    for values in contents:
        built.append(raw_batch(base, [(None, value) for value in values]))
        base += len(values)
    return b"".join(built)


@UNHURRIED
@given(Contents)
def test_headers_are_what_another_implementation_reads(contents: list[list[bytes]]) -> None:
    data = segment(contents)
    batches, used = walk(data, FILE)
    assert used == len(data)
    for index, position in enumerate(batches.positions.tolist()):
        theirs = DefaultRecordBatch(data[position : position + int(batches.sizes[index])])
        ours = batches.headers[index]
        assert (ours["base_offset"], ours["crc"], ours["attributes"]) == (theirs.base_offset, theirs.crc, theirs.attributes)
        assert batches.last_offsets[index] == theirs.base_offset + theirs.last_offset_delta
        assert (ours["base_timestamp"], ours["max_timestamp"]) == (theirs.first_timestamp, theirs.max_timestamp)
        assert (ours["producer_id"], ours["producer_epoch"], ours["base_sequence"]) == (-1, -1, -1)
        assert ours["count"] == len(contents[index])


@UNHURRIED
@given(Contents, st.integers(1, 2000), st.data())
def test_a_file_in_pieces_is_the_file(
    tmp_path_factory: pytest.TempPathFactory, contents: list[list[bytes]], size: int, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / FILE
    whole = segment(contents)
    left_over = data.draw(st.integers(0, HEADER_BYTES + 100))
    path.write_bytes(whole + segment([[b"x" * 400]])[:left_over])
    found = list(pieces(path, size=size))
    assert b"".join(piece.data for piece in found) == whole
    batches, _ = walk(whole, FILE)
    assert [p for piece in found for p in piece.batches.positions.tolist()] == batches.positions.tolist()
    headers, end = headers_of(path)
    assert end == len(whole)
    assert headers.headers.tolist() == batches.headers.tolist()
    assert headers.positions.tolist() == batches.positions.tolist()


@UNHURRIED
@given(Contents.filter(bool), st.data())
def test_a_changed_byte_that_the_checksum_covers_is_found(contents: list[list[bytes]], data: st.DataObject) -> None:
    whole = bytearray(segment(contents))
    batches, _ = walk(bytes(whole), FILE)
    index = data.draw(st.integers(0, len(batches) - 1))
    position = int(batches.positions[index])
    at = data.draw(st.integers(CRC_FROM, int(batches.sizes[index]) - 1))
    whole[position + at] ^= data.draw(st.integers(1, 255))
    # A batch that seems to reach further than it does is noticed by the one behind it, before the checksums are looked at.
    with pytest.raises(Permanent, match=rf"{FILE}: the batch at byte \d+ "):
        walk(bytes(whole), FILE)


@UNHURRIED
@given(Contents, st.data())
def test_any_changed_byte_is_found_or_ends_the_walk_or_leaves_what_was_read(
    contents: list[list[bytes]], data: st.DataObject
) -> None:
    """Nothing hangs, and nothing but `Permanent` is raised. The leader's epoch alone is outside of everything."""
    whole = bytearray(segment(contents) + b"\0" * 3)
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    try:
        batches, used = walk(bytes(whole), FILE)
    except Permanent:
        return
    assert used <= len(whole)
    for position, size in zip(batches.positions.tolist(), batches.sizes.tolist(), strict=True):
        assert DefaultRecordBatch(bytes(whole[position : position + size])).validate_crc()


def test_compressed_batches_are_walked_and_told() -> None:
    builder = DefaultRecordBatchBuilder(2, GZIP, False, -1, -1, -1, 1 << 20)
    for offset in range(3):
        builder.append(offset, 1, None, b"the same again and again" * 20, [])
    batches, _ = walk(bytes(builder.build()), FILE)
    assert batches.codecs.tolist() == [GZIP]
    assert batches.headers["count"].tolist() == [3]


def test_zeros_of_a_file_allocated_beforehand_are_its_end(tmp_path: Path) -> None:
    whole = segment([[b"a"], [b"b"]])
    path = tmp_path / FILE
    path.write_bytes(whole + b"\0" * 100_000)
    assert b"".join(piece.data for piece in pieces(path, size=1000)) == whole
    assert headers_of(path)[1] == len(whole)


def test_an_incomplete_batch_of_any_length_is_not_read_for_ever(tmp_path: Path) -> None:
    whole = bytearray(segment([[b"a"], [b"b" * 5000], [b"c" * 5000]]))
    first = len(segment([[b"a"]]))
    struct.pack_into(">i", whole, first + 8, 2**31 - 1)
    path = tmp_path / FILE
    path.write_bytes(whole)
    assert [piece.begin + len(piece.data) for piece in pieces(path, size=100)] == [first]


@pytest.mark.parametrize(
    ("at", "value", "what"),
    [
        (16, b"\1", "no record batch of magic 2"),
        (8, struct.pack(">i", 7), "no record batch of magic 2"),
        (0, struct.pack(">q", -5), "a negative offset"),
        (0, struct.pack(">q", 0), "begins before the batch in front of it"),
    ],
)
def test_what_is_no_batch_is_refused_with_file_and_byte(at: int, value: bytes, what: str) -> None:
    whole = bytearray(segment([[b"a"], [b"b"]]))
    second = len(whole) // 2
    whole[second + at : second + at + len(value)] = value
    with pytest.raises(Permanent, match=rf"{FILE}: .*at byte {1000 + second} .*{what}"):
        walk(bytes(whole), FILE, begin=1000)


@pytest.mark.parametrize("count", [-1, 3])
def test_a_count_that_does_not_fit_the_offsets_is_refused(count: int) -> None:
    whole = bytearray(segment([[b"a", b"b"]]))
    struct.pack_into(">i", whole, 57, count)
    with pytest.raises(Permanent, match="a count that cannot be"):
        walk(bytes(whole), FILE, verify=False)
