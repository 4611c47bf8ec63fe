"""The model and `decide`, explored together breadth-first: no path ends a migration unasked or loses metadata, and every state
that can be reached is led to an end.

Each state is reached with a number of hostile moves left; our own workers may die between any two effects, at no cost.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from domain.decisions import Decision, Done, Gate, Intent, Revert, Step, Wait
from domain.zk_to_kraft.decide import decide
from domain.zk_to_kraft.model import State, beginning, replace, situation_of_model, terms_of_model
from domain.zk_to_kraft.model_hands import answers, asked_back, carried_out, hostile_moves, is_back, next_effect
from domain.zk_to_kraft.model_moves import Move, changes, moves_of_kafka, slow_moves
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.situation import QuorumState
from domain.zk_to_kraft.terms import Approval
from domain.zk_to_kraft.way_back import OUTCOME


def decided(state: State) -> Decision:
    return decide(situation_of_model(state), terms_of_model(state))


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
    """An approval is bound to evidence: whatever is seen to change makes it stale."""
    if after.approval is not Approval.VALID or situation_of_model(before) == situation_of_model(after):
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


CLUSTERS = [pytest.param(2, 1, 2, id="2x1 with two hostile moves"), pytest.param(2, 3, 1, id="2x3 with one hostile move")]


@pytest.mark.parametrize(("brokers", "controllers", "hostile"), CLUSTERS)
def test_every_path_is_safe_and_led_to_an_end(brokers: int, controllers: int, hostile: int) -> None:
    states = explored(beginning(brokers, controllers), hostile)
    hurt = [state for state in states.left if state.damage]
    print(f"{len(states.left):,} states, {states.transitions:,} transitions, {len(hurt)} damaged")
    assert not hurt, f"{hurt[0].damage}:\n{states.path(hurt[0])}\n{hurt[0]}"
    ends = ends_of(states)
    print({end: sum(each == end for each in ends.values()) for end in set(ends.values())})
    assert set(ends.values()) == {OUTCOME, Phase.KRAFT}
