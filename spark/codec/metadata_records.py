"""Records of the quorum's log: found in batches all at once, decoded one by one from `metadata_schema`.

A record's value is a frame version (1), an api key and a version, all unsigned varints, then the message
(MetadataRecordSerde.java). `frames_of` tells these of all records of a piece as columns; `decoded` reads their messages.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from domain.errors import Permanent
from spark.codec.metadata_schema import SCHEMAS, SchemaField
from spark.codec.octets import Bytes
from spark.codec.record_batch import HEADER_BYTES, Batches, Ints, Piece, damaged

FRAME_VERSION = 1
NEWER = "A newer Kafka has written it, and this version of Keeperless does not know what it means"
SNAPSHOT_HEADER, SNAPSHOT_FOOTER = 3, 4
"""Types of control records: the first and the last one of a checkpoint."""

Values = dict[str, Any]
Decoder = Callable[[bytes, int], tuple[Any, int]]
_Tagged = dict[int, tuple[str, Decoder]]


class Malformed(Exception):
    """Bytes that are no record. Callers say where: this never leaves the package."""


# ---- frames: where the records of a piece are ----


@dataclass(frozen=True)
class Frames:
    """Records of a piece, one row each. `starts`, `ends`: of their messages in `piece.data`. `batch`: its byte in the file."""

    piece: Piece
    starts: Ints
    ends: Ints
    offsets: Ints
    batch: Ints
    kinds: Ints
    versions: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def where(self, chosen: NDArray[Any]) -> "Frames":
        """Some of them: by a mask, or by their numbers."""
        columns = (self.starts, self.ends, self.offsets, self.batch, self.kinds, self.versions)
        return Frames(self.piece, *(column[chosen] for column in columns))

    @property
    def octets(self) -> Bytes:
        return np.frombuffer(self.piece.data, dtype=np.uint8)


def frames_of(piece: Piece) -> Frames:
    """All metadata records of a piece. Raft's own records, in control batches, are passed over: they only take offsets."""
    batches = piece.batches
    _refuse_compressed(batches)
    starts, ends, owner = _record_bounds(piece)
    octets = np.frombuffer(piece.data, dtype=np.uint8)
    try:
        frames = _framed(piece, octets, starts, ends, owner)
    except (IndexError, Malformed) as error:
        raise Permanent(f"{batches.file}: a record after byte {piece.begin} cannot be read: {error}. Copy it again") from error
    _refuse_unknown(frames)
    return frames


def _refuse_unknown(frames: Frames) -> None:
    """Also records that nobody asks for: a newer kind or version could change what others mean."""
    both = (frames.kinds << 32) | frames.versions
    heads = np.flatnonzero(np.diff(both, prepend=-1))
    for told in np.unique(both[heads]).tolist():
        _known(place_of(frames, int(np.argmax(both == told))), told >> 32, told & 0xFFFFFFFF)


def _refuse_compressed(batches: Batches) -> None:
    if batches.codecs.any():
        raise damaged(batches, int(np.argmax(batches.codecs != 0)), "is compressed, which the quorum never does")


def _record_bounds(piece: Piece) -> tuple[Ints, Ints, Ints]:
    """Where each record begins and ends in the piece, after its length, and the number of its batch."""
    batches, positions = piece.batches, list[int]()
    counts = np.where(batches.is_control, 0, batches.headers["count"].astype(np.int64))
    for index in np.flatnonzero(counts).tolist():
        _append_positions(piece, index, positions)
    starts, ends = _bounds(piece, positions)
    return starts, ends, np.repeat(np.arange(len(batches), dtype=np.int64), counts)


def _bounds(piece: Piece, positions: list[int]) -> tuple[Ints, Ints]:
    lengths, starts = varints(np.frombuffer(piece.data, dtype=np.uint8), np.array(positions, dtype=np.int64))
    return starts, starts + (lengths >> 1)


def _append_positions(piece: Piece, index: int, positions: list[int]) -> None:
    """Follows the lengths of a batch's records: the innermost loop of all, one step a record."""
    batches, data, append = piece.batches, piece.data, positions.append
    at = int(batches.positions[index]) - piece.begin + HEADER_BYTES
    limit = int(batches.positions[index] + batches.sizes[index]) - piece.begin
    try:
        for _ in range(batches.headers["count"][index]):
            append(at)
            length = data[at]
            at += 1
            if length >= 0x80:
                if data[at] < 0x80:  # two bytes: what nearly all records of this log have
                    length = length & 0x7F | data[at] << 7
                    at += 1
                else:
                    length, at = read_varint(data, at - 1)
            if length & 1:
                break
            at += length >> 1
    except (IndexError, Malformed):
        at = -1
    if at != limit:
        raise damaged(batches, index, "has records that do not fill it")


