"""What the logs of a follower and of its leader say of replicas that lag, where one says anything.

The texts are those of Kafka 3.9 (AbstractFetcherThread, ReplicaManager, Partition, ShutdownableThread). A partition that is
marked as failed is fetched again only once a fetcher is added for it, which a new leader epoch or a start of the broker does
(AbstractFetcherThread.addPartitions, ReplicaManager.applyLocalFollowersDelta).
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from domain.diagnosis.logs.catalogue import KAFKA, Told
from domain.diagnosis.logs.complaints import Said, blocks, said_in, shown, with_thrown
from domain.diagnosis.logs.connecting import (
    CLUSTER_ACTION_REFUSED,
    LOGIN_FAILED,
    NO_LISTENER,
    PEER_CUT,
    PEER_SILENT,
    PEER_UNREACHABLE,
    TLS_FAILED,
    exactly,
    refused_node_in,
)
from domain.diagnosis.logs.endings import DATA_FILE_GONE, FILES, MISSING_FILE
from domain.diagnosis.logs.lines import (
    Found,
    all_found,
    current,
    first_of,
    found_in,
    lately,
    of_this_process,
    stamp_of,
    that_count,
)

LOG_DIR_FAILED, TOPIC_ID_DIFFERS = KAFKA["log-dir-failed"], KAFKA["topic-id-differs"]
FETCHER_DIED, FETCH_STOPPED, SEGMENT_TOO_SMALL = KAFKA["fetcher-died"], KAFKA["fetch-stopped"], KAFKA["segment-too-small"]
FETCH_REFUSED, FETCH_INVALID = KAFKA["fetch-refused"], KAFKA["fetch-invalid"]
UNKNOWN_TO_LEADER, REMOTE_STATE = KAFKA["unknown-to-leader"], KAFKA["remote-state-not-built"]
CHANNEL_DIED, BROKER_UNREACHED = KAFKA["controller-channel-died"], KAFKA["broker-unreached"]
ISR_REFUSED, ISR_INELIGIBLE, STATE_REWRITTEN = KAFKA["isr-refused"], KAFKA["isr-ineligible"], KAFKA["partition-state-rewritten"]
OF_A_DIRECTORY = (*KAFKA.of("dying", "disks"), *FILES)
WHY_STOPPED = re.compile(
    r"(?:Unexpected error occurred while processing data for partition|Error while processing data for partition|"
    r"Failed to truncate|Unexpected error occurred during truncation for) (\S{1,260}-\d+) at offset \d+|"
    r"Partition (\S{1,260}-\d+) has an older epoch \(\d+\) than the current leader"
)
REPORTED = "LogDirFailureChannel)"
"""How the line ends above what was thrown."""
STAYS_OFFLINE = "A directory that has failed stays offline until the broker restarts: then restart it."
ROLLED = re.compile(r"\[LocalLog partition=(\S{1,249})-\d+, dir=[^\]]{1,200}\] Rolled new log segment at offset \d+")
MANY = 60
"""In the minutes that a tail shows: of one topic no sensible segment.bytes or segment.ms comes to that."""
ROLL_LESS = (
    "Check what its clients write: timestamps in nanoseconds, or of another time, roll a segment with nearly every batch "
    "(kafka-dump-log.sh shows CreateTime). message.timestamp.after.max.ms=86400000 of the topic and the brokers refuses "
    "them, and message.timestamp.type=LogAppendTime needs none. Check segment.bytes and segment.ms of the topic "
    "(kafka-configs.sh --describe). Fix it before another broker restarts: each start reads all those segments, and each "
    "segment takes memory maps (vm.max_map_count). "
)
FOR_A_MOMENT = " has an older epoch "
"""In why a partition was stopped that is to be fetched again in a moment, once its new leader is known there."""
ADDED = re.compile(r"Added fetcher to broker \d+ for partitions ")
FETCHER = re.compile(r"\[ReplicaFetcher replicaId=\d+, leaderId=(-1|\d+), fetcherId=\d+\]")
NO_NODE = -1
"""Whom a fetcher asks whose leader has no listener of the name by which it would ask him (Node.noNode)."""
CONNECTED = re.compile(r"connected to \S{1,200} \(id: (\d+) rack: [^)]{0,60}\) for sending state change requests")
"""What a controller says to end BROKER_UNREACHED (RequestSendThread)."""
TELLS_CONTROLLER = "name=alter-partition"
"""In the lines of the channel by which a leader tells the controller who is in sync (AlterPartitionManager)."""
OF_WHO_LEADS = (LOG_DIR_FAILED, CHANNEL_DIED, CLUSTER_ACTION_REFUSED, ISR_REFUSED, ISR_INELIGIBLE)
ANSWERS = (FETCH_REFUSED, FETCH_INVALID, REMOTE_STATE, UNKNOWN_TO_LEADER)
UNREACHED = (NO_LISTENER, TLS_FAILED, LOGIN_FAILED, PEER_CUT, PEER_UNREACHABLE, PEER_SILENT)
EXCEPTION = re.compile(r"^(?:[a-z]\w*\.)+([A-Z][\w$]{0,80}(?:: .{0,160})?)")
"""The line below an error. What Kafka says in those of replication are partitions, offsets and paths."""


def said_by_follower(lines: Sequence[str], partitions: Collection[str], leaders: Collection[int]) -> Found | None:
    """The gravest thing that the log of a broker says of these partitions, which lag there, and of the way to their leaders."""
    lasting = found_in(lines, (LOG_DIR_FAILED, FETCHER_DIED))
    if lasting:
        return with_cause(_with_reason(lasting[0]), lines)
    if refused := _refused(lines, partitions):
        return refused
    stopped = [found for name, found in _stopped(lines).items() if name in partitions]
    lasting_stops = [found for found in stopped if FOR_A_MOMENT not in found.quote]
    if lasting_stops:
        return lasting_stops[-1]
    if answers := _last_of(current(lines), ANSWERS, partitions):
        return _with_reason(answers)
    if refused_node := refused_node_in(lines):
        return refused_node
    found = _last_of(lately(lines), UNREACHED, says=_fetchers_from(leaders))
    if found is not None:
        return _with_reason(found)
    return stopped[-1] if stopped else None


def leader_asked(found: Found) -> int | None:
    """Whom the fetcher asks that says it."""
    match = FETCHER.search(found.block[0])
    return int(match[1]) if match is not None else None


def said_by_leader(lines: Sequence[str], partitions: Collection[str]) -> Found | None:
    """Why followers may lag although they are well: the leader does not take the partition for what it has on its disk, cannot
    read it, or cannot tell a controller who is in sync.
    """
    if refused := _refused(lines, partitions):
        return refused
    found = next(iter(found_in(lines, OF_WHO_LEADS)), None)
    found = found or _last_of(lately(lines), UNREACHED, says=lambda line: TELLS_CONTROLLER in line)
    return None if found is None else with_cause(_with_reason(found), lines)


def said_by_controller(lines: Sequence[str], broker_id: int) -> Found | None:
    """Of the active controller's log: that it does not get through to a broker, which so hears of no new leader.

    While one restarts that is nothing; it says so once it is connected again.
    """
    told = current(lines)
    connected = [n for n, line in enumerate(told) if (match := CONNECTED.search(line)) and match[1] == str(broker_id)]
    found = _last_of(told[connected[-1] + 1 :] if connected else told, (BROKER_UNREACHED,), (str(broker_id),))
    return None if found is None else _with_reason(found)


def said_by_zookeepers_controller(lines: Sequence[str], partitions: Collection[str]) -> Found | None:
    """Of the broker that is the controller: it goes by the version of a partition's state that it knows, until another one
    reads the state anew (KafkaController.processAlterPartition, INVALID_UPDATE_VERSION)."""
    return _last_of(of_this_process(lines), (STATE_REWRITTEN,), partitions)


def _refused(lines: Sequence[str], partitions: Collection[str]) -> Found | None:
    return _last_of(of_this_process(lines), (TOPIC_ID_DIFFERS,), partitions)


def _fetchers_from(leaders: Collection[int]) -> Callable[[str], bool]:
    """Whether a fetcher from one of these says it. Others' logins, which fail in the same words, are left out."""

    def says(line: str) -> bool:
        match = FETCHER.search(line)
        return match is not None and (not leaders or int(match[1]) in {NO_NODE, *leaders})

    return says


