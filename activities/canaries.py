"""`try_canaries`: at one broker that has been restarted, what clients do, under reserved names; and all of it removed again.

    1. look again: the fence holds, and fresh decisions are this very step              (else: blocked, nothing touched)
    2. remove what earlier attempts at this broker left, and migrations that are gone; see it gone
    3. on the way forward, where the policy says so, one after the other, each seen through Kafka at this broker and in
       ZooKeeper: a topic, messages, a config of it, an ACL, a SCRAM credential         (the first that fails ends it)
    4. remove it; see it gone, in both stores
    5. take the debt from the node's mark

The mark owes since before the restart (`marking`), and since before anything was made: so whoever dies between two lines leaves
what the next attempt removes in 2, and decisions come back to this broker, on the way back too, until 5. In dual write the
quorum acknowledges a change before ZooKeeper gets it: what is seen in ZooKeeper, both have.
"""

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import quote

from temporalio import activity

from activities.assessing import answer_or_silence, cluster_of, ensure_not_superseded, why_not_this_step
from activities.heartbeat import heartbeating
from activities.node_files import read_mark, write_mark
from activities.observe import Ports
from activities.ports import DeleteZnode, KafkaClient, NodeDriver, ZooKeeperTree
from domain.canaries import WHAT_TO_DO, Canary, canary_of, pause_topic_of, to_remove
from domain.cluster import NodeSpec
from domain.contracts import ActivityName, StepOutcome, StepRequest
from domain.errors import Permanent, Transient, Unsafe
from domain.properties import ENCODING, parse

ONE_REPLICA = {"min.insync.replicas": "1"}
"""The default of most clusters is two, and the canary has one."""
CONFIG, CONFIG_VALUE = "retention.ms", "3600000"
AUTHORIZER = "authorizer.class.name"
USUAL_PAUSE = 0.1
"""Seconds between two looks at what was made, at most."""


@dataclass(frozen=True)
class Perch:
    """One broker, one attempt. `deadline`: of all waits, by `time.monotonic`."""

    request: StepRequest
    ports: Ports
    client: KafkaClient
    tree: ZooKeeperTree
    name: str
    has_authorizer: bool
    deadline: float

    @property
    def broker(self) -> int:
        return self.request.step.node

    async def allowed(self) -> KafkaClient:
        """The client, for an effect: the fence is asked right before."""
        await ensure_not_superseded(self.request, self.ports)
        return self.client

    async def until(self, is_so: Callable[[], Awaitable[bool]], what: str) -> None:
        """Stores learn of a change later: look until it is so. `Transient` at the deadline."""
        while not await is_so():
            if time.monotonic() > self.deadline:
                raise Transient(f"{what}: not seen in {self.request.policy.restart_deadline.total_seconds():g} s")
            await asyncio.sleep(min(USUAL_PAUSE, self.request.policy.poll_interval.total_seconds()))

    async def znode(self, path: str) -> bytes | None:
        found = await self.tree.get(path)
        return None if found is None else found.data

    async def config_in_zookeeper(self, path: str, name: str) -> str | None:
        """A config of an entity; `None` also where there is no such entity."""
        data = await self.znode(path)
        if not data:
            return None
        try:
            configs = json.loads(data)["config"]
        except (ValueError, KeyError, TypeError) as error:
            raise Transient(f"{path} in ZooKeeper holds what Kafka does not write") from error
        return str(configs[name]) if name in configs else None


