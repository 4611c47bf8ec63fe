"""What a verdict and a finding mean, and what to do about them: in words, for whoever has to approve or repair."""

from dataclasses import dataclass

from domain.amounts import counted
from domain.drift.messages import MessageRule
from domain.drift.records import PARTITION, PRODUCER_IDS, Rule, Severity
from domain.drift.report import CheckName, DriftFinding, DriftReport, FindingKind, Verdict


@dataclass(frozen=True)
class Sides:
    """What a check compares, in words. `left` and `right` are what the findings call them."""

    left: str
    right: str
    compares: str


SIDES: dict[CheckName, Sides] = {
    CheckName.METADATA: Sides("ZooKeeper", "KRaft", "the metadata in ZooKeeper with that in KRaft, both as they are now"),
    CheckName.COPY: Sides(
        "ZooKeeper", "KRaft", "the metadata in ZooKeeper before the copy with what Kafka's own copy made of it"
    ),
    CheckName.BEFORE_COPY: Sides("ZooKeeper", "nothing yet", "nothing yet: it keeps what ZooKeeper has before Kafka's copy"),
    CheckName.BASELINE: Sides("before", "nothing yet", "nothing yet: it keeps what clients' data is before the first restart"),
    CheckName.MESSAGES: Sides("before", "now", "record batches and committed offsets as they were before with those of now"),
    CheckName.END: Sides(
        "ZooKeeper", "KRaft", "the metadata that ZooKeeper had when KRaft stopped writing to it with what KRaft has made of it"
    ),
    CheckName.TREE: Sides("first tree", "second tree", "two ZooKeeper trees, znode by znode"),
}

KEEPS = frozenset({CheckName.BASELINE, CheckName.BEFORE_COPY})
"""These compare nothing: what they keep is compared later."""

_TOOLS = {
    "topic": "kafka-topics.sh",
    "partition": "kafka-reassign-partitions.sh or kafka-leader-election.sh",
    "topic-config": "kafka-configs.sh --entity-type topics",
    "broker-config": "kafka-configs.sh --entity-type brokers",
    "quota": "kafka-configs.sh --entity-type users, clients or ips",
    "scram": "kafka-configs.sh --entity-type users",
    "acl": "kafka-acls.sh",
    "token": "kafka-delegation-tokens.sh",
}
"""Kafka's own tool for each kind: what goes through a broker reaches both sides."""

_ROWS = {
    "topic": ("topic",),
    "partition": ("partition",),
    "topic-config": ("topic config",),
    "broker-config": ("broker config",),
    "quota": ("quota",),
    "scram": ("SCRAM credential",),
    "acl": ("ACL",),
    "token": ("delegation token",),
    "producer-ids": ("block of producer ids", "blocks of producer ids"),
    "batch": ("record batch", "record batches"),
    "group-offset": ("committed offset",),
    "partition-log": ("partition",),
    "replica-log": ("replica",),
}
"""What people call one row of each kind, and several where that takes more than an s."""


DUPLICATE_RULE = "duplicate-key"
"""A side that has a key twice was read wrongly, or is broken: nothing was compared for that key, and nobody can tolerate it."""


@dataclass(frozen=True)
class Explanation:
    """`means`: what it says about the cluster. `advice`: what to do."""

    means: str
    advice: str


def verdict_in_words(report: DriftReport) -> str:
    """One sentence or two, first thing in every rendering."""
    sides = SIDES[report.check]
    if report.check in KEEPS:
        return f"Not all of what was there before could be read: {report.not_read[0]}." if report.not_read else _kept(report)
    count = sum(c.missing_left + c.missing_right + c.differs for c in report.counts.values())
    differences = counted(count, "difference")
    if report.verdict is Verdict.INCONCLUSIVE:
        why = "what was not read is named below" if report.not_read else "they changed too fast to be read at one moment"
        gate = "" if report.check is CheckName.END else " This opens no gate."
        return f"It is unknown whether both sides ({sides.left}, {sides.right}) agree: {why}.{gate}"
    if report.verdict is Verdict.DRIFT:
        return f"Both sides ({sides.left}, {sides.right}) disagree: {differences}."
    tail = f" {differences}, for information only." if count else ""
    equal = sum(c.equal for c in report.counts.values())
    return f"Both sides ({sides.left}, {sides.right}) agree: {equal:,} rows are equal.{tail}"


