"""PF43: a node that is started lives on when keeperless-activities does not, and can write what it wrote before."""

from collections.abc import Iterator, Sequence

from domain.decisions import Finding, Severity
from domain.machines.start_place import StartPlace, StartUnit
from domain.machines.vital_signs import MIB
from domain.zk_to_kraft.checks.seen import Check, Surveyed, unverifiable

CODE = "PF43"
EXPECTED = "nodes outlive it: KillMode=process"
LARGEST_FILE = 2**31 - 1
"""Bytes of a segment at most (`segment.bytes`)."""
NO_CODE, FILTER = "MemoryDenyWriteExecute=yes", "SystemCallFilter="


def ending_with(unit: StartUnit) -> Finding | None:
    """Where a stop of that unit, or a logout, would end what was started in it, or nobody tells."""
    if unit.ends_at_logout:
        return _ending_at_logout(unit)
    if unit.kill_mode in {"process", "none"}:
        return None
    told = f"KillMode={unit.kill_mode}" if unit.kill_mode else "whose KillMode `systemctl show` does not tell"
    systemctl = "systemctl --user" if unit.is_users else "systemctl"
    return Finding(
        code=CODE,
        object="keeperless-activities",
        observed=f"what it starts is in the control group of {unit.name}, {told}: a stop or restart of that unit ends those "
        "nodes too",
        expected=EXPECTED,
        fix=f"`{systemctl} edit {unit.name}`: KillMode=process below [Service]; `{systemctl} daemon-reload`. It holds for what "
        "runs, nothing has to be restarted.",
    )


def _ending_at_logout(unit: StartUnit) -> Finding:
    why = "and its user does not linger" if unit.is_users else "and logind has KillUserProcesses=yes"
    cure = "`loginctl enable-linger USER` for its user, or run it" if unit.is_users else "Run it"
    return Finding(
        code=CODE,
        object="keeperless-activities",
        observed=f"what it starts is in {unit.name}, {why}: a logout ends those nodes too",
        expected="nodes outlive it, and whoever has logged in",
        fix=f"{cure} as a service of the system, with KillMode=process. A node that was started before has to be started anew "
        "there, unless its user lingers.",
    )


def unwritable(place: StartPlace) -> Finding | None:
    """Where what it starts could not write its files, though others can."""
    if place.unit is None or not place.read_only:
        return None
    inherits = f" ({', '.join(place.unit.inherits)})" if place.unit.inherits else ""
    observed = (
        f"what it starts inherits the mounts of {place.unit.name}{inherits}, in which {', '.join(place.read_only)} can only "
    )
    return _of_sandbox(place.unit, f"{observed}be read", "nodes that it starts can write what they wrote before")


def shut_out(unopened: Sequence[tuple[str, str]], name: str) -> Finding | None:
    """Where a start could not even open what it writes to."""
    if not unopened:
        return None
    told = "; ".join(f"{path}: {why}" for path, why in unopened)
    return Finding(
        code=CODE,
        object=name,
        observed=f"whoever starts it appends to what it cannot open: {told}",
        expected="what keeperless-activities starts can write its output",
        fix="Give that file to the user of keeperless-activities (chown), or take it away if nobody needs it: a start makes it "
        "anew. If a rotation of logs makes it another's (`create` of logrotate), correct that first.",
    )


def kept_out(denied: Sequence[tuple[str, str]], name: str) -> Finding | None:
    """Where the user that it runs as, or will, may not use its own files: who runs has them open, and who starts dies of it."""
    if not denied:
        return None
    told = "; ".join(f"{path}: {why}" for path, why in denied)
    return Finding(
        code=CODE,
        object=name,
        observed=f"it could not use its own files once it is started anew: {told}",
        expected="the user that a node starts as may read its file and its jars, and write its data",
        fix="Give them back to that user: chown -R of the directory, chmod u+rwX, and for what it only reads chmod o+rX or its "
        "group. Files of root's in its data are of a start by hand as root (sudo kafka-server-start.sh), modes without `other` "
        "of an installation under umask 077 or of a hardening script: correct that, too, or it comes again.",
    )


def without_code(unit: StartUnit) -> Finding | None:
    """A JVM makes the code that it runs (systemd.exec(5))."""
    if NO_CODE not in unit.inherits:
        return None
    return _of_sandbox(unit, f"what it starts inherits {NO_CODE} of {unit.name}, under which no JVM starts", "nodes that start")


