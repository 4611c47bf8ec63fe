"""PF43: a node that keeperless-activities starts outlives it, and can write what it wrote before."""

from collections.abc import Iterator, Sequence

from domain.checks.check import Check, Surveyed, unverifiable
from domain.decisions import Finding, Severity
from domain.diagnosis.machines.start import StartPlace, StartUnit
from domain.diagnosis.machines.vital_signs import MIB

CODE = "PF43"
EXPECTED = "nodes outlive it: KillMode=process"
LARGEST_FILE = 2**31 - 1
"""Bytes of a segment at most (`segment.bytes`)."""
NO_CODE, FILTER = "MemoryDenyWriteExecute=yes", "SystemCallFilter="


def ending_with(unit: StartUnit) -> Finding | None:
    """The finding if a stop of that unit, or a logout, would end what was started in it, or if that is unknown."""
    if unit.ends_at_logout:
        return _ending_at_logout(unit)
    if unit.kill_mode in {"process", "none"}:
        return None
    told = f"KillMode={unit.kill_mode}" if unit.kill_mode else "whose KillMode `systemctl show` does not report"
    systemctl = "systemctl --user" if unit.is_users else "systemctl"
    return Finding(
        code=CODE,
        object="keeperless-activities",
        observed=f"the nodes that it starts are in the control group of {unit.name}, {told}: a stop or restart of that unit "
        "ends them too",
        expected=EXPECTED,
        fix=f"Run `{systemctl} edit {unit.name}`, and add KillMode=process below [Service]. Then run `{systemctl} "
        "daemon-reload`. It takes effect without a restart.",
    )


def _ending_at_logout(unit: StartUnit) -> Finding:
    why = "and its user does not linger" if unit.is_users else "and logind has KillUserProcesses=yes"
    cure = "`loginctl enable-linger USER` for its user, or run it" if unit.is_users else "Run it"
    return Finding(
        code=CODE,
        object="keeperless-activities",
        observed=f"the nodes that it starts are in {unit.name}, {why}: a logout ends them too",
        expected="nodes outlive it, and the session in which it was started",
        fix=f"{cure} as a system service, with KillMode=process. If its user does not linger, restart from there the nodes "
        "that it has already started.",
    )


def unwritable(place: StartPlace) -> Finding | None:
    """The finding if a node that it starts could not write its files, though other processes can."""
    if place.unit is None or not place.read_only:
        return None
    inherits = f" ({', '.join(place.unit.inherits)})" if place.unit.inherits else ""
    observed = (
        f"what it starts inherits the mounts of {place.unit.name}{inherits}, in which {', '.join(place.read_only)} are "
        "read-only"
    )
    return _of_sandbox(place.unit, observed, "nodes that it starts can write to the same directories as before")


def shut_out(unopened: Sequence[tuple[str, str]], name: str) -> Finding | None:
    """The finding if a start could not open its output files."""
    return _of_files(
        unopened,
        name,
        observed="its start command appends to a file that cannot be opened",
        expected="what keeperless-activities starts can write its output",
        fix="If log rotation gives the file to another user (`create` of logrotate), correct that first. Give the file to "
        "the user of keeperless-activities (chown). Or remove it if it is not needed: the start creates it again.",
    )


def kept_out(denied: Sequence[tuple[str, str]], name: str) -> Finding | None:
    """The finding if the user that it starts as may not use its files. A running node has them open; a starting one fails."""
    return _of_files(
        denied,
        name,
        observed="after a restart it could not use its own files",
        expected="the user that the node starts as may read its file and its jars, and write its data",
        fix="Give the files back to that user: chown -R and chmod u+rwX on the directory; for files that it only reads, "
        "chmod o+rX or its group. Then correct the cause, or it happens again. Root's files in its data come from a "
        "manual start as root (sudo kafka-server-start.sh). Modes without `other` come from an installation under umask "
        "077 or from a hardening script.",
    )


def _of_files(files: Sequence[tuple[str, str]], name: str, *, observed: str, expected: str, fix: str) -> Finding | None:
    if not files:
        return None
    told = "; ".join(f"{path}: {why}" for path, why in files)
    return Finding(code=CODE, object=name, observed=f"{observed}: {told}", expected=expected, fix=fix)


def without_code(unit: StartUnit) -> Finding | None:
    """The finding if no JVM starts in the unit: a JVM makes the code that it runs (systemd.exec(5))."""
    if NO_CODE not in unit.inherits:
        return None
    return _of_sandbox(unit, f"what it starts inherits {NO_CODE} of {unit.name}, under which no JVM starts", "nodes can start")


def short_lived(place: StartPlace) -> Finding | None:
    """The finding if the kernel ends what is started there after so many seconds of CPU (setrlimit(2)): by SIGKILL, without a
    message anywhere."""
    seconds = next((most for kind, _, _, most in place.budgets if kind == "cpu-time"), None)
    if seconds is None:
        return None
    return Finding(
        code=CODE,
        object="limits of keeperless-activities",
        observed=f"what it starts inherits its limit of {seconds} s of CPU time (RLIMIT_CPU): the kernel kills a node that "
        "has used that much",
        expected="no limit of CPU time for nodes",
        fix=f"{_outlived_first(place.unit)}Remove that limit where keeperless-activities is started: LimitCPU= of its unit "
        "(to limit the share of CPU use CPUQuota=), `ulimit -t`, or cpu in /etc/security/limits.d. Restart "
        "keeperless-activities. For each node that it has already started, run `prlimit --pid PID "
        "--cpu=unlimited:unlimited`.",
    )


