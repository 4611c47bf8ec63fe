"""Whoever starts our programs, they learn how their children end, and no node inherits deafness: real processes."""

import inspect
import signal
import subprocess
import sys
from pathlib import Path

from console.program import run_program

REPOSITORY = Path(__file__).parent.parent.parent
ASKS = """
import asyncio, signal
from console.inherited import take_signals_as_they_are

async def run(*command):
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    return process.returncode, told.decode().split()[-1:]

if {takes}:
    take_signals_as_they_are()
blocked = asyncio.run(run("grep", "SigBlk", "/proc/self/status"))[1]
print(asyncio.run(run("true"))[0], *blocked, signal.getsignal(signal.SIGHUP).name)
"""


def ask(*, takes: bool) -> list[str]:
    def as_a_supervisor_would() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    program = [sys.executable, "-W", "ignore", "-c", ASKS.format(takes=takes)]
    done = subprocess.run(program, capture_output=True, check=True, text=True, cwd=REPOSITORY, preexec_fn=as_a_supervisor_would)
    return done.stdout.split()


def test_a_program_learns_how_its_children_end_and_passes_no_blocked_signal_on() -> None:
    assert ask(takes=True) == ["0", "0" * 16, "SIG_IGN"]


def test_what_it_would_inherit_is_what_it_cannot_work_with() -> None:
    code, blocked, _ = ask(takes=False)
    assert (code, int(blocked, 16) & 1 << signal.SIGTERM - 1) == ("255", 1 << signal.SIGTERM - 1)


def test_every_program_of_ours_begins_with_it() -> None:
    begins = inspect.getsource(run_program)
    assert 0 < begins.find("take_signals_as_they_are()") < begins.find("configure_logs(") < begins.find("serve()")
