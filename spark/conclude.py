"""From findings in order to a result: the verdict, the counts, the hash that an approval is bound to, and one Parquet file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from domain.drift.hashing import content_hash, rules_fingerprint
from domain.drift.report import CheckName, CheckResult, DriftFinding, FindingKind, RecordCounts, Verdict
from spark.findings import FINDINGS_SCHEMA, GRAVITY, as_models, finding_counts, gravity_of, tolerated_in

FINDINGS_FILE = "findings.parquet"
FIRST_FINDINGS = 100
BATCH_ROWS = 65_536


def verdict_of(has_drift: bool, not_read: tuple[str, ...]) -> Verdict:
    """A drift that was found is one, whatever else was not read."""
    if has_drift:
        return Verdict.DRIFT
    return Verdict.INCONCLUSIVE if not_read else Verdict.CLEAN


class Asked(Protocol):
    """What a conclusion needs of a job. `kinds`: of the rows that were compared."""

    @property
    def check(self) -> CheckName: ...

    @property
    def kinds(self) -> tuple[str, ...]: ...

    @property
    def out(self) -> Path: ...


@dataclass(frozen=True)
class Measured:
    """What an engine knows besides the findings. `rows`: left, right and equal ones of each kind."""

    engine: str
    rows: Mapping[str, tuple[int, int, int]]
    not_read: tuple[str, ...]
    seconds: Mapping[str, float]


@dataclass
class _Tally:
    """What is gathered while the findings pass by."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    first: list[DriftFinding] = field(default_factory=list)
    tolerated: set[tuple[str, str]] = field(default_factory=set)
    has_drift: bool = False
    total: int = 0

    def add(self, findings: pa.Table) -> None:
        for one, count in finding_counts(findings).items():
            self.counts[one] = self.counts.get(one, 0) + count
        self.first.extend(as_models(findings.slice(0, FIRST_FINDINGS - len(self.first))))
        self.has_drift |= bool(pc.any(pc.less(gravity_of(findings), GRAVITY["info"]), min_count=0).as_py())
        self.tolerated |= tolerated_in(findings)
        self.total += findings.num_rows


def conclude(job: Asked, findings: Iterable[pa.Table], measured: Measured, fingerprint: str | None = None) -> CheckResult:
    """`findings`: in order, see `findings.in_order`, in parts of any size. `fingerprint`: of the rules, where they are not
    those of metadata.
    """
    tally = _Tally()
    path = job.out / FINDINGS_FILE
    _write(path, findings, tally)
    verdict = verdict_of(tally.has_drift, measured.not_read)
    counts = _counts(job, measured, tally)
    fingerprint = fingerprint or rules_fingerprint()
    return CheckResult(
        verdict=verdict,
        counts=counts,
        first=tuple(tally.first),
        finding_count=tally.total,
        not_read=measured.not_read,
        tolerated=tuple(sorted(f"{record}: {by}" for record, by in tally.tolerated)),
        findings=path,
        rules_fingerprint=fingerprint,
        content_hash=content_hash(job.check, verdict, counts, _all_in(path), measured.not_read, fingerprint),
        engine=measured.engine,
        seconds=dict(measured.seconds),
    )


def _write(path: Path, findings: Iterable[pa.Table], tally: _Tally) -> None:
    """Under another name first. The same findings are the same bytes, whichever engine found them."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with pq.ParquetWriter(unfinished, FINDINGS_SCHEMA, compression="zstd") as writer:
        for part in _in_equal_parts(findings):
            tally.add(part)
            writer.write_table(part, row_group_size=BATCH_ROWS)
    unfinished.replace(path)


def _all_in(path: Path) -> Iterator[DriftFinding]:
    with pq.ParquetFile(path) as findings:
        for batch in findings.iter_batches():
            yield from as_models(batch)


def _in_equal_parts(findings: Iterable[pa.Table]) -> Iterable[pa.Table]:
    waiting = FINDINGS_SCHEMA.empty_table()
    for part in findings:
        waiting = pa.concat_tables([waiting, part])
        while waiting.num_rows >= BATCH_ROWS:
            yield waiting.slice(0, BATCH_ROWS).combine_chunks()
            waiting = waiting.slice(BATCH_ROWS)
    if waiting.num_rows:
        yield waiting.combine_chunks()


def _counts(job: Asked, measured: Measured, tally: _Tally) -> dict[str, RecordCounts]:
    counts = {}
    for kind in job.kinds:
        left, right, equal = measured.rows.get(kind, (0, 0, 0))
        found = {str(one): tally.counts.get((kind, str(one)), 0) for one in FindingKind}
        counts[kind] = RecordCounts(left=left, right=right, equal=equal, **found)
    return counts
