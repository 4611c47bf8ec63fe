"""Causes that lie with the copy, before it and after it: what it waits for, what would kill it, and dual write."""

from collections.abc import Iterator, Sequence

from domain.checks.check import some
from domain.diagnosis.causes.case import Cause
from domain.diagnosis.causes.quotes import complaints
from domain.diagnosis.logs.lines import Found, found_in
from domain.observed.ensemble import are_alike
from domain.observed.observation import MigrationGauge, MigrationZnode, ZooKeeperView
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import MigrationCase, Unwritten, before_a_failover
from domain.zk_to_kraft.causes.failed_writes import (
    GIVEN_UP,
    failed_in,
    in_words,
    is_of_a_change,
    is_of_a_stray,
    is_without_error,
    offsets_of,
)
from domain.zk_to_kraft.migration_lines import (
    CHECK_OP_FAILED,
    CLAIM_REFUSED,
    NO_BROKERS_KNOWN,
    OUT_OF_PLACE,
    SUPERSET,
    UNHANDLED,
    UNKNOWN_CONFIG,
    WAITING_FOR_BROKERS,
    WRITE_FAILED,
    WRITE_REFUSED,
)
from domain.zk_to_kraft.modes import BrokerMode
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.probed import probed
from domain.zk_to_kraft.reduction import offset_distance
from domain.zk_to_kraft.situation import Claim, DualWrite, QuorumState
from domain.zk_to_kraft.waits import WAITS, ZkWait
from domain.zk_to_kraft.znode_repairs import repair_of

FLOOD = 5
"""Changes in the seconds in which the log is read: more than an operator makes by hand. Each costs ZooKeeper a few writes."""
STOP_CHANGING = (
    "Find what changes the cluster's metadata without pause (the names show whose it is; request logs of the "
    "brokers, kafka.request.logger, name the client): an operator that reconciles in a loop, a script. Pause "
    "it until finalize, and ZooKeeper catches up by itself. It writes one transaction after the other, which "
    "is slower than these changes."
)
CATCHING_UP = (
    "Check again in a moment: it may be catching up after a burst of changes, and does so by itself. If the "
    "distance does not fall, check how fast ZooKeeper writes (`mntr`: zk_avg_latency, zk_fsynctime), and "
    "read the active controller's log."
)
CONTROLLER, MIGRATION = "/controller", "/migration"
MENDED_BY_ANOTHER = frozenset({CHECK_OP_FAILED, *GIVEN_UP})
"""What another active controller writes in the end."""
FIND_THE_ZNODE = (
    " Which one it is: compare zkCli.sh ls /brokers/topics, at each member, with kafka-topics.sh --list. What the controller "
    "has written, kafka-dump-log.sh --cluster-metadata-decoder shows at that offset."
)
MEND_THE_TREE = (
    "First fix the member that has another tree, as the entry GF11 says; do not write its znodes by hand. "
    "Then restart the active controller. "
)


def copy_causes(case: MigrationCase) -> Iterator[Cause]:
    """What keeps the copy from beginning, or from ending."""
    if case.situation.quorum in {QuorumState.PRE_MIGRATION, QuorumState.MIGRATION}:
        yield from _awaited_brokers(case)
    for suspect in case.found.unreadable if probed(case.observation).poisoned_znodes is None else ():
        yield case.cause(
            ZkWait.COPY_CANNOT_FINISH,
            suspect.what,
            ZkWait.COPY_NOT_COMPLETE,
            observed=f"the copy, which has not begun, will not take it over: {suspect.why}",
            expected="every znode can be copied",
            fix=f"Repair it now, before the last broker goes into migration mode. {repair_of(suspect.what)}",
        )
    for suspect in probed(case.observation).poisoned_znodes or ():
        yield case.cause(
            ZkWait.COPY_CANNOT_FINISH,
            suspect.what,
            observed=suspect.why,
            expected="every znode can be copied",
            fix=f"Ask for a rollback unless it is under way. Then, before the next attempt: {repair_of(suspect.what)}",
        )
    is_own = case.situation.quorum in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION}
    if not is_own and (case.situation.is_copy_left_over or case.situation.is_copy_stale):
        znode = case.observation.zookeeper.migration if case.observation.zookeeper is not None else None
        yield case.cause(
            ZkWait.COPY_LEFT_OVER,
            MIGRATION,
            observed=f"it describes a copy that this quorum has not made (offset {znode.offset if znode else None})",
            expected="no such znode, or one with offset -1",
            fix=WAITS[ZkWait.COPY_LEFT_OVER].means,
        )
    if case.situation.quorum is QuorumState.PRE_MIGRATION:
        for lines in case.hints.logs.values():
            yield from _brokers_unknown(case, lines)


