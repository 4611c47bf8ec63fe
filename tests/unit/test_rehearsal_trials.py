"""The search for what stops the copy, against a Kafka that is made up: any set of faults, each with an effect of its own."""

from hypothesis import given
from hypothesis import strategies as st

from domain.zk_to_kraft.rehearsal.trials import (
    EFFECT_OF,
    Candidate,
    Effect,
    Outcome,
    Trial,
    cleared,
    next_trial,
    proven,
)

OUTCOME_OF = {effect: outcome for outcome, effect in EFFECT_OF.items()}
IN_ORDER = (Effect.BLOCKS, Effect.ABORTS, Effect.HANGS)
"""What comes first in a copy hides the rest."""


def kafka(effects: dict[str, Effect], left_out: frozenset[str]) -> Outcome:
    present = {effect for path, effect in effects.items() if path not in left_out}
    return next((OUTCOME_OF[effect] for effect in IN_ORDER if effect in present), Outcome.COPIED)


def search(candidates: tuple[Candidate, ...], effects: dict[str, Effect], most: int = 200) -> list[Trial]:
    trials: list[Trial] = []
    while (left_out := next_trial(candidates, trials)) is not None:
        trials.append(Trial(left_out, kafka(effects, left_out)))
        assert len(trials) <= most
    return trials


faults = st.dictionaries(
    st.sampled_from([f"/{n}" for n in range(8)]), st.tuples(st.sampled_from(Effect), st.sampled_from(Effect))
)


@given(faults)
def test_every_fault_is_found_out_whatever_was_expected_of_it(found: dict[str, tuple[Effect, Effect]]) -> None:
    candidates = tuple(Candidate(path, "", expected, cause=path) for path, (expected, _) in found.items())
    effects = {path: effect for path, (_, effect) in found.items()}
    trials = search(candidates, effects)
    assert cleared(candidates, trials).has_passed
    proofs = proven(candidates, trials)
    assert {proof.candidate.path: proof.effect for proof in proofs} == effects
    assert all(proof.is_tried for proof in proofs)
    assert len({trial.left_out for trial in trials}) == len(trials) <= 2 * len(candidates) + 1


@given(faults)
def test_a_copy_that_passes_at_once_is_tried_once(found: dict[str, tuple[Effect, Effect]]) -> None:
    candidates = tuple(Candidate(path, "", expected, cause=path) for path, (expected, _) in found.items())
    trials = search(candidates, dict.fromkeys(found, Effect.LOSES))
    assert [trial.left_out for trial in trials] == [frozenset()]
    assert {proof.effect for proof in proven(candidates, trials)} <= {Effect.LOSES}


def test_one_of_a_kind_is_tried_for_all() -> None:
    many = tuple(Candidate(f"/config/users/{n}", "", Effect.ABORTS, "quota") for n in range(40))
    trials = search((*many, Candidate("/acl", "", Effect.ABORTS, "acl")), dict.fromkeys([c.path for c in many], Effect.ABORTS))
    assert len(trials) == 4
    proofs = proven((*many, Candidate("/acl", "", Effect.ABORTS, "acl")), trials)
    assert [proof.effect for proof in proofs] == [Effect.ABORTS] * 40 + [Effect.LOSES]
    assert [proof.is_tried for proof in proofs] == [True] + [False] * 39 + [True]


def test_a_copy_that_stops_for_another_reason_is_unexplained_and_nothing_is_blamed_as_tried() -> None:
    suspect = Candidate("/config/users/u", "", Effect.ABORTS, "quota")
    trials: list[Trial] = []
    while (left_out := next_trial((suspect,), trials)) is not None:
        trials.append(Trial(left_out, Outcome.DIED))
    assert [trial.left_out for trial in trials] == [frozenset(), {"/config/users/u"}]
    assert cleared((suspect,), trials).is_unexplained
    (proof,) = proven((suspect,), trials)
    assert (proof.is_tried, proof.is_expected) == (False, True)


def test_what_kafka_has_named_itself_needs_no_trial_of_its_own() -> None:
    dead = Candidate("/brokers/ids/9", "", Effect.BLOCKS, "ids")
    trials = [Trial(frozenset(), Outcome.STUCK, named=frozenset({dead.path})), Trial(frozenset({dead.path}), Outcome.COPIED)]
    assert next_trial((dead,), trials) is None
    assert [(proof.effect, proof.is_tried) for proof in proven((dead,), trials)] == [(Effect.BLOCKS, True)]


def test_what_nobody_can_judge_is_left_out_last_and_is_a_fault_only_where_the_copy_dies_of_it() -> None:
    sure = Candidate("/sure", "", Effect.ABORTS, cause="sure")
    guesses = tuple(Candidate(path, "", Effect.ABORTS, cause=path, is_guess=True) for path in ("/right", "/wrong"))
    candidates = (sure, *guesses)

    def faults_of(effects: dict[str, Effect]) -> tuple[dict[str, Effect], int]:
        trials = search(candidates, effects)
        return {proof.candidate.path: proof.effect for proof in proven(candidates, trials)}, len(trials)

    both = {"/sure": Effect.ABORTS, "/wrong": Effect.ABORTS}
    assert faults_of(both)[0] == both, "the innocent one is named by nobody"
    assert faults_of({"/sure": Effect.ABORTS}) == ({"/sure": Effect.ABORTS}, 2), "guesses are not tried where nothing needs it"
    assert faults_of({"/sure": Effect.LOSES}) == ({"/sure": Effect.LOSES}, 1)
    assert search(guesses, {"/other": Effect.BLOCKS})[-1].outcome is Outcome.STUCK, "a copy that waits dies of no password"


def test_guesses_that_no_round_was_left_for_are_named_and_none_is_passed_over() -> None:
    guesses = tuple(Candidate(f"/{n}", "", Effect.ABORTS, cause=f"/{n}", is_guess=True) for n in range(20))
    trials: list[Trial] = []
    while len(trials) < 16 and (left_out := next_trial(guesses, trials)) is not None:
        trials.append(Trial(left_out, kafka({"/17": Effect.ABORTS}, left_out)))
    assert cleared(guesses, trials).has_passed
    proofs = proven(guesses, trials)
    assert "/17" in {proof.candidate.path for proof in proofs}
    assert not any(proof.is_tried for proof in proofs)
    assert all(proof.is_expected for proof in proofs), "most of them are innocent, and nobody knows which"


def test_a_guess_that_does_something_else_than_was_guessed_is_no_proof() -> None:
    """As when a round was over before the copy was."""
    guess = Candidate("/right", "", Effect.ABORTS, cause="/right", is_guess=True)
    other = Candidate("/slow", "", Effect.ABORTS, cause="/slow", is_guess=True)
    both, slow = frozenset({"/right", "/slow"}), frozenset({"/right"})
    trials = [
        Trial(frozenset(), Outcome.DIED),
        Trial(both, Outcome.COPIED),
        Trial(frozenset({"/slow"}), Outcome.DIED),
        Trial(slow, Outcome.HUNG),
    ]
    proofs = {proof.candidate.path: (proof.effect, proof.is_expected) for proof in proven((guess, other), trials)}
    assert proofs == {"/right": (Effect.ABORTS, False), "/slow": (Effect.ABORTS, True)}


def test_what_one_of_its_kind_has_done_is_more_than_expected() -> None:
    many = tuple(Candidate(f"/config/users/{n}", "", Effect.ABORTS, "quota") for n in range(3))
    trials = search(many, dict.fromkeys([c.path for c in many], Effect.ABORTS))
    assert not any(proof.is_expected for proof in proven(many, trials))
