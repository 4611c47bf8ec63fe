"""What running brokers have of values that their files leave to a configuration provider."""

from collections.abc import Mapping

from activities.ports.kafka import KafkaAdmin
from domain.errors import Permanent, Transient
from domain.observation import NodeView, Observation, Unanswered
from domain.provided_values import provided
from domain.records import ClusterRecord
from domain.redaction import shown_value
from domain.survey import StartedWith

PART = "values that configuration providers give"


def running_of(properties: Mapping[str, str], runs: StartedWith | None) -> dict[str, str]:
    """Of these properties, as far as the broker tells them: no secret is among them."""
    told = {key: runs.values.get(key) for key in provided(properties)} if runs is not None else {}
    return {key: shown_value(key, value) for key, value in told.items() if value is not None}


async def with_running_values(observation: Observation, cluster: ClusterRecord, kafka: KafkaAdmin) -> Observation:
    """The observation with them. Brokers are asked only if there are such values. Without the right to ask there are none."""
    alive = observation.kafka.broker_ids if observation.kafka is not None else ()
    asked = [node.id for node in observation.nodes if node.id in alive and provided(_properties(node))]
    if not asked:
        return observation
    try:
        runs = await kafka.started_with(cluster, asked)
    except Permanent:
        return observation
    except Transient as error:
        unanswered = (*observation.unanswered, Unanswered(what=PART, why=str(error)))
        return observation.model_copy(update={"unanswered": tuple(sorted(unanswered, key=lambda part: part.what))})
    return observation.model_copy(update={"nodes": tuple(_with(node, runs.get(node.id)) for node in observation.nodes)})


def _properties(node: NodeView) -> dict[str, str]:
    return node.disk.file.properties if node.disk is not None and node.disk.file is not None else {}


def _with(node: NodeView, runs: StartedWith | None) -> NodeView:
    if runs is None or node.disk is None or node.disk.file is None:
        return node
    file = node.disk.file.model_copy(update={"running": running_of(node.disk.file.properties, runs)})
    return node.model_copy(update={"disk": node.disk.model_copy(update={"file": file})})