class Canaries:
    """The activity that does what clients do."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ActivityName.TRY_CANARIES)
    async def try_canaries(self, request: StepRequest) -> StepOutcome:
        """Try one broker, as the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_of(request, self._ports)
            node = cluster.spec.node(request.step.node)
            driver = self._ports.drivers.driver(node)
            mark, silent = await answer_or_silence(read_mark(driver, node.properties_file))
            blocked: str | None = silent or None
            if mark is not None and mark.are_canaries_due:
                blocked = await why_not_this_step(request, self._ports) or await self._try(request, node, driver)
            seconds = time.monotonic() - begun
            return StepOutcome(is_done=blocked is None, blocked=blocked, seconds=seconds, attempt=activity.info().attempt)

    async def _try(self, request: StepRequest, node: NodeSpec, driver: NodeDriver) -> str | None:
        """Why it does not count as tried; `None` once nothing is left and the mark owes nothing."""
        cluster = await cluster_of(request, self._ports)
        client, silent = await answer_or_silence(self._ports.kafka.open_client(cluster))
        if client is None:
            return silent
        try:
            tree, silent = await answer_or_silence(self._ports.zookeepers.connect(cluster))
            if tree is None:
                return silent
            try:
                perch = await self._perch(request, node, driver, client, tree)
                failed = await _first_failure(perch)
            finally:
                await tree.close()
        finally:
            await client.close()
        return failed or await self._settle(request, node, driver)

    async def _perch(
        self, request: StepRequest, node: NodeSpec, driver: NodeDriver, client: KafkaClient, tree: ZooKeeperTree
    ) -> Perch:
        file = await driver.read_file(node.properties_file)
        properties = parse(file.content.decode(ENCODING)) if file is not None else {}
        return Perch(
            request=request,
            ports=self._ports,
            client=client,
            tree=tree,
            name=canary_of(request.migration_id, node.id),
            has_authorizer=bool(properties.get(AUTHORIZER, "").strip()),
            deadline=time.monotonic() + request.policy.restart_deadline.total_seconds(),
        )

    async def _settle(self, request: StepRequest, node: NodeSpec, driver: NodeDriver) -> str | None:
        """Take the debt from the mark as it is now: another roll of this node may have written its own since."""
        await ensure_not_superseded(request, self._ports)
        mark, file = await read_mark(driver, node.properties_file), await driver.read_file(node.properties_file)
        if mark is None or file is None:
            raise Unsafe(f"{node.properties_file} or its mark does not exist any more. Restore it.")
        await write_mark(driver, node.properties_file, mark.model_copy(update={"are_canaries_due": False}), file)
        return None


async def _first_failure(perch: Perch) -> str | None:
    """Whatever fails, what was made is removed; what cannot be is told as well."""
    failed = await _attempt(Canary.REMOVAL, _remove, perch)
    if failed is not None or not perch.request.policy.canaries or perch.request.revert is not None:
        return failed
    for canary, attempt in CANARIES.items():
        failed = await _attempt(canary, attempt, perch)
        if failed is not None:
            break
    left = await _attempt(Canary.REMOVAL, _remove, perch)
    return "\n".join(why for why in (failed, left) if why is not None) or None


async def _attempt(canary: Canary, attempt: Callable[[Perch], Awaitable[None]], perch: Perch) -> str | None:
    try:
        await attempt(perch)
    except (Transient, Permanent) as error:
        return f"canary {canary} failed at broker {perch.broker} on {perch.name}: {error}. {WHAT_TO_DO[canary]}"
    return None


async def _try_topic(perch: Perch) -> None:
    name, broker = perch.name, perch.broker
    await (await perch.allowed()).create_topic(broker, name, [[broker]], ONE_REPLICA)

    async def is_led() -> bool:
        led = await perch.client.led(name, broker)
        return led is not None and led.leaders == {0: broker}

    async def is_in_zookeeper() -> bool:
        return await perch.znode(_topic_znode(name)) is not None

    await perch.until(is_led, f"topic {name}, led by this broker, as this broker says")
    await perch.until(is_in_zookeeper, f"{_topic_znode(name)} in ZooKeeper")


async def _try_messages(perch: Perch) -> None:
    """A value of its own: what an earlier attempt wrote is not taken for it."""
    name, broker, value = perch.name, perch.broker, secrets.token_hex(16).encode()
    offset = await (await perch.allowed()).produce(broker, name, 0, value)

    async def is_read() -> bool:
        return value in await perch.client.fetch(broker, name, 0, offset)

    await perch.until(is_read, f"the message at offset {offset} of {name}-0")


