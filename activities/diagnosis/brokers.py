"""What is asked of brokers for people only: who answers by itself, and how fast what lags is written.

Asked where Kafka as a whole gives no answer or replicas lag: one broker may keep all the rest from it, and another one may
answer in its place. Each is asked once, for next to nothing.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from activities.observing.addresses import Addresses
from activities.observing.in_time import in_time
from activities.ports.kafka import KafkaAdmin
from domain.cluster import host_and_port
from domain.diagnosis.causes.hints import Asked, Pace
from domain.errors import Obstacle, Transient
from domain.observed.observation import Observation, PartitionFault
from domain.records import ClusterRecord

ASK_SECONDS = 2.0
"""A broker that is well answers within milliseconds; what its machine says of it has to come after."""
AT_ONCE = 16
"""Each takes a thread that long."""


def is_kafka_mute(observation: Observation) -> bool:
    """Whether nobody knows yet who does not answer, or why. A refusal is an answer, and so are lists that differ."""
    told = next((part for part in observation.unanswered if part.what == "kafka"), None)
    if told is None or told.is_refused or told.obstacle not in {None, Obstacle.LATE}:
        return False
    return told.broker_id is None or told.obstacle is Obstacle.LATE


async def ask_brokers(
    kafka: KafkaAdmin, cluster: ClusterRecord, addresses: Mapping[int, Addresses], silent: list[str]
) -> dict[int, Asked]:
    """Each at its listener for clients such as we are. Of who is not among the answers nothing is known: there was no time, or
    it has no such listener."""
    wanted = dict(_of_clients(cluster.spec.kafka.bootstrap_servers, addresses))
    free = asyncio.Semaphore(AT_ONCE)
    found: dict[int, Asked] = {}

    async def ask(broker_id: int, address: str) -> None:
        async with free:
            try:
                await kafka.ask_broker(cluster, broker_id, address, ASK_SECONDS)
            except Transient as error:
                found[broker_id] = Asked(address, str(error), error.obstacle)
            else:
                found[broker_id] = Asked(address)

    async def ask_all() -> None:
        await asyncio.gather(*(ask(broker_id, address) for broker_id, address in wanted.items()))

    await in_time("each broker by itself", ask_all, silent, None)
    return found


def _of_clients(servers: tuple[str, ...], addresses: Mapping[int, Addresses]) -> Iterator[tuple[int, str]]:
    """By broker id. `servers` tell which listener is for us: by an address of theirs, or, where they have names of their own,
    by a port."""
    ports = {host_and_port(server)[1] for server in servers}
    places = [(name, address) for known in addresses.values() for name, address in known.items()]
    ours = {name for name, address in places if address in servers}
    ours = ours or {name for name, address in places if host_and_port(address)[1] in ports}
    for broker_id, known in addresses.items():
        if found := [address for name, address in known.items() if name in ours]:
            yield broker_id, found[0]


SECONDS_BETWEEN = 1.0
MOST_ASKED = 1000
"""Of the partitions that lag."""


async def written(kafka: KafkaAdmin, cluster: ClusterRecord, lagging: tuple[PartitionFault, ...]) -> tuple[Pace, ...]:
    """Topics of those that grow at their leaders, the fastest first."""
    asked: dict[int, list[str]] = defaultdict(list)
    for fault in lagging[:MOST_ASKED]:
        if fault.leader is not None:
            asked[fault.leader].append(fault.partition)
    if not asked:
        return ()
    loop = asyncio.get_running_loop()
    before, began = await kafka.sizes(cluster, asked), loop.time()
    await asyncio.sleep(SECONDS_BETWEEN)
    now, seconds = await kafka.sizes(cluster, asked), loop.time() - began
    grown = Counter({name: now[name] - before[name] for name in now if name in before and now[name] > before[name]})
    topics = Counter[str]()
    for name, more in grown.items():
        topics[name.rpartition("-")[0]] += more
    return tuple(Pace(topic=topic, bytes_per_second=more / seconds) for topic, more in topics.most_common())
