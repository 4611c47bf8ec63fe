"""What is kept: artefacts, secrets, the ledger."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.approvals import Attempt
from domain.cluster import ClusterSpec
from domain.diagnosis.machines.notes import MachineNote
from domain.drift.report import CheckName, DriftReport
from domain.plans import MeasuredStep, Plan
from domain.records import ClusterRecord, Command, EventDraft, MigrationRecord, Progress, Sample
from domain.restored_history import ToldByRuns


class ArtefactStore(Protocol):
    """Immutable bytes, named by their sha256 (hex)."""

    async def put(self, content: bytes) -> str: ...

    async def get(self, name: str) -> bytes: ...


class Secret:
    """A value that shows itself only through `reveal`."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret(***)"

    def reveal(self) -> str:
        return self._value


class SecretStore(Protocol):
    """Resolves references such as `env:NAME` and `file:/path`, at the last moment, every time anew."""

    def resolve(self, reference: str) -> Secret: ...


class Ledger(Protocol):
    """What activities need of the ledger."""

    @property
    def place(self) -> str:
        """Where it is, for people: without credentials."""

    async def add_report(self, report: DriftReport) -> DriftReport:
        """Publish a check's report, once: where one with this id is there already that one stands, and is the answer."""

    async def report(self, report_id: str) -> DriftReport | None: ...

    async def newest_reports(self, cluster: str, check: CheckName) -> list[DriftReport]:
        """Those of this check, whoever asked for them, of which one has looked last; among the conclusive ones too."""

    async def newest_report(self, migration_id: str, check: CheckName) -> DriftReport | None:
        """The one of this check that this migration has had last."""

    async def baseline(self, cluster: str, migration_id: str | None = None) -> DriftReport | None:
        """The first usable baseline that this migration has kept; without a migration, the cluster's newest.

        Where none is usable, the newest that is not.
        """

    async def drifts_found(self, cluster: str, check: CheckName) -> int:
        """How many reports of this check ever found a drift. It only grows."""

    async def add_plan(self, plan: Plan) -> Plan:
        """Publish a plan, once: where one with this id is there already that one stands, and is the answer."""

    async def plan(self, plan_id: str) -> Plan | None: ...

    async def put_note(self, migration_id: str, note: MachineNote) -> None:
        """Keep how a machine was set, in place of what was kept of it before."""

    async def note(self, migration_id: str, about: str) -> MachineNote | None: ...

    async def noted(self, migration_id: str) -> Mapping[str, str | None]:
        """About whom there are notes, and of which process of his."""

    async def add_sample(self, migration_id: str, sample: Sample) -> None:
        """Keep the numbers of an observation that changes nothing else."""

    async def measured_steps(self, cluster: str) -> list[MeasuredStep]:
        """How long restarts of this cluster's nodes have taken in its migrations, the newest first."""

    async def cluster(self, name: str) -> ClusterRecord | None: ...

    async def migration(self, migration_id: str) -> MigrationRecord | None: ...

    async def active_migration(self, cluster: str) -> MigrationRecord | None:
        """The cluster's only one that has not ended."""

    async def claim(self, migration_id: str, run_id: str, at: datetime) -> int | None:
        """Take the cluster for this run: its generation. The same run gets the same answer again.

        `None` when the migration belongs to another run or has ended.
        """

    async def generation(self, cluster: str) -> int:
        """The generation that holds the cluster now. An effect of another one must not happen."""

    async def command(self, command_id: str) -> Command | None: ...

    async def commands(self, migration_id: str) -> list[Command]:
        """A migration's commands, oldest first."""

    async def add_command(self, command: Command) -> Command:
        """Write a command, and what it does to approvals: the command as it is stored. One with the same id is the same."""

    async def mark_refused(self, command_id: str, because: str) -> None:
        """The workflow has refused the command. The first reason stands."""

    async def consume_approval(self, attempt: Attempt) -> str | None:
        """Consume an approval for an irreversible write: why it does not allow it, or `None` where it does. A retry of the
        attempt goes on."""

    async def told_by_runs(self, migration_id: str, before: datetime) -> ToldByRuns:
        """What the migration's runs have told of what was before that time."""

    async def record(
        self,
        migration_id: str,
        events: Sequence[EventDraft],
        progress: Progress | None,
        as_of: datetime | None = None,
        achieved: ClusterSpec | None = None,
    ) -> None:
        """Append events (a key seen before is skipped), set the progress, and at the migration's end register what it has
        `achieved`, in one transaction.

        Progress that was true (`as_of`) before what is stored is passed over.
        """
