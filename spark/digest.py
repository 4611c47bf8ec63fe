"""Canonical 64-bit hashes of rows, computed for whole columns at once.

Every value enters with a mark that tells null from present, and every text or list with its size, so that `[4], []` differs
from `[], [4]`, null from empty, and `"ab", "c"` from `"a", "bc"`. Each step is a bijection of the state, so two rows that
differ in one word of eight bytes never have the same hash. Values that a comparison may take for equal, such as a set in
another order, may have different hashes: a hash settles what is equal, never what differs.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from domain.drift.records import Field, FieldType, RowKind, Rule
from domain.errors import Permanent

Words = npt.NDArray[np.uint64]
Bounds = npt.NDArray[np.int64]

HASH_VERSION = "1"
BUCKETS = 4096
_BUCKET_SHIFT = np.uint64(64 - 12)
_KEY_SALT = np.uint64(0x243F6A8885A308D3)
_ROW_SALT = np.uint64(0x13198A2E03707344)
_SUM_SALT = np.uint64(0xA4093822299F31D0)
_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xBF58476D1CE4E5B9)
_PRESENT = np.uint64(1 << 32)
_LOW_BYTES = np.array([(1 << (8 * size)) - 1 for size in range(8)] + [2**64 - 1], dtype=np.uint64)


def key_hashes(kind: RowKind, batch: pa.RecordBatch | pa.Table) -> Words:
    return _absorb_all(np.full(batch.num_rows, _KEY_SALT), kind.keys, batch)


def row_hashes(kind: RowKind, batch: pa.RecordBatch | pa.Table, keys: Words) -> Words:
    """Of what is compared, salted otherwise than `keys`: the two together are 128 bits of a row."""
    compared = [field for field in kind.values if field.rule is not Rule.NOT_COMPARED]
    state = keys.copy()
    _mix(state, np.full(len(keys), _ROW_SALT))
    return _absorb_all(state, compared, batch)


def buckets_of(keys: Words) -> npt.NDArray[np.int32]:
    """The high bits, so that rows sorted by their key's hash are sorted by bucket. A huge topic is spread over all."""
    return (keys >> _BUCKET_SHIFT).astype(np.int32)


def digest_of(keys: Words, rows: Words) -> tuple[int, int, int]:
    """Of a set of rows, whatever their order: how many, and a sum and an exclusive or of 64 bits each."""
    mixed = np.full(len(keys), _SUM_SALT)
    for words in (keys, rows):
        _mix(mixed, words)
    return len(mixed), int(mixed.sum(dtype=np.uint64)), int(np.bitwise_xor.reduce(mixed * _FIRST, initial=np.uint64(0)))


def _absorb_all(state: Words, fields: Sequence[Field], batch: pa.RecordBatch | pa.Table) -> Words:
    for field in fields:
        _absorb(state, field.type, batch.column(field.name))
    return state


def _absorb(state: Words, type_: FieldType, column: pa.Array | pa.ChunkedArray) -> None:
    array = _whole(column)
    valid = np.asarray(array.is_valid())
    match type_:
        case FieldType.INT | FieldType.FLAG:
            _absorb_small(state, array, valid)
        case FieldType.LONG | FieldType.DOUBLE:
            _mix(state, valid.astype(np.uint64))
            _mix(state, np.where(valid, _words_of_eight_bytes(array), np.uint64(0)))
        case FieldType.UUID:
            _absorb_uuids(state, array, valid)
        case FieldType.TEXT:
            _absorb_bytes(state, *_text_bytes(array), valid)
        case FieldType.INTS:
            _absorb_bytes(state, *_list_bytes(array), valid)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _mix(state: Words, words: Words) -> None:
    """One step, in place."""
    state ^= words
    state *= _FIRST
    state ^= state >> np.uint64(32)
    state *= _SECOND
    state ^= state >> np.uint64(29)


def _absorb_small(state: Words, array: pa.Array, valid: npt.NDArray[np.bool_]) -> None:
    """Mark and value in one word."""
    values = array.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint32)
    _mix(state, np.where(valid, values.astype(np.uint64) | _PRESENT, np.uint64(0)))


def _words_of_eight_bytes(array: pa.Array) -> Words:
    values: Words = array.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return values


def _absorb_uuids(state: Words, array: pa.Array, valid: npt.NDArray[np.bool_]) -> None:
    words = np.frombuffer(array.buffers()[1], dtype="<u8")[2 * array.offset : 2 * (array.offset + len(array))]
    _mix(state, valid.astype(np.uint64))
    for half in (words[0::2], words[1::2]):
        _mix(state, np.where(valid, half, np.uint64(0)))


def _text_bytes(array: pa.Array) -> tuple[npt.NDArray[np.uint8], Bounds]:
    """The bytes of all texts, and where each begins and ends."""
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return _bytes_between(data, bounds)


def _list_bytes(array: pa.Array) -> tuple[npt.NDArray[np.uint8], Bounds]:
    values = array.values
    if values.null_count:
        raise Permanent("a list of numbers has a null in it, and no kind of row allows that: the reader that made it is wrong")
    bounds = (array.offsets.to_numpy().astype(np.int64) + values.offset) * 4
    return _bytes_between(values.buffers()[1], bounds)


def _bytes_between(data: pa.Buffer, bounds: Bounds) -> tuple[npt.NDArray[np.uint8], Bounds]:
    """Padded, so that eight bytes can be read from every position."""
    first, last = int(bounds[0]), int(bounds[-1])
    padded = np.zeros(last - first + 8, dtype=np.uint8)
    if last > first:
        padded[: last - first] = np.frombuffer(data, dtype=np.uint8)[first:last]
    return padded, bounds - first


def _absorb_bytes(state: Words, data: npt.NDArray[np.uint8], bounds: Bounds, valid: npt.NDArray[np.bool_]) -> None:
    """Size first, 0 for null; then word after word of those rows that still have one."""
    sizes = np.where(valid, np.diff(bounds), np.int64(-1))
    _mix(state, (sizes + 1).astype(np.uint64))
    eight_from = np.ndarray(shape=(len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    rows = np.flatnonzero(sizes > 0)
    at, left = bounds[:-1][rows], sizes[rows]
    while rows.size:
        part = state[rows]
        _mix(part, eight_from[at] & _LOW_BYTES[np.minimum(left, 8)])
        state[rows] = part
        more = left > 8
        rows, at, left = rows[more], at[more] + 8, left[more] - 8