async def _try_config(perch: Perch) -> None:
    name, broker = perch.name, perch.broker
    await (await perch.allowed()).set_topic_config(broker, name, CONFIG, CONFIG_VALUE)

    async def is_told() -> bool:
        return await perch.client.topic_config(broker, name, CONFIG) == CONFIG_VALUE

    async def is_in_zookeeper() -> bool:
        return await perch.config_in_zookeeper(f"/config/topics/{name}", CONFIG) == CONFIG_VALUE

    await perch.until(is_told, f"{CONFIG}={CONFIG_VALUE} of {name}, as this broker says")
    await perch.until(is_in_zookeeper, f"{CONFIG}={CONFIG_VALUE} in /config/topics/{name} in ZooKeeper")


async def _try_acl(perch: Perch) -> None:
    name, broker = perch.name, perch.broker
    if await perch.client.denied_groups(broker) is None:
        if perch.has_authorizer:
            raise Transient("the broker says that it has no authorizer, and its file names one")
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
    Canary.MESSAGES: _try_messages,
    Canary.CONFIG: _try_config,
    Canary.ACL: _try_acl,
    Canary.SCRAM: _try_scram,
}
"""In this order; the topic is what the next two are tried on."""


async def _remove(perch: Perch) -> None:
    """All that is there of what this step may remove; then see that it is gone, at this broker and in ZooKeeper.

    Asked for by name as well as by list: a broker may not have learnt yet of what a dead attempt made a moment ago.
    """
    broker = perch.broker
    own = {perch.name, pause_topic_of(perch.request.migration_id, broker)}
    for topic in sorted({*_ours(perch, await perch.client.topics(broker)), *own}):
        await (await perch.allowed()).delete_topic(broker, topic)
    for group in _ours(perch, await perch.client.denied_groups(broker) or ()):
        await (await perch.allowed()).forget_group(broker, group)
    for user in _ours(perch, await perch.client.scram_users(broker)):
        await (await perch.allowed()).take_scram(broker, user)
    await perch.until(lambda: _is_gone_at_broker(perch), f"the end of {perch.name}, as this broker says")
    await perch.until(lambda: _is_gone_in_zookeeper(perch), f"the end of {perch.name} in ZooKeeper")


def _ours(perch: Perch, names: tuple[str, ...]) -> tuple[str, ...]:
    return to_remove(names, perch.request.migration_id, perch.broker)


async def _is_gone_at_broker(perch: Perch) -> bool:
    client, broker = perch.client, perch.broker
    found = (*await client.topics(broker), *(await client.denied_groups(broker) or ()), *await client.scram_users(broker))
    return not _ours(perch, found)


async def _is_gone_in_zookeeper(perch: Perch) -> bool:
    """A deleted topic is there until every replica is. Of a user Kafka may leave a znode without any config: ours to remove."""
    for folder in FOLDERS:
        left = _ours(perch, await perch.tree.children(folder) or ())
        for name in left if folder == USERS else ():
            await _remove_empty_user(perch, f"{folder}/{name}")
        if left:
            return False
    return True


async def _remove_empty_user(perch: Perch, path: str) -> None:
    found = await perch.tree.get(path)
    if found is not None and not json.loads(found.data or b"{}").get("config"):
        await ensure_not_superseded(perch.request, perch.ports)
        await perch.tree.commit([DeleteZnode(path, found.version)])


USERS = "/config/users"
FOLDERS = ("/brokers/topics", "/admin/delete_topics", "/config/topics", "/kafka-acl/Group", USERS)
"""Where ZooKeeper keeps what canaries make."""


def _topic_znode(name: str) -> str:
    return f"/brokers/topics/{name}"


def _acl_znode(name: str) -> str:
    return f"/kafka-acl/Group/{name}"


def _user_znode(name: str) -> str:
    return f"{USERS}/{quote(name, safe='')}"
