"""What a plan says in words: what is not migrated, what changes for people, and which keys of a base file are dropped.

Sources: reference sections 2, 3.3 and 6.
"""

from collections.abc import Iterable, Iterator, Mapping

from domain.checks.check import some
from domain.configuration.properties import parse
from domain.configuration.protocol_map import PROTOCOL_MAP
from domain.decisions import Finding
from domain.observed.survey import Survey
from domain.plans import DroppedKey
from domain.zk_to_kraft.checks.security import stored_passwords
from domain.zk_to_kraft.node_config import ZOOKEEPER_PREFIXES
from domain.zk_to_kraft.steps import NodeStage

FOREIGN_CLIENTS = "PF19"

NOT_MIGRATED = (
    "Topics whose deletion is pending (/admin/delete_topics): Kafka does not copy them; PF13 finds them.",
    "Reassignments and preferred replica elections that were requested through znodes; PF14 finds them.",
    "Configurations of topics that do not exist (/config/topics/<name> without /brokers/topics/<name>).",
    "The history of the ZooKeeper controller: /controller_epoch, /isr_change_notification, /config/changes.",
    "Data of other programs in the same ensemble: it is neither read nor written. PF19 names those that are connected.",
    "/feature: KRaft has its feature levels in the quorum's log, and never synchronises them with ZooKeeper.",
)

CHANGES_FOR_PEOPLE = (
    "The controller's metrics (kafka.controller:*) move from the brokers to the controllers; alerts on "
    "ActiveControllerCount of brokers no longer fire.",
    "kafka.server:type=SessionExpireListener,* and ZooKeeperClientMetrics are gone once a broker runs in KRaft mode; "
    "MetadataLoader, raft-metrics and broker-metadata-metrics are new.",
    "As in every restart so far, a broker that starts in ZooKeeper mode serves for some tenths of a second before its "
    'controller has sent it the topics. Clients built on librdkafka may then report "Local: Unknown topic" and leave it to '
    "the application to send again. In KRaft mode brokers know the topics before they serve.",
    "Tools that ask for --zookeeper, or read znodes, stop working after finalize: those of Kafka before 3.0, old versions of "
    "Cruise Control, and Schema Registry with kafkastore.connection.url.",
    "Controllers apply the defaults for new topics, and create-topic and alter-config policies: controllers need their "
    "classes too.",
    "control.plane.listener.name and inter.broker.protocol.version are removed from brokers' files; metadata.version "
    "replaces the latter.",
    "Configuration management that was paused runs again at the end. Before finalize, give it the files of the last stage.",
    "/controller and the rest of the tree stay in ZooKeeper after finalize, but are no longer read: retire the ensemble "
    "yourself, later.",
)


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


def changes_here(survey: Survey | None, findings: Iterable[Finding]) -> tuple[str, ...]:
    """What people of this cluster will notice, beside what is so everywhere."""
    return (*_passwords(survey), *_foreign_clients(findings))


def _passwords(survey: Survey | None) -> tuple[str, ...]:
    """Reference, finding 9: the copy decodes them."""
    stored = stored_passwords(survey.zookeeper) if survey is not None and survey.zookeeper is not None else []
    told = (
        f"Dynamic passwords of brokers ({some(stored)}) are encrypted in ZooKeeper, with password.encoder.secret. KRaft "
        "keeps them as plain text in its metadata log and snapshots, on every node. Restrict who may read these files, "
        "their backups, and dumps that are sent to others. Or first remove the dynamic passwords, and set them in the "
        "brokers' files."
    )
    return (told,) if stored else ()


def _foreign_clients(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Programs that are connected to ZooKeeper and are no node of the cluster."""
    found = [finding for finding in findings if finding.code == FOREIGN_CLIENTS and not finding.is_unverifiable]
    return tuple(f"{finding.object}: {finding.observed}. It loses sight of the cluster at finalize." for finding in found)


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
