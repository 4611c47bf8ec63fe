"""A `CheckRunner` that finds what it is told to find, look by look."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from activities.ports.checks import Claimed, Comparison, KeptRows
from activities.ports.zookeeper import Captured
from domain.drift.hashing import rules_fingerprint
from domain.drift.records import Severity
from domain.drift.report import CheckResult, DriftFinding, FindingKind, RecordCounts, Verdict
from domain.quorum_log.metadata_log import EndOfCopy

PARTS_OF_A_TOPIC = 3
Found = Sequence[str] | Exception


def difference(key: str) -> DriftFinding:
    """A topic that ZooKeeper lacks."""
    return DriftFinding(record="topic", finding=FindingKind.MISSING_LEFT, severity=Severity.BLOCK, rule="missing-row", key=key)


async def _nothing() -> None:
    pass


@dataclass
class FakeCheckRunner:
    """`looks`: keys of the topics that differ in each look, or what is raised; after the last none does. `while_reading`: what
    happens after the tree was read. `delay`: seconds that a comparison takes. `end`: of the copy; `claims`: which transactions
    it was told to be claimed in. `not_read`: what rows that are kept lack.
    """

    looks: list[Found] = field(default_factory=list)
    while_reading: Callable[[], Awaitable[None]] = _nothing
    delay: float = 0.0
    asked: list[Comparison] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    opened: dict[str, str] = field(default_factory=dict)
    interrupted: list[str] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    is_comparing: asyncio.Event = field(default_factory=asyncio.Event)
    end: EndOfCopy | None = None
    claims: list[int] = field(default_factory=list)
    not_read: tuple[str, ...] = ()

    def session_of(self, migration_id: str) -> str:
        return self.opened.setdefault(migration_id, str(uuid4()))

    def leave(self, migration_id: str) -> None:
        self.opened.pop(migration_id, None)

    async def interrupt(self, session: str) -> None:
        self.interrupted.append(session)

    async def stage(self, captured: Captured, directory: object) -> None:
        async for chunk in captured:
            self.paths |= {znode.path for znode in chunk}
        await self.while_reading()

    async def keep(self, captured: Captured, directory: object) -> KeptRows:
        await self.stage(captured, directory)
        topics = sum(path.count("/") == PARTS_OF_A_TOPIC and path.startswith("/brokers/topics/") for path in self.paths)
        return KeptRows(b"rows", {"topic": topics}, self.not_read)

    async def end_of_copy(self, log: object) -> EndOfCopy | None:
        return self.end

    async def as_of_claim(self, kept: bytes, captured: Captured, claimed: Claimed, directory: object) -> None:
        self.claims.append(claimed.zxid)
        await self.stage(captured, directory)

    async def compare(self, asked: Comparison, session: str, on_progress: Callable[[str, int, int], None]) -> CheckResult:
        self.asked.append(asked)
        self.sessions.append(session)
        on_progress("compare", 0, 1)
        self.is_comparing.set()
        await asyncio.sleep(self.delay)
        found = self.looks.pop(0) if self.looks else ()
        if isinstance(found, Exception):
            raise found
        return _compared(asked, tuple(difference(key) for key in found))

    async def confirm(self, asked: Comparison, earlier: CheckResult, later: CheckResult) -> tuple[CheckResult, int]:
        kept = tuple(finding for finding in later.first if finding in earlier.first)
        return _compared(asked, kept), len(later.first) - len(kept)


def _compared(asked: Comparison, first: tuple[DriftFinding, ...]) -> CheckResult:
    asked.out.mkdir(mode=0o700)
    findings = asked.out / "findings.parquet"
    findings.write_text("\n".join(finding.key for finding in first))
    return CheckResult(
        verdict=Verdict.DRIFT if first else Verdict.CLEAN,
        counts={"topic": RecordCounts(left=2, right=2 + len(first), missing_left=len(first), equal=2)},
        first=first,
        not_read=(),
        findings=findings,
        content_hash=f"content of {[finding.key for finding in first]}",
        rules_fingerprint=rules_fingerprint(),
        tolerated=(),
        engine="fake",
        seconds={"compare": 0.0},
    )
