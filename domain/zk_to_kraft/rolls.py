"""What a roll of this migration writes and proves, by stage: see `domain.rolling.change.Rolls`."""

from collections.abc import Collection

from domain.cluster import ClusterSpec, NodeSpec, Role
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.rolling.change import Missing, Restart, Rolls, Sources, WantedFile
from domain.zk_to_kraft.node_config import is_staged, node_file
from domain.zk_to_kraft.proof import dead_besides, why_not_proven
from domain.zk_to_kraft.roll_waves import is_leadership_returned
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.wanted_file import is_in_first_stage, needs_sibling, wanted_file

RESTARTS = {
    NodeStage.ZOOKEEPER: Restart(is_restored=True, registers_in_zookeeper=True),
    # A controller without its flag ends the migration with the next election: giving it back waits for nothing.
    NodeStage.MIGRATION: Restart(
        registers_in_zookeeper=True, takes_topics_of_zookeeper=True, urgent=frozenset({Role.CONTROLLER})
    ),
    NodeStage.KRAFT: Restart(),
}


def _needs_sibling(sources: Sources, spec: ClusterSpec, node: NodeSpec, stage: str) -> bool:
    return needs_sibling(sources, spec, node, NodeStage(stage))


def _make(sources: Sources, spec: ClusterSpec, node: NodeSpec, stage: str) -> WantedFile:
    return wanted_file(sources, spec, node, NodeStage(stage))


def _edit(text: str, spec: ClusterSpec, node: NodeSpec, stage: str) -> str:
    return node_file(text, spec, node, NodeStage(stage))


def _why_not_proven(
    observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, node_id: int, stage: str
) -> Missing | None:
    return why_not_proven(observation, spec, policy, node_id, NodeStage(stage))


def _dead_besides(
    observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, node_ids: Collection[int], stage: str
) -> str:
    return dead_besides(observation, spec, policy, node_ids, NodeStage(stage))


ROLLS = Rolls(
    restart=lambda stage: RESTARTS[NodeStage(stage)],
    is_original=is_in_first_stage,
    needs_sibling=_needs_sibling,
    make=_make,
    edit=_edit,
    is_staged=is_staged,
    why_not_proven=_why_not_proven,
    dead_besides=_dead_besides,
    returns_leadership=is_leadership_returned,
)
