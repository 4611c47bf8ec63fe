"""What the worker and the program in the room tell each other: one line of JSON each. The worker's end of the line is the
leash: when it is gone, so is the program.

    program  Ready | NotIsolated       before anything is copied
    worker   Order                     the copy lies in the directory now
    program  Trying …, then Ended | Failed
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from domain.rehearsal import RehearsalLimits, Usage
from domain.zk_to_kraft.rehearsal.trials import Candidate, Trial

COPY, PROPERTIES, CONTROLLER, ROWS, PASSED = "copy", "controller.properties", "controller", "rows.jsonl", "passed"
"""In the directory: ZooKeeper's files and the controller's own file, both from the worker; the quorum's log, and the tree's
rows of the copy that passed, from the program."""


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Order(Message):
    """`connect`: what the controller's file has to have. `newest_zxid`: the copy has to be as new as this. `brokers`: what
    those that live have registered in ZooKeeper, which has no secrets. `seconds`: in which all rounds have to be over.
    """

    java: str
    libs: str
    connect: str
    listener: str
    release: str
    newest_zxid: int
    brokers: dict[int, str]
    seconds: float
    limits: RehearsalLimits


class Ready(Message):
    kind: Literal["ready"] = "ready"


class NotIsolated(Message):
    kind: Literal["not-isolated"] = "not-isolated"
    why: str


class Trying(Message):
    kind: Literal["trying"] = "trying"
    round: int
    stage: str


class Failed(Message):
    """Nothing could be found out. `why`: without any secret."""

    kind: Literal["failed"] = "failed"
    why: str


class Copied(Message):
    """Of the last copy that passed, or of the last one at all. `told`: the last of the controller's log, stripped."""

    records: dict[str, int] = Field(default_factory=dict)
    copy_seconds: float | None = None
    seconds_without_controller: float | None = None
    usage: Usage = Usage()
    waits: str = ""
    told: tuple[str, ...] = ()


class Ended(Message):
    """`cut`: why nothing more was tried, although more was to be learnt; empty where all was."""

    kind: Literal["ended"] = "ended"
    candidates: tuple[Candidate, ...]
    trials: tuple[Trial, ...]
    copied: Copied
    cut: str = ""
    seconds: dict[str, float] = Field(default_factory=dict)


Told = Annotated[Ready | NotIsolated | Trying | Failed | Ended, Field(discriminator="kind")]
TOLD: TypeAdapter[Ready | NotIsolated | Trying | Failed | Ended] = TypeAdapter(Told)
