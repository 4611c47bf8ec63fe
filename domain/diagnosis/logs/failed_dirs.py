"""Why a log directory of a broker that goes on has failed: by what was thrown where it was used. Pure.

Kafka 3.9 tells the reason as it happens (LogDirFailureChannel), and later, once, that it stops serving what lies there.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from domain.diagnosis.logs.lines import Found, first_of, of_this_process
from domain.diagnosis.logs.machine_deaths import DATA_FILE_GONE, DISKS, FILES, MISSING_FILE
from domain.diagnosis.logs.replication_lines import LOG_DIR_FAILED
from domain.diagnosis.logs.said import Said, blocks, said_in, shown

REPORTED = "LogDirFailureChannel)"
"""How the line ends above what was thrown."""
STAYS_OFFLINE = "A directory that has failed stays offline until the broker restarts: then restart it."


def with_cause(found: Found, lines: Sequence[str]) -> Found:
    """Of a directory that has failed, with what it has failed of, and its cure where that is known."""
    if found.told is not LOG_DIR_FAILED:
        return found
    thrown = list(_thrown_of(found.named[0], lines))
    for one in thrown:
        if (known := first_of(one.text, (*DISKS, *FILES))) is not None:
            reason = DATA_FILE_GONE if known.told.name == MISSING_FILE else known.told
            told = replace(found.told, fix=f"{reason.cure} {STAYS_OFFLINE}")
            return replace(found, told=told, quote=f"{found.quote}: {known.quote}")
    return replace(found, quote=f"{found.quote}: {shown(thrown[:1])}") if thrown else found


def _thrown_of(path: str, lines: Sequence[str]) -> Iterator[Said]:
    of_it = re.compile(rf"(?<!\S){re.escape(path)}(?![\w.-])")
    for head, *below in blocks(list(said_in(of_this_process(lines)))):
        if head.text.rstrip().endswith(REPORTED) and of_it.search(head.text):
            yield from below
