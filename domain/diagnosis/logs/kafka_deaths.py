"""What Kafka 3.9 says when it dies of what it was told: ZooKeeper, keys, certificates, properties, plug-ins.

From KafkaServer, ZooKeeperClient, KafkaZkClient, DefaultSslEngineFactory, SslFactory, KafkaConfig. Of one line the first kind
counts.
"""

import re

from domain.diagnosis.logs.lines import Told
from domain.diagnosis.logs.login_deaths import LOGINS
from domain.diagnosis.logs.registration_lines import LIFT_QUOTA

CORRECT = (
    "Correct the named property where it is set: mostly in the node's file. Where that is right, it comes from its start "
    "command (--override, a variable that is not set), or is set in ZooKeeper for brokers (/config/brokers). Then start it."
)
OF_TOPICS = (
    r"(?:cleanup\.policy|delete\.retention\.ms|file\.delete\.delay\.ms|flush\.(?:messages|ms)|index\.interval\.bytes|"
    r"local\.retention\.\w+|m(?:ax|in)\.compaction\.lag\.ms|max\.message\.bytes|message\.(?!max\.bytes)[\w.]+|min\.cleanable\.dirty\.ratio|"
    r"preallocate|remote\.storage\.enable|retention\.\w+|segment\.[\w.]+)"
)
"""Names that only topics have (TopicConfig): a broker's begin with `log.`."""
KEY_STORES_RIGHT = "key and trust stores that open with the passwords in its properties"
ENDED_WHILE_STARTING = Told(
    "ended-while-starting",
    re.compile(r"Kafka server is still starting up, cannot shut down!"),
    "nobody ends it before it serves",
    "Find who does that, or it happens again at every start: a health check, a liveness probe, a watchdog, or a timeout of its "
    "unit (TimeoutStartSec=) with too little patience; `systemctl status`, `journalctl` and the events of its container have "
    "that second. Give it more: its next start takes longer, for it checks the logs that this one has left open. "
    "Then start it.",
    is_root=True,
)
"""Only while ZooKeeper has the metadata: whoever starts in KRaft mode ends in order."""
MAKE_GLOBAL = (
    "somebody has set localSessionsEnabled=true in their zoo.cfg (ZOOKEEPER-1147). Take it out, or add "
    "localSessionsUpgradingEnabled=true, at every server, and restart them one after the other. No broker in ZooKeeper mode or "
    "in migration mode can start before, nor any that only loses its session: restart none. Then start it."
)
ZOOKEEPER = (
    Told(
        "node-exists",
        re.compile(
            r"Error while creating ephemeral at \S{1,80}, node already exists and owner '\w{1,40}' does not match|"
            r"NodeExistsException: KeeperErrorCode = NodeExists"
        ),
        "no session of an earlier process keeps /brokers/ids/…",
        "The old session lives until zookeeper.session.timeout.ms is over: start it once more after that. If it lasts, look "
        "at `stat` of that znode: an ephemeralOwner of 0x0 says that somebody has written it, or put it back from a backup: "
        "delete it. Else another broker runs with this id.",
    ),
    Told(
        "zookeeper-local-session",
        re.compile(r"EphemeralOnLocalSessionException: KeeperErrorCode = [\w ]{1,40}(?: for /\S{1,80})?"),
        "sessions of ZooKeeper in which /brokers/ids/… can be made",
        f"The servers of the ensemble give it local sessions only, in which nothing ephemeral can be made: {MAKE_GLOBAL}",
        is_root=True,
    ),
    Told(
        "zookeeper-session-unknown",
        re.compile(r"Error while creating ephemeral at \S{1,80} with return code: SESSIONEXPIRED"),
        "a session of ZooKeeper that its leader knows",
        "It had its session a moment before, and the leader of the ensemble does not know it. Either its JVM stood still for "
        "longer than zookeeper.session.timeout.ms just then: start it again. Or, where it ends so once more, the servers give "
        f"local sessions only, of which a follower tells no leader: {MAKE_GLOBAL}",
        is_root=True,
    ),
    Told(
        "zookeeper-quota",
        re.compile(r"QuotaExceededException: KeeperErrorCode = [\w ]{1,40}(?: for /\S{1,80})?|with return code: QUOTAEXCEEDED"),
        "room for another znode below each hard quota of ZooKeeper's",
        f"Somebody has set a hard quota on a znode above it (enforceQuota at the servers). {LIFT_QUOTA} Restart no broker in "
        "ZooKeeper mode or in migration mode before: none could register. Then start it.",
        is_root=True,
    ),
    Told(
        "zookeeper-no-auth",
        re.compile(r"NoAuthException: KeeperErrorCode = NoAuth(?: for \S{1,80})?"),
        "the node's identity may write ZooKeeper",
        "Give the node the same ZooKeeper credentials as the brokers (zookeeper.set.acl, JAAS or TLS), then start it.",
    ),
    Told(
        "zookeeper-login-failed",
        re.compile(
            r"ZooKeeperClientAuthFailedException: Auth failed|KeeperErrorCode = AuthFailed(?: for \S{1,80})?|"
            r"zookeeper\.set\.acl is true, but ZooKeeper client TLS configuration"
        ),
        "credentials that ZooKeeper knows",
        "Compare section `Client` of its JAAS file (java.security.auth.login.config), or its zookeeper.ssl.* stores, with "
        "those of a broker that runs. Then start it.",
        is_vague=True,
    ),
    Told(
        "cluster-id-gone",
        re.compile(r"Failed to get cluster id from Zookeeper"),
        "/cluster/id in ZooKeeper",
        "Somebody has deleted it, or the node reaches another ZooKeeper or chroot (zookeeper.connect). Put it back as "
        '{"version":"1","id":"…"} with the cluster.id of meta.properties. Then start the node.',
    ),
    Told(
        "zookeeper-unreachable",
        re.compile(
            r"ZooKeeperClientTimeoutException: Timed out waiting for connection while in state: \w+|"
            r"ZooKeeperClientExpiredException|KeeperErrorCode = (?:ConnectionLoss|Session expired)(?: for \S{1,80})?"
        ),
        "ZooKeeper answers the node",
        "Look at the ensemble first; if it is well, at zookeeper.connect and the network between.",
        is_vague=True,
    ),
    Told(
        "zookeeper-refused",
        re.compile(
            r"KeeperErrorCode = (?:NoNode|InvalidACL|NotReadOnly|NotEmpty|BadVersion|BadArguments|NoChildrenForEphemerals|"
            r"SessionClosedRequireSaslAuth|Unimplemented|RequestTimeout)\b(?: for /\S{1,160})?|"
            r"Session closed because client failed to authenticate"
        ),
        "a ZooKeeper that does what a broker asks as it starts",
        "What it has asked of that znode was refused. NoNode: somebody has deleted it, or zookeeper.connect leads to another "
        "chroot or ensemble. InvalidACL: zookeeper.set.acl=true, and ZooKeeper does not know who it is (its login, or the "
        "members' authProvider). NotReadOnly: the member that it has come to has no quorum, and serves reads alone "
        "(readonlymode.enabled). SessionClosedRequireSaslAuth: the members ask everybody for a login now. RequestTimeout: "
        "the leader does not keep up. Compare with a broker that runs, and mend that. Then start it.",
        is_vague=True,
    ),
)

