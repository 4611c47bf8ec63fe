"""Causes that lie with no single node: ZooKeeper, work under way, the quorum, registrations."""

from collections.abc import Iterator

from domain.cluster import Role
from domain.decisions import WaitReason
from domain.zk_to_kraft.causes import DOWN_MODES, UNKNOWN_MODES, Cause, Looked, Serving, cause, complaints, some
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import QuorumState, Registration, quorum_leader
from domain.zk_to_kraft.zookeeper_deaths import death_of_server, errors_of_server

GONE = frozenset({Serving.SILENT, Serving.REFUSED, Serving.UNREACHED})


def zookeeper_causes(looked: Looked) -> Iterator[Cause]:
    """GF11. Of a quorum that is lost the members that are gone are the cause; who is left serves nobody because of them."""
    if looked.situation.quorum is QuorumState.POST_MIGRATION:
        return
    yield from _cluster_id(looked)
    yield from _controller_epoch(looked)
    yield from _missing(looked)
    servers = looked.hints.servers
    for address in (a for a, serving in servers.items() if serving is Serving.ALONE and len(servers) > 1):
        yield _alone(looked, address)
    gone = [address for address, serving in servers.items() if serving in GONE]
    idle = [address for address, serving in servers.items() if serving is Serving.NO]
    is_lost = looked.observation.zookeeper is None
    explained_idle = 2 * len(gone) >= len(servers)
    busy = [address for address, serving in servers.items() if serving in {Serving.BUSY, Serving.STUCK}]
    for address in gone + busy + ([] if explained_idle else idle):
        yield _server(looked, address, is_lost=is_lost)
    is_torn = len(servers) > 1 and Serving.ALONE in servers.values()
    if is_lost and not is_torn and not gone and not busy and (explained_idle or not idle):
        why = next((part.why for part in looked.observation.unanswered if part.what == "zookeeper"), "no answer")
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
    zookeeper, wanted = looked.observation.zookeeper, looked.spec.cluster_id
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
    """What every claim of a controller, of ZooKeeper's or of KRaft's, begins with (PF11). Who rules goes on until it moves."""
    zookeeper = looked.observation.zookeeper
    if zookeeper is None or zookeeper.controller_epoch is not None:
        return
    claim = zookeeper.controller.kraft_epoch if zookeeper.controller is not None else None
    number = (
        f"{claim}, the epoch of KRaft's claim"
        if claim is not None
        else "the number of the controller that rules (`epoch` in its log, the largest controller_epoch of partitions' states) "
        "or a larger one: below it brokers take no word of a controller"
    )
    yield cause(
        looked,
        "PF11",
        "/controller_epoch",
        WaitReason.PREFLIGHT_BLOCKERS,
        observed="it does not exist, or is no number: somebody has deleted or written it",
        expected="the epoch of the last controller",
        fix=f"Write it again, before another controller is elected, which could not claim the cluster: {number}. In zkCli.sh: "
        "create /controller_epoch NUMBER.",
    )


def _missing(looked: Looked) -> Iterator[Cause]:
    for path in looked.hints.missing:
        yield cause(
            looked,
            "GF11",
            path,
            observed="it does not exist: somebody has deleted it, with all that was below it",
            expected="the znodes that brokers make as they start, and count on while they run",
            fix=f"In zkCli.sh: create {path}, with nothing in it; a broker that starts makes it as well. Then put back what "
            "was below it, from a backup, and elect another controller (delete /controller while ZooKeeper has the metadata): "
            "who watched the old one hears nothing of the new.",
        )


def _alone(looked: Looked, address: str) -> Cause:
    """Split brain: brokers whose session it has are registered with it only."""
    return cause(
        looked,
        "GF11",
        f"zookeeper {address}",
        WaitReason.PART_UNKNOWN,
        WaitReason.BROKERS_NOT_REGISTERED,
        observed=f"it {looked.hints.servers[address]}",
        expected="every member of the ensemble follows its leader, or leads it",
        fix="Stop it now: brokers and clients whose session it has are cut off from the others. Its zoo.cfg has lost its "
        "server.N lines, or it was started with another file: put that right, set its version-2 directory aside (it has what "
        "nobody else knows of), and start it: it copies the tree from the leader.",
    )