def _last_of(
    lines: Sequence[str], kinds: Sequence[Told], names: Collection[str] | None = None, *, says: Callable[[str], bool] = bool
) -> Found | None:
    """Of the first kind that there is the last line, of those that name one of these, and that who is asked for `says`."""
    for kind in kinds:
        told = [found for found in all_found(lines, (kind,)) if says(found.block[0])]
        hits = [found for found in that_count(told) if names is None or set(names).intersection(found.named)]
        if hits:
            return hits[-1]
    return None


def _stopped(lines: Sequence[str]) -> dict[str, Found]:
    """Partitions that are not fetched any more, with why, but for those that are fetched again since."""
    whys: dict[str, str] = {}
    stopped: dict[str, Found] = {}
    own = of_this_process(lines)
    for line, below in pairwise([*own, ""]):
        if (match := WHY_STOPPED.search(line)) is not None:
            whys[match[1] or match[2]] = _joined(match.group(0), below)
        if ADDED.search(line) is not None:
            stopped = {name: found for name, found in stopped.items() if _is_silent_of(name, line)}
        for found in found_in((line,), (FETCH_STOPPED,)):
            why = whys.get(found.named[0])
            stopped[found.named[0]] = found if why is None else _stopped_for(why, found)
    return stopped


def _is_silent_of(name: str, added: str) -> bool:
    """Of a line that names all partitions: its end may have been cut off."""
    return added.rstrip().endswith(")") and not re.search(rf"[\s(,]{re.escape(name)} ->", added)


