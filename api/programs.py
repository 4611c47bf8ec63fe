"""Our programs on this machine, found by what they are: which runs, since when, and which Temporal and ledger it was given."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from temporalio.envconfig import ClientConfigProfile

from api.replaced_code import sign_of
from api.settings import STATE
from api.temporal import Temporal
from api.units import signs_of_units
from api.worker_log import complaint_of
from domain.machines.vital_signs import Sign
from ledger.database import are_two_places, is_one_place, place_of
from ledger.errors import LedgerMisuse

MODULE_OF = {
    "keeperless-workflows": "workflows.worker",
    "keeperless-activities": "activities.worker",
    "keeperless-checks": "activities.checks_worker",
}
"""By program, what `python -m` may have been given in its place."""
YOUNG = timedelta(seconds=10)
AGAIN = timedelta(seconds=2.5)
"""After which it is looked once more where none runs for long: whether it is started anew all the time."""
MOST_TOLD = 3
FRESH = timedelta(seconds=20)
JUST_STARTED = "It was started a moment ago, and asks for tasks in another: look again before anybody starts one more."
"""Of who reads its settings and its code still."""
GO_BY_A_LEDGER = ("keeperless-activities", "keeperless-checks")
SCANNER = ThreadPoolExecutor(1, "programs")
LEDGER_BELOW_HOME = STATE.relative_to(Path.home()) / "ledger.db"
OTHER_SETTINGS = (
    "Find out whose TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE (or TEMPORAL_PROFILE and temporal.toml) lead to where migrations "
    "run, and start the other one with those, mostly by the EnvironmentFile of its unit or the HOME of its user: the API where "
    "it knows no run of theirs, else that program. Migrations go on by themselves."
)
OTHER_LEDGER = (
    "Give both the same KEEPERLESS_LEDGER_URL, and restart who had the wrong one. Where it belongs to another installation of "
    "Keeperless, leave its ledger, and give each installation a TEMPORAL_NAMESPACE of its own."
)


@dataclass(frozen=True)
class Process:
    """One of our programs. `environment`: what it was started with; `None` where it may not be read, or belongs to a user who
    is neither root nor ours: an API that is root would open the files that he names. It holds secrets. `words`: its command.
    `user`: whose it is.
    """

    pid: int
    begun_at: datetime
    environment: Mapping[str, str] | None = field(repr=False)
    words: tuple[str, ...] = field(default=(), repr=False)
    user: int | None = None

    def in_words(self, program: str) -> str:
        return f"Process {self.pid} is {program}, runs since {self.begun_at:%H:%M:%S} UTC"


async def signs_of_program(program: str, temporal: Temporal, ledger_url: str, known: int | None) -> tuple[Sign, ...]:
    """What is seen here of a program that nobody takes tasks of. Nothing where `known`, told already, still runs."""
    now = datetime.now(UTC)
    before = await asyncio.to_thread(running, program)
    if any(process.pid == known for process in before):
        return ()
    is_settled = any(now - process.begun_at > YOUNG for process in before)
    if not is_settled:
        await asyncio.sleep(AGAIN.total_seconds())
    after = before if is_settled else await asyncio.to_thread(running, program)
    told = await asyncio.to_thread(_signs_of_all, after[-MOST_TOLD:], program, temporal, ledger_url)
    units = await asyncio.to_thread(signs_of_units, (program, MODULE_OF[program]))
    return (*_restarts(program, before, after), *told, *units)


@dataclass(frozen=True)
class Apart:
    """A program that takes tasks from the API's Temporal, and goes by another ledger. `ledger`: where that is, for people."""

    program: str
    pid: int
    ledger: str


async def apart_from(temporal: Temporal, ledger_url: str) -> list[Apart]:
    """Of those on this machine: half of all that is asked goes to one of these, and comes back without what the API knows.

    In a thread of its own: it stands as long as a process does that hangs in the kernel, and nobody else is to wait for it.
    """
    return await asyncio.get_running_loop().run_in_executor(SCANNER, _apart, temporal, ledger_url)


def _apart(temporal: Temporal, ledger_url: str) -> list[Apart]:
    found = []
    for program in GO_BY_A_LEDGER:
        for process, given in asking(program, temporal):
            theirs = given.get("KEEPERLESS_LEDGER_URL") or _below_home(given)
            with suppress(LedgerMisuse):
                if theirs and are_two_places(theirs, ledger_url, process.pid):
                    found.append(Apart(program, process.pid, place_of(theirs)))
    return found


def asking(program: str, temporal: Temporal) -> Iterator[tuple[Process, Mapping[str, str]]]:
    """Those that ask the API's Temporal for tasks, as far as that may be known, with what they were started with."""
    for process in running(program):
        given = process.environment
        asks = _temporal_of(given) if given is not None else None
        if given is not None and asks is not None and _place(asks) == _place(temporal):
            yield process, given


