"""Whether a run has forgotten what it did: Temporal's database was restored from a backup, or somebody has reset the run.

The ledger has what it told. A run that goes on from before that would roll nodes that were rolled back, and open a gate that
somebody has closed. So it ends itself, and a new migration finds out where the cluster is.
"""

import re
from datetime import datetime

from pydantic import BaseModel, ConfigDict

KIND = "run-set-back"
OF_A_RUN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+")
"""The key of what a run tells: who it is, and the number of it in its chain of runs."""
LIKE = f"{'_' * 8}-{'_' * 4}-{'_' * 4}-{'_' * 4}-{'_' * 12}:%"
"""The same, as databases ask for it; with what was told under a number that the ledger had already of something else."""


class RunPosition(BaseModel):
    """Where a run was when it asked for something. `told`: how many entries its chain of runs had told before `at`.

    What it tells later, beside what it has asked for, is not from before `at`. What it has told and the ledger has not got yet
    hides as much that was forgotten: until the next time that somebody asks.
    """

    model_config = ConfigDict(frozen=True)

    run_id: str
    told: int
    at: datetime


class ToldByRuns(BaseModel):
    """What the ledger has of a migration's runs: how many entries of before a time, and the newest of these; and which step the
    newest entry about steps is of, whenever that was told, and whether it has come to its end by that."""

    count: int
    newest_kind: str = ""
    newest_at: datetime | None = None
    last_step: int = 0
    is_step_over: bool = False


STEP_BEGUN, STEP_OVER = "step-started", ("step-done", "step-blocked")
REASON = "Temporal's database was restored from a backup, or the run was reset"


def why_set_back(position: RunPosition, ledger: ToldByRuns, step: int | None = None) -> str | None:
    """In words; `None` where the run knows all that the ledger has. `step`: the one that it is about to take. A restored
    Temporal has one done once more that was asked for before, as of then.
    """
    if step is not None and (ledger.last_step > step or (ledger.last_step == step and ledger.is_step_over)):
        return (
            f"the run has forgotten what it did: it is about to take step {step}, and the ledger has "
            f"{'the end of' if ledger.is_step_over else 'the begin of'} step {ledger.last_step}. {REASON}"
        )
    if ledger.count <= position.told or ledger.newest_at is None:
        return None
    return (
        f"the run has forgotten what it did: the ledger has {ledger.count} entries of this migration's runs, the newest "
        f"{ledger.newest_kind} of {ledger.newest_at:%Y-%m-%d %H:%M:%S} UTC, and the run knows of {position.told}. {REASON}"
    )
