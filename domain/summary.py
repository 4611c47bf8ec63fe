"""What a migration that has ended came to: how long, at which cost, who allowed it, and what to do now. Pure.

Everything is derived from what the ledger has: events, commands, reports, and the progress that was reported last.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

from domain.cluster import ClusterSpec
from domain.decisions import ROLL_NODE, Label
from domain.drift.explaining import verdict_in_words
from domain.drift.report import CheckName, DriftReport, Verdict
from domain.end_compared import EndCompared, NextStep, end_compared
from domain.records import DECIDING, SPECIFICATION_REVISED, ApprovalState, Command, CommandKind, Event, MigrationRecord, Record
from domain.waits import KEEPERLESS

PHASE_ENTERED, STEP_DONE, STEP_BLOCKED, TURNED = "phase-entered", "step-done", "step-blocked", "reverting"
KINDS = frozenset({PHASE_ENTERED, STEP_DONE, STEP_BLOCKED, TURNED, SPECIFICATION_REVISED})
"""The events that a summary is made of."""

NextSteps = Callable[[MigrationRecord, ClusterSpec | None, EndCompared | None], tuple[NextStep, ...]]

DECISIONS = DECIDING | {CommandKind.ROLLBACK}


class PhaseTime(Record):
    """How long the cluster was in a phase, all visits together. The first phase counts from the migration's start."""

    phase: str
    seconds: float


class PauseMeasure(StrEnum):
    """What a longest pause is measured by."""

    CLIENT_WRITES = "client-writes"
    """The longest that a write of the product's own waited for its acknowledgement while brokers restarted."""
    BROKER_RESTART = "broker-restart"
    """The longest restart of one broker, checks included. It bounds how long the broker did not serve."""


PAUSE_MEANS = {
    PauseMeasure.CLIENT_WRITES: "The longest that one of our own writes waited for its acknowledgement while a broker "
    "restarted.",
    PauseMeasure.BROKER_RESTART: "The longest restart of one broker, with the checks before and after it. Other brokers "
    "served meanwhile. How long clients waited was not measured: the policy had no max_client_pause.",
}


class LongestPause(Record):
    """The longest pause that the product knows of. `means` says what was measured, in words."""

    seconds: float
    node: str
    measure: PauseMeasure
    means: str


class ReportLine(Record):
    """The newest report of one check. `says`: its verdict in words."""

    report_id: str
    check: CheckName
    verdict: Verdict
    says: str
    at: datetime


class DecisionLine(Record):
    """What a person, or the product itself, has decided. `used_at`: when the first irreversible step used an approval.

    `refused_because`: why it was not accepted. `closed_as`, `closed_because`: what became of an approval in the end.
    """

    kind: CommandKind
    gate: Label | None
    by: str
    at: datetime
    reason: str
    used_at: datetime | None
    refused_because: str | None
    closed_as: ApprovalState | None
    closed_because: str | None


class Summary(Record):
    """A migration that has ended. `restarts`: by node. `reports`: the newest of each check, oldest first. `end`: the comparison
    after the end. `specification_revision`: of the cluster as it is now, which the migration has registered; `None` where it
    has not succeeded.
    """

    seconds: float
    phases: tuple[PhaseTime, ...]
    restarts: dict[str, int]
    longest_pause: LongestPause | None
    reports: tuple[ReportLine, ...]
    decisions: tuple[DecisionLine, ...]
    end: EndCompared | None
    what_now: tuple[NextStep, ...]
    specification_revision: int | None


def summary_of(
    record: MigrationRecord,
    events: Sequence[Event],
    commands: Iterable[Command],
    reports: Iterable[DriftReport],
    spec: ClusterSpec | None,
    next_steps: NextSteps,
) -> Summary | None:
    """The summary; `None` while the migration goes on. `events`: of `KINDS`, in order. `spec`: that it was started on.
    `next_steps`: what this kind of migration tells people to do after it has ended.
    """
    if record.ended_at is None:
        return None
    began, found = record.started_at or record.created_at, tuple(reports)
    end = end_compared(events, found)
    return Summary(
        seconds=_seconds(began, record.ended_at),
        phases=_phases(events, began, record.ended_at),
        restarts=_restarts(events),
        longest_pause=_longest_pause(events, {node.name for node in record.progress.nodes if node.role == "broker"}),
        reports=_reports(found),
        decisions=_decisions(commands, events),
        end=end,
        what_now=next_steps(record, spec, end),
        specification_revision=next((e.data["revision"] for e in events if e.kind == SPECIFICATION_REVISED), None),
    )


