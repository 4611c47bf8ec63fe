"""The model and `decide`, explored together breadth-first: no path ends a migration unasked or loses metadata, and every state
that can be reached is led to an end.

Each state is reached with a number of hostile moves left; our own workers may die between any two effects, at no cost.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from domain.decisions import Decision, Done, Gate, Intent, Revert, Step, Wait
from domain.waits import WaitReason
from domain.zk_to_kraft.conditions import Approval, Compared
from domain.zk_to_kraft.decide import decide
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.situation import Claim, QuorumState
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from domain.zk_to_kraft.waits import ZkWait
from domain.zk_to_kraft.way_back import OUTCOME
from tests.unit.model.hands import answers, asked_back, carried_out, hostile_moves, is_back, next_effect
from tests.unit.model.moves import Move, changes, moves_of_kafka, slow_moves
from tests.unit.model.world import (
    Broker,
    Checker,
    Controller,
    Driver,
    State,
    Znode,
    beginning,
    replace,
    situation_of_model,
    terms_of_model,
)
from tests.unit.walk_of_situations import check_invariant

pytestmark = pytest.mark.timeout(1500)
"""A walk takes minutes on two busy cores."""


def decided(state: State) -> Decision:
    """What is decided; a step is one that the invariant allows."""
    s, terms = situation_of_model(state), terms_of_model(state)
    decision = decide(s, terms)
    if isinstance(decision, Step):
        check_invariant(s, terms, decision)
    return decision


def moves(state: State) -> Iterator[Move]:
    """Everything that may follow without anybody's ill will."""
    yield from moves_of_kafka(state)
    yield from changes(state)
    if state.intent is Intent.FORWARD:
        yield "rollback asked for", asked_back(state)
    if state.in_hand is not None:
        yield f"{state.in_hand[0].action} goes on", next_effect(state)
        yield "the worker dies", replace(state, in_hand=None)
        return
    decision = decided(state)
    if isinstance(decision, Step):
        yield f"{decision.action} {decision.node_id} {decision.stage}", next_effect(replace(state, in_hand=(decision, 0)))
    elif isinstance(decision, Revert):
        yield f"turned round: {decision.reason}", asked_back(state)
    elif not isinstance(decision, Done):
        yield from answers(state, decision)
        yield from slow_moves(state)


def settled(before: State, after: State) -> State:
    """An approval is bound to evidence: whatever is seen to change makes it stale, another verdict as well."""
    is_as_before = situation_of_model(before) == situation_of_model(after) and before.compared is after.compared
    if after.approval is not Approval.VALID or is_as_before:
        return after
    return replace(after, approval=Approval.STALE)


@dataclass
class Explored:
    """States by the hostile moves that were left when they were reached first, and how each was reached."""

    left: dict[State, int] = field(default_factory=dict)
    came_from: dict[State, tuple[State, str]] = field(default_factory=dict)
    transitions: int = 0

    def path(self, state: State) -> str:
        lines: list[str] = []
        while state in self.came_from:
            state, what = self.came_from[state]
            lines.append(what)
        return "\n".join(reversed(lines))


def explored(start: State, hostile: int) -> Explored:
    """Everything that can be reached with at most so many hostile moves."""
    found = Explored(left={start: hostile})
    queue = deque([start])
    while queue:
        state = queue.popleft()
        left = found.left[state]
        following = [(what, after, left) for what, after in moves(state)]
        if left:
            following += [(f"HOSTILE {what}", after, left - 1) for what, after in hostile_moves(state)]
        for what, unsettled, after_left in following:
            after = settled(state, unsettled)
            found.transitions += 1
            if found.left.get(after, -1) < after_left:
                found.left[after] = after_left
                found.came_from.setdefault(after, (state, what))
                queue.append(after)
    return found


def ends_of(states: Explored) -> dict[State, str]:
    """For each state the end that `decide` leads to, once nobody is hostile any more. Fails where it leads to none."""
    ends: dict[State, str] = {}
    for state in states.left:
        follow(replace(state, in_hand=None), ends, lambda state=state: states.path(state))
    return ends


def follow(state: State, ends: dict[State, str], path: Callable[[], str]) -> str:
    walked: dict[State, None] = {}
    while state not in ends:
        if state in walked:
            pytest.fail(f"round in circles: {decided(state)}\n{path()}\n{state}")
        walked[state] = None
        decision = decided(state)
        if isinstance(decision, Done):
            ends[state] = decision.outcome
            check_end(state, decision, path)
            break
        after = advanced(state, decision)
        assert after is not None, f"dead end: {decision}\n{path()}\n{state}"
        state = settled(state, after)
    for each in walked:
        ends[each] = ends[state]
    return ends[state]


