"""What people and reports have ruled on a migration, as the ledger has it: what a decision rests on besides what is seen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from domain.drift.report import DriftReport
from domain.drift.verdicts import is_usable
from domain.records import ApprovalSeen


@dataclass(frozen=True)
class GivenApproval:
    """An approval in the ledger that counts: the evidence that it binds to, and whether an attempt has consumed it."""

    evidence_hash: str | None
    is_consumed: bool = False


@dataclass(frozen=True)
class ReportsOnCopy:
    """What is known of a copy of metadata. `kept`, `copy`: what this migration kept before it and its comparison with that, the
    last ones. `others_kept`, `others_copies`: the newest ones of the cluster, whichever migration made them.
    """

    kept: DriftReport | None = None
    copy: DriftReport | None = None
    others_kept: tuple[DriftReport, ...] = ()
    others_copies: tuple[DriftReport, ...] = ()


@dataclass(frozen=True)
class Ruling:
    """What people have ruled, as the ledger has it: approvals by gate, a hold, and a way back that was accepted. `seen`: the
    approvals for people, those that count no more too.

    `accepted_losses` is `None` where no way back was accepted; `is_rollback_asked`: one was asked for, and is neither accepted
    nor refused. `reports`: the newest comparisons of ZooKeeper with KRaft, whoever asked for them, and `drifts`: how many of
    this cluster ever found one. `baseline`, `messages`: this migration's looks at clients' data; `inherited`: the baseline of
    an earlier one of this cluster, for who takes over. `end`: this migration's comparison after the end. `unchecked_since`:
    when a check that was due was not taken by any worker. `plan_basis`: what the plan rests on that this migration names;
    `None` where it names none. `has_begun`: it has begun a step, or that is unknown.
    """

    approvals: Mapping[str, GivenApproval] = field(default_factory=dict)
    seen: tuple[ApprovalSeen, ...] = ()
    is_held: bool = False
    is_rollback_asked: bool = False
    accepted_losses: tuple[str, ...] | None = None
    reports: tuple[DriftReport, ...] = ()
    drifts: int = 0
    baseline: DriftReport | None = None
    messages: DriftReport | None = None
    end: DriftReport | None = None
    inherited: DriftReport | None = None
    of_copy: ReportsOnCopy = field(default_factory=ReportsOnCopy)
    unchecked_since: datetime | None = None
    plan_basis: Mapping[str, str] | None = None
    has_begun: bool = True

    @property
    def has_baseline(self) -> bool:
        """Whether there is something to compare clients' data with."""
        return is_usable(self.baseline) or is_usable(self.inherited)


NOTHING_RULED = Ruling()
