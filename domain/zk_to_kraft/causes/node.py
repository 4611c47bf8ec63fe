"""Causes that lie with one node: dead, silent, not ready, its file, its flag, its errors, its registration."""

from collections.abc import Iterator

from domain.checks.seen import some
from domain.diagnosis.logs.complaints import with_thrown
from domain.diagnosis.logs.connecting import fix_of_the_living
from domain.diagnosis.logs.lines import found_in
from domain.diagnosis.logs.running import METADATA_FAULT
from domain.health.quorum import quorum_leader
from domain.observed.observation import NodeView
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import DOWN_MODES, MAX_NAMED, UNKNOWN_MODES, Cause, Looked, cause, complaints
from domain.zk_to_kraft.causes.common_ends import ended_together, ended_with_their_machine
from domain.zk_to_kraft.causes.down import down, ending_of_dead, endings_of_dead
from domain.zk_to_kraft.causes.file import file_cause, storage_causes
from domain.zk_to_kraft.causes.registration import left_behind, not_in_zookeeper, not_registered, session_causes
from domain.zk_to_kraft.causes.silent import silent
from domain.zk_to_kraft.causes.unreached import kept_apart
from domain.zk_to_kraft.causes.unready import ending, lingering, not_ready, not_shown, unmeasured
from domain.zk_to_kraft.migration_lines import CONTROLLER_WITHOUT_FLAG
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode, left_out
from domain.zk_to_kraft.probed import probed
from domain.zk_to_kraft.situation import BrokerSituation, ControllerSituation
from domain.zk_to_kraft.waits import ZkWait


def node_causes(looked: Looked) -> Iterator[Cause]:
    """Node by node. One that a step of ours works on has none while it is excused, but that it stands still, or does not end.
    Its file is the step's own affair.
    """
    endings = endings_of_dead(looked)
    with_machine = dict(ended_with_their_machine(looked, endings))
    others = {i: ending for i, ending in endings.items() if not any(i in ids for ids in with_machine)}
    together = with_machine | dict(ended_together(looked, others))
    yield from together.values()
    for node in looked.situation.nodes:
        view = looked.observation.node(node.id)
        if (held := _held(looked, view)) is not None:
            yield from held
            continue
        if node.mode in DOWN_MODES:
            if not any(node.id in ids for ids in together):
                yield down(looked, view, endings.get(node.id) or ending_of_dead(looked, view))
        elif node.mode in UNKNOWN_MODES:
            yield silent(looked, view)
        elif missing := not_shown(looked, view):
            yield unmeasured(looked, view, missing)
        elif node.mode in {BrokerMode.IN_TRANSITION, ControllerMode.IN_TRANSITION}:
            yield not_ready(looked, view)
        elif isinstance(node, ControllerSituation):
            yield from _not_caught_up(looked, node)
            yield from session_causes(looked, node)
            yield from storage_causes(looked, view) if node.mode is not ControllerMode.ABSENT else ()
        elif isinstance(node, BrokerSituation):
            yield from left_behind(looked, node)
            yield from not_registered(looked, node)
            yield from not_in_zookeeper(looked, node)
            yield from session_causes(looked, node)
            yield from storage_causes(looked, view)
        yield from file_cause(looked, node)
        yield from _errors(looked, view)


def _held(looked: Looked, view: NodeView) -> tuple[Cause, ...] | None:
    """`None` of a node that is judged as any other: not in our hands, or for longer than it should be. The gauges of one that
    ends go one by one."""
    name = looked.name(view.id)
    if name not in looked.kept:
        return None
    if lingers := tuple(lingering(looked, view)):
        return lingers
    if view.is_unowned:
        return (silent(looked, view),)
    if name not in looked.excused:
        is_fading = looked.may_be_ending(view) and bool(left_out(view) or not_shown(looked, view))
        return () if is_fading else None
    if view.process is not None and view.process.is_paused:
        return (silent(looked, view),)
    return (ending(looked, view),) if looked.is_ending(view) else ()


def _not_caught_up(looked: Looked, node: ControllerSituation) -> Iterator[Cause]:
    leader = quorum_leader(looked.observation, looked.spec)
    if node.is_caught_up or leader is None or node.mode not in {ControllerMode.MIGRATING, ControllerMode.FINAL}:
        return
    metrics, name = looked.observation.node(node.id).metrics, looked.name(node.id)
    if node.id in (probed(looked.observation).unregistered or ()):
        yield cause(
            looked,
            WaitReason.CONTROLLERS_NOT_READY,
            name,
            observed=f"it runs, and the log of {looked.name(leader.id)}, which leads, has no registration of it"
            + complaints(looked, node.id),
            expected="every controller has registered: the copy does not begin before",
            fix=f"It registers within seconds of the quorum's first election. If it lasts, restart {name}: a registration that "
            "was not answered in time is never sent again by that process (KAFKA-20247).",
        )
        return
    end = metrics.raft_log_end if metrics is not None else None
    follows = metrics.raft_leader if metrics is not None else None
    said = kept_apart(looked.hints.logs.get(node.id, ()))
    yield cause(
        looked,
        WaitReason.CONTROLLERS_NOT_READY,
        name,
        WaitReason.QUORUM_TOO_THIN,
        observed=f"its log ends at {end}, it follows {follows}; {looked.name(leader.id)} leads, at "
        f"{leader.metrics.raft_log_end}"
        + (f". Its log says: {said.quote}" if said is not None else complaints(looked, node.id)),
        expected="every controller follows the leader, and has its log",
        fix=fix_of_the_living(said)
        if said is not None
        else "Give it a moment. If it lasts, check that it reaches the leader's listener, and that controller.quorum.voters is "
        "the same on all controllers.",
    )


def _errors(looked: Looked, view: NodeView) -> Iterator[Cause]:
    """GF10: an error in applying metadata stays for ever: the node goes on with something else than the log says."""
    count = view.metrics.metadata_error_count if view.metrics is not None else None
    if count:
        name = looked.name(view.id)
        said = found_in(looked.hints.logs.get(view.id, ()), (METADATA_FAULT,))
        last = "".join(f". The last, by its log: {with_thrown(found)}" for found in said)
        yield cause(
            looked,
            "GF10",
            name,
            observed=f"{count} errors while it applied metadata, since its start{last}",
            expected="MetadataErrorCount 0",
            fix=f"Its log has each with its stack trace. Restart {name} once they are understood: what it has in memory "
            "differs "
            "from the quorum's log.",
        )


def flagless(looked: Looked) -> Iterator[Cause]:
    """What the active controller says of a controller that never had the flag, which shows nothing of it itself."""
    for lines in looked.hints.logs.values():
        for found in found_in(lines, (CONTROLLER_WITHOUT_FLAG,)):
            known = {c.id for c in looked.spec.controllers}
            about = [looked.name(int(i)) if int(i) in known else f"controller {i}" for i in found.named]
            yield cause(
                looked,
                ZkWait.CONTROLLER_LOST_ITS_FLAG,
                some(about[:MAX_NAMED]),
                WaitReason.CONTROLLERS_NOT_READY,
                ZkWait.COPY_NOT_COMPLETE,
                observed=f"the active controller says: {found.quote}",
                expected=found.told.expected,
                fix=found.told.fix,
            )
