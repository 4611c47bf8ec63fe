"""What to do after a migration has ended, by how it ended. Texts for people; pure.

What moves in the metrics, and what stays in ZooKeeper, was seen on Kafka 3.9 (`ZkMigrationState` 3 on the controllers,
no such MBean on KRaft brokers, a persistent `/controller` that nothing removes).
"""

from domain.cluster import ClusterSpec
from domain.drift.explaining import DIFFERS_AFTER_THE_END
from domain.drift.report import Verdict
from domain.end_compared import EndCompared, NextStep
from domain.records import MigrationRecord, MigrationState

MOVED_METRICS = (
    "kafka.controller:* (ActiveControllerCount, OfflinePartitionsCount, …): from the brokers to the controllers",
    "ZkMigrationState: gone from the brokers; the controllers keep it at 3",
    "ZkWriteBehindLag and ZkWrite*TimeMs: gone from the controllers",
    "kafka.server:type=SessionExpireListener and ZooKeeperClientMetrics: gone from the brokers",
    "new: kafka.server:type=raft-metrics on all nodes, kafka.server:type=broker-metadata-metrics on the brokers",
)


def next_steps(record: MigrationRecord, spec: ClusterSpec | None, end: EndCompared | None) -> tuple[NextStep, ...]:
    """In the order in which to do them."""
    match record.progress.state:
        case MigrationState.SUCCEEDED:
            return (*_compared(end), _alerts(spec), _tools(), _retire(spec), *_originals(record))
        case MigrationState.REVERTED:
            return (_again(), *_originals(record))
        case MigrationState.REFUSED:
            return (_refused(record),)
        case _:
            return (_adopt(record), *_originals(record))


def _compared(end: EndCompared | None) -> tuple[NextStep, ...]:
    """None where both sides said the same, or nothing was to be compared."""
    if end is None or end.verdict is Verdict.CLEAN:
        return ()
    objects = (end.says,)
    if end.verdict is Verdict.DRIFT:
        step = NextStep(
            subject="Check the differences that were found at the end", do=DIFFERS_AFTER_THE_END.advice, objects=objects
        )
    else:
        step = NextStep(
            subject="Compare by hand",
            do="It is unknown whether KRaft has everything that ZooKeeper had. Before you retire ZooKeeper, compare what "
            "matters with your own records: kafka-topics.sh --describe, kafka-configs.sh --describe and kafka-acls.sh "
            "--list.",
            objects=objects,
        )
    return (step,)


def _alerts(spec: ClusterSpec | None) -> NextStep:
    controllers = ", ".join(spec.node_name(node.id) for node in spec.controllers) if spec is not None else "the controllers"
    return NextStep(
        subject="Move dashboards and alerts",
        do=f"Scrape the metrics of {controllers}. Point each alert on kafka.controller:* at them. Delete alerts on metrics "
        "that are gone. Then check that the sum of ActiveControllerCount over the controllers is 1.",
        objects=MOVED_METRICS,
    )


def _tools() -> NextStep:
    return NextStep(
        subject="Point tools at the brokers",
        do="Find programs that read ZooKeeper: --zookeeper options, Cruise Control's zookeeper.connect, Schema Registry's "
        "kafkastore.connection.url. Give them bootstrap servers instead. ZooKeeper still answers them, with metadata that "
        "no longer changes.",
    )


def _retire(spec: ClusterSpec | None) -> NextStep:
    """Advise nothing that deletes: only people know which other systems use the ensemble."""
    connect = spec.ensemble.connect if spec is not None else ""
    return NextStep(
        subject="Retire ZooKeeper",
        do="Wait until you trust the cluster: none of its nodes uses ZooKeeper any more, and it cannot be rolled back. Copy "
        "dataDir and dataLogDir of one server to a backup. Run `ss -tn state established '( sport = :2181 )'` on each server: "
        "it should list no connection. If another system uses the ensemble, leave it running. Otherwise stop the servers. Then "
        "`kafka-metadata-quorum.sh --bootstrap-server HOST:9092 describe --status` still names a leader.",
        objects=(connect,) if connect else (),
    )


def _originals(record: MigrationRecord) -> tuple[NextStep, ...]:
    kept = tuple(f"{node.name}: {node.original}" for node in record.progress.nodes if node.original is not None)
    step = NextStep(
        subject="Keep or remove the original files",
        do="Each node still has the properties file from before the migration, with its mode and owner. It may hold "
        "passwords. Remove the .keeperless directories when you no longer need the files.",
        objects=kept,
    )
    return (step,) if kept else ()


def _again() -> NextStep:
    return NextStep(
        subject="Try again later",
        do="Find the cause of the rollback in the migration's decisions and events, and fix it. Then POST /plans, read the "
        "findings, and POST /migrations. Meanwhile the cluster runs with ZooKeeper, from its original properties files.",
    )


def _refused(record: MigrationRecord) -> NextStep:
    blockers = tuple(dict.fromkeys(f"{f.code} {f.object}" for f in record.progress.findings if f.accepted is None))
    return NextStep(
        subject="Fix the findings",
        do=f"Nothing was changed. Each finding has its fix: GET /migrations/{record.id}. Then POST /plans, and POST "
        "/migrations when the plan has no blocker.",
        objects=blockers,
    )


def _adopt(record: MigrationRecord) -> NextStep:
    return NextStep(
        subject="Take over what is left",
        do=f"The cluster stays as it is, last seen in phase {record.progress.phase or 'unknown'}. Check it: GET "
        f'/clusters/{record.cluster}/observation. Then POST /migrations with "hold": true. That migration finds out where '
        "the cluster is, and can be resumed or rolled back.",
    )
