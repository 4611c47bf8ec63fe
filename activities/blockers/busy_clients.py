"""Which clients ask ZooKeeper most: what keeps an ensemble from its work may be none of Kafka's.

By `cons`, where that is allowed.
"""

import asyncio
import re
from collections import Counter

from activities.ports.zookeeper import ZooKeepers
from domain.cluster import servers_in
from domain.errors import Transient

SECONDS_BETWEEN = 1.0
MANY_REQUESTS, MANY_CONNECTIONS = 200.0, 50
"""A second: more than a broker or controller that is well comes to."""
MOST_NAMED = 3
CONNECTION = re.compile(r"^\s*/?(?P<client>\S+)\[\d+\]\(.*?\brecved=(?P<received>\d+)", re.MULTILINE)


async def busy_clients(zookeepers: ZooKeepers, connect: str) -> tuple[str, ...]:
    """In words, the busiest first: connections that ask much, and hosts that connect anew all the time."""
    before = await _received(zookeepers, connect)
    if not before:
        return ()
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(SECONDS_BETWEEN)
    now = await _received(zookeepers, connect)
    seconds = asyncio.get_running_loop().time() - began
    rates = Counter({client: (count - before[client]) / seconds for client, count in now.items() if client in before})
    fresh = Counter(client.rpartition(":")[0] for client in now if client not in before)
    asking = [f"{client} ({rate:.0f} requests a second)" for client, rate in rates.most_common() if rate >= MANY_REQUESTS]
    connecting = [f"{host} ({count} new connections)" for host, count in fresh.most_common() if count >= MANY_CONNECTIONS]
    return (*asking[:MOST_NAMED], *connecting[:MOST_NAMED])


async def _received(zookeepers: ZooKeepers, connect: str) -> dict[str, int]:
    """By client, over all servers."""
    told = await asyncio.gather(*(_connections(zookeepers, address) for address in servers_in(connect)))
    return {found["client"]: int(found["received"]) for answer in told for found in CONNECTION.finditer(answer)}


async def _connections(zookeepers: ZooKeepers, address: str) -> str:
    try:
        return await zookeepers.ask(address, "cons") or ""
    except Transient:
        return ""  # who does not answer is told elsewhere
