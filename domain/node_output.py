"""What a node's process prints, and where: told with the entry of a node that is in trouble. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.vital_signs import Sign

LOUD = re.compile(r"\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (?:TRACE|DEBUG)\b(?:.*\((?P<logger>[\w$.]{3,100})\)\s*$)?")
"""A line of Kafka's layout; at its end who says it."""
MANY_LOUD, LOUD_A_SECOND = 500, 500.0
"""Of lines; a controller that traces the migration alone, as Kafka's documentation advises, stays far below."""


@dataclass(frozen=True)
class NodeOutput:
    """`lines`: the last that it printed. `changed_at`: when that was, by its machine's clock; `None` where they are not known
    to be of the process that runs. `elsewhere`: where it prints to, if not into the output file of its driver. `full`: paths
    of the node on whose volumes is no room.
    """

    lines: tuple[str, ...]
    changed_at: datetime | None = None
    elsewhere: str = ""
    full: tuple[str, ...] = ()


def signs_of_output(output: NodeOutput, output_file: str) -> Iterator[Sign]:
    if output.full:
        yield Sign(
            f"there is no room left for {', '.join(output.full)}: nothing more can be written there",
            "Make room on that volume, in bytes or in inodes (`df -h`, `df -i`), and find what fills it. Of Kafka's data take "
            "nothing away by hand.",
        )
    if output.elsewhere:
        yield Sign(
            f"its process prints to {output.elsewhere}, and not to {output_file}: what stands there is of an earlier one, and "
            "is left out",
            "",
        )
    yield from _loudness(output.lines)


def _loudness(lines: Sequence[str]) -> Iterator[Sign]:
    """Somebody has looked for a fault, and left it so: threads that answer requests write all of that down first."""
    loud = [found for line in lines if (found := LOUD.match(line))]
    if len(loud) < MANY_LOUD:
        return
    first, last = (datetime.strptime(found["at"], "%Y-%m-%d %H:%M:%S,%f") for found in (loud[0], loud[-1]))  # noqa: DTZ007
    a_second = len(loud) / max((last - first).total_seconds(), 0.001)
    if a_second < LOUD_A_SECOND:
        return
    said_by = Counter(found["logger"] for found in loud if found["logger"])
    most = f", most of them of {', '.join(name for name, _ in said_by.most_common(2))}" if said_by else ""
    yield Sign(
        f"it prints {a_second:.0f} lines of TRACE and DEBUG a second{most}: somebody has set its loggers to that, and its "
        "threads write before they answer",
        "Set its loggers back, which takes no restart: kafka-configs.sh --alter --entity-type broker-loggers --entity-name ID "
        "--add-config root=INFO (--describe lists what each is at), or what was used to set them (JMX kafka.Log4jController). "
        "Where they are so in its log4j file, correct that too. Of every node.",
    )
