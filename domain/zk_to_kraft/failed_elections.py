"""Why a broker in ZooKeeper mode that was elected does not become the controller: a znode that it cannot read. Pure.

Kafka names no path there. Each kind of znode has a class that decodes it (kafka.zk.ZkData), and that one is in the trace.
"""

import re
from collections.abc import Sequence

from domain.diagnosis.logs.lines import FRAME, OF_A_TRACE, current

FEATURE = "/feature"
MEND_FEATURE = (
    f"In zkCli.sh: delete {FEATURE}. The broker that is elected next creates it again; in ZooKeeper mode Kafka 3.9 keeps no "
    "setting in it. Find what wrote it (a GUI that stores the quotes, a script), or it does so again."
)
MEND_OTHER = (
    "Correct its content: as Kafka writes it, from another znode of its kind, from a backup, or by what a tool changed last. "
    "The next broker that is elected then continues by itself."
)
FAILED = re.compile(r"Error while electing or becoming controller on broker \d+")
DECODING = re.compile(r"^\s*at kafka\.zk\.(\w{1,60}?)(?:Sequence)?ZNode\$\.decode")
PATHS = {
    "Feature": FEATURE,
    "Controller": "/controller",
    "ControllerEpoch": "/controller_epoch",
    "BrokerId": "one of /brokers/ids",
    "TopicId": "one of /brokers/topics",
    "Topic": "one of /brokers/topics",
    "TopicPartitionState": "a partition's state below /brokers/topics",
    "ConfigEntity": "one of /config",
    "ReassignPartitions": "/admin/reassign_partitions",
    "PreferredReplicaElection": "/admin/preferred_replica_election",
    "LogDirEventNotification": "one of /log_dir_event_notification",
    "IsrChangeNotification": "one of /isr_change_notification",
}


def unread_znode(lines: Sequence[str]) -> str | None:
    """Which the last failed election of this broker could not read; `None` where it did not fail lately, or not of that."""
    newest: str | None = None
    is_below = False
    for line in current(lines):
        if FAILED.search(line):
            is_below, newest = True, None
        elif not (FRAME.match(line) or OF_A_TRACE.match(line)):
            is_below = False
        elif is_below and newest is None and (found := DECODING.match(line)):
            newest = PATHS.get(found[1], f"a znode of kind {found[1]}")
    return newest
