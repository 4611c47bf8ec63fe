"""The guards in flight: what each holds to, where in the code that is, what people see of it, and what of it is not there.

`docs/guards.md` is made from this, and a test looks up every place that is named.
"""

from dataclasses import dataclass

from domain.waits import WaitReason
from domain.zk_to_kraft.waits import ZkWait


@dataclass(frozen=True)
class Guard:
    """`held_in`: `module:name`. `shows`: reasons of waits, or codes of blockers. `lacks`: what it does not do."""

    code: str
    title: str
    what: str
    held_in: tuple[str, ...]
    shows: tuple[str, ...] = ()
    lacks: str = ""


FORWARD, GUARDS, REDUCTION = "domain.zk_to_kraft.forward", "domain.zk_to_kraft.guards", "domain.zk_to_kraft.reduction"
ROLLING, LOOKING = "activities.rolling.roll", "activities.looking"

CATALOGUE: tuple[Guard, ...] = (
    Guard(
        "GF01",
        "One writer for one cluster",
        "The workflow's id is the id of the Kafka cluster, so Temporal runs only one at a time. The ledger gives each run a "
        "generation number, which is checked right before every effect: an older run can no longer change anything.",
        (
            "domain.contracts:workflow_id",
            "activities.claims:ensure_not_superseded",
            "activities.recording:Recording.claim_cluster",
        ),
        ("run-gone",),
        "A node's driver has no lease of its own: restarts from outside Keeperless are detected (GF14), not prevented.",
    ),
    Guard(
        "GF02",
        "The cluster is healthy before each node",
        "Before every restart each node runs and serves, all controllers follow one leader, every broker is registered, "
        "every partition has its leader and all replicas, and none would fall below `min.insync.replicas`. Files are as "
        "this migration left them. This is observed again right before the effect. Then Keeperless checks that the node can "
        "start again. A JVM starts there and accepts its next file (PF45), the file is its own and matches what the process "
        "runs with (PF44), and `/cluster/id` in ZooKeeper is the cluster's. ZooKeeper has every topic that brokers serve, "
        "with its id, because an elected controller makes up missing ids. It also checks that the other nodes work: a node "
        "whose disk hangs, or whose packets are lost, still counts as in sync for `replica.lag.time.max.ms`, but its kernel "
        "knows immediately.",
        (
            f"{GUARDS}:not_serving",
            f"{GUARDS}:disagreements",
            f"{GUARDS}:topics_without_id",
            f"{FORWARD}:_changed_files",
            f"{FORWARD}:_edited_files",
            f"{FORWARD}:_roll_broker",
            f"{LOOKING}:why_not_this_step",
            "activities.rolling.startable:why_not_startable",
            "activities.survey.unapplied:why_not_in_force",
            "activities.rolling.remaining_nodes:why_others_do_not_get_on",
        ),
        (
            WaitReason.NODE_DOWN,
            WaitReason.NODE_NOT_READY,
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            WaitReason.BROKERS_NOT_REGISTERED,
            WaitReason.CONTROLLERS_NOT_READY,
            WaitReason.FILE_CHANGED,
            WaitReason.PARTITIONS_WOULD_STOP,
            ZkWait.TOPIC_WITHOUT_ID,
        ),
        "A reassignment that begins in the middle of a migration is awaited through the replicas that lag, not by itself.",
    ),
    Guard(
        "GF03",
        "Several good observations in a row, not one",
        "A restarted node is proven by `stable_samples` good observations in a row. A step that follows a wait is decided "
        "by as many before it is taken.",
        ("activities.rolling.proving:prove", f"{LOOKING}:why_not_this_step"),
    ),
    Guard(
        "GF04",
        "A restarted node is proven from outside",
        "Its process is a new one and holds the locks of its own log directories, it runs in the wanted mode, it is "
        "registered and unfenced, and every replica is in sync. Its own state proves nothing: a broker can serve for ever "
        "and never register, or serve empty partitions from another directory.",
        (
            "domain.zk_to_kraft.proof:why_not_proven",
            "activities.rolling.proving:prove",
            "activities.rolling.own_data:own_data",
            f"{REDUCTION}:_registration",
        ),
        (WaitReason.BROKERS_NOT_REGISTERED, WaitReason.NODE_NOT_READY, "step-failing"),
    ),
    Guard(
        "GF05",
        "A file changes only right before its own node's restart",
        "One activity writes and restarts, and an observation that is too old allows neither. If the specification names "
        "the node's configuration management, that is first paused, and proven to be paused; for a node that is found "
        "stopped this is skipped.",
        (f"{ROLLING}:Rolling._write", f"{ROLLING}:is_old", f"{FORWARD}:_configuration_runs"),
        (WaitReason.CONFIGURATION_RUNS,),
    ),
    Guard(
        "GF06",
        "No controller restarts without a majority of others",
        "The others that are caught up are a majority of all; the active controller comes last. Right before, Keeperless "
        "connects to their listeners: a controller that follows but accepts no connection can neither vote nor be followed.",
        (
            f"{GUARDS}:is_quorum_healthy_without",
            f"{FORWARD}:_controllers",
            f"{FORWARD}:_finalize",
            "activities.rolling.remaining_nodes:why_no_quorum_would_stay",
        ),
        (WaitReason.QUORUM_TOO_THIN, "step-failing"),
    ),
    Guard(
        "GF07",
        "One active controller, and an absent gauge is unknown",
        "The active controller is the one that reports it and that raft names as leader. A gauge that is absent or -1 means "
        "that a controller boots, never that all is well. Before the copy each controller must also have registered, "
        "according to the active one's log: a lost registration is never sent again (KAFKA-20247), and the copy would wait "
        "for it for ever. A standby is caught up if within a second it has what the leader had when it was observed, give "
        "or take 20 records, so that steady writes make none seem behind.",
        (
            f"{REDUCTION}:quorum_leader",
            f"{REDUCTION}:_is_caught_up",
            "activities.observing.standbys:with_standbys",
            f"{REDUCTION}:_quorum_state",
            "activities.zk_to_kraft.suspects:with_suspects",
        ),
        (WaitReason.CONTROLLERS_NOT_READY, ZkWait.QUORUM_CANNOT_MIGRATE),
        "The gauges of standbys are not compared with the active one's: they follow a moment later.",
    ),
    Guard(
        "GF08",
        "Dual write is proven by the offset",
        "Dual write is current if the offset in `/migration` keeps up with the quorum's log, `/controller` is persistent "
        "and names the leader, the gauge is MIGRATION, and the session is connected. Otherwise no broker restarts, and "
        "finalize is closed. A dual write that died without an error opens the gate `fail-over`.",
        (f"{REDUCTION}:_dual_write", f"{GUARDS}:dual_write_not_current"),
        (ZkWait.DUAL_WRITE_NOT_CURRENT, ZkWait.FAILOVER_WOULD_HURT),
        "The mtime of `/migration` is ignored on purpose: it moves while nothing is written.",
    ),
    Guard(
        "GF09",
        "Registrations add up",
        "`MigratingZkBrokerCount` is the number of hybrid brokers, `ActiveBrokerCount` that of hybrid and KRaft brokers, none "
        "is fenced.",
        (f"{REDUCTION}:_registration",),
        (WaitReason.BROKERS_NOT_REGISTERED,),
    ),
    Guard(
        "GF10",
        "Errors in applying metadata are reported",
        "`MetadataErrorCount` of each controller is read with every observation; above 0 it is an entry that lasts until "
        "that controller restarts. The migration waits for fenced brokers (GF09).",
        ("domain.diagnosis.causes.node:_errors", "activities.adapters.metrics.gauges:GAUGES"),
        ("GF10",),
        "The migration reports it and does not wait. `NewActiveControllersCount` and `TimedOutBrokerHeartbeatCount` are not "
        "read.",
    ),
    Guard(
        "GF11",
        "ZooKeeper is healthy until finalize",
        "Without an answer from ZooKeeper nothing is done until the log says that the migration is final. `blockers` asks "
        "every server of the ensemble by itself, so that a lost member shows before its quorum does. A standalone member, "
        "with a tree of its own, is not believed. Every observation asks each member which leader it follows: if two lead, "
        "or one follows another leader, two ensembles answer, and the state of both is unknown, also for a rollback. "
        "Members that have applied the same transactions but have different numbers of znodes are reported, and on the way "
        "forward no node restarts while there are any. No comparison sees this, because it reads through one session.",
        (
            f"{GUARDS}:unknown",
            "domain.diagnosis.causes.ensemble:zookeeper_causes",
            "activities.adapters.four_letter_words:FourLetterWords.serving",
            "activities.observing.member_trees:differing_trees",
            "activities.observing.member_trees:why_trees_differ",
            "activities.observing.member_trees:ensure_not_torn",
            "activities.adapters.zookeeper:KazooEnsembles.connect_to",
        ),
        ("GF11", WaitReason.PART_UNKNOWN),
        "A single lost member is reported by `GET /migrations/{id}/blockers` only: there is no event, and the migration "
        "does not wait for it. Trees that differ but have as many znodes are reported from the members' logs, if these can "
        "be read, and the migration does not wait for them. A rollback waits for no member.",
    ),
    Guard(
        "GF12",
        "Canaries, and the longest pause",
        "If the policy asks for it (`canaries`), Keeperless does at each restarted broker what clients do, under reserved "
        "names: a topic, messages, a config, an ACL, a SCRAM credential. It checks them through Kafka and in ZooKeeper, and "
        "removes them. No other broker restarts before that. The migration does not end before what is left is removed, or "
        "named with the commands that remove it. With `max_client_pause`, test writes continue while brokers restart, and a "
        "longer pause holds the migration.",
        (
            "activities.canaries.trying:Canaries.try_canaries",
            "activities.canaries.trying:Canaries.remove_canaries",
            "activities.rolling.pauses:PauseMeter",
            f"{FORWARD}:_canaries",
        ),
        (WaitReason.HELD,),
        "A rollback makes no canaries, and no pause is measured on it.",
    ),
    Guard(
        "GF13",
        "Finalize is approved on a clean comparison",
        "ZooKeeper and KRaft were compared during this dual write, the report is clean and no older than `max_report_age`, "
        "and the approval is bound to the evidence that names it: if the evidence changes, the approval no longer counts. "
        "No step of the end is taken while a requested rollback is not verified. Kafka's copy is compared before the second "
        "roll.",
        (
            f"{FORWARD}:_not_compared",
            f"{FORWARD}:_not_verified",
            "domain.zk_to_kraft.evidence:evidence_of",
            "domain.zk_to_kraft.assessment:_approval",
            "domain.approvals:is_rollback_asked",
        ),
        (
            WaitReason.ROLLBACK_NOT_VERIFIED,
            ZkWait.DRIFT_FOUND,
            ZkWait.COPY_DIFFERS,
            WaitReason.MESSAGES_DIFFER,
            WaitReason.CHECK_INCONCLUSIVE,
            WaitReason.CHECKS_WORKER_MISSING,
            "approval",
        ),
    ),
    Guard(
        "GF14",
        "Drift watch",
        "Every observation of the way forward compares three things: the file of each changed node with what the migration "
        "wrote, its process with the one that was proven, and all nodes' Kafka versions with each other. A controller that "
        "lost its flag gets it back immediately; a file that fits no stage makes the migration wait; the rest is an `alert` "
        "event, and an entry while it lasts.",
        (
            "domain.zk_to_kraft.drift_watch:drifts",
            "domain.zk_to_kraft.assessment:alerts_of",
            f"{GUARDS}:lost_flag",
            f"{FORWARD}:_changed_files",
            f"{FORWARD}:_edited_files",
        ),
        ("GF14", WaitReason.FILE_CHANGED, ZkWait.CONTROLLER_LOST_ITS_FLAG),
        "Dynamic configuration is not watched. Kafka itself refuses to change `metadata.version` during a migration. A "
        "version is known if Jolokia reports it, or from the name of Kafka's jar.",
    ),
    Guard(
        "GF15",
        "A standstill is reported, and has no other consequence",
        "If for `stage_deadline` no step was done, no broker registered and no replica caught up, an `alert` event says so. "
        "Gates, holds and the soak do not count. A timer never finalizes or rolls back. The only rollback without a request "
        "is that of a copy which leaves the cluster without any controller (`revert_failed_copy`).",
        ("domain.zk_to_kraft.standstill:standstill", "domain.zk_to_kraft.standstill:overdue"),
        ("GF15",),
        "While an activity keeps retrying, the cluster is not observed; `step-failing` reports that instead.",
    ),
    Guard(
        "GF16",
        "The gate of finalize",
        "It opens when every broker runs and is registered in KRaft mode, dual write is current, the soak is over and "
        "everything was compared. A controller restarts without its flag only under a valid approval.",
        (f"{FORWARD}:_controllers", f"{FORWARD}:_finalize", f"{REDUCTION}:soaked_for"),
        (WaitReason.SOAK_NOT_OVER, "approval"),
        "One approval is enough, and the approver need not have read the rollback's preview.",
    ),
    Guard(
        "GF17",
        "The gate of a rollback",
        "Refused once the log is final, and without ZooKeeper's quorum. It is bound to a preview, or names every loss: "
        "changes that dual write did not deliver, topics without an id, edits, originals that are not archived.",
        (
            "domain.zk_to_kraft.preview:why_no_way_back",
            "activities.previewing:why_not_accepted",
            "domain.zk_to_kraft.losses:losses_of",
        ),
        (WaitReason.FILE_CHANGED, ZkWait.DUAL_WRITE_NOT_CURRENT),
    ),
    Guard(
        "GF18",
        "The order of the revert window",
        "Drain, fence, kill, prove the controllers dead, and read their logs for what ZooKeeper lacks. Then one transaction "
        "raises `/controller_epoch` and deletes `/migration` and `/controller`. Then wait until a broker is seen to become "
        "controller.",
        ("activities.zk_to_kraft.window.leaving:Leaving.leave_kraft", "activities.zk_to_kraft.fence:kill"),
        (ZkWait.NO_CONTROLLER, ZkWait.HALF_REVERTED),
    ),
    Guard(
        "GF19",
        "Writes to ZooKeeper are read back",
        "There is only one: the window's transaction. Each of its results is checked, a lost answer is looked up through "
        "another session, and its effect is watched afterwards.",
        ("activities.ports.zookeeper:ZooKeeperTree.commit", "activities.zk_to_kraft.window.leaving:Leaving.leave_kraft"),
    ),
    Guard(
        "GF20",
        "The first node that fails stops the roll",
        "If a node does not run or cannot be proven, the migration waits for it by name and touches no other. An error that "
        "a retry cannot fix holds the migration until a person resumes it.",
        (f"{GUARDS}:not_serving", "domain.zk_to_kraft.proof:dead_besides", "workflows.stopping:Stop.after"),
        (WaitReason.NODE_DOWN, WaitReason.HELD, "step-failing"),
    ),
    Guard(
        "GF21",
        "Effects are judged by what is observed, not by memory",
        "Every activity may run twice: it first checks whether its work is done, and stops only the process that its mark "
        "names.",
        (f"{ROLLING}:has_left", f"{ROLLING}:Rolling._restart", "activities.rolling.marking:mark_roll"),
    ),
    Guard(
        "GF22",
        "The end is observed",
        "A migration succeeds when the gauge says POST_MIGRATION and every broker runs in KRaft mode, every controller "
        "without the flag. Each runs from a file that fits that stage and has no key of the migration. Before that, what "
        "ZooKeeper had when KRaft stopped writing to it is compared once with KRaft's log from there to now. A difference "
        "that this log does not explain is an `alert` event; the migration has still succeeded, and nothing is undone.",
        (
            "domain.zk_to_kraft.phases:_phase_after_finalization",
            f"{FORWARD}:_done",
            "domain.end_compared:lost_at_the_end",
        ),
        ("GF22", ZkWait.FINALIZATION_NOT_SEEN),
        "Sessions in ZooKeeper are not counted afterwards. Raising `metadata.version` is a separate operation.",
    ),
    Guard(
        "GF23",
        "An invariant beside the rules",
        "Right before every effect the step is judged a second time, by code that shares nothing with the rules that chose it. "
        "No controller loses its migration flag without an approval that the write consumes. No restart takes a partition "
        "below `min.insync.replicas`, or happens while a partition has no leader or the other controllers are no caught-up "
        "majority. Nothing is done while a node or ZooKeeper is unknown, and brokers that share a partition never restart "
        "together. The few exceptions are listed at the top of the module. A refusal is a defect of this product: nothing is "
        "touched, and the migration is held.",
        ("domain.zk_to_kraft.invariant:ensure_allowed", f"{LOOKING}:look_and_decide", f"{LOOKING}:why_not_approved"),
        (WaitReason.HELD,),
        "A node that a step has already stopped is finished without a second question: starting it takes nothing away. Nor is "
        "the revert window asked again once it is open.",
    ),
)
