"""Why a server of the ensemble does not serve, turns clients away, or has another tree, by its own log. Pure.

The log is that of ZooKeeper 3.8 as Kafka 3.9 brings it, where the cluster's specification says that it lies
(`zookeeper.members`).

Of the tree: the leader sends a digest of its own with each transaction (DataTree.java of 3.6 on). Who differs from the leader
says so, also where the leader is wrong: the leader itself never does. What goes on is said once, and then every quarter of an
hour; what is over, once more with the next transaction that fits (RateLogger). So only what is said of the epoch that the
member is in counts: whoever led before may have been mended.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.diagnosis.logs.catalogue import KAFKA
from domain.diagnosis.logs.complaints import LIVING, Said, blocks, in_short, said_in, shown
from domain.diagnosis.logs.connecting import KEYS, fix_of_the_living, of_a_server, unconnected
from domain.diagnosis.logs.endings import FILES, MACHINE_DEATHS
from domain.diagnosis.logs.lines import Found, current, first_of

SERVER_DEATHS = KAFKA.of("dying", "zookeeper-members")
"""What ZooKeeper says as it gives up, besides what any process says of its machine."""
LIVING_KINDS = KAFKA.of("running", "zookeeper-members")
"""What a member that runs tells with a warning, or less, and that keeps it out of the quorum for good."""
TURNS_AWAY = KAFKA.of("serving-member", "zookeeper-members")
"""Why a member that serves gives somebody no session."""
CONFIGURATION, OTHER_TREE = KAFKA["zookeeper-configuration"], KAFKA["zookeeper-digest-differs"]
SLOW_DISK, SYNC_TIMED_OUT = KAFKA["zookeeper-slow-disk"], KAFKA["zookeeper-sync-timed-out"]
TICKS_TOO_SHORT, TWICE = KAFKA["zookeeper-ticks-too-short"], KAFKA["zookeeper-id-twice"]
START_OF_SERVER = re.compile(r"Reading configuration from: ")
"""The first line of every start (QuorumPeerConfig)."""
HOLLOW = re.compile(
    r"Exiting JVM with code|exiting abnormally|Unable to run quorum server|Unable to load database on disk|"
    r"ZooKeeperServer not running|Cannot open (?:secure )?channel to"
)
"""Errors that only say that there was one, or that others are not there: nothing, unless an exception stands below."""
PASSING = re.compile(
    r"GOODBYE|PeerState set to LOOKING|Close of session|causing close of session|Got zxid|Too busy to snap|"
    r"maxCnxns is not configured|Problem starting AdminServer|Send worker leaving|Interrupting SendWorker|"
    r"Interrupted while waiting for message|Connection broken for id|Exception when using channel|"
    r"Ignoring (?:unexpected exception|error closing)|Restarting Leader Election|Error closing a command socket"
)
"""What a member says in vain: as connections end, to clients that it cannot serve, or as ever."""
SERVES_AGAIN = re.compile(r"Peer state changed: (?:following|leading|observing) - broadcast")
GAVE_UP = re.compile(r"Shutdown called\. For the reason (?!Forcing shutdown)")
"""Of a leader: why it leads no more. It says so as if all were well (Leader)."""
TICK = re.compile(r"\btickTime set to (\d+)\b")
LEAST_TICK = 200
"""Milliseconds. Its own limits are a few ticks, and a client's session 20 at most: below this a pause of any JVM ends them."""
GIVES_UP = re.compile(r", exiting abnormally")
"""What is thrown there of keys, logins and files counts: of its clients it says the same and lives on."""
SLOW_WITHIN = timedelta(seconds=60)
"""Of what follows from it."""
ENDED_WITH_A_SLOW_DISK = (SLOW_DISK, SYNC_TIMED_OUT)
"""What comes back by itself: whatever else is known of it does not, however slow its disk was meanwhile."""
MOVE_NOTHING_YET = f"{KAFKA.snippets['move_nothing_yet']} "
EPOCH = re.compile(r"(?:Got zxid|setting last processed zxid:) 0x([0-9a-f]{1,16})\b")
"""The first that a follower hears of a leader, or that a member begins to lead with (Follower, Leader)."""
OBSERVES = re.compile(r"Peer state changed: observing - broadcast")
"""An observer tells no zxid of that: it has the tree of its leader then (QuorumPeer)."""


def turned_away_by(lines: Sequence[str]) -> Found | None:
    """The last that it says of that, and that is not long over."""
    found = [first_of(line, TURNS_AWAY) for line in current(of_last_start(lines))]
    return next((one for one in reversed(found) if one is not None), None)


@dataclass(frozen=True)
class Complaint:
    """What a member that runs complains of: in its words, and what to do where that is known."""

    words: str = ""
    fix: str = ""


