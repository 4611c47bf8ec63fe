"""`run_check`: make one check, and publish what was found, once. What a check compares is the kind's of migration, but for
clients' data (`manifests`).

The first thing that an attempt tells with its heartbeat is the session that it will use: one for all checks of a migration
that the same worker makes, because Spark takes seconds for a new one. An attempt that follows one that died ends that
session, with all that runs in it, and removes the other's files, before it begins. One that lives, and was only cut off from
Temporal, keeps its files until it ends (`check_directories`). An attempt that comes late finds the report published.
"""

import asyncio
from pathlib import Path
from uuid import uuid4

from temporalio import activity

from activities.check_directories import enter, sweep
from activities.check_heartbeat import Beat
from activities.claims import registered
from activities.comparison.manifests import compare_with_baseline, keep_baseline
from activities.ports.checks import CheckAttempt, CheckRunner, MessageRunner
from activities.ports.ports import Ports
from domain.contracts import ActivityName, CheckOutcome, CheckRequest
from domain.drift.report import CheckName, DriftReport, Verdict
from domain.drift.verdicts import told
from domain.errors import Permanent

CLIENT_DATA = {CheckName.BASELINE: keep_baseline, CheckName.MESSAGES: compare_with_baseline}
"""Checks that are the same for every kind of migration."""


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
        own = self._ports.kinds[request.kind].checks
        if request.check not in {*CLIENT_DATA, *own}:
            raise Permanent(f"check {request.check}: this worker makes {', '.join((*own, *CLIENT_DATA))} only")
        beat = Beat()
        async with beat.beating():
            is_alone = request.is_asked_for or request.migration_id is None
            owner = request.report_id if is_alone else str(request.migration_id)
            session = await self._begin(beat, owner)
            place = await asyncio.to_thread(enter, self._work, request.report_id, str(uuid4()))
            try:
                report = await self._report(request, place.directory, session, beat)
                published = await self._ports.ledger.add_report(report)
                if request.check is CheckName.END:
                    self._runner.leave(owner)
                return _outcome(published)
            finally:
                await asyncio.shield(asyncio.to_thread(place.leave))
                if is_alone:
                    self._runner.leave(owner)

    async def _begin(self, beat: Beat, owner: str) -> str:
        """The session of our own, told before it is used, and an end to those of attempts that died, then to their files."""
        for done, one in enumerate(beat.earlier_sessions):
            beat.note(0, "ending what a dead attempt has left on Spark", done, len(beat.earlier_sessions))
            beat.tell(*beat.earlier_sessions)
            await self._runner.interrupt(one)
        session = self._runner.session_of(owner)
        beat.tell(*beat.earlier_sessions, session)
        await asyncio.to_thread(sweep, self._work)
        beat.tell(session)
        return session

    async def _report(self, request: CheckRequest, directory: Path, session: str, beat: Beat) -> DriftReport:
        cluster = await registered(request.cluster, self._ports)
        attempt = CheckAttempt(request, cluster, session, directory, beat.note)
        of_clients = CLIENT_DATA.get(request.check)
        if of_clients is not None:
            return await of_clients(self._ports, self._messages, attempt)
        return await self._ports.kinds[request.kind].checks[request.check](self._ports, self._runner, attempt)


def _outcome(report: DriftReport) -> CheckOutcome:
    why = "" if report.verdict is Verdict.CLEAN else told(report)
    return CheckOutcome(report_id=report.id, verdict=report.verdict, content_hash=report.content_hash, why=why[:1000])
