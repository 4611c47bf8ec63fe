"""What to do about a topic whose ids in ZooKeeper and on disk are not the same: put one back, elect, or stop and ask.

A ZooKeeper controller makes up an id for each topic that has none (KafkaController.processTopicIds), and writes it there.
Brokers keep what `partition.metadata` says and refuse the other id: for this topic they obey no controller until it is back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.cluster import ClusterSpec
from domain.observed.topic_directories import TopicDirectory, TopicOnDisk, TopicZnode, name_of

MOST_NAMED = 5


class IdOnDisk(StrEnum):
    """What the directories of a topic say, of which ZooKeeper has no id, or another one."""

    NOWHERE = "nowhere"
    """No directory has an id: any id will do."""
    ONE = "one"
    """Every replica that has an id has the same one: it is the topic's."""
    SEVERAL = "several"
    """Only people know which one is the topic's."""
    UNREAD = "unread"
    """A broker with a replica could not be looked at."""


def id_on_disk(topic: TopicOnDisk) -> IdOnDisk:
    """Replicas count; a directory of none counts only where no replica has an id."""
    if topic.unread or not topic.znode.content:
        return IdOnDisk.UNREAD
    if topic.znode.id is not None:
        is_everywhere = topic.znode.assigned == {
            (d.broker_id, name_of(d.path)) for d in topic.directories if d.is_assigned and d.id is not None
        }
        return IdOnDisk.ONE if is_everywhere and len(ids_in(topic)) == 1 else IdOnDisk.SEVERAL
    return {0: IdOnDisk.NOWHERE, 1: IdOnDisk.ONE}.get(len(ids_in(topic)), IdOnDisk.SEVERAL)


def ids_in(topic: TopicOnDisk) -> Mapping[str, tuple[TopicDirectory, ...]]:
    """The directories by id: replicas', else those of none."""
    named = [d for d in topic.directories if d.id is not None]
    counted = [d for d in named if d.is_assigned] or named
    ids = dict.fromkeys(d.id for d in counted if d.id is not None)
    return {topic_id: tuple(d for d in counted if d.id == topic_id) for topic_id in ids}


@dataclass(frozen=True)
class Cure:
    """`observed`: the ids, in words. `fix`: what to type."""

    observed: str
    fix: str


def cure_of_no_id(topic: TopicOnDisk, spec: ClusterSpec, *, is_led_by_zookeeper: bool) -> Cure:
    """The cure of a topic that has no id in ZooKeeper."""
    found, ids = id_on_disk(topic), ids_in(topic)
    lacks = f"{topic.znode.path} has no topic_id"
    if found is IdOnDisk.ONE:
        (topic_id,) = ids
        where = _places(ids[topic_id], spec)
        observed = f"{lacks}; partition.metadata has {topic_id} on {where}"
        return Cure(observed, put_back(topic.znode, topic_id, spec, is_led_by_zookeeper=is_led_by_zookeeper))
    if found is IdOnDisk.NOWHERE:
        observed = f"{lacks}, and no directory of its replicas has one in partition.metadata"
        return Cure(observed, elect(topic.znode, spec) if is_led_by_zookeeper else FROM_KRAFT)
    if found is IdOnDisk.SEVERAL:
        each = "; ".join(f"{topic_id} on {_places(directories, spec)}" for topic_id, directories in ids.items())
        return Cure(f"{lacks}; partition.metadata has several: {each}", ASK)
    if not topic.znode.content:
        return Cure(f"{topic.znode.path} cannot be parsed", UNPARSABLE)
    unread = ", ".join(spec.node_name(broker_id) for broker_id in topic.unread)
    return Cure(f"{lacks}; partition.metadata could not be read on {unread}", READ_FIRST)


def cure_of_other_id(directory: TopicDirectory, topic: TopicOnDisk, spec: ClusterSpec, *, is_in_sync: bool) -> Cure:
    """The cure of a directory whose id is not ZooKeeper's, before the copy. `is_in_sync`: as brokers say of its replica."""
    has = f"partition.metadata has {directory.id}, {topic.znode.path} has {topic.znode.id}"
    if not directory.is_assigned:
        return Cure(f"{has} and no replica of it on this broker", MOVE_AWAY)
    observed = f"{has}; the replica is assigned to this broker and {'in sync' if is_in_sync else 'not in sync'}"
    if id_on_disk(topic) is IdOnDisk.ONE and directory.id is not None:
        back = put_back(topic.znode, directory.id, spec, is_led_by_zookeeper=True)
        return Cure(f"{observed}; every replica of the topic has this id", f"{back} {'' if is_in_sync else MADE_AGAIN}".strip())
    others = sorted({found for found in ids_in(topic) if found != directory.id})
    return Cure(f"{observed}; other replicas have {', '.join(others) or 'the id of ZooKeeper, or none'}", ASK)


