"""What a HotSpot JVM counts of itself, in the file that it keeps for jstat (hsperfdata): a part of each program that imports
it. Python 3.7 or later.
"""

from __future__ import annotations

import os
import re
import stat
import struct

from activities.on_node.kernel import names, text

PERF_MAGIC = b"\xca\xfe\xc0\xc0"
MOST_PERF_BYTES = 1024 * 1024
PERF_HEAD = 32
COLLECTIONS = re.compile(r"sun\.gc\.collector\.\d+\.invocations")


def stopped_seconds(process: str) -> tuple[float | None, int, str]:
    """For how long all its threads have stood still for the JVM's own sake (safepoints) since it began, how often it has
    collected garbage, and for what last. `None`: it is no such JVM, or keeps no such file."""
    counters = jvm_counters(process)
    ticks, a_second = counters.get("sun.rt.safepointTime"), counters.get("sun.os.hrt.frequency")
    cause = str(counters.get("sun.gc.lastCause", ""))
    collections = sum(count for name, count in counters.items() if COLLECTIONS.fullmatch(name) and isinstance(count, int))
    if not isinstance(ticks, int) or not isinstance(a_second, int) or a_second <= 0:
        return None, collections, cause
    return ticks / a_second, collections, cause


def jvm_counters(process: str) -> dict[str, int | str]:
    """Each long and each string (jvmstat, version 2). It is written while we read: what does not fit is left out."""
    own = [line.split()[-1] for line in (text(f"{process}/status") or "").splitlines() if line.startswith("NSpid:")]
    folders = [name for name in names(f"{process}/root/tmp") if name.startswith("hsperfdata_")] if own else []
    for folder in folders:
        try:
            return counters_in(content_of(f"{process}/root/tmp/{folder}/{own[0]}", os.stat(process).st_uid))  # noqa: PTH116
        except (OSError, struct.error, ValueError):
            continue
    return {}


def content_of(path: str, owner: int) -> bytes:
    """Of a regular file of its owner's, and by no link: its folder is everybody's, and whoever looks may be root."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != owner:
            raise ValueError(f"{path} is not what a JVM has made")
        return os.read(handle, MOST_PERF_BYTES)
    finally:
        os.close(handle)


def counters_in(data: bytes) -> dict[str, int | str]:
    if data[:4] != PERF_MAGIC or len(data) < PERF_HEAD:
        return {}
    order = "<" if data[4] == 1 else ">"
    at, count = struct.unpack_from(order + "ii", data, 24)
    found: dict[str, int | str] = {}
    for _ in range(count):
        length, name_at, size, kind, _, _, _, data_at = struct.unpack_from(order + "iiibbbbi", data, at)
        name = data[at + name_at : data.index(b"\0", at + name_at)].decode()
        place = at + data_at
        if kind == ord("J") and not size:
            found[name] = struct.unpack_from(order + "q", data, place)[0]
        elif kind == ord("B") and size:
            found[name] = data[place : place + size].split(b"\0")[0].decode(errors="replace")
        if length <= 0:
            raise ValueError("an entry without a length")
        at += length
    return found
