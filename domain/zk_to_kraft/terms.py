"""`Terms`: what people have said, as far as it matters for the next decision."""

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
    """Approved, and an irreversible effect has begun under it: what follows needs no other."""


GIVEN = frozenset({Approval.VALID, Approval.CONSUMED})


@dataclass(frozen=True)
class Terms:
    """Orders, approvals and policy. `evidence_hash` is that of the evidence as it is now.

    `approval`: of `finalize`. `without_return`: of `finalize-without-return`. `may_fail_over`: the policy or a person says so.
    `unaccepted`: nodes whose files would lose something on the way back that nobody has accepted.
    """

    intent: Intent = Intent.FORWARD
    approval: Approval = Approval.NONE
    without_return: Approval = Approval.NONE
    is_held: bool = False
    is_soak_over: bool = True
    may_fail_over: bool = False
    is_failed_copy_reverted: bool = True
    accepts_metadata_loss: bool = False
    unaccepted: frozenset[int] = frozenset()
    evidence_hash: str = ""

    @property
    def may_finalize(self) -> bool:
        return self.approval in GIVEN or self.without_return in GIVEN

    @property
    def has_begun_to_finalize(self) -> bool:
        return Approval.CONSUMED in {self.approval, self.without_return}