def put_back(znode: TopicZnode, topic_id: str, spec: ClusterSpec, *, is_led_by_zookeeper: bool) -> str:
    """The commands, without an election if KRaft has `/controller`: deleting that ends dual write."""
    shell = shell_of(spec)
    write = f"`{shell} set -v {znode.version} {znode.path} '{znode.with_id(topic_id)}'`"
    if not is_led_by_zookeeper:
        return (
            f"Put the id back, and do not delete /controller: {write}. "
            f"Then `{shell} get {znode.path}` shows it, and the migration continues by itself. {STALE_VERSION}{_login(spec)}"
        )
    return (
        f"Put the id back, then elect a controller, in this order: {write}, then `{shell} delete /controller`. "
        f"Then `kafka-topics.sh --describe --topic {znode.name}` shows TopicId: {topic_id}, and every partition a leader. "
        f"An election before that makes up another id, and brokers refuse it. {STALE_VERSION}{_login(spec)}"
    )


def elect(znode: TopicZnode, spec: ClusterSpec) -> str:
    shell = shell_of(spec)
    return (
        f"Elect a controller once: `{shell} delete /controller`. The next controller gives the topic an id, and brokers write "
        f"it to partition.metadata. Then `{shell} get {znode.path}` shows topic_id. It needs an inter.broker.protocol.version "
        f"of 2.8 or newer.{_login(spec)}"
    )


def _login(spec: ClusterSpec) -> str:
    """How to give the shell the identity that the specification names. A secret is not put into a command line."""
    if spec.ensemble.digest_auth is None:
        return ""
    return (
        " If the shell may not write there (NoAuth), start it without a command, enter `addauth digest USER:PASSWORD` with the "
        "identity of digest_auth, and then the command."
    )


def shell_of(spec: ClusterSpec) -> str:
    return f"zookeeper-shell.sh {spec.ensemble.connect}"


def _places(directories: tuple[TopicDirectory, ...], spec: ClusterSpec) -> str:
    named = [f"{spec.node_name(d.broker_id)} {d.path}" for d in directories]
    more = len(named) - MOST_NAMED
    return ", ".join(named[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


IDS_FIRST = "If topic-without-id is listed too, fix that first: the elected controller makes up an id. "
"""Comes before each election that a fix asks for."""
STALE_VERSION = "If it says `version No is not valid`, the znode has changed: make a new plan, or ask for the blockers again."
MOVE_AWAY = (
    "First ask the topic's users whether this data is needed: it is from an earlier topic of this name. Stop the broker "
    "cleanly. Then move the directory out of the log directory, and start the broker. Then kafka-topics.sh --describe "
    "--under-replicated-partitions shows nothing. A KRaft broker takes such a directory for a stray."
)
MADE_AGAIN = (
    "First ask whether this topic was deleted and created again: if so, these directories have the deleted topic's data."
)
ASK = (
    "Do not elect a controller, restart a broker or delete anything. Find out which id has the data that clients use: "
    "compare the sizes of these directories, and ask whether this topic was deleted and created again. Then put that id "
    "back into the znode. Stop the broker of each directory with the other id, move the directory out of the log directory, "
    "and start the broker."
)
READ_FIRST = (
    "Do not elect a controller and do not restart a broker yet: if partition.metadata has an id, an election makes up "
    "another one. Make python3 available to the driver on that broker, or start it. Then make a new plan, or ask for the "
    "blockers again."
)
UNPARSABLE = (
    "Do not elect a controller and do not restart a broker yet. Write the JSON of the znode again: topic_id is in "
    "partition.metadata of its directories, and the replicas are what kafka-topics.sh --describe shows. Then make a new "
    "plan."
)
FROM_KRAFT = (
    "Do not delete /controller. Run kafka-topics.sh --describe --topic NAME: TopicId is the id in KRaft. Put that id into the "
    "JSON of the znode as topic_id, with zookeeper-shell.sh set. Then ask for the blockers again."
)
