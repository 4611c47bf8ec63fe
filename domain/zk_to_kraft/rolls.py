"""What a roll of this migration writes and proves, by stage: see `domain.rolling.change.Rolls`."""

from domain.cluster import Role
from domain.rolling.change import Restart, Rolls
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

ROLLS = Rolls(
    restart=lambda stage: RESTARTS[NodeStage(stage)],
    is_original=is_in_first_stage,
    needs_sibling=needs_sibling,
    make=wanted_file,
    edit=node_file,
    is_staged=is_staged,
    why_not_proven=why_not_proven,
    dead_besides=dead_besides,
    returns_leadership=is_leadership_returned,
)
