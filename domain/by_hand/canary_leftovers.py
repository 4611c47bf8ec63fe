"""What of ours is there that should not be, by name, and the commands that remove it."""

from collections.abc import Iterator

from domain.by_hand.kafka_tools import delete_acl, delete_topic, delete_user, zookeeper
from domain.canaries import Leftovers
from domain.cluster import ClusterSpec


def removals(left: Leftovers, spec: ClusterSpec) -> Iterator[tuple[str, str]]:
    """Each object, with the command that removes it."""
    for topic in left.topics:
        yield f"topic {topic}", delete_topic(spec, topic)
    for group in left.groups:
        yield f"ACL of group {group}", delete_acl(spec, group)
    for user in left.users:
        yield f"user {user}", delete_user(spec, user)
    for path in left.znodes:
        yield path, zookeeper(spec, f"delete {path}")


def told_left(left: Leftovers, spec: ClusterSpec) -> tuple[str, ...]:
    return tuple(f"left behind: {what}. Remove it: {command}" for what, command in removals(left, spec))
