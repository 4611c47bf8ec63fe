"""Lines of a Kafka that runs which tell a cause that no metric and no znode tells, and what to do about each.

The texts are those of Kafka 3.9 (KRaftMigrationDriver, QuorumController, BrokerLifecycleManager).
"""

import re

from domain.diagnosis.logs.authorizer_lines import CLUSTER_ACTION_REFUSED, NODE_REFUSED
from domain.diagnosis.logs.lines import Told
from domain.diagnosis.logs.migration_lines import (
    BROKER_UNREACHED,
    CHECK_OP_FAILED,
    CLAIM_REFUSED,
    CONTROLLER_WITHOUT_FLAG,
    NO_BROKERS_KNOWN,
    OUT_OF_PLACE,
    SUPERSET,
    UNHANDLED,
    UNKNOWN_CONFIG,
    WAITING_FOR_BROKERS,
    WRITE_FAILED,
    WRITE_REFUSED,
)
from domain.diagnosis.logs.registration_lines import (
    ANSWER_TOO_LARGE,
    CLUSTER_REFUSED,
    FENCED,
    LOGIN_FAILED,
    NO_LISTENER,
    PEER_CUT,
    PEER_SILENT,
    PEER_UNREACHABLE,
    PROTOCOL_DIFFERS,
    REGISTRATION_DUPLICATE,
    REGISTRATION_MISUNDERSTOOD,
    REGISTRATION_REFUSED,
    REGISTRATION_REMOVED,
    REGISTRATION_TOO_EARLY,
    REGISTRATION_UNSUPPORTED,
    TLS_FAILED,
)
from domain.diagnosis.logs.replication_lines import (
    CHANNEL_DIED,
    FETCH_INVALID,
    FETCH_REFUSED,
    FETCH_STOPPED,
    FETCHER_DIED,
    ISR_INELIGIBLE,
    ISR_REFUSED,
    LOG_DIR_FAILED,
    REMOTE_STATE,
    STATE_REWRITTEN,
    TOPIC_ID_DIFFERS,
    UNKNOWN_TO_LEADER,
)
from domain.diagnosis.logs.silence_lines import AGENT_FAILED

METADATA_FAULT = Told(
    "metadata-fault",
    re.compile(r"Encountered (?:metadata (?:loading|publishing)|quorum controller) fault: [^:={\[\"'\\]{1,120}"),
    "a node that applies every change",
    "It goes on with something else in memory than the quorum's log says. Mend what was thrown, where it lies with the node, "
    "then restart it: it applies all anew.",
    is_lasting=True,
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
    UNHANDLED,
    CHECK_OP_FAILED,
    UNKNOWN_CONFIG,
    METADATA_FAULT,
    BROKER_UNREACHED,
    REGISTRATION_UNSUPPORTED,
    REGISTRATION_DUPLICATE,
    REGISTRATION_REMOVED,
    REGISTRATION_TOO_EARLY,
    REGISTRATION_MISUNDERSTOOD,
    CLUSTER_ACTION_REFUSED,
    REGISTRATION_REFUSED,
    NODE_REFUSED,
    FENCED,
    CLUSTER_REFUSED,
    CLAIM_REFUSED,
    OUT_OF_PLACE,
    SUPERSET,
    PROTOCOL_DIFFERS,
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
    UNKNOWN_TO_LEADER,
    FETCH_INVALID,
    REMOTE_STATE,
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
    "LogDirFailureChannel)",
    "Stopping serving ",
    "does not match the topic ID",
    "bad ZK version",
    "Error due to",
    "QUOTAEXCEEDED",
    "marked as failed",
    "Added fetcher to broker ",
    "OutOfMemoryError",
)
"""In every line that begins a process, lasts (`is_lasting`), says why or ends what has lasted: so it is found far above a log's
end."""
