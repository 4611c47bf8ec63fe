"""Lines of a Kafka that runs which tell a cause that no metric and no znode tells, and what to do about each.

The texts are those of Kafka 3.9 (KRaftMigrationDriver, QuorumController, BrokerLifecycleManager).
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from domain.zk_to_kraft.log_lines import START_OF_PROCESS, Found, Told, found_in, of_this_process
from domain.zk_to_kraft.log_times import times_of

REGISTERED = re.compile(r"Successfully registered broker \d+ with broker epoch|The broker has been unfenced")
"""A broker's refusals before that are over (BrokerLifecycleManager)."""
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
    "else writes there; find who, and keep it from ZooKeeper. QuotaExceeded: raise that quota (listquota, setquota in "
    "zkCli.sh). SessionExpired: an outage, which is over. Where it does not go on by itself within a minute after that, "
    "restart the active controller: the next one writes what differs.",
    is_lasting=True,
    over_with=STEP_OF_MIGRATION,
)
CHECK_OP_FAILED = Told(
    "check-op-failed",
    re.compile(r"Check op on KRaft Migration ZNode failed"),
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
METADATA_FAULT = Told(
    "metadata-fault",
    re.compile(r"Encountered (?:metadata (?:loading|publishing)|quorum controller) fault: [^:={\[\"'\\]{1,120}"),
    "a node that applies every change",
    "It goes on with something else in memory than the quorum's log says. Mend what was thrown, where it lies with the node, "
    "then restart it: it applies all anew.",
    is_lasting=True,
)
REGISTRATION_UNSUPPORTED = Told(
    "registration-unsupported-version",
    re.compile(r"Unable to register (?:the )?broker (\d+) because the controller returned error UNSUPPORTED_VERSION"),
    "the broker's inter.broker.protocol.version is the release that the controllers were formatted with",
    "Set inter.broker.protocol.version to the controllers' metadata.version (3.9) on that broker and restart it.",
)
REGISTRATION_DUPLICATE = Told(
    "registration-duplicate",
    re.compile(r"Unable to register (?:the )?broker (\d+) because the controller returned error DUPLICATE_BROKER_REGISTRATION"),
    "one process with this id",
    "Wait for broker.session.timeout.ms (9 s by default): then the session of the process before is over. If it lasts, another "
    "process runs with this id: stop it.",
)
REGISTRATION_REMOVED = Told(
    "registration-removed",
    re.compile(r"sent a heartbeat request but received error STALE_BROKER_EPOCH"),
    "the controllers know the broker that runs",
    "Somebody has unregistered it (kafka-cluster.sh unregister), or another process runs with its id. It registers only as it "
    "starts, and a stop in order does not end, for it asks the controllers first: where its partitions can spare it, kill -9, "
    "then start it.",
)
REGISTRATION_TOO_EARLY = Told(
    "registration-of-other-mode",
    re.compile(r"Unable to register (?:the )?broker (\d+) because the controller returned error BROKER_ID_NOT_REGISTERED"),
    "hybrid brokers, and controllers with the migration flag, until the copy is complete; brokers in KRaft mode after it",
    "Either it was started in KRaft mode before the copy: put back the file that this migration wrote, and start it with that. "
    "Or it is hybrid, and the active controller has no zookeeper.metadata.migration.enable, or a metadata.version below 3.4: "
    "look at the controllers. Mend that; a broker tries again by itself.",
)
REGISTRATION_MISUNDERSTOOD = Told(
    "registration-misunderstood",
    re.compile(
        r"Unable to register (?:the )?broker (\d+) because (?:of an API version problem|the controller returned an invalid)"
    ),
    "controllers of the brokers' version at the addresses in controller.quorum.voters",
    "Who answers there does not know that request: compare the versions of controllers and broker, and look whether "
    "controller.quorum.voters names the controllers' own listeners, and no broker's. Mend that; the broker tries again "
    "by itself.",
)
REGISTRATION_REFUSED = Told(
    "registration-refused",
    re.compile(r"Unable to register (?:the )?broker (\d+) because the controller returned error ([A-Z_]+)"),
    "the controllers accept the broker's registration",
    "The active controller's log of the same second says what it does not accept. INVALID_REGISTRATION: a directory.id that "
    "another broker has (a disk that was cloned, a meta.properties that was put back), or a broker without the listener that "
    "controllers reach brokers by (inter.broker.listener.name). CLUSTER_AUTHORIZATION_FAILED: a principal that may not do "
    "ClusterAction. INCONSISTENT_CLUSTER_ID: controllers of another cluster. Mend that; the broker tries again by itself.",
)
FENCED = Told(
    "broker-fenced",
    re.compile(r"Fencing broker (\d+) (?:at epoch \d+ )?because its session has timed out"),
    "heartbeats from every broker within the controllers' broker.session.timeout.ms, 9 s by default",
    "Compare broker.heartbeat.interval.ms in that broker's file with the controllers' broker.session.timeout.ms: it has to "
    "be far less (2 s by default). Where it is, the broker stands still at times (garbage collection, its disk, its "
    "machine), or its link to the controllers loses packets.",
)
CLUSTER_REFUSED = Told(
    "inconsistent-cluster-id",
    re.compile(r"Unexpected error INCONSISTENT_CLUSTER_ID in [A-Z_]+ response"),
    "one cluster.id in the meta.properties of all nodes",
    "Compare cluster.id in meta.properties of this node and of the controllers that controller.quorum.voters names: one "
    "was formatted for another cluster. Correct the address, or the directory.",
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
TLS_FAILED = Told(
    "tls-handshake-failed",
    re.compile(r"SSL handshake failed|SSLHandshakeException"),
    "certificates that both sides trust",
    "Compare the key and trust stores of this node and of the one that it talks to, their names and dates.",
)
LOGIN_FAILED = Told(
    "login-failed",
    re.compile(r"SaslAuthenticationException|Failed authentication with|failed authentication due to"),
    "credentials that both sides know",
    "Brokers log in to controllers and controllers to brokers: compare the SASL settings and users of both.",
)
ANSWER_TOO_LARGE = Told(
    "zookeeper-answer-too-large",
    re.compile(r"Packet len ?\d{1,12} is out of range"),
    "answers of ZooKeeper that are smaller than the jute.maxbuffer of whoever asks",
    "It asks for it again without end, and every other broker will, once it restarts. Mostly a list of names: notifications "
    "below /kafka-acl-changes or /config/changes, which nobody needs minutes later, users in /config/users, clients, topics. "
    "`stat PATH` in zkCli.sh tells how many (numChildren), and the check PF21 of a plan names the longest. "
    "Delete what nobody needs there, or put -Djute.maxbuffer, larger than that packet, into the environment of its start "
    "command (KAFKA_OPTS), and start it anew.",
)
PEER_UNREACHABLE = Told(
    "peer-unreachable",
    re.compile(r"Connection to node -?(\d+) \([^)]{1,80}\) could not be established"),
    "the node reaches its peers' listeners",
    "Look at the way there: the peer's listener, a firewall, controller.quorum.voters and advertised.listeners.",
)
PEER_CUT = Told(
    "peer-cut",
    re.compile(
        r"Cancelled in-flight [A-Z_]{1,40} request with correlation id \d+ due to node -?(\d+) being disconnected "
        r"\(elapsed time since creation: \d+ms, elapsed time since send: \d{1,2}ms"
    ),
    "connections to peers that last",
    "Connections to that peer open, and end within a tenth of a second of a request, again and again: something between them "
    "resets them (a firewall or IPS that inspects, a proxy or load balancer with too few connections; `tcpdump -ni any "
    "'tcp[tcpflags] & tcp-rst != 0'` shows who), or that node closes them: see its log, and whether it starts ever anew.",
    least=3,
)
NO_LISTENER = Told(
    "no-listener",
    re.compile(r"Cannot connect to empty node :-1"),
    "brokers with a listener of the name by which this one asks them",
    "It asks the brokers that lead at a listener that they have not got: by inter.broker.listener.name (or "
    "security.inter.broker.protocol) in its file, which its last restart has put into force. Put that back as it was, in all "
    "files, and restart this broker alone: no other one, for its partitions cannot spare it now. A listener comes in two "
    "rolls: first every broker gets it, and only then inter.broker.listener.name.",
)
PEER_SILENT = Told(
    "peer-silent",
    re.compile(r"Disconnecting from node -?(\d+) due to request timeout"),
    "peers that answer what they are asked",
    "Connections to that peer open, and requests are not answered in time: look whether it hangs (its disk, its garbage "
    "collection); whether what is between carries so much (copy a file of some MB from its machine: a limit of the network or "
    "the hypervisor, burst credits that are used up, a duplex that differs); and whether large packets get there where small "
    "ones do (ping -M do -s 1472 HOST): an MTU that differs, or a firewall.",
)
AGENT_FAILED = Told(
    "agent-failed",
    re.compile(r"Could not start Jolokia agent: [\w.]{1,80}(?:: [\w ]{1,60})?"),
    "an agent that listens at the node's metrics endpoint",
    "The node serves without its agent. Find who listens at the endpoint's port (`ss -ltnp`), stop it, and restart the node.",
)
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
    "the JSON of /brokers/topics/NAME, then delete /controller, so that the next one reads it. Since the copy: ask for a "
    "rollback. Delete no data: it is whole. Find the tool, or it does it again.",
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
FETCH_REFUSED = Told(
    "fetch-refused",
    re.compile(r"Error for partition (\S{1,260}-\d+) at offset \d+"),
    "leaders that give their followers what they ask for",
    "The leader refuses. KafkaStorageException: its disk, mend it and restart that broker. TopicAuthorizationException or "
    "ClusterAuthorizationException: let the brokers' principal do ClusterAction, or put it into super.users. Of another error "
    "its log tells more.",
)
FETCH_INVALID = Told(
    "fetch-invalid",
    re.compile(r"Found invalid messages during fetch for partition (\S{1,260}-\d+) offset \d+"),
    "a leader whose copy can be read",
    "The leader's copy is damaged from that offset on, or what comes over the network is: look at the leader's disk, and at "
    "that file with kafka-dump-log.sh --deep-iteration. Let another replica that is in sync lead. Where none is, what only the "
    "leader has cannot be copied: mend its disk, or stop it and give that up by an unclean election.",
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
    "nobody but the controller writes states of partitions in ZooKeeper",
    "Somebody has written that partition's state by hand, or a tool has (/brokers/topics/TOPIC/partitions/NUMBER/state): since "
    "then the controller takes down nobody who is in sync there, and nothing is wrong with the followers. Let another broker "
    "become the controller, which reads all states anew: zkCli.sh delete /controller, as long as /controller names a broker. "
    "Find who writes there, and keep it away.",
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
SESSION_TOO_SHORT = Told(
    "zookeeper-session-too-short",
    re.compile(r"negotiated timeout = \d{1,3}(?!\d)"),
    "sessions of ZooKeeper as long as zookeeper.session.timeout.ms asks for, 18 s by default",
    "The ensemble gives shorter ones: 20 times tickTime at most, or maxSessionTimeout, in the zoo.cfg of its members. Put "
    "these back (tickTime=2000), and restart the members one by one. Any pause of a JVM ends such a session, and with it the "
    "registration. ",
)
SESSION_LOST = Told(
    "zookeeper-session-lost",
    re.compile(r"Unable to reconnect to ZooKeeper service, session 0x\w{1,20} has expired"),
    "sessions that last",
    "",
)
TOO_MANY_CONNECTIONS = Told(
    "too-many-connections",
    re.compile(r"Rejected connection from /?\S{1,60}, address already has the configured maximum of \d+ connections"),
    "as many connections from one address as its clients, brokers and keeperless-activities need",
    "Raise max.connections.per.ip, or max.connections.per.ip.overrides for that address (kafka-configs.sh --alter "
    "--entity-type brokers --entity-default, or the broker's file), or end what holds them (`ss -tnp`).",
)
RUNNING = (
    WAITING_FOR_BROKERS,
    NO_BROKERS_KNOWN,
    CONTROLLER_WITHOUT_FLAG,
    WRITE_REFUSED,
    WRITE_FAILED,
    CHECK_OP_FAILED,
    UNKNOWN_CONFIG,
    METADATA_FAULT,
    BROKER_UNREACHED,
    REGISTRATION_UNSUPPORTED,
    REGISTRATION_DUPLICATE,
    REGISTRATION_REMOVED,
    REGISTRATION_TOO_EARLY,
    REGISTRATION_MISUNDERSTOOD,
    REGISTRATION_REFUSED,
    FENCED,
    CLUSTER_REFUSED,
    CLAIM_REFUSED,
    OUT_OF_PLACE,
    SUPERSET,
    TLS_FAILED,
    LOGIN_FAILED,
    ANSWER_TOO_LARGE,
    NO_LISTENER,
    PEER_CUT,
    PEER_UNREACHABLE,
    PEER_SILENT,
    AGENT_FAILED,
    LOG_DIR_FAILED,
    TOPIC_ID_DIFFERS,
    FETCHER_DIED,
    FETCH_STOPPED,
    FETCH_REFUSED,
    FETCH_INVALID,
    CHANNEL_DIED,
    ISR_REFUSED,
    STATE_REWRITTEN,
    ISR_INELIGIBLE,
    TOO_MANY_CONNECTIONS,
)
"""What a living process says. The first pattern that fits a line counts."""
LASTING_WORDS = (
    "kafka.Log4jController",
    "transitioning from ",
    "Encountered zk migration fault",
    "Encountered ZooKeeper error",
    "Encountered metadata ",
    "Encountered quorum controller fault",
    "Stopping serving ",
    "does not match the topic ID",
    "bad ZK version",
    "Error due to",
    "marked as failed",
    "OutOfMemoryError",
)
"""In every line that begins a process, lasts (`is_lasting`) or ends what has lasted: so it is found far above a log's end."""
REFUSALS = (
    REGISTRATION_REMOVED,
    REGISTRATION_UNSUPPORTED,
    REGISTRATION_DUPLICATE,
    REGISTRATION_TOO_EARLY,
    REGISTRATION_MISUNDERSTOOD,
    REGISTRATION_REFUSED,
    CLUSTER_REFUSED,
    TLS_FAILED,
    LOGIN_FAILED,
    ANSWER_TOO_LARGE,
    PEER_CUT,
    PEER_UNREACHABLE,
)
"""Why a broker does not register."""
OUT_OF_MEMORY = Told(
    "out-of-memory",
    re.compile(r"OutOfMemoryError: ?[\w ]{0,60}"),
    "a heap that holds the cluster's metadata",
    "Raise -Xmx in KAFKA_HEAP_OPTS (a controller needs some 3 KiB for each partition in the copy), then start it.",
    is_lasting=True,
)
CLEANER_BUFFER = Told(
    "cleaner-buffer",
    OUT_OF_MEMORY.pattern,
    "a heap with room for log.cleaner.dedupe.buffer.size, which the log cleaner takes all at once",
    "Lower log.cleaner.dedupe.buffer.size (134217728 unless it is set), or raise -Xmx by as much. Where somebody has set it "
    "dynamically, as for all brokers, no file has it, and each broker ends in this when it is started: kafka-configs.sh "
    "--alter --entity-type brokers --entity-default (or --entity-name ID) --delete-config log.cleaner.dedupe.buffer.size; "
    "where no broker runs any more, with --zookeeper instead of --bootstrap-server, and in KRaft mode with "
    "--bootstrap-controller. Then start it.",
    is_lasting=True,
)
OF_CLEANER_BUFFER = re.compile(r"\bSkimpyOffsetMap\b")
"""In the frames below OUT_OF_MEMORY: who asked for the memory."""
STARTS_CLEANER = re.compile(r"Starting the log cleaner")
"""It takes its buffers when it starts, also when somebody has changed its settings."""
LINES_BEFORE = 3
"""Of several threads, by the time in which one of them takes its memory."""
TOO_MANY_OPEN_FILES = Told(
    "too-many-open-files",
    re.compile(r"Too many open files"),
    "a limit of open files that is above twice the number of segments",
    "Raise LimitNOFILE (ulimit -n) of the service to 100000 or more. Then start it.",
)
SILENCES = (OUT_OF_MEMORY, TOO_MANY_OPEN_FILES)
"""What keeps a living process from answering."""
AGENT_LOADED = Told(
    "agent-loaded",
    re.compile(r"A (?:Java|JVM TI) agent has been loaded dynamically \(\S{1,160}?\)"),
    "nobody attaches a tool to a node that is migrated",
    "Somebody has just loaded that into its JVM: an APM agent, a profiler, a tool of diagnosis. Find out whose it is, and "
    "detach it, or end what it does: it may hold any thread, and keep the JVM from collecting garbage. Where that does not "
    "help and all other nodes are well, end this process, and start it without it.",
)

LOADING = re.compile(
    r"Recovering \d+ logs from \S{1,160} since no clean shutdown file was found"
    r"|Recovering unflushed segment \d+\. \d+/\d+ recovered for (?!__cluster_metadata)\S{1,260}"
    r"|\(\d+/\d+ completed in \S{1,160}\)"
)
"""A broker on its way through its logs (LogManager, LogLoader): the last of these says how far it is."""
LOADED = re.compile(r"Loaded \d+ logs in \d+")
WAITS = re.compile(r"\bINFO .*?(Finished waiting|Waiting) for (?:the )?([\w /-]{1,120}?)(?: \(kafka|$)")
"""A node at its start (FutureUtils)."""
EPOCH = re.compile(r"Completed transition to \w{1,20}\(.{0,80}?\bepoch=(\d+)")
"""A controller that stands for election, votes, follows or leads (QuorumState)."""
AGENT_LINES = 10
"""An agent speaks right before the first line of Kafka itself."""


def since_registered(lines: Sequence[str]) -> tuple[str, ...]:
    """What a broker has said since the controllers took it, as far as they have."""
    taken = [number for number, line in enumerate(lines) if REGISTERED.search(line)]
    return tuple(lines[taken[-1] + 1 :] if taken else lines)


def silence_in(lines: Sequence[str]) -> Found | None:
    """Why a process that runs gives no metrics; `None` where it says nothing of it."""
    starts = [number for number, line in enumerate(lines) if START_OF_PROCESS.search(line)]
    before = lines[max(0, starts[-1] - AGENT_LINES) : starts[-1]] if starts else ()
    found = (*found_in(lines, (*SILENCES, AGENT_FAILED)), *found_in(before, (AGENT_FAILED,)), *found_in(lines, (AGENT_LOADED,)))
    return next((who_asked(one, of_this_process(lines)) for one in found), None)


def who_asked(found: Found, lines: Sequence[str]) -> Found:
    """For the memory that there was not at last, where it is known: by the frames; where a JVM ends at once, as with
    ExitOnOutOfMemoryError, by what was said right before."""
    wanted = [number for number, line in enumerate(lines) if OUT_OF_MEMORY.pattern.search(line)]
    if found.told is not OUT_OF_MEMORY or not wanted:
        return found
    before, after = lines[max(wanted[-1] - LINES_BEFORE, 0) : wanted[-1]], lines[wanted[-1] :]
    if not any(map(STARTS_CLEANER.search, before)) and not any(map(OF_CLEANER_BUFFER.search, after)):
        return found
    return replace(found, told=CLEANER_BUFFER, quote=f"{found.quote} (for the log cleaner's buffer)")


def loading_in(lines: Sequence[str]) -> str:
    """How far a broker is with its logs; empty where it has loaded them, or says nothing of it."""
    said = ""
    for line in of_this_process(lines):
        if LOADED.search(line):
            said = ""
        elif match := LOADING.search(line):
            said = match.group(0).strip("().")
    return said


def waiting_in(lines: Sequence[str]) -> str:
    """For what a node waits at its start, by its own words; empty where it has all that it has waited for."""
    open_waits: dict[str, None] = {}
    for found in filter(None, map(WAITS.search, of_this_process(lines))):
        if found[1] == "Waiting":
            open_waits[found[2]] = None
        else:
            open_waits.pop(found[2], None)
    return next(reversed(open_waits), "")


SETTLED = timedelta(seconds=20)
"""What elects without an end has a new epoch within less."""


def epochs_lately(lines: Sequence[str], age: timedelta, within: timedelta) -> int:
    """How many epochs of the quorum a process of this age has seen. Its first line says when it was started by its own clock;
    where that has gone from the tail, the last one is new. 0 where the newest epoch lasts."""
    own = of_this_process(lines)
    times = times_of(own)
    newest = times[-1] if times else None
    if newest is None:
        return 0
    now = times[0] + age if times[0] is not None and START_OF_PROCESS.search(own[0]) else newest
    said = [(at, found[1]) for line, at in zip(own, times, strict=True) if at is not None and (found := EPOCH.search(line))]
    if not said or now - said[-1][0] > SETTLED:
        return 0
    return len({epoch for at, epoch in said if now - at <= within})
