"""What canaries have made is removed, and seen to be gone, at the broker and in ZooKeeper; or it is told what is left.

Topics, ACLs and users are removed each by themselves: one kind that cannot be removed keeps no other from it.
"""

from collections.abc import Awaitable, Callable, Iterable

from activities.canaries.canary_broker import Perch, configs_in
from activities.claims import ensure_not_superseded
from activities.observing.zookeeper_view import ACL_GROUPS, TOPICS, USER_CONFIGS
from activities.ports.zookeeper import DeleteZnode, ZooKeeperTree
from domain.canaries import Leftovers, pause_topic_of
from domain.errors import KeeperlessError, Obstacle, Permanent, Transient, obstacle_of

FOLDERS = (TOPICS, "/admin/delete_topics", "/config/topics", ACL_GROUPS, USER_CONFIGS)
"""Where ZooKeeper keeps what canaries make."""


async def remove(perch: Perch) -> None:
    """All that is there of what this attempt may remove. `Permanent`: we may not, and nothing else is the matter."""
    failed: list[KeeperlessError] = []
    for removal in (_remove_topics, _remove_groups, _remove_users):
        try:
            await removal(perch)
        except (Transient, Permanent) as error:
            failed.append(error)
    if failed:
        told = "; ".join(dict.fromkeys(map(str, failed)))
        if all(isinstance(error, Permanent) for error in failed):
            raise Permanent(told)
        raise Transient(told, obstacle=Obstacle.QUOTA if Obstacle.QUOTA in map(obstacle_of, failed) else None)
    await perch.until(lambda: _is_gone_at_broker(perch), f"the end of {perch.name}, as this broker says")
    tree = perch.tree
    if tree is not None:
        await perch.until(lambda: _is_gone_in_zookeeper(perch, tree), f"the end of {perch.name} in ZooKeeper")


async def left_of(perch: Perch) -> Leftovers:
    """What this attempt should have removed and is there; where it cannot be looked up, its own names: they may be."""
    own, pause = (perch.name,), pause_topic_of(perch.request.migration_id, perch.broker)
    return Leftovers(
        topics=await _found(perch, _topics, (*own, pause)),
        groups=await _found(perch, _groups, own),
        users=await _found(perch, _users, own),
    )


async def _found(perch: Perch, look: Callable[[Perch], Awaitable[Iterable[str]]], own: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(sorted({*await look(perch)}))
    except (Transient, Permanent):
        return own


async def _topics(perch: Perch) -> tuple[str, ...]:
    in_zookeeper = (await perch.tree.children(TOPICS) if perch.tree is not None else None) or ()
    return perch.ours((*await perch.client.topics(perch.broker), *in_zookeeper))


async def _groups(perch: Perch) -> tuple[str, ...]:
    return perch.ours(await perch.client.denied_groups(perch.broker) or ())


async def _users(perch: Perch) -> tuple[str, ...]:
    return perch.ours(await perch.client.scram_users(perch.broker))


async def _remove_topics(perch: Perch) -> None:
    """Asked for by name as well as by list: a broker may not have learnt yet of what a dead attempt made a moment ago."""
    own = {perch.name, pause_topic_of(perch.request.migration_id, perch.broker)}
    for topic in sorted({*perch.ours(await perch.client.topics(perch.broker)), *own}):
        await (await perch.allowed()).delete_topic(perch.broker, topic)


async def _remove_groups(perch: Perch) -> None:
    for group in await _groups(perch):
        await (await perch.allowed()).forget_group(perch.broker, group)


async def _remove_users(perch: Perch) -> None:
    for user in await _users(perch):
        await (await perch.allowed()).take_scram(perch.broker, user)


async def _is_gone_at_broker(perch: Perch) -> bool:
    client, broker = perch.client, perch.broker
    found = (*await client.topics(broker), *(await client.denied_groups(broker) or ()), *await client.scram_users(broker))
    return not perch.ours(found)


async def _is_gone_in_zookeeper(perch: Perch, tree: ZooKeeperTree) -> bool:
    """A deleted topic is there until every replica is. Of a user Kafka may leave a znode without any config: ours to remove."""
    for folder in FOLDERS:
        left = perch.ours(await tree.children(folder) or ())
        for name in left if folder == USER_CONFIGS else ():
            await _remove_empty_user(perch, tree, f"{folder}/{name}")
        if left:
            return False
    return True


async def _remove_empty_user(perch: Perch, tree: ZooKeeperTree, path: str) -> None:
    found = await tree.get(path)
    if found is not None and not (found.data and configs_in(path, found.data)):
        await ensure_not_superseded(perch.request, perch.ports)
        await tree.commit([DeleteZnode(path, found.version)])