def running(program: str) -> list[Process]:
    """The newest last."""
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    found = (process for pid in pids if (process := process_of(pid, program)) is not None)
    return sorted(found, key=lambda process: (process.begun_at, process.pid))


def process_of(pid: int, program: str) -> Process | None:
    """`None` where it is another program's, or has ended meanwhile."""
    root = Path(f"/proc/{pid}")
    try:
        words = (root / "cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
        if not _is(words, program):
            return None
        user = root.stat().st_uid
        ticks = int((root / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text(encoding="utf-8").split()[0])
    except OSError:
        return None
    age = timedelta(seconds=max(uptime - ticks / os.sysconf("SC_CLK_TCK"), 0))
    environment = _environment(root) if user in {0, os.geteuid()} else None
    return Process(pid, datetime.now(UTC) - age, environment, tuple(words), user)


def _is(words: Sequence[str], program: str) -> bool:
    """Python with our script, or our module: not who only names it, as an editor or `journalctl` does."""
    if not Path(words[0]).name.startswith("python"):
        return False
    for option, value in zip(words[1:], [*words[2:], ""], strict=False):
        if option == "-m":
            return value == MODULE_OF[program]
        if not option.startswith("-"):
            return Path(option).name == program
    return False


def _environment(root: Path) -> Mapping[str, str] | None:
    try:
        told = (root / "environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    return dict(entry.partition("=")[::2] for entry in told if "=" in entry)


def _restarts(program: str, before: Sequence[Process], after: Sequence[Process]) -> Iterator[Sign]:
    if before and not {process.pid for process in before} & {process.pid for process in after}:
        pid = before[-1].pid
        yield Sign(f"{program} is started, and ends: process {pid} has, within {(YOUNG + AGAIN).total_seconds():.0f} s", "")
    elif not before and not after:
        yield Sign(f"No process of {program} runs on the API's machine", "", is_slight=True)


def _signs_of_all(processes: Sequence[Process], program: str, temporal: Temporal, ledger_url: str) -> list[Sign]:
    return [sign for process in processes for sign in _signs_of(process, program, temporal, ledger_url)]


def _signs_of(process: Process, program: str, temporal: Temporal, ledger_url: str) -> Iterator[Sign]:
    words = process.in_words(program)
    given = process.environment
    if given is None:
        yield Sign(f"{words}; which Temporal it asks may not be read from here", "")
        return
    if (theirs := _temporal_of(given)) is None:
        yield Sign(f"{words}; its settings of Temporal cannot be read (TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE)", OTHER_SETTINGS)
    elif _place(theirs) != _place(temporal):
        asks = f"{words}, and asks namespace {theirs.namespace} at {theirs.address}"
        yield Sign(f"{asks}; the API uses namespace {temporal.namespace} at {temporal.address}", OTHER_SETTINGS)
    else:
        is_new = datetime.now(UTC) - process.begun_at < FRESH
        yield Sign(f"{words}, and is to ask the Temporal that the API uses", JUST_STARTED if is_new else "", is_slight=True)
        yield from _other_ledger(given, program, ledger_url)
    if (replaced := sign_of(process.pid, process.words, process.begun_at, program)) is not None:
        yield replaced
    complaint = complaint_of(process.pid, datetime.now(UTC))
    if complaint is not None:
        yield complaint


def _temporal_of(environment: Mapping[str, str]) -> Temporal | None:
    """No file but that of settings is opened, and none that one could wait for."""
    file = environment.get("TEMPORAL_CONFIG_FILE")
    try:
        if file and not Path(file).is_file():
            return None
        profile = ClientConfigProfile.load(override_env_vars=environment)
    except (RuntimeError, ValueError, OSError):
        return None
    return Temporal({"target_host": profile.address or "", "namespace": profile.namespace or "default"})


def _place(temporal: Temporal) -> tuple[str, str]:
    return temporal.address.rpartition("//")[2].lower().replace("localhost", "127.0.0.1"), temporal.namespace


def _other_ledger(environment: Mapping[str, str], program: str, ledger_url: str) -> Iterator[Sign]:
    theirs = environment.get("KEEPERLESS_LEDGER_URL", "")
    if program not in GO_BY_A_LEDGER or not theirs:
        return
    with suppress(LedgerMisuse):
        if not is_one_place(theirs, ledger_url):
            yield Sign(f"Its ledger is {place_of(theirs)}, that of the API {place_of(ledger_url)}", OTHER_LEDGER)


def _below_home(environment: Mapping[str, str]) -> str:
    """What a program takes that was given none."""
    home = environment.get("HOME")
    return f"sqlite:///{Path(home) / LEDGER_BELOW_HOME}" if home else ""