def tally(report: DriftReport) -> str:
    """How many differences, and of what: `3 differences (2 committed offsets only before, 1 partition differs)`."""
    sides, parts = SIDES[report.check], []
    for record, c in sorted(report.counts.items()):
        words = _ROWS.get(record, (record, record))
        only = ((c.missing_right, sides.left), (c.missing_left, sides.right))
        parts += [f"{counted(number, *words)} only {side}" for number, side in only if number]
        parts += [f"{counted(c.differs, *words)} {'differs' if c.differs == 1 else 'differ'}"] if c.differs else []
    count = sum(c.missing_left + c.missing_right + c.differs for c in report.counts.values())
    of = f" ({', '.join(parts)})" if parts else ""
    return f"{counted(count, 'difference')}{of}"


def _kept(report: DriftReport) -> str:
    told = [counted(c.left, *_ROWS.get(record, (record, record))) for record, c in sorted(report.counts.items()) if c.left]
    return f"Kept: {', '.join(told) or 'nothing, as there is nothing'}."


def explanation_of(finding: DriftFinding, check: CheckName) -> Explanation:
    """Of one finding, from its kind, its record and its rule."""
    if finding.finding is FindingKind.TOLERATED:
        return Explanation(f"The policy tolerates it. {finding.tolerated_by}".rstrip(), "Nothing, as long as that holds.")
    if check is CheckName.MESSAGES and finding.rule in _OF_MESSAGES:
        return _OF_MESSAGES[finding.rule]
    if finding.finding is FindingKind.UNVERIFIABLE:
        return _unverifiable(finding)
    if finding.rule == DUPLICATE_RULE:
        return _DUPLICATE
    if check is CheckName.METADATA:
        return _of_dual_write(finding)
    if check is CheckName.COPY and finding.finding is FindingKind.MISSING_LEFT:
        return _MADE_SINCE
    return _OTHERS[check]


def _unverifiable(finding: DriftFinding) -> Explanation:
    means = "One side cannot be read well enough: this neither confirms nor denies that both agree."
    if finding.rule == Rule.DIGEST:
        return Explanation(means, "Give the worker `password.encoder.secret` by reference, or compare the secret by hand.")
    return Explanation(means, "Restore access to what is named, and check again; or compare it by hand.")


def _of_dual_write(finding: DriftFinding) -> Explanation:
    if finding.record == PRODUCER_IDS.name:
        return _PRODUCER_IDS
    if finding.record not in _TOOLS:
        return _BESIDE_THE_DATA
    tool = _TOOLS[finding.record]
    if finding.finding is FindingKind.MISSING_RIGHT:
        means = "Only ZooKeeper has it, so brokers in KRaft mode do not know it, and it is lost after finalisation."
        advice = f"If it is wanted, create it with {tool}, through a broker. If not, {_OVERWRITE}. Then check again."
    elif finding.finding is FindingKind.MISSING_LEFT:
        means = "Only KRaft has it: dual write has lost a change, and a rollback to ZooKeeper would lose it too."
        advice = f"If it is wanted, {_OVERWRITE}. If not, remove it with {tool}. Then check again."
    elif finding.record == PARTITION.name and finding.severity is not Severity.BLOCK:
        means = "The state of a partition changes by itself, but this difference was still there when it was read again."
        advice = f"Check again: the next change of the partition is written to both. If it remains, {_OVERWRITE}."
    else:
        means = "KRaft's value is valid after finalisation; ZooKeeper's would be restored by a rollback."
        advice = (
            f"If KRaft is right, {_OVERWRITE}. If ZooKeeper is, set its value with {tool}, through a broker. Then check again."
        )
    return Explanation(means, advice)


_OVERWRITE = "restart the active controller: the next one writes to ZooKeeper what KRaft says"

