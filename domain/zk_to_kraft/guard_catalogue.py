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
        "The workflow's id is the Kafka cluster's, so that Temporal lets one run live, and a generation number that the "
        "ledger gives out is asked for right before every effect: what an older run left behind does nothing any more.",
        (
            "domain.contracts:workflow_id",
            "activities.claims:ensure_not_superseded",
            "activities.recording:Recording.claim_cluster",
        ),
        ("run-gone",),
        "A node's driver knows no lease of its own: somebody who restarts nodes past this product is seen (GF14), not kept "
        "from it.",
    ),
    Guard(
        "GF02",
        "The cluster is well before each node",
        "Before every restart each node runs and serves, every partition has its leader and all replicas, every broker is "
        "registered, all controllers follow one leader, files are as this migration left them, and no partition would fall "
        "below `min.insync.replicas`. Looked at afresh right before the effect, and then whether the node could start again: "
        "a JVM starts there and takes its next file (PF45), the file is its own, and what the process runs with (PF44), "
        "`/cluster/id` in ZooKeeper is the cluster's, and ZooKeeper has every topic that brokers serve, with its id: an "
        "elected controller makes up another one. And whether the other nodes work: a node whose disk hangs, or whose packets "
        "to the others are lost, still counts as in sync for `replica.lag.time.max.ms`, but its kernel knows immediately.",
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
        "A reassignment that is begun in the middle of a migration is waited for through the replicas that lag, not by itself.",
    ),
    Guard(
        "GF03",
        "Several good looks in a row, not one",
        "A restarted node is proven by `stable_samples` looks in a row, and a step that something was waited for is decided "
        "by as many before it is taken.",
        ("activities.rolling.proving:prove", f"{LOOKING}:why_not_this_step"),
    ),
    Guard(
        "GF04",
        "A restarted node is proven from outside",
        "Its process is another one and holds the locks of its own log directories, it runs in the wanted mode, it is "
        "registered and unfenced, and every replica is in sync. Its own state proves nothing: a broker can serve for ever and "
        "never register, or serve empty partitions from another directory.",
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
        "One activity writes and restarts. A look that has grown old allows neither. Where the specification names the node's "
        "configuration management, that is paused before, and proven to be; a node that is found stopped does not wait for it.",
        (f"{ROLLING}:Rolling._write", f"{ROLLING}:is_old", f"{FORWARD}:_configuration_runs"),
        (WaitReason.CONFIGURATION_RUNS,),
    ),
    Guard(
        "GF06",
        "No controller restarts without a majority of others",
        "The others that are caught up are a majority of all; the active controller comes last. Right before, their listeners "
        "are knocked at: one that follows, and accepts nobody, can neither vote nor be followed.",
        (
            f"{GUARDS}:is_quorum_healthy_without",
            f"{FORWARD}:_controllers",
            f"{FORWARD}:_finalize",
            "activities.rolling.remaining_quorum:why_no_quorum_would_stay",
        ),
        (WaitReason.QUORUM_TOO_THIN, "step-failing"),
    ),
    Guard(
        "GF07",
        "One active controller, and an absent gauge is unknown",
        "The controller counts that says it is active and that raft names as leader. A gauge that is absent or -1 says that a "
        "controller boots, never that all is well. Before the copy each must have registered as well, by the active one's log: "
        "a registration that got lost is never sent again (KAFKA-20247), and the copy would wait for it for ever. A standby is "
        "caught up that has within a second what the leader had when it was looked at, but for 20 records: so steady writes "
        "make none seem behind.",
        (
            f"{REDUCTION}:quorum_leader",
            f"{REDUCTION}:_is_caught_up",
            "activities.observing.standbys:with_standbys",
            f"{REDUCTION}:_quorum_state",
            "activities.zk_to_kraft.suspects:with_suspects",
        ),
        (WaitReason.CONTROLLERS_NOT_READY, ZkWait.QUORUM_CANNOT_MIGRATE),
        "That the gauges of standbys equal the active one's is not asked: they follow a moment later.",
    ),
    Guard(
        "GF08",
        "Dual write is proven by the offset",
        "Current is: the offset in `/migration` keeps up with the quorum's log, `/controller` is persistent and names the "
        "leader, the gauge is MIGRATION, the session is connected. Otherwise no broker goes on, and finalize is closed. What "
        "died silently opens the gate `fail-over`.",
        (f"{REDUCTION}:_dual_write", f"{GUARDS}:dual_write_not_current"),
        (ZkWait.DUAL_WRITE_NOT_CURRENT, ZkWait.FAILOVER_WOULD_HURT),
        "The mtime of `/migration` is not looked at on purpose: it moves while nothing is written.",
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
        "Errors in applying metadata are told",
        "`MetadataErrorCount` of each controller is read with every look; above 0 it is an entry that lasts until that "
        "controller restarts. Fenced brokers are waited for (GF09).",
        ("domain.zk_to_kraft.causes.node:_errors", "activities.adapters.metrics.gauges:GAUGES"),
        ("GF10",),
        "It is told, and nothing waits for it. `NewActiveControllersCount` and `TimedOutBrokerHeartbeatCount` are not read.",
    ),
    Guard(
        "GF11",
        "ZooKeeper is healthy until finalize",
        "Without an answer from ZooKeeper nothing is done until the log says that the migration is final. Who asks for "
        "blockers has every server of the ensemble asked by itself, so that a lost member shows before its quorum does. A "
        "member that is standalone, with a tree of its own, is not believed. With every look each is asked whom it follows: "
        "where two lead, or one follows somebody else, two ensembles answer, and what either has is unknown, also on the way "
        "back. Members that have applied the same transactions, "
        "and have not as many znodes, are told, and no node is restarted on the way forward while there are any: no comparison "
        "sees it, for it reads through one session.",
        (
            f"{GUARDS}:unknown",
            "domain.zk_to_kraft.causes.cluster:zookeeper_causes",
            "activities.adapters.four_letter_words:FourLetterWords.serving",
            "activities.observing.member_trees:differing_trees",
            "activities.observing.member_trees:why_trees_differ",
            "activities.observing.member_trees:ensure_not_torn",
            "activities.adapters.zookeeper:KazooEnsembles.connect_to",
        ),
        ("GF11", WaitReason.PART_UNKNOWN),
        "A single member that is lost is told by `GET /migrations/{id}/blockers` only: no event, and nothing waits for it. "
        "Trees that differ and have as many znodes are told by the members' logs, where these can be read, and nothing waits "
        "for them. The way back waits for no member.",
    ),
    Guard(
        "GF12",
        "Canaries, and the longest pause",
        "Where the policy asks for it (`canaries`), what clients do is tried at each broker that was restarted, under reserved "
        "names: a topic, messages, a config, an ACL, a SCRAM credential, seen through Kafka and in ZooKeeper, and removed "
        "again. No other broker restarts before that, and no end is told before what is left is removed, or named with the "
        "commands that remove it. With `max_client_pause` writes of ours go on while brokers restart, and "
        "a longer pause holds the migration.",
        (
            "activities.canaries.trying:Canaries.try_canaries",
            "activities.canaries.trying:Canaries.remove_canaries",
            "activities.rolling.pauses:PauseMeter",
            f"{FORWARD}:_canaries",
        ),
        (WaitReason.HELD,),
        "The way back makes no canaries, and no pause is measured on it.",
    ),
    Guard(
        "GF13",
        "Finalize is approved on a clean comparison",
        "ZooKeeper and KRaft have been compared in this very dual write, the report is no older than `max_report_age` and "
        "clean, and the approval is bound to the evidence that names it: where the evidence changes, it counts no more. No "
        "step of the end is taken while a rollback that somebody has asked for is not verified. Kafka's copy is compared "
        "before the second roll.",
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
        "With every look of the way forward, the file of each node that this migration has changed is compared with what it "
        "wrote, its process with the one that was proven, and all nodes' Kafka versions with each other. A controller without "
        "its flag is given it back at once; a file that fits no stage is waited for; the rest is an `alert` event, and an "
        "entry while it lasts.",
        (
            "domain.zk_to_kraft.drift_watch:drifts",
            "domain.zk_to_kraft.assessment:alerts_of",
            f"{GUARDS}:lost_flag",
            f"{FORWARD}:_changed_files",
            f"{FORWARD}:_edited_files",
        ),
        ("GF14", WaitReason.FILE_CHANGED, ZkWait.CONTROLLER_LOST_ITS_FLAG),
        "Dynamic configuration is not watched. Kafka itself refuses to change `metadata.version` during a migration. A version "
        "is known where Jolokia tells it, or by the name of Kafka's jar.",
    ),
    Guard(
        "GF15",
        "A standstill is told, and nothing follows from it",
        "Where for `stage_deadline` no step was done, no broker registered and no replica caught up, an `alert` event says "
        "so. Gates, holds and the soak do not count. Nothing is finalised or led back because of a clock; the one way back "
        "without asking is a copy that leaves the cluster without any controller (`revert_failed_copy`).",
        ("domain.zk_to_kraft.standstill:standstill", "domain.zk_to_kraft.standstill:overdue"),
        ("GF15",),
        "While one activity is tried again without an end no look is made: then it is `step-failing` that tells it.",
    ),
    Guard(
        "GF16",
        "The gate of finalize",
        "It opens when every broker runs in KRaft mode and is registered so, dual write is current, the soak is over and "
        "everything was compared. A controller restarts without its flag only under an approval that counts.",
        (f"{FORWARD}:_controllers", f"{FORWARD}:_finalize", f"{REDUCTION}:soaked_for"),
        (WaitReason.SOAK_NOT_OVER, "approval"),
        "One approval is enough, and nobody has to have read the rollback's preview.",
    ),
    Guard(
        "GF17",
        "The gate of a rollback",
        "Refused once the log is final, and without ZooKeeper's quorum. It is bound to a preview, or names every loss: "
        "changes that dual write has not carried over, topics without an id, edits, originals that are not archived.",
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
        "Drain, fence, kill, prove dead, read the logs for what ZooKeeper lacks; then one transaction raises "
        "`/controller_epoch` and deletes `/migration` and `/controller`; then a broker is seen to become controller.",
        ("activities.zk_to_kraft.window.leaving:Leaving.leave_kraft", "activities.zk_to_kraft.fence:kill"),
        (ZkWait.NO_CONTROLLER, ZkWait.HALF_REVERTED),
    ),
    Guard(
        "GF19",
        "Writes to ZooKeeper are read back",
        "The only one is the window's transaction. Its results are looked at one by one, a lost answer is looked up through "
        "another session, and its effect is watched afterwards.",
        ("activities.ports.zookeeper:ZooKeeperTree.commit", "activities.zk_to_kraft.window.leaving:Leaving.leave_kraft"),
    ),
    Guard(
        "GF20",
        "The first node that fails stops the roll",
        "A node that does not run, or cannot be proven, is waited for by its name, and no other is touched. An error that "
        "trying again cannot mend holds the migration until a person resumes it.",
        (f"{GUARDS}:not_serving", "domain.zk_to_kraft.proof:dead_besides", "workflows.stopping:Stop.after"),
        (WaitReason.NODE_DOWN, WaitReason.HELD, "step-failing"),
    ),
    Guard(
        "GF21",
        "Effects are judged by what is seen, not by memory",
        "Every activity may run twice: it looks whether its work is done, and stops only the process that its mark names.",
        (f"{ROLLING}:Rolling._has_left", f"{ROLLING}:Rolling._restart", "activities.rolling.marking:mark_roll"),
    ),
    Guard(
        "GF22",
        "The end is observed",
        "A migration succeeds when the gauge says POST_MIGRATION, every broker runs in KRaft mode and every controller "
        "without the flag, each from a file that fits that stage, which has no key of the migration. Before it says so, what "
        "ZooKeeper had when KRaft stopped writing to it is compared once with KRaft's log from there to now. A difference "
        "that this log does not explain is an `alert` event. It undoes nothing, and the migration has succeeded.",
        (
            "domain.zk_to_kraft.phases:_phase_after_finalization",
            f"{FORWARD}:_done",
            "domain.end_compared:lost_at_the_end",
        ),
        ("GF22", ZkWait.FINALIZATION_NOT_SEEN),
        "Sessions in ZooKeeper are not counted afterwards. Raising `metadata.version` is an operation of its own.",
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
