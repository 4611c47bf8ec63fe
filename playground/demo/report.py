"""What a run has come to: the summary, and report.json."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich import box
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from domain.zk_to_kraft.phases import Phase
from playground.demo.door import MigrationSeen
from playground.demo.state import PhaseTime
from playground.load_report import LoadReport


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
    unacknowledged: int
    longest_pause_seconds: float
    slowest_acknowledgement_seconds: float
    peak_rss_mib: float

    @property
    def is_success(self) -> bool:
        return self.state == Phase.KRAFT and self.lost == 0 and self.acknowledged > 0

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
        unacknowledged=load.unacknowledged,
        longest_pause_seconds=round(load.longest_pause_seconds, 2),
        slowest_acknowledgement_seconds=round(load.slowest_acknowledgement_seconds, 2),
        peak_rss_mib=round(peak_rss_mib),
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
    grid.add_row(
        "pauses", f"longest {report.longest_pause_seconds} s; slowest message {report.slowest_acknowledgement_seconds} s"
    )
    grid.add_row("restarts", _restarts(report))
    grid.add_row("time", _time(report))
    grid.add_row("memory", f"{report.peak_rss_mib} MiB at most, all processes together")
    style = "green" if report.is_success else "red"
    return Panel(grid, title="summary", title_align="left", box=box.ROUNDED, border_style=style)


def _restarts(report: DemoReport) -> Text:
    counted = Text(_counts(report.restarts))
    if report.restarts != report.restarts_told:
        counted.append(f"; the migration tells otherwise: {_counts(report.restarts_told)}", "bold red")
    return counted


def _counts(restarts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}×" for name, count in restarts.items()) or "none"


def _time(report: DemoReport) -> str:
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in report.phases.items() if seconds)
    return f"{report.seconds_total:.0f} s in all: {spent}"


def _messages(report: DemoReport) -> Text:
    return Text.assemble(
        f"{report.acknowledged:,} acknowledged, {report.read_back:,} read back, ",
        (f"{report.lost} lost", "bold red" if report.lost else "bold green"),
        f", {report.duplicated} twice",
    )
