"""What Kafka 3.9 says when it dies of its storage: its log directories, their partitions, and its copy of the quorum's log.

From MetaPropertiesEnsemble, KafkaRaftServer, LogManager, LogLoader, CheckpointFile, KafkaMetadataLog, FileQuorumStateStore,
KafkaRaftClient, MetadataLoader, QuorumController, BrokerLifecycleManager. Of one line the first kind counts.
"""

import re

from domain.diagnosis.logs.lines import Told

ITS_OWN_COPY = (
    "A broker: remove __cluster_metadata-0 of its metadata directory and start it; it fetches the log again. A controller, "
    "while a majority of the others runs and has a leader: put its metadata directory aside, format it again with the same "
    "cluster.id, start it; it fetches the log from the leader. On no account do that to a majority: what only those have "
    "would be gone."
)
META_RIGHT = "meta.properties as Kafka wrote it"
LOADS = "every partition's directory can be loaded"
REFETCH = (
    "If the partition has another replica in sync, move its directory here out of the log directory and start the node: it "
    "fetches the partition again. Else mend the file in it that is named, or that is torn (leader-epoch-checkpoint may be "
    "moved aside), or take it from a backup."
)

LOG_NOT_LOADED = Told(
    "log-not-loaded",
    re.compile(r"Error while loading logs? (?:in|dir) \S{1,160}"),
    LOADS,
    REFETCH,
    is_vague=True,
)
"""Said as news, though the broker ends with it: the one line that names the partition."""

