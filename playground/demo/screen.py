"""Where the demo is shown: a live view in a terminal, lines anywhere else (a log of CI, a file)."""

import re
import sys
import time
from io import StringIO
from pathlib import Path
from textwrap import wrap
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from playground.demo.state import DemoState, Line
from playground.demo.view import TONES, clock, view

PICTURE_WIDTH, PICTURE_HEIGHT = 108, 34
PLAIN_WIDTH = 110
NUMBERS_EVERY_SECONDS = 10.0
TOLD_LATE_SECONDS = 2.0
"""What the migration tells arrives so much after it happened; lines wait for it, to be printed in order."""
LONG_STEP_SECONDS = 20.0
"""From here on one wonders whether anything happens."""
INDENT = 7
"""Columns of the clock before a line."""


class Screen(Protocol):
    """Shows states and lines; `pause` while something else is printed."""

    console: Console

    def show(self, state: DemoState) -> None: ...

    def tell(self, line: Line) -> None: ...

    def pause(self) -> None: ...


class LiveScreen:
    """Redraws in place. Lines are part of the view, so telling them is showing it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Live | None = None

    def show(self, state: DemoState) -> None:
        width, height = self.console.size
        drawn = view(state, width, height - 1)
        if self._live is None:
            self._live = Live(drawn, console=self.console, auto_refresh=False, vertical_overflow="crop")
            self._live.start(refresh=True)
        else:
            self._live.update(drawn, refresh=True)

    def tell(self, line: Line) -> None:
        """The next `show` has it."""

    def pause(self) -> None:
        """What is shown stays on the terminal; the next `show` draws below of what was printed since."""
        if self._live is not None:
            self._live.stop()
            self._live = None


class PlainScreen:
    """A line for everything that happens, and the numbers now and then."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._shown_at = 0.0
        self._told: list[Line] = []

    def show(self, state: DemoState) -> None:
        now = time.monotonic()
        if state.load.acknowledged and now - self._shown_at >= NUMBERS_EVERY_SECONDS:
            self._shown_at = now
            self.tell(Line(state.seconds, numbers(state)))
        self._print(state.seconds - TOLD_LATE_SECONDS)

    def tell(self, line: Line) -> None:
        """A later `show` prints it, or a `pause`."""
        self._told.append(line)

    def pause(self) -> None:
        """What was told is printed; nothing moves."""
        self._print(float("inf"))

    def _print(self, until: float) -> None:
        """What happened before then, in order."""
        for line in sorted((line for line in self._told if line.seconds <= until), key=lambda line: line.seconds):
            self.console.print(_hanging(line, self.console.width), soft_wrap=True)
        self._told = [line for line in self._told if line.seconds > until]


def _hanging(line: Line, width: int) -> Text:
    """With the time before it, wrapped, and its further lines indented."""
    rows = wrap(line.text, width - INDENT, break_long_words=False, break_on_hyphens=False)
    text = f"\n{' ' * INDENT}".join(rows)
    return Text.assemble((f"{clock(line.seconds):>{INDENT - 1}} ", "dim"), (text, TONES[line.tone]))


def numbers(state: DemoState) -> str:
    """The live numbers as one line."""
    gauges, load = state.gauges, state.load
    lag = "unknown" if gauges.write_behind_lag is None else gauges.write_behind_lag
    is_long = state.working is not None and state.working.seconds >= LONG_STEP_SECONDS
    told = [
        f"gauge {gauges.migration_state or 'unknown'}, lag {lag}" if state.migration_id else "",
        f"{load.acknowledged:,} acknowledged",
        f"{load.missing:,} unread after 10 s" if load.missing else "",
        f"longest pause {load.longest_pause_seconds:.1f} s",
        f"at it for {clock(state.working.seconds)}" if state.working is not None and is_long else "",
        f"waits: {state.waiting.reason}" if state.waiting is not None else "",
    ]
    return f"… {state.phase or state.doing}: {', '.join(part for part in told if part)}"


def screen_for(console: Console) -> Screen:
    return LiveScreen(console) if console.is_terminal else PlainScreen(console)


def console_of_this_process() -> Console:
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)


def save_picture(path: Path, state: DemoState, *below: RenderableType) -> None:
    """The view, and what is given below it, as an SVG that needs nothing from elsewhere."""
    console = Console(record=True, width=PICTURE_WIDTH, file=StringIO(), highlight=False, color_system="truecolor")
    console.print(Group(view(state, PICTURE_WIDTH, PICTURE_HEIGHT), *below))
    svg = console.export_svg(title="make demo")
    path.parent.mkdir(parents=True, exist_ok=True)
    # rich asks a CDN for its font; browsers do not load it for a picture, and the reader's own monospace font will do.
    path.write_text(re.sub(r"@font-face\s*\{[^}]*\}\s*", "", svg), encoding="utf-8")