def with_small_files(place: StartPlace) -> Finding | None:
    """The finding if what is started there may not write files as large as a segment of Kafka's may be."""
    largest = next((most for kind, _, _, most in place.budgets if kind == "file-size"), LARGEST_FILE)
    if largest >= LARGEST_FILE:
        return None
    return Finding(
        code=CODE,
        object="limit of file sizes of keeperless-activities",
        observed=f"what it starts inherits its limit of {largest / MIB:.4g} MiB for a file (RLIMIT_FSIZE): a larger write of "
        "Kafka fails, and with it the log directory",
        expected="files of 2 GiB, as large as a segment may be",
        fix=f"{_outlived_first(place.unit)}Remove that limit where keeperless-activities is started: `ulimit -f` of the "
        "shell, LimitFSIZE= of its unit, or fsize in /etc/security/limits.d. Restart keeperless-activities. For each "
        "node that it has already started, run `prlimit --pid PID --fsize=unlimited:unlimited`.",
    )


def filtered(place: StartPlace) -> Finding | None:
    """The finding for a node whose process has no filter of system calls. Other settings of units filter calls as well, and do
    not affect Kafka (RestrictRealtime=)."""
    is_meant = place.unit is None or any(setting.startswith(FILTER) for setting in place.unit.inherits)
    if not place.is_filtered or not is_meant:
        return None
    return Finding(
        code=CODE,
        object="system calls of keeperless-activities",
        observed="what it starts inherits its filter of system calls (Seccomp: 2 in its /proc/PID/status), which the "
        "running process does not have. Under it a broker may start and follow, but fail to serve followers and "
        "consumers (sendfile)",
        expected="no filter of system calls for nodes",
        fix=f"{_outlived_first(place.unit)}Remove the filter where keeperless-activities is started ({FILTER} of its unit, "
        "or the seccomp profile of a container). Restart keeperless-activities. If you know that brokers serve under "
        "that filter, accept this finding instead.",
    )


def _of_sandbox(unit: StartUnit, observed: str, expected: str) -> Finding:
    """A finding about the unit: accepting that nodes end with keeperless-activities does not accept that they cannot start."""
    return Finding(code=CODE, object=unit.name, observed=observed, expected=expected, fix=out_of_the_sandbox(unit))


def out_of_the_sandbox(unit: StartUnit) -> str:
    systemctl = "systemctl --user" if unit.is_users else "systemctl"
    return (
        f"{_outlived_first(unit)}Run `{systemctl} edit {unit.name}`, and remove what Kafka cannot work with (ReadWritePaths= "
        f"opens single directories). Run `{systemctl} daemon-reload`. Restart {unit.name}: a running process keeps the "
        "settings that it was started with."
    )


def _outlived_first(unit: StartUnit | None) -> str:
    """What to do before keeperless-activities is restarted."""
    is_outlived = unit is None or unit.kill_mode in {"process", "none"}
    return "" if is_outlived else "Set KillMode=process first; otherwise its restart ends every node that it has started. "


def _outlived(seen: Surveyed) -> Iterator[Finding]:
    """Yield each finding about a unit once: the unit is mostly the same for all nodes."""
    looks = {node.id: seen.node(node.id).look for node in seen.spec.nodes}
    for node_id, look in looks.items():
        if look is None:
            name = seen.name(node_id)
            fix = "Make python3 available to the driver on the node. Or set KillMode=process yourself, and accept this finding."
            yield unverifiable(CODE, name, seen.survey.why_missing(f"look at {name}"), EXPECTED, fix, Severity.BLOCKER)
    units = dict.fromkeys(look.unit for look in looks.values() if look is not None and look.unit is not None)
    for unit in units:
        yield from filter(None, (ending_with(unit), without_code(unit)))
    there = [(seen.name(node_id), look) for node_id, look in looks.items() if look is not None]
    yield from filter(None, (shut_out(look.unopened, name) for name, look in there))
    yield from filter(None, (kept_out(look.denied, name) for name, look in there))


CHECKS = (
    Check(
        code=CODE,
        holds="nodes that keeperless-activities starts outlive it, and can start and write inside its unit",
        because="systemd ends every process in the control group of a unit with the unit, unless its KillMode prevents "
        "that. A restart of keeperless-activities would stop every node restarted so far, at the same time. A "
        "logout does the same if users' processes do not outlive it",
        source="the control group of programs run on the node, and `systemctl show --property=KillMode`; for a user's unit "
        "whether that user lingers, for a session KillUserProcesses of logind. Before each stop also whether the "
        "node's directories are writable inside that unit, whose sandbox, CPU limit and system call filter a new "
        "process inherits. Files to which the start command appends are opened in the same way, without a change. "
        "Owner, group and mode of the node's file, jars and data are compared with the node's user: the one to which "
        "its start command switches (setpriv, runuser, sudo, gosu …), or else the present one",
        unverifiable="python3 cannot be run on the node",
        of_survey=(_outlived,),
    ),
)
