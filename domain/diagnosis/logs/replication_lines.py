"""What leaders and followers say of partitions that they do not serve, fetch or count in sync (Kafka 3.9)."""

import re

from domain.diagnosis.logs.lines import Told

LOG_DIR_FAILED = Told(
    "log-dir-failed",
    re.compile(r"Stopping serving (?:replicas|logs) in dir (\S{1,160})"),
    "every log directory can be written and read",
    "Mend that directory: room on its volume, its mount, the disk (the kernel's log). A directory that has failed stays "
    "offline until the broker restarts: then restart it.",
    is_lasting=True,
)
TOPIC_ID_DIFFERS = Told(
    "topic-id-differs",
    re.compile(r"Topic ID in memory: [\w-]{22} does not match the topic ID for partition (\S{1,260}-\d+) received: [\w-]{22}"),
    "the topic_id of partition.metadata, beside its data, in /brokers/topics",
    "Somebody has written that topic's znode without its topic_id (CMAK, kafka-topics.sh --zookeeper before 2.8), the next "
    "controller has made another, and brokers refuse it. Before the copy: put the id that partition.metadata names back into "
    "the JSON of /brokers/topics/NAME, then delete /controller, so that the next one reads it. Since the copy do not delete "
    "/controller: ask for a rollback, and do the same after it. Delete no data: it is whole. Find the tool, or it does it "
    "again.",
    is_lasting=True,
)
FETCHER_DIED = Told(
    "fetcher-died",
    re.compile(r"\[ReplicaFetcher replicaId=\d+, leaderId=(\d+), fetcherId=\d+\]:? Error due to"),
    "a thread that fetches from each leader",
    "Nothing starts that thread again but a restart of the broker: mend what its log says of it first.",
    is_lasting=True,
)
FETCH_STOPPED = Told(
    "fetch-stopped",
    re.compile(r"Partition (\S{1,260}-\d+) marked as failed"),
    "every follower fetches",
    "It does not fetch that partition again by itself, before another leader is elected for it or the broker restarts. Mend "
    "what its log says of it first.",
    is_lasting=True,
)
SEGMENT_TOO_SMALL = Told(
    "segment-too-small",
    re.compile(
        r"RecordBatchTooLargeException: Message batch size is \d+ bytes in append to partition \S{1,260}-\d+, which exceeds "
        r"the maximum configured segment size of \d+"
    ),
    "a segment.bytes that is above the largest batch of its topic",
    "Somebody has lowered segment.bytes below what the topic holds: its leader has that batch, and a follower cannot take it. "
    "Raise it above that size, or take it away: kafka-configs.sh --alter --entity-type topics --entity-name TOPIC "
    "--delete-config segment.bytes (log.segment.bytes, where the brokers' own is too small). That alone is not enough: "
    "the follower does not fetch those partitions again by itself, before another leader is elected for them or it restarts.",
    is_lasting=True,
)
"""Below FETCH_STOPPED, or the line that says why (KAFKA-17375)."""
FETCH_REFUSED = Told(
    "fetch-refused",
    re.compile(r"Error for partition (\S{1,260}-\d+) at offset \d+"),
    "leaders that give their followers what they ask for",
    "The leader refuses. KafkaStorageException: its disk, mend it and restart that broker. TopicAuthorizationException or "
    "ClusterAuthorizationException: let the brokers' principal do ClusterAction, or put it into super.users. Of another error "
    "its log tells more.",
)
UNKNOWN_TO_LEADER = Told(
    "unknown-to-leader",
    re.compile(
        r"Received (?:UNKNOWN_TOPIC_ID|UNKNOWN_TOPIC_OR_PARTITION|INCONSISTENT_TOPIC_ID) from the leader for partition "
        r"(\S{1,260}-\d+)|Retrying leaderEpoch request for partition (\S{1,260}-\d+) as the leader reported an error: "
        r"[A-Z_]{1,60}"
    ),
    "leaders that have heard of what they lead",
    "The leader knows nothing of that partition, or has it by another id, or does not know that it leads it: it has missed "
    "what the controller said last. Look at its log (requests of the controller's that it refuses, a topic ID that does not "
    "match), and whether the controller reaches it; mend that first. A restart of the follower mends nothing.",
    least=2,
)
FETCH_INVALID = Told(
    "fetch-invalid",
    re.compile(r"Found invalid messages during fetch for partition (\S{1,260}-\d+) offset \d+"),
    "a leader whose copy can be read",
    "See first who is to blame: kafka-dump-log.sh --deep-iteration of that file, on the leader's own machine. Where it finds "
    "it whole, bytes change on the way: the leader's network card and its offloading (ethtool -K), a cable, whatever stands "
    "between; mend that, and elect nobody else: the leader alone may have the newest records. Where it finds it damaged, let "
    "another replica that is in sync lead; where none is, mend the leader's disk before anything of it is given up.",
)
REMOTE_STATE = Told(
    "remote-state-not-built",
    re.compile(r"Error building remote log auxiliary state for (\S{1,260}-\d+)"),
    "followers that can read the remote store of tiered storage, and what is in it (__remote_log_metadata)",
    "What it lacks its leader has only in the remote store. Where something was thrown there, mend that: the credentials with "
    "which this broker goes there, and the way to it (rsm.config.* in its file). Where a segment's metadata was not found, "
    "look whether __remote_log_metadata has leaders, and whether this broker reads it (rlmm.config.*). Where remote log "
    "storage is not yet enabled, its file lacks what the leader's has (remote.log.storage.system.enable). It tries again by "
    "itself: a restart mends nothing but what is corrected in its file.",
)
CHANNEL_DIED = Told(
    "controller-channel-died",
    re.compile(r"\[(?:zk-)?broker-\d+-to-controller-([a-z-]{1,40})-channel-manager\]: Error due to"),
    "threads of each broker that ask the controller",
    "Nothing starts that thread again but a restart of the broker, and until then it writes down nobody who is in sync again: "
    "waiting mends nothing. Kafka 3.9 loses it now and then when the controller goes from KRaft to a broker, or the other way.",
    is_lasting=True,
)
ISR_REFUSED = Told(
    "isr-refused",
    re.compile(r"Failed to update ISR to .{0,200}? due to unexpected (\w{1,60})"),
    "a controller that writes down who is in sync",
    "The followers may be well: the controller does not take down what the leader says of them. Look at the controller's log "
    "of the same second; where there is no controller, at ZooKeeper or the quorum.",
)
STATE_REWRITTEN = Told(
    "partition-state-rewritten",
    re.compile(r"for partition (\S{1,260}-\d+), bad ZK version"),
    "only the controller writes states of partitions in ZooKeeper",
    "If topic-without-id is listed, fix that first. Then, if /controller names a broker, let another broker become the "
    "controller: zkCli.sh delete /controller. The new controller reads all states again. A person or a tool has written that "
    "partition's state (/brokers/topics/TOPIC/partitions/NUMBER/state). Since then the controller records no replica there as "
    "in sync again, and nothing is wrong with the followers. Find out what writes there, and keep it away.",
    is_lasting=True,
)
ISR_INELIGIBLE = Told(
    "isr-ineligible",
    re.compile(r"since the controller rejected the request with (INELIGIBLE_REPLICA|OPERATION_NOT_ATTEMPTED)"),
    "followers that the active controller holds for alive",
    "The follower fetches, and the active controller takes nobody into the ISR whom it holds for fenced, for ending, or for "
    "another process of that id. Look in the follower's log for what the controllers answer its heartbeats, and in the active "
    "controller's for `Fencing broker`: once it is unfenced, it comes into the ISR by itself.",
)
