"""Partitions' states read many at once, in step: nearly all are spelt alike, and differ in their numbers alone.

One state, of Kafka's own spelling, tells the layout: its keys in their order. A cursor for each state then moves over its
bytes, past the layout's words and over the numbers between them, eight bytes a step. A state that does not fit is left to
others; one that fits is exactly what a JSON reader makes of it.
"""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark.codec.octets import Bytes, Positions, each_from, stands_at
from spark.codec.zookeeper_snapshot import Flags

Words = npt.NDArray[np.uint64]

STATE = pa.schema(
    [
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("isr", pa.list_(pa.int32())),
        ("leader_recovery_state", pa.int32()),
    ]
)
MARGIN = 64
"""So many bytes have to follow the last state: a cursor looks beyond the end before it is found to be there."""

NUMBER = r"(?:0|[1-9][0-9]{0,8})"
BROKERS = rf"\[(?:{NUMBER}(?:,{NUMBER})*)?\]"
NEXT = r'(?:,(?=")|(?=\}))'
KAFKAS_STATE = re.compile(
    (
        rf'\{{(?:"(?:(?:version|controller_epoch|leader_epoch|leader_recovery_state)":{NUMBER}'
        rf'|leader":(?:-1|{NUMBER})|isr":{BROKERS}){NEXT})+\}}'
    ).encode()
)
"""A partition's state without white space, its keys in any order."""
_LOWEST = np.uint64(0xFF)
_ZEROS, _HIGH_BITS, _TO_HIGH_BIT = (np.uint64(octet * 0x0101010101010101) for octet in (ord("0"), 0x80, 0x80 - 10))
"""Of eight bytes. The last one, added, sets the high bit of what is more than nine."""
_VALUE = re.compile(rb"-?[0-9]+|\[[0-9,]*\]")


@dataclass(frozen=True)
class Layout:
    """`words[i]` stand before the value of `keys[i]`, and the last ones at the end."""

    keys: tuple[str, ...]
    words: tuple[bytes, ...]

    @classmethod
    def of(cls, state: bytes) -> "Layout | None":
        """`None` where it is not of Kafka's spelling, lacks a key, or has one twice."""
        keys = tuple(key.decode() for key in re.findall(rb'"(\w+)":', state))
        is_clear = len(set(keys)) == len(keys) and set(STATE.names[:3]) <= set(keys)
        return cls(keys, tuple(_VALUE.split(state))) if is_clear and KAFKAS_STATE.fullmatch(state) else None

    def read(self, window: Bytes, begins: Positions, lengths: Positions) -> tuple[pa.Table, Positions]:
        """Rows of `STATE`, and which of the states they are: those that fit. `MARGIN` bytes follow each in `window`."""
        eight = each_from(window, "<u8")
        at, ends, fits = begins, begins + lengths, np.ones(len(begins), np.bool_)
        columns: dict[str, pa.Array] = {"leader_recovery_state": pa.array(np.zeros(len(begins), np.int32))}
        for key, words in zip(self.keys, self.words, strict=False):
            fits &= stands_at(window, at, words)
            columns[key], at, is_read = (_lists if key == "isr" else _column)(eight, at + len(words), ends)
            fits &= is_read & (at <= ends)
            at = np.where(fits, at, ends)
        fits &= stands_at(window, at, self.words[-1]) & (at + len(self.words[-1]) == ends)
        table = pa.table([columns[name] for name in STATE.names], STATE)
        return table if fits.all() else table.filter(pa.array(fits)), np.flatnonzero(fits)


def lists_by_key(body: bytes) -> tuple[Positions, pa.Array]:
    """Of `"0":[1,2],"1":[]`, which has to be of just that form: the keys, and the list of each."""
    window = np.frombuffer(b"," + body + bytes(MARGIN), np.uint8)
    is_within = (window - ord("0") <= 9) | (window == ord("-"))
    at = np.flatnonzero(is_within[1:] & ~is_within[:-1]) + 1
    numbers, _, _ = _numbers(each_from(window, "<u8"), at)
    keys = np.flatnonzero(window[at - 1] == ord('"'))
    offsets = np.append(keys, len(at)) - np.arange(len(keys) + 1)
    values = np.delete(numbers, keys).astype(np.int32)
    return numbers[keys], pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))


def _column(eight: Words, at: Positions, _: Positions) -> tuple[pa.Array, Positions, Flags]:
    numbers, after, is_read = _numbers(eight, at)
    return pa.array(numbers.astype(np.int32)), after, is_read


def _lists(eight: Words, at: Positions, ends: Positions) -> tuple[pa.Array, Positions, Flags]:
    """Numbers between brackets, element by element."""
    fits, counts, parts = _octet(eight, at) == ord("["), np.zeros(len(at), np.int64), []
    is_empty = _octet(eight, at + 1) == ord("]")
    after = at + 1 + is_empty
    rows = np.flatnonzero(fits & ~is_empty)
    while len(rows):
        numbers, stop, is_read = _numbers(eight, after[rows])
        next_ = _octet(eight, stop)
        is_read &= ((next_ == ord(",")) | (next_ == ord("]"))) & (stop < ends[rows])
        fits[rows[~is_read]] = False
        after[rows] = stop + 1
        parts.append((rows, counts[rows], numbers))
        counts[rows] += 1
        rows = rows[is_read & (next_ == ord(","))]
    offsets = np.append(0, np.cumsum(counts))
    values = np.zeros(offsets[-1], np.int32)
    for rows, place, numbers in parts:
        values[offsets[rows] + place] = numbers
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values)), after, fits


def _octet(eight: Words, at: Positions) -> Words:
    return eight[at] & _LOWEST


def _numbers(eight: Words, at: Positions) -> tuple[Positions, Positions, Flags]:
    """Whole numbers of 32 bits as JSON has them, and where they end."""
    is_negative = _octet(eight, at) == ord("-")
    at = at + is_negative
    octets = eight[at] ^ _ZEROS
    others = ((octets + _TO_HIGH_BIT) | octets) & _HIGH_BITS
    digits = ((others & (~others + np.uint64(1))) >> np.uint64(7)) - np.uint64(1)
    bits = np.bitwise_count(digits).astype(np.uint64)
    numbers = _of_eight_digits((octets & digits) << (np.uint64(64) - bits))
    after = at + (bits >> np.uint64(3)).astype(np.int64)
    longer = np.flatnonzero(others == 0)
    for _ in range(2 if len(longer) else 0):
        next_ = _octet(eight, after[longer]) - np.uint64(ord("0"))
        longer, next_ = longer[next_ <= 9], next_[next_ <= 9].astype(np.int64)
        numbers[longer] = numbers[longer] * 10 + next_
        after[longer] += 1
    numbers = np.where(is_negative, -numbers, numbers)
    is_whole = (bits > 0) & ((bits == 8) | (octets & _LOWEST != 0))
    return numbers, after, is_whole & (numbers >= -(2**31)) & (numbers < 2**31)


def _of_eight_digits(digits: Words) -> Positions:
    """Two neighbours become one, three times. The first digit is in the lowest byte."""
    digits = (digits * np.uint64(10 * 2**8 + 1)) >> np.uint64(8) & np.uint64(0x00FF00FF00FF00FF)
    digits = (digits * np.uint64(100 * 2**16 + 1)) >> np.uint64(16) & np.uint64(0x0000FFFF0000FFFF)
    return ((digits * np.uint64(10_000 * 2**32 + 1)) >> np.uint64(32)).astype(np.int64)
