"""What a Java program said last, without the frames of its stack traces: the cause stands at their head, and they are long."""

import re
from collections.abc import Iterable

from activities.ports.nodes import Completed, NodeDriver

FRAME = re.compile(r"^\s*(?:at [\w.$/@<>-]+\(.*\)|\.\.\. \d+ (?:more|common frames omitted))\s*$")
LINES_READ = 200
"""Of a log: deeper than Kafka's stack traces are."""
LINES_TOLD = 12
MOST_TOLD = 500


async def last_words(driver: NodeDriver) -> tuple[str, ...]:
    """The last lines of a node's output that say something."""
    return without_frames(await driver.output_tail(LINES_READ))[-LINES_TOLD:]


def why_failed(done: Completed) -> str:
    """What a tool says of its failure, from its head."""
    return "\n".join(without_frames((done.errors.strip() or done.output.strip()).splitlines()))[:MOST_TOLD]


def without_frames(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if not FRAME.match(line))
