"""What clients do, each by itself, seen through Kafka at this broker and in ZooKeeper. What is made here, others remove."""

import secrets
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from activities.canaries.canary_broker import Perch
from activities.observing.zookeeper_view import ACL_GROUPS, TOPICS, USER_CONFIGS
from domain.canaries import CONFIG, CONFIG_VALUE, Canary
from domain.errors import Obstacle, Permanent, Transient

ONE_REPLICA = {"min.insync.replicas": "1"}
"""The default of most clusters is two, and the canary has one."""


async def _try_topic(perch: Perch) -> None:
    name, broker = perch.name, perch.broker
    await (await perch.allowed()).create_topic(broker, name, [[broker]], ONE_REPLICA)

    async def is_led() -> bool:
        led = await perch.client.led(name, broker)
        return led is not None and led.leaders == {0: broker}

    async def is_in_zookeeper() -> bool:
        return await perch.znode(_topic_znode(name)) is not None

    await _until(perch, is_led, f"topic {name}, led by this broker, as this broker says")
    await _until(perch, is_in_zookeeper, f"{_topic_znode(name)} in ZooKeeper")


async def _until(perch: Perch, is_so: Callable[[], Awaitable[bool]], what: str) -> None:
    """As `Perch.until`; ends at once where the topic was there, and is not any more."""
    was_there = False

    async def is_so_of_what_is_there() -> bool:
        nonlocal was_there
        if await is_so():
            return True
        is_there = await _is_topic_there(perch)
        if was_there and not is_there:
            raise _deleted(perch)
        was_there = was_there or is_there
        return False

    await perch.until(is_so_of_what_is_there, what)


def _on_the_topic(attempt: Callable[[Perch], Awaitable[None]]) -> Callable[[Perch], Awaitable[None]]:
    """Of what is tried on a topic that was there: where it fails because that is gone, no broker is to blame."""

    async def attempt_on_it(perch: Perch) -> None:
        try:
            await attempt(perch)
        except (Transient, Permanent) as error:
            if await _is_topic_there(perch):
                raise
            raise _deleted(perch) from error

    return attempt_on_it


async def _is_topic_there(perch: Perch) -> bool:
    is_known = await perch.client.led(perch.name, perch.broker) is not None
    return is_known or await perch.znode(_topic_znode(perch.name)) is not None


def _deleted(perch: Perch) -> Transient:
    words = f"topic {perch.name} was created and seen, and was deleted from outside before it was tried"
    return Transient(words, obstacle=Obstacle.DELETED)


async def _try_messages(perch: Perch) -> None:
    """A value of its own: what an earlier attempt wrote is not taken for it."""
    name, broker, value = perch.name, perch.broker, secrets.token_hex(16).encode()
    offset = await (await perch.allowed()).produce(broker, name, 0, value)

    async def is_read() -> bool:
        return value in await perch.client.fetch(broker, name, 0, offset)

    await _until(perch, is_read, f"the message at offset {offset} of {name}-0")


async def _try_config(perch: Perch) -> None:
    name, broker = perch.name, perch.broker
    await (await perch.allowed()).set_topic_config(broker, name, CONFIG, CONFIG_VALUE)

    async def is_told() -> bool:
        return await perch.client.topic_config(broker, name, CONFIG) == CONFIG_VALUE

    async def is_in_zookeeper() -> bool:
        return await perch.config_in_zookeeper(f"/config/topics/{name}", CONFIG) == CONFIG_VALUE

    await _until(perch, is_told, f"{CONFIG}={CONFIG_VALUE} of {name}, as this broker says")
    await _until(perch, is_in_zookeeper, f"{CONFIG}={CONFIG_VALUE} in /config/topics/{name} in ZooKeeper")


async def _try_acl(perch: Perch) -> None:
    name, broker = perch.name, perch.broker
    if await perch.client.denied_groups(broker) is None:
        if perch.has_authorizer:
            raise Transient("the broker reports that it has no authorizer, and its file names one")
        return
    await (await perch.allowed()).deny_group(broker, name)

    async def is_told() -> bool:
        return name in (await perch.client.denied_groups(broker) or ())

    async def is_in_zookeeper() -> bool:
        return await perch.znode(_acl_znode(name)) is not None

    await perch.until(is_told, f"the ACL of group {name}, as this broker says")
    await perch.until(is_in_zookeeper, f"{_acl_znode(name)} in ZooKeeper")


async def _try_scram(perch: Perch) -> None:
    name, broker = perch.name, perch.broker
    await (await perch.allowed()).give_scram(broker, name)

    async def is_told() -> bool:
        return name in await perch.client.scram_users(broker)

    async def is_in_zookeeper() -> bool:
        return await perch.config_in_zookeeper(_user_znode(name), "SCRAM-SHA-512") is not None

    await perch.until(is_told, f"the SCRAM credential of user {name}, as this broker says")
    await perch.until(is_in_zookeeper, f"{_user_znode(name)} in ZooKeeper")


CANARIES: dict[Canary, Callable[[Perch], Awaitable[None]]] = {
    Canary.TOPIC: _try_topic,
    Canary.MESSAGES: _on_the_topic(_try_messages),
    Canary.CONFIG: _on_the_topic(_try_config),
    Canary.ACL: _try_acl,
    Canary.SCRAM: _try_scram,
}
"""In this order; the topic is what the next two are tried on."""


def _topic_znode(name: str) -> str:
    return f"{TOPICS}/{name}"


def _acl_znode(name: str) -> str:
    return f"{ACL_GROUPS}/{name}"


def _user_znode(name: str) -> str:
    return f"{USER_CONFIGS}/{quote(name, safe='')}"
