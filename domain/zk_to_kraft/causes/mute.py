"""Of brokers that give no answer though asked by themselves, where another one does."""

from collections.abc import Collection

from domain.checks.seen import some
from domain.diagnosis.causes.connection_limits import how_to_lift
from domain.diagnosis.causes.hints import Serving
from domain.errors import Obstacle
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.address import lacking_cause, unresolved_cause
from domain.zk_to_kraft.causes.case import Cause, Looked, cause, complaints
from domain.zk_to_kraft.causes.lacks import lack_of
from domain.zk_to_kraft.causes.proxy_headers import PROXY_HEADER, of_proxy_header
from domain.zk_to_kraft.causes.sparing import restart_of
from domain.zk_to_kraft.modes import BrokerMode

OF_OURS = {Obstacle.UNRESOLVED: unresolved_cause, Obstacle.OURS: lacking_cause}
"""What keeps us from asking a broker, and says nothing of it."""


def each_mute(looked: Looked, unheard: Collection[int]) -> list[Cause]:
    return [_of_mute(looked, broker_id) for broker_id in mute(looked, unheard)]


def mute(looked: Looked, unheard: Collection[int]) -> list[int]:
    """Brokers that do not answer, though asked by themselves, where another one does. Of who is silent in all nothing more is
    told than that."""
    asked = looked.hints.asked
    if all(found.why for found in asked.values()):
        return []
    silent = [i for i, found in asked.items() if found.why and found.obstacle not in OF_OURS]
    return [i for i in silent if i not in looked.absent_brokers and i not in unheard]


WITHOUT_ZOOKEEPER = (
    "First bring ZooKeeper's ensemble back, as its own entries say: a broker that waits for it answers nobody. Restart no "
    "broker meanwhile: none that needs ZooKeeper starts without it."
)


def _lacks_zookeeper(looked: Looked, broker_id: int) -> bool:
    """Whether it needs an ensemble that has no quorum."""
    needs = any(broker.mode is not BrokerMode.KRAFT for broker in looked.situation.brokers if broker.id == broker_id)
    found = set(looked.hints.servers.values())
    return needs and Serving.YES not in found and bool(found & {Serving.NO, Serving.REFUSED, Serving.UNREACHED})


def _of_mute(looked: Looked, broker_id: int) -> Cause:
    asked = looked.hints.asked[broker_id]
    well = [looked.name(i) for i, found in looked.hints.asked.items() if not found.why]
    expected, fix = "every broker answers", _mended(looked, broker_id)
    if _lacks_zookeeper(looked, broker_id):
        fix = WITHOUT_ZOOKEEPER
    said = f"{limited(looked)}{complaints(looked, broker_id)}"
    is_explained = asked.obstacle in AT_ONE_BROKER or _lacks_zookeeper(looked, broker_id)
    own = _of_itself(looked, broker_id) if not is_explained else None
    if asked.obstacle in AT_ONE_BROKER:
        expected, fix = AT_ONE_BROKER[asked.obstacle]
    elif own is not None:
        said, expected, fix = own
    proxied = of_proxy_header(looked, [broker_id])
    if proxied is not None:
        said, expected, fix = f": {proxied[1]}", PROXY_HEADER.expected, proxied[2]
    return cause(
        looked,
        WaitReason.PART_UNKNOWN,
        looked.name(broker_id),
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        observed=f"asked by itself at {asked.address}, {asked.why}; {some(well)} answer{'s' * (len(well) == 1)}. Kafka as a "
        f"whole gives no answer because of it{said}",
        expected=expected,
        fix=fix,
        is_proved=proxied is not None or own is not None,
    )


def _of_itself(looked: Looked, broker_id: int) -> tuple[str, str, str] | None:
    """What it says that it lacks, or what its threads are at; what would be right, and the fix."""
    if (lacks := lack_of(looked, broker_id)) is not None:
        return f". It has printed: {lacks.quote}", lacks.told.expected, lacks.told.fix
    if (standing := looked.hints.threads.get(looked.name(broker_id))) is not None and standing.fix:
        return f". Of its threads: {standing.words}", "every broker answers", standing.fix
    return None


def _mended(looked: Looked, broker_id: int) -> str:
    name = looked.name(broker_id)
    lift = [f"{how_to_lift(limit)} If that is not it: look" for limit in looked.tight_limits[:1]]
    return (
        f"{lift[0] if lift else 'Look'} what {name} stands in: its threads (`jstack PID`, twice within seconds), its log, its "
        "heap and the pauses of its garbage collector, its disks; NetworkProcessorAvgIdlePercent and "
        "RequestHandlerAvgIdlePercent near 0 mean that it has no thread left for requests, and `ss -tn` there shows "
        "connections whose Recv-Q it does not read. Clients of the partitions that it leads wait as well. If nothing else "
        f"helps, {restart_of(looked, broker_id)}: while it is registered, nobody leads in its place."
    )


def limited(looked: Looked) -> str:
    """What may have been reached: a broker says nothing of it."""
    limits = [limit.in_words for limit in looked.hints.limits]
    return f". Its connections are limited: {some(limits)}" if limits else ""


AT_ONE_BROKER = {
    Obstacle.TLS: (
        "keeperless-activities and every broker come to TLS with each other",
        "Compare its key and trust store with those of a broker that lets us in (`openssl s_client -connect` its listener): a "
        "certificate that was renewed is loaded with a restart. Correct its store, or, where the new authority is right, put "
        "that into ssl.cafile of client_properties. Restart no other broker before: it would load the like.",
    ),
    Obstacle.FORBIDDEN: (
        "every broker lets keeperless-activities in",
        "Compare its listeners, SASL mechanisms, JAAS section and users with those of a broker that lets us in. What is in its "
        "file is loaded with a restart: restart no other broker before.",
    ),
    Obstacle.GARBLED: (
        "what a broker answers arrives as it was sent",
        "Ask it on its own machine (kafka-broker-api-versions.sh --bootstrap-server). Where that works, leave the broker "
        "running: its bytes are changed or mixed up on the way, by a network card or its offloading (ethtool -K), "
        "a cable or switch (`ethtool -S`, `netstat -s`: errors, bad checksums), a proxy or balancer that mixes connections. "
        "Followers may have been given the same: see that their copies can be read (kafka-dump-log.sh --deep-iteration) before "
        "one of them leads.",
    ),
}
"""What a broker may have that the others have not."""
