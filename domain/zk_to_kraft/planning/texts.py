"""What a plan says in words: what is not migrated, and what changes for people. Sources: reference sections 2, 3.3 and 6."""

from collections.abc import Iterable

from domain.checks.check import some
from domain.decisions import Finding
from domain.observed.survey import Survey
from domain.zk_to_kraft.checks.security import stored_passwords

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
