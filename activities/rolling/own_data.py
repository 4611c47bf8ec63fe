"""Whether a process that was started works on its node's own data: by the locks of log directories that it holds."""

from dataclasses import dataclass

from activities.observing.node_survey import CannotLook, start_place
from activities.rolling.marking import Target
from domain.checks.acceptance import blockers_in
from domain.checks.own_process import astray, blind, unseen
from domain.cluster import Role
from domain.contracts import StepRequest
from domain.errors import KeeperlessError


@dataclass(frozen=True)
class OwnData:
    """`why_not`: it is not known to. `is_astray`: it works on other data. `note`: for people, where that is not known and it
    counts as proven all the same."""

    why_not: str | None = None
    is_astray: bool = False
    note: str = ""


async def own_data(request: StepRequest, target: Target) -> OwnData:
    """With another, empty `log.dirs` Kafka starts without a word, and a partition with one replica is empty.

    What cannot be seen proves nothing, except in three cases: somebody has accepted it; half of a rollback is the worst place
    to rest; and a controller with another log would not be caught up.
    """
    name = target.name
    try:
        pid = (await target.driver.process()).pid
        place = await start_place(target.driver, target.node, int(pid) if pid.isdecimal() else None)
    except CannotLook as error:
        return _unknown(request, target, f"the locks of its log directories could not be checked: {error}")
    except KeeperlessError as error:
        return OwnData(f"{name}: whether it works on its own data is not known: {error}")
    if place.unheld and (found := astray(place.unheld, place.elsewhere, name, target.node)) is not None:
        return OwnData(f"{name}: {found.observed}. {found.fix}", is_astray=True)
    return _unknown(request, target, blind(place.unseen)) if place.unseen else OwnData()


def _unknown(request: StepRequest, target: Target, why: str) -> OwnData:
    finding = unseen(why, target.name)
    is_controller = target.cluster.spec.role(target.node.id) is Role.CONTROLLER
    if request.revert is not None or is_controller or not blockers_in([finding], request.policy):
        return OwnData(note=f"{finding.observed}; it counts as proven without that")
    return OwnData(f"{target.name}: {finding.observed}. {finding.fix}")
