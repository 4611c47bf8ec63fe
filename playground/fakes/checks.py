"""A comparison that says what it is told to say, and publishes it as the real one does."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from temporalio import activity

from activities.observing.zookeeper_view import view_of
from activities.ports.ports import Ports
from domain.contracts import ActivityName, CheckOutcome, CheckRequest
from domain.drift.hashing import rules_fingerprint
from domain.drift.messages import rules_fingerprint as message_rules
from domain.drift.records import Severity
from domain.drift.report import CheckName, Cut, DriftFinding, DriftReport, FindingKind, RecordCounts, Verdict
from domain.errors import Transient
from domain.zk_to_kraft.comparison import claim_of

DRIFTED = DriftFinding(
    record="topic-config",
    finding=FindingKind.DIFFERS,
    severity=Severity.BLOCK,
    rule="exact",
    key="orders retention.ms",
    field="value",
    left="1000",
    right="86400000",
)


OF_MESSAGES = frozenset({CheckName.BASELINE, CheckName.MESSAGES})


@dataclass
class FakeChecks:
    """`verdict`: what the next report about the metadata says, `of_messages`: the next one about clients' data, `of_copy`: the
    one about Kafka's copy, or what is kept for it, `of_end`: the one after the end. `at_end`: why that one fails. `asked`: the
    reports that were asked for. `is_free` stops a check in its middle.
    """

    ports: Ports
    verdict: Verdict = Verdict.CLEAN
    of_messages: Verdict = Verdict.CLEAN
    of_copy: Verdict = Verdict.CLEAN
    of_end: Verdict = Verdict.CLEAN
    at_end: Exception | None = None
    asked: list[str] = field(default_factory=list)
    is_free: asyncio.Event = field(default_factory=asyncio.Event)
    is_begun: asyncio.Event = field(default_factory=asyncio.Event)
    is_cancelled: bool = False

    def __post_init__(self) -> None:
        self.is_free.set()

    @activity.defn(name=ActivityName.RUN_CHECK)
    async def run_check(self, request: CheckRequest) -> CheckOutcome:
        self.asked.append(request.report_id)
        self.is_begun.set()
        if request.check is CheckName.END and self.at_end is not None:
            raise self.at_end
        try:
            while not self.is_free.is_set():
                activity.heartbeat()
                await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        report = await self.publish(request.cluster, request.report_id, request.migration_id, check=request.check)
        return CheckOutcome(report_id=report.id, verdict=report.verdict, content_hash=report.content_hash)

    async def publish(
        self,
        cluster: str,
        report_id: str,
        migration_id: str | None = None,
        age: timedelta = timedelta(0),
        check: CheckName = CheckName.METADATA,
    ) -> DriftReport:
        """A report of the claim as it is now, made so long ago."""
        record = await self.ports.ledger.cluster(cluster)
        assert record is not None  # noqa: S101
        claim, verdict = "", Verdict.INCONCLUSIVE
        with suppress(Transient):
            tree = await self.ports.zookeepers.connect(record)
            claim, verdict = claim_of(await view_of(tree)), self._verdict_of(check)
            await tree.close()
        is_drift = verdict is Verdict.DRIFT
        ended_at = datetime.now(UTC) - age
        report = DriftReport(
            id=report_id,
            cluster=cluster,
            migration_id=migration_id,
            check=check,
            verdict=verdict,
            started_at=ended_at,
            ended_at=ended_at,
            cut=Cut(migration_offset=100, high_watermark=110, claim=claim),
            counts={"topic-config": RecordCounts(left=1, right=1, differs=int(is_drift), equal=int(not is_drift))},
            first=(DRIFTED,) if is_drift else (),
            not_read=("zookeeper did not answer",) if verdict is Verdict.INCONCLUSIVE else (),
            baseline="what was kept" if check is not CheckName.METADATA and verdict is Verdict.CLEAN else None,
            rules_fingerprint=message_rules() if check in OF_MESSAGES else rules_fingerprint(),
            content_hash=f"content of {verdict}",
        )
        return await self.ports.ledger.add_report(report)

    def _verdict_of(self, check: CheckName) -> Verdict:
        if check in OF_MESSAGES:
            return self.of_messages
        if check is CheckName.END:
            return self.of_end
        return self.verdict if check is CheckName.METADATA else self.of_copy
