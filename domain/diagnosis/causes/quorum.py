"""The controller quorum: no leader, endless elections, listeners that are shut, controllers behind, brokers fenced again and
again."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from domain.cluster import Role
from domain.diagnosis.causes.case import Case, Cause
from domain.diagnosis.causes.quotes import TIMERS_STAND, complaints, kept_apart, set_back
from domain.diagnosis.causes.reachability import door_of, unresolved_cause
from domain.diagnosis.logs.connecting import FENCED, fix_of_the_living
from domain.diagnosis.logs.lines import current, first_of
from domain.diagnosis.logs.running import epochs_lately
from domain.health.liveness import GONE as ENDED
from domain.health.liveness import Liveness
from domain.observed.observation import NodeView
from domain.waits import WaitReason

LIFELESS = (*ENDED, Liveness.UNKNOWN, Liveness.FENCED)


def quorum_causes(case: Case) -> Iterator[Cause]:
    """No leader though all controllers run, endless elections, listeners that are shut, brokers fenced again and again."""
    made = [c.id for c in case.spec.controllers if case.liveness(c.id) is not Liveness.ABSENT]
    is_explained = 2 * len(case.ids(Role.CONTROLLER, *LIFELESS)) >= len(case.spec.controllers)
    is_ours = not case.excused.isdisjoint(map(case.name, made))
    if (epochs := _epochs_lately(case)) >= MANY_EPOCHS:
        yield _elections(case, epochs)
    are_all_there = len(made) == len(case.spec.controllers)
    is_leaderless = case.leader is None and not _is_leader_silent(case)
    if are_all_there and is_leaderless and not is_explained and not is_ours:
        yield _leaderless(case)
    yield from _unreached_controllers(case)
    yield from _fenced_again(case)


def _leaderless(case: Case) -> Cause:
    ids = [c.id for c in case.spec.controllers]
    said = {i: found for i in ids if (found := kept_apart(case.log(i))) is not None}
    words = [f". The log of {case.name(i)} says: {found.quote}" for i, found in said.items()]
    back = set_back(case, *ids)
    fixes = [TIMERS_STAND] if back else [fix_of_the_living(found) for found in said.values()]
    return case.cause(
        WaitReason.CONTROLLERS_NOT_READY,
        "the quorum",
        observed=f"no controller is active, although a majority of them runs{back}"
        + ("".join(words[:1]) or complaints(case, *ids)),
        expected="one active controller",
        fix=fixes[0]
        if fixes
        else "An election takes a second or two. If it lasts, check that the controllers reach each other's listeners.",
    )


def _is_leader_silent(case: Case) -> bool:
    """Whether the one that others follow has not answered: then it is known what is the matter, and nobody is missing."""
    followed = {view.metrics.raft_leader for view in case.observation.nodes if view.metrics is not None}
    return not followed.isdisjoint(case.ids(Role.CONTROLLER, Liveness.UNKNOWN))


LATELY, MANY_EPOCHS = timedelta(seconds=60), 5
"""An election takes one epoch, or two where votes are split."""


def _epochs_lately(case: Case) -> int:
    """The most that one controller has seen, once all have run for so long: until a majority runs, whoever does stands for
    election without an end."""
    ids = [c.id for c in case.spec.controllers]
    runs = {i: process for i in ids if (process := case.observation.node(i).process) is not None and process.is_running}
    ages = {i: case.observation.ended_at - process.started_at for i, process in runs.items() if process.started_at}
    if len(ages) < len(ids) or min(ages.values()) < LATELY:
        return 0
    return max(epochs_lately(case.log(i), age, LATELY) for i, age in ages.items())


def _elections(case: Case, epochs: int) -> Cause:
    """In one moment there is a leader, and in the next there is none."""
    return case.cause(
        WaitReason.CONTROLLERS_NOT_READY,
        "the quorum",
        WaitReason.QUORUM_TOO_THIN,
        WaitReason.BROKERS_NOT_REGISTERED,
        *case.facts.holds_up.get("no-stable-leader", ()),
        observed=f"its controllers keep electing: {epochs} epochs within the last minute"
        + complaints(case, *(c.id for c in case.spec.controllers)),
        expected="one leader that stays",
        fix="If the controllers' files set controller.quorum.fetch.timeout.ms (2 s by default) or "
        "controller.quorum.election.timeout.ms (1 s) lower, remove that. If not, check their disks (every vote "
        "is flushed), their garbage collection, and the links between them. An election begins each time the "
        "leader was not heard, or no majority agreed, within those times.",
    )


def _unreached_controllers(case: Case) -> Iterator[Cause]:
    """It follows, has every record, and nobody can ask it for its vote or follow it: no gauge of its own shows that."""
    excused = case.excused
    for controller in case.spec.controllers:
        name, address = case.name(controller.id), f"{controller.host}:{controller.port}"
        is_running = case.liveness(controller.id) is Liveness.SERVING
        if is_running and case.is_unresolved(address) and name not in excused:
            yield unresolved_cause(case)
        elif is_running and address in case.hints.shut and name not in excused:
            door = door_of(case, name, address)
            yield case.cause(
                WaitReason.CONTROLLERS_NOT_READY,
                name,
                WaitReason.QUORUM_TOO_THIN,
                observed=f"it runs, and no connection to {address} is accepted within two seconds: it may follow, and can "
                "neither vote nor lead" + (door.observed if door is not None else ""),
                expected="brokers, the other controllers and keeperless-activities reach every controller",
                fix=f"{door.fix if door is not None else ''}Open {address} for them: a firewall, or the listener's address. "
                "Restart no other controller before: this one does not count in the majority, and neither finalisation "
                "nor a failover by Keeperless proceeds. Brokers are restarted meanwhile, as long as a controller leads.",
            )


OFTEN = 2
"""Times that a broker was fenced: once is what a broker that was killed leaves."""


def _fenced_again(case: Case) -> Iterator[Cause]:
    """It serves, and loses its session with the controllers again and again: between that it is registered."""
    leader = case.leader
    lines = current(case.log(leader.id)) if leader is not None else ()
    told = Counter(found.named[0] for line in lines if (found := first_of(line, (FENCED,))) is not None)
    for broker in case.spec.brokers:
        if told[str(broker.id)] < OFTEN or broker.id not in case.facts.in_quorum:
            continue
        yield case.cause(
            WaitReason.BROKERS_NOT_REGISTERED,
            case.name(broker.id),
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            *case.facts.holds_up.get("broker-not-registered", ()),
            observed=f"it serves, and the active controller has fenced it {told[str(broker.id)]} times within minutes, "
            "because no heartbeat came in time" + complaints(case, broker.id),
            expected=FENCED.expected,
            fix=FENCED.fix,
        )


def not_caught_up(case: Case, node: NodeView) -> Iterator[Cause]:
    leader = case.leader
    if leader is None or node.id not in case.facts.not_caught_up or case.liveness(node.id) is not Liveness.SERVING:
        return
    metrics, name = node.metrics, case.name(node.id)
    if node.id in case.facts.never_registered:
        yield case.cause(
            WaitReason.CONTROLLERS_NOT_READY,
            name,
            observed=f"it runs, and the log of {case.name(leader.id)}, which leads, has no registration of it"
            + complaints(case, node.id),
            expected="every controller has registered: the copy does not begin before",
            fix=f"It registers within seconds of the quorum's first election. If it lasts, restart {name}: a registration that "
            "was not answered in time is never sent again by that process (KAFKA-20247).",
        )
        return
    end = metrics.raft_log_end if metrics is not None else None
    follows = metrics.raft_leader if metrics is not None else None
    said = kept_apart(case.log(node.id))
    yield case.cause(
        WaitReason.CONTROLLERS_NOT_READY,
        name,
        WaitReason.QUORUM_TOO_THIN,
        observed=f"its log ends at {end}, it follows {follows}; {case.name(leader.id)} leads, at "
        f"{leader.metrics.raft_log_end}" + (f". Its log says: {said.quote}" if said is not None else complaints(case, node.id)),
        expected="every controller follows the leader, and has its log",
        fix=fix_of_the_living(said)
        if said is not None
        else "Give it a moment. If it lasts, check that it reaches the leader's listener, and that controller.quorum.voters is "
        "the same on all controllers.",
    )
