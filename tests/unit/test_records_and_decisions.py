"""Events, and the words of decisions."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import TypeAdapter, ValidationError

from domain.decisions import Decision, Done, Finding, Gate, Refuse, Revert, Step, Wait
from domain.policy import MigrationPolicy
from domain.records import ACTIVE_STATES, GENESIS_HASH, EventDraft, MigrationState, event_hash
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import digest_of
from domain.zk_to_kraft.described import described
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.situation import DualWrite
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from domain.zk_to_kraft.waits import WAITS, ZkWait

AT = datetime(2026, 11, 20, tzinfo=UTC)
DRAFT = EventDraft(key="k", kind="node.rolled", cluster="test", at=AT, data={"b": 1, "a": "ü"})


def test_a_hash_covers_place_content_and_predecessor() -> None:
    first = event_hash(1, DRAFT, GENESIS_HASH)
    others = [
        event_hash(2, DRAFT, GENESIS_HASH),
        event_hash(1, DRAFT, first),
        event_hash(1, DRAFT.model_copy(update={"data": {"b": 2, "a": "ü"}}), GENESIS_HASH),
        event_hash(1, DRAFT.model_copy(update={"key": "other"}), GENESIS_HASH),
    ]
    assert len({first, *others}) == 5


def test_a_hash_does_not_depend_on_the_order_in_which_data_was_built() -> None:
    turned = DRAFT.model_copy(update={"data": {"a": "ü", "b": 1}})
    assert event_hash(1, turned, GENESIS_HASH) == event_hash(1, DRAFT, GENESIS_HASH)


def test_a_hash_survives_being_stored() -> None:
    stored = EventDraft.model_validate_json(DRAFT.model_dump_json())
    assert event_hash(1, stored, GENESIS_HASH) == event_hash(1, DRAFT, GENESIS_HASH)


def test_every_wait_has_a_meaning() -> None:
    assert WAITS.keys() == {*WaitReason, *ZkWait}
    assert all(text.means and text.about and text.expected for text in WAITS.values())


def test_active_states_are_those_that_hold_a_cluster() -> None:
    ended = {
        MigrationState.REFUSED,
        MigrationState.SUCCEEDED,
        MigrationState.REVERTED,
        MigrationState.FAILED,
        MigrationState.CANCELLED,
    }
    assert set(MigrationState) - ACTIVE_STATES == ended


@pytest.mark.parametrize(
    "decision",
    [
        Step(action=StepAction.ROLL_NODE, node_id=1, stage=NodeStage.KRAFT, gate=GateName.FINALIZE),
        Wait(reason=WaitReason.HELD, objects=("broker-1",), detail="d"),
        Gate(name=GateName.FINALIZE, evidence_hash="h"),
        Refuse(findings=(Finding(code="PF01", object="o", observed="a", expected="b", fix="c"),)),
        Step(action=StepAction.LEAVE_KRAFT, stage=NodeStage.ZOOKEEPER),
        Revert(reason=ZkWait.COPY_CANNOT_FINISH, objects=("/config/users/x",), detail="d"),
        Done(outcome="KRAFT"),
    ],
)
def test_a_decision_travels_as_json(decision: Decision) -> None:
    adapter: TypeAdapter[Decision] = TypeAdapter(Decision)
    assert adapter.validate_json(adapter.dump_json(decision)) == decision


def test_a_step_of_the_whole_cluster_is_about_no_node() -> None:
    assert Step(action=StepAction.ROLL_NODE, node_id=3, stage=NodeStage.KRAFT).node == 3
    with pytest.raises(ValueError, match="leave-kraft"):
        _ = Step(action=StepAction.LEAVE_KRAFT, stage=NodeStage.ZOOKEEPER).node


@pytest.mark.parametrize(
    "wrong", [{"min_soak": -1}, {"poll_interval": 0}, {"stable_samples": 0}, {"max_offset_distance": 1}, {"soak": 1}]
)
def test_a_policy_that_makes_no_sense_is_refused_with_its_field(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        ZkToKraftPolicy.model_validate(wrong)


def test_a_policy_travels_as_json() -> None:
    policy = MigrationPolicy(may_be_unavailable=("t",))
    assert MigrationPolicy.model_validate_json(policy.model_dump_json()) == policy


def test_a_decision_in_other_words_is_the_same() -> None:
    """A worker of the next release compares it with what one of this release has decided."""
    step = Step(action=StepAction.ROLL_NODE, node_id=1, stage=NodeStage.KRAFT)
    slower = MigrationPolicy(restart_deadline=timedelta(minutes=50))
    told, otherwise = described(step, MigrationPolicy()), described(step, slower)
    assert told.how != otherwise.how
    assert step == told == otherwise
    assert hash(step) == hash(told)
    assert told != step.model_copy(update={"node_id": 2})
    wait = Wait(reason=WaitReason.NODE_DOWN, objects=("broker-1",))
    assert described(wait, slower) == wait == wait.model_copy(update={"means": "Start it."})
    assert wait != wait.model_copy(update={"objects": ()})
    digests = {digest_of(None, each, DualWrite.CURRENT, ()) for each in (wait, described(wait, slower))}
    assert len(digests) == 1
