"""What a worker beside the API complained of last, in its own log: where its standard error is a file that may be read, or
systemd's journal.
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import dropwhile
from pathlib import Path

from api.journal import journal
from domain.machines.vital_signs import Sign
from domain.redaction import stripped

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


BEGINS = "Traceback (most recent call last):"
TOLD = ("ModuleNotFoundError", "ImportError", "PermissionError", "FileNotFoundError", "domain.", "ledger.")
"""Errors that name modules and files, or are worded by us for people: they are told whole."""


def complaint_of(pid: int, now: datetime) -> Sign | None:
    """The last warning or error of the last two minutes, without values; `None` where there is none, or nobody can tell."""
    lines, written_at = _log(pid)
    complaints = [said for at, said in _said(lines) if now - at <= RECENT]
    words = _end(lines) if written_at is not None and now - written_at <= RECENT else ""
    if words or complaints:
        return Sign(f"The last complaint in its log: {(words or complaints[-1])[:SHOWN]}", "", is_slight=True)
    return None


def last_words(lines: Sequence[str]) -> str:
    """The error that ended a program, or else its last complaint, without values; empty where there is none."""
    return (_end(lines) or next((said for _, said in reversed(list(_said(lines)))), ""))[:SHOWN]


def _end(lines: Sequence[str]) -> str:
    """The error after which nothing more was told: Python prints it as it is."""
    begins = [n for n, line in enumerate(lines) if line.strip() == BEGINS]
    below = lines[begins[-1] + 1 :] if begins else ()
    told = [line.rstrip() for line in dropwhile(lambda line: not line.strip() or line[0].isspace(), below)]
    if not told or CLASS.match(told[0]) is None or any(line.startswith("{") or OF_THE_SDK.match(line) for line in told):
        return ""
    kind, _, said = told[0].partition(": ")
    name = kind.rpartition(".")[2]
    return f"{name}: {said if kind.startswith(TOLD) else stripped(said, is_prose=True)}"


def _log(pid: int) -> tuple[Sequence[str], datetime | None]:
    """Its end, and when something was written to it last."""
    path = Path(f"/proc/{pid}/fd/2")
    try:
        if path.is_socket():
            return journal(f"_PID={pid}"), None
        if not path.is_file():
            return (), None
        with path.open("rb") as log:
            status = path.stat()
            log.seek(max(status.st_size - READ, 0))
            return log.read(READ).decode(errors="replace").splitlines(), datetime.fromtimestamp(status.st_mtime, UTC)
    except OSError:
        return (), None


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
    """A line of ours (`console.logs`): what happened, with the words of an error of ours, or the class of another's."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    at = _time(str(entry.get("timestamp"))) if isinstance(entry, dict) else None
    if at is None or entry.get("level") not in LOUD:
        return None
    last = str(entry.get("exception") or "").rstrip().rpartition("\n")[2]
    kind = CLASS.match(last)
    told = f": {stripped(str(entry['error']), is_prose=True)}" if entry.get("error") else ""
    return at, stripped(str(entry.get("event", ""))) + told + (f" ({kind[0]})" if kind is not None else "")


def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
