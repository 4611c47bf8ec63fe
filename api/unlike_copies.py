"""Copies of one program on this machine that are not alike: what one of them does fails at the other. Only names are told of
what they were started with."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from api.programs import MODULE_OF, SCANNER, Process, asking
from api.temporal import Temporal
from domain.blocker import Blocker, blocker
from domain.blocker_codes import MACHINE, MOST_OBSERVED

OF_EACH_START = frozenset(
    {"INVOCATION_ID", "JOURNAL_STREAM", "PWD", "OLDPWD", "SHLVL", "_", "TERM", "NOTIFY_SOCKET", "MANAGERPID"}
)
OF_EACH_LOGIN = frozenset({"HOSTNAME", "LOGNAME", "USER", "MAIL", "LS_COLORS"})
OF_EACH_INSTANCE = frozenset(
    f"{place}_DIRECTORY" for place in ("RUNTIME", "STATE", "CACHE", "LOGS", "CONFIGURATION", "CREDENTIALS")
)
OF_EITHER = ("SYSTEMD_", "MEMORY_PRESSURE_", "LISTEN_", "SSH_", "XDG_", "DBUS_", "WATCHDOG_", "SUDO_", "TMUX")
"""Variables, and how others begin, that differ from start to start, and of which no program of ours reads any."""
MOST_TOLD = 6


async def unlike_copies(temporal: Temporal) -> list[Blocker]:
    """Of those that take tasks from the API's Temporal. In a thread that nobody else waits for: a process that hangs in the
    kernel holds it up."""
    return await asyncio.get_running_loop().run_in_executor(SCANNER, lambda: list(_unlike(temporal, datetime.now(UTC))))


def _unlike(temporal: Temporal, now: datetime) -> Iterator[Blocker]:
    for program in MODULE_OF:
        copies = [process for process, _ in asking(program, temporal)]
        told = next(filter(None, (difference(one, other) for one, other in pairwise(copies))), "")
        if told:
            yield blocker(
                MACHINE,
                f"copies of {program}",
                observed=told[:MOST_OBSERVED],
                expected="all processes of a program started alike: one user, one release, the same variables",
                fix="What one of them can do fails at the other, attempt by attempt. Stop, in order (kill PID), the one that "
                "is not as it is to be, mostly what was started by hand beside the unit; its tasks come to the others.",
                since=now,
            )


def difference(one: Process, other: Process) -> str:
    """Empty where they are alike, or that may not be known."""
    found = [
        *([f"users {one.user} and {other.user}"] if one.user != other.user else []),
        *([f"started as {_started(one)} and {_started(other)}"] if _started(one) != _started(other) else []),
        *_variables(one, other),
    ]
    return f"processes {one.pid} and {other.pid} differ: {'; '.join(found)}" if found else ""


def _started(process: Process) -> str:
    """By which Python, and which script of which environment."""
    return " ".join(process.words[:2])


def _variables(one: Process, other: Process) -> Iterator[str]:
    first, second = _told(one.environment), _told(other.environment)
    if first is None or second is None:
        return
    for pid, names in ((one.pid, first.keys() - second.keys()), (other.pid, second.keys() - first.keys())):
        if names:
            yield f"{_few(sorted(names))} only in {pid}"
    if changed := [name for name in sorted(first.keys() & second.keys()) if first[name] != second[name]]:
        yield f"other values of {_few(changed)}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_TOLD} more" if len(names) > MOST_TOLD else ""
    return f"{', '.join(names[:MOST_TOLD])}{more}"


def _told(environment: Mapping[str, str] | None) -> Mapping[str, str] | None:
    if environment is None:
        return None
    of_start = OF_EACH_START | OF_EACH_LOGIN | OF_EACH_INSTANCE
    return {name: value for name, value in environment.items() if name not in of_start and not name.startswith(OF_EITHER)}
