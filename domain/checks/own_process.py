"""PF47: the process that a node's pid file names is the one that has its data open, all of it and nothing else."""

from collections.abc import Iterator, Sequence

from domain.checks.seen import Check, Surveyed, unverifiable
from domain.cluster import NodeSpec
from domain.decisions import Finding, Severity

CODE = "PF47"
EXPECTED = "its pid file names the process that has its log directories open"
ON_ITS_DATA = "its process holds the locks of the log directories that the specification names, and of no others"
LOOK_YOURSELF = (
    "Make python3 available to the driver on the node, or compare its pid file with `fuser` of the `.lock` of its log "
    "directories yourself, and accept this finding."
)


def beside(held_by: Sequence[str], name: str, node: NodeSpec) -> Finding | None:
    """`held_by`: other processes that have its log directories open, as `4711 (java)`, where that of the pid file has not."""
    if not held_by:
        return None
    pid_file = node.driver.service.pid_file
    right = held_by[0].partition(" ")[0]
    cure = f"Write the node's own process there: echo {right} > {pid_file}" if len(held_by) == 1 else "Find out which it is"
    return Finding(
        code=CODE,
        object=name,
        observed=f"{pid_file} names a process that has none of its log directories open: process {', '.join(held_by)} has. A "
        "stop would end the one that is named, a wrapper most likely, the node might go on, and a second one would be started "
        "on the same data",
        expected=EXPECTED,
        fix=f"{cure}. Whatever has started it so (a script that calls java, or kafka-server-start.sh, without `exec` before "
        "it) is to be corrected before it starts a node again.",
    )


def astray(unheld: Sequence[str], elsewhere: Sequence[str], name: str, node: NodeSpec) -> Finding | None:
    """`unheld`: its log directories whose lock its process does not hold; `elsewhere`: others whose lock it holds."""
    found = [f"does not hold the lock of {', '.join(unheld)}"] if unheld else []
    found += [f"holds the lock of {', '.join(elsewhere)}, which is no log directory of the specification"] if elsewhere else []
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
    where = "neither its open files nor /proc/locks show it to the user of keeperless-activities"
    return f"whether its process holds the lock of {', '.join(paths)} could not be seen: {where}"


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
        holds="the process that a node's pid file names has that node's data open, and holds the locks of its log directories",
        because="where a wrapper that has started java as its child is named, SIGTERM ends the wrapper, and java goes on: it "
        "looks as if the node had stopped, and a second one is started beside it on the same data, which only the lock of the "
        "log directories keeps off. And a process on another, empty directory starts without a word, with empty partitions. "
        "Asked again right before each stop, and the locks after each start: without them the node is not proven well",
        source="who has the `.lock` of its log directories open, by /proc/PID/fd, or where that may not be read by /proc/locks",
        unverifiable="python3 cannot be run on the node, or neither of the two shows the locks of its process",
        of_survey=(_own,),
    ),
)
