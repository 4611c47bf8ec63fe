"""Runs on a broker's machine: says what record batches its logs hold, by their headers, and verifies checksums.

    python3 walk_segments.py REQUEST.json

The request names log directories, limits, and for each log (`orders-3`) the offsets to look at: `until`, exclusive, and
`from`, or none for the last `recent_bytes`. The answer goes to standard output: a line of JSON for each log, with its batches
as packed rows (`ROW`), and a last line that says what was done. Without that line the answer is not whole.

It shares the machine with a broker. It reads slowly (`bytes_per_second`), and forgets what it has read unless the page cache
had it before. It writes nothing, and ends by itself after `seconds`. Python 3.7 or later.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

from activities.on_node.checksums import checksum
from activities.on_node.record_log import AFTER_CRC, BEFORE_CRC, CRC_FROM, Batch, Broken, Log
from activities.on_node.slow_reader import Moved, Reader

ROW = struct.Struct("<qiIiqhiqiqqB")
"""Base offset, last offset's delta, crc, count, producer's id, epoch and first sequence, last timestamp, size, segment (its
first offset), position in it, state."""
NOT_VERIFIED, VERIFIED, DAMAGED = 0, 1, 2
ATTEMPTS = 3
"""How often a log is begun anew whose segments are deleted while they are read."""


class Walk:
    """`totals`: what the last line tells."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.reader = Reader(request["bytes_per_second"])
        self.method, self._crc = checksum()
        self._began = time.monotonic()
        self._verifying = 0.0
        self.totals = {"verified": 0, "not_verified": 0, "damaged": 0, "verified_bytes": 0}

    def run(self) -> Iterator[dict[str, Any]]:
        logs = self.request["logs"]
        for directory in self.request["log_dirs"]:
            starts = checkpoints(directory)
            for name in sorted(logs.keys() & set(os.listdir(directory))):  # noqa: PTH208
                found = self._whole(f"{directory}/{name}", starts.get(name, 0), logs[name])
                if found is not None:
                    yield {"log": name, **found}
        seconds = round(time.monotonic() - self._began, 3)
        done = {"method": self.method, "read_bytes": self.reader.bytes, "forgotten_bytes": self.reader.forgotten}
        yield {"done": True, "seconds": seconds, "knows_page_cache": self.reader.can_ask, **done, **self.totals}

    def _whole(self, directory: str, start: int, wanted: dict[str, Any]) -> dict[str, Any] | None:
        """The same log is begun anew where its files are deleted meanwhile. `None`: the log itself was."""
        for _ in range(ATTEMPTS):
            kept = dict(self.totals)
            try:
                log = Log(directory, self.reader)
                return {"topic_id": log.topic_id(), **self._one(log, start, wanted)}
            except (Moved, FileNotFoundError):
                self.totals = kept
        return {"moved": True} if os.path.isdir(directory) else None  # noqa: PTH112

    def _one(self, log: Log, start: int, wanted: dict[str, Any]) -> dict[str, Any]:
        start, end = max(start, log.segments[0]), log.end()
        told: dict[str, Any] = {"start": start, "end": end, "walked_from": start, "walked_until": start}
        if wanted.get("is_bounds_only"):
            return told
        if self._is_late():
            return {**told, "why_not": "the time for this machine was over"}
        rows: list[bytes] = []
        begin = wanted.get("from")
        place = log.recent_place(self.request["recent_bytes"]) if begin is None else log.place_of(begin)
        told["walked_from"] = told["walked_until"] = None
        try:
            for batch in log.from_place(*place, self._is_verifying):
                if batch.last < (start if begin is None else begin):
                    continue
                if batch.last >= wanted["until"]:
                    break
                if self._is_late():
                    told["why_not"] = "the time for this machine was over"
                    break
                if told["walked_from"] is None:
                    told["walked_from"] = batch.base
                rows.append(self._row(log, batch))
                told["walked_until"] = batch.last + 1
        except Broken as error:
            told["why_not" if error.old else "broken"] = f"{error.segment:020}.log byte {error.position}: {error.why}"
        if told["walked_from"] is None:
            told["walked_from"] = told["walked_until"] = max(start, wanted["until"] if begin is None else begin)
        return {**told, "rows": base64.b64encode(zlib.compress(b"".join(rows), 1)).decode("ascii")}

    def _row(self, log: Log, batch: Batch) -> bytes:
        crc = BEFORE_CRC.unpack_from(batch.header)[4]
        _, delta, _, last_time, producer, epoch, sequence, count = AFTER_CRC.unpack_from(batch.header, CRC_FROM)
        state = self._state(log, batch, crc)
        return ROW.pack(
            batch.base,
            delta,
            crc,
            count,
            producer,
            epoch,
            sequence,
            last_time,
            batch.size,
            batch.segment,
            batch.position,
            state,
        )

    def _state(self, log: Log, batch: Batch, crc: int) -> int:
        """What does not fit is read once more: it may have been cut and written anew in between."""
        if not batch.data:
            self.totals["not_verified"] += 1
            return NOT_VERIFIED
        began = time.process_time()
        is_right = self._crc(batch.data[CRC_FROM:]) == crc or self._crc(log.again(batch)[CRC_FROM:]) == crc
        self._verifying += time.process_time() - began
        self.totals["verified" if is_right else "damaged"] += 1
        self.totals["verified_bytes"] += batch.size
        return VERIFIED if is_right else DAMAGED

    def _is_verifying(self) -> bool:
        return self._verifying < float(self.request["verify_seconds"])

    def _is_late(self) -> bool:
        return time.monotonic() - self._began > float(self.request["seconds"])


def checkpoints(directory: str) -> dict[str, int]:
    """Where logs begin that somebody has deleted records of, by name: within a segment, unlike what retention leaves."""
    try:
        with open(f"{directory}/log-start-offset-checkpoint", encoding="utf-8") as file:  # noqa: PTH123
            lines = file.read().splitlines()[2:]
    except FileNotFoundError:
        return {}
    found = (line.rsplit(" ", 2) for line in lines)
    return {f"{parts[0]}-{parts[1]}": int(parts[2]) for parts in found if len(parts) == 3}


def main(path: str) -> None:
    if hasattr(os, "nice"):
        os.nice(10)
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        request = json.load(file)
    for line in Walk(request).run():
        sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
