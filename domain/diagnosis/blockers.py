"""`blockers_of`: all causes why nothing happens, and not only the first that is waited for. Pure.

One entry for a cause: what a dead broker makes lag, go unregistered or wait is no entry beside it. What is waited for and
no cause explains is told in the wait's own words, so that no wait is ever without an entry.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

from domain.cluster import ClusterSpec
from domain.decisions import Decision, Revert, Wait
from domain.diagnosis.blocker import Blocker
from domain.diagnosis.causes.case import Case, Cause
from domain.diagnosis.causes.ensemble import forgotten_causes, pending_causes, zookeeper_causes
from domain.diagnosis.causes.kafka import kafka_causes
from domain.diagnosis.causes.node import node_causes
from domain.diagnosis.causes.quorum import quorum_causes
from domain.diagnosis.causes.reachability import without_those_of_another_network, without_those_of_elsewhere
from domain.diagnosis.causes.with_signs import with_signs
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.waits import WaitReason

CaseOfKind = TypeVar("CaseOfKind", bound=Case)


@dataclass(frozen=True)
class Search:
    """What a kind searches besides each observation. `about`: what is not known if it has no answer. `explains`: reasons of
    waits that may be because of that."""

    about: str
    expected: str
    explains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis(Generic[CaseOfKind]):
    """What a kind of migration knows of causes.

    `case_of`: what it says of a cluster as it was observed. `searches`: by the part of an observation that may be missing.
    `of_losses`: reasons of waits that end if a loss is accepted. `causes`: its own, and those of every kind (`generic_causes`),
    the more exact one first. `of_wait`: what is told of a wait, given the reasons that causes explain. `unproven`: of nodes
    that a step has restarted, what their proof waits for.
    """

    case_of: Callable[[Observation, ClusterSpec, MigrationPolicy], CaseOfKind]
    causes: Callable[[CaseOfKind], Iterable[Cause]]
    of_wait: Callable[[CaseOfKind, Wait | Revert, Collection[str]], Iterable[Cause]]
    unproven: Callable[[CaseOfKind, Collection[str]], Iterable[Cause]]
    searches: Mapping[str, Search]
    of_losses: frozenset[str]


def generic_causes(case: Case) -> Iterator[Cause]:
    """What may be wrong with any cluster, whatever the migration."""
    yield from node_causes(case)
    yield from zookeeper_causes(case)
    yield from kafka_causes(case)
    yield from pending_causes(case)
    yield from forgotten_causes(case)
    yield from quorum_causes(case)


def blockers_of(
    diagnosis: Diagnosis[CaseOfKind], case: CaseOfKind, *decisions: Decision | None
) -> tuple[tuple[Blocker, ...], frozenset[str]]:
    """The entries, and the reasons of waits that they explain. `decisions`: what is decided now, and what stands besides.

    While a step of ours has a node in its hands, what would be decided of this moment is of no interest.
    """
    found = chain(diagnosis.causes(case), _unsearched(diagnosis.searches, case))
    searched = without_those_of_elsewhere(case, without_those_of_another_network(case, found))
    causes = list(_unique(searched))
    for wait in (d for d in decisions if isinstance(d, Wait | Revert) and not case.in_hand):
        causes += list(diagnosis.of_wait(case, wait, _explained(causes)))
    causes += list(diagnosis.unproven(case, _explained(causes)))
    signed = with_signs(case, list(_unique(causes)))
    told = _without_restarts(case, causes, signed)
    return tuple(entry.blocker for entry in told), frozenset(map(str, _explained(signed)))


def _unsearched(searches: Mapping[str, Search], case: Case) -> Iterator[Cause]:
    """A search that had to be made and could not be: what it is for is not known then."""
    for part in case.observation.unanswered:
        if (search := searches.get(part.what)) is not None:
            yield case.cause(
                WaitReason.PART_UNKNOWN,
                search.about,
                *search.explains,
                observed=part.in_words,
                expected=search.expected,
                fix="Fix what is named. The next observation searches again.",
            )


def _explained(causes: Iterable[Cause]) -> frozenset[str]:
    return frozenset().union(*(found.explains for found in causes))


def _without_restarts(case: Case, causes: Iterable[Cause], signed: Iterable[Cause]) -> list[Cause]:
    """Leave out a restart of ours that takes its usual time, whatever the log complains of meanwhile. If its machine shows a
    sign as well, it stays an entry."""
    late = [found.blocker for found in causes if found.is_only_late and case.is_restarting(found.blocker.object)]
    return [found for found in signed if found.blocker not in late]


def _unique(causes: Iterable[Cause]) -> Iterator[Cause]:
    """The first of those with one code and one object. Later ones say the same of the same thing, less exactly."""
    seen: set[tuple[str, str]] = set()
    for found in causes:
        if found.key not in seen:
            seen.add(found.key)
            yield found
