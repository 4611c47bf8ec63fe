"""`python -m playground.demo [--yes] [--keep] [--directory .demo] [--save-picture PATH]`, `… start` and `… stop`.

Exit code: 0 when nothing acknowledged was lost and the cluster is in KRaft mode, or where a person holds it; 1 when not; 2 when
nothing was started; 130 after an interruption.
"""

import os
import signal
import sys

from domain.errors import KeeperlessError, Permanent
from playground import processes
from playground.demo.cast import kept_cast
from playground.demo.directory import Busy, DemoDirectory
from playground.demo.guardian import INTERRUPTED, Guardian, say
from playground.demo.leftovers import stop_all
from playground.demo.options import Command, Options, options_of

NOTHING_STARTED = 2
STOP_PATIENCE_SECONDS = 60.0


def main() -> int:
    options = options_of(sys.argv[1:])
    directory = DemoDirectory(options.directory)
    try:
        if options.command is Command.START:
            return start(directory)
        if options.command is Command.STOP:
            return stop(directory)
        with directory.hold():
            return run(options, directory)
    except KeeperlessError as error:
        say(f"The demo does not start. {error}")
        return NOTHING_STARTED
    except KeyboardInterrupt:  # before the guardian took over: nothing of this run exists yet
        return INTERRUPTED


def run(options: Options, directory: DemoDirectory) -> int:
    """What an earlier run has left is stopped and thrown away first."""

    def act() -> int:
        # Only here: the guardian stays small, and no thread of a library exists when it forks.
        from playground.demo.performance import perform

        return perform(options, directory)

    with directory.undisturbed():
        count = stop_all(directory.path)
        directory.clean()
    if count:
        say(f"Stopped what an earlier demo left running: {count} processes.")
    say(f"The demo lives in {directory.path}. Preparing …")
    return Guardian(directory, act).run()


def start(directory: DemoDirectory) -> int:
    """What was killed of a demo that is running, or that was kept, runs again. Raises Permanent where there is none."""
    kept_cast(directory)
    say("Looking who has ended, and starting it again …")
    with directory.undisturbed():
        is_held = directory.is_held()
        if is_held and not directory.cast.exists():
            raise Permanent(f"{directory.path}: another demo has just begun there, and starts what it needs by itself")
        if not directory.kept.exists() and not is_held:
            raise Permanent(f"{directory.path}: that demo has ended, and its cluster with it. Start another with: make demo")
        started = kept_cast(directory).start_missing()
    say(f"Started again: {', '.join(started)}." if started else "Temporal and all four programs run: nothing to start.")
    return 0


def stop(directory: DemoDirectory) -> int:
    """Ends a demo that is running, or what one has kept."""
    try:
        with directory.hold():
            count = stop_all(directory.path)
            directory.kept.unlink(missing_ok=True)
    except Busy as busy:
        return interrupt(directory, busy.pid)
    say(f"Stopped: {count} processes. Nothing of the demo runs in {directory.path} any more.")
    return 0


def interrupt(directory: DemoDirectory, pid: int) -> int:
    """As Ctrl-C would."""

    say(f"A demo is running (process {pid}): interrupting it …")
    os.kill(pid, signal.SIGTERM)
    seconds = processes.wait_until(
        lambda: not directory.is_held(), f"the demo in {directory.path} to end", STOP_PATIENCE_SECONDS
    )
    say(f"It has ended ({seconds:.0f} s).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