STORAGE = (
    Told(
        "cluster-id-differs",
        re.compile(r"Invalid cluster\.id in: \S{1,160} Expected \S{1,64}, but read \S{1,64}"),
        "meta.properties and ZooKeeper name one cluster",
        "Where /cluster/id is not what meta.properties says on every broker, somebody has deleted or written it: put it back. "
        "Else the node reaches another ZooKeeper, or lies on another cluster's directory: correct zookeeper.connect or "
        "log.dirs. Then start it.",
    ),
    Told(
        "directory-of-nobody",
        re.compile(r"Found directory \S{1,160}, '[^']{1,100}' is not in the form of topic-partition"),
        "nothing but Kafka's own directories in a log directory",
        "Move it away, or remove it where it is an empty lost+found: that comes with a new file system, and log.dirs is "
        "better a folder on it than its root. Then start the node.",
    ),
    Told(
        "storage-of-another",
        re.compile(
            r"InconsistentBrokerIdException|Stored node id \d+ doesn't match previous node id \d+(?: in [^\s,]{1,160}?(?=\.? |"
            r"\.?$))?"
        ),
        "meta.properties has the node's own id",
        "The log directory is another node's: correct log.dirs, or node.id.",
    ),
    Told(
        "directory-twice",
        re.compile(
            r"Duplicate directory ID \S{1,60} found\. It was the ID of \S{1,160}, but also of \S{1,160}|"
            r"Duplicate log directory found: .{1,160}"
        ),
        "log directories of which none is a copy of another",
        "One is a copy of the other, or named twice: take it out of log.dirs, or put the copy aside. Then start the node.",
    ),
    Told(
        "partition-twice",
        re.compile(
            r"Duplicate log directories (?:found: \S{1,160}|for \S{1,120} are found in both \S{1,160} and \S{1,160}?(?=\. |$))"
        ),
        "a partition in one log directory",
        "A move between log directories was cut off. Delete the directory of that partition that is behind (the smaller end "
        "offset); the other one stays. Then start the node.",
    ),
    Told(
        "meta-properties-broken",
        re.compile(
            r"Error: (?:node|cluster) ID not found in \S{1,160}|(?:node|cluster)\.id was not (?:found|specified in .{1,160})|"
            r"Unable to read directory\.id as a Uuid|Failed to find (?:version|node\.id|broker\.id)|"
            r"Unable to read (?:version|node\.id|broker\.id) as a base-10 number"
        ),
        META_RIGHT,
        "meta.properties there is empty or torn. Write it as on the other nodes, with this node's id and the cluster.id that "
        "they have (version=1, node.id=…, cluster.id=…; without a KRaft mode: version=0, broker.id=…). Then start it.",
    ),
    Told(
        "meta-properties-of-kraft",
        re.compile(r"Found unexpected version in \S{1,160} ZK-based brokers that are not migrating only support version 0"),
        "a broker whose file and meta.properties are of one mode",
        "It starts without zookeeper.metadata.migration.enable on storage that is of KRaft. Put its properties file back as "
        "this migration left it, or ask for a rollback: that puts meta.properties right, too.",
    ),
    Told(
        "not-formatted",
        re.compile(r"No (?:readable )?`?meta\.properties`? (?:files? )?found(?: in (?:any of the|\S{1,160}))?"),
        "formatted storage",
        "The log directory is empty or was put aside: mount the right volume. A controller of ours is formatted anew once its "
        "directory is absent.",
    ),
    Told(
        "metadata-directory-failed",
        re.compile(r"Encountered I/O error in metadata log directory \S{1,160}?(?=\. |$)|No such directory as \S{1,160}"),
        "a metadata directory that can be read",
        "Look at that volume: its mount, its room, its rights, the kernel's log. Mend it, then start the node.",
    ),
    Told(
        "metadata-log-misplaced",
        re.compile(r"Found unexpected metadata location in data directory `[^`]{1,160}`"),
        "the quorum's log in metadata.log.dir only",
        "metadata.log.dir, or the first of log.dirs, is not what it was: put the property back. Then start the node.",
    ),
    Told(
        "log-dir-unusable",
        re.compile(
            r"Failed to create data directory \S{1,160}|\S{1,160} is not a readable log directory|"
            r"Failed to load \S{1,160} during broker startup"
        ),
        "every directory of log.dirs exists, and Kafka's user can read and write it",
        "Mount its volume, make the directory, or give it back to Kafka's user. Then start the node.",
    ),
    Told(
        "checkpoint-broken",
        re.compile(
            r"Malformed line in checkpoint file \[[^\]]{1,160}\]|Expected \[\d+\] entries in checkpoint file \[[^\]]{1,160}\]|"
            r"Unrecognised version:-?\d+, expected version: \d+ in checkpoint file at: \S{1,160}"
        ),
        "checkpoint files as Kafka wrote them",
        "Move that file aside and start the node: it makes a new one. Without a *-offset-checkpoint it recovers its logs, "
        "which takes time; a leader-epoch-checkpoint belongs to one partition, which should have another replica in sync.",
    ),
    Told(
        "topic-id-missing",
        re.compile(
            r"The log dir .{1,160}? does not have a topic ID|InconsistentTopicIdException: .{1,160}|"
            r"Input string `[^`]{1,40}` decoded as \d+ bytes, which is not equal to the expected 16 bytes of a base64-encoded "
            r"UUID"
        ),
        "a partition.metadata with the topic's id in every partition's directory",
        "If partition.metadata of that partition is missing or torn, copy it from the same partition on another broker "
        "(version: 0, topic_id: …), then start the node. If it names another id than theirs, do not overwrite it: the "
        "directory is of another topic. Move it out of the log directory, and start the node.",
    ),
    LOG_NOT_LOADED,
    Told(
        "loading-failed",
        re.compile(r"There was an error in one of the threads during logs loading: .{0,120}"),
        LOADS,
        REFETCH,
        is_vague=True,
    ),
)

NEVER_REGISTERED = Told(
    "never-registered",
    re.compile(r"Shutting down because we were unable to register with the controller quorum"),
    "the broker registers with the controllers within initial.broker.registration.timeout.ms (60 s by default)",
    "Look whether the quorum has a leader, and whether the broker reaches its listener (controller.quorum.voters, firewall, "
    "TLS, SASL). Further up its log may say `Unable to register broker`, with the controller's answer. Then start it.",
    is_vague=True,
)
"""What the controllers have answered it was told as news, further up."""

