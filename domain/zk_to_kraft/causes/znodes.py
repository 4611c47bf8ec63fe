"""ZooKeeper's tree in a migration: whose /controller is, a tree that is lost or another cluster's, topics without an id."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from domain.cluster import servers_in
from domain.diagnosis.causes.case import Cause
from domain.diagnosis.causes.ensemble import ARE_TWO, Side, majority_of, sides_of
from domain.diagnosis.causes.quotes import complaints
from domain.errors import Obstacle
from domain.observed.observation import ZooKeeperView
from domain.topic_ids import IDS_FIRST, Cure, cure_of_no_id
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import OF_ZOOKEEPER, MigrationCase
from domain.zk_to_kraft.failed_elections import FEATURE, MEND_FEATURE, MEND_OTHER, unread_znode
from domain.zk_to_kraft.situation import Claim, QuorumState
from domain.zk_to_kraft.waits import WAITS, ZkWait

NO_CLAIM = -1
"""`kraftControllerEpoch` of a ZooKeeper controller, if the znode has that field."""


def claim_causes(case: MigrationCase) -> Iterator[Cause]:
    """Yield one cause at most. While a step works on brokers, a moment without a controller is expected."""
    zookeeper = case.observation.zookeeper
    if zookeeper is None or case.situation.quorum not in OF_ZOOKEEPER:
        return
    znode, brokers = zookeeper.controller, [b.id for b in case.spec.brokers]
    if znode is None and zookeeper.broker_ids and not case.in_hand:
        yield _unreadable(case, brokers) or _nobody(case, brokers)
    elif znode is not None and not znode.is_ephemeral and znode.kraft_epoch in {None, NO_CLAIM}:
        yield _of_controller(
            case,
            observed=f"it names broker {znode.broker_id}, and is persistent: no session holds it, so it was written by hand or "
            "restored from a backup. While it exists, no broker can become the controller, and brokers hear of no change",
            fix=f"{IDS_FIRST}In zkCli.sh: delete /controller. The brokers elect a controller immediately.",
        )
    elif znode is not None and znode.is_ephemeral and znode.broker_id not in {*zookeeper.broker_ids, *brokers}:
        yield _of_controller(
            case,
            observed=f"it names broker {znode.broker_id}, which is not registered: a program that is no broker of this cluster "
            "created it, or that broker has lost its registration",
            fix="Run `stat /controller` in zkCli.sh: ephemeralOwner is the session that holds it. Run `cons` and `dump` at the "
            "members: they show which client has that session. If that client is no broker of this cluster, end it. "
            f"{IDS_FIRST}Then delete /controller. The brokers elect a controller immediately.",
        )


def _unreadable(case: MigrationCase, brokers: list[int]) -> Cause | None:
    told = {name: path for i in brokers if (path := unread_znode(case.log(i))) for name in [case.name(i)]}
    if not told:
        return None
    who, path = next(iter(told.items()))
    return _of_controller(
        case,
        observed=f"it does not exist: each elected broker fails before it is the controller, because {path} is not as Kafka "
        f"writes it (stack trace below `Error while electing or becoming controller` in the log of {who})",
        fix=MEND_FEATURE if path == FEATURE else MEND_OTHER,
    )


def _nobody(case: MigrationCase, brokers: list[int]) -> Cause:
    return _of_controller(
        case,
        observed="it does not exist: no broker is the controller, though brokers are registered" + complaints(case, *brokers),
        fix="Wait some seconds: brokers elect a controller by themselves. If the znode is still missing, no broker can create "
        "it. Then look at the ACL of / in ZooKeeper (getAcl /), and in the brokers' logs for `Error while electing or becoming "
        "controller`.",
    )


def _of_controller(case: MigrationCase, *, observed: str, fix: str) -> Cause:
    return case.cause(
        "GF11",
        "/controller",
        ZkWait.NO_CONTROLLER,
        WaitReason.STATE_NOT_UNDERSTOOD,
        WaitReason.PREFLIGHT_BLOCKERS,
        observed=observed,
        expected="an ephemeral znode of the broker that is the controller",
        fix=fix,
    )


OF_ITS_TREE = frozenset({"PF03", "PF11", "GF02", "GF11", WaitReason.BROKERS_NOT_REGISTERED, ZkWait.DUAL_WRITE_NOT_CURRENT})
"""What follows from it, but for members that do not serve, and what is about a node's own directories."""
EXPLAINED = (
    *(WaitReason.PART_UNKNOWN, WaitReason.BROKERS_NOT_REGISTERED, ZkWait.DUAL_WRITE_NOT_CURRENT, ZkWait.NO_CONTROLLER),
    *(ZkWait.FAILOVER_WOULD_HURT, WaitReason.PREFLIGHT_BLOCKERS, ZkWait.COPY_LEFT_OVER, ZkWait.COPY_NOT_COMPLETE),
    *(WaitReason.STATE_NOT_UNDERSTOOD, WaitReason.PARTITIONS_NOT_IN_SYNC),
)
TOUCH_NOTHING = "Create nothing there, restart no broker, and start no member that has no data. Running brokers continue. "
NOT_YET = "Start it only once ZooKeeper has this cluster's data again, and write nothing into ZooKeeper meanwhile. Then: "
CORRECT_ADDRESS = (
    "Correct what leads there: zookeeper.connect with its chroot, a name (/etc/hosts, DNS), a virtual address, a tunnel, a "
    "rule of the firewall."
)
PUT_BACK = (
    "First check that this is the right ensemble and chroot, and that dataDir and dataLogDir of its members "
    "are mounted, and the same as before. If they are, stop all members, and keep a copy of every version-2 "
    "that is left. Give a majority the one with the highest zxid (the hexadecimal ends of log.* and "
    "snapshot.*), or a backup, and start them."
)


