"""What keeps SQLite's file from being written in time, as far as its disk and its file system tell."""

import asyncio
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from activities.on_node.log_places import devices_of, mounted_at, pace
from ledger.database import parse_url

SECONDS = 1.0
"""In which a disk is measured."""
LIMIT = 2.0
LOOKER = ThreadPoolExecutor(1, "ledger's disk")
"""It stands as long as a file system does that hangs, and nobody else is to wait for it."""
MEASURED: dict[str, Future[str]] = {}
"""By directory: who asks while it is measured is told what that finds, also where it does not end."""
BUSY = 0.5
"""Share of the time."""
OF_OTHERS = ("nfs", "cifs", "smb", "fuse", "9p")
"""Kinds of file systems on which SQLite's locks may not work."""


async def of_disk(ledger_url: str) -> str:
    """In words, or empty: of a ledger that is no file, and of a disk that has little to do or cannot be measured."""
    url = parse_url(ledger_url)
    if url.get_backend_name() != "sqlite" or url.database is None:
        return ""
    try:
        async with asyncio.timeout(LIMIT):
            return await asyncio.shield(asyncio.wrap_future(_measured(str(Path(url.database).parent))))
    except TimeoutError:
        return f"the file system of {url.database} does not answer either"


def _measured(directory: str) -> Future[str]:
    measured = MEASURED.get(directory)
    if measured is None or measured.done():
        measured = MEASURED[directory] = LOOKER.submit(_words, directory)
    return measured


def _words(directory: str) -> str:
    first, began = devices_of([directory]).get(directory), time.monotonic()
    time.sleep(SECONDS)
    last = devices_of([directory]).get(directory)
    mounted = mounted_at(directory)
    if any(f"({kind}" in mounted for kind in OF_OTHERS):
        return f"it lies on {mounted}"
    if first is None or last is None:
        return ""
    share, milliseconds = pace(first, last, time.monotonic() - began)
    told = f"its disk {last[0]} was busy for {share:.0%} of a second meanwhile, {milliseconds:.0f} ms a request"
    return told if share >= BUSY else ""
