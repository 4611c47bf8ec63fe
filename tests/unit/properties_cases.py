"""Shapes of `server.properties` from public files, values invented. `decoded`: by java.util.Properties of JDK 17, which was run
on each; Kafka reads files with it, as ISO-8859-1."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """`zookeeper`: what has to go, as it stands there, for a node without ZooKeeper."""

    text: str
    zookeeper: tuple[str, ...]
    decoded: dict[str, str]


SHAPES = {
    "S1 continued lines, escapes and references": Shape(
        r"""# Maintained by Ansible
broker.id=1
inter.broker.protocol.version=3.9
node.idle.hint=3
sasl.kerberos.principal.to.local.rules=\
  RULE:[1:$1@$0](.*@EXAMPLE\.COM)s/@.*//,\
  DEFAULT
ssl.key.password=${securepass:/etc/kafka/security.properties:ssl.key.password}
! old: zookeeper.connect=z0:2181
zookeeper.connect=z1:2181,\
    z2:2181,z3:2181/kafka
zookeeper.connection.timeout.ms=18000
zookeeper_backup.note=x
""",
        (
            "inter.broker.protocol.version=3.9\n",
            "zookeeper.connect=z1:2181,\\\n    z2:2181,z3:2181/kafka\n",
            "zookeeper.connection.timeout.ms=18000\n",
        ),
        {
            "broker.id": "1",
            "inter.broker.protocol.version": "3.9",
            "node.idle.hint": "3",
            "sasl.kerberos.principal.to.local.rules": "RULE:[1:$1@$0](.*@EXAMPLE.COM)s/@.*//,DEFAULT",
            "ssl.key.password": "${securepass:/etc/kafka/security.properties:ssl.key.password}",
            "zookeeper.connect": "z1:2181,z2:2181,z3:2181/kafka",
            "zookeeper.connection.timeout.ms": "18000",
            "zookeeper_backup.note": "x",
        },
    ),
    "S2 duplicates and no newline at the end": Shape(
        "broker.id=0\nzookeeper.connect=zk:2181\n\nzookeeper.connection.timeout.ms=6000\n"
        "zookeeper.connection.timeout.ms=7000\ngroup.initial.rebalance.delay.ms=0",
        (
            "zookeeper.connect=zk:2181\n",
            "zookeeper.connection.timeout.ms=6000\n",
            "zookeeper.connection.timeout.ms=7000\n",
        ),
        {
            "broker.id": "0",
            "group.initial.rebalance.delay.ms": "0",
            "zookeeper.connect": "zk:2181",
            "zookeeper.connection.timeout.ms": "7000",
        },
    ),
    "S2 a backslash at the end": Shape(
        "broker.id=0\nzookeeper.connect=zk:2181\nsasl.kerberos.principal.to.local.rules=RULE:[1:$1@$0],DEFAULT,\\",
        ("zookeeper.connect=zk:2181\n",),
        {"broker.id": "0", "sasl.kerberos.principal.to.local.rules": "RULE:[1:$1@$0],DEFAULT,", "zookeeper.connect": "zk:2181"},
    ),
    "S2 a backslash and a newline at the end": Shape(
        "broker.id=0\nzookeeper.connect=zk:2181\nsasl.kerberos.principal.to.local.rules=RULE:[1:$1@$0],DEFAULT,\\\n",
        ("zookeeper.connect=zk:2181\n",),
        {"broker.id": "0", "sasl.kerberos.principal.to.local.rules": "RULE:[1:$1@$0],DEFAULT,", "zookeeper.connect": "zk:2181"},
    ),
    "S3 as in a wiki": Shape(
        "# f\xfcr alle\nbroker.id=0          # unique id\nadvertised.listeners : PLAINTEXT://h:9092\n"
        "  zookeeper.connect\t10.0.0.1:2181\n! old: zookeeper.connect=10.0.0.9:2181\n"
        "   # zookeeper.connect=10.0.0.8:2181\nallow.everyone.if.no.acl.found=true \n\n\tinter.broker.protocol.version = 3.9\n",
        (
            "  zookeeper.connect\t10.0.0.1:2181\n",
            "\tinter.broker.protocol.version = 3.9\n",
        ),
        {
            "advertised.listeners": "PLAINTEXT://h:9092",
            "allow.everyone.if.no.acl.found": "true ",
            "broker.id": "0          # unique id",
            "inter.broker.protocol.version": "3.9",
            "zookeeper.connect": "10.0.0.1:2181",
        },
    ),
    "S4 Windows, and a line that is swallowed": Shape(
        "log.dirs=C:\\kafka_2.13-3.9.1\\data\\\r\nbroker.id=1\r\nssl.keystore.location=C:\\\\certs\\\\broker.jks\r\n"
        "zookeeper.connect=z:2181\r\n",
        ("zookeeper.connect=z:2181\r\n",),
        {
            "log.dirs": "C:kafka_2.13-3.9.1databroker.id=1",
            "ssl.keystore.location": "C:\\certs\\broker.jks",
            "zookeeper.connect": "z:2181",
        },
    ),
    "S4 Windows": Shape(
        "broker.id=1\r\n# a comment\r\nzookeeper.connect=z1:2181,\\\r\n  z2:2181\r\n\r\nlog.dirs=/data\r\n",
        ("zookeeper.connect=z1:2181,\\\r\n  z2:2181\r\n",),
        {"broker.id": "1", "log.dirs": "/data", "zookeeper.connect": "z1:2181,z2:2181"},
    ),
    "S5 a login in the file": Shape(
        "broker.id=1\nlistener.name.internal.scram-sha-512.sasl.jaas.config="
        "org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '    username="admin" \\\n    password="p\\\\w#1=:";\n'
        "super.users=User:CN=a\\,O=b;User:ANONYMOUS\nssl.cipher.suites=A,\\\n#B,\\\nC\nzookeeper.connect=z:2181\n",
        ("zookeeper.connect=z:2181\n",),
        {
            "broker.id": "1",
            "listener.name.internal.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram."
            "ScramLoginModule required "
            'username="admin" password="p\\w#1=:";',
            "ssl.cipher.suites": "A,#B,C",
            "super.users": "User:CN=a,O=b;User:ANONYMOUS",
            "zookeeper.connect": "z:2181",
        },
    ),
    "S6 a byte order mark, and keys in other spellings": Shape(
        "\xef\xbb\xbfbroker.id=3\nzookeeper\\.connect=z:2181\nprocess\\u002eroles=broker\nbroker.id:4\nnoval\n"
        "zookeeper.session\\\n  .timeout.ms=18000\nk\\:ey\\ =v\n",
        (
            "zookeeper\\.connect=z:2181\n",
            "zookeeper.session\\\n  .timeout.ms=18000\n",
        ),
        {
            "broker.id": "4",
            "k:ey ": "v",
            "noval": "",
            "process.roles": "broker",
            "zookeeper.connect": "z:2181",
            "zookeeper.session.timeout.ms": "18000",
            "ï»¿broker.id": "3",
        },
    ),
    "S7 made by an operator": Shape(
        "##############################\n# Any changes to this file will be ignored and overwritten\n"
        "##############################\nbroker.id=0\nnode.id=0\nconfig.providers=strimzienv\n"
        "listeners=CONTROLPLANE-9090://0.0.0.0:9090,REPLICATION-9091://0.0.0.0:9091\n"
        "listener.name.controlplane-9090.ssl.keystore.location=/etc/k.p12\n"
        "listener.name.controlplane-9090.ssl.keystore.password=${strimzienv:CERTS_STORE_PASSWORD}\n"
        "zookeeper.connect=localhost:2181\nzookeeper.ssl.client.enable=false\n# User\nconfig.providers=strimzienv,mine\n",
        (
            "zookeeper.connect=localhost:2181\n",
            "zookeeper.ssl.client.enable=false\n",
        ),
        {
            "broker.id": "0",
            "config.providers": "strimzienv,mine",
            "listener.name.controlplane-9090.ssl.keystore.location": "/etc/k.p12",
            "listener.name.controlplane-9090.ssl.keystore.password": "${strimzienv:CERTS_STORE_PASSWORD}",
            "listeners": "CONTROLPLANE-9090://0.0.0.0:9090,REPLICATION-9091://0.0.0.0:9091",
            "node.id": "0",
            "zookeeper.connect": "localhost:2181",
            "zookeeper.ssl.client.enable": "false",
        },
    ),
    "S8 made from an environment": Shape(
        "heap.opts=-Xmx1G -Xms1G\nlog4j.opts=-Dlog4j.configuration=file:/etc/kafka/log4j.properties\nbroker.id=1\n"
        "listeners=INTERNAL://:29092,EXTERNAL://:9092\n"
        "advertised.listeners=CLIENT://advertised-address-placeholder:9092\nzookeeper.connect=zookeeper:2181\n"
        "ssl.keystore.key=-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN==\n-----END PRIVATE KEY-----\n",
        ("zookeeper.connect=zookeeper:2181\n",),
        {
            "-----END": "PRIVATE KEY-----",
            "MIIEvQIBADAN": "=",
            "advertised.listeners": "CLIENT://advertised-address-placeholder:9092",
            "broker.id": "1",
            "heap.opts": "-Xmx1G -Xms1G",
            "listeners": "INTERNAL://:29092,EXTERNAL://:9092",
            "log4j.opts": "-Dlog4j.configuration=file:/etc/kafka/log4j.properties",
            "ssl.keystore.key": "-----BEGIN PRIVATE KEY-----",
            "zookeeper.connect": "zookeeper:2181",
        },
    ),
    "line ends of carriage returns alone": Shape(
        "broker.id=1\rzookeeper.connect=z:2181,\\\r  y:2181\rlog.dirs=/data\r",
        ("zookeeper.connect=z:2181,\\\r  y:2181\r",),
        {"broker.id": "1", "log.dirs": "/data", "zookeeper.connect": "z:2181,y:2181"},
    ),
}

UNREADABLE = {
    "S4 a path with \\u": "broker.id=1\r\nzookeeper.connect=z:2181\r\nlog.dirs=C:\\users\\kafka\r\n",
    "an escape that ends too early": "zookeeper.connect=z:2181\na=\\u12\n",
    "in a key": "zookeeper.connect=z:2181\na\\u00zz=1\n",
}
"""Java refuses each: `Malformed \\uxxxx encoding`."""
