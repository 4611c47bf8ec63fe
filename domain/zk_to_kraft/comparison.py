"""What a report of the comparison of ZooKeeper with KRaft is worth now: of this dual write or not, and how old. Pure.

A report counts for the claim of `/controller` under which it was made, and for no other: a failover begins another claim, and
whatever its reconciliation writes to ZooKeeper has not been compared yet.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from domain.drift.report import DriftReport, Verdict
from domain.drift.tolerations import Toleration
from domain.drift.verdicts import blocks, is_of_our_rules, is_usable
from domain.observed.observation import ControllerZnode, ZooKeeperView
from domain.policy import CheckPolicy
from domain.rulings import ReportsOnCopy
from domain.zk_to_kraft.conditions import Compared

NO_REPORT = "none of this dual write"
"""What evidence says where nothing was compared: also where ZooKeeper is given up, and nothing can be."""


CLOCKS_APART = timedelta(minutes=1)
"""How far the clock of a worker of the checks may run ahead of ours."""

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


def newest_of(reports: Iterable[DriftReport], zookeeper: ZooKeeperView | None) -> DriftReport | None:
    """The report of the claim that is seen now which looked last, whichever ended last. One in vain may have no cut at all."""
    ours = [report for report in reports if _is_of(claim_of(zookeeper), report)]
    conclusive = newest_conclusive(ours, zookeeper)
    vain = max((r for r in ours if r.verdict is Verdict.INCONCLUSIVE), key=lambda r: r.started_at, default=None)
    if vain is None or conclusive is None:
        return vain or conclusive
    return vain if vain.started_at > conclusive.started_at else conclusive


def newest_conclusive(reports: Iterable[DriftReport], zookeeper: ZooKeeperView | None) -> DriftReport | None:
    """The same, of those that came to something."""
    claim = claim_of(zookeeper)
    ours = (r for r in reports if _is_of(claim, r) and r.verdict is not Verdict.INCONCLUSIVE)
    return max(ours, key=_when_cut, default=None)


def _is_of(claim: str, report: DriftReport) -> bool:
    return bool(claim) and report.cut.claim == claim


def _when_cut(report: DriftReport) -> tuple[int, datetime, bool]:
    """The offset is the quorum's own clock, and stands while nothing is changed; of two at the same moment the drift counts."""
    return report.cut.migration_offset, report.started_at, report.verdict is Verdict.DRIFT


def compared(report: DriftReport | None, policy: CheckPolicy) -> Compared:
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


def compared_copy(report: DriftReport | None) -> Compared:
    """What the comparison of Kafka's copy with what was kept says. By whatever rules: the copy does not change any more."""
    return Compared.NONE if report is None else COMPARED[report.verdict]


@dataclass(frozen=True)
class CopyReports(ReportsOnCopy):
    """What the reports on Kafka's copy say together."""

    @classmethod
    def of(cls, reports: ReportsOnCopy) -> "CopyReports":
        return cls(reports.kept, reports.copy, reports.others_kept, reports.others_copies)

    @property
    def own(self) -> DriftReport | None:
        """This migration's report on the copy that there is now."""
        return _copy_of_now(_each(self.copy), _each(self.kept))

    @property
    def newest(self) -> DriftReport | None:
        """The same; where it has none, another one's."""
        return self.own or _copy_of_now(self.others_copies, self.others_kept)

    @property
    def found(self) -> Compared:
        """What another migration has found counts as long as this one has not compared by its own policy, if it is a drift."""
        theirs = compared_copy(self.newest)
        return theirs if self.own is not None or theirs is Compared.DRIFT else Compared.NONE

    def baseline(self, claim: ControllerZnode | None, policy: CheckPolicy) -> DriftReport | None:
        """What the copy can be compared with: what this migration has kept. Who takes over has what an earlier report on this
        copy was compared with; or another one's, if that was kept right before the claim. Rows of other rules are none.
        """
        if is_usable(self.kept) and is_of_our_rules(self.kept):
            return self.kept
        if self.newest is not None and self.newest.baseline is not None and is_of_our_rules(self.newest):
            return self.newest
        claimed_at = claim.claimed_at if claim is not None else None
        if claimed_at is None:
            return None
        ours = (r for r in self.others_kept if is_usable(r) and is_of_our_rules(r))
        right_before = (r for r in ours if -CLOCKS_APART <= claimed_at - r.ended_at <= policy.max_report_age)
        return max(right_before, key=lambda r: r.ended_at, default=None)


def _each(report: DriftReport | None) -> tuple[DriftReport, ...]:
    """All that there are."""
    return () if report is None else (report,)


def _copy_of_now(copies: Iterable[DriftReport], kept: Iterable[DriftReport]) -> DriftReport | None:
    """The newest report on the copy, unless something was kept for another copy since."""
    newest = max(copies, key=lambda r: r.started_at, default=None)
    since = max((r.ended_at for r in kept if is_usable(r)), default=None)
    is_over = newest is not None and since is not None and newest.started_at < since
    return None if is_over else newest


def compared_messages(report: DriftReport | None) -> Compared:
    """What a look at clients' data says. Only what blocks counts: topics are deleted, and groups expire, in any week."""
    if report is None:
        return Compared.NONE
    if report.verdict is Verdict.DRIFT and not blocks(report):
        return Compared.INCONCLUSIVE if report.not_read else Compared.CLEAN
    is_foreign = report.verdict is Verdict.CLEAN and not is_of_our_rules(report)
    return Compared.INCONCLUSIVE if is_foreign else COMPARED[report.verdict]


def is_look_due(report: DriftReport | None, policy: CheckPolicy, now: datetime) -> bool:
    """Whether to look at clients' data anew: without a report, after a good one's age, and soon after another."""
    if report is None or report.started_at - now > CLOCKS_APART:
        return True
    if compared_messages(report) is Compared.CLEAN:
        return now - report.started_at >= policy.max_messages_age
    pause = max(policy.recheck_interval, REST * (report.ended_at - report.started_at))
    return now - report.ended_at >= min(pause, policy.max_messages_age)


REST = 9
"""A look at clients' data that is taken again and again reads the brokers' disks for a tenth of the time."""


def is_copy_due(report: DriftReport | None, policy: CheckPolicy, now: datetime) -> bool:
    """Whether to compare Kafka's copy: once. It does not change any more, only what kept anybody from reading it."""
    if report is None:
        return True
    return compared_copy(report) is Compared.INCONCLUSIVE and now - report.ended_at >= policy.recheck_interval


def is_due(report: DriftReport | None, policy: CheckPolicy, now: datetime) -> bool:
    """Whether to compare anew: without a report, after a good one's age, and soon after what may have been repaired.

    A good one is as old as its beginning: it may have looked then. One from the future has no age that could be trusted.
    """
    standing = compared(report, policy)
    if report is None or standing is Compared.NONE:
        return True
    if report.started_at - now > CLOCKS_APART:
        return True
    is_clean = standing is Compared.CLEAN
    return now - report.started_at >= policy.max_report_age if is_clean else now - report.ended_at >= policy.recheck_interval


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
