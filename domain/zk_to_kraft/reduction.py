"""From an observation to the `Situation`: each part of it from what was seen, and nothing from memory."""

from datetime import datetime, timedelta

from domain.cluster import ClusterSpec, Role
from domain.health.canary_debt import canary_debt
from domain.health.files import has_metadata_log, is_file_ours, is_startable
from domain.health.quorum import MAX_STANDBY_LAG, QuorumLeader, lag_of, quorum_leader
from domain.health.replication import partitions_needing
from domain.observed.observation import KafkaView, MigrationGauge, NodeView, Observation, ZooKeeperView
from domain.policy import MigrationPolicy
from domain.rolling.configuration_management import marked_nodes, running_again
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode, broker_mode, controller_mode, is_flag_in_file, stage_of_disk
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.probed import probed
from domain.zk_to_kraft.situation import (
    BrokerSituation,
    Claim,
    ControllerSituation,
    DualWrite,
    QuorumState,
    Registration,
    Replication,
    Situation,
)


def situation_of(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> Situation:
    """Reduce an observation. Pure; the same observation always gives the same situation."""
    policy = ZkToKraftPolicy.of(policy)
    leader = quorum_leader(observation, spec)
    zookeeper_controller = _zookeeper_controller(observation.zookeeper)
    brokers = tuple(
        BrokerSituation(
            id=broker.id,
            mode=broker_mode(observation.node(broker.id)),
            stage=stage_of_disk(observation.node(broker.id).disk, Role.BROKER),
            is_needed=bool(partitions_needing(observation.kafka, broker.id, policy)),
            is_zookeeper_controller=broker.id == zookeeper_controller,
            has_metadata_log=has_metadata_log(observation.node(broker.id).disk),
            is_file_ours=is_file_ours(observation.node(broker.id).disk),
            canaries=canary_debt(observation.node(broker.id)),
        )
        for broker in spec.brokers
    )
    controllers = tuple(
        ControllerSituation(
            id=controller.id,
            mode=controller_mode(observation.node(controller.id)),
            stage=stage_of_disk(observation.node(controller.id).disk, Role.CONTROLLER),
            is_leader=leader is not None and controller.id == leader.id,
            is_caught_up=_is_caught_up(observation.node(controller.id), leader)
            and controller.id not in (probed(observation).unregistered or ()),
            is_flag_in_file=is_flag_in_file(observation.node(controller.id).disk),
            is_startable=_is_startable(observation.node(controller.id)),
            is_file_ours=is_file_ours(observation.node(controller.id).disk),
        )
        for controller in spec.controllers
    )
    quorum = _quorum_state(observation, spec, controllers, leader)
    dual_write = _dual_write(observation.zookeeper, leader, policy)
    return Situation(
        brokers=brokers,
        controllers=controllers,
        quorum=quorum,
        claim=_claim(observation.zookeeper),
        dual_write=dual_write,
        registration=_registration(brokers, leader),
        replication=_replication(observation.kafka, observation.zookeeper, brokers),
        is_copy_left_over=_is_copy_left_over(observation.zookeeper),
        is_copy_stale=_is_copy_stale(observation, quorum, leader),
        is_copy_made=_is_copy_made(observation, spec, quorum),
        is_copy_failed=leader is None and _is_copy_failed(observation, brokers, controllers, policy),
        has_migration_znode=observation.zookeeper is not None and observation.zookeeper.migration is not None,
        is_failover_harmful=dual_write is DualWrite.DEAD and probed(observation).failover_hazards != (),
        is_mended_by_window=dual_write is DualWrite.DEAD and _is_mended_by_window(observation),
        is_release_due=bool(marked_nodes(observation, spec)),
        lacks_topic_ids=observation.zookeeper is not None and bool(observation.zookeeper.topics_without_id),
        running_again=running_again(observation, spec),
    )


def _is_startable(node: NodeView) -> bool:
    """One that runs is fenced where the window has fenced it; storage that somebody has taken away from it is no fence."""
    is_running = node.process is not None and node.process.is_running
    if is_running and node.disk is not None:
        return not any(log_dir.is_fenced for log_dir in node.disk.log_dirs) or is_startable(node.disk)
    return is_startable(node.disk)


def _is_caught_up(node: NodeView, leader: QuorumLeader | None) -> bool:
    if leader is None or node.metrics is None or node.metrics.raft_leader != leader.id:
        return False
    if node.metrics.migration_gauge in {None, MigrationGauge.BOOTING}:
        return False
    lag = lag_of(node.metrics, leader)
    return lag is not None and lag <= MAX_STANDBY_LAG


def _quorum_state(
    observation: Observation, spec: ClusterSpec, controllers: tuple[ControllerSituation, ...], leader: QuorumLeader | None
) -> QuorumState:
    gauges = [m.migration_gauge for c in spec.controllers if (m := observation.node(c.id).metrics) is not None]
    if MigrationGauge.POST_MIGRATION in gauges:
        return QuorumState.POST_MIGRATION
    if leader is not None:
        gauge = leader.metrics.migration_gauge  # NONE is 0, and so as false as an absent gauge
        return QuorumState.UNKNOWN if gauge is None else STATE_OF_GAUGE.get(gauge, QuorumState.UNKNOWN)
    return QuorumState.UNKNOWN if any(c.mode is ControllerMode.UNKNOWN for c in controllers) else QuorumState.ABSENT


STATE_OF_GAUGE = {
    MigrationGauge.NONE: QuorumState.NONE,
    MigrationGauge.PRE_MIGRATION: QuorumState.PRE_MIGRATION,
    MigrationGauge.MIGRATION: QuorumState.MIGRATION,
}
"""What the active controller's gauge says of the log. Others say nothing of it."""


def _is_copy_made(observation: Observation, spec: ClusterSpec, quorum: QuorumState) -> bool:
    """A leader says it. While nobody leads, another controller's log does; or the offset that the last leader has written: one
    that an earlier migration has left is seen as soon as somebody leads (`_is_copy_stale`).
    """
    if quorum not in {QuorumState.ABSENT, QuorumState.UNKNOWN}:
        return quorum in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION}
    gauges = {metrics.migration_gauge for c in spec.controllers if (metrics := observation.node(c.id).metrics) is not None}
    offset = _claimed_offset(observation.zookeeper)
    is_written = offset is not None and offset > 0
    return MigrationGauge.MIGRATION in gauges or is_written


