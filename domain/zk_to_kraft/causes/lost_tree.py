"""ZooKeeper answers, and what it answers with is not this cluster's: its data is gone, or another ensemble answers, or two do.
Pure.

One entry, in place of one for each znode that is missing or strange: whoever made those one by one would write into somebody
else's ensemble, or make the loss of the data final.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from domain.cluster import servers_in
from domain.diagnosis.causes.torn_ensemble import ARE_TWO, Side, majority_of, sides_of
from domain.errors import Obstacle
from domain.observed.observation import ZooKeeperView
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import Cause, Looked, cause
from domain.zk_to_kraft.situation import Claim, QuorumState
from domain.zk_to_kraft.waits import ZkWait

OF_ITS_TREE = frozenset({"PF03", "PF11", "GF02", "GF11", WaitReason.BROKERS_NOT_REGISTERED, ZkWait.DUAL_WRITE_NOT_CURRENT})
"""What follows from it, but for members that do not serve, and what is about a node's own directories."""
EXPLAINED = (
    *(WaitReason.PART_UNKNOWN, WaitReason.BROKERS_NOT_REGISTERED, ZkWait.DUAL_WRITE_NOT_CURRENT, ZkWait.NO_CONTROLLER),
    *(ZkWait.FAILOVER_WOULD_HURT, WaitReason.PREFLIGHT_BLOCKERS, ZkWait.COPY_LEFT_OVER, ZkWait.COPY_NOT_COMPLETE),
    *(WaitReason.STATE_NOT_UNDERSTOOD, WaitReason.PARTITIONS_NOT_IN_SYNC),
)
TOUCH_NOTHING = "Create nothing there, restart no broker, and start no member that has no data. Brokers that run go on. "
NOT_YET = "Start it only once ZooKeeper has this cluster's data again, and write nothing into ZooKeeper meanwhile. Then: "
CORRECT_ADDRESS = (
    "Correct what leads there: zookeeper.connect with its chroot, a name (/etc/hosts, DNS), a virtual address, a tunnel, a "
    "rule of the firewall."
)
PUT_BACK = (
    "Look first whether this is the right ensemble and chroot, and whether dataDir and dataLogDir of its members are mounted, "
    "and are those of before. Where they are, stop all members, keep a copy of every version-2 that is left, give a majority "
    "the one with the highest zxid (the hexadecimal ends of log.* and snapshot.*), or a backup, and start them."
)


def without_those_of_a_lost_tree(looked: Looked, causes: Iterable[Cause]) -> Iterator[Cause]:
    """The causes; where ZooKeeper's tree is not this cluster's, that one first, and nothing that follows from it."""
    lost = _lost(looked)
    if lost is not None:
        yield lost
    for found in causes:
        entry = found.blocker
        is_of_its_own = entry.object.startswith("zookeeper ") or (entry.code == "PF03" and entry.object != "/cluster/id")
        if lost is not None and entry.code == WaitReason.NODE_DOWN:
            yield replace(found, blocker=entry.model_copy(update={"fix": f"{NOT_YET}{entry.fix}"}))
        elif lost is None or is_of_its_own or entry.code not in OF_ITS_TREE:
            yield found


TORN = (
    "Look again after half a minute: a leader that was cut off from the others goes on for a while (syncLimit), and gives "
    "up by itself. Where it lasts: restart no broker and no controller, and start nothing that connects to ZooKeeper: what "
    "connects anew may land on the wrong side. "
)
FIND = (
    "Find which side has the cluster (zkCli.sh -server MEMBER get /controller, ls /brokers/ids: the brokers that run), and "
    "stop the servers of the other one; keep their data. "
)
GROW = (
    "Then compare the server.N lines of all members' zoo.cfg, which differ. An ensemble grows by one member at a time, all of "
    "them restarted with the same list (or by reconfig), and never by as many at once as are a majority of the new list."
)


def _torn(looked: Looked) -> Cause | None:
    sides, told = sides_of(looked.hints.torn), [p for p in looked.observation.unanswered if p.obstacle is Obstacle.TORN]
    if len(sides) > 1:
        return _of_sides(looked, sides)
    return _cause(looked, told[0].why, f"{TORN}{FIND}{GROW}", expected=ONE) if told else None


ONE = "one ensemble, with one leader"


def _of_sides(looked: Looked, sides: Sequence[Side]) -> Cause:
    right = majority_of(sides, len(looked.hints.servers))
    observed = f"{ARE_TWO}: {' against '.join(side.in_words for side in sides)}"
    if right is None:
        return _cause(looked, observed, f"{TORN}{FIND}{GROW}", expected=ONE)
    wrong = ", ".join(address for side in sides if side is not right for address in side.members)
    fix = (
        f"{TORN}Make sure first that {right.names} have the cluster (zkCli.sh -server MEMBER get /controller, ls "
        "/brokers/ids: the brokers that run): where the other side has it, do the reverse. Touch nothing of those. Stop "
        f"{wrong}, and who else is one ensemble with that: the server.N lines of its zoo.cfg name them, and those of the "
        "others do not. Brokers whose session was there come back to the others by themselves. Put its zoo.cfg back as "
        "theirs is, move version-2 of its dataDir and dataLogDir aside (keep it, and myid), and start it: it copies the "
        f"tree from their leader. {GROW}"
    )
    return _cause(looked, observed, fix, f"zookeeper {wrong}", ONE)


def _lost(looked: Looked) -> Cause | None:
    zookeeper = looked.observation.zookeeper
    if looked.situation.quorum is QuorumState.POST_MIGRATION:
        return None
    if (torn := _torn(looked)) is not None:
        return torn
    if zookeeper is None:
        return None
    where = ", ".join(servers_in(looked.spec.zookeeper.connect))
    if _is_empty(zookeeper):
        observed = f"{where} answer, and have nothing of this cluster: no /controller_epoch, no broker, no topic"
        return _cause(looked, f"{observed}. Its data is gone, or this is another place", f"{TOUCH_NOTHING}{PUT_BACK}")
    if _is_anothers(looked, zookeeper):
        observed = f"{where} answer with another cluster's data: /cluster/id says {zookeeper.cluster_id}, and nothing else fits"
        return _cause(looked, observed, f"Write nothing there: it may be somebody else's. {TOUCH_NOTHING}{CORRECT_ADDRESS}")
    return None


def _cause(looked: Looked, observed: str, fix: str, about: str = "ZooKeeper", expected: str = "") -> Cause:
    wanted = expected or f"the data of cluster {looked.spec.cluster_id}"
    return cause(looked, "GF11", about, *EXPLAINED, observed=observed, expected=wanted, fix=fix)


def _is_empty(zookeeper: ZooKeeperView) -> bool:
    """Whatever /cluster/id says: a broker that starts on an empty tree makes one, and all parents, before it dies of it."""
    return zookeeper.controller_epoch is None and not zookeeper.broker_ids and not zookeeper.assigned_broker_ids


def _is_anothers(looked: Looked, zookeeper: ZooKeeperView) -> bool:
    """Where only /cluster/id says so, somebody has written it. Other clusters' brokers may have the same numbers as ours."""
    if zookeeper.cluster_id in {None, looked.spec.cluster_id}:
        return False
    ours = {broker.id for broker in looked.spec.brokers}
    is_unknown = ours.isdisjoint(zookeeper.broker_ids) and ours.isdisjoint(zookeeper.assigned_broker_ids)
    is_unclaimed = looked.situation.quorum is QuorumState.MIGRATION and looked.situation.claim is not Claim.KRAFT
    return is_unknown or is_unclaimed or bool(looked.hints.forgotten)
