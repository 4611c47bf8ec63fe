"""Where a JVM stands that does not get on with its start, or its end, by the stacks of the threads that do that; and what a
broker's threads are at that are there for requests, where it answers none. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.diagnosis.logs.complaints import OF_JAVA, OF_KAFKA_AND_JAVA

HOOK = "kafka-shutdown-hook"
"""While it works, whoever took the signal waits for it."""
OF_THE_NODE = re.compile(OF_JAVA.pattern + r"|(?:kafka|io\.netty|org\.apache\.(?:kafka|zookeeper))\.")
ON_A_SOCKET = re.compile(r"java\.net\.(?:\w*Socket|Inet)|sun\.nio\.ch\.(?:Net|NioSocketImpl|Socket\w+)\.")
"""A thread that waits in the kernel counts as one that runs: its innermost place tells."""

IN_NAMES = re.compile(r"java\.net\.Inet\w+\.(?:lookupAllHostAddr|getHostByAddr)$")
UNRESOLVED = ": it waits for a name to be resolved (`getent hosts NAME` there, /etc/resolv.conf)"


@dataclass(frozen=True)
class Thread:
    """`state`: of `java.lang.Thread.State`. `places` of its stack: the innermost first."""

    state: str
    places: Sequence[str]


@dataclass(frozen=True)
class Standing:
    """One sentence without a stop; empty where they are at rest, or at work. `is_of_plugin`: whether it stands in a place that
    is neither Kafka's nor Java's. `fix`: what to do about what a broker's own threads are at, where that is known."""

    words: str
    is_of_plugin: bool
    fix: str = ""


DECIDES = re.compile(r"controller-event-thread$|[\w-]+-event-handler$")
"""The one thread that does what a controller decides, that copies and writes to ZooKeeper, or that registers a broker."""
AWAITS_EVENTS = re.compile(r"\$EventHandler\.handleEvents$|\$ControllerEventThread\.doWork$|\.ShutdownableThread\.run$")
ASKS_ZOOKEEPER = re.compile(r"kafka\.zookeeper\.ZooKeeperClient\.")
OF_REQUESTS = re.compile(r"data-plane-kafka-(network-thread|request-handler)-")
"""As Kafka names them (SocketServer, KafkaRequestHandlerPool)."""
CONVERTS = re.compile(r"LazyDownConversionRecords|[.$]downConvert|RecordsUtil\.convert")
CONVERTS_FIX = (
    "Find the old clients: `ss -tnp` there has their addresses. "
    "kafka.server:type=BrokerTopicMetrics,name=FetchMessageConversionsPerSec counts by topic, and "
    "kafka.network:type=RequestMetrics,name=RequestsPerSec,request=Fetch by version. Stop or upgrade them, or set "
    "message.downconversion.enable=false for that topic (kafka-configs.sh --alter --entity-type topics): they get an error "
    "then, and all others their answers. Clients before 0.11 (Java), Sarama with an old Version, or librdkafka with "
    "api.version.request=false have each message converted on the threads that answer everyone."
)
PLUGIN_FIX = (
    "Check in its own log and settings what that plug-in of the broker (an authorizer, an interceptor, a reporter, a remote "
    "storage) waits for or works at, and restore the service that it asks. `jstack PID`, twice within seconds, shows whether "
    "it moves."
)


def at_work_in(threads: Mapping[str, Thread]) -> Standing:
    """What half of its network threads, or of its request handlers, are at; empty where that is nothing out of the way."""
    for kind in ("network-thread", "request-handler"):
        of_kind = [thread for name, thread in threads.items() if (found := OF_REQUESTS.match(name)) and found[1] == kind]
        converting = [thread for thread in of_kind if any(map(CONVERTS.search, thread.places))]
        if converting and 2 * len(converting) >= len(of_kind):
            words = f"{len(converting)} of its {len(of_kind)} {kind}s convert records for clients of an old version"
            return Standing(words, is_of_plugin=False, fix=CONVERTS_FIX)
        foreign = [thread for thread in of_kind if _is_foreign(thread)]
        if foreign and 2 * len(foreign) >= len(of_kind):
            place = next(place for place in foreign[0].places if not OF_THE_NODE.match(place))
            return Standing(f"{len(foreign)} of its {len(of_kind)} {kind}s are in {place}", is_of_plugin=True, fix=PLUGIN_FIX)
    return Standing("", is_of_plugin=False)


def where_it_stands(threads: Mapping[str, Thread], *, is_deadlocked: bool) -> Standing:
    threads = {name: thread for name, thread in threads.items() if not OF_REQUESTS.match(name)}
    told = {name: thread for name, thread in threads.items() if _stands(thread) and not _is_at_rest(name, thread, threads)}
    dead = ["its JVM has found a deadlock between its threads"] if is_deadlocked else []
    shown = list(told.items())[:2]
    words = "; ".join([*dead, *(_standing(name, thread.places) for name, thread in shown)])
    return Standing(words, any(_is_foreign(thread) for _, thread in shown))


def _stands(thread: Thread) -> bool:
    """One that runs is at work, unless it asks for a name, or a plug-in waits for another's answer in it."""
    if not thread.places or thread.state != "RUNNABLE":
        return bool(thread.places)
    is_on_a_socket = ON_A_SOCKET.match(thread.places[0]) is not None
    return IN_NAMES.match(thread.places[0]) is not None or (is_on_a_socket and _is_foreign(thread))


def _is_foreign(thread: Thread) -> bool:
    return not all(OF_THE_NODE.match(place) for place in thread.places)


def _is_at_rest(name: str, thread: Thread, threads: Mapping[str, Thread]) -> bool:
    """Of who decides all that is no plug-in's, and no question to ZooKeeper: it has its own work."""
    if DECIDES.match(name):
        first = next((place for place in thread.places if not OF_JAVA.match(place)), "")
        asks = any(map(ASKS_ZOOKEEPER.match, thread.places))
        return AWAITS_EVENTS.search(first) is not None or not (asks or _is_foreign(thread))
    if any(place.endswith(".awaitShutdown") for place in thread.places):
        return True
    return name != HOOK and HOOK in threads


def _standing(name: str, places: Sequence[str]) -> str:
    """The innermost place, who has called it that is not Java, and a plug-in above that."""
    callers = [place for place in places if not OF_JAVA.match(place)][:1]
    callers += [place for place in places if not OF_KAFKA_AND_JAVA.match(place)][:1]
    called = " from ".join(dict.fromkeys(place for place in callers if place != places[0]))
    asks = UNRESOLVED if IN_NAMES.match(places[0]) else ""
    return f"its thread {name} is in {places[0]}" + (f", called from {called}" if called else "") + asks
