"""Nodes of one machine that were told to end in the same moment: one hand has done that, and it is told once. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from domain.decisions import WaitReason
from domain.zk_to_kraft.causes.case import Cause, Looked, cause
from domain.zk_to_kraft.causes.file import without_data
from domain.zk_to_kraft.causes.unready import EXPLAINED_BY
from domain.zk_to_kraft.logs.deaths import STOPPED, Ending

MOMENT = timedelta(seconds=2)
"""Between two of them. The stamps of their logs are of one clock, and have whole seconds."""

FIND_THE_HAND = (
    "Find what has ended all of them, or it does so again: kafka-server-stop.sh signals every Kafka of its machine, though it "
    "was called for one; a stop of the unit or container that they are in, or of the machine; a logout where processes of "
    "users end with it (KillUserProcesses=, `loginctl enable-linger`). `journalctl` and `last` have that second. Then start "
    "them, one after the other."
)


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
