"""Nodes of one machine that have ended together: told to in the same moment, by one hand, or with their machine. That is told
once. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from domain.checks.seen import some
from domain.diagnosis.causes.death_signs import signs_at_death
from domain.diagnosis.logs.endings import CURT, KILLED, SILENT, STOPPED, Ending
from domain.diagnosis.machines.bad_signs import signed
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import Cause, Looked, cause
from domain.zk_to_kraft.causes.file import without_data
from domain.zk_to_kraft.causes.unready import EXPLAINED_BY

MOMENT = timedelta(seconds=2)
"""Between two of them. The stamps of their logs are of one clock, and have whole seconds."""

FIND_THE_HAND = (
    "Find what has ended all of them, or it does so again: kafka-server-stop.sh signals every Kafka of its machine, though it "
    "was called for one; a stop of the unit or container that they are in, or of the machine; a logout where processes of "
    "users end with it (KillUserProcesses=, `loginctl enable-linger`). `journalctl` and `last` have that second. Then start "
    "them, one after the other."
)

LOOK_AT_VOLUMES = (
    "See first that all its volumes are mounted (`findmnt --verify`, `systemctl --failed`), and that its clock is right "
    "(`chronyc tracking`). "
)
FIND_THE_BOOT = (
    "Then start them, one after the other: who was not told to end recovers its logs first. Find what has booted it, or it "
    "does so again: `last -x`, the end of `journalctl -b -1`, /var/crash (a panic), a watchdog, the hypervisor or the BMC "
    "(`ipmitool sel list`), updates that boot by themselves."
)
WAS_LOST = "the machine has crashed, was reset, or has lost its power"
ENDED_IN_ORDER = "Before that all of them were told to end, and did so in order"
WITH_ITS_MACHINE = frozenset({KILLED.kind, CURT.kind, SILENT.kind, STOPPED.kind})
"""Kinds of endings that a boot may be behind."""


def ended_with_their_machine(looked: Looked, endings: Mapping[int, Ending]) -> Iterator[tuple[tuple[int, ...], Cause]]:
    """Ids of nodes whose machine was booted since they were noted, and that nobody has started after that; one entry for each
    machine. One whose data is gone, or that says itself what it died of, is an entry of its own."""
    booted = {i: at for i, ending in endings.items() if (at := _booted_at(looked, i, ending)) is not None}
    for host in sorted({looked.spec.node(i).host for i in booted}):
        ids = tuple(sorted(i for i in booted if looked.spec.node(i).host == host))
        yield ids, _told_of_boot(looked, ids, booted[ids[0]], endings)


def _booted_at(looked: Looked, node_id: int, ending: Ending) -> datetime | None:
    """Of a process that was started since the boot it is known when (`Process.started_at`)."""
    view, changes = looked.observation.node(node_id), looked.hints.changes.get(looked.name(node_id))
    is_of_it = ending.kind in WITH_ITS_MACHINE and not ending.further and node_id not in looked.hints.begun
    is_new = view.process is not None and view.process.started_at is not None
    return changes.booted_at if changes is not None and is_of_it and not is_new and not without_data(looked, view) else None


def ended_together(looked: Looked, endings: Mapping[int, Ending]) -> Iterator[tuple[tuple[int, ...], Cause]]:
    """Their ids, and one entry. `endings`: of nodes that are down, and that no step of ours has stopped. One whose data is gone
    is an entry of its own."""
    stops = {
        i: ending.at
        for i, ending in endings.items()
        if ending.at is not None
        and ending.kind == STOPPED.kind
        and not (ending.further or without_data(looked, looked.observation.node(i)))
    }
    hosts = {looked.spec.node(i).host for i in stops}
    for host in sorted(hosts):
        ids = sorted((i for i in stops if looked.spec.node(i).host == host), key=lambda i: (stops[i], i))
        for group in _moments(ids, stops):
            yield tuple(group), _told(looked, group, stops[group[0]])


def _moments(ids: Sequence[int], stops: Mapping[int, datetime]) -> Iterator[list[int]]:
    """Of two and more."""
    groups: list[list[int]] = []
    for i in ids:
        if groups and stops[i] - stops[groups[-1][-1]] <= MOMENT:
            groups[-1].append(i)
        else:
            groups.append([i])
    yield from (group for group in groups if len(group) > 1)


def _told(looked: Looked, ids: Sequence[int], at: datetime) -> Cause:
    names = ", ".join(looked.name(i) for i in sorted(ids))
    return cause(
        looked,
        WaitReason.NODE_DOWN,
        names,
        *(reason for i in ids for reason in EXPLAINED_BY[looked.spec.role(i)]),
        observed=f"their processes do not run: all {len(ids)} got a signal at {at:%H:%M:%S}, by the clock of their logs, and "
        "ended in order",
        expected="they run, and whoever ends one does not end all",
        fix=FIND_THE_HAND,
    )


def _told_of_boot(looked: Looked, ids: Sequence[int], at: datetime, endings: Mapping[int, Ending]) -> Cause:
    name, whose = ", ".join(looked.name(i) for i in ids), "their processes do" if len(ids) > 1 else "its process does"
    cut = [looked.name(i) for i in ids if endings[i].kind != STOPPED.kind]
    how = f"{some(cut)} had no time to end in order: {WAS_LOST}" if cut else ENDED_IN_ORDER
    observed = f"{whose} not run: the machine was booted at {at:%d %b %H:%M:%S} UTC. {how}"
    changes = looked.hints.changes[looked.name(ids[0])].in_words if len(ids) > 1 else ""
    found = cause(
        looked,
        WaitReason.NODE_DOWN,
        name,
        *(reason for i in ids for reason in EXPLAINED_BY[looked.spec.role(i)]),
        observed=". ".join(filter(None, [observed, changes])),
        expected="they run, also after their machine was booted",
        fix=f"{LOOK_AT_VOLUMES}{FIND_THE_BOOT}",
    )
    # Of how it has ended the boot says all; whether it can be started again is another matter.
    place = looked.hints.places.get(name) if len(ids) == 1 else None
    return Cause(signed(found.blocker, list(signs_at_death(STOPPED.kind, place, None, is_ours=False))), found.explains)
