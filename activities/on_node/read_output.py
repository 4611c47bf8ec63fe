"""Runs on a node's machine: reads what its process prints, wherever it prints it. Writes nothing.

    python3 -c PROGRAM '{"id": 1, "pid": 4711, "output_file": "/var/log/b.out", "lines": 2000, "lasting": […], \
"logs": […], "places": […]}'

Of a process that runs the files count that it has open (proc(5)), also those that were renamed or deleted since: its standard
output, and logs such as Kafka's controller.log, whose lines are nowhere else; of logs that are loud the warnings and errors,
and what an authorizer denies nodes. Of one that does not, the output file, with what was rotated away from it, and the `logs`
that it had open. The answer is one JSON object on standard output: `lines`, in the order of their times, the last that were
asked for, and before these what has one of the words `lasting` in it and stands further up; `changed_at`, when the process
printed last, null where these files are not known to be its own; `elsewhere`, where it prints to in place of the output file;
`full`, the places on whose volumes is no room, and `deleted`, who has much open there that was deleted, and how many bytes;
`read_only`, of one that does not run, those whose file systems can only be read. Python 3.7 or later.
"""

from __future__ import annotations

import errno
import json
import locale
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import Any, List, Tuple

from activities.on_node.volumes import deleted_on, is_full, is_written_by_nobody

Source = Tuple[Path, str]
"""Where a file is read, and its name."""
Inode = Tuple[int, int]
Block = Tuple[str, List[str]]
"""A time, and the lines that were said then."""

MOST_BYTES = 256 * 1024
MOST_BEFORE, MOST_OF_A_WORD, MOST_OF_A_BLOCK = 32 * 1024 * 1024, 20, 16 * 1024
"""Bytes before those that are searched for words that last; of each word the last so many, each with what was thrown there.
A controller that traces the migration, as Kafka's documentation advises, fills the end of its log in two minutes."""
MOST_FURTHER, SECONDS_FOR_OTHERS = 4, 0.5
LOG = re.compile(r"\.(?:log|out)(?:[.-]\d[\d.:T_-]*)?(?: \(deleted\))?$")
NO_LOG = re.compile(r"/\d{20}\.log|gc[^/]*$|(?:request|audit|access)[^/]*$")
"""Partitions' data, a JVM's own, and what is loud and tells of no trouble."""
LOUD_LOG = re.compile(r"(?:state-change|cleaner|authorizer)[^/]*$")
"""What is loud, and tells of trouble, too, which is said nowhere else."""
TROUBLES = [
    "] WARN ",
    "] ERROR ",
    "] FATAL ",
    " is Denied Operation = ClusterAction ",
    " is Denied operation = CLUSTER_ACTION ",
]
TROUBLE = re.compile(r"\[[^\]]+\] (?:(?:WARN|ERROR|FATAL) |.{1,600} is Denied (?:Operation = ClusterA|operation = CLUSTER_A))")
"""Of all that an authorizer denies what only nodes ask for."""
ROTATED = re.compile(r"\.\d{1,3}|[.-]\d{4}-?\d\d-?\d\d[\d.:T_-]*")
"""What stands behind the name of a file that was put aside, and not compressed."""
STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]")
HEAD = re.compile(b"^" + STAMP.pattern.encode(), re.MULTILINE)
STAMP_BYTES = 25
LOUD = re.compile(STAMP.pattern + r" (?:TRACE|DEBUG)\b")
WHOSE = re.compile(STAMP.pattern + r" [A-Z]+ \[(?:[^\]]*?\b(?:id|[a-z]+Id|broker)=|\w+Coordinator |KafkaApi-)(?P<id>\d+)\b")
"""A node speaks as [Controller id=1, targetBrokerId=2], [RequestSendThread controllerId=1], [ReplicaFetcher replicaId=1, …]."""
BOOT_CLOCK, TICKS_PER_SECOND = 7, 100.0
"""CLOCK_BOOTTIME, in which start times are counted; USER_HZ."""
LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG")


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    pid, path = asked["pid"], Path(asked["output_file"])
    opened = logs_opened_by(pid, path) if pid else None
    if opened is None:
        logs = [] if pid else [log for log in asked["logs"] if log != str(path) and inode_of(Path(log)) is not None]
        sources: list[Source] = [(Path(one), one) for one in (str(path), *logs[:MOST_FURTHER])]
        elsewhere = ""
    else:
        sources, elsewhere = sources_of(pid, path, opened)
    words = asked["lasting"]
    said = read(sources[0][0], with_rotated(*sources[0]), words) if sources else []
    shared = opened_by_others(pid, {name for opened, name in sources[1:] if opened.name not in {"1", "2"}})
    for further, name in sources[1:]:
        found = troubles_in(further) if LOUD_LOG.search(name) else read(further, tail(further), words)
        said = merged(said, said_by(asked["id"], found) if name in shared else found)
    lines = last_of(said, words, asked["lines"]) if asked["lines"] else []
    changed_at = max((further.stat().st_mtime for further, _ in sources), default=None) if opened is not None else None
    full = [place for place in asked["places"] if is_full(Path(place))]
    return {
        "lines": in_english(lines, translations(environment(pid))),
        "changed_at": changed_at,
        "elsewhere": elsewhere,
        "full": full,
        "deleted": deleted_on(full),
        "read_only": [place for place in asked["places"] if not pid and is_written_by_nobody(Path(place))],
    }