def _server(looked: Looked, address: str, *, is_lost: bool) -> Cause:
    serving = looked.hints.servers[address]
    risk = "The ensemble has no quorum" if is_lost else "The ensemble still has its quorum"
    if is_lost and set(looked.hints.servers.values()) <= {Serving.UNREACHED, Serving.UNKNOWN}:
        risk = "Whether the ensemble has its quorum cannot be seen from the host of keeperless-activities"
    how = {
        Serving.SILENT: "Look whether its process stands still (kill -CONT) or its disk does; else restart it.",
        Serving.REFUSED: "Start it; its log says why it ended.",
        Serving.UNREACHED: "Look at the way there from the host of keeperless-activities, and whether its machine is there.",
        Serving.STUCK: "Look at the disks of all members' data: dmesg, iostat -x 1, whether one is frozen (fsfreeze -u) or "
        "on a network that is gone. It goes on by itself once a majority can write.",
        Serving.BUSY: "Look at its disk (iostat -x 1; fsync-ing the write ahead log, in its log), and who asks so much (cons).",
    }.get(serving, "Look at its log, and whether the members reach each other's quorum and election ports.")
    # Of who stands still or is not reached the log tells nothing of that.
    lines = looked.hints.server_logs.get(address, ()) if serving in {Serving.REFUSED, Serving.NO} else ()
    death = death_of_server(lines)
    words = death.quote if death is not None else errors_of_server(lines)
    return cause(
        looked,
        "GF11",
        f"zookeeper {address}",
        *([WaitReason.PART_UNKNOWN] if is_lost else []),
        observed=f"it {serving}. " + (f"Its log says: {words}. " if words else "") + f"{risk}.",
        expected="every member of the ensemble serves, until finalize",
        fix=f"{death.told.fix if death is not None else how} Without ZooKeeper's quorum there is no way back.",
    )


CANCEL_REASSIGNMENT = (
    "Let it finish, or cancel it (kafka-reassign-partitions.sh --cancel). One that does not end has a broker that is gone, or "
    "a throttle."
)
AWAIT_DELETION = (
    "Let it finish: it ends once every broker that holds a replica serves. One that does not end has a broker or a log "
    "directory that is gone, or delete.topic.enable is false at the controller."
)
AWAIT_ELECTION = "Let it finish. One that does not end was begun while no controller was there: delete its znode once one is."


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
    for what, names, fix in (
        ("partition reassignment", zookeeper.reassignments, CANCEL_REASSIGNMENT),
        ("topic deletion", zookeeper.pending_deletions, AWAIT_DELETION),
        ("election", election, AWAIT_ELECTION),
    ):
        if names:
            yield cause(
                looked,
                "GF02",
                what,
                observed=f"under way for {some(names)}",
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
            WaitReason.CONTROLLERS_NOT_READY,
            "the quorum's log",
            observed="it says NONE: its first controller became active without the migration flag",
            expected="a log that was begun with zookeeper.metadata.migration.enable",
            fix="No migration can ever start from it. Ask for a rollback, which wipes the controllers, and begin anew.",
        )
    dead = looked.ids(Role.CONTROLLER, frozenset({*DOWN_MODES, *UNKNOWN_MODES, ControllerMode.FENCED}))
    is_explained = 2 * len(dead) >= len(looked.spec.controllers)
    excused = looked.excused
    is_ours = any(looked.name(c.id) in excused for c in provisioned)
    are_all_there = len(provisioned) == len(looked.spec.controllers)
    if are_all_there and quorum_leader(looked.observation, looked.spec) is None and not is_explained and not is_ours:
        yield cause(
            looked,
            WaitReason.CONTROLLERS_NOT_READY,
            "the quorum",
            observed="no controller is active, although a majority of them runs"
            + complaints(looked, *(c.id for c in looked.spec.controllers)),
            expected="one active controller",
            fix="An election takes a second or two. If it lasts, check that the controllers reach each other's listeners.",
        )
    yield from _unreached_controllers(looked)
    if situation.registration is Registration.DIFFERS and not looked.absent_brokers | looked.left_behind:
        yield from _registrations(looked)


UNREGISTERED = (
    "A broker that serves has not registered. `Unable to register broker` in its log names the controller's answer; a wrong "
    "inter.broker.protocol.version is the usual cause."
)
STILL_REGISTERED = (
    "It counts a broker that does not serve so any more: one that has just ended, or was started with another file, counts "
    "until its session is over (broker.session.timeout.ms, 9 s). Look again then; whoever is fenced for longer: see its log."
)


def _unreached_controllers(looked: Looked) -> Iterator[Cause]:
    """It follows, has every record, and nobody can ask it for its vote or follow it: no gauge of its own shows that."""
    modes, excused = {c.id: c.mode for c in looked.situation.controllers}, looked.excused
    for controller in looked.spec.controllers:
        name, address = looked.name(controller.id), f"{controller.host}:{controller.port}"
        is_running = modes[controller.id] in {ControllerMode.MIGRATING, ControllerMode.FINAL}
        if is_running and address in looked.hints.shut and name not in excused:
            yield cause(
                looked,
                WaitReason.CONTROLLERS_NOT_READY,
                name,
                WaitReason.QUORUM_TOO_THIN,
                observed=f"it runs, and nobody accepts a connection at {address} within a second: it may follow, and can "
                "neither vote nor lead",
                expected="brokers, the other controllers and keeperless-activities reach every controller",
                fix=f"Open {address} for them: a firewall, or the listener's address. Do it before another controller "
                "restarts: it does not count in the majority.",
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
        WaitReason.COPY_NOT_COMPLETE,
        observed=f"it counts {metrics.migrating_broker_count} migrating brokers, {metrics.active_broker_count} active, "
        f"{metrics.fenced_broker_count} fenced" + complaints(looked, *(b.id for b in looked.spec.brokers), leader.id),
        expected=f"{hybrid} migrating, {hybrid + in_kraft} active, none fenced",
        fix=UNREGISTERED if is_one_missing else STILL_REGISTERED,
    )
