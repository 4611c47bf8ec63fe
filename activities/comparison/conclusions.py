"""What the engines of `spark` conclude, as activities know it."""

from activities.ports.checks import Compared
from spark.job import CheckResult


def compared_of(result: CheckResult) -> Compared:
    return Compared(
        verdict=result.verdict,
        counts=result.counts,
        first=result.first,
        not_read=result.not_read,
        findings=result.findings,
        content_hash=result.material_hash,
        rules_fingerprint=result.rules_fingerprint,
        tolerated=result.tolerated,
        engine=result.engine,
        seconds=result.seconds,
    )
