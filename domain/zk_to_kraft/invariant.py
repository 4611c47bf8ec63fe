"""`ensure_allowed`: what no effect may do, whatever `decide` says. Pure; it shares no code with the rules, only the situation.

The invariant: **no step takes away availability, data or the rollback, unless people have approved exactly that.**

    1. irreversible   A controller loses its migration flag only if the log is final already; or by a roll that consumes an
                      approval of the end, with every broker in KRaft mode. A failover consumes its approval, unless the policy
                      allows it or a rollback needs it.
    2. replicas       A restart takes no partition below its `min.insync.replicas`, but for topics that the policy gives up.
    3. leaders        Nothing restarts while a partition has no leader: the restart can bring it back empty, with unclean
                      elections disabled (seen: a replaced disk, then one clean restart, end offset 0).
    4. quorum         A controller restarts only if the others are a caught-up majority. The whole quorum stops only for a
                      rollback, with no broker in KRaft mode and no final log; it is wiped only if nothing runs on it any more.
    5. unknown        Nothing is done while a node, ZooKeeper, or the state of a partition that matters is unknown.
    6. together       Brokers that share a partition never restart together, nor does a controller together with any other
                      node. Controllers that have never served may be created together.

Exceptions, each because waiting costs more than going on:

    a. 2, 3, 4 and 6 are about nodes that run: starting a stopped node takes nothing away.
    b. A flag that comes back waits for nothing but its own node: one election makes the migration final.
    c. The revert window waits for no answer if the copy has failed, or is about to delete metadata.
    d. If the log became final too early, a restart waits for no leader: a hybrid broker gets no metadata any more.
    e. A failover on a rollback waits for no partition: without it, changes that only KRaft has are lost.
    f. ZooKeeper may be silent once the log is final, or once people have approved `finalize-without-return`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.cluster import ClusterSpec
from domain.decisions import Step
from domain.errors import Unsafe
from domain.observed.observation import KafkaView, Observation
from domain.policy import MigrationPolicy
from domain.rulings import Ruling
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import BrokerSituation, Claim, ControllerSituation, QuorumState, Situation
from domain.zk_to_kraft.steps import FINAL_GATES, GateName, NodeStage, StepAction

Node = BrokerSituation | ControllerSituation


@dataclass(frozen=True)
class Facts:
    """What a situation does not say. `kafka`: from the same observation; `None`: it did not answer.

    `approved`: gates whose approval counts for this step; right before the write the ledger is asked again, and consumes it.
    """

    kafka: KafkaView | None
    approved: frozenset[str] = frozenset()
    is_rollback: bool = False
    is_failover_allowed: bool = False


def ensure_allowed_by(seen: Observation, spec: ClusterSpec, policy: MigrationPolicy, ruling: Ruling, step: Step) -> None:
    """`ensure_allowed`, asked of the observation that is about to allow an effect."""
    own = ZkToKraftPolicy.of(policy)
    facts = Facts(seen.kafka, frozenset(ruling.approvals), ruling.accepted_losses is not None, own.cure_dual_write)
    ensure_allowed(situation_of(seen, spec, policy), step, facts)


def ensure_allowed(s: Situation, step: Step, facts: Facts) -> None:
    """Raise `Unsafe` if the step breaks the invariant. Ask it of the last observation before every effect."""
    breach = next((found for clause in CLAUSES if (found := clause(s, step, facts)) is not None), None)
    if breach is not None:
        raise Unsafe(
            f"{breach}. The step {step.action} was refused, and nothing was touched. Fix that, then resume the migration. If "
            "nothing is wrong there, report a defect: the rules that chose this step contradict the invariant that refuses it"
        )


def _irreversible(s: Situation, step: Step, facts: Facts) -> str | None:
    is_approved = step.gate in facts.approved
    losing = [c for c in s.controllers if c.id in step.nodes and _would_run_without_flag(c, step)]
    if losing and s.quorum is not QuorumState.POST_MIGRATION:
        if step.action != StepAction.ROLL_NODE or step.gate not in FINAL_GATES or not is_approved:
            return f"{_names(s, losing)}: would run without the migration flag, expected an approval of the end to consume"
        behind = [b for b in s.brokers if b.mode is not BrokerMode.KRAFT]
        if behind:
            return f"{_names(s, behind)}: not in KRaft mode, expected every broker in KRaft mode before the end"
    is_asked = step.action == StepAction.FAIL_OVER and not (facts.is_failover_allowed or facts.is_rollback)
    if is_asked and not (step.gate == GateName.FAIL_OVER and is_approved):
        return f"failover: not approved, expected an approval of {GateName.FAIL_OVER} to consume"
    return None


def _replicas(s: Situation, step: Step, _: Facts) -> str | None:
    needed = [b for b in s.brokers if b in _restarted(s, step) and b.is_needed]
    return f"{_names(s, needed)}: needed for min.insync.replicas, expected partitions that can spare it" if needed else None


def _leaders(s: Situation, step: Step, facts: Facts) -> str | None:
    is_rescue = facts.is_rollback and step.action == StepAction.FAIL_OVER
    if not _restarted(s, step) or is_rescue or _is_flag_coming_back(s, step):
        return None
    if facts.kafka is None:
        return "partitions: unknown, because Kafka did not answer, expected a leader for each before anything restarts"
    is_too_early = s.quorum is QuorumState.POST_MIGRATION and any(b.mode is not BrokerMode.KRAFT for b in s.brokers)
    offline = () if is_too_early else facts.kafka.offline
    return f"{', '.join(offline[:5])}: without a leader, expected one before anything restarts" if offline else None


def _quorum(s: Situation, step: Step, _: Facts) -> str | None:
    stopped = [c for c in s.controllers if c in _restarted(s, step)]
    others = [c for c in s.controllers if c.id not in step.nodes]
    ready = sum(c.is_caught_up and c.mode in {ControllerMode.MIGRATING, ControllerMode.FINAL} for c in others)
    if not stopped or not others or 2 * ready > len(s.controllers) or _is_flag_coming_back(s, step):
        return None
    return f"{_names(s, stopped)}: {ready} others caught up, expected more than half of all {len(s.controllers)} controllers"


def _quorum_leaves(s: Situation, step: Step, facts: Facts) -> str | None:
    if step.action not in {StepAction.LEAVE_KRAFT, StepAction.WIPE}:
        return None
    if not facts.is_rollback or s.quorum is QuorumState.POST_MIGRATION:
        return "controller quorum: no rollback, or a final log, expected a rollback before the controllers go"
    using: list[Node] = [b for b in s.brokers if b.mode is BrokerMode.KRAFT]
    if step.action == StepAction.WIPE:
        using = [*(b for b in s.brokers if b.mode is not BrokerMode.ZOOKEEPER), *(c for c in s.controllers if _runs(c))]
        if s.claim is not Claim.ZOOKEEPER:
            return f"/controller: owned by {s.claim}, expected a ZooKeeper controller before the controllers are wiped"
    return f"{_names(s, using)}: still uses the quorum, expected no node that needs it" if using else None


def _unknown(s: Situation, step: Step, facts: Facts) -> str | None:
    unknown = [n for n in s.nodes if n.mode == BrokerMode.UNKNOWN]
    is_window_urgent = step.action == StepAction.LEAVE_KRAFT and (s.is_copy_failed or s.is_copy_stale)
    is_given_up = s.quorum is QuorumState.POST_MIGRATION or GateName.FINALIZE_WITHOUT_RETURN in facts.approved
    if is_window_urgent or _is_flag_coming_back(s, step):
        unknown = [n for n in unknown if n.id in step.nodes]
    elif s.claim is Claim.UNKNOWN and not is_given_up:
        return "ZooKeeper: did not answer, expected an answer before any effect"
    return f"{_names(s, unknown)}: unknown, expected an answer before any effect" if unknown else None


def _together(s: Situation, step: Step, facts: Facts) -> str | None:
    if not step.companions or _is_creation(s, step):
        return None
    shared = facts.kafka.shared if facts.kafka is not None else None
    if shared is None or any(c.id in step.nodes for c in s.controllers):
        return f"nodes {step.nodes}: not known to share no partition, expected brokers that share none, or one node alone"
    pair = next((pair for pair in shared if set(pair.brokers) <= set(step.nodes)), None)
    return f"brokers {pair.brokers}: both have {pair.example}, expected brokers that share no partition" if pair else None


def _is_creation(s: Situation, step: Step) -> bool:
    """Only controllers, none of which has ever served."""
    absent = {c.id for c in s.controllers if c.mode is ControllerMode.ABSENT}
    return step.action == StepAction.PROVISION_CONTROLLER and absent.issuperset(step.nodes)


def _restarted(s: Situation, step: Step) -> list[Node]:
    """Nodes that run now and that the step stops."""
    is_restart = step.action in {StepAction.ROLL_NODE, StepAction.FAIL_OVER}
    return [n for n in s.nodes if is_restart and n.id in step.nodes and _runs(n)]


def _runs(n: Node) -> bool:
    """As words the modes of brokers and controllers are the same. What is unknown may run."""
    return n.mode not in {"interrupted", "down", "fenced", "absent"}


def _would_run_without_flag(c: ControllerSituation, step: Step) -> bool:
    """A roll writes its file, and so does provisioning; a start and a failover take it as it is."""
    is_as_it_is = step.action in {StepAction.START_NODE, StepAction.FAIL_OVER}
    return step.stage == NodeStage.KRAFT or (is_as_it_is and _lacks_flag(c))


def _lacks_flag(c: ControllerSituation) -> bool:
    return c.stage is NodeStage.KRAFT or not c.is_flag_in_file


def _is_flag_coming_back(s: Situation, step: Step) -> bool:
    is_roll = (step.action, step.stage) == (StepAction.ROLL_NODE, NodeStage.MIGRATION)
    if not is_roll or s.quorum is QuorumState.POST_MIGRATION:
        return False
    return any(c.id == step.node_id and (c.mode is ControllerMode.FINAL or _lacks_flag(c)) for c in s.controllers)


def _names(s: Situation, nodes: Sequence[Node]) -> str:
    return ", ".join(f"{'broker' if node in s.brokers else 'controller'}-{node.id}" for node in nodes)


CLAUSES = (_irreversible, _replicas, _leaders, _quorum, _quorum_leaves, _unknown, _together)
