"""What threads of a process wait for in the kernel, in words: who has to answer, read, or let go. Pure."""

from collections.abc import Mapping

from domain.observed.parts import ObservedPart

SENDS = frozenset({"write", "writev", "pwrite", "sendto", "sendmsg"})
SHOWN_THREADS = 3
UNNAMED_PIPE = "pipe:"
TERMINALS = ("/dev/pts/", "/dev/tty")


class Wait(ObservedPart):
    """`call`: of the kernel, in which they are, all the time that was looked. `kind`: `tcp`, `udp`, `unix`, `pipe`, `lock` or
    `path`. `what`: an address as `host:port`, or a path. `by`: the process of that machine that has its other end, the
    lock, or a lease, with its command; empty where that is not known. `threads`: their names.
    """

    call: str
    kind: str
    what: str
    by: str
    threads: tuple[str, ...]


def wait_in_words(wait: Wait, names: Mapping[str, str]) -> str:
    """`names`: of nodes, by addresses at which they listen."""
    shown = list(dict.fromkeys(wait.threads))
    more = f" and {len(shown) - SHOWN_THREADS} more" if len(shown) > SHOWN_THREADS else ""
    who, ends = (f"thread {shown[0]}", "s") if len(shown) == 1 else (f"threads {', '.join(shown[:SHOWN_THREADS])}{more}", "")
    where = f"{names[wait.what]} at {wait.what}" if wait.what in names else wait.what
    where = "a pipe" if where.startswith(UNNAMED_PIPE) else where
    return f"its {who} wait{ends} {_for(wait, where)}{_in_whose_hands(wait)}"


def _for(wait: Wait, where: str) -> str:
    match wait.kind:
        case "lock":
            return f"for a lock on {where}"
        case "path" if wait.what.startswith(TERMINALS) and wait.call in SENDS:
            return (
                f"until terminal {where} takes what they print, which somebody has stopped (Ctrl-S): Ctrl-Q there, or close it"
            )
        case "path":
            return f"in {wait.call} of {where}, which does not come back"
        case "pipe" if wait.call in SENDS:
            return f"until somebody reads from {where}"
        case "pipe":
            return f"until somebody writes into {where}"
        case _ if wait.call == "connect":
            return f"until {where} takes a connection"
        case _ if wait.call in SENDS:
            return f"until {where} takes what is sent to it"
        case _:
            return f"for an answer of {where}"


def _in_whose_hands(wait: Wait) -> str:
    if not wait.by:
        return ""
    match wait.kind:
        case "lock":
            return f", which process {wait.by} has"
        case "path":
            return f": process {wait.by} has a lease on it"
        case _:
            return f": process {wait.by} is at the other end"
