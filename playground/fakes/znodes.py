"""How a simulated cluster looks in ZooKeeper: layouts as kafka.zk.ZkData writes them (Kafka 3.9)."""

import json
from collections.abc import Mapping, Sequence

from playground.fakes.topics import FakeTopic

CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
MIGRATION = "/migration"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
DELETE_TOPICS = "/admin/delete_topics"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def encoded(content: Mapping[str, object]) -> bytes:
    return json.dumps(content).encode()


def topic_record(topic: FakeTopic) -> bytes:
    partitions = {str(p): list(replicas) for p, replicas in enumerate(topic.assignment)}
    content: dict[str, object] = {"version": 3, "partitions": partitions, "adding_replicas": {}, "removing_replicas": {}}
    return encoded(content | ({} if topic.topic_id is None else {"topic_id": topic.topic_id}))


def state_record(isr: Sequence[int], leader_epoch: int, controller_epoch: int) -> bytes:
    state = {"controller_epoch": controller_epoch, "leader": isr[0], "version": 1, "leader_epoch": leader_epoch}
    return encoded(state | {"isr": list(isr)})


def registration(broker_id: int) -> bytes:
    """`/brokers/ids/<id>`, of a broker with one listener."""
    listener = {
        "endpoints": [f"PLAINTEXT://broker-{broker_id}:9092"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
    }
    return encoded({"version": 5, "host": f"broker-{broker_id}", "port": 9092} | listener)


def claim_record(node_id: int, kraft_epoch: int) -> bytes:
    """`/controller`. A claim that is not KRaft's has the epoch -1."""
    return encoded({"version": 2, "brokerid": node_id, "timestamp": "0", "kraftControllerEpoch": kraft_epoch})


def kraft_epoch(znodes: Mapping[str, bytes]) -> int | None:
    """The epoch of KRaft's claim; `None` while `/controller` is not KRaft's."""
    if CONTROLLER not in znodes:
        return None
    epoch = json.loads(znodes[CONTROLLER]).get("kraftControllerEpoch", -1)
    return int(epoch) if epoch >= 0 else None


def migration_record(controller_id: int, epoch: int, offset: int) -> bytes:
    ids = {"version": 0, "kraft_controller_id": controller_id, "kraft_controller_epoch": epoch}
    return encoded(ids | {"kraft_metadata_offset": offset, "kraft_metadata_epoch": epoch})


def offset_in(znodes: Mapping[str, bytes]) -> int | None:
    """The offset in `/migration`; `None`: no such znode."""
    return int(json.loads(znodes[MIGRATION])["kraft_metadata_offset"]) if MIGRATION in znodes else None
