"""What running brokers have of values that their files leave to a configuration provider."""

import asyncio
from collections.abc import Mapping

from activities.ports.kafka import KafkaAdmin
from domain.configuration.provided_values import provided
from domain.errors import Permanent, Transient
from domain.observed.observation import NodeView, Observation, Unanswered
from domain.observed.survey import StartedWith
from domain.records import ClusterRecord
from domain.redaction import shown_value

PART = "values that configuration providers give"


def running_of(properties: Mapping[str, str], runs: StartedWith | None) -> dict[str, str]:
    """The broker's values of these properties, as far as it shows them: no secret is among them."""
    told = {key: runs.values.get(key) for key in provided(properties)} if runs is not None else {}
    return {key: shown_value(key, value) for key, value in told.items() if value is not None}


async def with_running_values(observation: Observation, cluster: ClusterRecord, kafka: KafkaAdmin) -> Observation:
    """The observation with them. Brokers are asked only if there are such values. Without the right to ask there are none."""
    alive = observation.kafka.broker_ids if observation.kafka is not None else ()
    asked = [node.id for node in observation.nodes if node.id in alive and provided(_properties(node))]
    if not asked:
        return observation
    answers = await asyncio.gather(*(_started_with(cluster, node_id, kafka) for node_id in asked))
    runs = {node_id: answer for node_id, answer in zip(asked, answers, strict=True) if isinstance(answer, StartedWith)}
    silent = [Unanswered(what=PART, why=str(answer)) for answer in answers if isinstance(answer, Transient)][:1]
    unanswered = sorted([*observation.unanswered, *silent], key=lambda part: part.what)
    nodes = tuple(_with(node, runs.get(node.id)) for node in observation.nodes)
    return observation.model_copy(update={"nodes": nodes, "unanswered": tuple(unanswered)})


async def _started_with(cluster: ClusterRecord, node_id: int, kafka: KafkaAdmin) -> StartedWith | Transient | None:
    """Its values, or why it did not answer; `None` where the right to ask is missing."""
    try:
        return (await kafka.started_with(cluster, [node_id])).get(node_id)
    except Permanent:
        return None
    except Transient as error:
        return error


def _properties(node: NodeView) -> dict[str, str]:
    return node.disk.file.properties if node.disk is not None and node.disk.file is not None else {}


def _with(node: NodeView, runs: StartedWith | None) -> NodeView:
    if runs is None or node.disk is None or node.disk.file is None:
        return node
    file = node.disk.file.model_copy(update={"running": running_of(node.disk.file.properties, runs)})
    return node.model_copy(update={"disk": node.disk.model_copy(update={"file": file})})
