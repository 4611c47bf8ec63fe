"""`run_check`: compare ZooKeeper as it is with KRaft as it is, and publish what was found, once. (And look at clients' data:
`manifests`; and at Kafka's own copy: `copies`.)

What differs in one look may have moved while it was taken (`consistent_cut`). So there is another one: a difference counts
when it stands in two looks that follow each other, with the same values on both sides. What moves in every look makes the
check inconclusive, as does a side that does not answer, or another claim in the middle: none of that is an error, and the
report tells of it.

The first thing that an attempt tells with its heartbeat is the session that it will use. Whoever comes after an attempt that
died ends what that one has left running, and removes its files, before it begins. One that lives, and was only cut off from
Temporal, keeps its files until it ends (`workplace`). Who comes late finds the report published.
"""

import asyncio
import shutil
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4, uuid5

from temporalio import activity

from activities.beating import Beat
from activities.claims import registered
from activities.comparison.manifests import MessageCheck, compare_with_baseline, keep_baseline
from activities.comparison.reporting import nothing, report_of
from activities.ports.checks import CheckRunner, Compared, Comparison, MessageRunner
from activities.ports.ports import Ports
from activities.workplace import enter, sweep
from activities.zk_to_kraft.consistent_cut import Taker
from activities.zk_to_kraft.copies import CopyCheck, compare_copy, keep_metadata
from domain.contracts import ActivityName, CheckOutcome, CheckRequest
from domain.drift.hashing import content_hash, rules_fingerprint
from domain.drift.report import CheckName, Cut, DriftReport, Verdict
from domain.drift.verdicts import told
from domain.errors import Permanent, Transient

MADE = (CheckName.METADATA, CheckName.BEFORE_COPY, CheckName.COPY, CheckName.BASELINE, CheckName.MESSAGES, CheckName.END)
"""The checks that this worker makes."""
LOOKS = 4
"""The first, and three more at what differed."""
IN_VAIN = 2
"""Looks in a row that came to nothing: whoever is silent is not waited for here, but by name in the migration."""


@dataclass(frozen=True)
class Look:
    """`compared` is `None` where no consistent cut could be had, `why_not`."""

    cut: Cut
    asked: Comparison | None = None
    compared: Compared | None = None
    why_not: str = ""


@dataclass
class Attempt:
    """One attempt at a check: its directory and its session. `seconds`: how long which part has taken."""

    request: CheckRequest
    taker: Taker
    directory: Path
    session: str
    beat: Beat
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: dict[str, float] = field(default_factory=dict)


