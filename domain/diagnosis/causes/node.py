"""Causes that lie with one node: dead, unresponsive, not ready, its errors, its registration, its session."""

from collections.abc import Iterator

from domain.checks.acceptance import blockers_in
from domain.checks.coordinator_counts import miscounted
from domain.cluster import Role
from domain.diagnosis.causes.case import Case, Cause, of_finding
from domain.diagnosis.causes.down import down, ended_together, ended_with_their_machine, ending_of_dead, endings_of_dead
from domain.diagnosis.causes.files import storage_causes
from domain.diagnosis.causes.quorum import not_caught_up
from domain.diagnosis.causes.quotes import complaints, cut_off, leaders_word, word_of_servers
from domain.diagnosis.causes.startup import ending, lingering, not_ready, not_shown, unmeasured
from domain.diagnosis.causes.unresponsive import silent
from domain.diagnosis.logs.complaints import with_thrown
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
from domain.diagnosis.logs.running import METADATA_FAULT
from domain.health.liveness import GONE, Liveness
from domain.observed.observation import NodeView
from domain.waits import WaitReason


def node_causes(case: Case) -> Iterator[Cause]:
    """Node by node. One that a step of ours works on has none while it is excused, but that it stands still, or does not end.
    Its file is the step's own affair.
    """
    endings = endings_of_dead(case)
    with_machine = dict(ended_with_their_machine(case, endings))
    others = {i: ending for i, ending in endings.items() if not any(i in ids for ids in with_machine)}
    together = with_machine | dict(ended_together(case, others))
    yield from together.values()
    for node in case.spec.nodes:
        view, liveness = case.observation.node(node.id), case.liveness(node.id)
        if (held := _held(case, view)) is not None:
            yield from held
            continue
        if liveness in GONE:
            if not any(node.id in ids for ids in together):
                yield down(case, view, endings.get(node.id) or ending_of_dead(case, view))
        elif liveness is Liveness.UNKNOWN:
            yield silent(case, view)
        elif missing := not_shown(case, view):
            yield unmeasured(case, view, missing)
        elif liveness is Liveness.IN_TRANSITION:
            yield not_ready(case, view)
        else:
            yield from not_caught_up(case, view)
            yield from not_registered(case, node.id)
            yield from not_in_zookeeper(case, node.id)
            yield from session_causes(case, node.id)
            yield from storage_causes(case, view) if liveness is not Liveness.ABSENT else ()
        yield from _errors(case, view)


def _held(case: Case, view: NodeView) -> tuple[Cause, ...] | None:
    """`None` of a node that is judged as any other: not in our hands, or for longer than it should be. The gauges of one that
    ends go one by one."""
    name = case.name(view.id)
    if name not in case.kept:
        return None
    if lingers := tuple(lingering(case, view)):
        return lingers
    if view.is_unowned:
        return (silent(case, view),)
    if name not in case.excused:
        is_fading = case.may_be_ending(view) and bool(case.facts.hidden_gauges.get(view.id) or not_shown(case, view))
        return () if is_fading else None
    if view.process is not None and view.process.is_paused:
        return (silent(case, view),)
    return (ending(case, view),) if case.is_ending(view) else ()


def _errors(case: Case, view: NodeView) -> Iterator[Cause]:
    """GF10: an error in applying metadata stays for ever: the node goes on with something else than the log says."""
    count = view.metrics.metadata_error_count if view.metrics is not None else None
    if count:
        name = case.name(view.id)
        said = found_in(case.log(view.id), (METADATA_FAULT,))
        last = "".join(f". The last, by its log: {with_thrown(found)}" for found in said)
        yield case.cause(
            "GF10",
            name,
            observed=f"{count} errors while it applied metadata, since its start{last}",
            expected="MetadataErrorCount 0",
            fix=f"Its log has each with its stack trace. Restart {name} once they are understood: what it has in memory "
            "differs "
            "from the quorum's log.",
        )


