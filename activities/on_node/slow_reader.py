"""Reads files beside a broker: slowly, and leaves the page cache as it was. A part of walk_segments."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import time

STEP = 1 << 16
"""The page cache is asked, and told to forget, this much at a time."""
PAGE = os.sysconf("SC_PAGE_SIZE")


class Moved(Exception):
    """A file was deleted, or cut, while it was read."""


class Reader:
    """Reads slowly, and leaves the page cache as it was."""

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._began = time.monotonic()
        self.bytes = 0
        self.forgotten = 0
        self.can_ask = True
        """Whether this system tells what is in the page cache. Where it does not, nothing is forgotten; nor to somebody who is
        neither a file's owner nor may write to it, to whom the kernel says that it has all."""

    def read(self, file: int, at: int, length: int) -> bytes:
        """Fewer bytes at the file's end."""
        parts, end = [], at + length
        while at < end:
            wanted = min(end, (at // STEP + 1) * STEP) - at
            part = self._step(file, at, wanted)
            parts.append(part)
            at += len(part)
            if len(part) < wanted:
                break
        self.bytes += sum(map(len, parts))
        early = self.bytes / self._rate - (time.monotonic() - self._began)
        if early > 0.01:
            time.sleep(early)
        return b"".join(parts)

    def _step(self, file: int, at: int, length: int) -> bytes:
        cached = self._cached(file, at, length)
        data = os.pread(file, length, at)
        page = at // PAGE
        for was_there, run in itertools.groupby(cached, key=lambda state: state & 1):
            count = len(list(run))
            if not was_there:
                os.posix_fadvise(file, page * PAGE, count * PAGE, os.POSIX_FADV_DONTNEED)
                self.forgotten += count * PAGE
            page += count
        return data

    def _cached(self, file: int, at: int, length: int) -> bytes:
        """One byte for each page that has a part of it; its lowest bit: the page cache has that page (mincore(2)).

        Reading without waiting (RWF_NOWAIT) would not do: newer kernels begin to read what they say they do not have.
        """
        begin, end = at // PAGE * PAGE, min(at + length, os.fstat(file).st_size)
        if not self.can_ask or begin >= end:
            return b""
        pages = (ctypes.c_ubyte * -(-(end - begin) // PAGE))()
        try:
            with mmap.mmap(file, end - begin, access=mmap.ACCESS_COPY, offset=begin) as mapped:
                address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
                self.can_ask = not ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(end - begin), pages)
        except ValueError:  # the file was cut in this moment
            return b""
        except (OSError, AttributeError):  # this file system, or this system, does not say
            self.can_ask = False
        return bytes(pages) if self.can_ask else b""


def opened(path: str) -> int:
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise Moved(path) from error
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead
    return file
