"""Why a server of the ensemble does not serve, by its own log: that of ZooKeeper 3.8 as Kafka 3.9 brings it. Pure.

Read where the cluster's specification says where the log is (`zookeeper.members`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.diagnosis.logs.kafka_deaths import KEYS
from domain.diagnosis.logs.lines import Found, Told, current, first_of
from domain.diagnosis.logs.login_deaths import of_a_server
from domain.diagnosis.logs.machine_deaths import FILES, MACHINE_DEATHS
from domain.diagnosis.logs.said import LIVING, Said, blocks, in_short, said_in, shown
from domain.diagnosis.logs.unconnected import fix_of_the_living, unconnected

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

SYNC_ANEW = (
    "Where the other members have a quorum: move its version-2 directories away (keep myid) and start it, it fetches all anew. "
    "Where they have not: first make a copy of every member's directories, for one of them has the newest data."
)

EPOCH_LOST = Told(
    "zookeeper-epoch-file",
    re.compile(
        r"Found (?:null|\S{0,40}) in \S{1,200}/(?:current|accepted)Epoch"
        r"|The (?:current|accepted) epoch, \w{1,20},? is (?:older than the last zxid|less than the current epoch), \w{1,20}"
    ),
    "version-2/currentEpoch and acceptedEpoch that hold the epoch of its newest transaction",
    "Mostly after a loss of power (ZOOKEEPER-2307, ZOOKEEPER-2354). Keep a copy of its version-2, move currentEpoch and "
    "acceptedEpoch away, and start it: ZooKeeper makes both again, of its newest transaction. Do so at every member that says "
    "this.",
)
SNAPSHOT_LOST = Told(
    "zookeeper-no-snapshot",
    re.compile(r"No snapshot found, but there are log entries|Not able to find valid snapshots in \S{1,200}"),
    "a snapshot that can be read in dataDir/version-2",
    f"Look first whether dataDir and dataLogDir are the ones of before, and are mounted. {SYNC_ANEW}",
)
LOG_DAMAGED = Told(
    "zookeeper-data-damaged",
    re.compile(r"CRC check failed|has invalid magic number|Unreasonable length = \d+|Len error \d+|Unable to truncate Txn log"),
    "transaction logs and snapshots that can be read",
    "A file of its data is damaged, or a record is larger than its jute.maxbuffer: compare that with the other members' "
    f"(SERVER_JVMFLAGS). {SYNC_ANEW}",
)
MYID = Told(
    "zookeeper-myid",
    re.compile(r"myid file is missing|serverid \S{0,40} is not a number"),
    "dataDir/myid with this member's number",
    "Compare its zoo.cfg and dataDir/myid with those of the other members; whether dataDir is mounted.",
)
UNRESOLVED = Told(
    "zookeeper-address-unresolved",
    re.compile(r"Address unresolved: [\w.:-]{1,120}:\d{1,5}"),
    "names in the server.N lines of zoo.cfg that are resolved on its machine",
    "`getent hosts` on its machine says whether it knows that name: correct DNS, /etc/hosts or zoo.cfg. Then start it.",
)
CONFIGURATION = Told(
    "zookeeper-configuration",
    re.compile(r"Invalid config, exiting abnormally"),
    "a zoo.cfg as the other members have it",
    "Compare its zoo.cfg with those of the other members, and correct what was thrown there. Then start it.",
)
JETTY_PORT = Told(
    "zookeeper-metrics-port-taken",
    re.compile(r"Failed to bind to \S{0,80}:\d{1,5}"),
    "ports for its metrics and its admin server that nobody else has",
    "It is none of the ensemble's ports, but that of its metrics (metricsProvider.httpPort, 7000 unless it is set) or of its "
    "admin server (admin.serverPort, 8080): see who has it (`ss -ltnp` there), or give it another one in its zoo.cfg. Then "
    "start it.",
    is_root=True,
)
BEHIND = Told(
    "zookeeper-epoch-behind",
    re.compile(r"Leaders epoch, \w{1,20} is less than accepted epoch, \w{1,20}"),
    "members that have promised no newer epoch than the leader's",
    f"It was in a quorum that is gone, or the others were put back to older data. {SYNC_ANEW}",
)
PORT_TAKEN = Told(
    "zookeeper-port-taken",
    re.compile(r"BindException: Address already in use"),
    "its ports are free",
    "Another process has its client, quorum or election port: see which (`ss -tanp` there). End it only where it is neither a "
    "server of the ensemble nor a node of the cluster; else compare zoo.cfg and dataDir/myid of both. Then start this one.",
)
DIRECTORY = Told(
    "zookeeper-directory",
    re.compile(
        r"(?:Unable to create|Cannot write to|Missing) (?:data|snap) directory \S{1,200}|Unable to access datadir"
        r"|(?:Log directory has snapshot|Snapshot directory has log) files"
    ),
    "dataDir and dataLogDir that are there, and ZooKeeper's own",
    "Look whether the volume is mounted, who owns the directories, and whether dataDir and dataLogDir are the ones of before.",
)

HEAP = Told(
    "zookeeper-heap",
    re.compile(r"OutOfMemoryError: (?:Java heap space|GC overhead limit exceeded|Requested array size exceeds VM limit)"),
    "a heap that holds the whole tree, everybody's data in it",
    "It keeps all znodes in memory, those of other applications too (`mntr`: zk_approximate_data_size, zk_znode_count; `du` of "
    "its snapshots). Raise -Xmx (SERVER_JVMFLAGS) at every member, then start it; and find who writes so much.",
)

OPEN_FILES = Told(
    "zookeeper-open-files",
    re.compile(r"Too many open files(?! in system)"),
    "a limit of open files above all that connect",
    "Find who holds so many connections (`ss -tnp` there, `cons`), and end that; maxClientCnxns keeps one address from taking "
    "all. Raise LimitNOFILE (ulimit -n) of its service, then restart it.",
)

SYNC_TIMED_OUT = Told(
    "zookeeper-sync-timed-out",
    re.compile(
        r"Exception when (?:follow|observ)ing the leader.{0,300}SocketTimeoutException(?:: [\w ]{1,40})?"
        r"|Shutdown called\. For the reason .{0,60}only synced with sids[^(]{0,60}"
        r"|Timeout while waiting for epoch (?:from quorum|to be acked by quorum)"
    ),
    "members that have the leader's whole tree within initLimit, and hear of it within syncLimit",
    "Either the tree has outgrown the time: raise initLimit and syncLimit (ticks of tickTime) in the zoo.cfg of every member, "
    "restart them one by one, and find who writes so much (`mntr`: zk_approximate_data_size). Or nothing comes through: the "
    "leader stands still, or something between the members' quorum ports holds packets back.",
)
TICK = re.compile(r"\btickTime set to (\d+)\b")
LEAST_TICK = 200
"""Milliseconds. Its own limits are a few ticks, and a client's session 20 at most: below this a pause of any JVM ends them."""
TICKS_TOO_SHORT = Told(
    "zookeeper-ticks-too-short",
    SYNC_TIMED_OUT.pattern,
    "a tickTime with which members and brokers outlive a pause: 2000 (ms) as ZooKeeper brings it",
    "Set tickTime=2000 in the zoo.cfg of every member, or what it was before, and restart them one by one: initLimit, "
    "syncLimit and the longest session that a broker can get (20 ticks, or maxSessionTimeout) are counted in it.",
)
LARGER_THAN_TAKEN = Told(
    "zookeeper-larger-than-taken",
    re.compile(r"Exception when (?:follow|observ)ing the leader.{0,300}(?:Unreasonable length = \d+|Len error \d+)"),
    "one jute.maxbuffer at every member",
    "The leader sends what is larger than this member's jute.maxbuffer: give it that of the others (SERVER_JVMFLAGS), and "
    "restart it. Its data is not damaged: remove none.",
)
TWICE = Told(
    "zookeeper-id-twice",
    re.compile(r"connection request from a server with our own ID"),
    "members each with a myid of their own",
    "Compare dataDir/myid of all members with the server.N lines of zoo.cfg: two have one number. Correct that of the member "
    "whose address does not fit its line, and restart that one only: the other is well, and whoever has the port that is taken "
    "may be it.",
)
SERVER_DEATHS = (
    HEAP,
    EPOCH_LOST,
    SNAPSHOT_LOST,
    LOG_DAMAGED,
    MYID,
    UNRESOLVED,
    JETTY_PORT,
    PORT_TAKEN,
    OPEN_FILES,
    DIRECTORY,
)
"""What ZooKeeper says as it gives up, besides what any process says of its machine."""
GIVES_UP = re.compile(r", exiting abnormally")
"""What is thrown there of keys, logins and files counts: of its clients it says the same and lives on."""
SLOW_DISK = Told(
    "zookeeper-slow-disk",
    re.compile(r"fsync-ing the write ahead log in \S{1,60} took (?:[4-9]\d{3}|\d{5,9}) ?ms"),
    "a disk that has a transaction written down in milliseconds",
    "Its disk takes seconds for one transaction, and meanwhile it answers neither its leader nor its followers: look at the "
    "disk of its dataLogDir, or dataDir where it has none (iostat -x 1, dmesg; who else reads and writes there: a backup, "
    "Kafka's own data, a neighbour on that storage; credits of a volume of a cloud). It comes back by itself. Give dataLogDir "
    "a disk of its own; longer limits (initLimit, syncLimit) only hide it.",
    is_root=True,
)
"""ZooKeeper warns from a second on (fsync.warningthresholdms): that alone ends nothing."""
SLOW_WITHIN = timedelta(seconds=60)
"""Of what follows from it."""
ENDED_WITH_A_SLOW_DISK = (SLOW_DISK, SYNC_TIMED_OUT)
"""What comes back by itself: whatever else is known of it does not, however slow its disk was meanwhile."""
LIVING_KINDS = (SLOW_DISK, SYNC_TIMED_OUT, LARGER_THAN_TAKEN, TWICE, BEHIND)
"""What a member that runs tells with a warning, or less, and that keeps it out of the quorum for good."""


