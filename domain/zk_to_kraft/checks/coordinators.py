"""PF46: brokers agree by how many partitions they find who coordinates a group, or a transaction."""

from collections.abc import Iterator

from domain.cluster import ClusterSpec
from domain.coordinators import COORDINATED, Miscount, miscounts
from domain.decisions import Finding
from domain.survey import ZooKeeperSurvey
from domain.zk_to_kraft.checks.seen import Check, Surveyed, of_zookeeper, some

CODE = "PF46"
EXPECTED = "every broker counts all partitions of it"


def miscounted(found: Miscount, spec: ClusterSpec) -> Finding:
    """What is so, what a restart would make of it, and the way out."""
    names = some([f"{spec.node_name(broker)} ({count})" for broker, count in found.counted.items()])
    return Finding(
        code=CODE,
        object=f"topic {found.topic}",
        observed=f"it has {found.partitions} partitions; a broker counts them as it starts, and {names} started before "
        f"somebody added some, and counts fewer. Who restarts counts all, and then brokers disagree who coordinates which of "
        f"the {COORDINATED[found.topic]}: their clients are sent from one to the other, and what was committed is not found "
        "(KIP-895)",
        expected=EXPECTED,
        fix=FIXES[found.topic],
    )


FIXES = {
    "__consumer_offsets": "Partitions cannot be taken away again, so let all brokers count alike, at a time that you choose: "
    "write down what is committed (kafka-consumer-groups.sh --describe --all-groups), stop consumers, restart all the brokers "
    "that are named, one right after the other, each once the one before is in sync; then set the offsets of groups that have "
    "lost theirs (--reset-offsets --to-offset), and start consumers. It goes on by itself then. Keep whatever gives topics "
    f"more partitions off those of Kafka's own. Where no group keeps its offsets in Kafka, accept {CODE} in the policy.",
    "__transaction_state": "Partitions cannot be taken away again, so let all brokers count alike, at a time that you choose: "
    "stop transactional producers (Streams with exactly_once too), wait until their transactions have ended "
    "(kafka-transactions.sh list), restart all the brokers that are named, one right after the other, each once the one before "
    "is in sync, and start producers. It goes on by itself then. Keep whatever gives topics more partitions off those of "
    f"Kafka's own. Where nobody uses transactions, accept {CODE} in the policy.",
}


def _counts(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    processes = {broker.id: seen.observation.node(broker.id).process for broker in seen.spec.brokers}
    started = {i: p.started_at for i, p in processes.items() if p is not None and p.is_running and p.started_at is not None}
    for found in miscounts(tree.coordinators, started):
        yield miscounted(found, seen.spec)


CHECKS = (
    Check(
        code=CODE,
        holds="every broker counts all partitions of `__consumer_offsets` and `__transaction_state`",
        because="a broker counts them once, as it starts. Where somebody has added some since, as a script does that gives "
        "every topic as many, all is well until the first restart: then brokers disagree who coordinates a group, commits "
        "fail, and offsets that were committed are not found. Asked again right before each stop of a broker, and by "
        "`blockers`",
        source="when the znodes of their partitions were made, held against the start of each broker's process",
        unverifiable="we may not read these znodes",
        of_survey=(of_zookeeper(CODE, _counts),),
    ),
)
