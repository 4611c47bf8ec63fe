"""How our console scripts end."""

import asyncio
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

import structlog

SECONDS_BETWEEN_PROBES, MOST_REFUSED = 1.0, 3


async def until_told(stop: asyncio.Event) -> None:
    """Wait for it; leave where no thread can be started for some seconds, so that what supervises this process begins anew.

    The native runtime of temporalio 1.35 panics then, and not only for as long as that lasts: its worker goes on taking tasks,
    and does none of them.
    """
    refused = 0
    while not stop.is_set():
        try:
            probe = threading.Thread(target=int)
            probe.start()
            probe.join()
            refused = 0
        except RuntimeError as error:
            refused += 1
            limits = "its unit's TasksMax (pids.max of its control group), ulimit -u, kernel.threads-max"
            structlog.get_logger().critical("no thread can be started", error=str(error), raise_one_of=limits)
            if refused >= MOST_REFUSED:
                exit_cleanly(os.EX_TEMPFAIL)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), SECONDS_BETWEEN_PROBES)


def exit_cleanly(code: int = 0) -> NoReturn:
    """Flush and leave without the interpreter's own shutdown.

    temporalio 1.35 can abort the interpreter at exit after correct work (4 of 24 short scripts): its native threads
    outlive the modules they use. All our work is finished and flushed before this is called.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
