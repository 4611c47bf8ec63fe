"""The rules of approvals: what a command does to them, and when one allows an irreversible write."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.approvals import Attempt, Rules, effect_of, is_held, seen, state_of, told_of, why_not_consumed
from domain.principals import Via
from domain.records import ApprovalState, Command, CommandKind
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import FINAL_GATES, GateName

NOW = datetime(2026, 3, 1, 3, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)
EVIDENCE = "e" * 64
RULES = Rules(ZkToKraftPolicy(approval_expires_after=DAY), requested_by="olga", requested_at=NOW)
ENDLESS = ZkToKraftPolicy(approval_expires_after=None)

GIVEN: dict[ApprovalState, dict[str, Any]] = {
    ApprovalState.ARMED: {"expires_at": NOW + DAY},
    ApprovalState.COUNTED: {"waits_for_others": True, "expires_at": NOW + DAY},
    ApprovalState.CONSUMED: {"consumed_at": NOW, "consumed_by": "m1/7", "expires_at": NOW - DAY},
    ApprovalState.DONE: {"consumed_at": NOW, "consumed_by": "m1/7", "closed_at": NOW, "closed_as": ApprovalState.DONE},
    ApprovalState.WITHDRAWN: {"closed_at": NOW, "closed_as": ApprovalState.WITHDRAWN, "closed_because": "rejected by zoe: no"},
    ApprovalState.VOID: {"closed_at": NOW, "closed_as": ApprovalState.VOID, "closed_because": "held by zoe: wait"},
    ApprovalState.EXPIRED: {"expires_at": NOW},
}
"""An approval in each of its states."""


def a_command(kind: CommandKind, name: str = "", **fields: Any) -> Command:
    given = {"id": name or kind, "migration_id": "m1", "kind": kind, "by": "anna", "via": "api", "at": NOW, "reason": "why"}
    return Command.model_validate(given | fields)


def approval(state: ApprovalState = ApprovalState.ARMED, gate: GateName = GateName.FINALIZE, name: str = "a") -> Command:
    return a_command(CommandKind.APPROVE, name, gate=gate, evidence_hash=EVIDENCE, **GIVEN[state])


def attempt(**changes: Any) -> Attempt:
    asked = {"id": "m1/7", "migration_id": "m1", "cluster": "orders", "generation": 1, "gate": GateName.FINALIZE}
    asked |= {"command_id": "a", "evidence_hash": EVIDENCE} | changes
    return Attempt(**asked, is_in_section=asked["gate"] in FINAL_GATES)


HOLD, RESUME = a_command(CommandKind.HOLD), a_command(CommandKind.RESUME, gate=GateName.FINALIZE)


@pytest.mark.parametrize("state", ApprovalState)
def test_an_approval_in_each_state_says_so(state: ApprovalState) -> None:
    assert state_of(approval(state), NOW) is state
    shown = seen(approval(state), NOW)
    assert shown is not None
    assert (shown.state, shown.by, shown.gate) == (state, "anna", "finalize")


def test_a_refused_approval_and_other_commands_have_no_state() -> None:
    assert state_of(approval().model_copy(update={"refused_because": "the gate is not open"}), NOW) is None
    assert [state_of(a_command(kind), NOW) for kind in CommandKind if kind is not CommandKind.APPROVE] == [None] * 4


@pytest.mark.parametrize("state", ApprovalState)
@pytest.mark.parametrize("kind", [CommandKind.HOLD, CommandKind.REJECT])
def test_only_an_unused_approval_is_closed_by_a_person(kind: CommandKind, state: ApprovalState) -> None:
    gate = GateName.FINALIZE if kind is CommandKind.REJECT else None
    effect = effect_of(a_command(kind, gate=gate), [approval(state)], RULES, NOW)
    becomes = ApprovalState.VOID if kind is CommandKind.HOLD else ApprovalState.WITHDRAWN
    closed = [(one.id, one.closed_as) for one in effect.closed]
    assert closed == ([("a", becomes)] if state in {ApprovalState.ARMED, ApprovalState.COUNTED} else [])


def test_a_rejection_withdraws_the_approval_of_its_own_gate_only() -> None:
    others = [approval(gate=GateName.FAIL_OVER, name="b"), approval()]
    effect = effect_of(a_command(CommandKind.REJECT, gate=GateName.FINALIZE), others, RULES, NOW)
    assert [one.id for one in effect.closed] == ["a"]


def test_a_rejection_of_what_is_consumed_says_when() -> None:
    effect = effect_of(a_command(CommandKind.REJECT, gate=GateName.FINALIZE), [approval(ApprovalState.CONSUMED)], RULES, NOW)
    assert "consumed at 2026-03-01 03:00:00 UTC by step m1/7" in (effect.command.refused_because or "")


def test_a_hold_within_an_irreversible_section_names_its_gate() -> None:
    assert effect_of(HOLD, [approval(ApprovalState.CONSUMED)], RULES, NOW).command.gate == GateName.FINALIZE
    assert effect_of(HOLD, [approval(ApprovalState.DONE), approval(name="b")], RULES, NOW).command.gate is None


@pytest.mark.parametrize(
    ("begin", "state", "is_refused"),
    [
        (None, ApprovalState.ARMED, True),
        (GateName.FAIL_OVER, ApprovalState.ARMED, True),
        (GateName.FINALIZE, ApprovalState.ARMED, False),
        (None, ApprovalState.VOID, False),
        (None, ApprovalState.CONSUMED, False),
        (None, ApprovalState.EXPIRED, False),
        (GateName.FINALIZE, ApprovalState.EXPIRED, True),
    ],
)
def test_a_resume_names_the_gate_of_what_is_armed(begin: GateName | None, state: ApprovalState, is_refused: bool) -> None:
    effect = effect_of(a_command(CommandKind.RESUME, gate=begin), [approval(state)], RULES, NOW)
    assert (effect.command.refused_because is not None) is is_refused
    if is_refused and state is ApprovalState.ARMED:
        assert '"begin": "finalize"' in (effect.command.refused_because or "")


@pytest.mark.parametrize("begin", [GateName.FINALIZE, GateName.FAIL_OVER])
def test_a_resume_that_names_one_gate_does_not_begin_another(begin: GateName) -> None:
    armed = [approval(), approval(name="b").model_copy(update={"gate": GateName.FAIL_OVER})]
    other = {GateName.FINALIZE, GateName.FAIL_OVER} - {begin}
    refused = effect_of(a_command(CommandKind.RESUME, gate=begin), armed, RULES, NOW).command.refused_because
    assert f"the approval of {other.pop()} by" in (refused or "")


def test_a_second_approval_leaves_the_armed_one_alone() -> None:
    """A double click, or another person's: the first one, which was accepted, goes on counting."""
    effect = effect_of(approval(name="b"), [approval()], RULES, NOW)
    assert effect.closed == ()
    assert (effect.command.refused_because or "").startswith("finalize is approved already, by ")


