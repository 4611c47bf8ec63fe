"""What the ledger refuses, and why.

    Transient
    ├── LedgerUnavailable     the database does not answer, or refuses: try again; `fix` says what lets it answer
    │   ├── LedgerMarked      nobody may change SQLite's files: once somebody takes the mark away, the same call works
    │   ├── LedgerDamaged     what it has stored cannot be read: once it is restored, the same call works
    │   └── RowUnreadable     one of its rows is not as this release writes it: another release may read it
    └── NotFound              no such row: yet, or in another ledger than the one that is meant
        ├── NoSuchCluster
        ├── NoSuchMigration
        └── NoSuchCommand
    Permanent
    ├── Conflict              the ledger's state forbids it: the same call may be right at another time
    │   ├── ActiveMigration   carries the id of the migration that is in the way
    │   ├── ClusterIdTaken    carries the name that holds the same Kafka cluster
    │   ├── SpecHasChanged    carries the revision that is current
    │   └── MigrationHasEnded carries the state in which it ended
    └── LedgerMisuse          the call is wrong: nothing but a change of it helps

What is in the way is an attribute of the error, so that nobody has to read its text.
"""

from domain.errors import Permanent, Transient
from domain.records import MigrationState

MEND = "Fix what it says. The log of the database has more. Nothing is lost: migrations continue where they were."
"""What to do about a database of which nothing else is known."""

LOCKED = (
    "Another process keeps a lock. Find it and what it does: `fuser` on the file of SQLite, which Keeperless' own programs "
    "have open too; pg_blocking_pids() and pg_stat_activity of PostgreSQL. If it idles or hangs, end it. If it works, as a "
    "backup does, let it end. Nothing is lost: migrations continue where they were."
)

RESTORE = (
    "Stop Keeperless' programs. Keep the damaged files (with SQLite its -wal and -shm too). Restore the ledger from its "
    "last backup, and start the programs again. The cluster stays as it is meanwhile. A migration that the backup does not "
    'know continues as another one, started with `"hold": true`.'
)
"""What to do about a ledger that is damaged."""

OTHER_RELEASE = (
    "Compare the versions of Keeperless' programs: all must have one release, the newest that has written to this ledger. "
    "Install that one and start it; nothing is lost, and migrations continue by themselves. Only if the row was edited by "
    "hand, restore it, or restore the ledger from its last backup."
)
"""What to do about a row that this release cannot read."""


class LedgerUnavailable(Transient):
    """The database does not answer in time, or refuses. A change may have been made or not: every call may be repeated."""

    def __init__(self, message: str, fix: str = MEND) -> None:
        super().__init__(message)
        self.fix = fix


class LedgerMarked(LedgerUnavailable):
    """Somebody has marked SQLite's files so that nobody may change them, whoever he is and however he finds them."""


class LedgerDamaged(LedgerUnavailable):
    """What the database has stored cannot be read. Nothing is lost of the cluster, and no migration gives up for it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, RESTORE)


class RowUnreadable(LedgerUnavailable):
    """A row was found that is not as this release writes it: of a newer one, or edited by hand."""

    def __init__(self, message: str) -> None:
        super().__init__(message, OTHER_RELEASE)


class LedgerMisuse(Permanent):
    """The call can never work: a malformed value, or one that the schema forbids."""


class NotFound(Transient):
    """There is no such row. Who works for a migration has been started with another ledger then, which can be corrected."""


class NoSuchCluster(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"cluster {name} is not in this ledger: register it first, or take the one that has it (KEEPERLESS_LEDGER_URL)"
        )
        self.name = name


class NoSuchMigration(NotFound):
    def __init__(self, migration_id: str) -> None:
        super().__init__(
            f"there is no migration {migration_id} in this ledger: is it the one of the API (KEEPERLESS_LEDGER_URL)?"
        )
        self.migration_id = migration_id


class NoSuchCommand(NotFound):
    def __init__(self, command_id: str) -> None:
        super().__init__(f"there is no command {command_id}")
        self.command_id = command_id


class Conflict(Permanent):
    """What the ledger holds now forbids the call."""


class ActiveMigration(Conflict):
    """The cluster has an active migration, `migration_id`; it is the only one allowed, and its spec stands."""

    def __init__(self, cluster: str, migration_id: str) -> None:
        super().__init__(f"cluster {cluster} has the active migration {migration_id}: wait for its end")
        self.cluster = cluster
        self.migration_id = migration_id


class ClusterIdTaken(Conflict):
    """The Kafka cluster is registered under another name, `holder`: two names would be two mutexes."""

    def __init__(self, cluster_id: str, holder: str) -> None:
        super().__init__(f"Kafka cluster {cluster_id} is registered as {holder}: use that name")
        self.cluster_id = cluster_id
        self.holder = holder


class SpecHasChanged(Conflict):
    """The migration was prepared for another revision of the spec than the current one, `revision`."""

    def __init__(self, cluster: str, prepared: int, revision: int) -> None:
        super().__init__(
            f"cluster {cluster} is at revision {revision} of its spec, the migration was prepared for {prepared}: "
            "read the cluster again and repeat"
        )
        self.cluster = cluster
        self.revision = revision


class MigrationHasEnded(Conflict):
    """The migration is over, in `state`: nothing brings it back."""

    def __init__(self, migration_id: str, state: MigrationState) -> None:
        super().__init__(f"migration {migration_id} has ended as {state}: it cannot change any more")
        self.migration_id = migration_id
        self.state = state
