"""What a node's process prints, and where: told with the entry of a node that is in trouble. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.diagnosis.machines.vital_signs import MIB, Sign, read_only

LOUD = re.compile(r"\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (?:TRACE|DEBUG)\b(?:.*\((?P<logger>[\w$.]{3,100})\)\s*$)?")
"""A line of Kafka's layout; at its end who says it."""
MANY_LOUD, LOUD_A_SECOND = 500, 500.0
"""Of lines; a controller that traces the migration alone, as Kafka's documentation advises, stays far below."""


Deleted = tuple[tuple[str, int], ...]
"""Processes, with their commands, and the bytes that files have which they have open and which were deleted."""


@dataclass(frozen=True)
class NodeOutput:
    """`lines`: the last that it printed. `changed_at`: when that was, by its machine's clock; `None` where they are not known
    to be of the process that runs. `elsewhere`: where it prints to, if not into the output file of its driver. `full`: paths
    of the node on whose volumes is no room, and `deleted` what others have open there; `read_only`: of one that does not run,
    those whose file systems can only be read.
    """

    lines: tuple[str, ...]
    changed_at: datetime | None = None
    elsewhere: str = ""
    full: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    deleted: Deleted = ()


def signs_of_output(output: NodeOutput, output_file: str) -> Iterator[Sign]:
    if output.full:
        held = held_by(output.deleted)
        yield Sign(
            f"there is no room left for {', '.join(output.full)}: nothing more can be written there{held.observed}",
            f"{held.fix}Make room on that volume, in bytes or in inodes (`df -h`, `df -i`), and find what fills it. Remove "
            "none of Kafka's data by hand.",
        )
    if output.read_only:
        yield read_only(output.read_only)
    if output.elsewhere:
        yield Sign(
            f"its process prints to {output.elsewhere}, and not to {output_file}: what stands there is of an earlier one, and "
            "is left out",
            "",
        )
    yield from _loudness(output.lines)


def held_by(deleted: Deleted) -> Sign:
    """Of a volume without room, more of what is told of it: `du` shows nothing of that."""
    if not deleted:
        return Sign("", "")
    told = " and ".join(f"process {holder}, {size // MIB} MiB" for holder, size in deleted)
    return Sign(
        f". Deleted there, and open still, so that their room is not given back: files of {told}",
        "Make that program reopen its files, or end or restart it: that frees the space immediately. `lsof +L1` names the "
        "files. A log rotation has to notify the program (postrotate, kill -HUP, copytruncate). Otherwise: ",
    )


def _loudness(lines: Sequence[str]) -> Iterator[Sign]:
    """Somebody has looked for a fault, and left it so: threads that answer requests write all of that down first."""
    loud = [found for line in lines if (found := LOUD.match(line))]
    if len(loud) < MANY_LOUD:
        return
    first, last = _time(loud[0]["at"]), _time(loud[-1]["at"])
    seconds = (last - first).total_seconds() if first is not None and last is not None else 0.0
    if seconds <= 0 or len(loud) / seconds < LOUD_A_SECOND:
        return
    said_by = [name for name, _ in Counter(found["logger"] for found in loud if found["logger"]).most_common(2)]
    most = f", most of them of {', '.join(said_by)}" if said_by else ""
    set_back = ",".join(f"{name}=INFO" for name in ("root", *said_by))
    yield Sign(
        f"it prints {len(loud) / seconds:.0f} lines of TRACE and DEBUG a second{most}: its loggers were set to that, and its "
        "threads write before they answer",
        "Reset its loggers, which takes no restart: kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type "
        f"broker-loggers --entity-name ID --add-config {set_back} (--describe lists them), or with what was used to set "
        "them (JMX kafka.Log4jController). If its log4j file has them so, correct that on every node.",
    )


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f")  # noqa: DTZ007 - of two lines of one log the difference
    except ValueError:
        return None