def _claimed_offset(zookeeper: ZooKeeperView | None) -> int | None:
    """The offset in `/migration` while KRaft has `/controller`: positive once the copy is complete."""
    if zookeeper is None or zookeeper.migration is None or _claim(zookeeper) is not Claim.KRAFT:
        return None
    return zookeeper.migration.offset


def _zookeeper_controller(zookeeper: ZooKeeperView | None) -> int | None:
    if zookeeper is None or zookeeper.controller is None or not zookeeper.controller.is_ephemeral:
        return None
    return zookeeper.controller.broker_id


def _claim(zookeeper: ZooKeeperView | None) -> Claim:
    if zookeeper is None:
        return Claim.UNKNOWN
    if zookeeper.controller is None:
        return Claim.NOBODY
    return Claim.ZOOKEEPER if zookeeper.controller.is_ephemeral else Claim.KRAFT


def _is_copy_left_over(zookeeper: ZooKeeperView | None) -> bool:
    """A quorum that finds it takes the copy for made, and deletes from ZooKeeper what its own log lacks (Strimzi 11262)."""
    if zookeeper is None or zookeeper.migration is None or _claim(zookeeper) is Claim.KRAFT:
        return False
    return zookeeper.migration.offset is None or zookeeper.migration.offset > 0


def _is_copy_stale(observation: Observation, quorum: QuorumState, leader: QuorumLeader | None) -> bool:
    """A copy's own offset is written after its log says MIGRATION, so before that it is another's (proven-facts, section 4).

    The gauge can be a moment late: so only an offset that this quorum cannot have written yet counts. Once the log is as long
    as the offset, the deletion has happened, and haste helps nobody. Nor is an old claim a sign: a long copy has one.
    """
    zookeeper = observation.zookeeper
    if quorum is not QuorumState.PRE_MIGRATION or leader is None or zookeeper is None or zookeeper.migration is None:
        return False
    offset, log_end = zookeeper.migration.offset, leader.metrics.raft_log_end
    if _claim(zookeeper) is not Claim.KRAFT or offset is None or offset <= 0:
        return False
    return log_end is not None and offset >= log_end


def _is_copy_failed(
    observation: Observation,
    brokers: tuple[BrokerSituation, ...],
    controllers: tuple[ControllerSituation, ...],
    policy: ZkToKraftPolicy,
) -> bool:
    """The copy is not there, and no majority of controllers is left that could elect the one who makes it.

    A long copy has an old claim, and its failover seconds without anybody active: so as long as most controllers run, or
    somebody does not answer, it has not failed. Where a broker runs in KRaft mode, the copy was complete once.
    """
    offset = _claimed_offset(observation.zookeeper)
    is_copying = offset is not None and offset <= 0
    if not is_copying or any(b.mode is BrokerMode.KRAFT for b in brokers):
        return False
    dead = sum(c.mode is ControllerMode.DOWN for c in controllers)
    alive = sum(c.mode in {ControllerMode.MIGRATING, ControllerMode.FINAL, ControllerMode.UNKNOWN} for c in controllers)
    is_majority_left = 2 * alive > len(controllers)
    return 2 * dead > len(controllers) or (not is_majority_left and _is_claim_old(observation, policy))