_DUPLICATE = Explanation(
    "One side has it more than once, so it was read wrongly or is damaged, and was not compared.",
    "Check the places that are named. If they hold one only, keep this report for a bug report.",
)
_PRODUCER_IDS = Explanation(
    "KRaft would hand out ids of producers that ZooKeeper may have handed out before, which breaks idempotent producers.",
    "Do not finalise. Compare again; if it remains, roll back, and keep this report for a bug report.",
)
_MADE_SINCE = Explanation("ZooKeeper did not have it yet when it was read, and had it when it was copied.", "Nothing.")
_BESIDE_THE_DATA = Explanation(
    "Both sides differ in who runs the cluster, not in its data; a restart that has just happened looks like this.",
    f"Wait a minute, and check again. If it remains, make sure that the named nodes are healthy; then {_OVERWRITE}.",
)
_OF_MESSAGES: dict[str, Explanation] = {
    MessageRule.COMPACTED: Explanation(
        "For a compacted topic only the beginning and end of each partition are compared, not its batches: the cleaner "
        "rewrites them.",
        "Nothing.",
    ),
    MessageRule.REMOVED: Explanation(
        "The topic has fewer offsets than before: the oldest were removed, by retention or by a client.",
        "If the topic keeps data longer than that, ask who changed `retention.ms` or `retention.bytes` for a while, or "
        "deleted records (kafka-delete-records.sh): the brokers' logs show which limit was exceeded when.",
    ),
    MessageRule.TOPIC_DELETED: Explanation(
        "The topic was deleted since it was read. The migration deletes none but its canaries.",
        "Ask its users. If it was not deleted on purpose, do not finalise.",
    ),
    MessageRule.TOPIC_RECREATED: Explanation(
        "The topic was deleted and created again under its old name since it was read: it has another id.",
        "Ask its users. If that was not done on purpose, do not finalise.",
    ),
    MessageRule.REPLICA_GONE: Explanation(
        "This broker had a replica of the partition and no longer has one, as after a reassignment.",
        "Ask whether this partition was moved. If not, find out on the broker's disk what became of it before you finalise.",
    ),
    MessageRule.GROUP_GONE: Explanation(
        "The group's committed offset is gone: it has expired (`offsets.retention.minutes`), or was deleted.",
        "If the group is still in use, find out who reset or deleted it before you finalise.",
    ),
    MessageRule.COMMITTED: Explanation(
        "The group's committed offset went back: a client or an administrator has reset it, or commits were lost.",
        "Ask the group's users whether it was reset. If not, do not finalise: look for lost records of `__consumer_offsets`.",
    ),
    MessageRule.BEYOND_END: Explanation(
        "The group has committed an offset beyond the end: records were lost, or the commit was made by hand.",
        "Check whether this report names the partition too. If it does not, ask the group's users before you finalise.",
    ),
}
"""Explanations of what clients and people may do themselves, and of what cannot be compared at all."""
DIFFERS_AFTER_THE_END = Explanation(
    "ZooKeeper had it when KRaft stopped writing there, and no later change in KRaft's log explains the difference. Or "
    "ZooKeeper was edited after the end.",
    "Check with Kafka's own tools what KRaft has now. If that is right, do nothing: no node reads ZooKeeper any more. If "
    "something is missing, create it again through a broker, and keep this report for a bug report.",
)
_OTHERS = {
    CheckName.BEFORE_COPY: Explanation("ZooKeeper had it before Kafka's copy.", "Nothing."),
    CheckName.COPY: Explanation(
        "Kafka's own copy did not take this over as ZooKeeper had it. Or it was changed between the two snapshots, in the "
        "minute of the last broker's restart. Dual write makes ZooKeeper the same as KRaft, so no later comparison shows it.",
        "Ask its users whether it was changed. If not, roll back, and keep this report for a bug report. If it was, tolerate "
        "it by name in the policy of a migration that takes over.",
    ),
    CheckName.BASELINE: Explanation("It was there before.", "Nothing."),
    CheckName.MESSAGES: Explanation(
        "Data from before is missing or changed, and no retention, compaction or truncation explains it.",
        "Do not finalise. Compare the replicas of the partition, and restore from a replica or a backup that still has it.",
    ),
    CheckName.END: DIFFERS_AFTER_THE_END,
    CheckName.TREE: Explanation(
        "The two trees differ in this znode.",
        "Find out who wrote it, make both the same, and check again.",
    ),
}
