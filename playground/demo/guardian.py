"""No process is left behind, whatever happens to the demo: a guardian waits for its end, and then clears up.

The demo proper is a fork. It may be interrupted while it is starting things in several threads, or be killed: when it is
gone it starts nothing any more, and what it has started is found by `leftovers`. The guardian itself does next to nothing,
so there is no bad moment to interrupt it.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from playground.demo.directory import DemoDirectory
from playground.demo.leftovers import stop_all

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_SECONDS = 25
"""How long the demo may take to end by itself: a set-up that is interrupted tidies up what it was preparing."""

INTERRUPTED = 130
SHOW_CURSOR = "\x1b[?25h"


class Guardian:
    """Runs `act` in a process of its own, and stops everything in `directory` after its end."""

    def __init__(self, directory: DemoDirectory, act: Callable[[], int]) -> None:
        self._directory = directory
        self._act = act
        self._child = 0
        self._is_interrupted = False

    def run(self) -> int:
        """The exit code: the demo's own, 130 after an interruption."""
        self._handle_signals()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        child = os.fork()
        if child == 0:
            become(self._act)
        self._child = child
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        _, status = os.waitpid(child, 0)
        self._child = 0
        signal.alarm(0)
        self._clear_up(os.WIFEXITED(status))
        return INTERRUPTED if self._is_interrupted or not os.WIFEXITED(status) else os.WEXITSTATUS(status)

    def _clear_up(self, has_ended_by_itself: bool) -> None:
        if has_ended_by_itself and not self._is_interrupted and self._directory.kept.exists():
            return
        if sys.stdout.isatty():
            say(SHOW_CURSOR, end="")
        self._directory.kept.unlink(missing_ok=True)
        say("Stopping everything …")
        count = stop_all(self._directory.path)
        say(f"Stopped: {count} processes. Nothing of the demo runs any more.")

    def _handle_signals(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._interrupt)
        signal.signal(signal.SIGALRM, self._lose_patience)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._is_interrupted = True
        if self._child:
            os.kill(self._child, signal.SIGTERM)
            signal.alarm(PATIENCE_SECONDS)

    def _lose_patience(self, _number: int, _frame: FrameType | None) -> None:
        if self._child:
            os.kill(self._child, signal.SIGKILL)


def become(act: Callable[[], int]) -> NoReturn:
    """The rest of this process's life is `act`. The first signal interrupts it; those after it change nothing."""
    code = 1
    try:
        for number in SIGNALS:
            signal.signal(number, _interrupt_once)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = act()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException:  # noqa: BLE001 - nothing may get past here: the code behind belongs to the guardian
        traceback.print_exc()
    finally:
        leave(code)


def leave(code: int) -> NoReturn:
    """At once: threads that are still starting or awaiting something end here."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _interrupt_once(_number: int, _frame: FrameType | None) -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def say(text: str, end: str = "\n") -> None:
    """To whoever still listens: a terminal that was closed is no reason to leave processes behind."""
    with suppress(OSError, ValueError):
        sys.stdout.write(text + end)
        sys.stdout.flush()
