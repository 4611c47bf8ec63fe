"""What a Java program said last, without the frames of its stack traces: the cause stands at their head, and they are long."""

from datetime import UTC, datetime, timedelta

from activities.ports.nodes import Completed, NodeDriver
from domain.diagnosis.logs.complaints import without_frames
from domain.diagnosis.logs.endings import words_of
from domain.diagnosis.logs.layouts import in_kafkas_layout
from domain.diagnosis.logs.lines import said_by_new

LOG_LINES = 2000
"""Of a log: more than a controller prints in the minute after which what it waits for is repeated. What counts until the
process ends is found further back, too (`activities.on_node.read_output`)."""
LINES_READ = 400
"""Of a log: deeper than Kafka's stack traces are, and than what it says when it closes after an error."""
LINES_TOLD = 12
MOST_TOLD = 500
NOTHING_PRINTED = (
    "It seems to have printed nothing: its start command ended before Kafka began. Read the end of its output, or run that "
    "command by hand, as the user of keeperless-activities."
)


async def last_words(driver: NodeDriver, age: timedelta | None = None) -> tuple[str, ...]:
    """Of a node's output the errors that it ended with; where there are none, its last lines. `age`: how long ago its last
    process was started: what the one before it has said is not that one's, as far as the two can be told apart.
    """
    lines = in_kafkas_layout(await driver.output_tail(LINES_READ))
    own = said_by_new(lines, age, datetime.now(UTC)) if age is not None else None
    return words_of(lines if own is None else own)[-LINES_TOLD:]


async def told_last(driver: NodeDriver, age: timedelta | None) -> str:
    """The same as a sentence."""
    lines = await last_words(driver, age)
    return "It printed last:\n" + "\n".join(lines) if lines else NOTHING_PRINTED


def why_failed(done: Completed) -> str:
    """What a tool says of its failure, from its head."""
    return "\n".join(without_frames((done.errors.strip() or done.output.strip()).splitlines()))[:MOST_TOLD]
