"""What a report says to people, and whether it can be compared with. Pure."""

from typing import TypeGuard

from domain.drift.explaining import explanation_of, tally
from domain.drift.hashing import rules_fingerprint
from domain.drift.messages import rules_fingerprint as message_rules
from domain.drift.records import Severity
from domain.drift.report import CheckName, DriftFinding, DriftReport, FindingKind, Verdict

MAX_KEY = 120
"""Characters of a finding's key that a wait shows; the report has all."""


def is_usable(baseline: DriftReport | None) -> TypeGuard[DriftReport]:
    """Whether something can be compared with what this one has kept."""
    return baseline is not None and baseline.baseline is not None and baseline.verdict is Verdict.CLEAN


def blocks(report: DriftReport) -> bool:
    """Whether something in it is no everyday change. The gravest findings come first."""
    return any(f.severity is Severity.BLOCK and f.finding not in HARMLESS for f in report.first)


HARMLESS = frozenset({FindingKind.TOLERATED, FindingKind.UNVERIFIABLE})


def is_of_our_rules(report: DriftReport) -> bool:
    is_about_messages = report.check in {CheckName.BASELINE, CheckName.MESSAGES}
    return report.rules_fingerprint == (message_rules() if is_about_messages else rules_fingerprint())


MOST_EXPLAINED = 2
"""Kinds of findings of which it is told what they mean; the report has all."""


def objects_of(report: DriftReport) -> tuple[str, ...]:
    """What a wait names: the first findings, or what was not read, each once."""
    is_found = report.verdict is Verdict.DRIFT and (report.check is not CheckName.MESSAGES or blocks(report))
    unread = (what.partition("; ")[0] for what in report.not_read)
    return tuple(dict.fromkeys(map(_object, report.first) if is_found else unread))


def _object(finding: DriftFinding) -> str:
    return f"{finding.record} {finding.key}"[:MAX_KEY]


def told(report: DriftReport) -> str:
    """One line for people: which report, and what it found."""
    when = f"report {report.id} of {report.ended_at:%Y-%m-%d %H:%M:%S} UTC"
    if report.verdict is Verdict.INCONCLUSIVE:
        return f"{when}: {'; '.join(report.not_read) or 'no consistent cut could be had'}"
    if report.verdict is Verdict.CLEAN and not is_of_our_rules(report):
        return f"{when} was made by other rules: is the worker keeperless-checks of the same version as this one?"
    where = "; ".join(f"{_object(f)}: {f.finding}{f' {f.field}' if f.field else ''}" for f in report.first[:5])
    is_of_clients = report.check is CheckName.MESSAGES  # of metadata the wait itself says what to do
    said = dict.fromkeys(explanation_of(finding, report.check) for finding in report.first if is_of_clients)
    why = (f"{one.means} {one.advice}" for one in list(said)[:MOST_EXPLAINED])
    return " ".join(filter(None, [f"{when}: {tally(report)}.", *why, where]))
