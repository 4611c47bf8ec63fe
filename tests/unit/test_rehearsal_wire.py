"""Requests of a stand-in, taken apart again by hand; and answers as a controller writes them."""

import struct
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.zk_to_kraft.rehearsal import wire
from activities.zk_to_kraft.rehearsal.stand_ins import listeners_in, rack_in
from activities.zk_to_kraft.rehearsal.wire import Listener, Reader, Registration

INCARNATION, DIRECTORY = UUID(int=7), UUID(int=9)


@given(st.integers(0, 2**31 - 1))
def test_a_varint_is_read_as_it_was_written(value: int) -> None:
    assert Reader(wire.varint(value)).varint() == value


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_is_read_as_it_was_written(value: str) -> None:
    assert Reader(wire.text(value)).text() == value


def test_a_registration_has_the_fields_of_version_4_in_their_order() -> None:
    asked = Registration(3, "other", (Listener("INTERNAL", "höst", 9092, 3),), "rack-1")
    reader = Reader(wire.registration(asked, INCARNATION, DIRECTORY, 21))
    assert (reader.fixed("i"), reader.text(), reader.take(16)) == (3, "other", INCARNATION.bytes)
    assert reader.array(lambda r: (r.text(), r.text(), r.fixed("H"), r.fixed("h"), r.tags())) == [
        ("INTERNAL", "höst", 9092, 3, {})
    ]
    assert reader.array(lambda r: (r.text(), r.fixed("h"), r.fixed("h"), r.tags())) == [("metadata.version", 21, 21, {})]
    assert (reader.text(), reader.fixed("?")) == ("rack-1", True)
    assert reader.array(lambda r: r.take(16)) == [DIRECTORY.bytes]
    assert (reader.fixed("q"), reader.tags()) == (-1, {})
    with pytest.raises(wire.Damaged):
        reader.fixed("B")


def test_no_rack_is_null() -> None:
    with_rack = wire.registration(Registration(1, "c", (), ""), INCARNATION, DIRECTORY, 1)
    without = wire.registration(Registration(1, "c", (), None), INCARNATION, DIRECTORY, 1)
    assert [a for a, b in zip(with_rack, without, strict=True) if a != b] == [1]


def test_a_request_has_its_length_and_a_header_of_version_2() -> None:
    framed = wire.framed(wire.HEARTBEAT, wire.HEARTBEAT_VERSION, 5, wire.heartbeat(3, 12, 99))
    (size,) = struct.unpack(">i", framed[:4])
    assert size == len(framed) - 4
    reader = Reader(framed[4:])
    assert [reader.fixed("h"), reader.fixed("h"), reader.fixed("i")] == [63, 1, 5]
    assert reader.take(reader.fixed("h")) == wire.CLIENT_ID
    assert reader.tags() == {}
    assert [reader.fixed(layout) for layout in "iqq??"] == [3, 12, 99, 0, 0]


def test_answers_are_read() -> None:
    header = struct.pack(">i", 5) + b"\0"
    assert wire.registered(header + struct.pack(">ihq", 0, 35, -1) + b"\0") == (35, -1)


def test_the_finalized_level_is_a_tagged_field_of_an_answer_whose_header_has_none() -> None:
    levels = wire.array([wire.text("metadata.version") + struct.pack(">hh", 21, 1) + b"\0"])
    tags = b"\2" + b"\1" + wire.varint(8) + struct.pack(">q", 4) + b"\2" + wire.varint(len(levels)) + levels
    apis = wire.array([struct.pack(">hhh", 62, 0, 4) + b"\0"])
    start = struct.pack(">ih", 1, 0) + apis + struct.pack(">i", 0)
    assert wire.finalized_level(start + tags) == 21
    assert wire.finalized_level(start + b"\0") is None


def test_a_stand_in_registers_what_the_broker_has_and_the_listener_that_the_controller_looks_for() -> None:
    znode = b'{"endpoints":["OUT://a.example:9092","IN://[::1]:9093"],"listener_security_protocol_map":{"OUT":"SASL_SSL"},"rack":"r"}'
    assert listeners_in(znode, "IN") == (Listener("OUT", "a.example", 9092, 3), Listener("IN", "::1", 9093, 0))
    assert listeners_in(b"broken", "IN") == (Listener("IN", "127.0.0.1", 9, 0),)
    assert (rack_in(znode), rack_in(b"{}"), rack_in(b"broken")) == ("r", None, None)
