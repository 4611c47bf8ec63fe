"""A playground's nodes may end with it: that nodes outlive keeperless-activities (PF43) is asked of nobody there."""

from typing import Any

from activities.on_node.look_at_start import own_unit
from domain.policy import AcceptedFinding

ENDS_WITH_IT = AcceptedFinding(code="PF43", object="*", by="the playground", reason="its nodes are to end with it")


def accepted() -> tuple[AcceptedFinding, ...]:
    """Nothing, where the playground is in no unit of systemd."""
    return (ENDS_WITH_IT,) if own_unit() is not None else ()


def accepting(policy: dict[str, Any]) -> dict[str, Any]:
    """The same for a request's policy."""
    ours = [found.model_dump() for found in accepted()]
    return policy | {"accepted_findings": [*policy.get("accepted_findings", ()), *ours]} if ours else policy