def without_those_of_a_lost_tree(case: MigrationCase, causes: Iterable[Cause]) -> Iterator[Cause]:
    """The causes; where ZooKeeper's tree is not this cluster's, that one first, and nothing that follows from it."""
    lost = _lost(case)
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
    "Check again after half a minute: a leader that was cut off from the others continues for a while "
    "(syncLimit), and gives up by itself. If it lasts, restart no broker and no controller, and start "
    "nothing that connects to ZooKeeper: a new connection may reach the wrong side. "
)
FIND = (
    "Find which side has the cluster (zkCli.sh -server MEMBER get /controller, ls /brokers/ids: the brokers that run), and "
    "stop the servers of the other one; keep their data. "
)
GROW = (
    "Then compare the server.N lines of all members' zoo.cfg, which differ. An ensemble grows by one member "
    "after the other. Each time all of them are restarted with the same list (or by reconfig). Never add as "
    "many in one step as are a majority of the new list."
)


def _torn(case: MigrationCase) -> Cause | None:
    sides, told = sides_of(case.hints.torn), [p for p in case.observation.unanswered if p.obstacle is Obstacle.TORN]
    if len(sides) > 1:
        return _of_sides(case, sides)
    return _of_tree(case, told[0].why, f"{TORN}{FIND}{GROW}", expected=ONE) if told else None


ONE = "one ensemble, with one leader"


def _of_sides(case: MigrationCase, sides: Sequence[Side]) -> Cause:
    right = majority_of(sides, len(case.hints.servers))
    observed = f"{ARE_TWO}: {' against '.join(side.in_words for side in sides)}"
    if right is None:
        return _of_tree(case, observed, f"{TORN}{FIND}{GROW}", expected=ONE)
    wrong = ", ".join(address for side in sides if side is not right for address in side.members)
    fix = (
        f"{TORN}Make sure first that {right.names} have the cluster (zkCli.sh -server MEMBER get /controller, ls "
        "/brokers/ids: the brokers that run): where the other side has it, do the reverse. Touch nothing of those. Stop "
        f"{wrong}, and who else is one ensemble with that: the server.N lines of its zoo.cfg name them, and those of the "
        "others do not. Brokers whose session was there come back to the others by themselves. Put its zoo.cfg back as "
        "theirs is, move version-2 of its dataDir and dataLogDir aside (keep it, and myid), and start it: it copies the "
        f"tree from their leader. {GROW}"
    )
    return _of_tree(case, observed, fix, f"zookeeper {wrong}", ONE)


