"""ZooKeeper's ensemble as a whole: its quorum, two ensembles in place of one, znodes that are missing, work under way in it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from domain.checks.check import some
from domain.diagnosis.causes.case import Case, Cause
from domain.diagnosis.causes.hints import Serving
from domain.diagnosis.causes.members import alone, differing, emptied, is_emptied, member_cause
from domain.diagnosis.causes.reachability import unresolved_cause
from domain.diagnosis.causes.replication import CANCEL_REASSIGNMENT
from domain.observed.ensemble import MemberTree, Trees
from domain.topic_ids import IDS_FIRST
from domain.waits import WaitReason

LEAST_OF_EPOCH = 1
"""Transactions of its epoch that a leader has made: before that its followers may show the last one of the epoch before."""
ARE_TWO = "the servers of zookeeper.connect are two ensembles with two trees"


@dataclass(frozen=True)
class Side:
    """Servers that follow one leader, or that one follows whom nobody named. `members`: by `host:port`."""

    members: Trees

    @property
    def names(self) -> str:
        return ", ".join(self.members)

    @property
    def in_words(self) -> str:
        return ", ".join(
            f"{address} ({_role(tree)}, zxid {tree.zxid:#x}, {tree.znodes} znodes)" for address, tree in self.members.items()
        )


def is_doubtful(trees: Trees) -> bool:
    """Whether one look lets it seem so: then another one tells."""
    return are_torn(trees, trees) or sum(_is_head(tree) for tree in trees.values()) > 1


def are_torn(first: Trees, then: Trees) -> bool:
    """`then`: asked after every answer of `first` has come."""
    heads = [address for address, tree in then.items() if _is_head(tree)]
    both = [address for address in heads if address in first and _is_head(first[address])]
    if any(then[address].is_alone for address in heads) and len(heads) < len(then):
        return True
    apart = any(one != other and _is_beyond(first[one], then[other]) for one in both for other in both)
    return apart or (len(heads) == 1 and bool(_others(first, heads[0]) & _others(then, heads[0])))


def _is_beyond(earlier: MemberTree, later: MemberTree) -> bool:
    return earlier.zxid > later.zxid or earlier.received > later.received


def _others(trees: Trees, head: str) -> set[str]:
    """Who is in another epoch than this leader."""
    if head not in trees or trees[head].zxid & 0xFFFFFFFF < LEAST_OF_EPOCH:
        return set()
    return {address for address, tree in trees.items() if tree.epoch != trees[head].epoch}


def sides_of(trees: Trees) -> list[Side]:
    """Of those that are torn, the larger one first. A follower is with the leader that it is nearest to."""
    heads = [address for address, tree in trees.items() if _is_head(tree)]
    led: dict[str, dict[str, MemberTree]] = {address: {address: trees[address]} for address in heads}
    unled: dict[str, MemberTree] = {}
    for address, tree in trees.items():
        if address in led:
            continue
        near = [head for head in heads if not trees[head].is_alone and trees[head].epoch == tree.epoch]
        nearest = min(near, key=lambda head: abs(trees[head].zxid - tree.zxid), default=None)
        (led[nearest] if nearest is not None else unled)[address] = tree
    sides = [Side(members) for members in (*led.values(), unled) if members]
    return sorted(sides, key=lambda side: -len(side.members))


def majority_of(sides: Sequence[Side], servers: int) -> Side | None:
    """The side that most of the servers are on that everybody connects to: theirs is the tree that the brokers know."""
    first = sides[0] if sides else None
    return first if first is not None and 2 * len(first.members) > servers else None


def _is_head(tree: MemberTree) -> bool:
    return tree.is_leader or tree.is_alone


def _role(tree: MemberTree) -> str:
    return "standalone" if tree.is_alone else "leader" if tree.is_leader else "follower"


NOT_THERE = frozenset({Serving.SILENT, Serving.REFUSED, Serving.UNREACHED})


def zookeeper_causes(case: Case) -> Iterator[Cause]:
    """GF11. Of a quorum that is lost the members that are gone are the cause; who is left serves nobody because of them."""
    if not case.facts.uses_zookeeper:
        return
    yield from differing(case)
    yield from _cluster_id(case)
    yield from _controller_epoch(case)
    yield from _missing(case)
    servers = case.hints.servers
    for address in (a for a, serving in servers.items() if serving is Serving.ALONE and len(servers) > 1):
        yield alone(case, address)
    yield from (emptied(case, address) for address in servers if is_emptied(case, address))
    gone = [address for address, serving in servers.items() if serving in NOT_THERE]
    idle = [address for address, serving in servers.items() if serving is Serving.NO]
    is_lost = case.observation.zookeeper is None
    explained_idle = 2 * len(gone) >= len(servers)
    busy = [address for address, serving in servers.items() if serving in {Serving.BUSY, Serving.STUCK}]
    for address in gone + busy + ([] if explained_idle else idle):
        is_named = servers[address] is not Serving.UNREACHED or not case.is_unresolved(address)
        yield member_cause(case, address, is_lost=is_lost) if is_named else unresolved_cause(case)
    is_torn = len(servers) > 1 and Serving.ALONE in servers.values()
    if is_lost and not is_torn and not gone and not busy and (explained_idle or not idle):
        why = next((part.in_words for part in case.observation.unanswered if part.what == "zookeeper"), "no answer")
        yield case.cause(
            "GF11",
            "ZooKeeper",
            WaitReason.PART_UNKNOWN,
            observed=why,
            expected="the ensemble answers",
            fix=(NEEDS_LOGIN if "RequireSasl" in why else "")
            + "Check the credentials, the chroot, and the znode that is named: every server of the ensemble that "
            "answers says that it serves. Members that close connections immediately have reached maxClientCnxns for "
            "our address (`cons` shows who holds them). If nothing answers in time, the members may be losing each "
            "other: check again.",
        )


NEEDS_LOGIN = (
    "The servers ask every client for a login (zookeeper.sessionRequireClientSASLAuth, or enforce.auth.enabled): brokers and "
    "controllers without one are shut out too. Start the servers without that option, or give everybody a login first. "
)


def _cluster_id(case: Case) -> Iterator[Cause]:
    """What a broker compares its directories with when it starts, and makes anew where it is not there (PF03)."""
    zookeeper, wanted = case.observation.zookeeper, case.cluster_of_all or case.spec.cluster_id
    if zookeeper is None or zookeeper.cluster_id == wanted:
        return
    yield case.cause(
        "PF03",
        "/cluster/id",
        WaitReason.PREFLIGHT_BLOCKERS,
        observed="it does not exist" if zookeeper.cluster_id is None else f"it says {zookeeper.cluster_id}",
        expected=wanted,
        fix=f'Put {{"version":"1","id":"{wanted}"}} there before a broker restarts: with another id, or with none, it would '
        "not come back.",
    )


def _controller_epoch(case: Case) -> Iterator[Cause]:
    """PF11: every claim of a controller begins with this znode, in ZooKeeper and in KRaft. The active one works without."""
    zookeeper = case.observation.zookeeper
    if zookeeper is None or zookeeper.controller_epoch is not None:
        return
    claim = zookeeper.controller.kraft_epoch if zookeeper.controller is not None else None
    number = (
        f"{claim}, the epoch of KRaft's claim"
        if claim is not None
        else "the epoch of the active controller (`epoch` in its log, or the largest controller_epoch in partitions' states), "
        "or a larger one, because brokers ignore a controller with a smaller one"
    )
    yield case.cause(
        "PF11",
        "/controller_epoch",
        WaitReason.PREFLIGHT_BLOCKERS,
        observed="it does not exist, or is no number: it was deleted or written by hand",
        expected="the epoch of the last controller",
        fix=f"In zkCli.sh: create /controller_epoch NUMBER. NUMBER is {number}. Do it before the next election: without this "
        "znode no controller can claim the cluster.",
    )


def _missing(case: Case) -> Iterator[Cause]:
    for path in case.hints.missing:
        yield case.cause(
            "GF11",
            path,
            observed="it does not exist: it was deleted, with all that was below it",
            expected="the znodes that brokers create at their start, and need while they run",
            fix=f"In zkCli.sh: create {path}, with nothing in it (a broker that starts creates it as well). Then put back what "
            f"was below it, from a backup. {IDS_FIRST}Then elect another controller (delete /controller while ZooKeeper has "
            "the metadata): watches on the old znode do not see the new one.",
        )


AWAIT_DELETION = (
    "Let it finish: it ends when every broker that holds a replica serves. If it does not end, a broker or a "
    "log directory is gone, or delete.topic.enable is false at the controller."
)
BY_ZOOKEEPER = (
    "in ZooKeeper (/admin), from which no controller takes orders since the copy: KRaft has the metadata. A "
    "tool that uses ZooKeeper (CMAK, --zookeeper) has written it"
)
NOBODYS_ORDER = (
    "Delete that znode (/admin/delete_topics/NAME, /admin/preferred_replica_election) before anything else: in a rollback the "
    "first ZooKeeper controller would carry it out. If you want it done, ask the brokers for it (--bootstrap-server). Keep "
    "that tool away from ZooKeeper."
)
AWAIT_ELECTION = "Let it finish. If it does not end, it was begun while no controller was active: delete its znode once one is."
RESTORE_TOPIC = (
    "Restart no broker. Deleting its znodes deletes no topic: brokers serve it until they restart, and then "
    "treat its replicas as strays. If the topic is needed, write /brokers/topics/NAME and "
    "/brokers/topics/NAME/partitions/N/state again: topic_id is in partition.metadata of its directories, "
    "replicas and leaders are what kafka-topics.sh --describe shows. Then delete /controller, so that a "
    "controller reads them. If it is not needed, write them too, and delete the topic with kafka-topics.sh."
)


def forgotten_causes(case: Case) -> Iterator[Cause]:
    """GF02: what a restart, and the copy, would lose."""
    if case.hints.forgotten:
        yield case.cause(
            "GF02",
            f"topic {some(case.hints.forgotten)}",
            observed="brokers serve it, and ZooKeeper has nothing of it: its znodes in /brokers/topics were deleted",
            expected="every topic that brokers serve is in ZooKeeper",
            fix=RESTORE_TOPIC,
        )


def pending_causes(case: Case) -> Iterator[Cause]:
    """GF02: work in flight that keeps replicas moving, or that the copy would not take over."""
    zookeeper = case.observation.zookeeper
    if zookeeper is None or not case.facts.uses_zookeeper:
        return
    election = ("preferred replica election",) if zookeeper.is_preferred_election_pending else ()
    is_nobodys = case.facts.is_kraft_in_charge
    for what, names, fix in (
        ("partition reassignment", zookeeper.reassignments, CANCEL_REASSIGNMENT),
        ("topic deletion", zookeeper.pending_deletions, NOBODYS_ORDER if is_nobodys else AWAIT_DELETION),
        ("election", election, NOBODYS_ORDER if is_nobodys else AWAIT_ELECTION),
    ):
        if names:
            whose = BY_ZOOKEEPER if fix is NOBODYS_ORDER else ""
            yield case.cause(
                "GF02",
                what,
                observed=f"{'ordered' if whose else 'under way'} for {some(names)}{whose}",
                expected="nothing under way while nodes restart, and before the copy",
                fix=fix,
            )
