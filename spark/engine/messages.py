"""One comparison of messages, in this process: the rules on what two looks say, the kernel on their batches, and the result.

Another engine differs in who compares the batches only: `Compare`.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from domain.drift.message_manifest import MessageComparison
from domain.drift.messages import (
    BATCH,
    GROUP_OFFSET,
    PARTITION_LOG,
    REPLICA_LOG,
    Judged,
    Span,
    judge,
    rules_fingerprint,
)
from domain.drift.report import CheckResult, DriftFinding, FindingKind
from spark.codec.segment_manifest import BATCH_SCHEMA
from spark.comparing.messages import ComparedBatches, compare_batches, finding_table, span_table
from spark.conclude import Measured, conclude
from spark.findings import in_order, tolerate

Compare = Callable[[MessageComparison, tuple[Span, ...]], ComparedBatches]


def compare_here(job: MessageComparison, spans: tuple[Span, ...]) -> ComparedBatches:
    """All in memory: some 100 bytes for each batch."""
    return compare_batches(read_batches(job.before_batches), read_batches(job.after_batches), span_table(spans))


def read_batches(files: Sequence[Path]) -> pa.Table:
    if not files:
        return BATCH_SCHEMA.empty_table()
    return ds.dataset([str(file) for file in files], schema=BATCH_SCHEMA, format="parquet").to_table()


def run(job: MessageComparison, compare: Compare = compare_here, engine: str = "local") -> CheckResult:
    """The findings, as a file in `job.out` and in short."""
    job.out.mkdir(mode=0o700, exist_ok=True)
    begun = time.monotonic()
    judged = judge(job.before, job.after)
    batches = compare(job, judged.spans)
    found = pa.concat_tables([finding_table(judged.findings), batches.findings.cast(finding_table(()).schema)])
    seconds = {"compare": time.monotonic() - begun}
    rows = {**_rows(job, judged), BATCH: (batches.left, batches.right, batches.equal)}
    measured = Measured(engine, rows, job.not_read, seconds)
    return conclude(job, [in_order(tolerate(found, job.tolerated))], measured, rules_fingerprint())


def _rows(job: MessageComparison, judged: Judged) -> dict[str, tuple[int, int, int]]:
    """Left, right and equal ones of the kinds that are not batches."""
    before, after, found = job.before, job.after, _keys(judged.findings)
    partitions = [(one.topic, f"{one.topic}-{one.partition}") for one in before.partitions]
    replicas = [(one.topic, f"{one.topic}-{one.partition} broker-{one.broker}") for one in before.replicas]
    groups = [(one.topic, f"{one.group} {one.topic}-{one.partition}") for one in before.groups]
    return {
        PARTITION_LOG: (len(partitions), len(after.partitions), _equal(PARTITION_LOG, partitions, found)),
        REPLICA_LOG: (len(replicas), len(after.replicas), _equal(REPLICA_LOG, replicas, found)),
        GROUP_OFFSET: (len(groups), len(after.groups), _equal(GROUP_OFFSET, groups, found)),
    }


def _keys(findings: Sequence[DriftFinding]) -> set[tuple[str, str]]:
    """Without what is said of a topic only that it was not compared whole."""
    found = (one for one in findings if one.record != PARTITION_LOG or one.finding is not FindingKind.UNVERIFIABLE)
    return {(one.record, one.key) for one in found}


def _equal(record: str, rows: Sequence[tuple[str, str]], found: set[tuple[str, str]]) -> int:
    """Those of which nothing was found, nor of their topic. Where a topic is compacted, or retention has removed some of it,
    its partitions may be equal all the same."""
    return sum((record, key) not in found and (PARTITION_LOG, topic) not in found for topic, key in rows)
