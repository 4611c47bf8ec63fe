"""Which keys of a controller's base file are not in the file that is made from it, and why. Pure."""

from collections.abc import Iterator, Mapping

from domain.configuration.properties import parse
from domain.configuration.protocol_map import PROTOCOL_MAP
from domain.plans import DroppedKey
from domain.zk_to_kraft.node_config import ZOOKEEPER_PREFIXES
from domain.zk_to_kraft.steps import NodeStage

OF_SPECIFICATION = "The controller's specification sets it, and that value replaces this one."
OF_QUORUM = "The migration writes it on every node, from the controllers of the specification."
NO_GENERATED_ID = "Only a broker in ZooKeeper mode generates its id. A controller refuses or ignores the key."
WITH_ZOOKEEPER = "The controller needs it as long as there is ZooKeeper. The last restart, after finalize, removes it."
WHY = {
    "authorizer.class.name": "ZooKeeper's authorizer has another class in KRaft mode, which replaces it.",
    "broker.id": "A controller's id is node.id, from the specification.",
    "broker.id.generation.enable": NO_GENERATED_ID,
    "control.plane.listener.name": "Only the ZooKeeper controller has this listener. A process with a KRaft role refuses it.",
    "controller.listener.names": OF_QUORUM,
    "controller.quorum.voters": OF_QUORUM,
    "inter.broker.protocol.version": "In KRaft mode metadata.version replaces it. It comes from the first broker's version.",
    "listeners": OF_SPECIFICATION,
    "log.dirs": OF_SPECIFICATION,
    "node.id": OF_SPECIFICATION,
    "process.roles": "A controller of a migration has the role controller only.",
    "reserved.broker.max.id": NO_GENERATED_ID,
    "zookeeper.connect": OF_SPECIFICATION,
    "zookeeper.metadata.migration.enable": "The migration sets it to true until finalize.",
    PROTOCOL_MAP: "Listeners of the first broker, and the controllers' own, are added to it.",
}


def dropped_keys(base: str, texts: Mapping[NodeStage, str]) -> tuple[DroppedKey, ...]:
    """`texts`: the controller's file at each stage. Each key once, with the first stage that lacks its value."""
    return tuple(_dropped(parse(base), {stage: parse(text) for stage, text in texts.items()}))


def _dropped(base: Mapping[str, str], files: Mapping[NodeStage, Mapping[str, str]]) -> Iterator[DroppedKey]:
    for key, value in base.items():
        stage = next((stage for stage, file in files.items() if file.get(key) != value), None)
        if stage is not None:
            yield DroppedKey(key=key, stage=stage, is_replaced=key in files[stage], why=_why(key, stage))


def _why(key: str, stage: NodeStage) -> str:
    if stage is NodeStage.KRAFT and key.startswith(ZOOKEEPER_PREFIXES):
        return WITH_ZOOKEEPER
    return WHY[key]
