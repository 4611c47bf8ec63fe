"""What this kind of migration looks at besides, as far as what was seen asks for it."""

from domain.observed.observation import Observation
from domain.observed.parts import ObservedPart, Suspect


class Probed(ObservedPart):
    """`None`: not looked for, or it could not be read.

    `failover_hazards`: looked for if dual write has died. `poisoned_znodes`: if the copy cannot finish. `unregistered`:
    controllers whose registration the active one's log lacks; looked for before the copy, which waits for them.
    """

    failover_hazards: tuple[Suspect, ...] | None = None
    poisoned_znodes: tuple[Suspect, ...] | None = None
    unregistered: tuple[int, ...] | None = None


NOTHING_PROBED = Probed()


def probed(observation: Observation) -> Probed:
    """The part of an observation that only this kind knows."""
    return observation.part if isinstance(observation.part, Probed) else NOTHING_PROBED


def with_probed(observation: Observation, **found: object) -> Observation:
    """The observation, with more that was found."""
    return observation.model_copy(update={"part": probed(observation).model_copy(update=found)})
