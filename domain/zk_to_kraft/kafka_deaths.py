"""What Kafka 3.9 says when it dies of what it was told: ZooKeeper and its login, keys, certificates, properties, plug-ins.

From KafkaServer, ZooKeeperClient, KafkaZkClient, JaasContext, JaasConfig, DefaultSslEngineFactory, SslFactory, KafkaConfig. Of
one line the first kind counts.
"""

import re

from domain.zk_to_kraft.log_lines import Told

KEY_STORES_RIGHT = "key and trust stores that open with the passwords in its properties"
ZOOKEEPER = (
    Told(
        "node-exists",
        re.compile(
            r"Error while creating ephemeral at \S{1,80}, node already exists and owner '\w{1,40}' does not match|"
            r"NodeExistsException: KeeperErrorCode = NodeExists"
        ),
        "no session of an earlier process keeps /brokers/ids/…",
        "The old session lives until zookeeper.session.timeout.ms is over: start it once more after that. If it lasts, "
        "another broker runs with this id.",
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
        "certificate-not-trusted",
        re.compile(
            r"PKIX path (?:building|validation) failed|No subject alternative [\w ]{1,60}|No name matching \S{1,120} found"
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
        "listener-without-protocol",
        re.compile(r"No security protocol defined for listener [\w.-]{1,60}"),
        "a security protocol for every listener",
        "Add that listener to listener.security.protocol.map in the node's properties, or take it out of listeners and "
        "advertised.listeners. Then start it.",
    ),
    Told(
        "jaas-entry-missing",
        re.compile(r"Could not find a '[\w.-]{1,60}'(?: or '[\w.-]{1,60}')? entry in (?:the|this) JAAS configuration"),
        "a login for every listener with SASL",
        "Give the listener's sasl.jaas.config in the node's properties, or -Djava.security.auth.login.config in KAFKA_OPTS a "
        "file with that section: compare with a node that runs. Then start it.",
    ),
    Told(
        "jaas-malformed",
        re.compile(
            r"JAAS config entry not terminated by semi-colon|Invalid login module control flag|Value not specified for key|"
            r"Login module (?:control flag )?(?:is )?not (?:specified|available)|"
            r"Configuration Error:|Line \d+: expected \[[^\]]{1,30}\]|"
            r"JAAS config property (?:does not contain|contains \d+)"
        ),
        "a JAAS text that can be parsed",
        'One module, `required`, name="value" pairs, and a semicolon at its end, in sasl.jaas.config or in the JAAS file '
        "(there a second one after the section's brace). Then start it.",
    ),
    Told(
        "tls-half-configured",
        re.compile(r"SSL (?:key|trust) store (?:is )?[\w ,]{1,80}(?:specified|PEM format)"),
        "a store with its password, both or neither",
        "Correct the ssl.* property that is named, then start it.",
    ),
)

PROPERTIES = (
    Told(
        "bad-configuration",
        re.compile(r"ConfigException: (?:Missing required configuration \"[\w.]+\"|.{0,200}?for configuration [\w.]+|.{0,60})"),
        "a properties file that Kafka accepts",
        "Correct the named property in the node's file, then start it.",
    ),
    Told(
        "bad-requirement",
        re.compile(r"IllegalArgumentException: requirement failed: [^=]{0,160}"),
        "a properties file that Kafka accepts",
        "Correct the named property in the node's file, then start it.",
    ),
    Told(
        "bad-quorum-configuration",
        re.compile(r"InvalidConfigurationException: Cannot set [\w.]{1,80} (?:below|above) -?\d+"),
        "a properties file that Kafka accepts",
        "Correct the named property in the node's file, then start it.",
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
        re.compile(r"ClassNotFoundException: [\w.$]{1,120}|NoClassDefFoundError: [\w/.$]{1,120}"),
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