def _seconds(since: datetime, until: datetime) -> float:
    """Never negative: clocks of two machines differ."""
    return round(max(0.0, (until - since).total_seconds()), 1)


def _phases(events: Sequence[Event], began: datetime, ended: datetime) -> tuple[PhaseTime, ...]:
    """In the order in which they were entered first."""
    entered = [event for event in events if event.kind == PHASE_ENTERED]
    bounds = pairwise([began, *(event.at for event in entered[1:]), ended])
    spent: dict[str, float] = {}
    for event, (since, until) in zip(entered, bounds, strict=False):  # without a phase there is one bound too many
        spent[event.data["phase"]] = spent.get(event.data["phase"], 0.0) + _seconds(since, until)
    return tuple(PhaseTime(phase=phase, seconds=round(seconds, 1)) for phase, seconds in spent.items())


def _restarts(events: Sequence[Event]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for event in _restarted(events):
        counts[event.data["node"]] = counts.get(event.data["node"], 0) + 1
    return dict(sorted(counts.items()))


def _restarted(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.kind in {STEP_DONE, STEP_BLOCKED} and event.data.get("restarted")]


def _longest_pause(events: Sequence[Event], brokers: set[str]) -> LongestPause | None:
    """By what clients felt, where that was measured; else by what the restarts took. `None` where no broker restarted."""
    rolls = [e for e in _restarted(events) if e.data["action"] == ROLL_NODE and e.data["node"] in brokers]
    measured = [e for e in rolls if e.data.get("client_pause_seconds") is not None]
    measure, key, found = PauseMeasure.CLIENT_WRITES, "client_pause_seconds", measured
    if not measured:
        measure, key, found = PauseMeasure.BROKER_RESTART, "seconds", rolls
    longest = max(found, key=lambda event: float(event.data[key]), default=None)
    if longest is None:
        return None
    seconds, node = float(longest.data[key]), longest.data["node"]
    return LongestPause(seconds=seconds, node=node, measure=measure, means=PAUSE_MEANS[measure])


def _reports(reports: Iterable[DriftReport]) -> tuple[ReportLine, ...]:
    newest: dict[CheckName, DriftReport] = {}
    for report in sorted(reports, key=lambda r: (r.ended_at, r.id)):
        newest[report.check] = report
    lines = (
        ReportLine(report_id=r.id, check=r.check, verdict=r.verdict, says=verdict_in_words(r), at=r.ended_at)
        for r in newest.values()
    )
    return tuple(sorted(lines, key=lambda line: line.at))


def _decisions(commands: Iterable[Command], events: Sequence[Event]) -> tuple[DecisionLine, ...]:
    """Oldest first. A resume counts where it lets something irreversible begin."""
    of_people = [
        DecisionLine(
            kind=c.kind,
            gate=c.gate,
            by=c.by,
            at=c.at,
            reason=c.reason,
            used_at=c.consumed_at,
            refused_because=c.refused_because,
            closed_as=c.closed_as,
            closed_because=c.closed_because,
        )
        for c in commands
        if c.kind in DECISIONS or (c.kind is CommandKind.RESUME and c.gate is not None)
    ]
    own = [_turned(event) for event in events if event.kind == TURNED]
    return tuple(sorted([*of_people, *own], key=lambda line: line.at))


def _turned(event: Event) -> DecisionLine:
    """A rollback that the product began without being asked."""
    why = ": ".join(filter(None, (event.data["reason"], event.data.get("detail", ""))))
    return DecisionLine(
        kind=CommandKind.ROLLBACK,
        gate=None,
        by=KEEPERLESS,
        at=event.at,
        reason=why,
        used_at=None,
        refused_because=None,
        closed_as=None,
        closed_because=None,
    )
