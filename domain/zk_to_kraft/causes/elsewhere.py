"""keeperless-activities sees nothing of any broker: it runs where they are not. Pure.

One entry, in place of one for each file that seems to be missing: whoever restored them would write over files that are well.
"""

from collections.abc import Iterable, Iterator

from domain.diagnosis.blocker_codes import MACHINE
from domain.diagnosis.machines.notes import OURS
from domain.health.visibility import SEES_NOTHING, WHERE_IT_BELONGS, is_elsewhere
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import Cause, Looked, cause


def without_those_of_elsewhere(looked: Looked, causes: Iterable[Cause]) -> Iterator[Cause]:
    """The causes; where nothing is seen of the nodes, that one first, and nothing that is told of what they lack."""
    if not is_elsewhere(looked.observation, looked.spec):
        yield from causes
        return
    found = list(causes)
    names = {looked.name(node.id) for node in looked.spec.nodes} | {OURS}
    hidden = [one for one in found if one.blocker.object in names or one.blocker.code == WaitReason.FILE_CHANGED]
    serving = [looked.name(view.id) for view in looked.observation.nodes if view.is_unowned]
    serve = f"; {', '.join(serving)} serve, by their metrics" if serving else ""
    yield cause(
        looked,
        MACHINE,
        OURS,
        *frozenset[str]().union(*(one.explains for one in hidden)),
        *(WaitReason.PART_UNKNOWN, WaitReason.FILE_CHANGED, WaitReason.NODE_DOWN),
        observed=f"{SEES_NOTHING}{serve}",
        expected=f"{OURS} on the machine of the nodes",
        fix=WHERE_IT_BELONGS,
    )
    yield from (one for one in found if one not in hidden)
