"""What of `VitalSigns` keeps a process from its work: for people, the gravest first."""

from collections.abc import Iterator, Mapping, Sequence

from domain.diagnosis.blocker import Blocker
from domain.diagnosis.machines.load_signs import MOST_OPEN, of_load
from domain.diagnosis.machines.network_signs import MANY_UNREAD, of_far, of_unaccepted, of_unheard, of_unsent
from domain.diagnosis.machines.standstill_signs import of_standstill
from domain.diagnosis.machines.vital_signs import Sign, VitalSigns, read_only

MOST_SKEW = 5.0
"""Seconds between two machines' clocks. What takes time between asking and answering is far less."""


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
    yield from of_standstill(signs)
    gets_on = signs.on_cpu != 0 and signs.frozen is None
    yield from of_unaccepted(signs) if gets_on else ()
    yield from of_far(signs, names)
    yield from of_unheard(signs, names)
    if signs.unread >= MANY_UNREAD and gets_on:
        yield Sign(
            f"it has not read for a second what {signs.unread} of its connections have brought",
            "Check its threads (jstack) and the last lines of its log: it is busy, or waits for something inside.",
            is_slight=True,
        )
    yield from of_unsent(signs, names)
    if signs.open_files and signs.most_open_files and signs.open_files >= MOST_OPEN * signs.most_open_files:
        yield Sign(
            f"it has {signs.open_files} files open, of at most {signs.most_open_files}",
            "Raise its limit of open files (LimitNOFILE, ulimit -n), which takes a restart; `prlimit` raises it in a running "
            "process.",
        )
    yield from of_load(signs)
    if abs(signs.skew) > MOST_SKEW:
        yield Sign(
            f"its clock is {abs(signs.skew):.0f} s {'ahead of' if signs.skew > 0 else 'behind'} that of keeperless-activities",
            "Correct the clocks (chronyc tracking).",
        )
