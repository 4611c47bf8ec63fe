"""Topics that a controller was writing to ZooKeeper when it died, and that no controller of Kafka's can finish.

Each znode of a new topic is written in a transaction of its own (ZkTopicMigrationClient.createTopic). Where the topic is there
and a partition's state is not, the next leader's comparison sets the state that does not exist, fails, and tries again without
end: dual write never begins (seen on 3.9.2: "Encountered ZooKeeper error during event SyncKRaftMetadataEvent. Will retry."). A
topic that is not there at all it creates. So while every controller is dead, what is half there is removed: their log has all.
"""

from activities.epochs import TOPICS_AT_ONCE, integer_in, partitions_of
from activities.ports import DeleteZnode, Znode, ZooKeeperTree
from activities.zookeeper_view import TOPICS


async def remove_half_written(tree: ZooKeeperTree) -> tuple[str, ...]:
    """Remove what is left of such topics; their names.

    Only where no partition has ever changed: the version of a state is the epoch of its partition, and would begin anew.
    """
    names = await tree.children(TOPICS) or ()
    removed: list[str] = []
    for start in range(0, len(names), TOPICS_AT_ONCE):
        some = names[start : start + TOPICS_AT_ONCE]
        for name, topic in zip(some, await tree.get_many([f"{TOPICS}/{name}" for name in some]), strict=True):
            if topic is not None and partitions_of(topic) and await _remove(tree, name, topic):
                removed.append(name)
    return tuple(removed)


async def _remove(tree: ZooKeeperTree, name: str, topic: Znode) -> bool:
    """One transaction, children first. False: there is nothing to remove, or somebody else writes."""
    folder = f"{TOPICS}/{name}/partitions"
    numbers = partitions_of(topic)
    states = await tree.get_many([f"{folder}/{number}/state" for number in numbers])
    if None not in states or not all(_is_new(state) for state in states if state is not None):
        return False
    paths = [f"{folder}/{number}/state" for number in numbers] + [f"{folder}/{number}" for number in numbers]
    paths += [folder, f"{TOPICS}/{name}"]
    found = zip(paths, await tree.get_many(paths), strict=True)
    return await tree.commit([DeleteZnode(path, znode.version) for path, znode in found if znode is not None])


def _is_new(state: Znode) -> bool:
    return state.version == 0 and integer_in(state, "leader_epoch") == 0