class Checking:
    """The activity that compares. It looks only: no claim, no approval, nothing to undo. `work`: where copies lie meanwhile."""

    def __init__(self, ports: Ports, runner: CheckRunner, messages: MessageRunner, work: Path) -> None:
        self._ports, self._runner, self._messages, self._work = ports, runner, messages, work

    @activity.defn(name=ActivityName.RUN_CHECK)
    async def run_check(self, request: CheckRequest) -> CheckOutcome:
        """Compare, as the module's docstring says. The same request again gives the report that is there."""
        published = await self._ports.ledger.report(request.report_id)
        if published is not None:
            return _outcome(published)
        if request.check not in MADE:
            raise Permanent(f"check {request.check}: this worker makes {', '.join(MADE)} only")
        beat = Beat()
        async with beat.beating():
            session = await self._begin(beat)
            place = await asyncio.to_thread(enter, self._work, request.report_id, session)
            try:
                report = await self._report(request, place.directory, session, beat)
                return _outcome(await self._ports.ledger.add_report(report))
            finally:
                await asyncio.shield(asyncio.to_thread(place.leave))

    async def _begin(self, beat: Beat) -> str:
        """A session of our own, told before it is opened, and an end to those of attempts that died, then to their files."""
        session = str(uuid4())
        beat.tell(*beat.earlier_sessions, session)
        left = [_session_of(earlier, number) for earlier in beat.earlier_sessions for number in range(1, LOOKS + 1)]
        for done, one in enumerate(left):
            beat.note(0, "ending what an attempt that died has left on Spark", done, len(left))
            await self._runner.interrupt(one)
        await asyncio.to_thread(sweep, self._work)
        beat.tell(session)
        return session

    async def _report(self, request: CheckRequest, directory: Path, session: str, beat: Beat) -> DriftReport:
        cluster = await registered(request.cluster, self._ports)
        if request.check in {CheckName.BASELINE, CheckName.MESSAGES}:
            asked = MessageCheck(request, cluster, _session_of(session, 1), directory, partial(beat.note, 1))
            is_baseline = request.check is CheckName.BASELINE
            make = keep_baseline if is_baseline else compare_with_baseline
            return await make(self._ports, self._messages, asked)
        if request.check in {CheckName.BEFORE_COPY, CheckName.COPY}:
            copied = CopyCheck(request, cluster, _session_of(session, 1), directory, partial(beat.note, 1))
            report = keep_metadata if request.check is CheckName.BEFORE_COPY else compare_copy
            return await report(self._ports, self._runner, copied)
        on_stage = partial(_note_stage, beat)
        taker = Taker(cluster, self._ports, self._runner, request.policy, on_stage, request.check)
        attempt = Attempt(request, taker, directory, session, beat)
        look, looks = await self._look_until_sure(attempt)
        return await self._publish(attempt, replace(look, cut=look.cut.model_copy(update={"looks": looks})))

    async def _look_until_sure(self, attempt: Attempt) -> tuple[Look, int]:
        """Until nothing differs, or the same differs twice, or there were enough of them: the look that counts."""
        before: Look | None = None
        vain = 0
        for number in range(1, LOOKS + 1):
            if number > 1:
                await asyncio.sleep(attempt.request.policy.poll_interval.total_seconds())
            look = await self._look(attempt, number)
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

    async def _look(self, attempt: Attempt, number: int) -> Look:
        directory = attempt.directory / f"look-{number}"
        await asyncio.to_thread(directory.mkdir, mode=0o700)
        begun = time.monotonic()
        try:
            asked, cut = await attempt.taker.take(f"{attempt.request.report_id}-{number}", directory)
            attempt.seconds[f"look {number}: read"] = round(time.monotonic() - begun, 3)
            compared = await self._runner.compare(
                asked, _session_of(attempt.session, number), partial(attempt.beat.note, number)
            )
            attempt.seconds |= {f"look {number}: {what}": round(took, 3) for what, took in compared.seconds.items()}
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
        compared, moved = await self._runner.confirm(asked, before.compared, look.compared)
        return Look(look.cut, asked, compared), moved

    async def _publish(self, attempt: Attempt, look: Look) -> DriftReport:
        cut = look.cut
        if look.compared is None:
            cut = cut.model_copy(update={"claim": await attempt.taker.claim_now()})
        compared = look.compared or nothing(attempt.request, look.why_not, rules_fingerprint())
        return await report_of(
            self._ports.artefacts, attempt.request, compared, attempt.started_at, cut=cut, seconds=attempt.seconds
        )


def _session_of(session: str, look: int) -> str:
    """Each look has its own, which whoever knows the attempt's can name: a session is closed for good at its end."""
    return str(uuid5(UUID(session), str(look)))


def _note_stage(beat: Beat, stage: str) -> None:
    beat.note(0, stage, 0, 1)


def _moving(look: Look) -> Look:
    """Something differed in every look, and never the same: no consistent cut was had."""
    found = look.compared
    assert found is not None  # noqa: S101 - the caller has looked
    moved = sum(c.missing_left + c.missing_right + c.differs for c in found.counts.values())
    why = f"{moved} rows differed in the last of {LOOKS} looks, and others before: they move faster than they can be read"
    not_read = (*found.not_read, why)
    hash_ = content_hash(CheckName.METADATA, Verdict.INCONCLUSIVE, found.counts, found.first, not_read, found.rules_fingerprint)
    return replace(look, compared=replace(found, verdict=Verdict.INCONCLUSIVE, not_read=not_read, content_hash=hash_))


def _outcome(report: DriftReport) -> CheckOutcome:
    why = "" if report.verdict is Verdict.CLEAN else told(report)
    return CheckOutcome(report_id=report.id, verdict=report.verdict, content_hash=report.content_hash, why=why[:1000])
