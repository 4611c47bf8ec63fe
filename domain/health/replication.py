"""Which partitions a restart would take below their `min.insync.replicas`."""

from domain.observed.observation import KafkaView
from domain.policy import RollPolicy


def partitions_needing(kafka: KafkaView | None, broker_id: int, policy: RollPolicy) -> tuple[str, ...]:
    """Partitions that would fall below `min.insync.replicas` without this broker, but for those the policy gives up."""
    if kafka is None:
        return ()
    return tuple(p for p in kafka.needs.get(broker_id, ()) if p.rpartition("-")[0] not in policy.may_be_unavailable)
