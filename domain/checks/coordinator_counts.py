"""PF46: brokers agree by how many partitions they find who coordinates a group, or a transaction."""

from collections.abc import Iterator

from domain.checks.check import Check, Surveyed, of_zookeeper
from domain.cluster import ClusterSpec
from domain.decisions import Finding
from domain.observed.coordinators import COORDINATED, Miscount, counters_seen, miscounts
from domain.observed.survey import ZooKeeperSurvey

CODE = "PF46"
EXPECTED = "every broker counts all partitions of this topic"


def miscounted(found: Miscount, spec: ClusterSpec) -> Finding:
    """What is so, what a restart makes of it, and the way out."""
    names = ", ".join(f"{spec.node_name(broker)} ({count})" for broker, count in found.counted.items())
    whom = COORDINATED[found.topic]
    so_far = (
        "No harm is done until one of these brokers restarts: it then counts all partitions, and brokers disagree about "
        f"which of them coordinates which of the {whom}"
        if found.agree
        else f"Brokers already disagree about which of them coordinates which of the {whom}"
    )
    return Finding(
        code=CODE,
        object=f"topic {found.topic}",
        observed=f"it has {found.partitions} partitions. A broker counts them when it starts, so these brokers, started "
        f"before partitions were added, count fewer: {names}. {so_far}: clients are sent from one broker to "
        "another, and committed state is not found (KIP-895)",
        expected=EXPECTED,
        fix=FIXES[found.topic]
        if found.agree
        else (f"{FIXES[found.topic]} Restarts no longer make it worse: each one repairs its broker."),
    )


KEEP_OFF = "Stop whatever adds partitions to Kafka's internal topics."
FIXES = {
    "__consumer_offsets": "Partitions cannot be removed, so all brokers have to count the same number. Choose a quiet time. "
    "Save the committed offsets (kafka-consumer-groups.sh --describe --all-groups). Stop consumers. "
    "Restart all brokers that count fewer, one after another, each when the one before is in sync. "
    f"Restore offsets that groups have lost (--reset-offsets --to-offset). Start consumers. {KEEP_OFF} "
    f"If no group keeps offsets in Kafka, accept {CODE} in the policy.",
    "__transaction_state": "Partitions cannot be removed, so all brokers have to count the same number. Choose a quiet "
    "time. Stop transactional producers (also Streams with exactly_once). Wait until their "
    "transactions have ended (kafka-transactions.sh list). Restart all brokers that count fewer, one "
    f"after another, each when the one before is in sync. Start producers. {KEEP_OFF} If no client "
    f"uses transactions, accept {CODE} in the policy.",
}


def _counts(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    for found in miscounts(tree.coordinators, counters_seen(seen.observation, seen.spec)):
        yield miscounted(found, seen.spec)


CHECKS = (
    Check(
        code=CODE,
        holds="every broker counts all partitions of `__consumer_offsets` and `__transaction_state`",
        because="a broker counts them once, when it starts. If partitions were added later, for example by a script that "
        "gives every topic the same number, no harm is done until the first restart. From then on brokers disagree "
        "about who coordinates a group, commits fail, and committed offsets are not found. Checked again right "
        "before each stop of a broker, and by `blockers`",
        source="creation times of the partitions' znodes, compared with the start of each broker's process. For a topic "
        "younger than the process, its `offsets.topic.num.partitions` and `transaction.state.log.num.partitions` are "
        "compared too. A broker is reported only if it certainly counts fewer",
        unverifiable="ZooKeeper does not let the configured identity read these znodes",
        of_survey=(of_zookeeper(CODE, _counts),),
    ),
)
