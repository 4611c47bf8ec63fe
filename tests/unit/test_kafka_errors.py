"""What errors of Kafka's client are told as."""

import pytest
from kafka.errors import KafkaError, NodeNotReadyError, PolicyViolationError, ThrottlingQuotaExceededError

from activities.adapters.kafka_admin.errors import translated_errors
from domain.cluster import KafkaClientSpec
from domain.errors import Obstacle, Transient


@pytest.mark.parametrize(
    ("error", "obstacle"),
    [
        (ThrottlingQuotaExceededError(), Obstacle.QUOTA),
        (NodeNotReadyError("Node paused: {'throttle'}"), Obstacle.QUOTA),
        (NodeNotReadyError("Node paused: {'max_in_flight'}"), None),
    ],
    ids=["refused", "has to wait for what it asks next", "busy"],
)
def test_a_quota_that_is_used_up_is_told_as_that(error: KafkaError, obstacle: Obstacle | None) -> None:
    """The answer that refuses says for how long, and the client asks that broker nothing meanwhile."""
    with pytest.raises(Transient) as told, translated_errors(KafkaClientSpec(bootstrap_servers=("127.0.0.1:9092",))):
        raise error
    assert told.value.obstacle is obstacle
    assert ("controller_mutation_rate" in str(told.value)) is (obstacle is Obstacle.QUOTA)


def test_what_a_policy_of_the_clusters_own_says_is_told() -> None:
    with pytest.raises(Transient) as told, translated_errors(KafkaClientSpec(bootstrap_servers=("127.0.0.1:9092",))):
        raise PolicyViolationError("creating topic a: GOV-7: three replicas\x1b, please")
    assert told.value.obstacle is Obstacle.POLICY
    assert "a policy of its own refuses it: creating topic a: GOV-7: three replicas\\x1b, please" in str(told.value)
