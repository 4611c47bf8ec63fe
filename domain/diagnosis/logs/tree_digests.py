"""What a member's log says of its tree: the leader sends a digest of its own with each transaction (DataTree.java of 3.6 on).

Who differs from the leader says so, also where the leader is wrong: the leader itself never does. What goes on is said once,
and then every quarter of an hour; what is over, once more with the next transaction that fits (RateLogger). So only what is
said of the epoch that the member is in counts: whoever led before may have been mended. Pure.
"""

import re
from collections.abc import Sequence

from domain.diagnosis.logs.lines import Found, Told, first_of
from domain.diagnosis.logs.zookeeper_deaths import of_last_start

MOVE_NOTHING_YET = (
    "Move nothing aside yet: who starts without data gets what the leader has, also where that is wrong. Find out which "
    "tree is right: "
)
OTHER_TREE = Told(
    "zookeeper-digest-differs",
    re.compile(
        r"Digests are not matching\. Value is Zxid\. (?:Last v|V)alue:(\d{1,19})"
        r"|First digest mismatch on txn: -?\d{1,19},-?\d{1,10},(\d{1,19})"
    ),
    "members whose trees have the leader's digest after each transaction",
    f"{MOVE_NOTHING_YET}compare srvr (Zxid, Node count) and zkCli.sh -server MEMBER ls -R / of all members, and get -s of "
    "znodes that all have (mZxid, dataVersion). Who says this differs from the leader: where most members do, the leader is "
    "the odd one.",
)
EPOCH = re.compile(r"(?:Got zxid|setting last processed zxid:) 0x([0-9a-f]{1,16})\b")
"""The first that a follower hears of a leader, or that a member begins to lead with (Follower, Leader)."""
OBSERVES = re.compile(r"Peer state changed: observing - broadcast")
"""An observer tells no zxid of that: it has the tree of its leader then (QuorumPeer)."""


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
