"""`Blocker`: one cause why nothing happens, in the operator's words, with what to do."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from domain.pages import docs_of

APPROVAL, STEP_FAILING, NO_WORKER, RUN_GONE = "approval", "step-failing", "no-worker", "run-gone"
TEMPORAL_UNAVAILABLE, OBSERVATION_FAILED, COMMAND_PENDING = "temporal-unavailable", "observation-failed", "command-pending"
LEDGER_UNAVAILABLE, PAUSED, MACHINE, SLOW_ACTIVITY = "ledger-unavailable", "paused", "machine", "slow-activity"
CODES: dict[str, str] = {
    APPROVAL: "A gate is open: a person has to decide.",
    STEP_FAILING: "A step, or an activity of Keeperless, keeps retrying; after one refusal only if nothing else is found. "
    "`observed` has its last error.",
    SLOW_ACTIVITY: "An activity of Keeperless runs, and has reported the same for long: for two minutes, or for eight "
    "seconds if nothing else is found, when all may be well. `observed` says what.",
    NO_WORKER: "No worker takes the tasks of one of the task queues: a program of Keeperless is missing, cannot reach "
    "Temporal, is not given the task, or does not finish it.",
    PAUSED: "The migration's workflow, or one of its activities, was paused in Temporal.",
    RUN_GONE: "This Temporal has no running workflow of the migration, though the migration has not ended.",
    TEMPORAL_UNAVAILABLE: "Temporal does not answer the API: what is shown is what the ledger knows.",
    LEDGER_UNAVAILABLE: "The ledger cannot be written, or not even read: nothing can be recorded, so nothing is done.",
    OBSERVATION_FAILED: "A worker tried to observe the cluster and could not: what is shown is what the ledger knows.",
    MACHINE: "A node's process is kept from its work by its machine, or by the network there; or something was changed there.",
    COMMAND_PENDING: "A command was sent that the migration has not taken yet.",
}
MOST_OBSERVED = 1000
"""Characters that are shown of one cause."""


class Blocker(BaseModel):
    """`code`: a wait's reason, a guard (GF..), a check (PF..) or one of `blockers.md`; stable. `object`: what it is about.

    `since`: when it was first known; where nobody has written that down, the look that found it.
    """

    model_config = ConfigDict(frozen=True)

    code: str
    object: str
    observed: str
    expected: str
    fix: str
    since: datetime
    docs: str


def blocker(code: str, about: str, *, observed: str, expected: str, fix: str, since: datetime) -> Blocker:
    return Blocker(code=code, object=about, observed=observed, expected=expected, fix=fix, since=since, docs=docs_of(code))
