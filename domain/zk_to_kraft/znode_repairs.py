"""How a znode that cannot be read is repaired: what deleting it does depends on what it is."""

OF_A_STATE = (
    "Do not delete it. Write the state again as brokers have it (kafka-topics.sh --describe shows leader and isr), with "
    "zookeeper-shell.sh set; then a controller has to read it: cure PF17 and topic-without-id first, for the next one makes up "
    "ids, then delete /controller if it names a broker."
)
OF_A_TOPIC = (
    "Do not delete it: the topic would be gone, and brokers would take its replicas for strays. Write its JSON again with "
    "zookeeper-shell.sh set: topic_id is in partition.metadata of its directories, the replicas are what kafka-topics.sh "
    "--describe shows."
)
OF_CONFIGS = (
    "First note what kafka-configs.sh --describe shows of it; then set that again with kafka-configs.sh --alter, which writes "
    "the znode whole. Do not only delete it: then defaults hold, and a shorter retention deletes data."
)
OF_RIGHTS = (
    "First note the rule or login that is meant; then set it again with kafka-acls.sh or kafka-configs.sh. Do not only delete "
    "it: a denial that is gone lets everybody in, and a login that is gone keeps its clients out."
)
OF_OTHERS = "Repair it with Kafka's tools. If it is only left over, delete it. The copy dies of it, or drops it without a word."
BY_PLACE = (
    ("/brokers/topics/", OF_A_TOPIC),
    ("/config/users/", OF_RIGHTS),
    ("/config/", OF_CONFIGS),
    ("/kafka-acl", OF_RIGHTS),
    ("/delegation_token", OF_RIGHTS),
)
"""The first that fits counts."""


def repair_of(path: str) -> str:
    """What to do, by where the znode is."""
    if path.startswith("/brokers/topics/") and path.endswith("/state"):
        return OF_A_STATE
    return next((fix for place, fix in BY_PLACE if path.startswith(place)), OF_OTHERS)
