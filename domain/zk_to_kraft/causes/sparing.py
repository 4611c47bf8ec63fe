"""What a person may be told to restart, and when."""

from collections.abc import Iterator

from domain.checks.seen import some
from domain.health.quorum import quorum_leader
from domain.health.replication import partitions_needing
from domain.zk_to_kraft.causes.case import Looked
from domain.zk_to_kraft.modes import ControllerMode
from domain.zk_to_kraft.probed import probed
from domain.zk_to_kraft.situation import ControllerSituation

FLAG = "zookeeper.metadata.migration.enable=true"


def restart_of(looked: Looked, broker_id: int) -> str:
    """The words for a restart of a broker: whether its partitions can spare it now."""
    name = looked.broker_name(broker_id)
    if name in looked.in_hand:
        return f"restart {name}, but not while a step of this migration has it in hand"
    if looked.observation.kafka is None:
        return f"restart {name} once its partitions can spare it"
    needing = partitions_needing(looked.observation.kafka, broker_id, looked.policy)
    if needing:
        return f"restart {name}, but not before {some(needing)} can spare it: they would fall below min.insync.replicas"
    return f"restart {name} (its partitions can spare it now)"


def before_a_failover(looked: Looked) -> str:
    """A further sentence for whoever is told to restart the active controller: what the quorum, or the migration, would not
    survive. What our own step is held up by (`activities.zk_to_kraft.starting`), a person has to be told."""
    first = "; ".join(_first(looked))
    return f" But restart the active controller not before this is so: {first}." if first else ""


def _first(looked: Looked) -> Iterator[str]:
    leader = quorum_leader(looked.observation, looked.spec)
    controllers = looked.situation.controllers
    flagless = [looked.name(c.id) for c in controllers if c.mode is ControllerMode.FINAL or not c.is_flag_in_file]
    if flagless:
        yield f"{some(flagless)} has the flag {FLAG}, in its file and as it runs, or it ends the migration"
    others = [c for c in controllers if leader is None or c.id != leader.id]
    missing = [c for c in others if c.mode is not ControllerMode.MIGRATING or not c.is_caught_up or _is_shut(looked, c)]
    if others and 2 * (len(others) - len(missing)) <= len(controllers):
        names = some([looked.name(c.id) for c in missing])
        yield f"{names} runs, follows and accepts connections, or no majority is left to elect another"
    hazards = dict.fromkeys((*(probed(looked.observation).failover_hazards or ()), *looked.hints.strays))
    if hazards:
        yield f"{some([hazard.what for hazard in hazards])} is mended, which the next one would fail at"


def _is_shut(looked: Looked, controller: ControllerSituation) -> bool:
    spec = next(c for c in looked.spec.controllers if c.id == controller.id)
    return f"{spec.host}:{spec.port}" in looked.hints.shut
