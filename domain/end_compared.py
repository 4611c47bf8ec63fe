"""GF22, the comparison after the end: a difference is an alert. It undoes nothing, and nothing waits for it."""

from collections.abc import Iterable, Sequence

from domain.decisions import COMPARE_END
from domain.diagnosis.blocker import Blocker, blocker
from domain.drift.explaining import explanation_of, tally, verdict_in_words
from domain.drift.report import CheckName, DriftReport, FindingKind, Verdict
from domain.records import Event, Record

GF22 = "GF22"


class EndCompared(Record):
    """What the comparison after the end came to. Without a report nothing was compared, and `says` tells why."""

    verdict: Verdict
    says: str
    report_id: str | None


def end_compared(events: Sequence[Event], reports: Iterable[DriftReport]) -> EndCompared | None:
    """`None` where it was not tried: the migration went back, did nothing, or found the end there."""
    report = next((report for report in reports if report.check is CheckName.END), None)
    if report is not None:
        return EndCompared(verdict=report.verdict, says=verdict_in_words(report), report_id=report.id)
    tried = [event for event in events if event.data.get("action") == COMPARE_END]
    if not tried:
        return None
    return EndCompared(verdict=Verdict.INCONCLUSIVE, says=f"Not compared: {tried[-1].data.get('why', '')}", report_id=None)


def lost_at_the_end(report: DriftReport | None) -> tuple[Blocker, ...]:
    """The alert where KRaft does not have what ZooKeeper had when KRaft stopped writing to it."""
    if report is None or report.verdict is not Verdict.DRIFT:
        return ()
    first = next(finding for finding in report.first if finding.finding is not FindingKind.TOLERATED)
    found = blocker(
        GF22,
        "the end",
        observed=f"report {report.id}: {tally(report)}, first {first.record} {first.key}",
        expected="KRaft has what ZooKeeper had at the gate, but for what its own log says was changed since",
        fix=explanation_of(first, CheckName.END).advice,
        since=report.ended_at,
    )
    return (found,)


class NextStep(Record):
    """One thing to do now. `do`: what to type or to change, in order, then how to see that it worked. `objects`: where."""

    subject: str
    do: str
    objects: tuple[str, ...] = ()