def _framed(piece: Piece, octets: Bytes, starts: Ints, ends: Ints, owner: Ints) -> Frames:
    """Attributes, timestamp, offset, key, value, headers of every record at once (DefaultRecord.java)."""
    _, at = varints(octets, starts + 1)
    deltas, at = varints(octets, at)
    keys, at = varints(octets, at)
    lengths, at = varints(octets, at)
    _expect((keys == 1).all(), "it has a key")
    values_end = at + (lengths >> 1)
    _expect((values_end + 1 == ends).all() and not octets[values_end].any(), "its value does not fill it, or it has headers")
    frames, at = varints(octets, at)
    _expect((frames == FRAME_VERSION).all(), f"its frame version is not {FRAME_VERSION}")
    kinds, at = varints(octets, at)
    versions, at = varints(octets, at)
    _expect((at <= values_end).all(), "it is too short")
    offsets = piece.batches.base_offsets[owner] + (deltas >> 1)
    _expect(not (deltas & 1).any() and (offsets <= piece.batches.last_offsets[owner]).all(), "its offset is not its batch's")
    return Frames(piece, at, values_end, offsets, piece.batches.positions[owner], kinds, versions)


def _expect(is_so: bool | np.bool_, what: str) -> None:
    if not is_so:
        raise Malformed(what)


