"""What a HotSpot JVM counts of itself: from the bytes of its file, as jstat reads them, and of processes that are none."""

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from activities.on_node import jvm_counters
from domain.diagnosis.machines.bad_signs import bad_signs
from tests.unit.conftest import signs_of


def entry(name: str, value: int | str) -> bytes:
    data = struct.pack("<q", value) if isinstance(value, int) else value.encode() + bytes(4)
    size, kind = (0, "J") if isinstance(value, int) else (len(data), "B")
    head, text = 20, name.encode() + b"\0"
    at = -(-(head + len(text)) // 8) * 8
    length = -(-(at + len(data)) // 8) * 8
    packed = struct.pack("<iiibbbbi", length, head, size, ord(kind), 0, 1, 2, at)
    return (packed + text).ljust(at, b"\0") + data.ljust(length - at, b"\0")


def perf_data(*entries: bytes) -> bytes:
    return b"\xca\xfe\xc0\xc0" + struct.pack("<bbbbiiqii", 1, 2, 0, 1, 0, 0, 0, 32, len(entries)) + b"".join(entries)


COUNTED = (
    entry("sun.rt.safepointTime", 1_500_000_000),
    entry("sun.gc.lastCause", "Heap Inspection Initiated GC"),
    entry("sun.os.hrt.frequency", 1_000_000_000),
    entry("sun.gc.collector.0.invocations", 40),
    entry("sun.gc.collector.1.invocations", 2),
)


def test_how_long_it_stood_still_and_for_what_it_has_collected_last(tmp_path: Path) -> None:
    folder = tmp_path / "root" / "tmp" / "hsperfdata_kafka"
    folder.mkdir(parents=True)
    (tmp_path / "status").write_text("Name:\tjava\nNSpid:\t4711\t7\n")
    (folder / "7").write_bytes(perf_data(*COUNTED))
    assert jvm_counters.stopped_seconds(str(tmp_path)) == (1.5, 42, "Heap Inspection Initiated GC")


@pytest.mark.parametrize("content", [b"", b"\xca\xfe\xc0\xc0", perf_data(*COUNTED)[:90], b"no such file" * 9], ids=len)
def test_what_is_not_whole_says_nothing(content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "root" / "tmp" / "hsperfdata_kafka"
    folder.mkdir(parents=True)
    (tmp_path / "status").write_text("NSpid:\t7\n")
    (folder / "7").write_bytes(content)
    assert jvm_counters.stopped_seconds(str(tmp_path)) == (None, 0, "")


def test_what_somebody_else_has_put_there_is_not_read(tmp_path: Path) -> None:
    """The folder is everybody's: a pipe there would be waited for, and a link lead elsewhere."""
    folder = tmp_path / "root" / "tmp" / "hsperfdata_kafka"
    folder.mkdir(parents=True)
    (tmp_path / "status").write_text("NSpid:\t7\n")
    os.mkfifo(folder / "7")
    assert jvm_counters.jvm_counters(str(tmp_path)) == {}
    (folder / "7").unlink()
    (tmp_path / "elsewhere").write_bytes(perf_data(*COUNTED))
    (folder / "7").symlink_to(tmp_path / "elsewhere")
    assert jvm_counters.jvm_counters(str(tmp_path)) == {}


def test_entries_without_a_length_come_to_an_end() -> None:
    endless = perf_data()[:28] + struct.pack("<i", 2**31 - 1) + bytes(64)
    with pytest.raises(ValueError, match="without a length"):
        jvm_counters.counters_in(endless)


def test_who_is_no_jvm_has_no_such_file() -> None:
    assert jvm_counters.stopped_seconds(f"/proc/{os.getpid()}") == (None, 0, "")


@pytest.mark.parametrize(
    ("parts", "is_asked"),
    [
        ({"stopped": 0.4, "collected_for": "Heap Inspection Initiated GC"}, True),
        ({"collecting": 0.9, "collected_for": "System.gc()"}, True),
        ({"collecting": 0.9, "collected_for": "G1 Evacuation Pause"}, False),
    ],
)
def test_a_heap_that_somebody_has_collected_is_not_called_full(parts: dict[str, Any], is_asked: bool) -> None:
    (sign,) = bad_signs(signs_of(**parts), {})
    assert ("nearly full" in sign.observed) is not is_asked
    assert ("jmap" in sign.fix) is is_asked


def test_who_collects_little_is_well_whoever_asked_for_it() -> None:
    assert list(bad_signs(signs_of(stopped=0.01, collecting=0.1, collected_for="System.gc()"), {})) == []
