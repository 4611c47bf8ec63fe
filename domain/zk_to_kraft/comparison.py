"""What a report of the comparison of ZooKeeper with KRaft is worth now: of this dual write or not, and how old. Pure.

A report counts for the claim of `/controller` under which it was made, and for no other: a failover begins another claim, and
whatever its reconciliation writes to ZooKeeper has not been compared yet.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from domain.drift.hashing import rules_fingerprint
from domain.drift.report import DriftFinding, DriftReport, Verdict
from domain.drift.tolerations import Toleration
from domain.observation import ControllerZnode, ZooKeeperView
from domain.policy import MigrationPolicy
from domain.zk_to_kraft.terms import Compared

NO_REPORT = "none of this dual write"
"""What evidence says where nothing was compared: also where ZooKeeper is given up, and nothing can be."""

MAX_KEY = 120
"""Characters of a finding's key that a wait shows; the report has all."""

COMPARED = {Verdict.CLEAN: Compared.CLEAN, Verdict.DRIFT: Compared.DRIFT, Verdict.INCONCLUSIVE: Compared.INCONCLUSIVE}


def claim_of(zookeeper: ZooKeeperView | None) -> str:
    """The identity of KRaft's claim of `/controller`; empty where KRaft has none, or nobody knows."""
    return claim_in(zookeeper.controller if zookeeper is not None else None)


def claim_in(claim: ControllerZnode | None) -> str:
    """The same, of the znode. Kafka deletes and creates it with every claim, so its time of creation tells two claims of equal
    epochs apart: a second migration's quorum counts its epochs from the beginning.
    """
    if claim is None or claim.is_ephemeral:
        return ""
    since = f", since {claim.claimed_at.isoformat()}" if claim.claimed_at is not None else ""
    return f"controller {claim.broker_id}, epoch {claim.kraft_epoch}{since}"


def names_of(tolerated: Iterable[Toleration]) -> tuple[str, ...]:
    """Tolerations as a report names those that it has used: of which rows, by whom and why."""
    return tuple(f"{t.record}: {t.named}" for t in tolerated)


def of_this_dual_write(report: DriftReport | None, zookeeper: ZooKeeperView | None) -> DriftReport | None:
    """The report, where it is one of the claim that is seen now."""
    claim = claim_of(zookeeper)
    return report if report is not None and claim and report.cut.claim == claim else None


def compared(report: DriftReport | None, policy: MigrationPolicy) -> Compared:
    """What a report of this dual write says. One that tolerates more than this migration's policy does is none.

    Clean by other rules than ours is as good as unknown; what differs by them may well differ by ours.
    """
    if report is None:
        return Compared.NONE
    is_laxer = not set(report.tolerated) <= set(names_of(policy.tolerated))
    if report.verdict is Verdict.CLEAN and is_laxer:
        return Compared.NONE
    is_foreign = report.verdict is Verdict.CLEAN and not is_of_our_rules(report)
    return Compared.INCONCLUSIVE if is_foreign else COMPARED[report.verdict]


def is_of_our_rules(report: DriftReport) -> bool:
    return report.rules_fingerprint == rules_fingerprint()


def is_due(report: DriftReport | None, policy: MigrationPolicy, now: datetime) -> bool:
    """Whether to compare anew: without a report, after a good one's age, and soon after what may have been repaired."""
    standing = compared(report, policy)
    if report is None or standing is Compared.NONE:
        return True
    limit = policy.max_report_age if standing is Compared.CLEAN else policy.recheck_interval
    return now - report.ended_at >= limit


def evidence_of_report(report: DriftReport | None) -> dict[str, Any] | str:
    """What an approval binds to of a report: nothing that another look at the same clusters would change."""
    if report is None:
        return NO_REPORT
    return {
        "verdict": report.verdict,
        "content_hash": report.content_hash,
        "rules_fingerprint": report.rules_fingerprint,
        "tolerated": sorted(report.tolerated),
    }


def objects_of(report: DriftReport) -> tuple[str, ...]:
    """What a wait names: the first findings, or what was not read, each once."""
    named = [_object(finding) for finding in report.first] if report.verdict is Verdict.DRIFT else list(report.not_read)
    return tuple(dict.fromkeys(named))


def _object(finding: DriftFinding) -> str:
    return f"{finding.record} {finding.key}"[:MAX_KEY]


def told(report: DriftReport) -> str:
    """One line for people: which report, and what it found."""
    found = sum(c.missing_left + c.missing_right + c.differs for c in report.counts.values())
    when = f"report {report.id} of {report.ended_at:%Y-%m-%d %H:%M:%S} UTC"
    if report.verdict is Verdict.INCONCLUSIVE:
        return f"{when}: {'; '.join(report.not_read) or 'no consistent cut could be had'}"
    if report.verdict is Verdict.CLEAN and not is_of_our_rules(report):
        return f"{when} was made by other rules: is the worker keeperless-checks of the same version as this one?"
    where = "; ".join(f"{_object(f)}: {f.finding}{f' {f.field}' if f.field else ''}" for f in report.first[:5])
    return f"{when}: {found} differences. {where}"
