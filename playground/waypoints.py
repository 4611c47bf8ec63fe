"""Points on the way to KRaft at which a migration can be met: each is told by events, while its last step is still in hand.

Whoever asks for a hold then, gets it at that very point: the node in hand is finished, and no other begun.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Events = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Waypoint:
    """`phase`: where the cluster is then. `can_hold` is false where a hold would not be obeyed any more."""

    name: str
    phase: str
    is_reached: Callable[[Events], bool]
    can_hold: bool = True


def rolled(events: Events, role: str, stage: str, action: str = "roll-node") -> set[str]:
    """The nodes of this role whose step to this stage has begun."""
    return {
        str(event["data"]["node"])
        for event in events
        if event["kind"] == "step-started"
        and event["data"]["action"] == action
        and event["data"]["stage"] == stage
        and str(event["data"]["node"]).startswith(role)
    }


def _after(count: int, role: str, stage: str, action: str = "roll-node") -> Callable[[Events], bool]:
    return lambda events: len(rolled(events, role, stage, action)) >= count


CONTROLLERS_UP = Waypoint("controllers-up", "CONTROLLERS_UP", _after(3, "controller", "migration", "provision-controller"))
ONE_HYBRID = Waypoint("one-hybrid", "BROKERS_TO_HYBRID", _after(1, "broker", "migration"))
ALL_HYBRID = Waypoint("all-hybrid", "COPYING", _after(3, "broker", "migration"))
"""Before the copy: only where something keeps it from beginning."""
DUAL_WRITE = Waypoint("dual-write", "DUAL_WRITE", _after(3, "broker", "migration"))
ONE_KRAFT = Waypoint("one-kraft", "BROKERS_TO_KRAFT", _after(1, "broker", "kraft"))
ALL_KRAFT = Waypoint(
    "all-kraft",
    "SOAK",
    lambda events: any(event["kind"] == "gate-opened" and event["data"]["gate"] == "finalize" for event in events),
)
FLAG_GONE = Waypoint("flag-gone", "FINALIZING", _after(1, "controller", "kraft"), can_hold=False)
