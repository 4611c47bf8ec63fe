"""What has changed on a machine since it was noted: the first thing that whoever is called at night asks. Pure.

A change is told where something does not work, and of the machine on which it does not. It need not be the cause.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.observed.parts import ObservedPart

Facts = Mapping[str, Mapping[str, str]]
"""By kind, and by what it is about: as `activities/on_node/note_machine.py` gives them. What is not there is not known."""

OURS = "keeperless-activities"
"""In place of a node's name: the process that looks."""

ZOOKEEPER = "what is set in ZooKeeper"
"""In place of a node's name: no machine, but dynamic configs, quotas, ACLs and orders of the cluster."""

PUT_BACK_BY_KAFKA = (
    "First check what has changed there. Restore what was not intended, or does not work, with Kafka's own tools "
    "(kafka-configs.sh, kafka-acls.sh): once KRaft controllers decide, a znode that is written by hand is drift."
)
LOOK_AT_CHANGES = "First check what has changed there, and restore what was not intended."
LOOK_AT_PROGRAMS = (
    "Check the new programs there: `ps -ef` shows what each does, and whose it is. Ask whether it can wait. They may have "
    "nothing to do with it."
)


class MachineNote(ObservedPart):
    """How a machine was set at a moment. `identity`: of the process whose limits and environment are among the facts."""

    about: str
    at: datetime
    identity: str | None
    facts: dict[str, dict[str, str]]


class MachineChanges(ObservedPart):
    """What is different since then, the likeliest to matter first, and how many `more` are; and what its kernel has said.

    `killed`: how many processes that kernel has killed for want of memory since, and where, in words; told of who was killed.
    `booted_at`: when that machine was booted, where that was since. `is_unheard`: what its kernel says may not be read there.
    """

    since: datetime
    where: str = "on its machine"
    changes: tuple[str, ...] = ()
    more: int = 0
    said: tuple[str, ...] = ()
    killed: str = ""
    booted_at: datetime | None = None
    is_unheard: bool = False

    def __bool__(self) -> bool:
        return bool(self.changes or self.said)

    @property
    def lines(self) -> tuple[str, ...]:
        return (*self.changes, *self.said)

    @property
    def in_words(self) -> str:
        more = (f"and {self.more} more",) if self.more else ()
        changes = f"Changed {self.where} since {self.since:%d %b %H:%M:%S} UTC: {'; '.join((*self.changes, *more))}"
        said = f"Its kernel has said: {'; '.join(self.said)}"
        return ". ".join([*([changes] if self.changes else []), *([said] if self.said else [])])

    @property
    def fix(self) -> str:
        """What to do about them; empty where only the kernel has said something."""
        if not self.changes:
            return ""
        if any(line.startswith(APART) for line in self.changes):
            return BRING_BACK
        return LOOK_AT_PROGRAMS if all(map(NEW_PROGRAM.match, self.changes)) else LOOK_AT_CHANGES

    def without(self, known: Container[str]) -> "MachineChanges":
        """What is not told yet."""
        changes, said = (tuple(line for line in lines if line not in known) for lines in (self.changes, self.said))
        return self.model_copy(update={"changes": changes, "said": said})


NETWORK = "network namespace"
"""Among the traits of a process."""
APART = "network namespace of its process: "
BRING_BACK = (
    "First restart it in the network namespace that it was in: in this one no peer reaches its listeners, and it reaches "
    "none. It was started below `ip netns exec` or `unshare -n`, in a container, or by a unit with PrivateNetwork=yes or "
    "NetworkNamespacePath=. What else has changed may follow from that."
)

SERVER_FILE = "configuration file of its process"
"""Among the settings of a server of ZooKeeper: where it is looked for when no process of it runs."""

JAVA_HOME = "home of its java"
"""Among the files of that: where they are looked for when no process runs."""

MOST_TOLD = 6
"""Of changes, and of lines of the kernel's; of the former at most half of one kind."""

CAUSE = re.compile(
    r"\bcritical [\w -]{1,40} error\b|out of (data|metadata) space|Out of memory: |Hardware Error|hung_task|link is down", re.I
)
"""Of a kernel's lines: what others follow from."""

SAID_WITHIN = timedelta(minutes=15)
"""What a kernel has said before that is another story."""

