"""Spark's Python daemon, which ends when it has had nothing to do for a while.

Spark starts one for each session of Spark Connect, and ends none before it ends itself (`PythonWorkerFactory` of Spark 4.3): a
server that is asked four times an hour would have hundreds after a day. It ends the daemon's idle workers after a minute; what
is left has no child any more. Should it be wanted once more, Spark starts another.
"""

import os
import signal

from pyspark import daemon

IDLE_SECONDS = 10
"""Without a worker."""
LOOK_EVERY_SECONDS = 1


class Idleness:
    """Looks at every alarm whether there is a worker; the one that comes too often ends this process."""

    def __init__(self) -> None:
        self._looks = 0

    def look(self, *_: object) -> None:
        self._looks = 0 if _has_workers() else self._looks + 1
        if self._looks * LOOK_EVERY_SECONDS >= IDLE_SECONDS:
            os._exit(0)


def _has_workers() -> bool:
    """The daemon lets the kernel bury its children, so only living ones count."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def main() -> None:
    """Workers are forked, and inherit no timer."""
    signal.signal(signal.SIGALRM, Idleness().look)
    signal.setitimer(signal.ITIMER_REAL, LOOK_EVERY_SECONDS, LOOK_EVERY_SECONDS)
    daemon.manager()


if __name__ == "__main__":
    main()
