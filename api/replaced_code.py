"""Programs whose files were replaced while they ran: what a failure says of one that could not load a part of itself, and what
the times of its files say.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from domain.machines.vital_signs import Sign

OF_ITS_FILES = frozenset({"ImportError", "ModuleNotFoundError", "SyntaxError"})
"""Types of failures. A workflow's code is loaded from disk anew for each run, an activity's where it is needed first; what was
loaded before stays as it was."""

WHAT = "its code on disk is not what it was started from ({}): it was upgraded, or its environment was made anew, while it ran"


def fix_of(program: str) -> str:
    return (
        f"Restart {program}, all processes of it, and have all of Keeperless' programs of one release. Nothing is lost, and it "
        "goes on by itself. If that lasts after a restart, a part of it is not installed: its log names it."
    )


AT_START = timedelta(seconds=5)
"""What is written then may be of before."""
PACKAGES = ("domain", "workflows", "activities", "ledger", "spark")
PROOF = "domain/contracts.py"
"""What lies in every root of our code."""


def root_of(pid: int, words: Sequence[str]) -> Path | None:
    """Where a program's code is, by its command: below where it was started for `python -m`, else beside its script: in its
    environment, or where that lies in a clone. `None` where it is elsewhere, or may not be seen."""
    if "-m" in words:
        places = [Path(f"/proc/{pid}/cwd")]
    else:
        script = next((word for word in words[1:] if word.startswith("/")), "/-/-/-")
        bin_of = Path(f"/proc/{pid}/root{script}").parent
        places = [*bin_of.parent.glob("lib/python3*/site-packages"), bin_of.parent.parent]
    with suppress(OSError):
        return next((place for place in places if (place / PROOF).is_file()), None)
    return None


def changed_at(root: Path) -> datetime:
    """When the newest of its files was written, or all of it was installed: that keeps the times of what it unpacks."""
    files = [*root.glob("keeperless-*.dist-info"), *(file for name in PACKAGES for file in (root / name).rglob("*.py"))]
    return datetime.fromtimestamp(max(file.stat().st_mtime for file in files), UTC)


def sign_of(pid: int, words: Sequence[str], begun_at: datetime, program: str) -> Sign | None:
    """Of a process whose code is newer than it is. Half of it may be loaded, and the other half not yet."""
    root = root_of(pid, words)
    changed = None
    with suppress(OSError, ValueError):
        changed = changed_at(root) if root is not None else None
    if changed is None or changed - begun_at < AT_START:
        return None
    times = (f"{at:%Y-%m-%d %H:%M:%S} UTC" for at in (begun_at, changed))
    return Sign(f"Process {pid} runs since {', and its code on disk is of '.join(times)}", fix_of(program), is_slight=True)
