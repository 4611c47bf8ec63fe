"""What systemd says of the units that start a program of ours, where it is their manager."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from api.journal import journal, printed_by
from api.worker_log import last_words
from domain.machines.vital_signs import Sign

FOLDERS = tuple(Path(place) for place in ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"))
PROPERTIES = ("ActiveState", "SubState", "Result", "ExecMainStatus", "NRestarts", "ActiveEnterTimestampMonotonic")
LATELY = 300.0
"""Seconds. systemd counts restarts for as long as it has the unit loaded, which may be months: they tell of now only where the
last one was so recent."""


def signs_of_units(names: Sequence[str], folders: Sequence[Path] = FOLDERS) -> tuple[Sign, ...]:
    """Of those that do not run, or were restarted. `names`: of the program, one of which stands in its start command."""
    return tuple(sign for unit in _units(names, folders) for sign in _signs_of(unit))


def _units(names: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """The names of services. A template has instances, of which its file does not tell."""
    starts = re.compile(r"^ExecStart=.*(?<![\w.-])(?:" + "|".join(map(re.escape, names)) + r")(?![\w.-])", re.MULTILINE)
    files = (file for folder in folders for file in folder.glob("*.service") if "@" not in file.name)
    return sorted({file.name for file in files if starts.search(_text(file))})


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _signs_of(unit: str) -> Iterator[Sign]:
    told = dict(
        line.partition("=")[::2] for line in printed_by("systemctl", "show", f"--property={','.join(PROPERTIES)}", unit)
    )
    restarts = _restarts(told)
    if not told.get("ActiveState") or (told["ActiveState"] == "active" and not restarts):
        return
    state = f"{told['ActiveState']} ({told.get('SubState')}), result {told.get('Result')}, last exit status "
    state += f"{told.get('ExecMainStatus')}{restarts}"
    words = last_words(journal(f"--unit={unit}"))
    told_last = f". Its journal: {words}" if words else ""
    fix = f"`journalctl -u {unit}` has it whole; then start that unit."
    yield Sign(f"systemd says of its unit {unit}: {state}{told_last}", fix)


def _restarts(told: Mapping[str, str]) -> str:
    """How often, where it has become active within minutes; by the clock that Python's `monotonic` is, too."""
    count, entered = told.get("NRestarts") or "0", int(told.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
    is_recent = entered > 0 and time.monotonic() - entered < LATELY
    return f", restarted {count} times" if count != "0" and is_recent else ""