def advanced(state: State, decision: Decision) -> State | None:
    """A decision carried out; a wait: what Kafka does next, else what people do. `None`: nothing will ever happen again."""
    if isinstance(decision, Revert):
        return asked_back(state)
    if isinstance(decision, Step):
        after = proven(carried_out(state, decision))
        if settled(state, after) != state:
            return after
    if isinstance(decision, Gate):
        return next(after for _, after in answers(state, decision))
    wait = decision if isinstance(decision, Wait) else Wait.model_validate({"reason": "controllers-not-ready"})
    following = [*moves_of_kafka(state), *answers(state, wait), *slow_moves(state)]
    return next((after for _, after in following), None)


def proven(state: State) -> State:
    """A step looks until its node serves, and the quorum leads."""
    by_itself = {what: after for what, after in moves_of_kafka(state) if what.endswith(("boots", "elected"))}
    return proven(next(iter(by_itself.values()))) if by_itself else state


def check_end(state: State, done: Done, path: Callable[[], str]) -> None:
    if done.outcome == OUTCOME:
        assert state.intent is Intent.REVERT
        assert state.log is QuorumState.ABSENT
        assert all(is_back(b) and not b.has_log for b in state.brokers), path()
    else:
        assert done.outcome == Phase.KRAFT
        assert state.intent is Intent.FORWARD or state.log is QuorumState.POST_MIGRATION, path()


# Counter-examples, found by the exploration or on the way to it. Each was a dead end, a circle or worse.

ZK, HYBRID, KRAFT = NodeStage.ZOOKEEPER, NodeStage.MIGRATION, NodeStage.KRAFT
FENCED = Controller(file=HYBRID, is_formatted=True, is_fenced=True)
ACTIVE = Controller(file=HYBRID, process=HYBRID, is_up=True, is_leader=True, is_formatted=True)


def in_dual_write(stage: NodeStage, controller: Controller = ACTIVE, **values: object) -> State:
    """Two brokers at one stage, one controller, the copy complete."""
    state = State(
        brokers=(Broker(file=stage, process=stage, has_log=True),) * 2,
        controllers=(controller,),
        log=QuorumState.MIGRATION,
        driver=Driver.ACTIVE if controller.is_leader else Driver.NONE,
        claim=Claim.KRAFT,
        is_claim_leaders=controller.is_leader,
        migration=Znode.COPIED,
        is_epoch_behind=True,
    )
    return replace(state, **values)


WINDOW_OVER = {
    "claim": Claim.NOBODY,
    "migration": Znode.ABSENT,
    "is_epoch_behind": False,
    "log": QuorumState.PRE_MIGRATION,
    "intent": Intent.REVERT,
}


def rolls(node_id: int, stage: NodeStage) -> Step:
    return Step(action=StepAction.ROLL_NODE, node_id=node_id, stage=stage)


def starts(node_id: int) -> Step:
    return Step(action=StepAction.START_NODE, node_id=node_id, stage=HYBRID)


LEAVES = Step(action=StepAction.LEAVE_KRAFT, stage=ZK)

