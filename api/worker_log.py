"""What a worker beside the API complained of last, in its own log: where its standard error is a file that may be read."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from domain.vital_signs import Sign
from domain.zk_to_kraft.rehearsal_log import stripped

READ = 64 * 1024
"""Bytes, of the end."""
RECENT = timedelta(minutes=2)
SHOWN = 240
COLOURS = re.compile(r"\x1b\[[\d;]*m")
OF_THE_SDK = re.compile(
    r"^(?P<at>\d{4}-\d\d-\d\dT[\d:.]+Z)\s+(?:WARN|ERROR)\s+temporal\w*(?:::\w+)*: (?P<said>.*?)(?=\s[\w.]+=|$)"
)
"""Of Temporal's SDK, as `temporalio` prints it: without the fields behind it, which may hold a workflow's failure."""
STATUS = re.compile(r"\bcode: '?([\w ]{1,60})'?, message: \"([^\"]{1,200})\"")
"""What the server says of a call."""
LOUD = frozenset({"warning", "error", "critical"})
CLASS = re.compile(r"^[A-Za-z_][\w.]*(?=:|$)")


def complaint_of(pid: int, now: datetime) -> Sign | None:
    """The last warning or error of the last two minutes, without values; `None` where there is none, or nobody can tell."""
    complaints = [said for at, said in _said(_lines(pid)) if now - at <= RECENT]
    if not complaints:
        return None
    return Sign(f"The last complaint in its log: {complaints[-1][:SHOWN]}", "", is_slight=True)


def _lines(pid: int) -> Sequence[str]:
    path = Path(f"/proc/{pid}/fd/2")
    try:
        if not path.is_file():
            return ()
        with path.open("rb") as log:
            log.seek(max(path.stat().st_size - READ, 0))
            return log.read(READ).decode(errors="replace").splitlines()
    except OSError:
        return ()


def _said(lines: Sequence[str]) -> Iterator[tuple[datetime, str]]:
    for line in lines:
        plain = COLOURS.sub("", line).strip()
        if (found := OF_THE_SDK.match(plain)) is not None:
            status = STATUS.search(plain)
            said = stripped(found["said"]) + (f": {status[1]}, {status[2]}" if status is not None else "")
            if (at := _time(found["at"])) is not None:
                yield at, said
        elif (told := _entry(plain)) is not None:
            yield told


def _entry(line: str) -> tuple[datetime, str] | None:
    """A line of ours (`console.logs`): what happened, and the class of the error that it happened with."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    at = _time(str(entry.get("timestamp"))) if isinstance(entry, dict) else None
    if at is None or entry.get("level") not in LOUD:
        return None
    last = str(entry.get("exception") or "").rstrip().rpartition("\n")[2]
    kind = CLASS.match(last)
    return at, stripped(str(entry.get("event", ""))) + (f" ({kind[0]})" if kind is not None else "")


def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