def test_a_new_approval_expires() -> None:
    assert effect_of(approval(name="b"), [], RULES, NOW).command.expires_at == NOW + DAY
    assert effect_of(approval(name="b"), [], replace(RULES, policy=ENDLESS), NOW).command.expires_at is None


def test_a_command_that_does_not_count_changes_no_approval() -> None:
    refused = HOLD.model_copy(update={"refused_because": "signal_approvals is off"})
    assert effect_of(refused, [approval()], RULES, NOW).closed == ()


@pytest.mark.parametrize("state", ApprovalState)
def test_an_armed_and_a_consumed_approval_allow_the_write(state: ApprovalState) -> None:
    why_not = why_not_consumed(attempt(), [approval(state)], RULES, 1, NOW)
    assert (why_not is None) is (state in {ApprovalState.ARMED, ApprovalState.CONSUMED})
    assert why_not is None or f"is {state}" in why_not


@pytest.mark.parametrize(
    ("change", "commands", "why"),
    [
        ({"command_id": "b"}, [], "no approval of finalize under the id b"),
        ({"gate": GateName.FAIL_OVER}, [], "no approval of fail-over"),
        ({"generation": 2}, [], "generation 1 holds the cluster"),
        ({"evidence_hash": "f" * 64}, [], "the evidence has changed"),
        ({}, [HOLD], "held"),
        ({}, [HOLD, RESUME], "held"),
        ({"applied_commands": ("resume",)}, [HOLD, RESUME], None),
        ({}, [a_command(CommandKind.ROLLBACK)], "a rollback was asked for"),
        ({}, [a_command(CommandKind.ROLLBACK, refused_because="no way back")], None),
    ],
)
def test_an_armed_approval_allows_nothing_else(change: dict[str, Any], commands: list[Command], why: str | None) -> None:
    why_not = why_not_consumed(attempt(**change), [approval(), *commands], RULES, 1, NOW)
    assert why_not == why if why is None else why in (why_not or "")


def test_what_is_said_after_the_consumption_stops_no_attempt_of_its_section() -> None:
    """Half of a finalisation is worse than either end: the next controller's step goes on, whatever its evidence is by then."""
    said = [approval(ApprovalState.CONSUMED), HOLD, a_command(CommandKind.ROLLBACK)]
    for step in ("m1/7", "m1/8"):
        assert why_not_consumed(attempt(id=step, evidence_hash="f" * 64), said, RULES, 1, NOW) is None
    assert why_not_consumed(attempt(generation=0), said, RULES, 1, NOW) is not None


def test_a_failover_is_one_attempt() -> None:
    consumed = approval(ApprovalState.CONSUMED, GateName.FAIL_OVER)
    assert why_not_consumed(attempt(gate=GateName.FAIL_OVER), [consumed], RULES, 1, NOW) is None
    assert "is consumed" in (why_not_consumed(attempt(gate=GateName.FAIL_OVER, id="m1/8"), [consumed], RULES, 1, NOW) or "")


def test_a_hold_that_was_refused_holds_nothing() -> None:
    assert is_held([HOLD], ())
    assert not is_held([HOLD.model_copy(update={"refused_because": "held already"})], ())


