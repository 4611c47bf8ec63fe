"""Before the start: whether what canaries make could be made, and removed again. Nothing is made, and nothing removed.

What has to be possible is asked for, of a name that nobody has: Kafka says first whether we may, and then that there is none.
"""

import secrets
from collections.abc import Awaitable, Callable

from activities.ports.kafka import KafkaClient
from activities.ports.ports import Ports
from domain.canaries import CONFIG, CONFIG_VALUE, LET_PASS, PREFIX, is_anything_made
from domain.errors import Absent, Obstacle, Permanent, Transient
from domain.policy import MigrationPolicy
from domain.records import ClusterRecord

Asked = Callable[[], Awaitable[object]]
DELETABLE = "delete.topic.enable"


async def refused_canaries(cluster: ClusterRecord, policy: MigrationPolicy, ports: Ports) -> tuple[str, ...]:
    """What would be refused, in Kafka's words. Nothing where the policy has nothing made."""
    if not is_anything_made(policy):
        return ()
    client = await ports.kafka.open_client(cluster)
    try:
        undeletable = [
            f"{DELETABLE} is false at {cluster.spec.node_name(broker.id)}"
            for broker in cluster.spec.brokers
            if await client.broker_config(broker.id, DELETABLE) == "false"
        ]
        asked = await _asked_for(client, cluster.spec.brokers[0].id, policy)
        refused = [await _refusal(what, may) for what, may in asked.items()]
        return (*undeletable, *(why for why in refused if why is not None))
    finally:
        await client.close()


async def _asked_for(client: KafkaClient, broker: int, policy: MigrationPolicy) -> dict[str, Asked]:
    name = f"{PREFIX}{secrets.token_hex(8)}"
    asked: dict[str, Asked] = {}
    if policy.canaries:
        has_authorizer = await client.denied_groups(broker) is not None
        asked |= {"change configs of topics": lambda: client.set_topic_config(broker, name, CONFIG, CONFIG_VALUE)}
        asked |= {"read from topics": lambda: client.fetch(broker, name, 0, 0)}
        asked |= {"change ACLs": lambda: client.forget_group(broker, name)} if has_authorizer else {}
        asked |= {"change users' credentials": lambda: client.take_scram(broker, name)}
    return asked | {
        "create topics": lambda: client.create_topic(broker, name, [[broker]], {}, is_trial=True),
        "write to topics": lambda: client.produce(broker, name, 0, b""),
        "delete topics": lambda: client.delete_topic(broker, name),
    }


async def _refusal(what: str, asked: Asked) -> str | None:
    try:
        await asked()
    except Permanent as error:
        return f"{what}: {error}"
    except Absent:
        return None
    except Transient as error:
        if error.obstacle is Obstacle.POLICY:
            return f"{what}: {error}. {LET_PASS}"
        raise
    return None
