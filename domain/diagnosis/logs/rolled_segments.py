"""Topics that begin new segments all the time, by what brokers say of it. Pure.

Each takes a file, an index or two that are mapped into memory, and a look at the next start: a broker that has thousands
restarts for minutes, and dies where its maps run out (vm.max_map_count).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from domain.diagnosis.logs.lines import current
from domain.diagnosis.logs.times import stamp_of

ROLLED = re.compile(r"\[LocalLog partition=(\S{1,249})-\d+, dir=[^\]]{1,200}\] Rolled new log segment at offset \d+")
MANY = 60
"""In the minutes that a tail shows: of one topic no sensible segment.bytes or segment.ms comes to that."""
ROLL_LESS = (
    "Look what its clients write: timestamps in nanoseconds, or of another time, roll a segment with nearly every batch "
    "(kafka-dump-log.sh shows CreateTime; message.timestamp.after.max.ms=86400000 of the topic, and of the brokers, refuses "
    "them, and message.timestamp.type=LogAppendTime needs none); and at segment.bytes and segment.ms of the topic "
    "(kafka-configs.sh --describe). Have it mended before another broker restarts: each start reads all those segments, and "
    "each takes memory maps (vm.max_map_count). "
)


def rolled_in(logs: Iterable[Sequence[str]]) -> str:
    """As a further sentence, or empty: of which topic, how many, in how many seconds."""
    counts: Counter[str] = Counter()
    seconds = 0.0
    for lines in logs:
        found = [(match[1], stamp_of(line)) for line in current(lines) if (match := ROLLED.search(line)) is not None]
        own = Counter(topic for topic, _ in found)
        times = [at for _, at in found if at is not None]
        if own and own.most_common(1)[0][1] >= MANY and times:
            counts |= own
            seconds = max(seconds, (max(times) - min(times)).total_seconds())
    if not counts:
        return ""
    topic, number = counts.most_common(1)[0]
    return f". Topic {topic} begins a new segment all the time: {number} in {max(seconds, 1):.0f} s, by one broker's log"