KEYS = (
    Told(
        "key-store-password",
        re.compile(
            r"keystore password was incorrect|[Kk]eystore was tampered with, or password was incorrect|Cannot recover key|"
            r"Get Key failed: [\w ]{1,60}"
        ),
        KEY_STORES_RIGHT,
        "Correct ssl.keystore.password, ssl.key.password or ssl.truststore.password, or put the store back that fits them: "
        "`keytool -list -keystore FILE` asks for the password and shows whether it does. Then start it.",
    ),
    Told(
        "key-store-broken",
        re.compile(
            r"Invalid keystore format|toDerInputStream rejects tag type \d+|DerInputStream\.getLength\(\)|"
            r"No matching [\w ]{1,30} entries in PEM file|Private key could not be loaded|Unrecognized keystore format"
        ),
        KEY_STORES_RIGHT,
        "The file is cut off, is no store, or not of the type that ssl.keystore.type names (JKS, PKCS12, PEM): put it back "
        "from where it came. Then start it.",
    ),
    Told(
        "certificate-out-of-date",
        re.compile(r"Certificate(?:Expired|NotYetValid)Exception: Not(?:After|Before): [\w :]{1,40}"),
        "certificates that are valid today",
        "Renew it in the store that the node's properties name, on all nodes that have it; look at the host's clock, too. "
        "Then start it.",
    ),
    Told(
        "certificate-revoked",
        re.compile(
            r"Certificate has been revoked|CertificateRevokedException|[Uu]nable to determine revocation status|"
            r"Could not determine revocation status|certificate_revoked|OCSP response error"
        ),
        "certificates that are not revoked, and somebody who says so",
        "Its Java asks whether certificates are revoked (com.sun.net.ssl.checkRevocation, ocsp.enable). Where one is: renew "
        "it. Where nobody says so: bring back the way from its host to the OCSP responder, or to where the list (CRL) lies, "
        "which the certificate names (`openssl x509 -noout -ext authorityInfoAccess,crlDistributionPoints -in FILE`). Trust "
        "stores are not to blame. Then start it.",
    ),
    Told(
        "certificate-refused-by-peer",
        re.compile(
            r"Received fatal alert: (?:certificate_\w{1,20}|bad_certificate|unknown_ca|unsupported_certificate|access_denied)"
        ),
        "a certificate of its own that the other end takes",
        "The other end has refused this node's own certificate. certificate_expired: renew it, or set that host's clock. "
        "unknown_ca, certificate_unknown: its authority is not in the trust store there. bad_certificate, "
        "certificate_required: it shows none, or one that does not fit its key (ssl.keystore.location). The log at the other "
        "end, of the same second, says more. Then start it.",
    ),
    Told(
        "certificate-not-for-this",
        re.compile(r"Extended key usage does not permit use for TLS (?:client|server) authentication"),
        "certificates that are made for servers and for clients (serverAuth and clientAuth): a node is both",
        "Its new certificate may not be used for that, and the one that its process had could: have one issued with both "
        "extended key usages (public authorities leave clientAuth out by now). Restart no other node with such a "
        "certificate before. Then start it.",
    ),
    Told(
        "cryptography-forbidden",
        re.compile(
            r"Algorithm constraints check failed[\w :,.-]{0,120}|Certificates do(?:es)? not conform to algorithm constraints|"
            r"No appropriate protocol(?: \([\w ]{1,80}\))?"
        ),
        "keys, signatures and protocols that its Java allows",
        "Its Java, or the system's policy for cryptography, has forbidden them since it started: compare "
        "jdk.tls.disabledAlgorithms and jdk.certpath.disabledAlgorithms (java.security; update-crypto-policies --show) and its "
        "Java with those of a node that runs. Renew what is too weak, or take the change back. Then start it.",
    ),
    Told(
        "certificate-not-trusted",
        re.compile(
            r"PKIX path (?:building|validation) failed(?:: [\w.$]{1,100}: [\w ,-]{1,100})?|"
            r"No subject alternative [\w ]{1,60}|No name matching \S{1,120} found"
        ),
        "certificates that the node's own trust store trusts, for the host's name",
        "Put the authority that has signed the new certificate into the trust stores first, or a certificate with the host's "
        "name into the key store. Then start it.",
    ),
    Told(
        "key-store-not-loaded",
        re.compile(
            r"Failed to load (?:SSL|PEM SSL) keystore \S{1,160}(?: of type \w{1,20})?|Invalid PEM (?:key|trust)store configs|"
            r"A client SSLEngine created with the provided settings"
        ),
        KEY_STORES_RIGHT,
        "Look whether it is whole, of the type that its property names (JKS, PKCS12, PEM), and opens with the password: "
        "`keytool -list -keystore FILE`. Then start it.",
        is_vague=True,
    ),
    Told(
        "password-not-decoded",
        re.compile(r"Dynamic password config [\w.]{1,100} could not be decoded|Password could not be decoded"),
        "the password.encoder.secret with which passwords in ZooKeeper's /config/brokers were encoded",
        "The secret in its file is another one: put back the one of before, or name that in password.encoder.old.secret as "
        "well. Every broker with the new one fails likewise at its next start.",
        is_root=True,
    ),
    Told(
        "listener-without-protocol",
        re.compile(r"No security protocol defined for listener [\w.-]{1,60}"),
        "a security protocol for every listener",
        "Add that listener to listener.security.protocol.map in the node's properties, or take it out of listeners and "
        "advertised.listeners. Where it is there, its start command has another map (--override). Then start it.",
    ),
    Told(
        "tls-half-configured",
        re.compile(r"SSL (?:key|trust) store (?:is )?[\w ,]{1,80}(?:specified|PEM format)"),
        "a store with its password, both or neither",
        "Correct the ssl.* property that is named. Then start it.",
    ),
    *LOGINS,
)

