"""Topics that have lost their id in ZooKeeper, in the middle of a migration."""

from collections.abc import Iterator

from domain.topic_ids import Cure, cure_of_no_id
from domain.zk_to_kraft.causes.case import Cause, Looked, cause
from domain.zk_to_kraft.situation import Claim, QuorumState
from domain.zk_to_kraft.waits import WAITS, ZkWait

MOST_TOPICS = 5


def topic_id_causes(looked: Looked) -> Iterator[Cause]:
    """Yield one cause for each of the first few topics. Once the log is final, no node asks ZooKeeper any more."""
    zookeeper = looked.observation.zookeeper
    if zookeeper is None or looked.situation.quorum is QuorumState.POST_MIGRATION:
        return
    on_disk = {topic.znode.name: topic for topic in looked.hints.topics}
    is_led_by_zookeeper = looked.situation.claim is Claim.ZOOKEEPER
    for name in zookeeper.topics_without_id[:MOST_TOPICS]:
        found = on_disk.get(name)
        cure = UNREAD if found is None else cure_of_no_id(found, looked.spec, is_led_by_zookeeper=is_led_by_zookeeper)
        yield cause(
            looked,
            ZkWait.TOPIC_WITHOUT_ID,
            f"topic {name}",
            observed=cure.observed,
            expected="a topic_id in its znode, the same as in partition.metadata of every replica",
            fix=cure.fix,
        )


UNREAD = Cure("no topic_id in its znode; what brokers have on disk was not read", WAITS[ZkWait.TOPIC_WITHOUT_ID].means)
