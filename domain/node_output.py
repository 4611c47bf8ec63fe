"""What a node's process prints, and where: told with the entry of a node that is in trouble. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from domain.vital_signs import Sign


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