def logs_opened_by(pid: int, path: Path) -> dict[Inode, Source] | None:
    """What it has open to write text into; `None` where we may not know. Its standard output first."""
    try:
        numbers = sorted(int(opened.name) for opened in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return None
    found: dict[Inode, Source] = {}
    for number in numbers:
        target = target_of(pid, number)
        if number not in {1, 2} and target != str(path) and (not LOG.search(target) or NO_LOG.search(target)):
            continue
        opened = Path(f"/proc/{pid}/fd/{number}")
        inode = inode_of(opened)
        if inode is not None and is_written(pid, number):
            found.setdefault(inode, (opened, target))
    return found


def target_of(pid: int, number: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}".encode()).decode("utf-8", "replace")
    except OSError:
        return ""


def inode_of(path: Path) -> Inode | None:
    """Of a file that can be read to an end."""
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_dev, about.st_ino) if stat.S_ISREG(about.st_mode) else None


def is_written(pid: int, number: int) -> bool:
    found = re.search(rb"^flags:\s*(\d+)", content(f"/proc/{pid}/fdinfo/{number}"), re.MULTILINE)
    return found is not None and int(found.group(1), 8) & os.O_ACCMODE != os.O_RDONLY


def sources_of(pid: int, path: Path, opened: dict[Inode, Source]) -> tuple[list[Source], str]:
    """Its output, then what else it writes; and where its output goes where that is not the output file."""
    own, elsewhere = inode_of(path), ""
    output = next((source for source in opened.values() if source[0].name == "1"), None)
    first = opened.get(own, output) if own is not None else output
    if first is None and is_newer(path, pid):
        first = (path, str(path))  # another program writes it down for it: tee, a shipper of logs
    elif own not in opened:
        elsewhere = output[1] if output else target_of(pid, 1)
    others = [source for source in opened.values() if source is not first]
    others.sort(key=lambda source: (LOUD_LOG.search(source[1]) is not None, -source[0].stat().st_mtime))
    return [*([first] if first else []), *others[:MOST_FURTHER]], elsewhere


def opened_by_others(pid: int, targets: set[str]) -> set[str]:
    """Of these what another Java program writes too, as several nodes of one kafka_home do. All, where that takes too long."""
    found: set[str] = set()
    until = time.monotonic() + SECONDS_FOR_OTHERS
    for other in Path("/proc").iterdir() if targets else ():
        if not other.name.isdigit() or int(other.name) == pid or content(f"{other}/comm").strip() != b"java":
            continue
        try:
            numbers = [int(opened.name) for opened in (other / "fd").iterdir()]
        except OSError:
            continue
        for number in numbers:
            if time.monotonic() > until:
                return targets
            found.add(target_of(int(other.name), number))
    return targets & found


def is_newer(path: Path, pid: int) -> bool:
    """Whether that was written since the process began."""
    fields = content(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    try:
        boot = time.time() - time.clock_gettime(BOOT_CLOCK)
        return path.stat().st_mtime >= boot + int(fields[19]) / TICKS_PER_SECOND
    except (OSError, IndexError):
        return False


def content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def with_rotated(path: Path, name: str) -> str:
    """A file; where it is short, with what was said before it, or after it by who went on in the renamed one."""
    text, named = tail(path), Path(name)
    if len(text) >= MOST_BYTES // 2 or not named.parent.is_dir():
        return text
    alike = (one for one in named.parent.iterdir() if one.name.startswith(named.name) and inode_of(one) is not None)
    aside = [one for one in alike if ROTATED.fullmatch(one.name[len(named.name) :])]
    if not aside:
        return text
    newest = max(aside, key=lambda one: one.stat().st_mtime)
    is_later = not path.exists() or newest.stat().st_mtime > path.stat().st_mtime
    parts = [text, tail(newest)] if is_later else [tail(newest), text]
    return "\n".join(part.rstrip("\n") for part in parts if part)


def tail(path: Path) -> str:
    """Its end, in whole lines; empty where there is no file."""
    if not path.exists():
        return ""
    if inode_of(path) is None:
        sys.exit(f"{path} is no regular file")
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - MOST_BYTES, 0))
        text = file.read(MOST_BYTES).decode("utf-8", "replace")
    return text.partition("\n")[2] if size > MOST_BYTES and "\n" in text else text


