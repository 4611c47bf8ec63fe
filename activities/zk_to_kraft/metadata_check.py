"""ZooKeeper as it is compared with KRaft as it is.

What differs in one look may have moved while it was taken (`consistent_cut`). So there is another one: a difference counts
when it stands in two looks that follow each other, with the same values on both sides. What moves in every look makes the
check inconclusive, as does a side that does not answer, or another claim in the middle: none of that is an error, and the
report tells of it.
"""

import asyncio
import shutil
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from activities.comparison.reporting import nothing, report_of
from activities.ports.checks import CheckAttempt, CheckRunner, Comparison
from activities.ports.ports import Ports
from activities.zk_to_kraft.consistent_cut import Taker
from domain.drift.hashing import content_hash, rules_fingerprint
from domain.drift.report import CheckName, CheckResult, Cut, DriftReport, Verdict
from domain.errors import Transient

LOOKS = 4
"""The first, and three more at what differed."""
IN_VAIN = 2
"""Looks in a row that came to nothing: whoever is silent is not waited for here, but by name in the migration."""


@dataclass(frozen=True)
class Look:
    """`compared` is `None` where no consistent cut could be had, `why_not`."""

    cut: Cut
    asked: Comparison | None = None
    compared: CheckResult | None = None
    why_not: str = ""


async def compare_metadata(ports: Ports, runner: CheckRunner, attempt: CheckAttempt) -> DriftReport:
    """The report: what differs in two looks that follow each other."""
    on_stage = partial(_note_stage, attempt)
    taker = Taker(attempt.cluster, ports, runner, attempt.request.policy, on_stage, attempt.request.check)
    return await _Looking(ports, runner, attempt, taker).report()


@dataclass
class _Looking:
    """One attempt. `seconds`: how long which part has taken."""

    ports: Ports
    runner: CheckRunner
    attempt: CheckAttempt
    taker: Taker
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: dict[str, float] = field(default_factory=dict)

    async def report(self) -> DriftReport:
        look, looks = await self._look_until_sure()
        return await self._publish(replace(look, cut=look.cut.model_copy(update={"looks": looks})))

    async def _look_until_sure(self) -> tuple[Look, int]:
        """Until nothing differs, or the same differs twice, or there were enough of them: the look that counts."""
        before: Look | None = None
        vain = 0
        for number in range(1, LOOKS + 1):
            if number > 1:
                await asyncio.sleep(self.attempt.request.policy.poll_interval.total_seconds())
            look = await self._look(number)
            vain = vain + 1 if look.compared is None else 0
            if vain == IN_VAIN:
                return look, number
            if look.compared is not None and look.compared.verdict is not Verdict.DRIFT:
                return look, number
            confirmed, moved = await self._confirmed(before, look)
            is_drift = confirmed.compared is not None and confirmed.compared.verdict is Verdict.DRIFT
            if is_drift and (not moved or number == LOOKS):
                return confirmed, number
            before = look if look.compared is not None else before
        return (look if look.compared is None else _moving(look)), LOOKS

    async def _look(self, number: int) -> Look:
        directory = self.attempt.directory / f"look-{number}"
        await asyncio.to_thread(directory.mkdir, mode=0o700)
        begun = time.monotonic()
        try:
            asked, cut = await self.taker.take(f"{self.attempt.request.report_id}-{number}", directory)
            self.seconds[f"look {number}: read"] = round(time.monotonic() - begun, 3)
            compared = await self.runner.compare(asked, self.attempt.session, partial(self.attempt.note, number))
            self.seconds |= {f"look {number}: {what}": round(took, 3) for what, took in compared.seconds.items()}
            return Look(cut, asked, compared)
        except Transient as error:
            return Look(Cut(), why_not=str(error))
        finally:
            for copied in ("log", "zookeeper"):
                await asyncio.shield(asyncio.to_thread(shutil.rmtree, directory / copied, ignore_errors=True))

    async def _confirmed(self, before: Look | None, look: Look) -> tuple[Look, int]:
        """What stands in both looks; of another dual write, or of no look, nothing does."""
        if before is None or before.compared is None or look.compared is None or look.asked is None:
            return Look(look.cut), 0
        if before.cut.claim != look.cut.claim:
            return Look(look.cut), 0
        asked = replace(look.asked, out=look.asked.out.with_name("confirmed"))
        compared, moved = await self.runner.confirm(asked, before.compared, look.compared)
        return Look(look.cut, asked, compared), moved

    async def _publish(self, look: Look) -> DriftReport:
        cut = look.cut
        if look.compared is None:
            cut = cut.model_copy(update={"claim": await self.taker.claim_now()})
        compared = look.compared or nothing(self.attempt.request, look.why_not, rules_fingerprint())
        return await report_of(
            self.ports.artefacts, self.attempt.request, compared, self.started_at, cut=cut, seconds=self.seconds
        )


def _note_stage(attempt: CheckAttempt, stage: str) -> None:
    attempt.note(0, stage, 0, 1)


def _moving(look: Look) -> Look:
    """Something differed in every look, and never the same: no consistent cut was had."""
    found = look.compared
    assert found is not None  # noqa: S101 - the caller has looked
    moved = sum(c.missing_left + c.missing_right + c.differs for c in found.counts.values())
    why = f"{moved} rows differed in the last of {LOOKS} snapshots, and others before: they change faster than they can be read"
    not_read = (*found.not_read, why)
    hash_ = content_hash(CheckName.METADATA, Verdict.INCONCLUSIVE, found.counts, found.first, not_read, found.rules_fingerprint)
    changed = {"verdict": Verdict.INCONCLUSIVE, "not_read": not_read, "content_hash": hash_}
    return replace(look, compared=found.model_copy(update=changed))
