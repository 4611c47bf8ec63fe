"""What the active controller says of the migration in its log (KRaftMigrationDriver of Kafka 3.9)."""

import re

from domain.diagnosis.logs.lines import Told

WAITING_FOR_BROKERS = Told(
    "waiting-for-brokers",
    re.compile(r"Still waiting for ZK brokers \[([\d, ]+)\] (?:found in metadata )?to register with KRaft"),
    "every broker that is assigned to a partition, or registered in ZooKeeper, registers with the controllers",
    "Start that broker in migration mode. If it is gone for good, reassign its partitions to living brokers "
    "(kafka-reassign-partitions.sh): the copy then begins by itself within a minute.",
)
NO_BROKERS_KNOWN = Told(
    "no-brokers-known",
    re.compile(r"No brokers are (?:known to KRaft|registered in ZK), waiting for brokers to register"),
    "brokers in migration mode register with the controllers",
    "Look at a hybrid broker's log for `Unable to register broker`: it names the controller's answer. Check that brokers reach "
    "the controllers' listener, and that controller.quorum.voters is the same everywhere.",
)
CONTROLLER_WITHOUT_FLAG = Told(
    "controller-without-flag",
    re.compile(r"Not ready due to: ?Controller (\d+) has not enabled zookeeper\.metadata\.migration\.enable"),
    "zookeeper.metadata.migration.enable=true on every controller",
    "Put zookeeper.metadata.migration.enable=true back into that controller's file and restart it: never make it active "
    "before.",
)
STEP_OF_MIGRATION = re.compile(r"transitioning from \w+ to \w+ state")
"""Of the migration driver: what has failed before that is over, and was written by what it did at that step."""
WRITE_REFUSED = Told(
    "zookeeper-write-refused",
    re.compile(r"Encountered zk migration fault: Encountered ZooKeeper authentication in \w{1,60}"),
    "every controller may write every znode of Kafka's",
    "ZooKeeper has refused the active controller a write, and it is not tried again: a way back would lose that change. Where "
    "the lines after it in its log name a znode (NoAuth), give the controllers' identity all rights there "
    "(zookeeper-security-migration.sh, or zkCli.sh setAcl); where they say that its session was closed because it has not "
    "logged in, have the servers do without that again (enforce.auth.enabled, sessionRequireClientSASLAuth), or give every "
    "controller a login. Then restart the active controller: the next one writes what differs.",
    is_lasting=True,
    over_with=STEP_OF_MIGRATION,
)
WRITE_FAILED = Told(
    "zookeeper-write-failed",
    re.compile(
        r"Encountered ZooKeeper error during event \w{1,60}(?=(?:\{provenance=MetadataProvenance\(lastContainedOffset=(\d+))?)"
    ),
    "the active controller's every read and write of ZooKeeper succeeds",
    "ZooKeeper has answered the active controller with an error. It writes what it believes ZooKeeper to have: somebody has "
    "changed a znode by hand, or the member that it asks has another tree than the others (srvr at each: with one Zxid, one "
    "Node count), which is to be mended first. NoNode: somebody "
    "has deleted that znode, or one above it; put it back. Only what holds no data, as a quota or a config of a user or a "
    "client, may be deleted through Kafka instead: never a topic, whose data goes with it. BadVersion, NodeExists: somebody "
    "else writes there; find who, and keep it from ZooKeeper. Right after an outage of the ensemble's it was its own write, "
    "committed late, and nobody is to be found. QuotaExceeded: raise that quota (listquota, setquota in "
    "zkCli.sh). SessionExpired: an outage, which is over. Where it does not go on by itself within a minute after that, "
    "restart the active controller: the next one writes what differs.",
    is_lasting=True,
    over_with=STEP_OF_MIGRATION,
)
UNHANDLED = Told(
    "migration-error",
    re.compile(
        r"Encountered zk migration fault: Unhandled error in "
        r"\w{1,60}(?=(?:\{provenance=MetadataProvenance\(lastContainedOffset=(\d+))?)"
    ),
    "a migration driver that gets over every change",
    "The active controller's driver of the migration has given that up with an error of its own, and does not try it again: a "
    "way back may lose that change. What was thrown says of what it is: mend or delete that, through Kafka. Then restart the "
    "active controller: the next one writes what differs.",
    is_lasting=True,
    over_with=STEP_OF_MIGRATION,
)
CHECK_OP_FAILED = Told(
    "check-op-failed",
    re.compile(r"(?:Check op|Conditional update) on KRaft Migration ZNode failed"),
    "the active controller writes every change to ZooKeeper",
    "Its write was lost in an outage of ZooKeeper, or somebody wrote /migration, and it will not begin again by itself. "
    "Approve the gate fail-over where it is open; else restart the active controller: the next one writes what is missing.",
)
UNKNOWN_CONFIG = Told(
    "unknown-config-resource",
    re.compile(r"Unknown config resource type (CLIENT_METRICS|GROUP)"),
    "no config that ZooKeeper cannot hold while both are written",
    "Delete it: kafka-configs.sh --alter --entity-type client-metrics --entity-name NAME --delete-config …  "
    "Dual write goes on by itself within seconds.",
)
BROKER_UNREACHED = Told(
    "broker-unreached",
    re.compile(r"to broker \S{1,200} \(id: (\d+) rack: [^)]{0,60}\)(?: was unsuccessful|\. Reconnecting to broker)"),
    "the active controller reaches every hybrid broker, and is let in",
    "The controllers tell hybrid brokers of changes at their inter-broker listener. Look at the way there from the active "
    "controller, and at what the controllers' files have for that listener: listener.security.protocol.map, "
    "inter.broker.listener.name or security.inter.broker.protocol, and a login and trust store that brokers know. What is "
    "corrected there, a controller has from its restart on: one at a time, the active one last.",
)
CLAIM_REFUSED = Told(
    "claim-refused",
    re.compile(r"Cannot register KRaft controller \d+.{0,80}current controller register in ZK has the same or newer epoch"),
    "the active controller may claim /controller",
    "Neither side has a working controller. Ask for a rollback now: the revert window sets the epochs right.",
)
OUT_OF_PLACE = Told(
    "migration-without-claim",
    re.compile(r"KRaft controller indicates an active migration, but the ZK state does not"),
    "/migration tells of the copy that this quorum has made",
    "Somebody deleted /migration under a quorum that has copied: it stays inactive for ever. Ask for a rollback.",
)
SUPERSET = Told(
    "image-lacks-metadata",
    re.compile(r"Ignoring image .{0,80} which does not contain a superset of the metadata in ZK"),
    "a quorum that begins with an empty ZooKeeper copy of its own",
    "ALARM: /migration is of an earlier attempt, and the quorum will delete what it lacks. Stop all controllers now.",
)
