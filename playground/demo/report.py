"""What a run has come to: the summary, and report.json."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich import box
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from domain.amounts import counted, roughly
from domain.zk_to_kraft.phases import Phase
from playground.demo.door import MigrationSeen
from playground.demo.state import PhaseTime
from playground.demo.words import aside
from playground.load_report import LoadReport, duplicates_in_words


@dataclass(frozen=True)
class Circumstances:
    """What the figures are to be judged by."""

    held_by: str = ""
    """The person who has held the migration in the end."""
    disturbance: str = ""
    """What the demo itself did to clients."""
    planned_seconds: float | None = None
    """As a plan estimated the migration, if there was one: people's time and comparisons left out."""


@dataclass(frozen=True)
class Ending:
    """What the product says of the last migration, in lines: who decided, what was compared, what to do now."""

    decisions: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    pause: str = ""
    what_now: tuple[str, ...] = ()


def ending_of(migration: MigrationSeen | None) -> Ending:
    """Empty where it goes on."""
    told = migration.summary if migration is not None else None
    if told is None:
        return Ending()
    pause = told.longest_pause
    return Ending(
        decisions=tuple(f"{d.kind} {d.gate or ''} by {d.by}: {d.reason}".replace("  ", " ") for d in told.decisions),
        checks=tuple(f"{report.check} {report.verdict}" for report in told.reports),
        pause=f"{pause.measure} {pause.seconds:.1f} s ({pause.node})" if pause is not None else "",
        what_now=tuple(step.subject for step in told.what_now),
    )


@dataclass(frozen=True)
class DemoReport:
    """The fields of report.json. `seconds_total` counts from the end of the set-up until the proof was done."""

    state: str
    """The phase in which the cluster is left."""
    migration: str
    """The migration's own state: `succeeded`, `held`, `refused`, …; of several, in order: `reverted, succeeded`."""
    seconds_total: float
    phases: dict[str, float]
    restarts: dict[str, int]
    """As counted from outside, by the processes that lived: of nodes that had one."""
    restarts_told: dict[str, int]
    """As the migration tells it. The same, or one of us is wrong."""
    acknowledged: int
    read_back: int
    lost: int
    duplicated: int
    sent_again: int
    """Duplicates that the load itself sent more than once. Its idempotent producer has repeated the rest."""
    unacknowledged: int
    longest_pause_seconds: float
    slowest_acknowledgement_seconds: float
    peak_rss_mib: float
    circumstances: Circumstances = field(default_factory=Circumstances)
    ending: Ending = field(default_factory=Ending)

    @property
    def is_success(self) -> bool:
        return self.state == Phase.KRAFT and self._has_lost_nothing

    @property
    def is_as_asked(self) -> bool:
        """Arrived, or held by a person: who says no has not failed."""
        return self.is_success or (bool(self.circumstances.held_by) and self._has_lost_nothing)

    @property
    def _has_lost_nothing(self) -> bool:
        return self.lost == 0 and self.acknowledged > 0

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


def report_of(
    migrations: Sequence[MigrationSeen],
    phase: str | None,
    phases: tuple[PhaseTime, ...],
    restarts: dict[str, int],
    restarts_told: dict[str, int],
    load: LoadReport,
    seconds_total: float,
    peak_rss_mib: float,
    circumstances: Circumstances | None = None,
) -> DemoReport:
    return DemoReport(
        state=phase or "unknown",
        migration=", ".join(migration.state for migration in migrations),
        seconds_total=round(seconds_total, 1),
        phases={spent.name: round(spent.seconds, 1) for spent in phases},
        restarts=_of_any(restarts),
        restarts_told=_of_any(restarts_told),
        acknowledged=load.acknowledged,
        read_back=load.read_back,
        lost=len(load.lost),
        duplicated=len(load.duplicated),
        sent_again=len(load.sent_again),
        unacknowledged=load.unacknowledged,
        longest_pause_seconds=round(load.longest_pause_seconds, 2),
        slowest_acknowledgement_seconds=round(load.slowest_acknowledgement_seconds, 2),
        peak_rss_mib=round(peak_rss_mib),
        circumstances=circumstances or Circumstances(),
        ending=ending_of(migrations[-1] if migrations else None),
    )


def _of_any(restarts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in restarts.items() if count}


def summary(report: DemoReport) -> RenderableType:
    """For the end of the demo."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    grid.add_row(
        "cluster", Text(f"{report.state}, migration {report.migration}", "bold green" if report.is_success else "bold red")
    )
    grid.add_row("messages", _messages(report))
    grid.add_row("pauses", _pauses(report))
    grid.add_row("restarts", _restarts(report))
    grid.add_row("time", _time(report))
    if report.circumstances.planned_seconds is not None:
        grid.add_row("plan", _plan(report, report.circumstances.planned_seconds))
    for name, lines in _ending(report.ending):
        grid.add_row(name, "\n".join(lines))
    grid.add_row("memory", f"{report.peak_rss_mib} MiB at most, all processes together")
    style = "green" if report.is_success else "yellow" if report.is_as_asked else "red"
    return Panel(grid, title="summary", title_align="left", box=box.ROUNDED, border_style=style)


def _ending(ending: Ending) -> list[tuple[str, tuple[str, ...]]]:
    """Rows for what the product tells of its last migration; none where it tells nothing."""
    checks = (", ".join(ending.checks),) if ending.checks else ()
    told = (("decided", ending.decisions), ("compared", checks), ("what now", ending.what_now))
    return [(name, lines) for name, lines in told if lines]


def _restarts(report: DemoReport) -> Text:
    counted = Text(_counts(report.restarts))
    if report.restarts != report.restarts_told:
        counted.append(f"; the migration reports otherwise: {_counts(report.restarts_told)}", "bold red")
    return counted


def _counts(restarts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}×" for name, count in restarts.items()) or "none"


def _time(report: DemoReport) -> str:
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in report.phases.items() if seconds)
    return f"{report.seconds_total:.0f} s in all: {spent}"


def _pauses(report: DemoReport) -> str:
    longest = f"longest {report.longest_pause_seconds} s{aside(report.circumstances.disturbance)}"
    told = f"; the product reports {report.ending.pause}" if report.ending.pause else ""
    return f"{longest}; slowest message {report.slowest_acknowledgement_seconds} s{told}"


def _plan(report: DemoReport, planned: float) -> str:
    """All phases together: what the load needed before and after is none of the migration's time."""
    took = at_length(sum(report.phases.values()))
    return f"{roughly(planned)} without comparisons and waits for people; the migration took {took} with both"


def _messages(report: DemoReport) -> Text:
    return Text.assemble(
        f"{report.acknowledged:,} acknowledged, {report.read_back:,} read back, ",
        (f"{report.lost} lost", "bold red" if report.lost else "bold green"),
        f", {duplicates_in_words(report.duplicated, report.sent_again)}",
    )


def at_length(seconds: float) -> str:
    """`42 seconds`, `5 minutes 3 seconds`: what a clock has shown."""
    minutes, rest = divmod(round(seconds), 60)
    parts = [counted(minutes, "minute") if minutes else "", counted(rest, "second") if rest or not minutes else ""]
    return " ".join(part for part in parts if part)