def test_people_are_told_by_whom_when_and_until_when() -> None:
    shown = seen(approval(), NOW)
    assert shown is not None
    line = told_of(shown)
    assert all(part in line for part in ("finalize", "anna", "2026-03-01 03:00:00", "until 2026-03-02 03:00:00", '"begin"')), (
        line
    )


# ---- Four eyes ----

KNOWN = replace(RULES, are_people_known=True)
TWO = replace(KNOWN, policy=ZkToKraftPolicy(approvers={GateName.FINALIZE: 2}))


def approval_by(by: str, **fields: Any) -> Command:
    given = {"gate": GateName.FINALIZE, "evidence_hash": EVIDENCE, "via": Via.KEY, "expires_at": NOW + DAY, "by": by}
    return a_command(CommandKind.APPROVE, by, **given | fields)


def refusal(command: Command, others: list[Command], rules: Rules) -> str:
    return effect_of(command, others, rules, NOW).command.refused_because or ""


def test_whoever_asked_never_counts() -> None:
    assert "olga asked for this migration" in refusal(approval_by("olga"), [], KNOWN)
    assert "olga asked for this migration" in (consumption([approval_by("olga")], "olga", KNOWN) or "")
    assert refusal(approval_by("anna"), [], KNOWN) == ""
    assert consumption([approval_by("anna")], "anna", KNOWN) is None


def consumption(commands: list[Command], of: str, rules: Rules) -> str | None:
    return why_not_consumed(attempt(command_id=of), commands, rules, 1, NOW)


@pytest.mark.parametrize("via", [Via.LOCAL, Via.SIGNAL])
def test_only_identities_count_once_people_are_known(via: Via) -> None:
    """Also of an approval that was armed before: it is asked again where it would be consumed."""
    given = approval_by("anna", via=via)
    assert refusal(given, [], RULES) == ""
    assert "without authentication" in refusal(given, [], KNOWN)
    assert "without authentication" in (consumption([given], "anna", KNOWN) or "")


def test_a_gate_of_two_opens_with_the_second_person() -> None:
    first = effect_of(approval_by("anna"), [], TWO, NOW).command
    assert (state_of(first, NOW), first.delivered_at) == (ApprovalState.COUNTED, NOW)
    assert "anna has approved finalize already" in refusal(approval_by("anna", id="again"), [first], TWO)
    second = effect_of(approval_by("berta"), [first], TWO, NOW).command
    assert (state_of(second, NOW), second.delivered_at) == (ApprovalState.ARMED, None)
    assert consumption([first, second], "berta", TWO) is None
    assert "1 of 2 people" in (consumption([second], "berta", TWO) or "")
    assert "is counted" in (consumption([first], "anna", TWO) or "")


@pytest.mark.parametrize("change", [{"evidence_hash": "f" * 64}, {"expires_at": NOW}, {"by": "olga"}, {"via": Via.LOCAL}])
def test_a_first_approval_of_two_counts_no_more(change: dict[str, Any]) -> None:
    """It was given on other evidence, has expired, is the requester's, or has no identity."""
    first = approval_by("anna", waits_for_others=True).model_copy(update=change)
    assert "1 of 2 people" in (consumption([first, approval_by("berta")], "berta", TWO) or "")


@pytest.mark.parametrize(("kind", "becomes"), [(CommandKind.HOLD, "void"), (CommandKind.REJECT, "withdrawn")])
def test_a_hold_and_a_rejection_close_what_is_counted_as_well(kind: CommandKind, becomes: str) -> None:
    both = [approval_by("anna", waits_for_others=True), approval_by("berta")]
    gate = {"gate": GateName.FINALIZE} if kind is CommandKind.REJECT else {}
    closed = effect_of(a_command(kind, **gate), both, TWO, NOW).closed
    assert {(one.id, one.closed_as) for one in closed} == {("anna", becomes), ("berta", becomes)}


def test_broken_glass_stands_for_all_four_eyes() -> None:
    alone = approval_by("olga", break_glass=True)
    assert state_of(effect_of(alone, [], TWO, NOW).command, NOW) is ApprovalState.ARMED
    assert consumption([alone], "olga", TWO) is None
    assert "without authentication" in refusal(approval_by("olga", break_glass=True, via=Via.LOCAL), [], TWO)


def test_a_reason_has_the_form_that_the_policy_demands() -> None:
    rules = replace(KNOWN, policy=ZkToKraftPolicy(reason_pattern="CHANGE-[0-9]+"))
    assert "CHANGE-[0-9]+" in refusal(approval_by("anna", reason="it is well"), [], rules)
    assert refusal(approval_by("anna", reason="as in CHANGE-17"), [], rules) == ""


@pytest.mark.parametrize("pattern", ["(", "(?=a)", ""])
def test_a_pattern_that_cannot_be_matched_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="reason_pattern"):
        ZkToKraftPolicy(reason_pattern=pattern)


def test_a_request_expires() -> None:
    rules = replace(KNOWN, policy=ZkToKraftPolicy(request_expires_after=DAY))
    assert refusal(approval_by("anna", at=NOW + DAY - timedelta(seconds=1)), [], rules) == ""
    assert "the request of olga has expired" in refusal(approval_by("anna", at=NOW + DAY), [], rules)
