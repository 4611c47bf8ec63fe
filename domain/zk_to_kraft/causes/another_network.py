"""Nothing answers keeperless-activities, and it is in another network than when it noted its machine. Pure.

One entry, in place of one for each that does not answer: whoever looked for the fault there would find all of them well.
"""

from collections.abc import Iterable, Iterator

from domain.diagnosis.blocker_codes import MACHINE
from domain.diagnosis.machines.notes import APART, OURS
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import Cause, Looked, cause

OF_SILENCE = frozenset({WaitReason.PART_UNKNOWN, WaitReason.NODE_NOT_READY, "GF11"})
"""What is told of whom does not answer."""


def without_those_of_another_network(looked: Looked, causes: Iterable[Cause]) -> Iterator[Cause]:
    """The causes; where all that is silent is silent for that, that one first."""
    if not _is_elsewhere(looked):
        yield from causes
        return
    found = list(causes)
    hidden = [one for one in found if one.blocker.code in OF_SILENCE]
    yield cause(
        looked,
        MACHINE,
        OURS,
        *frozenset[str]().union(*(one.explains for one in hidden)),
        WaitReason.PART_UNKNOWN,
        observed="nothing answers it, neither ZooKeeper nor Kafka nor any node's metrics, and it is in another network than "
        "before: nodes, and the members of the ensemble, may all be well",
        expected=f"{OURS} in a network from which all of them are reached",
        fix="Restart no node, and start nothing beside them.",
    )
    yield from (one for one in found if one not in hidden)


def _is_elsewhere(looked: Looked) -> bool:
    seen, changes = looked.observation, looked.hints.changes.get(OURS)
    is_deaf = seen.zookeeper is None and seen.kafka is None and all(view.metrics is None for view in seen.nodes)
    return is_deaf and changes is not None and any(line.startswith(APART) for line in changes.changes)