TOO_MANY_CLIENTS = Told(
    "zookeeper-too-many-clients",
    re.compile(r"Too many connections from /?\S{1,60} - max is \d+"),
    "as many connections from one address as all that is there needs",
    "Raise maxClientCnxns in the zoo.cfg of every member (all nodes of one machine share its address, with "
    "keeperless-activities where that is there), and restart the members one by one; and find who holds them (`cons` at that "
    "member, `ss -tnp` at that address).",
)
TOO_MANY_IN_ALL = Told(
    "zookeeper-too-many-connections",
    re.compile(r"Too many connections (?:\d+ - max is \d+|max allowed is \d+)"),
    "as many connections to a member as all its clients need",
    "Raise maxCnxns in the zoo.cfg of every member, or take it out (it is not limited unless it is set), and restart the "
    "members one by one; and find who holds so many (`cons` at that member).",
)
CLIENT_AHEAD = Told(
    "zookeeper-behind-its-client",
    re.compile(r"as it has seen zxid 0x\w{1,20} our last zxid is 0x\w{1,20}"),
    "members that have what the cluster's nodes have seen",
    "Compare `srvr` (Zxid) of all members. Where that one only is behind, find what keeps it (its log, its disk): the node "
    "gets its session from another one meanwhile. Where all are, the ensemble was put back to older data than the brokers "
    "have seen: restart none that runs, and put the newest data back first.",
)
HANDSHAKE = Told(
    "zookeeper-handshake-failed",
    re.compile(r"Unsuccessful handshake with session 0x\w{1,20}|Authentication failed for session 0x\w{1,20}"),
    "certificates that members and nodes accept of each other",
    "The lines around it in that log say what it does not accept: a certificate out of date, or of an authority that its trust "
    "store has not. Compare the node's zookeeper.ssl.* stores with the members' ssl.* ones.",
)
TURNS_AWAY = (TOO_MANY_CLIENTS, TOO_MANY_IN_ALL, CLIENT_AHEAD, HANDSHAKE)
"""Why a member that serves gives somebody no session."""


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
