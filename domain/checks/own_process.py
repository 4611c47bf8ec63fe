"""PF47: the process that a node's pid file names is the one that has its data open, all of it and nothing else."""

from collections.abc import Iterator, Sequence

from domain.checks.check import Check, Surveyed, unverifiable
from domain.cluster import NodeSpec
from domain.decisions import Finding, Severity

CODE = "PF47"
EXPECTED = "its pid file names the process that has its log directories open"
ON_ITS_DATA = "its process holds the locks of exactly those log directories that the specification names"
LOOK_YOURSELF = (
    "Make python3 available to the driver on the node. Or compare its pid file with `fuser` on the `.lock` of its log "
    "directories, and accept this finding."
)


def beside(held_by: Sequence[str], name: str, node: NodeSpec) -> Finding | None:
    """`held_by`: other processes that have its log directories open, as `4711 (java)`, where that of the pid file has not."""
    if not held_by:
        return None
    pid_file = node.driver.service.pid_file
    right = held_by[0].partition(" ")[0]
    cure = (
        f"Write the process id of the node itself there: echo {right} > {pid_file}"
        if len(held_by) == 1
        else "Find out which it is"
    )
    return Finding(
        code=CODE,
        object=name,
        observed=f"{pid_file} names a process that has none of its log directories open: process {', '.join(held_by)} has. A "
        "stop would end the named process, most likely a wrapper. The node might keep running, and a second one "
        "would be started on the same data",
        expected=EXPECTED,
        fix=f"{cure}. Correct what started it this way (a script that calls java or kafka-server-start.sh without `exec`) "
        "before it starts a node again.",
    )


def astray(unheld: Sequence[str], elsewhere: Sequence[str], name: str, node: NodeSpec) -> Finding | None:
    """`unheld`: its log directories whose lock its process does not hold; `elsewhere`: others whose lock it holds."""
    found = [f"does not hold the lock of {', '.join(unheld)}"] if unheld else []
    found += (
        [f"holds the lock of {', '.join(elsewhere)}, which is not a log directory of the specification"] if elsewhere else []
    )
    if not found:
        return None
    return Finding(
        code=CODE,
        object=name,
        observed=f"its process {' and '.join(found)}",
        expected=ON_ITS_DATA,
        fix=f"Compare log.dirs (or log.dir) in {node.properties_file}, `--override log.dirs` in the start command, and "
        "log_dirs in the specification. All must name the directories that hold its data. Correct the one that differs.",
    )


def blind(paths: Sequence[str]) -> str:
    """Why its locks could not be seen."""
    where = "neither its open files nor /proc/locks show this to the user of keeperless-activities"
    return f"cannot see whether its process holds the lock of {', '.join(paths)}: {where}"


def unseen(why: str, name: str) -> Finding:
    fix = (
        "Run keeperless-activities as root, or as the user of the node's process. Or compare `ls -l /proc/PID/fd` with "
        "log_dirs yourself, and accept this finding."
    )
    return unverifiable(CODE, name, why, ON_ITS_DATA, fix)


def _own(seen: Surveyed) -> Iterator[Finding]:
    for node in seen.spec.nodes:
        look, name = seen.node(node.id).look, seen.name(node.id)
        if look is None:
            yield unverifiable(
                CODE, name, seen.survey.why_missing(f"look at {name}"), EXPECTED, LOOK_YOURSELF, Severity.BLOCKER
            )
        elif (found := beside(look.held_by, name, node)) is not None:
            yield found
        elif (lost := astray(look.unheld, look.elsewhere, name, node)) is not None:
            yield lost
        elif look.unseen:
            yield unseen(blind(look.unseen), name)


CHECKS = (
    Check(
        code=CODE,
        holds="the process that a node's pid file names has that node's data open and holds the locks of its log directories",
        because="if the pid file names a wrapper, SIGTERM ends the wrapper and java keeps running. The node seems to have "
        "stopped, and a second one is started on the same data, kept off only by the lock of the log directories. "
        "And a process on another, empty directory starts without an error, with empty partitions. Checked again "
        "right before each stop; the locks also after each start, as part of the proof that the node is healthy",
        source="the process that has the `.lock` of the log directories open, from /proc/PID/fd, or from /proc/locks if "
        "that cannot be read",
        unverifiable="python3 cannot be run on the node, or neither of the two shows the locks of its process",
        of_survey=(_own,),
    ),
)
