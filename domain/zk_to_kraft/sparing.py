"""What a person may be told to restart, and when."""

from domain.zk_to_kraft.causes import Looked, some
from domain.zk_to_kraft.situation import partitions_needing


def restart_of(looked: Looked, broker_id: int) -> str:
    """The words for a restart of a broker: whether its partitions can spare it now."""
    name = looked.broker_name(broker_id)
    if looked.observation.kafka is None:
        return f"restart {name} once its partitions can spare it"
    needing = partitions_needing(looked.observation.kafka, broker_id, looked.policy)
    if needing:
        return f"restart {name}, but not before {some(needing)} can spare it: they would fall below min.insync.replicas"
    return f"restart {name} (its partitions can spare it now)"