KINDS = {
    "setting": "{}",
    "mount": "mount {}",
    "limit": "its limit {}",
    "group": "limit {} of its control groups",
    "environment": "variable {} of its environment",
    "argument": "argument {} of its process",
    "code": "code that its process has loaded: {}",
    "process": "{} of its process",
    "java": "{}",
    "line": "line {}",
    "file": "{}",
    "named": "{}",
    "data": "{}",
    "sysctl": "{}",
    "machine": "{}",
    "service": "service {}",
    "program": "program {}",
    "list": "long list of names below {}",
    "large topic": "topic {}",
    "cluster acl": "ACL {}",
    "config": "{}",
    "acl rule": "ACL {}",
    "order": "order {}",
    "deletion": "deletion of topic {}",
    "topic": "{}",
    "topic id": "{}",
    "partitions": "{}",
}
"""In the order of how likely each is to matter."""

KILLS, BOOT, BOOTED = "kill", "boot id", "boot"
"""Facts: how many processes were killed for want of memory, by control group, and by "" on the machine; which boot it is, and
when that was."""

NEW_PROGRAM = re.compile(f"{re.escape(KINDS['program'].format(''))}(?!of its process)")
"""How the line of one begins; that of which program a process runs does, too."""

IN_BOTH = frozenset({"data", "sysctl", "group", "topic", "topic id", "partitions"})
"""What comes and goes in daily work: told where it is there before and after, and differs."""

ONLY_NEW = frozenset({"program", "code"})
"""What ends by itself as well: told where it is new, and runs for longer than a moment."""
ONLY_NOTED = frozenset({"named"})
"""Who is started anew may be started with other files: they are told by what was noted, and they are not new."""
PASSING = frozenset({"has begun", "idles"})
FILTERS = {"NoNewPrivs": "NoNewPrivs", "Seccomp": "the filter of system calls, inherited from what started it (Seccomp)"}
UNFILTERED = "0"
"""Of a process: who has got rid of one is kept from less than before."""

CONTENT = ", content"
"""Of a configuration file, a digest: where that is what it was, somebody has only written the file anew. It is not told: with
another key of its machine it is another one."""

SIDES = (", rights", ", options", ", file system", CONTENT)
"""Ends of names that say more of a thing: where the thing itself is new or gone, that is told."""

IS_THERE = frozenset({"there", "runs"})
"""Values that say no more than that."""

OF_A_MACHINE = frozenset(
    {
        "sysctl",
        "machine",
        "service",
        "program",
    }
)
"""The same for every process of a machine that is in the same network."""


def kernel_lines(told: Mapping[str, Any]) -> list[tuple[float, str]] | None:
    """Of what `note_machine` answers: lines, and the seconds since each; `None` where the kernel's log is not to be read."""
    return [(float(seconds), str(line)) for seconds, line in told["kernel"]] if told["kernel"] is not None else None


