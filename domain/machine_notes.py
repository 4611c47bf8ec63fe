"""What has changed on a machine since it was noted: the first thing that whoever is called at night asks. Pure.

A change is told where something does not work, and of the machine on which it does not. It need not be the cause.
"""

import re
from collections.abc import Container, Iterator, Mapping
from datetime import datetime, timedelta

from domain.observed import ObservedPart

Facts = Mapping[str, Mapping[str, str]]
"""By kind, and by what it is about: as `activities/on_node/note_machine.py` gives them."""


OURS = "keeperless-activities"
"""In place of a node's name: the process that looks."""

ZOOKEEPER = "what is set in ZooKeeper"
"""In place of a node's name: no machine, but dynamic configs, quotas, ACLs and orders of the cluster."""


LOOK_AT_CHANGES = "Look at what has changed there first: what nobody meant is to be put back as it was."


class MachineNote(ObservedPart):
    """How a machine was set at a moment. `identity`: of the process whose limits and environment are among the facts."""

    about: str
    at: datetime
    identity: str | None
    facts: dict[str, dict[str, str]]


class MachineChanges(ObservedPart):
    """What is different on a machine since then, the likeliest to matter first; and what its kernel has said since."""

    since: datetime
    where: str = "on its machine"
    changes: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes or self.said)

    @property
    def lines(self) -> tuple[str, ...]:
        return (*self.changes, *self.said)

    @property
    def in_words(self) -> str:
        changes = f"Changed {self.where} since {self.since:%d %b %H:%M:%S} UTC: {'; '.join(self.changes)}"
        said = f"Its kernel has said: {'; '.join(self.said)}"
        return ". ".join([*([changes] if self.changes else []), *([said] if self.said else [])])

    def without(self, known: Container[str]) -> "MachineChanges":
        """What is not told yet."""
        changes, said = (tuple(line for line in lines if line not in known) for lines in (self.changes, self.said))
        return self.model_copy(update={"changes": changes, "said": said})


MOST_TOLD = 6
"""Of changes, and of lines of the kernel's; of the former at most half of one kind."""

SAID_WITHIN = timedelta(minutes=15)
"""What a kernel has said before that is another story."""

KINDS = {
    "mount": "mount {}",
    "limit": "its limit {}",
    "group": "limit {} of its control groups",
    "environment": "variable {} of its environment",
    "process": "{} of its process",
    "firewall": "firewall {}",
    "line": "line {}",
    "network": "{}",
    "file": "{}",
    "data": "{}",
    "sysctl": "{}",
    "machine": "{}",
    "service": "service {}",
    "module": "kernel module {}",
    "config": "{}",
    "acl": "ACLs of {}",
    "order": "order {}",
    "deletion": "deletion of topic {}",
}
"""In the order of how likely each is to matter."""

IN_BOTH = frozenset({"data", "sysctl", "group"})
"""What comes and goes by itself: told where it is there before and after, and differs."""

IS_THERE = frozenset({"there", "runs", "loaded"})
"""Values that say no more than that."""


OF_A_MACHINE = frozenset({"firewall", "network", "sysctl", "machine", "service", "module"})
"""Kinds that are the same for every process of a machine, as long as it is in the same network namespace."""


def seen_from_beside(before: MachineNote, facts: Facts) -> Facts:
    """Of what another process has looked at what can be held against the note; nothing, where it runs elsewhere."""
    is_same_machine = _boot(before.facts) is not None and _boot(before.facts) == _boot(facts)
    return {kind: found for kind, found in facts.items() if kind in OF_A_MACHINE} if is_same_machine else {}


def _boot(facts: Facts) -> tuple[str, str] | None:
    boot, network = facts.get("machine", {}).get("boot id"), facts.get("namespace", {}).get("net")
    return (boot, network) if boot is not None and network is not None else None


def changes_between(before: MachineNote, facts: Facts, kernel: list[tuple[float, str]], now: datetime) -> MachineChanges:
    """`kernel`: lines, and the seconds since each. A kind that one of both has not got could not be looked at."""
    told: list[str] = []
    more = 0
    for kind, words in KINDS.items():
        if kind not in facts or kind not in before.facts:
            continue
        found = list(_of_kind(before.facts[kind], facts[kind], words, is_in_both=kind in IN_BOTH))
        told += found[: MOST_TOLD // 2]
        more += len(found[MOST_TOLD // 2 :])
    more += len(told[MOST_TOLD:])
    ending = (f"and {more} more",) if more else ()
    recent = min(now - before.at, SAID_WITHIN).total_seconds()
    said = tuple(line for seconds, line in kernel if seconds <= recent)[-MOST_TOLD // 2 :]
    where = "there" if before.about == ZOOKEEPER else "on its machine"
    return MachineChanges(since=before.at, where=where, changes=(*told[:MOST_TOLD], *ending), said=said)


def _of_kind(before: Mapping[str, str], now: Mapping[str, str], words: str, *, is_in_both: bool) -> Iterator[str]:
    for name in sorted({*before, *now}, key=lambda name: (name not in now, name)):
        was, value = before.get(name), now.get(name)
        if was == value or (is_in_both and None in {was, value}):
            continue
        what = words.format(name)
        if was is None:
            yield f"{what} is new" + ("" if value in IS_THERE else f": {value}")
        elif value is None:
            yield f"{what} is gone" + ("" if was in IS_THERE else f" (it was {was})")
        else:
            yield f"{what}: {_without_common(was, value)}"


def _without_common(was: str, value: str) -> str:
    """Of two lists the parts that differ, so that nobody has to search for them."""
    parts = [re.split(r"(?<=,) ?| ", text) for text in (was, value)]
    if len(was) + len(value) < 60 or len(parts[0]) < 3:
        return f"{was} → {value}"
    gone, new = (
        dict.fromkeys(part.strip(",") for part in ours if part not in others) for ours, others in (parts, reversed(parts))
    )
    return f"{' '.join(gone) or '(nothing)'} → {' '.join(new) or '(nothing)'}"
