"""The manual way from the very state that was seen, forward and back, with Kafka's and ZooKeeper's own tools and a shell.

For the night on which this product cannot be used: written before that, or by a look of its own that changes nothing. Every
command is complete, and may be repeated. `forward` and `back` have the order, `shell` and `tools` the commands.
"""

from domain.cluster import ClusterSpec
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.questions import Runbook, RunbookAction
from domain.rolling.change import Files
from domain.zk_to_kraft.phases import phase_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preview import has_something_to_undo
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.runbook.actions import Scene, on_cluster, unknown_actions
from domain.zk_to_kraft.runbook.back import back_actions
from domain.zk_to_kraft.runbook.forward import forward_actions
from domain.zk_to_kraft.situation import QuorumState

FIRST = (
    "Before you begin: make sure that no other person or program acts on this cluster, and stop every activity worker of "
    "Keeperless. Run each command as the user that runs its node, one after another, and continue only when the check of an "
    "action passes"
)
NOTHING_TO_UNDO = "There is no trace of a migration: every broker runs on plain ZooKeeper, and there is no KRaft controller."
FINAL = (
    "The quorum's log says that the migration is final (POST_MIGRATION): a rollback to ZooKeeper is impossible. "
    "Continue forward."
)


def runbook_of(
    observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, files: Files, epoch: int | None = None
) -> Runbook:
    """Both ways from what was seen. `epoch`: the largest controller epoch in partition states, where it was read. Pure."""
    situation = situation_of(observation, spec, policy)
    scene = Scene(observation, situation, spec, ZkToKraftPolicy.of(policy), files, epoch)
    why_no_way_back = FINAL if situation.quorum is QuorumState.POST_MIGRATION else ""
    if not why_no_way_back and not observation.unanswered and not has_something_to_undo(situation):
        why_no_way_back = NOTHING_TO_UNDO
    return Runbook(
        cluster=spec.name,
        observed_at=observation.ended_at,
        phase=phase_of(situation),
        forward=_introduced(scene, forward_actions(scene)),
        back=() if why_no_way_back else _introduced(scene, back_actions(scene)),
        why_no_way_back=why_no_way_back,
        unknown=tuple(f"{part.what}: {part.why}" for part in observation.unanswered),
    )


def _introduced(scene: Scene, actions: tuple[RunbookAction, ...]) -> tuple[RunbookAction, ...]:
    return (on_cluster(scene, FIRST, ()), *unknown_actions(scene), *actions) if actions else ()
