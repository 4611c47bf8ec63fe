"""`Terms`: what people have said, and what was compared, as far as it matters for the next decision."""

from dataclasses import dataclass
from enum import StrEnum

from domain.decisions import Intent


class Approval(StrEnum):
    """What the ledger says of the approval of a gate."""

    NONE = "none"
    VALID = "valid"
    """Approved, on the evidence as it is now."""
    STALE = "stale"
    """Approved, on evidence that has changed since: as good as none."""
    CONSUMED = "consumed"
    """Approved, and a controller shows that its irreversible section has begun: what follows needs no other."""


class Compared(StrEnum):
    """What the newest comparison of ZooKeeper with KRaft says of the dual write that is seen now."""

    NONE = "none"
    """There is no report of this dual write: a failover has begun another one, or nobody has compared yet."""
    CLEAN = "clean"
    DRIFT = "drift"
    INCONCLUSIVE = "inconclusive"
    """No consistent cut could be had, or a part was not read: as good as unknown."""


GIVEN = frozenset({Approval.VALID, Approval.CONSUMED})


@dataclass(frozen=True)
class Check:
    """What a check has found, whether it is due, and whether nobody has taken it although it is."""

    found: Compared = Compared.CLEAN
    is_due: bool = False
    is_missing: bool = False


@dataclass(frozen=True)
class Terms:
    """Orders, approvals and policy. `evidence_hash` is that of the evidence as it is now.

    `approval`: of `finalize`. `without_return`: of `finalize-without-return`. `failover`: of `fail-over`, which the policy may
    allow without asking: `may_fail_over`. `is_committed`: an approval of the end is consumed, whether a controller shows it
    already or not, and counts.
    `has_begun`: this migration has taken a step, or nobody knows. `is_silence_long`: ZooKeeper, where it is silent, has been so
    for as long as the policy asks for. `unaccepted`: nodes whose files would lose something on the way back that nobody has
    accepted. `is_check_due`: the newest report is too old for what it says. `is_checker_missing`: nobody has taken the
    comparison that is due. `baseline`, `messages`: the looks at clients' data, before and now; `kept`, `copy`: what ZooKeeper
    had right before the copy, and the copy's comparison with it. Clean where there is nothing to compare with. `end`: the
    comparison after the end, which is made once, and whatever it finds the migration has ended.
    """

    intent: Intent = Intent.FORWARD
    approval: Approval = Approval.NONE
    without_return: Approval = Approval.NONE
    is_held: bool = False
    has_begun: bool = True
    is_soak_over: bool = True
    is_silence_long: bool = True
    failover: Approval = Approval.NONE
    may_fail_over: bool = False
    is_committed: bool = False
    is_failed_copy_reverted: bool = True
    accepts_metadata_loss: bool = False
    accepts_new_topic_ids: bool = False
    unaccepted: frozenset[int] = frozenset()
    compared: Compared = Compared.NONE
    is_check_due: bool = False
    is_checker_missing: bool = False
    baseline: Check = Check()
    kept: Check = Check()
    copy: Check = Check()
    messages: Check = Check()
    end: Check = Check()
    evidence_hash: str = ""

    @property
    def may_finalize(self) -> bool:
        return self.approval in GIVEN or self.without_return in GIVEN

    @property
    def has_begun_to_finalize(self) -> bool:
        return Approval.CONSUMED in {self.approval, self.without_return}