def _lost(case: MigrationCase) -> Cause | None:
    zookeeper = case.observation.zookeeper
    if case.situation.quorum is QuorumState.POST_MIGRATION:
        return None
    if (torn := _torn(case)) is not None:
        return torn
    if zookeeper is None:
        return None
    where = ", ".join(servers_in(case.spec.ensemble.connect))
    if _is_empty(zookeeper):
        observed = f"{where} answer, and have nothing of this cluster: no /controller_epoch, no broker, no topic"
        return _of_tree(case, f"{observed}. Its data is gone, or this is another place", f"{TOUCH_NOTHING}{PUT_BACK}")
    if _is_anothers(case, zookeeper):
        observed = f"{where} answer with another cluster's data: /cluster/id says {zookeeper.cluster_id}, and nothing else fits"
        return _of_tree(
            case, observed, f"Write nothing there: it may belong to another cluster. {TOUCH_NOTHING}{CORRECT_ADDRESS}"
        )
    return None


def _of_tree(case: MigrationCase, observed: str, fix: str, about: str = "ZooKeeper", expected: str = "") -> Cause:
    wanted = expected or f"the data of cluster {case.spec.cluster_id}"
    return case.cause("GF11", about, *EXPLAINED, observed=observed, expected=wanted, fix=fix)


def _is_empty(zookeeper: ZooKeeperView) -> bool:
    """Whatever /cluster/id says: a broker that starts on an empty tree makes one, and all parents, before it dies of it."""
    return zookeeper.controller_epoch is None and not zookeeper.broker_ids and not zookeeper.assigned_broker_ids


def _is_anothers(case: MigrationCase, zookeeper: ZooKeeperView) -> bool:
    """Where only /cluster/id says so, somebody has written it. Other clusters' brokers may have the same numbers as ours."""
    if zookeeper.cluster_id in {None, case.spec.cluster_id}:
        return False
    ours = {broker.id for broker in case.spec.brokers}
    is_unknown = ours.isdisjoint(zookeeper.broker_ids) and ours.isdisjoint(zookeeper.assigned_broker_ids)
    is_unclaimed = case.situation.quorum is QuorumState.MIGRATION and case.situation.claim is not Claim.KRAFT
    return is_unknown or is_unclaimed or bool(case.hints.forgotten)


MOST_TOPICS = 5


def topic_id_causes(case: MigrationCase) -> Iterator[Cause]:
    """Yield one cause for each of the first few topics. Once the log is final, no node asks ZooKeeper any more."""
    zookeeper = case.observation.zookeeper
    if zookeeper is None or case.situation.quorum is QuorumState.POST_MIGRATION:
        return
    on_disk = {topic.znode.name: topic for topic in case.found.topics}
    is_led_by_zookeeper = case.situation.claim is Claim.ZOOKEEPER
    for name in zookeeper.topics_without_id[:MOST_TOPICS]:
        found = on_disk.get(name)
        cure = UNREAD if found is None else cure_of_no_id(found, case.spec, is_led_by_zookeeper=is_led_by_zookeeper)
        yield case.cause(
            ZkWait.TOPIC_WITHOUT_ID,
            f"topic {name}",
            observed=cure.observed,
            expected="a topic_id in its znode, the same as in partition.metadata of every replica",
            fix=cure.fix,
        )


UNREAD = Cure("no topic_id in its znode; what brokers have on disk was not read", WAITS[ZkWait.TOPIC_WITHOUT_ID].means)
