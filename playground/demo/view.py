"""What a person sees: a pure function from a state to something that rich can print. Its height is known beforehand."""

from rich import box
from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from domain.records import NodeStatus
from playground.demo.state import PHASES, DemoState, Line, Tone

TONES = {Tone.PLAIN: "default", Tone.GOOD: "green", Tone.NEWS: "bold cyan", Tone.ALERT: "bold red"}
MODES = {
    "zookeeper": "yellow",
    "hybrid": "magenta",
    "migrating": "magenta",
    "kraft": "green",
    "final": "green",
    "in-transition": "cyan",
    "interrupted": "cyan",
    "absent": "dim",
}
SHORT_MODES = {"in-transition": "transition", "interrupted": "stopped"}
"""Where a whole word would push the restarts out of the picture."""
NOT_YET = frozenset({"in-transition", "interrupted"})
"""Modes of a node that is being made, or restarted."""
LEADING_BACK = "leading back"
"""In place of what the demo does, while its migration goes back to ZooKeeper."""
STAGES = {"zookeeper": "yellow", "migration": "magenta", "kraft": "green"}

WIDE_ENOUGH_FOR_PHASES = 100
WIDEST = 120
WIDE_ENOUGH_FOR_WORDS = 116
PANEL_WIDTH = 28
BODY_ROWS = len(PHASES) + 2
NOW_ROWS = 4
HEADER_ROWS = 2
FEWEST_LINES = 2
QUIET_SECONDS = 20.0
LONGEST_AS_SECONDS = 99.5
STALE_SECONDS = 6.0
"""A look older than this is shown with its age."""

AT_THE_END = {
    "succeeded": "No broker and no controller uses ZooKeeper any more.",
    "reverted": "Every broker runs on ZooKeeper with its own file again, and nothing is left of the controllers.",
}
ENDED_WELL = frozenset(AT_THE_END)
DOING = {
    "starting": "Temporal, three workers and the API, three ZooKeeper servers, three brokers: all together.",
    "planning": "Looking at the cluster: no migration has started.",
    "ready": "The cluster is in ZooKeeper mode, under continuous writes: it is yours.",
    "migrating": "Looking at the cluster, and deciding what comes next.",
    "proving": "Every message that was acknowledged is read back from the beginning, and compared by identifier.",
    "done": "Every message that was acknowledged was read back from the beginning, and compared by identifier.",
}


def view(state: DemoState, width: int = 100, height: int = 30) -> RenderableType:
    """All of it, at most `height` rows high and made for `width` columns."""
    width = min(width, WIDEST)
    room = max(FEWEST_LINES, height - HEADER_ROWS - BODY_ROWS - NOW_ROWS - 2)
    parts = Group(_header(state, width), _body(state, width), _now(state), _story(state.lines[-room:], room))
    return Constrain(parts, width)


