"""Causes that lie with no single node: ZooKeeper, the quorum, replicas, registrations, the copy, dual write."""

from collections import defaultdict
from collections.abc import Iterator

from domain.cluster import Role
from domain.decisions import WAIT_MEANS, WaitReason
from domain.observation import MigrationGauge
from domain.zk_to_kraft.causes import DOWN_MODES, UNKNOWN_MODES, Cause, Looked, Serving, cause, some
from domain.zk_to_kraft.log_lines import (
    CHECK_OP_FAILED,
    CLAIM_REFUSED,
    NO_BROKERS_KNOWN,
    OUT_OF_PLACE,
    SUPERSET,
    UNKNOWN_CONFIG,
    WAITING_FOR_BROKERS,
    found_in,
)
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import Claim, DualWrite, QuorumState, Registration, offset_distance, quorum_leader

CONTROLLER, MIGRATION = "/controller", "/migration"
NOT_WELL = frozenset({Serving.NO, Serving.SILENT, Serving.REFUSED})


def zookeeper_causes(looked: Looked) -> Iterator[Cause]:
    """GF11. Of a quorum that is lost the members that are gone are the cause; who is left serves nobody because of them."""
    if looked.situation.quorum is QuorumState.POST_MIGRATION:
        return
    servers = looked.hints.servers
    gone = [address for address, serving in servers.items() if serving in {Serving.SILENT, Serving.REFUSED}]
    idle = [address for address, serving in servers.items() if serving is Serving.NO]
    is_lost = looked.observation.zookeeper is None
    explained_idle = 2 * len(gone) >= len(servers)
    for address in gone + ([] if explained_idle else idle):
        yield _server(looked, address, is_lost=is_lost)
    if is_lost and not gone and (explained_idle or not idle):
        why = next((part.why for part in looked.observation.unanswered if part.what == "zookeeper"), "no answer")
        yield cause(
            looked,
            "GF11",
            "ZooKeeper",
            WaitReason.PART_UNKNOWN,
            observed=why,
            expected="the ensemble answers",
            fix="Every server of the ensemble that can be asked serves: look at the credentials, the chroot, and the znode "
            "that "
            "is named.",
        )


def _server(looked: Looked, address: str, *, is_lost: bool) -> Cause:
    serving = looked.hints.servers[address]
    risk = "The ensemble has no quorum" if is_lost else "The ensemble still has its quorum"
    how = {
        Serving.SILENT: "Look whether its process stands still (kill -CONT) or its disk does; else restart it.",
        Serving.REFUSED: "Start it; its log says why it ended.",
    }.get(serving, "Look at its log: it finds no leader to follow.")
    return cause(
        looked,
        "GF11",
        f"zookeeper {address}",
        *([WaitReason.PART_UNKNOWN] if is_lost else []),
        observed=f"it {serving}. {risk}.",
        expected="every member of the ensemble serves, until finalize",
        fix=f"{how} Without ZooKeeper's quorum there is no way back.",
    )


def kafka_causes(looked: Looked) -> Iterator[Cause]:
    """Replicas that lag and brokers that nobody lists, but for what a node that is not there explains."""
    kafka, absent = looked.observation.kafka, looked.absent_brokers
    if kafka is None:
        if not absent:
            why = next((part.why for part in looked.observation.unanswered if part.what == "kafka"), "no answer")
            yield cause(
                looked,
                WaitReason.PART_UNKNOWN,
                "kafka",
                observed=why,
                expected="a broker answers at kafka.bootstrap_servers",
                fix="Check the bootstrap addresses, the listener and the client properties in the cluster's specification.",
            )
        return
    for broker in looked.spec.brokers:
        if broker.id not in kafka.broker_ids and broker.id not in absent:
            yield cause(
                looked,
                WaitReason.PARTITIONS_NOT_IN_SYNC,
                looked.name(broker.id),
                observed="it runs, and the other brokers do not list it",
                expected="every broker is listed by the others",
                fix="Its registration is gone or fenced. Look at its log for `Unable to register broker` or a lost session.",
            )
    lagging: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for fault in kafka.under_replicated:
        left = tuple(sorted(set(fault.missing) - absent))
        if left or not fault.missing:
            lagging[left].append(fault.partition)
    for missing, partitions in lagging.items():
        names = [looked.name(i) if i in {b.id for b in looked.spec.brokers} else f"broker {i}" for i in missing]
        yield cause(
            looked,
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            some(names) or some(partitions),
            observed=f"{len(partitions)} partitions have replicas out of sync there: {some(partitions)}",
            expected="every replica in sync before a node restarts",
            fix="It catches up by itself. If it does not, look at that broker's log and disk; a broker that is gone for "
            "good needs "
            "its partitions reassigned.",
        )
    if kafka.offline and not absent:
        yield cause(
            looked,
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            some(kafka.offline),
            observed=f"{len(kafka.offline)} partitions have no leader",
            expected="every partition has a leader",
            fix="Bring back a broker that has their data; if all are up, elect leaders with kafka-leader-election.sh.",
        )


