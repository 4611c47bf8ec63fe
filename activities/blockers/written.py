"""How fast what lags is written meanwhile: who restarts in the middle of a bulk load may never catch up with it.

For people only, where replicas lag.
"""

import asyncio
from collections import Counter, defaultdict

from activities.ports.kafka import KafkaAdmin
from domain.diagnosis.causes.bulk_loads import Pace
from domain.observed.observation import PartitionFault
from domain.records import ClusterRecord

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
