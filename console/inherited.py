"""What a program inherits from whoever starts it, and does not work with."""

import signal


def take_signals_as_they_are() -> None:
    """Ends of children told, and no signal blocked. Call once, first thing in a program, before it has threads.

    Where a supervisor or a script ignores SIGCHLD (`trap '' CHLD`), the kernel forgets how children end: each command seems to
    fail with 255, though it has done what it should. What is blocked here is blocked in each node that is started from here:
    nothing would stop it in order. A SIGHUP that is ignored stays so, for `nohup` means that.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