def quorum_causes(looked: Looked) -> Iterator[Cause]:
    """No leader though all controllers run, a log that was begun without the flag, registrations that do not add up."""
    situation = looked.situation
    provisioned = [c for c in situation.controllers if c.mode is not ControllerMode.ABSENT]
    if situation.quorum is QuorumState.NONE:
        yield cause(
            looked,
            WaitReason.CONTROLLERS_NOT_READY,
            "the quorum's log",
            observed="it says NONE: its first controller became active without the migration flag",
            expected="a log that was begun with zookeeper.metadata.migration.enable",
            fix="No migration can ever start from it. Ask for a rollback, which wipes the controllers, and begin anew.",
        )
    dead = looked.ids(Role.CONTROLLER, frozenset({*DOWN_MODES, *UNKNOWN_MODES, ControllerMode.FENCED}))
    is_explained = 2 * len(dead) >= len(looked.spec.controllers)
    is_ours = any(looked.name(c.id) in looked.in_hand for c in provisioned)
    are_all_there = len(provisioned) == len(looked.spec.controllers)
    if are_all_there and quorum_leader(looked.observation, looked.spec) is None and not is_explained and not is_ours:
        yield cause(
            looked,
            WaitReason.CONTROLLERS_NOT_READY,
            "the quorum",
            observed="no controller is active, although a majority of them runs",
            expected="one active controller",
            fix="An election takes a second or two. If it lasts, check that the controllers reach each other's listeners.",
        )
    if situation.registration is Registration.DIFFERS and not looked.absent_brokers:
        yield from _registrations(looked)


def _registrations(looked: Looked) -> Iterator[Cause]:
    leader = quorum_leader(looked.observation, looked.spec)
    if leader is None:
        return
    hybrid = sum(b.mode is BrokerMode.HYBRID for b in looked.situation.brokers)
    in_kraft = sum(b.mode is BrokerMode.KRAFT for b in looked.situation.brokers)
    metrics = leader.metrics
    yield cause(
        looked,
        WaitReason.BROKERS_NOT_REGISTERED,
        looked.name(leader.id),
        WaitReason.COPY_NOT_COMPLETE,
        observed=f"it counts {metrics.migrating_broker_count} migrating brokers, {metrics.active_broker_count} active, "
        f"{metrics.fenced_broker_count} fenced",
        expected=f"{hybrid} migrating, {hybrid + in_kraft} active, none fenced",
        fix="A broker that serves has not registered. `Unable to register broker` in its log names the controller's "
        "answer; a wrong "
        "inter.broker.protocol.version is the usual cause.",
    )


def copy_causes(looked: Looked) -> Iterator[Cause]:
    """What keeps the copy from beginning, or from ending."""
    if looked.situation.quorum is QuorumState.PRE_MIGRATION:
        yield from _awaited_brokers(looked)
    for suspect in looked.observation.poisoned_znodes or ():
        yield cause(
            looked,
            WaitReason.COPY_CANNOT_FINISH,
            suspect.what,
            observed=suspect.why,
            expected="every znode can be copied",
            fix="Ask for a rollback unless it is under way; then mend or delete the znode before the next attempt.",
        )
    is_own = looked.situation.quorum in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION}
    if not is_own and (looked.situation.is_copy_left_over or looked.situation.is_copy_stale):
        znode = looked.observation.zookeeper.migration if looked.observation.zookeeper is not None else None
        yield cause(
            looked,
            WaitReason.COPY_LEFT_OVER,
            MIGRATION,
            observed=f"it tells of a copy that this quorum has not made (offset {znode.offset if znode else None})",
            expected="no such znode, or one with offset -1",
            fix=WAIT_MEANS[WaitReason.COPY_LEFT_OVER],
        )
    if looked.situation.quorum is QuorumState.PRE_MIGRATION:
        for lines in looked.hints.logs.values():
            yield from _brokers_unknown(looked, lines)


