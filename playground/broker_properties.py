"""Properties files as people keep them: comments, groups, and more than one way to write a line.

Java reads `a=b`, `a = b` and `a: b` alike, and joins a line that ends in a backslash with the next. All of these occur
here, so that whoever edits the files must preserve lines to pass the tests.
"""

from dataclasses import dataclass
from pathlib import Path

from playground.secured import USER

SEPARATORS = ("=", " = ", ": ")


@dataclass(frozen=True)
class BrokerAddresses:
    """What differs from broker to broker."""

    id: int
    host: str
    port: int
    rack: str
    data: Path
    zookeeper_connect: str
    internal: str = ""
    """A listener more, for brokers among each other, such as `INTERNAL://127.0.0.1:9095`."""
    security: str = ""
    """Lines about TLS and logins."""


def render(broker: BrokerAddresses) -> str:
    """The whole file. Which separator is used for the broker's own settings depends on its id."""
    is_ = SEPARATORS[broker.id % len(SEPARATORS)]
    listeners = ",".join([f"PLAINTEXT://{broker.host}:{broker.port}", *([broker.internal] if broker.internal else [])])
    super_users = f"User:ANONYMOUS;User:{USER}" if broker.internal else "User:ANONYMOUS"
    return f"""\
# {"=" * 74}
#  Broker {broker.id} -- owned by the platform team. Ask in #kafka before you edit.
# {"=" * 74}

############################# Server basics #############################
# The id must never change: partitions are assigned to it.
broker.id{is_}{broker.id}
broker.rack{is_}{broker.rack}

############################# Listeners ##################################
listeners{is_}{listeners}
advertised.listeners{is_}{listeners}
#listeners=SSL://0.0.0.0:9093

############################# Protocol ###################################
! Explicit since the last upgrade, see the runbook.
inter.broker.protocol.version=3.9

############################# ZooKeeper ##################################
{_zookeeper_lines(broker, is_)}
zookeeper.session.timeout.ms=6000
zookeeper.connection.timeout.ms=18000
   # zookeeper.set.acl=true

############################# Security ###################################
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users={super_users}
allow.everyone.if.no.acl.found   =   true

{broker.security}############################# Storage ####################################
log.dirs={broker.data}
# Small files, because this machine is small.
log.segment.bytes=16777216
log.index.size.max.bytes=1048576
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=2097152
num.recovery.threads.per.data.dir=1

############################# Replication ################################
default.replication.factor=3
min.insync.replicas=2
auto.create.topics.enable=false
num.replica.fetchers=1
replica.lag.time.max.ms=10000
offsets.topic.num.partitions=3
offsets.topic.replication.factor=3
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2

############################# Threads ####################################
num.network.threads=2
num.io.threads=2
background.threads=2

############################# Timings ####################################
group.initial.rebalance.delay.ms=0
controlled.shutdown.retry.backoff.ms=500
# Also how often a broker asks the controller whether it may stop.
broker.heartbeat.interval.ms=250
"""


def _zookeeper_lines(broker: BrokerAddresses, is_: str) -> str:
    """On brokers with an even id, one server to a line."""
    if broker.id % 2:
        return f"zookeeper.connect{is_}{broker.zookeeper_connect}"
    return f"zookeeper.connect{is_}" + broker.zookeeper_connect.replace(",", ",\\\n    ")