def _is_claim_old(observation: Observation, policy: ZkToKraftPolicy) -> bool:
    claim = observation.zookeeper.controller if observation.zookeeper is not None else None
    if claim is None or claim.claimed_at is None:
        return False
    return observation.ended_at - claim.claimed_at > policy.copy_deadline


def offset_distance(zookeeper: ZooKeeperView | None, leader: QuorumLeader | None) -> int | None:
    """Records between the offset in `/migration` and the end of the leader's log. `None`: unknown, or no copy yet."""
    behind = _records_behind(zookeeper, leader)
    return abs(behind) if behind is not None else None


def _records_behind(zookeeper: ZooKeeperView | None, leader: QuorumLeader | None) -> int | None:
    """Negative: ahead. A few records are what was written between two looks; many, another quorum's offset."""
    if zookeeper is None or zookeeper.migration is None or leader is None:
        return None
    offset, log_end = zookeeper.migration.offset, leader.metrics.raft_log_end
    if offset is None or offset < 0 or log_end is None:
        return None
    return log_end - 1 - offset


def _dual_write(zookeeper: ZooKeeperView | None, leader: QuorumLeader | None, policy: ZkToKraftPolicy) -> DualWrite:
    """Current: the offset keeps up, and a persistent `/controller` names the leader, whose gauge is MIGRATION.

    Where a broker has taken `/controller`, a failover would delete what it has made since: that is for people.

    The mtime of `/migration` proves nothing, nor does a lag of 0: both look well while nothing is written
    (proven-facts, section 4).
    """
    if zookeeper is None or leader is None:
        return DualWrite.UNKNOWN
    behind = _records_behind(zookeeper, leader)
    looks_well = (
        (zookeeper.controller is None or _is_claimed_by(zookeeper, leader))
        and leader.metrics.migration_gauge is MigrationGauge.MIGRATION
        and leader.metrics.zookeeper_session in {None, "CONNECTED"}
    )
    if not looks_well or behind is None:
        return DualWrite.NOT_CURRENT
    if abs(behind) <= policy.max_offset_distance:
        return DualWrite.DEAD if zookeeper.controller is None else DualWrite.CURRENT
    return DualWrite.DEAD if behind > 0 and leader.metrics.write_behind_lag == 0 else DualWrite.NOT_CURRENT


def _is_mended_by_window(observation: Observation) -> bool:
    hazards = probed(observation).failover_hazards
    return bool(hazards) and all(hazard.is_mended_by_window for hazard in hazards or ())


def _is_claimed_by(zookeeper: ZooKeeperView, leader: QuorumLeader) -> bool:
    claim = zookeeper.controller
    return claim is not None and not claim.is_ephemeral and claim.broker_id == leader.id


def _registration(brokers: tuple[BrokerSituation, ...], leader: QuorumLeader | None) -> Registration:
    """A rolled broker is proven by its registration, not by its state: a broker can serve and never register."""
    if leader is None or leader.metrics.migrating_broker_count is None:
        return Registration.UNKNOWN
    hybrid = sum(b.mode is BrokerMode.HYBRID for b in brokers)
    in_kraft = sum(b.mode is BrokerMode.KRAFT for b in brokers)
    agrees = (
        leader.metrics.migrating_broker_count == hybrid
        and leader.metrics.active_broker_count == hybrid + in_kraft
        and leader.metrics.fenced_broker_count == 0
    )
    return Registration.AGREES if agrees else Registration.DIFFERS


def _replication(kafka: KafkaView | None, zookeeper: ZooKeeperView | None, brokers: tuple[BrokerSituation, ...]) -> Replication:
    if kafka is None:
        return Replication.UNKNOWN
    is_complete = all(b.id in kafka.broker_ids for b in brokers) and not missing_in_zookeeper(zookeeper, brokers)
    return Replication.IN_SYNC if is_complete and not kafka.under_replicated and not kafka.offline else Replication.CATCHING_UP


def missing_in_zookeeper(zookeeper: ZooKeeperView | None, brokers: tuple[BrokerSituation, ...]) -> tuple[int, ...]:
    """Brokers that serve in ZooKeeper or hybrid mode and whose registration somebody has deleted. No controller counts on them,
    and they do not register again by themselves. Of the controller itself the others' metadata does not show it (3.9.2).
    """
    known = zookeeper.broker_ids if zookeeper is not None else ()
    registering = {BrokerMode.ZOOKEEPER, BrokerMode.HYBRID} if zookeeper is not None else set()
    return tuple(b.id for b in brokers if b.mode in registering and b.id not in known)


def soaked_for(observation: Observation, spec: ClusterSpec, now: datetime) -> timedelta | None:
    """How long the last started broker has been running: what `min_soak` is compared with. `None`: unknown."""
    starts = [p.started_at for b in spec.brokers if (p := observation.node(b.id).process) is not None]
    known = [start for start in starts if start is not None]
    return now - max(known) if len(known) == len(spec.brokers) else None
