"""Which findings people may accept. Those that tell which cluster this is they may not: the lock of a migration, and the
storage that it makes, go by the cluster's id.
"""

from collections.abc import Iterable

from domain.decisions import Acceptance, Finding, Severity
from domain.policy import MigrationPolicy
from domain.zk_to_kraft.checks.catalogue import CATALOGUE
from domain.zk_to_kraft.rehearsal.outcome import CODES

KNOWN_CODES = (*(check.code for check in CATALOGUE), *CODES)
OF_IDENTITY = frozenset(check.code for check in CATALOGUE if check.is_identity)


def why_not_acceptable(code: str) -> str:
    """Why no policy may name it in `accepted_findings`; empty when it may."""
    if code in OF_IDENTITY:
        return (
            f"{code} cannot be accepted: it tells which cluster this is, and with a wrong answer two migrations could work on "
            "the same nodes. Correct the cluster's specification."
        )
    return "" if code in KNOWN_CODES else f"{code} is no check's code. There are {', '.join(KNOWN_CODES)}."


def acceptance_of(finding: Finding, policy: MigrationPolicy) -> Acceptance | None:
    """What an older policy says of a finding that nobody may accept counts for nothing."""
    if finding.severity is not Severity.BLOCKER or why_not_acceptable(finding.code):
        return None
    covering = (each for each in policy.accepted_findings if each.covers(finding.code, finding.object))
    return next((Acceptance(by=each.by, reason=each.reason) for each in covering), None)


def marked(findings: Iterable[Finding], policy: MigrationPolicy) -> tuple[Finding, ...]:
    """Each says whether it is accepted, by whom and why."""
    return tuple(finding.model_copy(update={"accepted": acceptance_of(finding, policy)}) for finding in findings)


def blockers_in(findings: Iterable[Finding], policy: MigrationPolicy) -> tuple[Finding, ...]:
    """Those that keep a migration from starting: blockers that nobody has accepted."""
    return tuple(f for f in findings if f.severity is Severity.BLOCKER and acceptance_of(f, policy) is None)
