"""One check from one JSON file, see `spark.job.CheckJob`.

    python -m spark.jobs.main job.json                    on this machine, without Spark
    spark-submit … spark/jobs/main.py job.json            on Spark, whichever way that is submitted

Exit code: 0 clean, 1 drift, 2 inconclusive, 3 for input that cannot work, 4 for what may work when it is tried again.
"""

import sys
from collections.abc import Iterator, Sequence
from os import environ
from pathlib import Path

from pydantic import ValidationError

from domain.drift.report import CheckResult, DriftFinding, FindingKind, Verdict
from domain.errors import Permanent, Transient
from spark.engine.local import LocalEngine
from spark.job import CheckJob

EXIT_CODES = {Verdict.CLEAN: 0, Verdict.DRIFT: 1, Verdict.INCONCLUSIVE: 2}
BAD_INPUT = 3
TRY_AGAIN = 4
SHOWN = 10


def main(arguments: Sequence[str]) -> int:
    try:
        job = read_job(arguments)
        job.out.parent.mkdir(parents=True, exist_ok=True)
        result = _run_on_spark(job) if is_submitted() else LocalEngine().run(job)
    except Permanent as wrong:
        print(f"bad input: {wrong}", file=sys.stderr)
        return BAD_INPUT
    except Transient as failed:
        print(f"not finished: {failed}", file=sys.stderr)
        return TRY_AGAIN
    print("\n".join(summary(result)))
    return EXIT_CODES[result.verdict]


def read_job(arguments: Sequence[str]) -> CheckJob:
    if len(arguments) != 1:
        raise Permanent(f"one argument is wanted, the path of a job as JSON; there are {len(arguments)}")
    try:
        return CheckJob.model_validate_json(Path(arguments[0]).read_bytes())
    except OSError as unreadable:
        raise Permanent(f"{arguments[0]} cannot be read: {unreadable.strerror}") from unreadable
    except ValidationError as wrong:
        told = (f"{'.'.join(map(str, error['loc'])) or 'the file'}: {error['msg']}" for error in wrong.errors())
        raise Permanent(f"{arguments[0]} is no job: {'; '.join(told)}") from wrong


def is_submitted() -> bool:
    """`spark-submit` tells Python where its JVM listens."""
    return "PYSPARK_GATEWAY_PORT" in environ


def _run_on_spark(job: CheckJob) -> CheckResult:
    from pyspark.sql import SparkSession

    from spark.engine.spark import SparkEngine

    session = SparkSession.builder.appName(f"keeperless-check {job.id}").getOrCreate()
    try:
        return SparkEngine(session, job.id).run(job)
    finally:
        session.stop()


def summary(result: CheckResult) -> Iterator[str]:
    yield f"{result.verdict}: {result.finding_count} findings, engine {result.engine}"
    for kind, counts in result.counts.items():
        found = ", ".join(f"{getattr(counts, one)} {one}" for one in FindingKind if getattr(counts, one))
        yield f"  {kind:<14} {counts.left:>9} left {counts.right:>9} right {counts.equal:>9} equal  {found}".rstrip()
    for words in result.not_read:
        yield f"not read: {words}"
    for finding in result.first[:SHOWN]:
        yield _line(finding)
    yield f"findings: {result.findings}"
    yield f"hash: {result.content_hash}"


def _line(finding: DriftFinding) -> str:
    name = f"{finding.key} {finding.field}".rstrip()
    return f"{finding.severity} {finding.finding} {finding.record} {name}: left {finding.left}, right {finding.right}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
