"""What may be said on the command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from playground.demo.directory import DEFAULT_DIRECTORY


class Plot(StrEnum):
    """What is played."""

    FORWARD = "forward"
    """To KRaft."""
    ROLLBACK = "rollback"
    """To the gate, back to ZooKeeper, and to KRaft all the same."""
    DRIFT = "drift"
    """To KRaft, while somebody edits ZooKeeper past Kafka: the gate stays shut until that is mended."""
    BLOCKED = "blocked"
    """To KRaft, with much in the way: plans name it before anything is touched, and `blockers` what comes in between."""
    NONE = "none"
    """None: a cluster in ZooKeeper mode is left to play with by hand."""


class Command(StrEnum):
    """What is to be done."""

    RUN = "run"
    START = "start"
    """Start again what was killed of Temporal and our programs, in a demo that runs or was kept."""
    STOP = "stop"
    """End a demo that runs, or what one has kept."""


@dataclass(frozen=True)
class Options:
    """`directory` is absolute."""

    directory: Path
    yes: bool = False
    keep: bool = False
    command: Command = Command.RUN
    picture: Path | None = None
    story: Plot = Plot.FORWARD


def options_of(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m playground.demo",
        description="Takes a real cluster from ZooKeeper to KRaft, under continuous writes, through POST /migrations.",
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=[command.value for command in Command],
        default=Command.RUN.value,
        help="start: start again what was killed of Temporal and our programs; stop: end what --keep left running",
    )
    parser.add_argument(
        "--story",
        choices=[plot.value for plot in Plot],
        default=Plot.FORWARD.value,
        help="rollback: to the gate, back to ZooKeeper, and forward again; drift: ZooKeeper is edited past Kafka; blocked: "
        "plans find blockers, and a broker freezes; none: only a cluster in ZooKeeper mode, left running",
    )
    parser.add_argument("--yes", action="store_true", help="approve the gate without asking, for unattended use")
    parser.add_argument("--keep", action="store_true", help="leave everything running at the end, to play with")
    parser.add_argument(
        "--directory",
        type=Path,
        default=DEFAULT_DIRECTORY,
        help="where everything lives; thrown away by the next run (default: .demo)",
    )
    parser.add_argument("--save-picture", type=Path, metavar="PATH", help="save the last view and the summary as an SVG")
    said = parser.parse_args(arguments)
    story = Plot(said.story)
    keep = said.keep or story is Plot.NONE
    return Options(said.directory.absolute(), said.yes, keep, Command(said.command), said.save_picture, story)
