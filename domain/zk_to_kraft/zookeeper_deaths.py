"""Why a server of the ensemble does not serve, by its own log: that of ZooKeeper 3.8 as Kafka 3.9 brings it. Pure.

Read where the cluster's specification says where the log is (`zookeeper.members`).
"""

import re
from collections.abc import Sequence

from domain.zk_to_kraft.log_lines import Found, Told, first_of
from domain.zk_to_kraft.machine_deaths import MACHINE_DEATHS
from domain.zk_to_kraft.said import Said, said_in, shown

START_OF_SERVER = re.compile(r"Reading configuration from: ")
"""The first line of every start (QuorumPeerConfig)."""
HOLLOW = re.compile(
    r"Exiting JVM with code|exiting abnormally|Unable to run quorum server|Unable to load database on disk|"
    r"ZooKeeperServer not running|Cannot open (?:secure )?channel to"
)
"""Errors that only say that there was one, or that others are not there."""

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
    re.compile(r"myid file is missing|serverid \S{0,40} is not a number|Invalid config, exiting abnormally"),
    "a configuration as the other members have it, and dataDir/myid with this member's number",
    "Compare its zoo.cfg and dataDir/myid with those of the other members; whether dataDir is mounted.",
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
    "Another process listens at its client, quorum or election port (`ss -ltnp`), often the server of before: end it, then "
    "start this one.",
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

SERVER_DEATHS = (HEAP, EPOCH_LOST, SNAPSHOT_LOST, LOG_DAMAGED, MYID, BEHIND, PORT_TAKEN, DIRECTORY)
"""What ZooKeeper says as it gives up, besides what any process says of its machine."""


def death_of_server(lines: Sequence[str]) -> Found | None:
    """The last known words of its last start."""
    kinds = (*SERVER_DEATHS, *MACHINE_DEATHS)
    found = [first_of(one.text, kinds) for one in _own(lines) if not one.is_of_the_living]
    return next((one for one in reversed(found) if one is not None), None)


def errors_of_server(lines: Sequence[str]) -> str:
    """The last errors of its last start that say something; empty where it tells of none."""
    return shown([one for one in _own(lines) if one.is_error and not HOLLOW.search(one.text)])


def _own(lines: Sequence[str]) -> list[Said]:
    starts = [number for number, line in enumerate(lines) if START_OF_SERVER.search(line)]
    return list(said_in(lines[starts[-1] if starts else 0 :]))