def _awaited_brokers(case: MigrationCase) -> Iterator[Cause]:
    """Ids in assignments or registrations that no broker of the quorum has: the driver waits for them for ever.

    After the copy they keep nobody waiting, but a stranger that is registered does not belong there.
    """
    zookeeper = case.observation.zookeeper
    if zookeeper is None:
        return
    described = {b.id for b in case.spec.brokers}
    is_before = case.situation.quorum is QuorumState.PRE_MIGRATION
    gone = {i for i in zookeeper.assigned_broker_ids if is_before and i not in described and i not in zookeeper.broker_ids}
    strangers = {i for i in zookeeper.broker_ids if i not in described}
    quotes = {
        name: found.quote
        for lines in case.hints.logs.values()
        for found in found_in(lines, (WAITING_FOR_BROKERS,))
        for name in found.named
    }
    for broker_id in sorted(gone | strangers):
        partitions = case.found.assigned.get(broker_id, ())
        where = f": {some(list(partitions))}" if partitions else ""
        seen = f"assigned to partitions{where}, and no such broker is registered" if broker_id in gone else (
            "registered in ZooKeeper, and not in the cluster's specification"
        )  # fmt: skip
        said = f". The active controller says: {quotes[str(broker_id)]}" if str(broker_id) in quotes else ""
        yield case.cause(
            ZkWait.COPY_NOT_COMPLETE if is_before else WaitReason.BROKERS_NOT_REGISTERED,
            f"broker {broker_id}",
            WaitReason.PREFLIGHT_BLOCKERS,
            observed=f"{seen}{said}",
            expected=WAITING_FOR_BROKERS.expected,
            fix=WAITING_FOR_BROKERS.fix,
        )


KEEP_THE_COPY = (NO_BROKERS_KNOWN, SUPERSET, CLAIM_REFUSED, OUT_OF_PLACE, WRITE_FAILED, UNHANDLED)
"""Once all brokers are in migration mode: before that it waits for them."""


def _brokers_unknown(case: MigrationCase, lines: tuple[str, ...]) -> Iterator[Cause]:
    are_all_hybrid = all(b.mode is BrokerMode.HYBRID for b in case.situation.brokers)
    for found in failed_in(lines, KEEP_THE_COPY if are_all_hybrid else (SUPERSET,)):
        yield case.cause(
            ZkWait.COPY_NOT_COMPLETE,
            "the copy",
            observed=f"the active controller says: {in_words(found)}",
            expected=found.told.expected,
            fix=_claim_again(case) if found.told is CLAIM_REFUSED else _mended(case, found),
        )


def _claim_again(case: MigrationCase) -> str:
    """Its own claim was committed and the answer lost, as when a disk of ZooKeeper's hangs: only another epoch gets past it."""
    leader, zookeeper = case.leader, case.observation.zookeeper
    claim = zookeeper.controller if zookeeper is not None else None
    if leader is None or claim is None or claim.broker_id != leader.id:
        return CLAIM_REFUSED.fix
    name = case.name(leader.id)
    return (
        f"/controller names {name} already: it has claimed it, the answer was lost, and it tries the same epoch for ever. "
        f"Restart {name}: the next claim has another epoch (seen with 3.9). If that does not help, ask for a rollback."
    )


