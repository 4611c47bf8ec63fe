"""What a broker or a controller says of registrations, and of whom it cannot reach or is not let in by (Kafka 3.9)."""

import re
from collections.abc import Sequence

from domain.diagnosis.logs.authorizer_lines import CLUSTER_ACTION_REFUSED
from domain.diagnosis.logs.lines import Told

REGISTERED = re.compile(r"Successfully registered broker \d+ with broker epoch|The broker has been unfenced")
"""A broker's refusals before that are over (BrokerLifecycleManager)."""
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
PROTOCOL_DIFFERS = Told(
    "protocol-differs",
    re.compile(
        r"Connection to node -?\d+ \([^)]{1,80}\) terminated during authentication|"
        r"Unsupported or unrecognized SSL message|Unexpected Kafka request of type [A-Z_]{1,40} during SASL handshake"
    ),
    "one security protocol at both ends of a connection",
    "This node speaks TLS or SASL to that listener, and who answers there does not, or the other way round: compare in both "
    "files listener.security.protocol.map for the listener's name (of controllers: controller.listener.names; between brokers: "
    "inter.broker.listener.name or security.inter.broker.protocol), and sasl.mechanism.*. Where they agree, look who listens "
    "there (`ss -ltnp`): another program, or a firewall that lets only HTTPS through. Correct what differs, and restart that "
    "node.",
)
OF_A_PEER = r"Connection to node -?\d+ \([^)]{1,80}\) failed authentication due to"
TLS_FAILED = Told(
    "tls-handshake-failed",
    re.compile(rf"(?:{OF_A_PEER}: )?SSL handshake failed|SSLHandshakeException"),
    "certificates that both sides trust",
    "Compare the key and trust stores of this node and of the one that it talks to, their names and dates.",
)
LOGIN_FAILED = Told(
    "login-failed",
    re.compile(
        r"(?:SaslAuthentication|UnsupportedSaslMechanism|IllegalSaslState)Exception|Failed authentication with|"
        rf"{OF_A_PEER}|failed authentication due to"
    ),
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
    re.compile(
        r"Connection to node -?(\d+) \([^)]{1,80}\) could not be established|"
        r"Error connecting to node \S{1,120} \(id: -?(\d+) rack: [^)]{0,80}\)"
    ),
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
LIFT_QUOTA = (
    "Raise that quota (`listquota PATH` in zkCli.sh, from the chroot of zookeeper.connect up, says which; `setquota -N NUMBER "
    "PATH`, or -B), or take it away (`delquota PATH`)."
)
SESSION_TOO_SHORT = Told(
    "zookeeper-session-too-short",
    re.compile(r"negotiated timeout = \d{1,3}(?!\d)"),
    "sessions of ZooKeeper as long as zookeeper.session.timeout.ms asks for, 18 s by default",
    "Either its file asks for less (zookeeper.session.timeout.ms): correct that. Or the ensemble gives shorter ones, 20 times "
    "tickTime at most, or maxSessionTimeout, in the zoo.cfg of its members: put these back (tickTime=2000), and restart the "
    "members one by one. Any pause of a JVM ends such a session, and with it the registration. ",
)
REGISTRATION_OVER_QUOTA = Told(
    "zookeeper-quota-reached",
    re.compile(r"Error while creating ephemeral at \S{1,80} with return code: QUOTAEXCEEDED"),
    "room for another znode below each hard quota of ZooKeeper's",
    f"{LIFT_QUOTA} Only then restart it: it registers as it starts, or with its next session. Restart no other before.",
    is_lasting=True,
)
SESSION_LOST = Told(
    "zookeeper-session-lost",
    re.compile(r"Unable to reconnect to ZooKeeper service, session 0x\w{1,20} has expired"),
    "sessions that last",
    "",
)
REFUSALS = (
    REGISTRATION_REMOVED,
    REGISTRATION_UNSUPPORTED,
    REGISTRATION_DUPLICATE,
    REGISTRATION_TOO_EARLY,
    REGISTRATION_MISUNDERSTOOD,
    CLUSTER_ACTION_REFUSED,
    REGISTRATION_REFUSED,
    CLUSTER_REFUSED,
    PROTOCOL_DIFFERS,
    TLS_FAILED,
    LOGIN_FAILED,
    ANSWER_TOO_LARGE,
    PEER_CUT,
    PEER_UNREACHABLE,
)
"""Why a broker does not register."""


def since_registered(lines: Sequence[str]) -> tuple[str, ...]:
    """What a broker has said since the controllers took it, as far as they have."""
    taken = [number for number, line in enumerate(lines) if REGISTERED.search(line)]
    return tuple(lines[taken[-1] + 1 :] if taken else lines)
