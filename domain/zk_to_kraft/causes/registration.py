"""Of a broker or a controller that serves, and is not counted: not registered, without a session, or left behind."""

from collections.abc import Iterator

from domain.diagnosis.logs.connecting import (
    ANSWER_TOO_LARGE,
    CLUSTER_ACTION_REFUSED,
    PEER_CUT,
    PEER_UNREACHABLE,
    REGISTRATION_OVER_QUOTA,
    SESSION_LOST,
    SESSION_TOO_SHORT,
    TURNED_AWAY,
    fix_of_the_living,
    refusals_in,
    refused_node_in,
    since_registered,
)
from domain.diagnosis.logs.lines import found_in, lately
from domain.health.quorum import quorum_leader
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import (
    Cause,
    Looked,
    Mode,
    cause,
    complaints,
    leaders_word,
)
from domain.zk_to_kraft.causes.unreached import cut_off, word_of_servers
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.reduction import missing_in_zookeeper
from domain.zk_to_kraft.situation import BrokerSituation, ControllerSituation, Registration
from domain.zk_to_kraft.waits import ZkWait


def left_behind(looked: Looked, node: BrokerSituation) -> Iterator[Cause]:
    """Somebody has restarted it with its file from before the migration: it serves what it had then, and hears of nothing."""
    if node.id not in looked.left_behind:
        return
    name, path = looked.name(node.id), looked.spec.node(node.id).properties_file
    yield cause(
        looked,
        WaitReason.BROKERS_NOT_REGISTERED,
        name,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        WaitReason.PART_UNKNOWN,
        observed="it runs in ZooKeeper mode, while KRaft has the cluster's metadata: it hears of no change, its replicas lag",
        expected="every broker in migration mode, or in KRaft mode, since the copy",
        fix=f"Put back into {path} what this migration wrote (`changes` of the node's step-done events), and restart {name}. "
        "Or ask for a rollback.",
    )


def not_registered(looked: Looked, node: BrokerSituation) -> Iterator[Cause]:
    """A broker can serve for ever and never register: only its log says why (proven-facts, section 4)."""
    if looked.situation.registration is not Registration.DIFFERS or node.mode not in REGISTERING or _are_all_counted(looked):
        return
    controllers = {str(c.id) for c in looked.spec.controllers}
    refusals = refusals_in(lately(since_registered(looked.hints.logs.get(node.id, ()))))
    for found in [f for f in refusals if f.told not in TO_A_PEER or controllers.intersection(f.named)][:1]:
        yield cause(
            looked,
            WaitReason.BROKERS_NOT_REGISTERED,
            looked.name(node.id),
            ZkWait.COPY_NOT_COMPLETE,
            observed=f"it serves, and is not registered with the controllers. Its log says: {found.quote}"
            + (_refused_by_leader(looked) if found.told is CLUSTER_ACTION_REFUSED else leaders_word(looked, node.id)),
            expected=found.told.expected,
            fix=found.told.fix,
        )


def _refused_by_leader(looked: Looked) -> str:
    """As whom, by the active controller's log, as a further sentence."""
    leader = quorum_leader(looked.observation, looked.spec)
    refused = refused_node_in(looked.hints.logs.get(leader.id, ())) if leader is not None else None
    return f". The log of {looked.name(leader.id)}, which leads, says: {refused.quote}" if leader and refused else ""


TO_A_PEER = frozenset({PEER_CUT, PEER_UNREACHABLE})
REGISTERING = frozenset({BrokerMode.HYBRID, BrokerMode.KRAFT})


def _are_all_counted(looked: Looked) -> bool:
    """The quorum counts as many as serve: what differs is one that has died and is counted still, or was counted otherwise."""
    leader = quorum_leader(looked.observation, looked.spec)
    counted = leader.metrics.active_broker_count if leader is not None else None
    return counted is not None and counted >= sum(b.mode in REGISTERING for b in looked.situation.brokers)


LEAVE_IT = (
    "Do not restart {name} for this: its session has ended, and it registers by itself with the next one. Where that does not "
    "last, look at the way from its host to ZooKeeper, and at pauses of its JVM and of the members'."
)


def not_in_zookeeper(looked: Looked, node: BrokerSituation) -> Iterator[Cause]:
    """It serves, and is not registered: its session has just ended; or somebody has deleted its registration with its session
    alive, and then no controller counts on it any more, and it does not register again by itself. Where it is the controller
    itself, its metadata goes on naming it."""
    if node.id not in missing_in_zookeeper(looked.observation.zookeeper, looked.situation.brokers):
        return
    name = looked.name(node.id)
    lines = looked.hints.logs.get(node.id, ())
    over_quota = found_in(lines, (REGISTRATION_OVER_QUOTA,))
    said = over_quota or found_in(lately(lines), (SESSION_TOO_SHORT, SESSION_LOST))
    words = f". Its log says: {said[0].quote}" if said else ""
    restart = f"Restart {name}: it registers when it starts. Before that make sure that all partitions can spare it."
    yield cause(
        looked,
        WaitReason.BROKERS_NOT_REGISTERED,
        name,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        WaitReason.PART_UNKNOWN,
        observed=f"it runs, and /brokers/ids/{node.id} does not exist in ZooKeeper{words}",
        expected=said[0].told.expected if said else "every broker in ZooKeeper or hybrid mode is registered there",
        fix=restart if not said else said[0].told.fix + ("" if over_quota else LEAVE_IT.format(name=name)),
    )


IN_ZOOKEEPER: frozenset[Mode] = frozenset({BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, ControllerMode.MIGRATING})
OF_CONTROLLERS_SESSION = (ZkWait.COPY_NOT_COMPLETE, ZkWait.DUAL_WRITE_NOT_CURRENT)


def session_causes(looked: Looked, node: BrokerSituation | ControllerSituation) -> Iterator[Cause]:
    """GF11: a node that has lost ZooKeeper while others have it, as far as its metrics tell. Controllers have a session from
    their start to the end of the migration."""
    metrics = looked.observation.node(node.id).metrics
    session = metrics.zookeeper_session if metrics is not None else None
    is_cut = session not in {None, "CONNECTED"} and node.mode in IN_ZOOKEEPER
    if is_cut and looked.observation.zookeeper is not None:
        name, lines = looked.name(node.id), looked.hints.logs.get(node.id, ())
        known = next(iter(found_in(lines, (ANSWER_TOO_LARGE,))), None) or cut_off(lines)
        said = f". Its log says: {known.quote}" if known is not None else complaints(looked, node.id)
        words, cure = word_of_servers(looked)
        if known is not None and not (cure and known.told is TURNED_AWAY):
            cure = fix_of_the_living(known)
        yield cause(
            looked,
            "GF11",
            name,
            *(OF_CONTROLLERS_SESSION if isinstance(node, ControllerSituation) else (WaitReason.PARTITIONS_NOT_IN_SYNC,)),
            observed=f"its session with ZooKeeper is {session}, while ZooKeeper answers us{said}{words}",
            expected="CONNECTED",
            fix=cure or f"Look at the way from {name} to ZooKeeper: network, zookeeper.connect, credentials.",
        )