def varints(octets: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The unsigned varints at many places at once, and their ends. IndexError beyond the bytes, `Malformed` beyond 63 bits."""
    octet = octets[at].astype(np.int64)
    value, after = octet & 0x7F, at + 1
    more, shift = np.flatnonzero(octet >= 0x80), 7
    while more.size:
        _expect(shift < 63, "it has a number that does not end")
        octet = octets[after[more]].astype(np.int64)
        value[more] |= (octet & 0x7F) << shift
        after[more] += 1
        more, shift = more[octet >= 0x80], shift + 7
    return value, after


def control_types(piece: Piece) -> list[int]:
    """The types of the control records of a piece's control batches, in their order."""
    found: list[int] = []
    batches = piece.batches
    for index in np.flatnonzero(batches.is_control).tolist():
        positions: list[int] = []
        _append_positions(piece, index, positions)
        found += [_control_type(piece.data, start, batches, index) for start in _bounds(piece, positions)[0].tolist()]
    return found


def _control_type(data: bytes, start: int, batches: Batches, index: int) -> int:
    try:
        _, at = read_varint(data, start + 1)
        _, at = read_varint(data, at)
        _, at = read_varint(data, at)
        return int(struct.unpack_from(">hh", data, at)[1])
    except (IndexError, Malformed, struct.error) as error:
        raise damaged(batches, index, "has a control record without a type") from error


# ---- messages: what a record says ----


class Origin(NamedTuple):
    """Where a record was read: file, byte of its batch, offset."""

    segment: str
    batch: int
    at: int

    def __str__(self) -> str:
        return f"{self.segment}: the record at offset {self.at}, in the batch at byte {self.batch},"


class Record(NamedTuple):
    """One record, its fields by name."""

    kind: int
    values: Values
    origin: Origin


def decoded(frames: Frames, rows: NDArray[Any] | None = None) -> Iterator[Record]:
    """These records, or all. Raises `Permanent`, naming kind and version, where they are unknown or do not fit."""
    chosen = frames if rows is None else frames.where(rows)
    file, data = frames.piece.batches.file, frames.piece.data
    columns = (chosen.kinds, chosen.versions, chosen.starts, chosen.ends, chosen.batch, chosen.offsets)
    for kind, version, start, end, batch, offset in zip(*(column.tolist() for column in columns), strict=True):
        origin = Origin(file, batch, offset)
        yield Record(kind, _values(_known(origin, kind, version), data[start:end], origin, (kind, version)), origin)


def _values(read: Decoder, message: bytes, origin: Origin, kind: tuple[int, int]) -> Values:
    try:
        values, used = read(message, 0)
    except (IndexError, ValueError, struct.error, Malformed) as error:
        raise Permanent(f"{origin} a {SCHEMAS[kind[0]].name} of version {kind[1]}, cannot be read: {error}") from error
    if used != len(message):
        raise Permanent(f"{origin} a {SCHEMAS[kind[0]].name} of version {kind[1]}, has {len(message) - used} bytes too many")
    return cast("Values", values)


def _known(origin: Origin, kind: int, version: int) -> Decoder:
    schema = SCHEMAS.get(kind)
    if schema is None:
        raise Permanent(f"{origin} is of the unknown kind {kind}, version {version}. {NEWER}")
    if version > schema.newest:
        raise Permanent(f"{origin} is a {schema.name} of version {version}, known are 0 to {schema.newest}. {NEWER}")
    return decoder(kind, version)


def place_of(frames: Frames, row: int) -> Origin:
    return Origin(frames.piece.batches.file, int(frames.batch[row]), int(frames.offsets[row]))


@cache
def decoder(kind: int, version: int) -> Decoder:
    """Reads messages of one kind and version."""
    return _structure(SCHEMAS[kind].fields, version)


def _structure(fields: tuple[SchemaField, ...], version: int) -> Decoder:
    present = [f for f in fields if f.since <= version]
    plain = [(f.name, _reader(f, version)) for f in present if f.tag is None]
    tagged: _Tagged = {f.tag: (f.name, _reader(f, version)) for f in present if f.tag is not None}
    defaults = {f.name: f.default for f in fields if f.tag is not None}

    def read(data: bytes, at: int) -> tuple[Values, int]:
        values = dict(defaults)
        for name, reader in plain:
            values[name], at = reader(data, at)
        count = data[at]
        return (values, at + 1) if count == 0 else _with_tags(data, at, tagged, values)

    return read


def _with_tags(data: bytes, at: int, tagged: _Tagged, values: Values) -> tuple[Values, int]:
    count, at = read_varint(data, at)
    for _ in range(count):
        tag, at = read_varint(data, at)
        size, at = read_varint(data, at)
        if tag not in tagged:
            raise Malformed(f"unknown tagged field {tag}")
        name, reader = tagged[tag]
        values[name], end = reader(data, at)
        if end != at + size:
            raise Malformed(f"{name} has {end - at} bytes, not {size}")
        at = end
    return values, at


def _reader(field: SchemaField, version: int) -> Decoder:
    if field.type.startswith("[]"):
        element = _structure(field.fields, version) if field.fields else _SCALARS[field.type[2:]]
        return _array(element, field.is_nullable)
    if field.type in ("string", "bytes"):
        return _text(field.is_nullable) if field.type == "string" else _octets(field.is_nullable)
    return _SCALARS[field.type]


def _array(element: Decoder, is_nullable: bool) -> Decoder:
    def read(data: bytes, at: int) -> tuple[tuple[Any, ...] | None, int]:
        length, at = _length(data, at, is_nullable)
        if length is None:
            return None, at
        found = []
        for _ in range(length):
            value, at = element(data, at)
            found.append(value)
        return tuple(found), at

    return read


def _text(is_nullable: bool) -> Decoder:
    def read(data: bytes, at: int) -> tuple[str | None, int]:
        length, at = _length(data, at, is_nullable)
        return (None, at) if length is None else (data[at : at + length].decode(), at + length)

    return read


def _octets(is_nullable: bool) -> Decoder:
    def read(data: bytes, at: int) -> tuple[bytes | None, int]:
        length, at = _length(data, at, is_nullable)
        return (None, at) if length is None else (data[at : at + length], at + length)

    return read


def _length(data: bytes, at: int, is_nullable: bool) -> tuple[int | None, int]:
    """A compact length: one more than it means, 0 for null. What it counts takes a byte each, at least."""
    length = data[at]
    at += 1
    if length >= 0x80:
        length, at = read_varint(data, at - 1)
    if length == 0 and not is_nullable:
        raise Malformed("null where there must be a value")
    if length - 1 > len(data) - at:
        raise Malformed("a length reaches beyond the record")
    return (length - 1 if length else None), at


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """One unsigned varint of at most 35 bits, and where it ends."""
    value = shift = 0
    while True:
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at
        shift += 7
        if shift > 28:
            raise Malformed("a number that does not end")


def _fixed(layout: str) -> Decoder:
    packed = struct.Struct(layout)
    unpack, size = packed.unpack_from, packed.size

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return unpack(data, at)[0], at + size

    return read


def _uuid(data: bytes, at: int) -> tuple[bytes, int]:
    return struct.unpack_from("16s", data, at)[0], at + 16


_SCALARS: dict[str, Decoder] = {
    "bool": _fixed(">?"),
    "int8": _fixed(">b"),
    "int16": _fixed(">h"),
    "uint16": _fixed(">H"),
    "int32": _fixed(">i"),
    "int64": _fixed(">q"),
    "float64": _fixed(">d"),
    "string": _text(is_nullable=False),
    "uuid": _uuid,
}