def not_registered(case: Case, node_id: int) -> Iterator[Cause]:
    """A broker can serve for ever and never register: only its log says why (proven-facts, section 4)."""
    if not case.facts.is_registration_wrong or node_id not in case.facts.in_quorum or _are_all_counted(case):
        return
    controllers = {str(c.id) for c in case.spec.controllers}
    refusals = refusals_in(lately(since_registered(case.log(node_id))))
    for found in [f for f in refusals if f.told not in TO_A_PEER or controllers.intersection(f.named)][:1]:
        yield case.cause(
            WaitReason.BROKERS_NOT_REGISTERED,
            case.name(node_id),
            *case.facts.holds_up.get("broker-not-registered", ()),
            observed=f"it serves, and is not registered with the controllers. Its log says: {found.quote}"
            + (_refused_by_leader(case) if found.told is CLUSTER_ACTION_REFUSED else leaders_word(case, node_id)),
            expected=found.told.expected,
            fix=found.told.fix,
        )


def _refused_by_leader(case: Case) -> str:
    """As whom, by the active controller's log, as a further sentence."""
    leader = case.leader
    refused = refused_node_in(case.log(leader.id)) if leader is not None else None
    return f". The log of {case.name(leader.id)}, which leads, says: {refused.quote}" if leader and refused else ""


TO_A_PEER = frozenset({PEER_CUT, PEER_UNREACHABLE})


def _are_all_counted(case: Case) -> bool:
    """The quorum counts as many as serve: what differs is one that has died and is counted still, or was counted otherwise."""
    leader = case.leader
    counted = leader.metrics.active_broker_count if leader is not None else None
    return counted is not None and counted >= len(case.facts.in_quorum)


LEAVE_IT = (
    "Do not restart {name} for this: its session has ended, and it registers by itself with the next one. Where that does not "
    "last, look at the way from its host to ZooKeeper, and at pauses of its JVM and of the members'."
)


def not_in_zookeeper(case: Case, node_id: int) -> Iterator[Cause]:
    """It serves, and is not registered: its session has just ended; or somebody has deleted its registration with its session
    alive, and then no controller counts on it any more, and it does not register again by itself. Where it is the controller
    itself, its metadata goes on naming it."""
    if node_id not in case.unregistered:
        return
    name = case.name(node_id)
    lines = case.log(node_id)
    over_quota = found_in(lines, (REGISTRATION_OVER_QUOTA,))
    said = over_quota or found_in(lately(lines), (SESSION_TOO_SHORT, SESSION_LOST))
    words = f". Its log says: {said[0].quote}" if said else ""
    restart = f"Restart {name}: it registers when it starts. Before that make sure that all partitions can spare it."
    yield case.cause(
        WaitReason.BROKERS_NOT_REGISTERED,
        name,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        WaitReason.PART_UNKNOWN,
        observed=f"it runs, and /brokers/ids/{node_id} does not exist in ZooKeeper{words}",
        expected=said[0].told.expected if said else "every broker in ZooKeeper or hybrid mode is registered there",
        fix=restart if not said else said[0].told.fix + ("" if over_quota else LEAVE_IT.format(name=name)),
    )


def session_causes(case: Case, node_id: int) -> Iterator[Cause]:
    """GF11: a node that has lost ZooKeeper while others have it, as far as its metrics tell. Controllers have a session from
    their start to the end of the migration."""
    metrics = case.observation.node(node_id).metrics
    session = metrics.zookeeper_session if metrics is not None else None
    is_cut = session not in {None, "CONNECTED"} and node_id in case.facts.in_zookeeper
    if is_cut and case.observation.zookeeper is not None:
        name, lines = case.name(node_id), case.log(node_id)
        known = next(iter(found_in(lines, (ANSWER_TOO_LARGE,))), None) or cut_off(lines)
        said = f". Its log says: {known.quote}" if known is not None else complaints(case, node_id)
        words, cure = word_of_servers(case)
        is_broker, held_up = case.spec.role(node_id) is Role.BROKER, case.facts.holds_up.get("controller-without-session", ())
        explained = (WaitReason.PARTITIONS_NOT_IN_SYNC,) if is_broker else held_up
        if known is not None and not (cure and known.told is TURNED_AWAY):
            cure = fix_of_the_living(known)
        yield case.cause(
            "GF11",
            name,
            *explained,
            observed=f"its session with ZooKeeper is {session}, while ZooKeeper answers us{said}{words}",
            expected="CONNECTED",
            fix=cure or f"Look at the way from {name} to ZooKeeper: network, zookeeper.connect, credentials.",
        )


def coordinator_causes(case: Case) -> Iterator[Cause]:
    """PF46: no broker is restarted as long as that is so and nobody has accepted it."""
    counted = (miscounted(found, case.spec) for found in case.hints.miscounts)
    yield from (of_finding(case, finding) for finding in blockers_in(counted, case.policy))
