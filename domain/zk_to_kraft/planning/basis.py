"""What a plan rests on: whoever changes one of these has moved the cluster away from the plan.

In what mode a node runs is the preflight's to judge, and what moves by itself is nobody's change.
"""

from domain.cluster import ClusterSpec
from domain.observed.observation import Observation
from domain.plans import of_specification
from domain.zk_to_kraft.situation import Situation


def basis_of(observation: Observation, spec: ClusterSpec, situation: Situation) -> dict[str, str]:
    """What a plan rests on, by name: what nobody changes without meaning to."""
    basis = {
        **of_specification(observation.spec_revision),
        "/controller": f"held by {situation.claim}",
        "/migration": "there" if situation.has_migration_znode else "absent",
    }
    for node in spec.nodes:
        name, metrics = spec.node_name(node.id), observation.node(node.id).metrics
        basis[f"{name}: properties file"] = _file_of(observation, node.id)
        if metrics is not None and metrics.kafka_version is not None:
            basis[f"{name}: Kafka"] = metrics.kafka_version
    return basis


def _file_of(observation: Observation, node_id: int) -> str:
    disk = observation.node(node_id).disk
    if disk is None:
        return "unknown"
    return f"sha256 {disk.file.sha256}" if disk.file is not None else "absent"