def _stopped_for(why: str, found: Found) -> Found:
    told = SEGMENT_TOO_SMALL if SEGMENT_TOO_SMALL.pattern.search(why) else found.told
    return replace(found, told=told, quote=f"{why}. {found.quote}")


def _with_reason(found: Found) -> Found:
    """With what stands below its line, where that is an exception; of a plug-in's the last, without what may be a secret."""
    if found.told is REMOTE_STATE:
        return replace(found, quote=with_thrown(found))
    exact = exactly(found)
    return exact if exact is not found else replace(found, quote=_joined(found.quote, next(iter(found.thrown), "")))


def _joined(words: str, below: str) -> str:
    if (known := SEGMENT_TOO_SMALL.pattern.search(below)) is not None:
        return f"{words}: {known[0]}"
    match = EXCEPTION.match(below)
    return words if match is None else f"{words}: {match[1]}"


def with_cause(found: Found, lines: Sequence[str]) -> Found:
    """Of a directory that has failed, with what it has failed of, and its cure where that is known."""
    if found.told is not LOG_DIR_FAILED:
        return found
    thrown = list(_thrown_of(found.named[0], lines))
    for one in thrown:
        if (known := first_of(one.text, OF_A_DIRECTORY)) is not None:
            reason = DATA_FILE_GONE if known.told is MISSING_FILE else known.told
            told = replace(found.told, fix=f"{reason.cure} {STAYS_OFFLINE}")
            return replace(found, told=told, quote=f"{found.quote}: {known.quote}")
    return replace(found, quote=f"{found.quote}: {shown(thrown[:1])}") if thrown else found


def _thrown_of(path: str, lines: Sequence[str]) -> Iterator[Said]:
    of_it = re.compile(rf"(?<!\S){re.escape(path)}(?![\w.-])")
    for head, *below in blocks(list(said_in(of_this_process(lines)))):
        if head.text.rstrip().endswith(REPORTED) and of_it.search(head.text):
            yield from below


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
