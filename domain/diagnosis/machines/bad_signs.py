"""What of `VitalSigns` keeps a process from its work: for people, the gravest first."""

from collections.abc import Iterator, Mapping, Sequence

from domain.diagnosis.blocker import Blocker
from domain.diagnosis.machines.load_signs import MOST_OPEN, of_groups, of_limits, of_load
from domain.diagnosis.machines.network_signs import MANY_UNREAD, of_drops, of_far, of_unaccepted, of_unheard, of_unsent
from domain.diagnosis.machines.standstill_signs import of_standstill
from domain.diagnosis.machines.vital_signs import Sign, VitalSigns, read_only
from domain.diagnosis.machines.waits import wait_in_words

MOST_SKEW = 5.0
"""Seconds between two machines' clocks. What takes time between asking and answering is far less."""
MOST_WAITS = 3


def signed(entry: Blocker, signs: Sequence[Sign], most: int | None = None, *, is_proved: bool = False) -> Blocker:
    """An entry with what keeps whom it is about from its work, and the cure of that first, but after the entry's own where it
    is slight, and that is proved, or others have the same. `most`: characters that are told."""
    observed = ". ".join(filter(None, [entry.observed.rstrip(". "), *(sign.observed for sign in signs)]))
    own = "" if any(sign.is_cure for sign in signs) and not is_proved else entry.fix
    aside = [sign for sign in signs if sign.is_slight and (is_proved or sign.is_common)]
    fix = " ".join(filter(None, [*(sign.fix for sign in signs if sign not in aside), own, *(sign.fix for sign in aside)]))
    return entry.model_copy(update={"observed": observed[:most], "fix": fix})


def bad_signs(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    """The gravest first. `names`: of nodes, by addresses at which they listen."""
    if signs.read_only:
        yield read_only(signs.read_only)
    yield from of_groups(signs)
    yield from of_standstill(signs)
    gets_on = _gets_on(signs)
    yield from of_unaccepted(signs) if gets_on else ()
    yield from of_far(signs, names)
    yield from of_unheard(signs, names)
    if signs.unread >= MANY_UNREAD and gets_on:
        yield Sign(
            f"it has not read for a second what {signs.unread} of its connections have brought",
            "It is busy, or waits for something inside: look at its threads (jstack), and at what its log says last.",
            is_slight=True,
        )
    yield from of_unsent(signs, names)
    yield from of_limits(signs)
    if signs.open_files and signs.most_open_files and signs.open_files >= MOST_OPEN * signs.most_open_files:
        yield Sign(
            f"it has {signs.open_files} files open, of at most {signs.most_open_files}",
            "Raise its limit of open files (LimitNOFILE, ulimit -n), which takes a restart; a running process's: prlimit.",
        )
    yield from of_load(signs)
    if abs(signs.skew) > MOST_SKEW:
        yield Sign(
            f"its clock is {abs(signs.skew):.0f} s {'ahead of' if signs.skew > 0 else 'behind'} that of keeperless-activities",
            "Set the clocks right (chronyc tracking).",
        )
    yield from _of_waits(signs, names)
    if not signs.unheard:
        yield from of_drops(signs)


def _of_waits(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    """Evidence rather than a verdict: some threads wait for ever where all is well."""
    told = [wait_in_words(wait, names) for wait in signs.waits[:MOST_WAITS]]
    if told and signs.frozen is None and signs.tracer is None:
        yield Sign(
            f"by its kernel, {'; '.join(told)}",
            "See why what its threads wait for does not come: who is at the other end, or has the lock. They go on by "
            "themselves once it does.",
            is_slight=True,
        )


def _gets_on(signs: VitalSigns) -> bool:
    """Whether anything of it gets on, and nobody holds it."""
    holders = (signs.tracer, signs.stops, signs.frozen, signs.heap_dump, signs.debugger)
    return signs.on_cpu != 0 and all(holder is None for holder in holders)
