"""What a node's machine says of a process that has ended, told with how it ended: what it was started inside, and which of the
budgets is used up that it needs. Pure.
"""

from collections.abc import Iterator

from domain.checks.service_unit import out_of_the_sandbox, short_lived, shut_out, unwritable, without_code
from domain.diagnosis.logs.endings import FILES, MACHINE_DEATHS
from domain.diagnosis.machines.notes import MachineChanges
from domain.diagnosis.machines.start import StartPlace
from domain.diagnosis.machines.vital_signs import MIB, Sign

OF_A_SANDBOX = frozenset({"", "killed", "not-begun", *(told.name for told in (*MACHINE_DEATHS, *FILES))})
"""Kinds of endings that a sandbox may be behind."""
OF_A_KILL = frozenset({"", "killed"})
"""Of what ends without a word: its last lines are whatever it was at."""
OF_FILES = frozenset(
    {"disk-failed", "log-dirs-failed", "java-log-file", "no-permission", "missing-file", "file-unusable", "not-begun"}
)
OF_OPENING = frozenset(
    {*OF_FILES, "installation-gone", "java-gone", "java-broken", "java-failed", "native-library", "program-gone"}
    - {"log-dirs-failed"}
)
"""What may be there, and be forbidden to it."""
OF_MEMORY = frozenset({"killed", "host-out-of-memory", "java-cannot-start", "java-failed", "not-begun"})
OF_CODE = frozenset({"host-out-of-memory", "java-cannot-start", "java-failed", "java-crashed"})
OF_THREADS = frozenset({"out-of-threads", "not-begun"})
SPENT = 0.9
"""Of a budget. It is looked at after the process that used it has ended."""
TASKS = {
    "tasks": (
        "control group {where} has {used} processes and threads, of at most {most}",
        "Raise TasksMax= of its unit (pids.max).",
    ),
    "user-tasks": (
        "its user has {used} processes and threads, of at most {most} (ulimit -u)",
        "Raise nproc of that user (/etc/security/limits.d, LimitNPROC= of the unit that starts it).",
    ),
    "machine-tasks": (
        "its machine has {used} processes and threads, of at most {most}",
        "Raise kernel.threads-max and kernel.pid_max (sysctl), or end what has so many (ps -eLf).",
    ),
}
MEMORY = {
    "address-space": (
        "what is started there may have {most} MiB of addresses (ulimit -v)",
        "Take that limit away (as in /etc/security/limits.d, LimitAS= of the unit): a JVM reserves far more than it uses.",
    ),
    "commit": (
        "the kernel promises no more memory than it has (vm.overcommit_memory is 2): {used} of {most} MiB are given away",
        "Raise vm.overcommit_ratio, or set vm.overcommit_memory to 0, where nothing else on that machine needs it: until then "
        "it does not help that `free` shows room.",
    ),
    "memory": (
        "control group {where} uses {used} of the {most} MiB that all in it may have together",
        "Raise MemoryMax= of its unit (memory.max), or lower -Xmx.",
    ),
    "machine-memory": ("{used} of {most} MiB of its machine's memory are in use", ""),
}
"""By kind of a budget, in words and with what to do."""
BY_DECREE = frozenset({"address-space", "commit"})
"""Told wherever there is one: they forbid what would be there."""
OF_A_MACHINE = frozenset({"machine-tasks", "machine-memory", "commit"})
KILLED_FOR_MEMORY = (
    "Run `journalctl -k` there: it shows which process the kernel has killed for memory. If it was this one, "
    "lower -Xmx, or give it more memory: MemoryMax= of its unit (memory.max, which all processes in that "
    "control group share), or the machine's. If it was not, find who sent kill -9. Then start the node: it "
    "recovers its logs first."
)


def signs_at_death(kind: str, place: StartPlace | None, changes: MachineChanges | None, *, is_ours: bool) -> Iterator[Sign]:
    """`kind`: of the ending. `is_ours`: a step of ours has started it, so that it was in the place."""
    if kind == "killed" and (killed := killed_for_memory(changes)) is not None:
        yield killed
    if place is None:
        return
    if (found := shut_out(place.unopened, "")) is not None:
        yield Sign(f"It could not be started from here: {found.observed}", found.fix)
    if is_ours and kind in OF_A_KILL and (limited := short_lived(place)) is not None:
        told = f"It was started by keeperless-activities: {limited.observed}"
        yield Sign(told, f"{limited.fix} Then start the node.", is_cure=True)
    if kind in OF_OPENING and place.gatekeepers:
        yield Sign(
            f"There {' and '.join(place.gatekeepers)} is asked before files are opened, and may say no (fanotify)",
            "Check that what it names exists and that others can read it: then the access was forbidden. Read the "
            "log of what decides: a list of allowed programs (`fapolicyd --debug-deny`; `fapolicyd-cli --update` "
            "after files were replaced) or an EDR. Allow the node's java to open Kafka's files. Reinstall nothing, "
            "and restart no other node before that.",
        )
    if is_ours and kind in OF_A_SANDBOX:
        yield from _of_sandbox(kind, place)
    for kinds, budgets in ((OF_THREADS, TASKS), (OF_MEMORY, MEMORY)):
        if kind in kinds:
            yield from _of_budgets(place, budgets, is_ours=is_ours, is_telling=kind != "not-begun")


def killed_for_memory(changes: MachineChanges | None) -> Sign | None:
    """Of a process that has ended without a word."""
    if changes is None or not changes.killed:
        return None
    told = f"The kernel has killed {changes.killed} for want of memory since {changes.since:%d %b %H:%M:%S} UTC"
    return Sign(told, KILLED_FOR_MEMORY, is_cure=True)


def _of_sandbox(kind: str, place: StartPlace) -> Iterator[Sign]:
    unit, found = place.unit, unwritable(place) if kind in OF_FILES else None
    if unit is not None and kind in OF_CODE:
        found = without_code(unit)
    if found is not None:
        yield Sign(
            f"It was started by keeperless-activities: {found.observed}", f"{found.fix} Then start the node.", is_cure=True
        )
    elif unit is not None and unit.inherits:
        yield Sign(
            f"It was started inside {unit.name}, and has inherited from it: {', '.join(unit.inherits)}",
            f"Where one of these forbids what failed, and nothing outside does: {out_of_the_sandbox(unit)}",
        )


def _of_budgets(place: StartPlace, texts: dict[str, tuple[str, str]], *, is_ours: bool, is_telling: bool) -> Iterator[Sign]:
    """`is_telling`: what is not used up is of interest, too."""
    for kind, where, used, most in place.budgets:
        if kind not in texts or (kind not in OF_A_MACHINE and not is_ours):
            continue
        is_spent = used >= SPENT * most
        if not is_spent and not (is_telling and kind in {*BY_DECREE, "machine-memory"}):
            continue
        words, fix = texts[kind]
        unit = MIB if texts is MEMORY else 1
        told = words.format(where=where, used=used // unit, most=most // unit)
        yield Sign(told, fix)