def complaint_of_server(lines: Sequence[str]) -> Complaint:
    """Of one that runs and does not serve: the last that is known, else the last, of what it said since it served."""
    own = _own(lines)
    complaints = [block for block in blocks(_since_served(own)) if _is_complaint(block) and _says_something(block)]
    all_known = [(block[0].at, found) for block in complaints if (found := _kept_by(block)) is not None]
    known = [found for _, found in all_known]
    if (root := _root_of(all_known)) is not None:
        return Complaint(" | ".join(dict.fromkeys([root.quote, known[-1].quote])), fix_of_the_living(root))
    if known:
        tick = next((int(match[1]) for one in reversed(own) if (match := TICK.search(one.text))), LEAST_TICK)
        if known[-1].told is SYNC_TIMED_OUT and tick < LEAST_TICK:
            return Complaint(f"{known[-1].quote} | its tickTime is {tick} ms", TICKS_TOO_SHORT.fix)
        return Complaint(known[-1].quote, fix_of_the_living(known[-1]))
    return Complaint(in_short(complaints[-1])) if complaints else Complaint()


def _root_of(known: Sequence[tuple[datetime | None, Found]]) -> Found | None:
    """What the last of them follows from, or is itself."""
    newest = known[-1][0] if known else None
    lately = [found for at, found in known if at is None or newest is None or newest - at <= SLOW_WITHIN]
    root = next((found for found in reversed(lately) if found.told.is_root), None)
    if root is None or root.told is not SLOW_DISK:
        return root
    return next((found for found in reversed(lately) if found.told not in ENDED_WITH_A_SLOW_DISK), root)


def _since_served(said: Sequence[Said]) -> Sequence[Said]:
    served = [number for number, one in enumerate(said) if SERVES_AGAIN.search(one.text)]
    return said[served[-1] + 1 :] if served else said


def _is_complaint(block: Sequence[Said]) -> bool:
    return block[0].level not in {"TRACE", "DEBUG", "INFO"} or GAVE_UP.search(block[0].text) is not None


def _says_something(block: Sequence[Said]) -> bool:
    if any(PASSING.search(one.text) for one in block):
        return False
    return len(block) > 1 or not HOLLOW.search(block[0].text)


def _kept_by(block: Sequence[Said]) -> Found | None:
    words = " | ".join(one.text for one in block)
    cut_off = unconnected(block)
    cut_off = of_a_server(cut_off) if cut_off is not None else None
    if block[0].level in LIVING:
        return first_of(words, LIVING_KINDS) or cut_off
    return first_of(words, (*LIVING_KINDS, *SERVER_DEATHS)) or cut_off or first_of(words, MACHINE_DEATHS)


def death_of_server(lines: Sequence[str]) -> Found | None:
    """The last known words of its last start; where there are none, those with which it gave up."""
    own = _own(lines)
    said = [first_of(one.text, (*SERVER_DEATHS, *MACHINE_DEATHS)) for one in own if not one.is_of_the_living]
    known = [found for found in said if found is not None]
    found = [found for found in known if found.told.is_root] or known or [*_given_up_for(own)]
    return found[-1] if found else None


def _given_up_for(said: Sequence[Said]) -> Iterator[Found]:
    for block in blocks(said):
        if not GIVES_UP.search(block[0].text):
            continue
        exact = [found for one in block[1:] if (found := first_of(one.text, (*KEYS, *FILES))) is not None]
        if exact:
            yield of_a_server(exact[-1])
        elif (found := first_of(block[0].text, (CONFIGURATION,))) is not None:
            yield replace(found, quote=shown(block[1:]) or found.quote)


def errors_of_server(lines: Sequence[str]) -> str:
    """The last errors of its last start that say something; empty where it tells of none."""
    return shown([one for one in _own(lines) if one.is_error and not HOLLOW.search(one.text)])


def _own(lines: Sequence[str]) -> list[Said]:
    return list(said_in(of_last_start(lines)))


def of_last_start(lines: Sequence[str]) -> Sequence[str]:
    starts = [number for number, line in enumerate(lines) if START_OF_SERVER.search(line)]
    return lines[starts[-1] if starts else 0 :]


def other_tree_in(lines: Sequence[str]) -> Found | None:
    """The last that it says of that in this epoch; `None` where it says nothing."""
    own = of_last_start(lines)
    own = own[max((number for number, line in enumerate(own) if OBSERVES.search(line)), default=0) :]
    epochs = [epoch_of(int(found[1], 16)) for found in map(EPOCH.search, own) if found is not None]
    said = [found for found in (first_of(line, (OTHER_TREE,)) for line in own) if found is not None]
    now = [found for found in said if not epochs or epoch_of(int(found.named[0])) >= epochs[-1]]
    return now[-1] if now else None


def epoch_of(zxid: int) -> int:
    return zxid >> 32
