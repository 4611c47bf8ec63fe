"""Topics that a controller was writing to ZooKeeper when it died, and that no controller of Kafka's can finish.

Each znode of a new topic is written in a transaction of its own (ZkTopicMigrationClient.createTopic). Where the topic is there
and a partition's state is not, the next leader's comparison sets the state that does not exist, fails, and tries again without
end: dual write never begins (seen on 3.9.2: "Encountered ZooKeeper error during event SyncKRaftMetadataEvent. Will retry.").

So while every controller is dead, the missing states are created, as a ZooKeeper controller would make them of a new partition:
the first replica leads, all are in sync. The next leader writes over them what its log says. Nothing is ever removed: should
no leader come, ZooKeeper's own controller would have created the very same.
"""

import json
from collections.abc import Iterable

from activities.observing.epochs import TOPICS_AT_ONCE, Rule, partitions_of, replicas_in
from activities.observing.zookeeper_view import CONTROLLER_EPOCH, TOPICS
from activities.ports.zookeeper import CreateZnode, SetZnode, Znode, ZooKeeperTree, present

PARTITIONS_AT_ONCE = 500
"""Of one topic in one transaction, which must stay below a megabyte (jute.maxbuffer)."""


async def complete_half_written(tree: ZooKeeperTree, rule: Rule) -> tuple[str, ...]:
    """Create the states that topics lack; the topics' names.

    `rule`: as it is while no controller lives. Each transaction depends on its epoch, which the election of any controller
    raises: an attempt that was paused here cannot touch what another controller has begun to write.
    """
    completed: list[str] = []
    epoch = rule.epoch
    names = await tree.children(TOPICS) or ()
    if epoch is None or not rule.is_krafts:
        return ()
    for start in range(0, len(names), TOPICS_AT_ONCE):
        some = names[start : start + TOPICS_AT_ONCE]
        for name, topic in zip(some, await tree.get_many([f"{TOPICS}/{name}" for name in some]), strict=True):
            for changes in await _missing(tree, name, topic, rule.zookeeper_epoch):
                # The same data: nothing but the version changes, and only ours counts on from here.
                guard = SetZnode(CONTROLLER_EPOCH, epoch.data, epoch.version + len(completed))
                if not await tree.commit([guard, *changes]):
                    return _once(completed)
                completed.append(name)
    return _once(completed)


async def _missing(tree: ZooKeeperTree, name: str, topic: Znode | None, controller_epoch: int) -> list[list[CreateZnode]]:
    """What has to be created, parents first, transaction by transaction."""
    folder = f"{TOPICS}/{name}/partitions"
    numbers = partitions_of(topic)
    states = await tree.get_many([f"{folder}/{number}/state" for number in numbers])
    lacking = [n for n, state in zip(numbers, states, strict=True) if state is None and replicas_in(topic, n)]
    if not lacking:
        return []
    parents = [folder, *(f"{folder}/{number}" for number in lacking)]
    there = await present(tree, parents)
    found: list[list[CreateZnode]] = []
    for start in range(0, len(lacking), PARTITIONS_AT_ONCE):
        some = lacking[start : start + PARTITIONS_AT_ONCE]
        paths = [folder] * (start == 0) + [f"{folder}/{number}" for number in some]
        changes = [CreateZnode(path, b"", f"{TOPICS}/{name}") for path in paths if path not in there]
        changes += [
            CreateZnode(f"{folder}/{n}/state", _new_state(replicas_in(topic, n), controller_epoch), f"{TOPICS}/{name}")
            for n in some
        ]
        found.append(changes)
    return found


def _new_state(replicas: tuple[int, ...], controller_epoch: int) -> bytes:
    """`TopicPartitionStateZNode` of kafka.zk.ZkData."""
    state = {
        "controller_epoch": controller_epoch,
        "leader": replicas[0],
        "version": 1,
        "leader_epoch": 0,
        "isr": list(replicas),
    }
    return json.dumps(state).encode()


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