COUNTER_EXAMPLES: dict[str, tuple[State, Decision, str]] = {
    "nobody is left who could become controller: what we stopped is finished all the same": (
        in_dual_write(
            HYBRID,
            FENCED,
            brokers=(Broker(file=HYBRID, process=None, is_up=False, is_marked=True), Broker(process=None, is_up=False)),
            **WINDOW_OVER,
        ),
        rolls(1, ZK),
        OUTCOME,
    ),
    "a flag is lost under the fence: a flush would have made the migration final": (
        in_dual_write(HYBRID, replace(FENCED, file=KRAFT), is_flushed=False, intent=Intent.REVERT, is_flag_tampered=True),
        rolls(3001, HYBRID),
        OUTCOME,
    ),
    "a flag is lost under the fence, and the way forward lifts it": (
        in_dual_write(HYBRID, replace(FENCED, file=KRAFT), is_flag_tampered=True),
        rolls(3001, HYBRID),
        Phase.KRAFT,
    ),
    "the worker died between fence and kill: forward again lifts the fence of what still runs": (
        in_dual_write(HYBRID, replace(ACTIVE, is_fenced=True)),
        starts(3001),
        Phase.KRAFT,
    ),
    "a fenced quorum whose brokers run in KRaft mode has to live again first": (
        in_dual_write(KRAFT, FENCED, intent=Intent.REVERT),
        starts(3001),
        OUTCOME,
    ),
    "the log became final while a flag was being given back: the file would be a lie": (
        in_dual_write(
            KRAFT,
            Controller(file=HYBRID, process=KRAFT, is_up=True, is_leader=True, is_formatted=True),
            log=QuorumState.POST_MIGRATION,
            driver=Driver.NONE,
            intent=Intent.REVERT,
        ),
        rolls(3001, KRAFT),
        Phase.KRAFT,
    ),
    "final too early, and a controller's file is ahead or behind: the brokers come first": (
        in_dual_write(
            HYBRID,
            replace(ACTIVE, file=KRAFT),
            log=QuorumState.POST_MIGRATION,
            driver=Driver.NONE,
        ),
        rolls(1, KRAFT),
        Phase.KRAFT,
    ),
    "a broker that cannot run in KRaft mode does not keep the others from going back": (
        in_dual_write(
            KRAFT,
            brokers=(
                Broker(file=KRAFT, process=None, is_up=False, has_log=True),
                Broker(file=KRAFT, process=KRAFT, has_log=True),
            ),
            intent=Intent.REVERT,
        ),
        rolls(1, HYBRID),
        OUTCOME,
    ),
    "a hybrid broker that is down after the window starts in ZooKeeper mode": (
        in_dual_write(
            HYBRID,
            FENCED,
            brokers=(Broker(file=HYBRID, process=None, is_up=False), Broker(file=HYBRID, process=HYBRID, is_claimant=True)),
            **(WINDOW_OVER | {"claim": Claim.ZOOKEEPER}),
        ),
        rolls(1, ZK),
        OUTCOME,
    ),
    "a file in stage kraft after the window wakes no quorum": (
        in_dual_write(
            HYBRID,
            FENCED,
            brokers=(Broker(file=KRAFT, process=HYBRID), Broker(file=HYBRID, process=HYBRID, is_claimant=True)),
            **(WINDOW_OVER | {"claim": Claim.ZOOKEEPER}),
        ),
        rolls(1, ZK),
        OUTCOME,
    ),
    "an election is no reason to open the window": (
        in_dual_write(HYBRID, replace(ACTIVE, is_leader=False), intent=Intent.REVERT, is_flushed=False),
        Wait(reason=WaitReason.CONTROLLERS_NOT_READY),
        OUTCOME,
    ),
    "a claim deleted by hand comes back with a failover, which a person allows": (
        in_dual_write(KRAFT, claim=Claim.NOBODY, is_claim_leaders=False, is_tampered=True),
        Gate(name=GateName.FAIL_OVER, evidence_hash="evidence"),
        Phase.KRAFT,
    ),
    "half a way back that nobody leads is not gone on with: one restart, not two": (
        in_dual_write(
            KRAFT, brokers=(Broker(file=HYBRID, process=KRAFT, has_log=True), Broker(file=KRAFT, process=KRAFT, has_log=True))
        ),
        rolls(1, KRAFT),
        Phase.KRAFT,
    ),
    "a broker is down while controllers are provisioned: that is no half-done way back": (
        replace(beginning(2, 1), brokers=(Broker(process=None, is_up=False), Broker(is_claimant=True))),
        Wait(reason=WaitReason.NODE_DOWN, objects=("1",)),
        Phase.KRAFT,
    ),
    "nobody compares: that is a wait by its name, and not the end of the way": (
        in_dual_write(KRAFT, checker=Checker.MISSED),
        Wait(reason=WaitReason.CHECKS_WORKER_MISSING),
        Phase.KRAFT,
    ),
    "a drift is found after the approval: it is repaired and compared before anything ends": (
        in_dual_write(KRAFT, approval=Approval.STALE, is_drifted=True, compared=Compared.DRIFT),
        Wait(reason=ZkWait.DRIFT_FOUND),
        Phase.KRAFT,
    ),
    "a failover has begun another dual write: the report of the one before proves nothing": (
        in_dual_write(KRAFT, approval=Approval.VALID),
        Step(action=StepAction.COMPARE_METADATA, stage=HYBRID),
        Phase.KRAFT,
    ),
    "a topic without an id gets it back before anybody is elected in ZooKeeper": (
        in_dual_write(HYBRID, intent=Intent.REVERT, lacks_id=True),
        Wait(reason=ZkWait.TOPIC_WITHOUT_ID),
        OUTCOME,
    ),
    "a topic without an id stops the way forward as well, where a failover could elect a broker": (
        in_dual_write(KRAFT, lacks_id=True),
        Wait(reason=ZkWait.TOPIC_WITHOUT_ID),
        Phase.KRAFT,
    ),
    "a quorum revived after the window is fenced anew": (
        in_dual_write(
            HYBRID,
            brokers=(Broker(file=HYBRID, process=HYBRID, is_claimant=True, has_log=True), Broker(file=ZK, has_log=True)),
            **(WINDOW_OVER | {"claim": Claim.ZOOKEEPER, "migration": Znode.FRESH, "log": QuorumState.MIGRATION}),
            driver=Driver.INACTIVE,
            accepts_loss=True,
        ),
        LEAVES,
        OUTCOME,
    ),
}