def _awaited_brokers(looked: Looked) -> Iterator[Cause]:
    """Ids in assignments or registrations that no broker of the quorum has: the driver waits for them for ever."""
    zookeeper = looked.observation.zookeeper
    if zookeeper is None:
        return
    described = {b.id for b in looked.spec.brokers}
    gone = {i for i in zookeeper.assigned_broker_ids if i not in described and i not in zookeeper.broker_ids}
    strangers = {i for i in zookeeper.broker_ids if i not in described}
    quotes = {
        name: found.quote
        for lines in looked.hints.logs.values()
        for found in found_in(lines, (WAITING_FOR_BROKERS,))
        for name in found.named
    }
    for broker_id in sorted(gone | strangers):
        partitions = looked.hints.assigned.get(broker_id, ())
        where = f": {some(list(partitions))}" if partitions else ""
        seen = f"assigned to partitions{where}, and no such broker is registered" if broker_id in gone else (
            "registered in ZooKeeper, and not in the cluster's specification"
        )  # fmt: skip
        said = f". The active controller says: {quotes[str(broker_id)]}" if str(broker_id) in quotes else ""
        yield cause(
            looked,
            WaitReason.COPY_NOT_COMPLETE,
            f"broker {broker_id}",
            WaitReason.PREFLIGHT_BLOCKERS,
            observed=f"{seen}{said}",
            expected=WAITING_FOR_BROKERS.expected,
            fix=WAITING_FOR_BROKERS.fix,
        )


def _brokers_unknown(looked: Looked, lines: tuple[str, ...]) -> Iterator[Cause]:
    are_all_hybrid = all(b.mode is BrokerMode.HYBRID for b in looked.situation.brokers)
    kinds = (NO_BROKERS_KNOWN, SUPERSET, CLAIM_REFUSED, OUT_OF_PLACE) if are_all_hybrid else (SUPERSET,)
    for found in found_in(lines, kinds):
        yield cause(
            looked,
            WaitReason.COPY_NOT_COMPLETE,
            "the copy",
            observed=f"the active controller says: {found.quote}",
            expected=found.told.expected,
            fix=found.told.fix,
        )


def dual_write_causes(looked: Looked) -> Iterator[Cause]:
    """GF08: whether ZooKeeper gets what KRaft is told, and what a failover would choke on."""
    situation, zookeeper = looked.situation, looked.observation.zookeeper
    if situation.quorum is not QuorumState.MIGRATION or zookeeper is None:
        return
    named = False
    for suspect in dict.fromkeys((*(looked.observation.failover_hazards or ()), *looked.hints.strays)):
        named = True
        yield cause(
            looked,
            WaitReason.FAILOVER_WOULD_HURT,
            suspect.what,
            WaitReason.DUAL_WRITE_NOT_CURRENT,
            observed=suspect.why,
            expected="nothing in KRaft that ZooKeeper cannot hold, as long as both are written",
            fix="Delete it, or mend what is named: dual write would not survive the next failover, or has not survived one.",
        )
    if situation.dual_write is DualWrite.CURRENT:
        return
    leader = quorum_leader(looked.observation, looked.spec)
    if leader is None:
        return
    name = looked.name(leader.id)
    if situation.claim is not Claim.KRAFT:
        held = "absent" if zookeeper.controller is None else f"held by broker {zookeeper.controller.broker_id}, ephemeral"
        yield cause(
            looked,
            WaitReason.DUAL_WRITE_NOT_CURRENT,
            CONTROLLER,
            observed=f"{held}, while {name} leads the quorum",
            expected=f"persistent, naming {name}",
            fix="Somebody deleted it. Approve the gate fail-over where it is open; else restart the active controller: the "
            "next one "
            "claims it. What a broker has changed as ZooKeeper controller since is lost then, so hurry, or ask for a rollback.",
        )
        return
    quotes = [found for lines in looked.hints.logs.values() for found in found_in(lines, (CHECK_OP_FAILED, UNKNOWN_CONFIG))]
    if named and not any(found.told is CHECK_OP_FAILED for found in quotes):
        return
    behind = offset_distance(zookeeper, leader)
    said = "".join(f". {name} says: {found.quote}" for found in quotes[:2])
    is_dead = situation.dual_write is DualWrite.DEAD
    lag = leader.metrics.write_behind_lag
    state = leader.metrics.migration_gauge.name if leader.metrics.migration_gauge is not None else MigrationGauge.NONE.name
    yield cause(
        looked,
        WaitReason.DUAL_WRITE_NOT_CURRENT,
        MIGRATION,
        WaitReason.FAILOVER_WOULD_HURT,
        observed=f"its offset is {'unknown' if behind is None else behind} records away from the quorum's log (state {state}, "
        f"ZkWriteBehindLag {lag}, ZooKeeper session {leader.metrics.zookeeper_session}){said}",
        expected=f"at most {looked.policy.max_offset_distance} records",
        fix=quotes[0].told.fix
        if quotes
        else (CHECK_OP_FAILED.fix if is_dead else WAIT_MEANS[WaitReason.DUAL_WRITE_NOT_CURRENT]),
    )
