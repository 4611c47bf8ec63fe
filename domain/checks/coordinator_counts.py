"""PF46: brokers agree by how many partitions they find who coordinates a group, or a transaction."""

from collections.abc import Iterator

from domain.checks.seen import Check, Surveyed, of_zookeeper
from domain.cluster import ClusterSpec
from domain.decisions import Finding
from domain.observed.coordinators import COORDINATED, Miscount, counters_seen, miscounts
from domain.observed.survey import ZooKeeperSurvey

CODE = "PF46"
EXPECTED = "every broker counts all partitions of it"


def miscounted(found: Miscount, spec: ClusterSpec) -> Finding:
    """What is so, what a restart makes of it, and the way out."""
    names = ", ".join(f"{spec.node_name(broker)} ({count})" for broker, count in found.counted.items())
    whom = COORDINATED[found.topic]
    so_far = (
        f"All is well until one restarts: it counts all, and from then on brokers disagree about which of them coordinates "
        f"which of the {whom}"
        if found.agree
        else f"Brokers disagree already about which of them coordinates which of the {whom}"
    )
    return Finding(
        code=CODE,
        object=f"topic {found.topic}",
        observed=f"it has {found.partitions} partitions. A broker counts them as it starts: those that started before somebody "
        f"added some count fewer: {names}. {so_far}: clients are sent from one to the other, and what was committed is not "
        "found (KIP-895)",
        expected=EXPECTED,
        fix=FIXES[found.topic] if found.agree else f"{FIXES[found.topic]} No restart makes it worse by now: each cures one.",
    )


KEEP_OFF = "Keep whatever gives topics more partitions off those of Kafka's own."
FIXES = {
    "__consumer_offsets": "Partitions cannot be taken away again, so let all brokers count alike, at a time that you choose: "
    "write down what is committed (kafka-consumer-groups.sh --describe --all-groups), stop consumers, restart all brokers that "
    "count fewer, one right after the other, each once the one before is in sync; then set the offsets of groups that have "
    f"lost theirs (--reset-offsets --to-offset), and start consumers. {KEEP_OFF} Where no group keeps its offsets in Kafka, "
    f"accept {CODE} in the policy.",
    "__transaction_state": "Partitions cannot be taken away again, so let all brokers count alike, at a time that you choose: "
    "stop transactional producers (Streams with exactly_once too), wait until their transactions have ended "
    "(kafka-transactions.sh list), restart all brokers that count fewer, one right after the other, each once the one before "
    f"is in sync, and start producers. {KEEP_OFF} Where nobody uses transactions, accept {CODE} in the policy.",
}


def _counts(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    for found in miscounts(tree.coordinators, counters_seen(seen.observation, seen.spec)):
        yield miscounted(found, seen.spec)


CHECKS = (
    Check(
        code=CODE,
        holds="every broker counts all partitions of `__consumer_offsets` and `__transaction_state`",
        because="a broker counts them once, as it starts. Where somebody has added some since, as a script does that gives "
        "every topic as many, all is well until the first restart: then brokers disagree who coordinates a group, commits "
        "fail, and offsets that were committed are not found. Asked again right before each stop of a broker, and by "
        "`blockers`",
        source="when the znodes of their partitions were made, held against the start of each broker's process, and where the "
        "topic is younger than that, against its `offsets.topic.num.partitions` and `transaction.state.log.num.partitions`. "
        "Who cannot be known to count fewer is not told of",
        unverifiable="we may not read these znodes",
        of_survey=(of_zookeeper(CODE, _counts),),
    ),
)
