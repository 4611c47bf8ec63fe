"""Whether somebody else leads the same cluster: another installation of Keeperless, with a Temporal and a ledger of its own.

Inside one installation Temporal's id of the workflow, and the ledger's generation, let one migration lead. Between two only the
nodes themselves tell: each roll leaves its mark beside the file that it writes.
"""

from datetime import datetime

from activities.ports.stores import Ledger
from domain.contracts import AssessRequest, StepRequest
from domain.errors import Unsafe
from domain.observed.observation import Observation, RollMark
from domain.records import CommandKind

LED_TWICE = (
    "which this ledger does not know: another installation of Keeperless, with its own Temporal and ledger, migrates the "
    "same cluster, and the two restart each other's nodes. This one changes nothing more. Find the other (`ps -ef` on the "
    "nodes' machine: another keeperless-activities), end one of the two migrations for good, then resume the other: it "
    "continues from what it finds."
)


async def ensure_sole_leader(request: AssessRequest | StepRequest, seen: Observation, ledger: Ledger) -> None:
    """Raise where a migration that this ledger does not know has marked a node since this one began, or was resumed last: who
    resumes has seen to it. On the way back nothing is asked: half of it is the worst place to rest.
    """
    others = {view.id: view.mark for view in seen.nodes if view.mark is not None and _is_anothers(view.mark, request)}
    record = await ledger.migration(request.migration_id) if others and request.revert is None else None
    if record is None:
        return
    since = record.started_at or record.created_at
    newer = {node_id: mark for node_id, mark in others.items() if mark.marked_at is not None and mark.marked_at > since}
    resumed_at = await _resumed_at(request.migration_id, ledger) if newer else None
    for node_id, mark in newer.items():
        is_known = resumed_at is not None and mark.marked_at is not None and mark.marked_at <= resumed_at
        if is_known or await ledger.migration(_owner_of(mark)) is not None:
            continue
        at, owner = mark.marked_at, _owner_of(mark)
        raise Unsafe(f"node {node_id} was marked at {at:%H:%M:%S} UTC by migration {owner}, {LED_TWICE}")


def _is_anothers(mark: RollMark, request: AssessRequest | StepRequest) -> bool:
    return mark.marked_at is not None and _owner_of(mark) != request.migration_id


def _owner_of(mark: RollMark) -> str:
    return mark.step_id.partition("/")[0]


async def _resumed_at(migration_id: str, ledger: Ledger) -> datetime | None:
    commands = await ledger.commands(migration_id)
    return max((c.at for c in commands if c.kind is CommandKind.RESUME and c.refused_because is None), default=None)
