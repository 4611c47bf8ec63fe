"""From what a check has found to its report, whose rows and whose manifest for auditors are artefacts."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from activities.ports.stores import ArtefactStore
from domain.contracts import CheckRequest
from domain.drift.hashing import content_hash
from domain.drift.report import CheckResult, Cut, DriftReport, RecordCounts, Verdict

NO_CUT = Cut()


async def report_of(
    artefacts: ArtefactStore,
    asked: CheckRequest,
    compared: CheckResult,
    started_at: datetime,
    about: Mapping[str, Any] | None = None,
    cut: Cut = NO_CUT,
    seconds: Mapping[str, float] | None = None,
    baseline: str | None = None,
) -> DriftReport:
    """A report that ends now, and that nobody has published yet. `about`: what its manifest says besides."""
    rows = await asyncio.to_thread(compared.findings.read_bytes) if compared.findings is not None else None
    report = DriftReport(
        id=asked.report_id,
        cluster=asked.cluster,
        migration_id=asked.migration_id,
        check=asked.check,
        verdict=compared.verdict,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        cut=cut,
        counts=compared.counts,
        first=compared.first,
        not_read=compared.not_read,
        tolerated=compared.tolerated,
        rules_fingerprint=compared.rules_fingerprint,
        content_hash=compared.content_hash,
        findings=await artefacts.put(rows) if rows is not None else None,
        baseline=baseline,
        engine=compared.engine,
        seconds=dict(compared.seconds if seconds is None else seconds),
    )
    told = {**report.model_dump(mode="json", exclude={"first"}), **(about or {})}
    manifest = await artefacts.put(json.dumps(told, sort_keys=True, indent=1).encode())
    return report.model_copy(update={"manifest": manifest})


def kept_of(asked: CheckRequest, counts: Mapping[str, int], not_read: tuple[str, ...], rules: str) -> CheckResult:
    """So much was kept, by kind, to be compared with later; of no use if something was not read. `rules`: their fingerprint."""
    verdict = Verdict.INCONCLUSIVE if not_read else Verdict.CLEAN
    told = {record: RecordCounts(left=count) for record, count in counts.items()}
    hash_ = content_hash(asked.check, verdict, told, (), not_read, rules)
    return CheckResult(verdict=verdict, counts=told, not_read=not_read, rules_fingerprint=rules, content_hash=hash_)


def nothing(asked: CheckRequest, why: str, rules: str) -> CheckResult:
    """Nothing could be compared, and the report says why. `rules`: their fingerprint."""
    hash_ = content_hash(asked.check, Verdict.INCONCLUSIVE, {}, (), (why,), rules)
    return CheckResult(verdict=Verdict.INCONCLUSIVE, not_read=(why,), rules_fingerprint=rules, content_hash=hash_)
