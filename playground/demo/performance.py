"""The demo proper, in its own process: prepares, plays, tells how it ended, and leaves at once.

It stops nothing and waits for nothing at its end, so it can be interrupted anywhere: see `guardian`.
"""

import asyncio
import logging
import sys
from pathlib import Path

from rich.console import Console

from domain.errors import KeeperlessError
from playground.demo.backstage import CLUSTER_NAME, Backstage, prepared
from playground.demo.directory import DemoDirectory, how_to
from playground.demo.guardian import INTERRUPTED, SIGNALS, leave
from playground.demo.options import Options, Plot
from playground.demo.report import DemoReport, summary
from playground.demo.screen import Screen, console_of_this_process, save_picture, screen_for
from playground.demo.story import Story
from playground.load import Load
from playground.wanted import WANTED_FILE

FAILED = 1
log = logging.getLogger("playground.demo")


def perform(options: Options, directory: DemoDirectory) -> int:
    """Gives the exit code, if it returns at all: after the story has begun the process ends inside."""
    # Complaints of Kafka clients about restarting brokers would spoil the picture.
    logging.basicConfig(filename=directory.log, level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    console = console_of_this_process()
    if options.story is not Plot.NONE and not options.yes and not sys.stdin.isatty():
        console.print("There is no terminal to ask at the gate, and no --yes (make demo YES=1): the demo will stop there.")
    try:
        backstage = prepared(directory, lambda line: console.print(line, soft_wrap=True))
    except KeeperlessError as error:
        console.print(f"The set-up failed. {error}", soft_wrap=True, markup=False)
        return FAILED
    console.print(f"Temporal UI {backstage.temporal.ui_url} · API {backstage.services.api_url}/docs", soft_wrap=True)
    asyncio.run(_play(options, backstage, screen_for(console)))
    return FAILED


async def _play(options: Options, backstage: Backstage, screen: Screen) -> None:
    def interrupted() -> None:
        screen.pause()
        leave(INTERRUPTED)

    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, interrupted)
    story = Story(options, backstage, screen)
    try:
        report = await story.play()
        code = _tell(options, backstage, screen, story, report) if report is not None else 0
        if options.keep:
            _keep(backstage, screen.console, has_load=report is None)
        if report is None:
            screen.console.print(
                next_steps(backstage.services.api_url, backstage.directory.cluster / WANTED_FILE), soft_wrap=True, markup=False
            )
    except Exception as error:  # noqa: BLE001 - told, logged, and turned into an exit code: the process ends here
        code = _tell_failure(screen.console, backstage.directory, error)
    leave(code)


def _tell(options: Options, backstage: Backstage, screen: Screen, story: Story, report: DemoReport) -> int:
    directory, console = backstage.directory, screen.console
    report.write(directory.report)
    console.print(summary(report))
    if options.picture is not None:
        save_picture(options.picture, story.last_state, summary(report))
    console.print(f"Report: {directory.report}", soft_wrap=True)
    if not report.is_success:
        console.print(story.left_behind(), markup=False)
    return 0 if report.is_as_asked else FAILED


def _keep(backstage: Backstage, console: Console, *, has_load: bool) -> None:
    """With a new load where there is none, to have something to look at. From here on the guardian stops nothing."""
    if not has_load:
        Load(backstage.cluster.bootstrap_servers, backstage.directory.path / "load-after").start()
    backstage.directory.kept.touch()
    console.print(
        f"Everything keeps running:\n  Temporal UI  {backstage.temporal.ui_url}\n  API          "
        f"{backstage.services.api_url}/docs\n  Kafka        {','.join(backstage.cluster.bootstrap_servers)}\n  ZooKeeper    "
        f"{backstage.cluster.spec.ensemble.connect}\nStart again what you have killed of Temporal and Keeperless: "
        f"{how_to('start', backstage.directory.path)}\nStop it: {how_to('stop', backstage.directory.path)}",
        soft_wrap=True,
    )


def next_steps(api_url: str, wanted: Path) -> str:
    """What to type to migrate the cluster by hand."""
    return (
        f"The cluster is in ZooKeeper mode, and registered. Go on with docs/calls.md, where these three are set first:\n\n"
        f"API={api_url}\nCLUSTER={CLUSTER_NAME}\nWANTED={wanted}\n"
    )


def _tell_failure(console: Console, directory: DemoDirectory, error: BaseException) -> int:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    log.error("the demo failed", exc_info=error)
    what = str(error) if isinstance(error, KeeperlessError) else f"{type(error).__name__}: {error}"
    console.print(f"The demo failed. {what}", soft_wrap=True, markup=False, style="bold red")
    console.print(f"Logs: {directory.log}, and *.log in the folders beside it", soft_wrap=True)
    return FAILED