def clock(seconds: float) -> str:
    """`1:07`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _header(state: DemoState, width: int) -> RenderableType:
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    title = Text.assemble(("Keeperless", "bold"), f"  {state.title}")
    doing = LEADING_BACK if state.is_going_back and state.state not in ENDED_WELL else state.doing
    grid.add_row(title, Text.assemble((doing, "bold cyan"), f"  {clock(state.seconds)}"))
    is_wide = width >= WIDE_ENOUGH_FOR_PHASES  # else an address would lose its end
    links = [("Temporal UI" if is_wide else "UI", state.addresses.temporal_ui), ("API", state.addresses.api_docs)]
    shown = Text("   ").join(Text.assemble((f"{name} ", "dim"), (url, f"link {url}")) for name, url in links if url)
    most = f"{state.peak_mib / 1024:.1f} GiB{' at most' if is_wide else ''}"
    grid.add_row(shown, Text(most if state.peak_mib else "", "dim"))
    return grid


def _body(state: DemoState, width: int) -> RenderableType:
    grid = Table.grid(expand=True)
    has_phases = width >= WIDE_ENOUGH_FOR_PHASES
    title = "nodes" if has_phases else _nodes_in_phase(state)
    panels = [_panel(_nodes(state, width >= WIDE_ENOUGH_FOR_WORDS), title), _panel(_numbers(state), "numbers")]
    if has_phases:
        grid.add_column(width=PANEL_WIDTH)
        panels.insert(0, _panel(_phases(state), "phase"))
    grid.add_column(ratio=1)
    grid.add_column(width=PANEL_WIDTH)
    grid.add_row(*panels)
    return grid


def _nodes_in_phase(state: DemoState) -> str:
    if state.phase not in PHASES:
        return "nodes"
    return f"nodes · {_sign(state)} {state.phase}, phase {PHASES.index(state.phase) + 1} of {len(PHASES)}"


def _panel(content: RenderableType, title: str, rows: int = BODY_ROWS, style: str = "dim") -> Panel:
    return Panel(content, title=title, title_align="left", box=box.ROUNDED, height=rows, border_style=style, padding=(0, 1))


def _phases(state: DemoState) -> RenderableType:
    spent = {phase.name: phase.seconds for phase in state.phases}
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    grid.add_column(ratio=1, no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    for name in PHASES:
        grid.add_row(_phase(name, state, name in spent), Text(_seconds(spent[name]) if name in spent else "", "dim"))
    return grid


def _sign(state: DemoState) -> str:
    return "◀" if state.is_going_back else "▶"


def _phase(name: str, state: DemoState, is_entered: bool) -> Text:
    if name == state.phase and state.state not in ENDED_WELL:
        return Text(f"{_sign(state)} {name}", "bold cyan")
    if state.phase not in PHASES:
        is_passed = is_entered
    else:
        # One that was over before anybody looked, as the copy of a small cluster is, has no time and was passed all the same;
        # one that an earlier migration entered is still to come.
        is_passed = PHASES.index(name) <= PHASES.index(state.phase)
        if is_entered and state.is_going_back and not is_passed:
            return Text(f"↶ {name}", "yellow")
    return Text(f"✔ {name}", "green") if is_passed else Text(f"· {name}", "dim")


def _nodes(state: DemoState, is_wide: bool) -> RenderableType:
    if not state.nodes:
        return Text("not looked at yet", "dim")
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0), header_style="dim", show_edge=False, pad_edge=False)
    for name in ("node", "mode", "file"):
        table.add_column(name, no_wrap=True)
    table.add_column("ready" if is_wide else "✔", no_wrap=True)
    table.add_column("restarts" if is_wide else "↻", justify="right", no_wrap=True)
    for node in state.nodes:
        table.add_row(*_node(node, is_wide))
    return table


def _node(node: NodeStatus, is_wide: bool) -> tuple[Text, ...]:
    is_there = node.mode != "absent"
    words = ("yes", "no") if is_wide else ("✔", "◌" if node.mode in NOT_YET else "✘")
    ready = Text(words[0], "green") if node.is_ready else Text(words[1] if is_there else "", "yellow")
    restarts = Text(str(node.restarts) if node.restarts else "·", "default" if node.restarts else "dim")
    mode = node.mode if is_wide else SHORT_MODES.get(node.mode, node.mode)
    stage = Text(node.stage if is_there else "", STAGES.get(node.stage, "red"))
    return Text(node.name), Text(mode, MODES.get(node.mode, "red")), stage, ready, restarts


def _numbers(state: DemoState) -> RenderableType:
    gauges, load = state.gauges, state.load
    is_proved = load.lost is not None
    return Group(
        _row("gauge", _known(gauges.migration_state)),
        _row("ZkWriteBehindLag", _known(gauges.write_behind_lag)),
        _row("under-replicated", _known(gauges.under_replicated)),
        _row("quorum leader", _known((gauges.quorum_leader or "none").removeprefix("controller-"))),
        _row("acknowledged", Text(f"{load.acknowledged:,}", "bold")),
        _row("a second", Text(f"{load.rate:.0f}")),
        _row("read back", Text(f"{load.read_back:,}")),
        _row("lost", _good_if_none(load.lost or 0)) if is_proved else _row("unread > 10 s", _good_if_none(load.missing)),
        _row("longest pause", Text(f"{load.longest_pause_seconds:.1f} s", "yellow" if load.waiting_seconds > 1 else "")),
    )


def _row(name: str, value: Text) -> RenderableType:
    """A grid of its own: a long name leaves other rows their room."""
    grid = Table.grid(expand=True)
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(justify="right", no_wrap=True, ratio=1)
    grid.add_row(name, value)
    return grid


def _known(value: object) -> Text:
    return Text("unknown", "dim") if value is None else Text(f"{value:,}" if isinstance(value, int) else str(value))


def _now(state: DemoState) -> RenderableType:
    title, text, style = _what_happens(state)
    stale = state.look_age_seconds is not None and state.look_age_seconds > STALE_SECONDS and state.state not in ENDED_WELL
    if stale:
        title += f" · last observation {state.look_age_seconds:.0f} s ago"
    return _panel(Text(text, overflow="ellipsis"), title, NOW_ROWS, style)


def _what_happens(state: DemoState) -> tuple[str, str, str]:
    """Title, text and border of the panel that says why one is looking at an unchanging picture."""
    wait = state.waiting
    if wait is not None:
        about = ", ".join(wait.objects)
        detail = " ".join(wait.detail.split())
        text = "  ".join(part for part in (about, wait.means, detail) if part)
        return f"waiting: {wait.reason} · {clock(wait.seconds)}", text, "yellow"
    if state.working is not None:
        unknown = f"  (does not answer: {', '.join(state.unknown)})" if state.unknown else ""
        return f"working · {clock(state.working.seconds)}", state.working.text + unknown, "cyan"
    if state.phase is not None and state.state not in ENDED_WELL and state.quiet_seconds > QUIET_SECONDS:
        return (
            f"quiet · {clock(state.quiet_seconds)}",
            "No report for a while: the Temporal UI shows what the workflow does.",
            "red",
        )
    if state.state in ENDED_WELL:
        return state.state, f"{AT_THE_END[state.state]} {DOING.get(state.doing, '')}", "green"
    return state.state or state.doing, DOING.get(state.doing, ""), "dim"


def _story(lines: tuple[Line, ...], room: int) -> RenderableType:
    grid = Table.grid(padding=(0, 1), expand=True)
    # A long line gives way, and not the clock: rich would shrink both.
    grid.add_column(
        justify="right", style="dim", no_wrap=True, min_width=max((len(clock(line.seconds)) for line in lines), default=0)
    )
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for line in lines:
        grid.add_row(clock(line.seconds), Text(line.text, TONES[line.tone]))
    for _ in range(room - len(lines)):
        grid.add_row("", "")
    return grid


def _good_if_none(count: int) -> Text:
    return Text(f"{count:,}", "red bold" if count else "green")


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < LONGEST_AS_SECONDS else clock(seconds)