def dual_write_causes(case: MigrationCase) -> Iterator[Cause]:
    """GF08: whether ZooKeeper gets what KRaft is told, and what a failover would choke on."""
    situation, zookeeper = case.situation, case.observation.zookeeper
    if situation.quorum is not QuorumState.MIGRATION or zookeeper is None:
        return
    named = False
    for suspect in dict.fromkeys((*(probed(case.observation).failover_hazards or ()), *case.found.strays)):
        named = True
        yield case.cause(
            ZkWait.FAILOVER_WOULD_HURT,
            suspect.what,
            ZkWait.DUAL_WRITE_NOT_CURRENT,
            observed=suspect.why,
            expected="nothing in KRaft that ZooKeeper cannot hold, as long as both are written",
            fix="Do what the entry says, with Kafka's tools and through a broker: never delete a topic's znode for it. "
            "Restart no active controller before that: dual write would not survive the next failover, or has not "
            "survived one.",
        )
    leader = case.leader
    if leader is None:
        return
    name = case.name(leader.id)
    yield from _refused_writes(case, leader.id)
    if situation.dual_write is DualWrite.CURRENT:
        return
    if situation.claim is not Claim.KRAFT:
        yield _unclaimed(case, name, zookeeper)
        return
    kinds = (CHECK_OP_FAILED, UNKNOWN_CONFIG, WRITE_FAILED, UNHANDLED)
    quotes = [found for lines in case.hints.logs.values() for found in failed_in(lines, kinds)]
    if named and not any(found.told is CHECK_OP_FAILED for found in quotes):
        return
    behind = offset_distance(zookeeper, leader)
    said = "".join(f". {name} says: {in_words(found)}" for found in quotes[:2]) + _asking(case)
    unwritten = case.found.unwritten
    is_flooded = {found.told for found in quotes} <= {WRITE_FAILED} and unwritten is not None and unwritten.more >= FLOOD
    if unwritten is not None:
        said += _lacking(unwritten)
    if case.found.crowded:
        said += f". Nearly as large as ZooKeeper takes: {some(case.found.crowded)}"
    elif not quotes and not is_flooded:
        said += complaints(case, leader.id)
    is_dead = situation.dual_write is DualWrite.DEAD
    lag = leader.metrics.write_behind_lag
    state = leader.metrics.migration_gauge.name if leader.metrics.migration_gauge is not None else MigrationGauge.NONE.name
    yield case.cause(
        ZkWait.DUAL_WRITE_NOT_CURRENT,
        MIGRATION,
        ZkWait.FAILOVER_WOULD_HURT,
        observed=f"{_distance(zookeeper.migration, behind)} (state {state}, ZkWriteBehindLag {lag}, "
        f"ZooKeeper session {leader.metrics.zookeeper_session}){said}",
        expected=f"at most {ZkToKraftPolicy.of(case.policy).max_offset_distance} records",
        fix=_caught_up(case, quotes, is_dead=is_dead, is_flooded=is_flooded),
    )


def _asking(case: MigrationCase) -> str:
    return f". Of ZooKeeper's clients ask most: {', '.join(case.hints.busiest)}" if case.hints.busiest else ""


def _unclaimed(case: MigrationCase, name: str, zookeeper: ZooKeeperView) -> Cause:
    """KRaft's claim is gone: by itself, or with all that ZooKeeper had since the copy. `/migration` only ever goes forward."""
    znode = zookeeper.migration
    if znode is not None and znode.offset is not None and znode.offset <= 0:
        return case.cause(
            ZkWait.DUAL_WRITE_NOT_CURRENT,
            "ZooKeeper",
            ZkWait.FAILOVER_WOULD_HURT,
            WaitReason.PART_UNKNOWN,
            observed=f"{MIGRATION} says {znode.offset}, as before the copy, and KRaft's claim is gone, while the log of {name} "
            "says that the copy is complete: ZooKeeper has data of an earlier time. Its servers refuse clients that "
            "have seen later data (`has seen zxid … our last zxid is …` in their logs)",
            expected="the data that ZooKeeper's servers had",
            fix="Stop ZooKeeper's servers, give a majority of them their newest dataDir and dataLogDir back, start them, "
            "then restart the active controller (seen with 3.9). A snapshot, a backup or an old disk has replaced "
            "their data. A rollback would lose all that was changed since. If that data is lost, and all brokers are "
            "in KRaft mode, stop ZooKeeper: when it has been down for long, the gate finalize-without-return "
            f"opens.{before_a_failover(case)}",
        )
    held = "absent" if zookeeper.controller is None else f"held by broker {zookeeper.controller.broker_id}, ephemeral"
    return case.cause(
        ZkWait.DUAL_WRITE_NOT_CURRENT,
        CONTROLLER,
        WaitReason.PART_UNKNOWN,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        observed=f"{held}, while {name} leads the quorum",
        expected=f"persistent, naming {name}",
        fix=f"Approve the gate fail-over if it is open. If not, restart the active controller, {name}: the next one "
        "claims it. The znode was deleted. What a broker has changed as ZooKeeper controller since is lost then, "
        f"so hurry, or ask for a rollback.{before_a_failover(case)}",
    )