@pytest.mark.parametrize("what", COUNTER_EXAMPLES)
def test_a_counter_example_is_led_to_its_end(what: str) -> None:
    state, decision, end = COUNTER_EXAMPLES[what]
    assert decided(state) == decision
    assert follow(state, {}, lambda: what) == end


# Everything

SLOW = (pytest.mark.chaos, pytest.mark.timeout(1800))
"""Half a minute of one core each, and as long again to follow every state to its end."""

CLUSTERS = [
    pytest.param(1, 1, 2, id="1 broker, 1 controller, 2 hostile moves", marks=SLOW),
    pytest.param(2, 1, 1, id="2 brokers, 1 controller, 1 hostile move", marks=SLOW),
    pytest.param(1, 1, 1, id="1 broker, 1 controller, 1 hostile move"),
    pytest.param(2, 3, 0, id="2 brokers, 3 controllers"),
    pytest.param(2, 1, 2, id="2 brokers, 1 controller, 2 hostile moves", marks=SLOW),
    pytest.param(2, 3, 1, id="2 brokers, 3 controllers, 1 hostile move", marks=SLOW),
]


@pytest.mark.parametrize(("brokers", "controllers", "hostile"), CLUSTERS)
def test_every_path_is_safe_and_led_to_an_end(brokers: int, controllers: int, hostile: int) -> None:
    """Safe: never final without an approval or a hand in a file, no metadata lost, never two controllers."""
    states = explored(beginning(brokers, controllers), hostile)
    hurt = [state for state in states.left if state.damage]
    print(f"{len(states.left):,} states, {states.transitions:,} transitions, {len(hurt)} damaged")
    assert not hurt, f"{hurt[0].damage}:\n{states.path(hurt[0])}\n{hurt[0]}"
    ends = ends_of(states)
    print(", ".join(f"{count:,} end in {end}" for end, count in Counter(ends.values()).items()))
    assert set(ends.values()) == {OUTCOME, Phase.KRAFT}


def test_forward_ends_in_kraft_unless_something_forbids_it() -> None:
    """Without hostile moves no migration turns round by itself, whoever dies, and whenever."""
    states = explored(beginning(2, 1), 0)
    ends = ends_of(states)
    forward = [ends[replace(state, in_hand=None)] for state in states.left if state.intent is Intent.FORWARD]
    back = [state for state in states.left if state.intent is Intent.REVERT and state.log is not QuorumState.POST_MIGRATION]
    print(f"{len(forward)} states on the way forward, {len(back)} on the way back")
    assert set(forward) == {Phase.KRAFT}
    at_rest = [state for state in back if state.in_hand is None and not state.is_consumed]
    assert {ends[state] for state in at_rest} == {OUTCOME}


def test_the_model_can_be_hurt() -> None:
    """Its damages are not decoration: the window done by hand, in the order of the guide, without epoch and `/migration`."""
    state = in_dual_write(HYBRID, replace(ACTIVE, process=None, is_up=False, is_leader=False), claim=Claim.NOBODY)
    elected = dict(moves_of_kafka(state))["broker-1 becomes controller"]
    assert elected.damage == "elected below the known epoch"
    revived = replace(state, is_epoch_behind=False, controllers=(replace(ACTIVE, is_up=False, is_leader=False),))
    for what in ("broker-1 becomes controller", "controller-3001 boots", "controller-3001 elected", "reconciled"):
        revived = dict(moves_of_kafka(revived))[what]
    assert revived.damage == "metadata deleted"
    lacking = in_dual_write(HYBRID, intent=Intent.REVERT, lacks_id=True)
    assert carried_out(lacking, LEAVES).damage == "a topic id made up"
    unasked = in_dual_write(KRAFT, replace(ACTIVE, process=KRAFT, is_leader=False))
    assert dict(moves_of_kafka(unasked))["controller-3001 elected"].damage == "finalised without approval"
