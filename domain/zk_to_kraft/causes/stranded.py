"""What is told of a node that a step waits for, and on whose machine programs are run and do not come back. Pure."""

from collections.abc import Iterator

from domain.clocks import is_over
from domain.diagnosis.machines.vital_signs import Sign
from domain.observed.parts import NO_ANSWER
from domain.zk_to_kraft.causes.case import SLOW, Looked

ENOUGH = 2
"""One may be late by itself: a log that is large, a JVM that hangs."""

FIX = (
    "Look at its load first (`uptime`): where that is far above the number of its processors, everything there is late, and "
    "nothing else is wrong. Else run there by hand, as keeperless-activities' user, what programs need before they begin: "
    "`id`, `getent passwd`, `python3 -c 1`, `sudo -n true`, and see which hangs. Mend what that waits for: the service that "
    "knows users and groups (sssd, LDAP, winbind, nscd; /etc/nsswitch.conf), a network file system (a home, a log), a shell's "
    "start-up file or a wrapper around python3, an agent that checks what is run. The step goes on by itself then."
)


def stranded(looked: Looked) -> Iterator[tuple[str, Sign]]:
    """With the names of the nodes: files of theirs can be read, so that their machines are reached, and nothing that has to be
    run there has an end, its log among it, so that nobody else tells of it."""
    if looked.step_since is None or not is_over(looked.step_since, looked.observation.ended_at, SLOW):
        return
    for view in looked.observation.nodes:
        name = looked.name(view.id)
        if name not in looked.in_hand or view.process is None:
            continue
        late = [words for words in looked.hints.silent if f": {NO_ANSWER} " in words and f" {name} " in _subject(words)]
        if len(late) >= ENOUGH and any(words.startswith(f"log of {name}:") for words in late):
            told = ", ".join(sorted(late))
            yield name, Sign(f"a step waits for it, and programs that are run on its machine do not come back: {told}", FIX)


def _subject(words: str) -> str:
    return f" {words.partition(': ')[0]} "
