"""Causes that lie with no single node: ZooKeeper, work under way, the quorum, registrations."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from domain.checks.seen import some
from domain.cluster import Role
from domain.diagnosis.causes.hints import Serving
from domain.diagnosis.causes.reassignment import CANCEL_REASSIGNMENT
from domain.diagnosis.logs.connecting import FENCED, fix_of_the_living
from domain.diagnosis.logs.lines import current, first_of
from domain.diagnosis.logs.running import epochs_lately
from domain.health.quorum import quorum_leader
from domain.topic_ids import IDS_FIRST
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.address import unresolved_cause
from domain.zk_to_kraft.causes.case import DOWN_MODES, UNKNOWN_MODES, Cause, Looked, cause, complaints, leaders_word, strangers
from domain.zk_to_kraft.causes.clocks_set_back import TIMERS_STAND, set_back
from domain.zk_to_kraft.causes.doors import door_of
from domain.zk_to_kraft.causes.member import alone, differing, emptied, is_emptied, member_cause
from domain.zk_to_kraft.causes.unreached import kept_apart
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import QuorumState, Registration
from domain.zk_to_kraft.waits import WAITS, ZkWait

GONE = frozenset({Serving.SILENT, Serving.REFUSED, Serving.UNREACHED})


def zookeeper_causes(looked: Looked) -> Iterator[Cause]:
    """GF11. Of a quorum that is lost the members that are gone are the cause; who is left serves nobody because of them."""
    if looked.situation.quorum is QuorumState.POST_MIGRATION:
        return
    yield from differing(looked)
    yield from _cluster_id(looked)
    yield from _controller_epoch(looked)
    yield from _missing(looked)
    servers = looked.hints.servers
    for address in (a for a, serving in servers.items() if serving is Serving.ALONE and len(servers) > 1):
        yield alone(looked, address)
    yield from (emptied(looked, address) for address in servers if is_emptied(looked, address))
    gone = [address for address, serving in servers.items() if serving in GONE]
    idle = [address for address, serving in servers.items() if serving is Serving.NO]
    is_lost = looked.observation.zookeeper is None
    explained_idle = 2 * len(gone) >= len(servers)
    busy = [address for address, serving in servers.items() if serving in {Serving.BUSY, Serving.STUCK}]
    for address in gone + busy + ([] if explained_idle else idle):
        is_named = servers[address] is not Serving.UNREACHED or not looked.is_unresolved(address)
        yield member_cause(looked, address, is_lost=is_lost) if is_named else unresolved_cause(looked)
    is_torn = len(servers) > 1 and Serving.ALONE in servers.values()
    if is_lost and not is_torn and not gone and not busy and (explained_idle or not idle):
        why = next((part.in_words for part in looked.observation.unanswered if part.what == "zookeeper"), "no answer")
        yield cause(
            looked,
            "GF11",
            "ZooKeeper",
            WaitReason.PART_UNKNOWN,
            observed=why,
            expected="the ensemble answers",
            fix=(NEEDS_LOGIN if "RequireSasl" in why else "")
            + "Every server of the ensemble that can be asked says that it serves: look at the credentials, the chroot, and "
            "the znode that is named. Members that close connections at once have reached maxClientCnxns for our address "
            "(`cons` says who holds them). Where nothing answers in time, the members may be losing each other: look again.",
        )


NEEDS_LOGIN = (
    "The servers ask every client for a login (zookeeper.sessionRequireClientSASLAuth, or enforce.auth.enabled): brokers and "
    "controllers without one are shut out too. Start the servers without that option, or give everybody a login first. "
)


def _cluster_id(looked: Looked) -> Iterator[Cause]:
    """What a broker compares its directories with when it starts, and makes anew where it is not there (PF03)."""
    zookeeper, wanted = looked.observation.zookeeper, looked.cluster_of_all or looked.spec.cluster_id
    if zookeeper is None or zookeeper.cluster_id == wanted:
        return
    yield cause(
        looked,
        "PF03",
        "/cluster/id",
        WaitReason.PREFLIGHT_BLOCKERS,
        observed="it does not exist" if zookeeper.cluster_id is None else f"it says {zookeeper.cluster_id}",
        expected=wanted,
        fix=f'Put {{"version":"1","id":"{wanted}"}} there before a broker restarts: with another id, or with none, it would '
        "not come back.",
    )


def _controller_epoch(looked: Looked) -> Iterator[Cause]:
    """PF11: every claim of a controller begins with this znode, in ZooKeeper and in KRaft. The active one works without."""
    zookeeper = looked.observation.zookeeper
    if zookeeper is None or zookeeper.controller_epoch is not None:
        return
    claim = zookeeper.controller.kraft_epoch if zookeeper.controller is not None else None
    number = (
        f"{claim}, the epoch of KRaft's claim"
        if claim is not None
        else "the epoch of the active controller (`epoch` in its log, or the largest controller_epoch in partitions' states), "
        "or a larger one, because brokers ignore a controller with a smaller one"
    )
    yield cause(
        looked,
        "PF11",
        "/controller_epoch",
        WaitReason.PREFLIGHT_BLOCKERS,
        observed="it does not exist, or is no number: it was deleted or written by hand",
        expected="the epoch of the last controller",
        fix=f"In zkCli.sh: create /controller_epoch NUMBER. NUMBER is {number}. Do it before the next election: without this "
        "znode no controller can claim the cluster.",
    )


def _missing(looked: Looked) -> Iterator[Cause]:
    for path in looked.hints.missing:
        yield cause(
            looked,
            "GF11",
            path,
            observed="it does not exist: it was deleted, with all that was below it",
            expected="the znodes that brokers create at their start, and need while they run",
            fix=f"In zkCli.sh: create {path}, with nothing in it (a broker that starts creates it as well). Then put back what "
            f"was below it, from a backup. {IDS_FIRST}Then elect another controller (delete /controller while ZooKeeper has "
            "the metadata): watches on the old znode do not see the new one.",
        )


AWAIT_DELETION = (
    "Let it finish: it ends once every broker that holds a replica serves. If it does not end, a broker or a log directory is "
    "gone, or delete.topic.enable is false at the controller."
)
BY_ZOOKEEPER = (
    "in ZooKeeper (/admin), from which no controller takes orders since the copy: KRaft has the metadata. A tool that is older "
    "than KRaft, or uses ZooKeeper (CMAK, --zookeeper), has written it"
)
NOBODYS_ORDER = (
    "Delete that znode (/admin/delete_topics/NAME, /admin/preferred_replica_election) before anything else: in a rollback the "
    "first ZooKeeper controller would carry it out. If you want it done, ask the brokers for it (--bootstrap-server). Keep "
    "that tool away from ZooKeeper."
)
AWAIT_ELECTION = "Let it finish. If it does not end, it was begun while no controller was active: delete its znode once one is."


RESTORE_TOPIC = (
    "Deleting its znodes deletes no topic: brokers serve it until each restarts, and then take its replicas for strays. "
    "Restart none. If it is wanted, write /brokers/topics/NAME and /brokers/topics/NAME/partitions/N/state again: topic_id "
    "stands in partition.metadata of its directories, replicas and leaders are what kafka-topics.sh --describe shows now. Then "
    "delete /controller, so that a controller reads them. If it is not wanted, write them all the same, and delete it with "
    "kafka-topics.sh."
)


def forgotten_causes(looked: Looked) -> Iterator[Cause]:
    """GF02: what a restart, and the copy, would lose."""
    if looked.hints.forgotten:
        yield cause(
            looked,
            "GF02",
            f"topic {some(looked.hints.forgotten)}",
            observed="brokers serve it, and ZooKeeper has nothing of it: somebody has deleted its znodes in /brokers/topics",
            expected="every topic that brokers serve is in ZooKeeper",
            fix=RESTORE_TOPIC,
        )


def pending_causes(looked: Looked) -> Iterator[Cause]:
    """GF02: work in flight that keeps replicas moving, or that the copy would not take over."""
    zookeeper = looked.observation.zookeeper
    if zookeeper is None or looked.situation.quorum is QuorumState.POST_MIGRATION:
        return
    election = ("preferred replica election",) if zookeeper.is_preferred_election_pending else ()
    is_nobodys = looked.situation.quorum is QuorumState.MIGRATION
    for what, names, fix in (
        ("partition reassignment", zookeeper.reassignments, CANCEL_REASSIGNMENT),
        ("topic deletion", zookeeper.pending_deletions, NOBODYS_ORDER if is_nobodys else AWAIT_DELETION),
        ("election", election, NOBODYS_ORDER if is_nobodys else AWAIT_ELECTION),
    ):
        if names:
            whose = BY_ZOOKEEPER if fix is NOBODYS_ORDER else ""
            yield cause(
                looked,
                "GF02",
                what,
                observed=f"{'ordered' if whose else 'under way'} for {some(names)}{whose}",
                expected="nothing under way while nodes restart, and before the copy",
                fix=fix,
            )


def quorum_causes(looked: Looked) -> Iterator[Cause]:
    """No leader though all controllers run, a log that was begun without the flag, registrations that do not add up."""
    situation = looked.situation
    provisioned = [c for c in situation.controllers if c.mode is not ControllerMode.ABSENT]
    if situation.quorum is QuorumState.NONE:
        yield cause(
            looked,
            ZkWait.QUORUM_CANNOT_MIGRATE,
            "the quorum's log",
            WaitReason.CONTROLLERS_NOT_READY,
            observed="it says NONE: its first controller became active without the migration flag"
            + (COPY_GONE if situation.is_copy_gone else ""),
            expected="a log that was begun with zookeeper.metadata.migration.enable",
            fix=WAITS[ZkWait.QUORUM_CANNOT_MIGRATE].means,
        )
    dead = looked.ids(Role.CONTROLLER, frozenset({*DOWN_MODES, *UNKNOWN_MODES, ControllerMode.FENCED}))
    is_explained = 2 * len(dead) >= len(looked.spec.controllers)
    excused = looked.excused
    is_ours = any(looked.name(c.id) in excused for c in provisioned)
    if (stormy := _epochs_lately(looked)) >= MANY_EPOCHS:
        yield _elections(looked, stormy)
    are_all_there = len(provisioned) == len(looked.spec.controllers)
    is_leaderless = quorum_leader(looked.observation, looked.spec) is None and not _is_leader_silent(looked)
    if are_all_there and is_leaderless and not is_explained and not is_ours:
        yield _leaderless(looked)
    yield from _unreached_controllers(looked)
    yield from _fenced_again(looked)
    unknown = strangers(looked)
    yield from (_stranger(looked, broker_id) for broker_id in unknown)
    are_ours_well = not looked.absent_brokers | looked.left_behind
    if situation.registration is Registration.DIFFERS and are_ours_well and not unknown:
        yield from _registrations(looked)


COPY_GONE = (
    ", though KRaft has /controller: the storage of a quorum that had the copy was emptied. What that one had not written to "
    "ZooKeeper is lost"
)


def _leaderless(looked: Looked) -> Cause:
    ids = [c.id for c in looked.spec.controllers]
    said = {i: found for i in ids if (found := kept_apart(looked.hints.logs.get(i, ()))) is not None}
    words = [f". The log of {looked.name(i)} says: {found.quote}" for i, found in said.items()]
    back = set_back(looked, *ids)
    fixes = [TIMERS_STAND] if back else [fix_of_the_living(found) for found in said.values()]
    return cause(
        looked,
        WaitReason.CONTROLLERS_NOT_READY,
        "the quorum",
        observed=f"no controller is active, although a majority of them runs{back}"
        + ("".join(words[:1]) or complaints(looked, *ids)),
        expected="one active controller",
        fix=fixes[0]
        if fixes
        else "An election takes a second or two. If it lasts, check that the controllers reach each other's listeners.",
    )


def _is_leader_silent(looked: Looked) -> bool:
    """Whether the one that others follow has not answered: then it is known what is the matter, and nobody is missing."""
    followed = {view.metrics.raft_leader for view in looked.observation.nodes if view.metrics is not None}
    return not followed.isdisjoint(looked.ids(Role.CONTROLLER, UNKNOWN_MODES))


LATELY, MANY_EPOCHS = timedelta(seconds=60), 5
"""An election takes one epoch, or two where votes are split."""


def _epochs_lately(looked: Looked) -> int:
    """The most that one controller has seen, once all have run for so long: until a majority runs, whoever does stands for
    election without an end."""
    ids = [c.id for c in looked.spec.controllers]
    runs = {i: process for i in ids if (process := looked.observation.node(i).process) is not None and process.is_running}
    ages = {i: looked.observation.ended_at - process.started_at for i, process in runs.items() if process.started_at}
    if len(ages) < len(ids) or min(ages.values()) < LATELY:
        return 0
    return max(epochs_lately(looked.hints.logs.get(i, ()), age, LATELY) for i, age in ages.items())


def _elections(looked: Looked, epochs: int) -> Cause:
    """In one moment there is a leader, and in the next there is none."""
    return cause(
        looked,
        WaitReason.CONTROLLERS_NOT_READY,
        "the quorum",
        WaitReason.QUORUM_TOO_THIN,
        WaitReason.BROKERS_NOT_REGISTERED,
        ZkWait.DUAL_WRITE_NOT_CURRENT,
        observed=f"its controllers elect without an end: {epochs} epochs within the last minute"
        + complaints(looked, *(c.id for c in looked.spec.controllers)),
        expected="one leader that stays",
        fix="Each time the leader was not heard for controller.quorum.fetch.timeout.ms (2 s by default), or no majority "
        "agreed within controller.quorum.election.timeout.ms (1 s): where the controllers' files have less, take that out. "
        "Else look at their disks (every vote is flushed), their garbage collection, and the links between them.",
    )


UNREGISTERED = (
    "A broker that serves has not registered. `Unable to register broker` in its log names the controller's answer; a wrong "
    "inter.broker.protocol.version is the usual cause."
)
STILL_REGISTERED = (
    "It counts a broker that does not serve so any more: one that has just ended, or was started with another file, counts "
    "until its session is over (broker.session.timeout.ms, 9 s). Look again then; whoever is fenced for longer: see its log. "
    "One that the cluster's specification does not have, and that was stopped, stays among the fenced until kafka-cluster.sh "
    "unregister --id ID."
)


def _unreached_controllers(looked: Looked) -> Iterator[Cause]:
    """It follows, has every record, and nobody can ask it for its vote or follow it: no gauge of its own shows that."""
    modes, excused = {c.id: c.mode for c in looked.situation.controllers}, looked.excused
    for controller in looked.spec.controllers:
        name, address = looked.name(controller.id), f"{controller.host}:{controller.port}"
        is_running = modes[controller.id] in {ControllerMode.MIGRATING, ControllerMode.FINAL}
        if is_running and looked.is_unresolved(address) and name not in excused:
            yield unresolved_cause(looked)
        elif is_running and address in looked.hints.shut and name not in excused:
            door = door_of(looked, name, address)
            yield cause(
                looked,
                WaitReason.CONTROLLERS_NOT_READY,
                name,
                WaitReason.QUORUM_TOO_THIN,
                observed=f"it runs, and nobody accepts a connection at {address} within two seconds: it may follow, and can "
                "neither vote nor lead" + (door.observed if door is not None else ""),
                expected="brokers, the other controllers and keeperless-activities reach every controller",
                fix=f"{door.fix if door is not None else ''}Open {address} for them: a firewall, or the listener's address. "
                "Restart no other controller "
                "before: this one does not count in the majority, and neither finalisation nor a failover of ours goes on. "
                "Brokers are restarted meanwhile, as long as a controller leads.",
            )


def _said_of_brokers(looked: Looked) -> str:
    return next(filter(None, (leaders_word(looked, broker.id) for broker in looked.spec.brokers)), "")


OFTEN = 2
"""Times that a broker was fenced: once is what a broker that was killed leaves."""


def _fenced_again(looked: Looked) -> Iterator[Cause]:
    """It serves, and loses its session with the controllers again and again: between that it is registered."""
    leader = quorum_leader(looked.observation, looked.spec)
    lines = current(looked.hints.logs.get(leader.id, ())) if leader is not None else ()
    told = Counter(found.named[0] for line in lines if (found := first_of(line, (FENCED,))) is not None)
    for broker in looked.situation.brokers:
        if told[str(broker.id)] < OFTEN or broker.mode not in {BrokerMode.HYBRID, BrokerMode.KRAFT}:
            continue
        yield cause(
            looked,
            WaitReason.BROKERS_NOT_REGISTERED,
            looked.name(broker.id),
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            ZkWait.COPY_NOT_COMPLETE,
            observed=f"it serves, and the active controller has fenced it {told[str(broker.id)]} times within minutes, "
            "because no heartbeat came in time" + complaints(looked, broker.id),
            expected=FENCED.expected,
            fix=FENCED.fix,
        )


def _stranger(looked: Looked, broker_id: int) -> Cause:
    return cause(
        looked,
        WaitReason.BROKERS_NOT_REGISTERED,
        f"broker {broker_id}",
        ZkWait.COPY_NOT_COMPLETE,
        observed="it has registered with the controllers, the other brokers list it, and the cluster's specification does not "
        "have it: it is in KRaft mode, and a way back would lose what is placed on it",
        expected="no broker but those of the cluster's specification",
        fix="Find who has started it (a scale-out, an autoscaler, a template that was copied), and keep that away until the "
        "migration has ended. If replicas are on it (kafka-topics.sh --describe), reassign them to the others first "
        "(kafka-reassign-partitions.sh). Then stop it, in order, and let the controllers forget it: kafka-cluster.sh "
        f"unregister --id {broker_id} (a hybrid broker says that the cluster does not support that: ask again, or one in KRaft "
        "mode). Restart none of the others.",
    )


def _registrations(looked: Looked) -> Iterator[Cause]:
    leader = quorum_leader(looked.observation, looked.spec)
    if leader is None:
        return
    hybrid = sum(b.mode is BrokerMode.HYBRID for b in looked.situation.brokers)
    in_kraft = sum(b.mode is BrokerMode.KRAFT for b in looked.situation.brokers)
    metrics = leader.metrics
    is_one_missing = (metrics.active_broker_count or 0) < hybrid + in_kraft
    yield cause(
        looked,
        WaitReason.BROKERS_NOT_REGISTERED,
        looked.name(leader.id),
        ZkWait.COPY_NOT_COMPLETE,
        observed=f"it counts {metrics.migrating_broker_count} migrating brokers, {metrics.active_broker_count} active, "
        f"{metrics.fenced_broker_count} fenced{_said_of_brokers(looked)}"
        + complaints(looked, *(b.id for b in looked.spec.brokers), leader.id),
        expected=f"{hybrid} migrating, {hybrid + in_kraft} active, none fenced",
        fix=UNREGISTERED if is_one_missing else STILL_REGISTERED,
    )
