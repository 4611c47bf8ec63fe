"""How long ZooKeeper has been silent: told from look to look, and long only where nobody missed an answer in between."""

from datetime import timedelta

from domain.contracts import Assessment
from domain.decisions import Gate, Wait
from domain.observed.observation import Observation, Unanswered
from domain.rulings import GivenApproval, Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import Remembered, assess
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.standstill import MAX_BREAK, Silence
from domain.zk_to_kraft.steps import LAST_RESORT, GateName
from tests.unit.conftest import NOW, Point, cluster_spec, observation

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy()
LEAST = POLICY.min_zookeeper_silence


def look(after: timedelta, *, is_silent: bool = True) -> Observation:
    """All is ready for the end, but ZooKeeper, some time after the first look."""
    seen = observation(Point.SOAK)
    moved = seen.model_copy(update={"started_at": NOW + after, "ended_at": NOW + after})
    if not is_silent:
        return moved
    silent = Unanswered(what="zookeeper", why="no session")
    return moved.model_copy(update={"zookeeper": None, "unanswered": (silent,)})


def judged(seen: Observation, before: Silence | None = None, ruling: Ruling | None = None) -> Assessment:
    return assess(seen, SPEC, POLICY, ruling or Ruling(), "artefact", Remembered(silence=before).model_dump(mode="json"))


def silence_of(assessment: Assessment) -> Silence | None:
    return Remembered.model_validate(assessment.memory).silence


def after_looks(*looks: Observation) -> Assessment:
    """As a watch does it: each look hears what the one before knew."""
    assessment = judged(looks[0])
    for seen in looks[1:]:
        assessment = judged(seen, silence_of(assessment))
    return assessment


def every_second(least: timedelta) -> list[Observation]:
    return [look(timedelta(seconds=second)) for second in range(int(least.total_seconds()) + 1)]


def is_open(assessment: Assessment) -> bool:
    return isinstance(assessment.decision, Gate) and assessment.decision.name == GateName.FINALIZE_WITHOUT_RETURN


def test_the_glass_is_not_to_be_broken_for_a_silence_of_seconds() -> None:
    decision = judged(look(timedelta(0))).decision
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (WaitReason.PART_UNKNOWN, ("zookeeper",))


def test_the_gate_opens_after_the_least_silence_and_not_a_look_earlier() -> None:
    looks = every_second(LEAST)
    assert not is_open(after_looks(*looks[:-1]))
    opened = after_looks(*looks)
    assert is_open(opened)
    assert opened.gate is not None
    assert opened.gate.caution == LAST_RESORT


def test_one_answer_and_it_begins_anew() -> None:
    looks = every_second(LEAST)
    answered = looks[-2].model_copy(update={"zookeeper": look(timedelta(0), is_silent=False).zookeeper, "unanswered": ()})
    assessment = after_looks(*looks[:-2], answered, looks[-1])
    assert not is_open(assessment)
    assert silence_of(assessment) == Silence(since=looks[-1].ended_at, seen_at=looks[-1].ended_at)


def test_who_did_not_look_does_not_know() -> None:
    """A worker that was gone for a while: ZooKeeper may have been there."""
    first = silence_of(judged(look(timedelta(0))))
    assert first is not None
    assert is_open(judged(look(LEAST), first.model_copy(update={"seen_at": NOW + LEAST - MAX_BREAK})))
    just_too_long = NOW + LEAST - MAX_BREAK - timedelta(seconds=1)
    assert not is_open(judged(look(LEAST), first.model_copy(update={"seen_at": just_too_long})))


def test_who_has_been_given_up_is_not_listened_for_any_longer() -> None:
    """The approval was given at the gate: what follows asks for no silence, so that a restarted worker goes on at once."""
    gate = judged(look(LEAST), Silence(since=NOW, seen_at=NOW + LEAST)).decision
    assert isinstance(gate, Gate)
    ruling = Ruling(approvals={gate.name: GivenApproval(evidence_hash=gate.evidence_hash)})
    assert judged(look(LEAST), None, ruling).decision.decision == "step"


def test_a_cluster_whose_zookeeper_answers_has_no_silence() -> None:
    before = Silence(since=NOW, seen_at=NOW)
    assert silence_of(judged(look(timedelta(0), is_silent=False), before)) is None
