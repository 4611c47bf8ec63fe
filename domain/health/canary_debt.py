"""What the last roll of a broker owes its clients: to try their ways, and to remove what was made for that."""

from enum import StrEnum

from domain.observed.observation import NodeView


class CanaryDebt(StrEnum):
    """What our last roll of a broker owes: to try clients' ways, and to remove what was made for that."""

    NONE = "none"
    UNUSED = "unused"
    """The roll has not restarted it yet: nothing is to be tried, and something may be there already."""
    DUE = "due"


def canary_debt(node: NodeView) -> CanaryDebt:
    mark = node.mark
    if mark is None or not mark.are_canaries_due:
        return CanaryDebt.NONE
    is_used = node.process is None or node.process.identity != mark.before_identity
    return CanaryDebt.DUE if is_used else CanaryDebt.UNUSED
