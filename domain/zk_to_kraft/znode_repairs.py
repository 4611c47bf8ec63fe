"""Fixes for a znode that cannot be read, by its path: what deleting it would do depends on what it holds."""

OF_A_STATE = (
    "Do not delete it. Write the state again with zookeeper-shell.sh set: kafka-topics.sh --describe shows leader and isr as "
    "brokers have them. Fix PF17 and topic-without-id, if they are listed: the next controller makes up ids. Then, if "
    "/controller names a broker, delete /controller: the next controller reads the state."
)
OF_A_TOPIC = (
    "Do not delete it: the topic would be gone, and brokers would take its replicas for strays. Write its JSON again with "
    "zookeeper-shell.sh set. topic_id is in partition.metadata of its directories, and kafka-topics.sh --describe shows the "
    "replicas."
)
OF_CONFIGS = (
    "First note what kafka-configs.sh --describe shows of it. Then set that again with kafka-configs.sh --alter, which writes "
    "the whole znode. Do not just delete it: then defaults apply, and a shorter retention deletes data."
)
OF_RIGHTS = (
    "First note the intended ACL or login. Then set it again with kafka-acls.sh or kafka-configs.sh. Do not just delete it: "
    "without a denial every client gets in, and without a login its clients are kept out."
)
OF_OTHERS = (
    "Repair it with Kafka's tools. If it is only left over, delete it. Otherwise the copy fails on it, or drops it without a "
    "message."
)
BY_PLACE = (
    ("/brokers/topics/", OF_A_TOPIC),
    ("/config/users/", OF_RIGHTS),
    ("/config/", OF_CONFIGS),
    ("/kafka-acl", OF_RIGHTS),
    ("/delegation_token", OF_RIGHTS),
)
"""The first prefix that matches counts."""


def repair_of(path: str) -> str:
    """What to do about a znode, by its path."""
    if path.startswith("/brokers/topics/") and path.endswith("/state"):
        return OF_A_STATE
    return next((fix for place, fix in BY_PLACE if path.startswith(place)), OF_OTHERS)
