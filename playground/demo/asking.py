"""The gate: what the approver is shown, and how the answer is asked for."""

from enum import StrEnum
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from domain.questions import RollbackPreview
from domain.records import OpenGate
from playground.demo.state import DemoState
from playground.demo.words import aside

HASH_SHOWN = 12
IRREVERSIBLE = (
    "The controllers restart one by one without zookeeper.metadata.migration.enable: standbys first, the active one last.",
    "Kafka stops writing to ZooKeeper. What is changed from then on exists in KRaft only.",
    "From the first of these restarts on an election can make it final: do not count on a rollback to ZooKeeper.",
)
WITH_A_NO = "A no touches nothing: the migration is held where it is, in dual write, with ZooKeeper up to date."


class Verdict(StrEnum):
    """What came of the question."""

    APPROVE = "approve"
    REJECT = "reject"
    NOBODY = "nobody"
    """There was nobody to ask."""


def question(gate: OpenGate, state: DemoState) -> RenderableType:
    """What an approver should look at before deciding; the evidence is what the approval binds to."""
    content = Group(
        Text.assemble("cluster ", (str(gate.evidence["cluster"]), "bold"), f" ({gate.evidence['cluster_id']})"),
        "",
        _nodes(gate.evidence["nodes"]),
        "",
        _facts(gate.evidence, state),
        "",
        Text("What cannot be undone", "bold red"),
        _sentences(),
        "",
        Text.assemble("evidence ", (gate.evidence_hash, "bold cyan"), overflow="fold"),
    )
    return Panel(content, title=f"gate {gate.name}: your decision", title_align="left", box=box.ROUNDED, border_style="cyan")


def _sentences() -> Table:
    grid = Table.grid(padding=(0, 1))
    for sentence in IRREVERSIBLE:
        grid.add_row("•", sentence)
    grid.add_row("•", Text(WITH_A_NO, "green"))
    return grid


def _nodes(nodes: dict[str, dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("node", "mode", "file", "migration flag", "file's sha256"):
        table.add_column(column, no_wrap=True)
    for name, seen in nodes.items():
        digest = (seen["file"] or "unknown")[:HASH_SHOWN]
        table.add_row(name, seen["mode"], seen["stage"] or "unknown", seen["flag"] or "none", digest)
    return table


def _facts(evidence: dict[str, Any], state: DemoState) -> Table:
    guards, claim, gauges, load = evidence["guards"], evidence["claim"], state.gauges, state.load
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    facts = {
        "gauge": gauges.migration_state or "unknown",
        "dual write": f"{guards['dual_write']}: ZkWriteBehindLag {_told(gauges.write_behind_lag)}, "
        f"ZooKeeper is {_told(gauges.offset_distance)} records behind the quorum's log",
        "/controller": f"claimed by {claim['by']}, epoch {claim['epoch']}; quorum leader {_told(gauges.quorum_leader)}",
        "brokers": f"registrations: {guards['registration']}; replicas: {guards['replication']}, "
        f"{_told(gauges.under_replicated)} partitions under-replicated",
        "clients": f"{load.acknowledged:,} acknowledged, {load.missing} of them unread after 10 s, "
        f"longest pause {load.longest_pause_seconds:.1f} s{aside(state.disturbance)}",
    }
    for name, fact in facts.items():
        grid.add_row(name, fact)
    return grid


def _told(value: object) -> str:
    return "unknown" if value is None else str(value)


def way_back(preview: RollbackPreview) -> RenderableType:
    """What somebody should look at before going back; the request is bound to just this."""
    content = Group(
        Text.assemble("cluster ", (preview.cluster, "bold"), f" in phase {preview.phase}"),
        "",
        _steps(preview),
        "",
        _prices(preview),
        "",
        Text.assemble("preview ", (preview.preview_hash, "bold cyan"), overflow="fold"),
    )
    return Panel(content, title="rollback: your decision", title_align="left", box=box.ROUNDED, border_style="cyan")


def _steps(preview: RollbackPreview) -> Table:
    grid = Table.grid(padding=(0, 1))
    for number, step in enumerate(preview.steps, start=1):
        grid.add_row(Text(f"{number}", "dim"), step.what)
    return grid


def _prices(preview: RollbackPreview) -> Table:
    """What it costs, and what it does not bring back."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    grid.add_row("restarts", ", ".join(f"{name} {count}×" for name, count in preview.restarts.items() if count) or "none")
    grid.add_row(
        "without a controller", f"{preview.controllerless_seconds:g} s, as measured elsewhere; messages flow all the time"
    )
    grid.add_row("files", ", ".join(f"{file.node} {file.how}" for file in preview.files) or "none")
    losses = Text("nothing", "green") if not preview.losses else Text("; ".join(loss.what for loss in preview.losses), "red")
    grid.add_row("what is lost", losses)
    return grid


def ask(console: Console, gate: OpenGate) -> Verdict:
    """Blocks until somebody says yes or no, or closes the input."""
    return _asked(console, f"[bold]Approve {gate.name}?[/bold] yes or no: ")


def ask_back(console: Console) -> Verdict:
    return _asked(console, "[bold]Go back to ZooKeeper?[/bold] yes or no: ")


def _asked(console: Console, prompt: str) -> Verdict:
    while True:
        try:
            answer = console.input(prompt).strip().lower()
        except EOFError:
            return Verdict.NOBODY
        if answer in {"yes", "y"}:
            return Verdict.APPROVE
        if answer in {"no", "n"}:
            return Verdict.REJECT
        console.print("Please say yes or no.")