TOO_LARGE = (
    "Remove ACLs of that resource through Kafka (use a prefix, or one principal for many), then restart the "
    "active controller, which would keep trying the old write (seen with 3.9). Or raise jute.maxbuffer at "
    "all of ZooKeeper's servers, brokers and controllers, which takes their restarts. ZooKeeper refuses a "
    "write of more than jute.maxbuffer (1 MB by default), and the controller retries it for ever, so that "
    "nothing after it is written."
)
LOOK_AGAIN = (
    "Check again, and find what makes changes all the time (a job that creates topics and deletes them, "
    "say): this may be a moment's. Only if it stays as far behind: "
)
LOOK_LONGER = (
    "Check again first: whether changes come all the time could not be found out, and if they do, this may "
    "be a moment's. Only if it stays as far behind: "
)


def _lacking(unwritten: Unwritten) -> str:
    of = f" ({some(unwritten.configured)})" if unwritten.configured else ""
    lacks = f". ZooKeeper lacks {', '.join(unwritten.changes) or 'no change'}{of}"
    return f"{lacks}; {unwritten.more} more came in {unwritten.seconds:.1f} s"


def _caught_up(case: MigrationCase, quotes: Sequence[Found], *, is_dead: bool, is_flooded: bool) -> str:
    if case.found.crowded:
        return f"{TOO_LARGE}{before_a_failover(case)}"
    if quotes:
        return f"{_mended(case, quotes[0])} {STOP_CHANGING if is_flooded else ''}".strip()
    if is_dead:
        unwritten = case.found.unwritten
        first = LOOK_LONGER if unwritten is None else LOOK_AGAIN if unwritten.more else ""
        return f"{first}{CHECK_OP_FAILED.fix}{before_a_failover(case)}"
    return STOP_CHANGING if is_flooded else CATCHING_UP


def _refused_writes(case: MigrationCase, leader_id: int) -> Iterator[Cause]:
    """A change that failed is not tried again, and with the next one the offset goes on: every gauge looks well
    (KRaftMigrationDriver.MetadataChangeEvent)."""
    for found in failed_in(case.log(leader_id), GIVEN_UP):
        is_lost = is_of_a_change(found) and case.situation.dual_write is DualWrite.CURRENT
        if found.told is not WRITE_REFUSED and (not is_lost or is_of_a_stray(found, offsets_of(case.found.strays))):
            continue
        lost = (
            ""
            if found.told is WRITE_REFUSED
            else f". ZooKeeper {_lacks(found)} that change, though it is current by its offset"
        )
        if lost and any(broker.mode is BrokerMode.HYBRID for broker in case.situation.brokers):
            lost += ", and brokers in migration mode did not get it"
        yield case.cause(
            ZkWait.DUAL_WRITE_NOT_CURRENT,
            case.name(leader_id),
            observed=f"its log says: {in_words(found)}{lost}",
            expected=found.told.expected,
            fix=_mended(case, found),
        )


def _mended(case: MigrationCase, found: Found) -> str:
    last = before_a_failover(case) if found.told in MENDED_BY_ANOTHER else ""
    if found.told is not WRITE_FAILED:
        return f"{found.told.fix}{last}"
    first = "" if are_alike(case.hints.trees) else MEND_THE_TREE
    return f"{first}{found.told.fix}{last}{FIND_THE_ZNODE if is_without_error(found) else ''}"


def _lacks(found: Found) -> str:
    """Brokers in migration mode are told after ZooKeeper has the change, and what is thrown there is logged in the same words
    (KRaftMigrationDriver.MetadataChangeEvent)."""
    return "may lack" if found.told is UNHANDLED else "lacks"


def _distance(znode: MigrationZnode | None, behind: int | None) -> str:
    if znode is None:
        return "there is no such znode: it was deleted"
    if znode.offset is None:
        return "its content cannot be parsed: it was written by hand"
    return (
        "its distance to the quorum's log is not known" if behind is None else f"it is {behind} records behind the quorum's log"
    )