def read(path: Path, text: str, words: list[str]) -> list[Block]:
    """Its end, `text`, and before that what has one of these words in it and stands further up."""
    if not path.exists():
        return blocks(text)
    with path.open("rb") as file:
        end = max(file.seek(0, os.SEEK_END) - MOST_BYTES, 0)
        file.seek(max(end - MOST_BEFORE, 0))
        before = file.read(min(end, MOST_BEFORE))
    parts = (before[at : at + MOST_OF_A_BLOCK].decode("utf-8", "replace") for at in lines_with(words, before))
    return [*(blocks(part)[0] for part in parts), *blocks(text)]


def troubles_in(path: Path) -> list[Block]:
    """Of a log that is loud."""
    return [one for one in read(path, tail(path), TROUBLES) if TROUBLE.match(one[1][0])]


def lines_with(words: list[str], text: bytes) -> list[int]:
    """Where what was said with one of these words begins, the last few of each."""
    found: set[int] = set()
    has_heads = HEAD.search(text) is not None
    for word in words:
        at = len(text)
        for _ in range(MOST_OF_A_WORD):
            at = text.rfind(word.encode(), 0, at)
            if at < 0:
                break
            at = text.rfind(b"\n", 0, at) + 1
            found.update(heads_of(text, at) if has_heads else [at])
    return sorted(found)


def heads_of(text: bytes, at: int) -> list[int]:
    """Where the line with a time is that the one at `at` stands below, or is itself; none where that is too far away."""
    heads = HEAD.finditer(text, max(at - MOST_OF_A_BLOCK, 0), at + STAMP_BYTES)
    return [found.start() for found in heads][-1:]


def last_of(said: list[Block], words: list[str], most: int) -> list[str]:
    """The last lines, and before them what has one of these words in it."""
    lines = [line for _, block in said for line in block]
    above = [block for _, block in blocks("\n".join(lines[:-most])) if any(w in line for w in words for line in block)]
    return [line for block in above[-MOST_OF_A_WORD * len(words) :] for line in block] + lines[-most:]


def blocks(text: str) -> list[Block]:
    """Each line that has a time with those below that have none."""
    found: list[Block] = []
    for line in text.splitlines():
        stamp = STAMP.match(line)
        if stamp or not found:
            found.append((stamp.group(1) if stamp else "", [line]))
        else:
            found[-1][1].append(line)
    return found


def said_by(node_id: int, found: list[Block]) -> list[Block]:
    """Of a log of several nodes the lines that begin with whose they are."""
    whose = ((WHOSE.match(one[1][0]), one) for one in found)
    return [one for speaker, one in whose if speaker and speaker.group("id") == str(node_id)]


def merged(said: list[Block], further: list[Block]) -> list[Block]:
    """Both by their times, each in its own order where the clock was set back. Of the second what is new, and has a time."""
    heads = {block[0] for _, block in said}
    news = [one for one in further if one[0] and one[1][0] not in heads and not LOUD.match(one[1][0])]
    result: list[Block] = []
    at = 0
    for stamp, block in said:
        while at < len(news) and news[at][0] < stamp:
            result.append(news[at])
            at += 1
        result.append((stamp, block))
    return result + news[at:]


def environment(pid: int | None) -> dict[str, str]:
    """Of the process; where it does not run, ours, in which it is started."""
    parts = content(f"/proc/{pid}/environ").decode("utf-8", "replace").split("\0") if pid else []
    return {name: value for name, _, value in (part.partition("=") for part in parts)} or dict(os.environ)


def translations(variables: dict[str, str]) -> dict[str, str]:
    """By what the system's errors are called in a process's language, what they are called in English."""
    name = next((variables[one] for one in LOCALES if variables.get(one)), "C")
    os.environ["LANGUAGE"] = variables.get("LANGUAGE", "")
    theirs = errors_in(name)
    english = errors_in("C")
    return {said: english[number] for number, said in theirs.items() if said != english[number]}


def errors_in(name: str) -> dict[int, str]:
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
        return {number: os.strerror(number) for number in errno.errorcode}
    except (locale.Error, ValueError):
        return {}
    finally:
        locale.setlocale(locale.LC_ALL, before)


def in_english(lines: list[str], words: dict[str, str]) -> list[str]:
    if not words:
        return lines
    known = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))
    return [known.sub(lambda found: words[found.group(0)], line) for line in lines]


if __name__ == "__main__":
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
