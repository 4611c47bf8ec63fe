"""Which findings people may accept. Those that tell which cluster this is they may not: the lock of a migration, and the
storage that it makes, go by the cluster's id.
"""

from collections.abc import Iterable, Sequence

from domain.decisions import Acceptance, Finding, Severity
from domain.policy import RollPolicy

IDENTITY_CODES = frozenset({"PF03", "PF20"})
"""Checks that tell which cluster this is. Nobody can accept their blockers."""


def why_not_acceptable(code: str, known: Sequence[str]) -> str:
    """Why no policy may name a code in `accepted_findings`; empty if it may. `known`: the codes that this kind has."""
    if code in IDENTITY_CODES:
        return (
            f"{code} cannot be accepted: it identifies the cluster, and with a wrong answer two migrations could work on the "
            "same nodes. Correct the cluster's specification."
        )
    return "" if code in known else f"{code} is not the code of a check. Known codes: {', '.join(known)}."


def acceptance_of(finding: Finding, policy: RollPolicy) -> Acceptance | None:
    """What an older policy says of a finding that nobody may accept counts for nothing."""
    if finding.severity is not Severity.BLOCKER or finding.code in IDENTITY_CODES:
        return None
    covering = (each for each in policy.accepted_findings if each.covers(finding.code, finding.object))
    return next((Acceptance(by=each.by, reason=each.reason) for each in covering), None)


def marked(findings: Iterable[Finding], policy: RollPolicy) -> tuple[Finding, ...]:
    """Each says whether it is accepted, by whom and why."""
    return tuple(finding.model_copy(update={"accepted": acceptance_of(finding, policy)}) for finding in findings)


def blockers_in(findings: Iterable[Finding], policy: RollPolicy) -> tuple[Finding, ...]:
    """Those that keep a migration from starting: blockers that nobody has accepted."""
    return tuple(f for f in findings if f.severity is Severity.BLOCKER and acceptance_of(f, policy) is None)