SPOKEN_OF = r"(?i:pass(?:word|phrase|wd)?|pwd|pw|pin|secret|token|key|credentials?)"
NO_SECRET = rf"(?![^:]{{0,80}} {SPOKEN_OF} )"
"""What a plug-in says may go on with the secret itself, in plain letters."""
PROPERTIES = (
    Told(
        "another-version",
        re.compile(r"Missing required configuration \"process\.roles\""),
        "the version of Kafka that ran",
        "Only Kafka 4 asks for that, and has no ZooKeeper mode: another version lies in kafka_home's libs than the one that "
        "ran (`ls libs/kafka_2.13-*`). Install that one again. Add nothing to its file.",
    ),
    Told(
        "topic-config-refused",
        re.compile(rf"ConfigException: .{{0,200}}?for configuration {OF_TOPICS}\b(?:: [\w ,()]{{1,120}})?"),
        "configs of topics that Kafka accepts",
        "That is no property of a broker, but a topic's, in ZooKeeper's /config/topics: somebody has written it past the "
        "brokers, and each fails at its next start. Restart none. Ask one that runs which topic has it (kafka-configs.sh "
        "--bootstrap-server … --describe --entity-type topics), delete it there (--alter --delete-config), and start this "
        "one.",
    ),
    Told(
        "system-property-needed",
        re.compile(r"is not allowed\. (?:Update|Set) [Ss]ystem property '?org\.apache\.kafka[\w.]{1,80}'?[^:;{}=]{0,80}"),
        "a system property that allows what a setting names",
        "This version asks for more than the one that ran: put that property with what the setting names as -D… into "
        "KAFKA_OPTS of its start command. Then start it.",
    ),
    Told(
        "secret-gone",
        re.compile(r"Could not read (?:properties from file|directory|file) \S{1,160}"),
        "the files that values of its properties are read from (config.providers)",
        "A value in its file is a reference (${file:…}) to a file that is gone, or that its user may not read. Have whoever "
        "makes it (an agent of a store of secrets, configuration management) make it again, or put it back. Nodes that run "
        "have read it, and would not start again either: restart none before. Then start it.",
    ),
    Told(
        "provider-refused",
        re.compile(
            rf"ConfigException: (?:{NO_SECRET}[\w ]{{1,80}}: )?(?!org\.apache\.kafka\.)(?:[a-z]\w*\.)+[A-Z][\w$]*"
            r"(?:Exception|Error)(?:: (?:Vault responded with )?(?:HTTP )?[Ss]tatus(?: [Cc]ode)?: \d{3}\b)?"
        ),
        "an answer of whom it asks as it starts for values of its properties (config.providers), or for keys (OAuth)",
        "A store of secrets, or an authorization server, refuses it or is not reached: look at its address, and at the token "
        "or role with which the node goes there, and what that may read. The file is right. Nodes that run have had their "
        "answer, and would not start again either: restart none before. Then start it.",
    ),
    Told(
        "tiered-storage-off",
        re.compile(r"Tiered Storage functionality is disabled in the broker[\w .]{0,80}"),
        "remote.log.storage.system.enable=true where topics have remote.storage.enable",
        "Put remote.log.storage.system.enable back into its file, with the rest of what the others have of remote.log.* and "
        "rsm.config.*. Then start it.",
    ),
    Told(
        "bad-configuration",
        re.compile(
            r"ConfigException: (?:Missing required configuration \"[\w.]+\"|Invalid value .{0,200}?for configuration [\w.]+|"
            rf"(?:(?! {SPOKEN_OF} )[^:={{\[\"']){{0,200}})"
        ),
        "properties that Kafka accepts",
        CORRECT,
    ),
    Told(
        "bad-requirement",
        re.compile(
            r"IllegalArgumentException: (?:requirement failed: [^=]{0,160}|Error creating broker listeners from "
            r"'[^'=@]{1,200}'|Error parsing configuration property '[\w.]{1,100}'|"
            r"expected a string in format principalType:principalName)"
        ),
        "properties that Kafka accepts",
        CORRECT,
    ),
    Told(
        "bad-quorum-configuration",
        re.compile(r"InvalidConfigurationException: Cannot set [\w.]{1,80} (?:below|above) -?\d+"),
        "properties that Kafka accepts",
        CORRECT,
    ),
    Told(
        "no-broker-id",
        re.compile(r"No broker ID found, and [\w.]{1,60} is disabled|Failed to generate broker\.id"),
        "broker.id in the broker's file, or in its meta.properties",
        "Put broker.id back into its file, as it is registered. Then start it.",
    ),
    Told(
        "installation-broken",
        re.compile(
            r"(?:ClassNotFoundException: |NoClassDefFoundError: )(?:org[./]apache[./](?:kafka|zookeeper)|kafka|scala)[./]"
            r"[\w/.$]{1,120}|(?:ZipException|ZipError): .{1,120}"
        ),
        "all jars of its Kafka in kafka_home's libs, whole",
        "A jar of Kafka's own is missing there, empty or cut off, as an interrupted upgrade leaves it: compare names and sizes "
        "(`ls -l`) with a node that runs, and install that version again. If a property names the class itself, it is no "
        "class of this version: correct that. Then start it.",
    ),
    Told(
        "class-not-found",
        re.compile(
            r"ClassNotFoundException: [\w.$]{1,120}|NoClassDefFoundError: (?!Could not)[\w/.$]{1,120}|"
            r"No LoginModule found for [\w.$]{1,120}|unable to find LoginModule class: [\w.$]{1,120}"
        ),
        "every class that its properties name is in kafka_home's libs",
        "Install the plug-in on this node, or remove the property that names it.",
    ),
    Told(
        "classes-do-not-fit",
        re.compile(r"(?:NoSuchMethodError|NoSuchFieldError|AbstractMethodError|IncompatibleClassChangeError): .{1,120}"),
        "jars that fit each other",
        "Two versions of a library lie in kafka_home's libs or in CLASSPATH, or a plug-in is of another Kafka: compare the "
        "folder with a node that runs. Then start it.",
    ),
)
