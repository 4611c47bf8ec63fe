"""A process that is nobody, with the command line of a broker."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playground.processes import wait_until

MAIN = "kafka.Kafka"


@contextmanager
def standing_for_broker(java: str, *options: str, main: str = MAIN, cwd: Path | None = None) -> Iterator[int]:
    """Its pid. `java`: its first word; its options come after what makes it sleep."""
    command = [java, "-c", "import time; time.sleep(600)", *options, main, "server.properties"]
    process = subprocess.Popen(command, executable=sys.executable, cwd=cwd)
    try:
        # A program that has only just been loaded has no command line for a moment.
        wait_until(lambda: main.encode() in Path(f"/proc/{process.pid}/cmdline").read_bytes(), "its command line", 60)
        yield process.pid
    finally:
        process.kill()
        process.wait()