def changes_between(before: MachineNote, facts: Facts, kernel: list[tuple[float, str]] | None, now: datetime) -> MachineChanges:
    """`kernel`: lines, and the seconds since each. A kind that one of both has not got could not be looked at."""
    told: list[str] = []
    more = 0
    comparable = [kind for kind in KINDS if kind in facts and kind in before.facts]
    if not _are_mounts_of_one(before.facts, facts):
        comparable = [kind for kind in comparable if kind != "mount"]
    if _has_looker_moved(before.facts, facts):
        comparable = [kind for kind in comparable if kind not in OF_A_MACHINE]
    elif len({found["process"][NETWORK] for found in (before.facts, facts) if NETWORK in found.get("process", {})}) > 1:
        comparable = [kind for kind in comparable if kind != "sysctl"]  # of another network
    for kind in comparable:
        was, found_now = before.facts[kind], facts[kind]
        if kind in ONLY_NEW:
            found_now = {name: value for name, value in found_now.items() if value not in PASSING}
            was = {name: found_now[name] for name in was if name in found_now}
        if kind in ONLY_NOTED:
            found_now = {name: found_now[name] for name in was if name in found_now}
        if kind == "process" and _has_looker_moved(before.facts, facts):
            was, found_now = ({name: value for name, value in found.items() if name != NETWORK} for found in (was, found_now))
        if kind == "process":
            was, found_now = _in_words(was | _unfiltered(found_now)), _in_words(found_now)
        found = [line for line in _of_kind(was, found_now, KINDS[kind], is_in_both=kind in IN_BOTH) if line not in told]
        told += found[: MOST_TOLD // 2]
        more += len(found[MOST_TOLD // 2 :])
    recent = min(now - before.at, SAID_WITHIN).total_seconds()
    return MachineChanges(
        since=before.at,
        where="there" if before.about == ZOOKEEPER else "on its machine",
        changes=tuple(told[:MOST_TOLD]),
        more=more + len(told[MOST_TOLD:]),
        said=_gravest([line for seconds, line in kernel or () if seconds <= recent]),
        killed=_killed(before.facts, facts),
        booted_at=_booted_since(before.facts, facts),
        is_unheard=kernel is None,
    )


def _gravest(lines: Sequence[str]) -> tuple[str, ...]:
    """The newest, those first that name a cause."""
    causes = [line for line in lines if CAUSE.search(line)][-(MOST_TOLD // 3) :]
    others = [line for line in lines if line not in causes]
    return (*causes, *others[-(MOST_TOLD // 2 - len(causes)) :])


def _killed(before: Facts, now: Facts) -> str:
    """By the innermost of its control groups that has counted one; else by the machine, in the same boot."""
    if before.get("machine", {}).get(BOOT) != now.get("machine", {}).get(BOOT):
        return ""
    was, counts = before.get(KILLS, {}), now.get(KILLS, {})
    grown = {place: int(counts[place]) - int(was[place]) for place in counts if place in was}
    places = [place for place, more in grown.items() if more > 0]
    if not places:
        return ""
    place = max(places, key=len)
    processes = f"{grown[place]} process{'es' if grown[place] > 1 else ''}"
    return f"{processes} of control group {place}" if place else f"{processes} of its machine"


def _booted_since(before: Facts, now: Facts) -> datetime | None:
    was, boot, at = before.get("machine", {}).get(BOOT), now.get("machine", {}).get(BOOT), now.get(BOOTED, {}).get("at")
    is_another = was is not None and boot is not None and was != boot
    return datetime.fromtimestamp(int(at), UTC) if is_another and at is not None else None


def is_same_place(before: Facts, facts: Facts) -> bool:
    """Whether who looked then and who looks now are on one machine since its start, in one network, with the same rights."""
    place, now = ({**found.get("machine", {}), **found.get("namespace", {})} for found in (before, facts))
    return all(name in place and place[name] == now.get(name) for name in (BOOT, "net", "pid", "uid"))


def moved(before: MachineNote, facts: Facts) -> MachineChanges | None:
    """Of who looks now from another network of the same machine, since its start: that alone. Nothing else can be compared."""
    was, now = (found.get("namespace", {}).get("net") for found in (before.facts, facts))
    is_one_boot = before.facts.get("machine", {}).get(BOOT) == facts.get("machine", {}).get(BOOT) is not None
    if not is_one_boot or not was or not now or was == now:
        return None
    return MachineChanges(since=before.at, changes=(f"{APART}that of then → another one",))


def _unfiltered(process: Mapping[str, str]) -> dict[str, str]:
    return {name: UNFILTERED for name in FILTERS if process.get(name) == UNFILTERED}


def _in_words(process: Mapping[str, str]) -> dict[str, str]:
    return {FILTERS.get(name, name): value for name, value in process.items()}


def _has_looker_moved(before: Facts, now: Facts) -> bool:
    """Into another network, or other rights: what he sees of a machine is that of his own place."""
    places = [(before.get("namespace", {}).get(name), now.get("namespace", {}).get(name)) for name in ("net", "user")]
    return any(was and is_now and was != is_now for was, is_now in places)


def _are_mounts_of_one(before: Facts, now: Facts) -> bool:
    """A process may have mounts of its own: they are held against those of its successor, or of the same namespace."""
    place, other = before.get("namespace", {}), now.get("namespace", {})
    return place.get("mounts") == other.get("mounts") or place.get("whose") == other.get("whose") == "process"


def _of_kind(before: Mapping[str, str], now: Mapping[str, str], words: str, *, is_in_both: bool) -> Iterator[str]:
    for name in sorted({*before, *now}, key=lambda name: (name not in now, name != NETWORK, name)):
        was, value = before.get(name), now.get(name)
        is_side = name.endswith(SIDES)
        if was == value or ((is_in_both or is_side) and None in {was, value}):
            continue
        if name.endswith(CONTENT) or _is_as_it_was(name, before, now):
            continue
        what = words.format(name)
        if was is None:
            yield f"{what} is new" + ("" if value in IS_THERE else f": {value}")
        elif value is None:
            yield f"{what} is gone" + ("" if was in IS_THERE else f" (it was {was})")
        else:
            yield f"{what}: {' → '.join(_what_differs(was, value))}"


def _is_as_it_was(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    of_content = f"{name}{CONTENT}"
    return of_content in now and before.get(of_content) == now[of_content]


def _what_differs(was: str, value: str) -> tuple[str, str]:
    """Of two lists with commas the parts that differ, so that nobody has to search for them."""
    parts = was.split(","), value.split(",")
    if any(" " in text for text in (was, value)) or min(len(part) for part in parts) < 2:
        return was or "(nothing)", value or "(nothing)"
    gone, new = ([part for part in ours if part not in others] for ours, others in (parts, reversed(parts)))
    return ",".join(gone) or "(nothing)", ",".join(new) or "(nothing)"
