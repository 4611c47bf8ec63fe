"""Causes that are findings of the preflight's checks, in their words. Pure."""

from collections.abc import Iterator

from domain.checks.acceptance import blockers_in
from domain.checks.coordinator_counts import miscounted
from domain.decisions import Finding
from domain.zk_to_kraft.causes.case import Cause, Looked, cause


def of_finding(looked: Looked, finding: Finding, *explains: str) -> Cause:
    """`explains`: the waits that it is the reason of."""
    return cause(
        looked,
        finding.code,
        finding.object,
        *explains,
        observed=finding.observed,
        expected=finding.expected,
        fix=finding.fix,
    )


def coordinator_causes(looked: Looked) -> Iterator[Cause]:
    """PF46: no broker is restarted as long as that is so and nobody has accepted it."""
    counted = (miscounted(found, looked.spec) for found in looked.hints.miscounts)
    yield from (of_finding(looked, finding) for finding in blockers_in(counted, looked.policy))
