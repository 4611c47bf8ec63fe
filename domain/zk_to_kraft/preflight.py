"""The preflight: what must be true before anything is touched. Each check is a function from what was seen to findings.

Asked only when every part answered: a check never passes because it could not look. With a survey the whole catalogue is
asked; right before an effect, which looks again without one, those of its checks that need the observation alone.
"""

from collections.abc import Iterator

from domain.checks.acceptance import marked
from domain.checks.check import Seen, Surveyed
from domain.checks.file_characters import malformed
from domain.cluster import ClusterSpec
from domain.decisions import Finding
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.zk_to_kraft.checks.catalogue import CATALOGUE


def preflight(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> tuple[Finding, ...]:
    """All findings, in the order of their codes, each with who accepted it. No open blocker: nothing stands in the way.

    The observation must be complete: with an unanswered part nothing can be said, and `decide` waits instead. But a file that
    Java cannot read answers never: that is said.
    """
    if unreadable := malformed(observation):
        return marked(unreadable, policy)
    if observation.zookeeper is None or observation.kafka is None or observation.unanswered:
        return ()
    seen = Seen(spec, policy, observation, observation.zookeeper, observation.kafka)
    surveyed = None
    if observation.survey is not None:
        surveyed = Surveyed(spec, policy, observation, observation.zookeeper, observation.kafka, observation.survey)
    return marked(_findings(seen, surveyed), policy)


def _findings(seen: Seen, surveyed: Surveyed | None) -> Iterator[Finding]:
    for check in CATALOGUE:
        for of_look in check.of_look:
            yield from of_look(seen)
        if surveyed is not None:
            for of_survey in check.of_survey:
                yield from of_survey(surveyed)


MET_BY_CONTROLLERS = frozenset({"PF07", "PF10"})
"""Checks that controllers in migration mode fail by being there: their storage is used, and /migration exists."""
