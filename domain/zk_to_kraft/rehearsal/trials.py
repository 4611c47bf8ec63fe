"""Which znodes stop Kafka's copy, found out by trying: what to leave out of the next trial, and what all trials together
prove. Pure.

Kafka names no znode when its copy dies, so candidates come from strict parsers, with what each is expected to do; only a trial
tells. A trial is a whole copy in a fresh throw-away ZooKeeper without some of the candidates.

    1. clear the way    nothing left out; while the copy dies, sticks or hangs, leave out those that are expected to do that
    2. confirm          put back one of each kind by itself: what the copy does then is what that one does

Between the two the copy passes, so with one put back nothing else can stop it. A candidate that was never left out lies in a
copy that passed: what it does is silent. Candidates of one kind (`cause`) are the same fault in several places: one is tried
for all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Effect(StrEnum):
    """What a znode does to the copy."""

    ABORTS = "aborts"
    """The controllers die, after they have claimed: the cluster has no controller."""
    BLOCKS = "blocks"
    """The copy never begins. Harmless, and without an end."""
    HANGS = "hangs"
    """Everything is copied, and dual write never begins: the new controller fails to write to ZooKeeper, again and again."""
    LOSES = "loses"
    """The copy passes, and something is gone or another afterwards."""


class Outcome(StrEnum):
    """How a trial ended."""

    COPIED = "copied"
    DIED = "died"
    STUCK = "stuck"
    HUNG = "hung"


EFFECT_OF = {
    Outcome.COPIED: Effect.LOSES,
    Outcome.DIED: Effect.ABORTS,
    Outcome.STUCK: Effect.BLOCKS,
    Outcome.HUNG: Effect.HANGS,
}
EXPECTED_OF = {
    Outcome.DIED: (Effect.ABORTS, Effect.LOSES, Effect.HANGS, Effect.BLOCKS),
    Outcome.STUCK: (Effect.BLOCKS, Effect.ABORTS, Effect.LOSES, Effect.HANGS),
    Outcome.HUNG: (Effect.HANGS, Effect.LOSES, Effect.ABORTS, Effect.BLOCKS),
}
"""Which to leave out first when a trial ended so."""


@dataclass(frozen=True)
class Candidate:
    """A znode that a strict parser refuses. `cause`: the same for the same fault in several places.

    `is_guess`: nothing is wrong with its form; it is left out once nothing else explains why the copy dies, and is no fault
    where the copy passes with it.
    """

    path: str
    why: str
    expected: Effect
    cause: str
    is_guess: bool = False


@dataclass(frozen=True)
class Trial:
    """`named`: paths that Kafka's own log has named as what it waits for."""

    left_out: frozenset[str]
    outcome: Outcome
    named: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Proven:
    """`is_tried`: this very candidate was tried by itself, or named by Kafka. `is_expected`: not even one of its kind was, so
    that `effect` is what was expected of it. Of a guess that is nothing but a guess.
    """

    candidate: Candidate
    effect: Effect
    is_tried: bool
    is_expected: bool = False


@dataclass(frozen=True)
class Cleared:
    """`left_out`: what the next trial leaves out, or what the one that passed has. `is_unexplained`: nothing is left to leave
    out.
    """

    left_out: frozenset[str]
    has_passed: bool = False
    is_unexplained: bool = False


def cleared(candidates: Sequence[Candidate], trials: Sequence[Trial]) -> Cleared:
    """How far the way is cleared. The first trials, up to one that passed, are of that."""
    left_out: frozenset[str] = frozenset()
    for trial in trials:
        if trial.outcome is Outcome.COPIED:
            return Cleared(trial.left_out, has_passed=True)
        more = _next_to_leave_out(candidates, trial.left_out, trial.outcome)
        left_out = trial.left_out | more
        if not more:
            return Cleared(left_out, is_unexplained=True)
    return Cleared(left_out)


def _next_to_leave_out(candidates: Sequence[Candidate], left_out: frozenset[str], outcome: Outcome) -> frozenset[str]:
    sure = [c for c in candidates if not c.is_guess]
    for effect in EXPECTED_OF[outcome]:
        found = frozenset(c.path for c in sure if c.expected is effect) - left_out
        if found:
            return found
    guesses = frozenset(c.path for c in candidates if c.is_guess and EFFECT_OF[outcome] is c.expected)
    return guesses - left_out


def next_trial(candidates: Sequence[Candidate], trials: Sequence[Trial]) -> frozenset[str] | None:
    """What to leave out next, or `None`: nothing more is to be learnt."""
    way = cleared(candidates, trials)
    if way.is_unexplained:
        return None
    if not way.has_passed:
        return way.left_out
    tried = {trial.left_out for trial in trials}
    named = _named(trials)
    for first in _one_of_each_kind(c for c in candidates if c.path in way.left_out and c.path not in named):
        if way.left_out - {first.path} not in tried:
            return way.left_out - {first.path}
    return None


def proven(candidates: Sequence[Candidate], trials: Sequence[Trial]) -> tuple[Proven, ...]:
    """What each candidate does, as far as trials tell; those of which nothing is known are expected to do what they were."""
    way, named = cleared(candidates, trials), _named(trials)
    outcomes = {trial.left_out: trial.outcome for trial in trials}
    by_cause: dict[str, Effect] = {}
    found: dict[str, Proven] = {}
    innocent: set[str] = set()
    for each in [c for c in candidates if not c.is_guess or (way.has_passed and c.path in way.left_out)]:
        if each.path in named:
            found[each.path] = Proven(each, Effect.BLOCKS, is_tried=True)
        elif way.has_passed and each.path not in way.left_out:
            found[each.path] = Proven(each, Effect.LOSES, is_tried=True)
        elif way.has_passed and (alone := outcomes.get(way.left_out - {each.path})) is not None:
            if each.is_guess and EFFECT_OF[alone] is not each.expected:
                innocent |= {each.path} if alone is Outcome.COPIED else set()
                continue
            by_cause[each.cause] = EFFECT_OF[alone]
            found[each.path] = Proven(each, EFFECT_OF[alone], is_tried=True)
    return tuple(
        found.get(each.path)
        or Proven(each, by_cause.get(each.cause, each.expected), is_tried=False, is_expected=each.cause not in by_cause)
        for each in candidates
        if not each.is_guess or (each.path not in innocent and way.has_passed and each.path in way.left_out)
    )


def _named(trials: Iterable[Trial]) -> frozenset[str]:
    return frozenset(path for trial in trials for path in trial.named)


def _one_of_each_kind(candidates: Iterable[Candidate]) -> Iterable[Candidate]:
    found: dict[str, Candidate] = {}
    for each in candidates:
        found.setdefault(each.cause, each)
    return found.values()