QUORUM = (
    Told(
        "quorum-state-broken",
        re.compile(
            r"Error while reading the Quorum status from the file \S{1,160}|data_version \(-?\d+\) is not within the min"
        ),
        "a quorum-state as Kafka wrote it",
        f"It says for whom this node has voted. {ITS_OWN_COPY}",
    ),
    Told(
        "quorum-state-unwritable",
        re.compile(r"Error while writing the Quorum status from the file \S{1,160}"),
        "a metadata directory that can be written",
        "Look at the room and the mount of that volume, and at who owns the directory. Then start the node.",
        is_vague=True,
    ),
    Told(
        "leader-is-behind",
        re.compile(r"The leader requested truncation to offset \d+, which is below the current high watermark"),
        "a leader that has everything that was ever committed",
        "ALARM: this node has committed metadata that the quorum's leader has not: controllers have lost their directories, "
        "or this one is another quorum's. Keep its directory, hold the migration, and compare the controllers' logs before "
        "anything is formatted.",
    ),
    Told(
        "metadata-log-broken",
        re.compile(
            r"Inconsistent snapshot state: there must be a snapshot|Log doesn't have a last fetch epoch and there is a "
            r"snapshot|"
            r"Snapshot expected since next offset of|Error while loading snapshot \S{1,80}|"
            r"Unhandled fault in MetadataLoader#\w{1,40}|Error loading metadata log record|"
            r"Unable to read record size|Invalid non-positive frame size: -?\d+|Specified frame size, \d+, is larger than"
        ),
        "a metadata log and a snapshot that can be read, without a gap between them",
        f"Its copy of the metadata is torn. {ITS_OWN_COPY}",
    ),
    Told(
        "records-corrupt",
        re.compile(r"CorruptRecordException: [\w ]{1,80}(?:\(\d+\) )?(?:in file \S{1,200})?"),
        "records that are as they were written",
        f"Look at the disk first (`dmesg`). A partition: {REFETCH[0].lower()}{REFETCH[1:]} The metadata log: {ITS_OWN_COPY}",
    ),
    Told(
        "metadata-of-newer-version",
        re.compile(
            r"Unknown metadata id \"?\d+|No MetadataVersion with feature level -?\d+|"
            r"Tried to apply FeatureLevelRecord .{1,120}?but this controller only supports versions|"
            r"Could not deserialize metadata record"
        ),
        "software that knows the metadata.version of the quorum",
        "It runs an older Kafka than what has written the log: install on it the version that the other nodes run. Then start "
        "it.",
    ),
    Told(
        "not-among-voters",
        re.compile(
            r"the node id \d+ must be (?:included|in) (?:in )?the set of voters controller\.quorum\.voters=Set\([\d, ]{0,60}\)"
        ),
        "controller.quorum.voters names every controller, the same on all nodes",
        "Correct controller.quorum.voters or node.id in its file: compare both with the other controllers'. Then start it.",
    ),
    Told(
        "flag-on-kraft-cluster",
        re.compile(r"Should not have ZK migrations enabled on a cluster that was created in KRaft mode"),
        "a quorum whose first activation had the migration flag",
        "The quorum's log was begun without the flag: stop all controllers, ask for a rollback, and begin anew.",
    ),
    Told(
        "migration-copy-failed",
        re.compile(r"Encountered fatal fault: Aborting the ZK migration"),
        "a copy that goes through",
        "Anything ends it that goes wrong meanwhile: a znode that cannot be copied (`copy-cannot-finish` names it where it can "
        "be found), ZooKeeper or the other controllers that were away, too little time for a batch. What its log says right "
        "above, at `Aborting the metadata migration`, is the cause: mend that. Then start it: the copy begins anew.",
        is_vague=True,
    ),
    NEVER_REGISTERED,
    Told(
        "log-dir-not-told",
        re.compile(r"Shutting down because couldn't communicate offline log dir \S{1,60} with controllers"),
        "log directories that can be written, and a controller that hears of one that cannot",
        "A log directory has failed, and no controller has taken that down within log.dir.failure.timeout.ms (30 s by "
        "default). Mend the directory (the kernel's log, its mount, room), and look whether a controller leads and the broker "
        "reaches it. Then start it.",
        is_vague=True,
    ),
    Told(
        "controllers-refuse-authorization",
        re.compile(r"ClusterAuthorizationException: [\w ]{1,80}"),
        "the node's principal may ClusterAction",
        "Add its principal to super.users of the controllers, or allow it ClusterAction on the cluster. Then start it.",
    ),
)
