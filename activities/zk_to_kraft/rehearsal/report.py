"""What all trials of a rehearsal together say."""

from activities.observing.present_ensemble import Newest
from activities.zk_to_kraft.rehearsal.messages import Copied, Ended
from domain.decisions import Finding
from domain.drift.report import CheckResult
from domain.rehearsal import Equality, RehearsalReport
from domain.zk_to_kraft.rehearsal.outcome import advice_of, age_unknown, cut_short, differences_of, findings_of, unexplained
from domain.zk_to_kraft.rehearsal.trials import Cleared, Outcome, cleared, proven


def equality_of(compared: CheckResult) -> Equality:
    return Equality(verdict=compared.verdict, counts=compared.counts, differences=compared.first, not_read=compared.not_read)


def report_of(ended: Ended, equality: Equality | None, connect: str, newest: Newest) -> RehearsalReport:
    """What all trials together say."""
    way = cleared(ended.candidates, ended.trials)
    copied, found = ended.copied, findings_of(proven(ended.candidates, ended.trials), connect)
    guilty = way.left_out & {finding.object for finding in found}
    return RehearsalReport(
        has_passed=way.has_passed and not way.left_out,
        has_passed_in_part=way.has_passed and bool(way.left_out),
        left_out=tuple(sorted(guilty or way.left_out)) if way.has_passed else (),
        rounds=len(ended.trials),
        records=copied.records,
        copy_seconds=copied.copy_seconds if way.has_passed else None,
        seconds_without_controller=copied.seconds_without_controller if way.has_passed else None,
        controller=copied.usage,
        advice=advice_of(copied.usage),
        findings=(
            *found,
            *(() if way.has_passed else (cut_short(ended.cut) if ended.cut else _stopped(ended),)),
            *((_of_no_znode_alone(way, copied),) if way.has_passed and way.left_out and not guilty else ()),
            *differences_of(equality, [finding.object for finding in found]),
            *((age_unknown(newest.why_unsure, newest.zxid),) if newest.why_unsure else ()),
        ),
        equality=equality,
    )


def _of_no_znode_alone(way: Cleared, copied: Copied) -> Finding:
    paths = ", ".join(sorted(way.left_out))
    what = f"with the cluster as it is the copy stopped. It passed without {paths}, and with each of them"
    return unexplained(what, copied.told)


def _stopped(ended: Ended) -> Finding:
    last = ended.trials[-1].outcome
    what = {
        Outcome.STUCK: f"the copy never began: {ended.copied.waits or 'nothing moved'}",
        Outcome.HUNG: "everything was copied, and dual write never began",
    }.get(last, "the copy died")
    if ended.copied.usage.was_out_of_memory:
        what = f"{ended.copied.usage.heap_given_mib} MiB of heap were not enough"
    return unexplained(what, ended.copied.told)
