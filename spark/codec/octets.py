"""Bytes at many positions at once: each column is one gather, without a Python object for any of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


def each_from(octets: Bytes, form: str) -> NDArray[Any]:
    """What would be read from each position on, in NumPy's words: `>i4`, or `V16` for so many bytes. Nothing is copied."""
    width = np.dtype(form).itemsize
    return np.ndarray((max(len(octets) - width + 1, 0),), form, octets, strides=(1,))


def numbers_at(octets: Bytes, at: Positions, form: str) -> Positions:
    """IndexError beyond the last byte."""
    return np.asarray(each_from(octets, form)[at].astype(np.int64))


def stands_at(octets: Bytes, at: Positions, text: bytes) -> NDArray[np.bool_]:
    """Whether it stands there. Eight bytes are compared at once, so as many have to follow its beginning."""
    eight = each_from(octets, "<u8")
    differs = np.zeros(len(at), np.uint64)
    for place in range(0, len(text), 8):
        part = text[place : place + 8]
        differs |= (eight[at + place] ^ np.uint64(int.from_bytes(part, "little"))) << np.uint64(64 - 8 * len(part))
    return np.asarray(differs == 0)