def short_lived(place: StartPlace) -> Finding | None:
    """Where the kernel ends what is started there once it has used so many seconds of CPU (setrlimit(2)): by SIGKILL, without a
    word anywhere."""
    seconds = next((most for kind, _, _, most in place.budgets if kind == "cpu-time"), None)
    if seconds is None:
        return None
    return Finding(
        code=CODE,
        object="limits of keeperless-activities",
        observed=f"what it starts inherits its limit of {seconds} s of CPU time (RLIMIT_CPU): once a node has used as much, "
        "the kernel kills it",
        expected="no limit of CPU time for nodes",
        fix=f"{_outlived_first(place.unit)}Take that limit away where keeperless-activities is started: LimitCPU= of its unit "
        "(who meant a share of the CPU wants CPUQuota=), `ulimit -t`, cpu in /etc/security/limits.d; then restart "
        "keeperless-activities. Of nodes that it has started already: `prlimit --pid PID --cpu=unlimited:unlimited`.",
    )


def with_small_files(place: StartPlace) -> Finding | None:
    """Where what is started there may not write files as large as a segment of Kafka's may be."""
    largest = next((most for kind, _, _, most in place.budgets if kind == "file-size"), LARGEST_FILE)
    if largest >= LARGEST_FILE:
        return None
    return Finding(
        code=CODE,
        object="limit of file sizes of keeperless-activities",
        observed=f"what it starts inherits its limit of {largest / MIB:.4g} MiB for a file (RLIMIT_FSIZE): Kafka's next write "
        "beyond that fails, and its log directory with it",
        expected="files of 2 GiB, as large as a segment may be",
        fix=f"{_outlived_first(place.unit)}Take that limit away where keeperless-activities is started: `ulimit -f` of the "
        "shell, LimitFSIZE= of its unit, fsize in /etc/security/limits.d; then restart keeperless-activities. Of nodes that it "
        "has started already: `prlimit --pid PID --fsize=unlimited:unlimited`.",
    )


def filtered(place: StartPlace) -> Finding | None:
    """For whose process has no filter. Other settings of units filter calls as well, and leave Kafka alone
    (RestrictRealtime=)."""
    is_meant = place.unit is None or any(setting.startswith(FILTER) for setting in place.unit.inherits)
    if not place.is_filtered or not is_meant:
        return None
    return Finding(
        code=CODE,
        object="system calls of keeperless-activities",
        observed="what it starts inherits its filter of system calls (Seccomp: 2 in its /proc/PID/status), and the process "
        "that runs has none: a broker may start under it, follow, and serve neither followers nor consumers (sendfile)",
        expected="no filter of system calls for nodes",
        fix=f"{_outlived_first(place.unit)}Take it away where keeperless-activities is started ({FILTER} of its unit, the "
        "seccomp profile of a container), and restart keeperless-activities. Or accept this finding, where brokers are known "
        "to serve under that filter.",
    )


def _of_sandbox(unit: StartUnit, observed: str, expected: str) -> Finding:
    """Of the unit: who accepts that nodes end with keeperless-activities has not accepted that they cannot start."""
    return Finding(code=CODE, object=unit.name, observed=observed, expected=expected, fix=out_of_the_sandbox(unit))


def out_of_the_sandbox(unit: StartUnit) -> str:
    systemctl = "systemctl --user" if unit.is_users else "systemctl"
    return (
        f"{_outlived_first(unit)}`{systemctl} edit {unit.name}`: take out what Kafka cannot live with (ReadWritePaths= opens "
        f"single directories); `{systemctl} daemon-reload`, and restart {unit.name}, for what runs keeps what it was started "
        "with."
    )


def _outlived_first(unit: StartUnit | None) -> str:
    """Before a restart of keeperless-activities is asked for."""
    is_outlived = unit is None or unit.kill_mode in {"process", "none"}
    return "" if is_outlived else "Give it KillMode=process first, or its restart ends every node that it has started. "


def _outlived(seen: Surveyed) -> Iterator[Finding]:
    """Once for each unit: it is mostly the same for all nodes."""
    looks = {node.id: seen.node(node.id).look for node in seen.spec.nodes}
    for node_id, look in looks.items():
        if look is None:
            name = seen.name(node_id)
            fix = (
                "Make python3 available to the driver on the node, or see to KillMode=process yourself and accept this finding."
            )
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
        holds="nodes that keeperless-activities starts are not ended with it, and can start in its unit, and write there",
        because="systemd ends all that is in the control group of a unit with it, unless its KillMode says otherwise: a "
        "restart of ours would stop every node that was restarted so far, at once. So does a logout where processes of users "
        "do not outlive it",
        source="the control group of what is run on the node, `systemctl show --property=KillMode`; of a user's unit whether "
        "that user lingers, of a session KillUserProcesses of logind. Before each stop also whether the node's directories can "
        "be written from inside that unit: what is started there inherits its sandbox, its limit of CPU time, and its filter "
        "of system calls, where the process that runs has none. Files to which a start appends are opened as it does, which "
        "changes nothing of them. Its own file, its jars and its data are held against the user that its start command makes "
        "of itself (setpriv, runuser, sudo, gosu …), or else the one that it is now, by owner, group and mode",
        unverifiable="python3 cannot be run on the node",
        of_survey=(_outlived,),
    ),
)
