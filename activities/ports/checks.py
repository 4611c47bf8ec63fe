"""The engines of the consistency checks."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from activities.ports.zookeeper import Captured
from domain.contracts import CheckRequest
from domain.drift.message_manifest import MessageComparison, NodeWalked
from domain.drift.messages import ReplicaLog
from domain.drift.report import CheckName, CheckResult
from domain.drift.tolerations import Toleration
from domain.quorum_log.metadata_log import EndOfCopy
from domain.records import ClusterRecord


@dataclass(frozen=True)
class Comparison:
    """What is compared: `staged`, rows of ZooKeeper, with the image that `log`, a copy of `__cluster_metadata-0`, had before
    offset `cut`, and all versions from there to `end`. `out`: a new, private directory.
    """

    id: str
    staged: Path
    log: Path
    cut: int
    end: int
    out: Path
    tolerated: tuple[Toleration, ...] = ()
    check: CheckName = CheckName.METADATA

    @property
    def is_copy(self) -> bool:
        """`staged` is of the time of the copy, which `cut`, the same as `end`, is the end of."""
        return self.check is CheckName.COPY


@dataclass(frozen=True)
class Claimed:
    """KRaft's claim of `/controller`. `zxid`: its transaction, -1 where it was not for the copy. `at`: ZooKeeper's time."""

    zxid: int
    at: datetime | None


@dataclass(frozen=True)
class KeptRows:
    """Rows as one file, to be compared with later. `counts`: by kind. `not_read`: what they lack."""

    packed: bytes
    counts: dict[str, int]
    not_read: tuple[str, ...]


TellProgress = Callable[[str, int, int], None]
"""What is done, how many tasks of it are done, and how many there are."""


class CheckRunner(Protocol):
    """Makes rows and compares them. A session is one migration's, by a name (a UUID) that is known before it is opened."""

    def session_of(self, migration_id: str) -> str:
        """The migration's, as long as it can be used; else the name of a new one, which is made ready from now on."""

    def leave(self, migration_id: str) -> None:
        """Nothing more is asked for the migration: its session may end."""

    async def interrupt(self, session: str) -> None:
        """End all that runs in a session, and close it for good. Any number of times; one that never was is fine."""

    async def stage(self, captured: Captured, directory: Path) -> None:
        """Rows of what a live tree has, into a new directory. Secrets become digests here, before any row exists."""

    async def keep(self, captured: Captured, directory: Path) -> KeptRows:
        """The same of what Kafka is going to copy, by way of a new directory."""

    async def end_of_copy(self, log: Path) -> EndOfCopy | None:
        """Where Kafka's copy ends in what is left of the quorum's log; `None` where that does not tell of one."""

    async def as_of_claim(self, kept: bytes, captured: Captured, claimed: Claimed, directory: Path) -> None:
        """Rows as the tree was when KRaft claimed it: into `directory`, which is new. `kept`: rows of before."""

    async def compare(self, asked: Comparison, session: str, on_progress: TellProgress) -> CheckResult:
        """Compare. `on_progress` is called often, in any thread. Cancelled, it ends its work.

        `Permanent`: a side is damaged, or the log before `cut` is not there any more.
        """

    async def confirm(self, asked: Comparison, earlier: CheckResult, later: CheckResult) -> tuple[CheckResult, int]:
        """`later` with those of its differences only that `earlier` had just the same, and how many others it had. They moved
        between two looks. `asked`: has a directory of its own."""


@dataclass(frozen=True)
class WalkedNode:
    """What the walk of one broker's segments has told. `batches`: a Parquet file. `moved`: logs that did not hold still."""

    replicas: tuple[ReplicaLog, ...]
    batches: bytes
    moved: tuple[str, ...]
    walked: NodeWalked


class MessageRunner(Protocol):
    """Makes rows of what a node told, and compares them with earlier ones."""

    async def read_walk(self, broker: int, output: str) -> WalkedNode:
        """`Transient`: the answer is not whole."""

    async def compare(self, asked: MessageComparison, session: str, on_progress: TellProgress) -> CheckResult:
        """`session`, `on_progress`: as in `CheckRunner.compare`."""


@dataclass(frozen=True)
class CheckAttempt:
    """One attempt at a check. `directory`: where files lie meanwhile, private, empty, and removed by whoever gave it. `note`:
    takes the number of the look and its progress. `session`: as in `CheckRunner`.
    """

    request: CheckRequest
    cluster: ClusterRecord
    session: str
    directory: Path
    note: Callable[[int, str, int, int], None]

    def on_progress(self, stage: str, done: int, total: int) -> None:
        """The progress of a check that looks once."""
        self.note(1, stage, done, total)
