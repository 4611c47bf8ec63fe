"""The tables. A column is called what the field of its record in `domain.records` is called.

`ledger.alembic` creates them; a test holds both together.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    false,
    text,
)

from domain.cluster import ClusterSpec
from domain.diagnosis.machines.notes import MachineNote
from domain.drift.report import DriftReport
from domain.of_kind import Wanted
from domain.plans import Plan
from domain.policy import MigrationPolicy
from domain.records import Progress, Sample
from ledger.columns import ModelJson, UtcDateTime

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# On SQLite only INTEGER can be the row's own address, which makes the log one B-tree instead of two.
SEQUENCE = BigInteger().with_variant(Integer(), "sqlite")

clusters = Table(
    "clusters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("cluster_id", Text, nullable=False, unique=True),
    Column("spec", ModelJson(ClusterSpec), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

cluster_revisions = Table(
    "cluster_revisions",
    metadata,
    Column("cluster", Text, ForeignKey("clusters.name"), primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("spec", ModelJson(ClusterSpec), nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

migrations = Table(
    "migrations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("cluster", Text, ForeignKey("clusters.name"), nullable=False),
    Column("cluster_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False, comment="progress.state again, to search by"),
    Column("policy", ModelJson(MigrationPolicy), nullable=False),
    Column("wanted", ModelJson(Wanted), nullable=False, server_default="{}"),
    Column("spec_revision", Integer, nullable=False),
    Column("generation", Integer),
    Column("requested_by", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("workflow_id", Text, nullable=False),
    Column("run_id", Text),
    Column("plan_id", Text),
    Column("progress", ModelJson(Progress), nullable=False),
    Column("progress_as_of", UtcDateTime, comment="when progress was true, so that nothing older replaces it"),
    Index("ix_migrations_created_at_id", "created_at", "id"),
    Index("ix_migrations_cluster_created_at", "cluster", "created_at"),
)

# One active migration for one cluster. "Active" is said by `ended_at`, so that a new state needs no new index.
Index(
    "uq_migrations_active",
    migrations.c.cluster,
    unique=True,
    sqlite_where=text("ended_at IS NULL"),
    postgresql_where=text("ended_at IS NULL"),
)

commands = Table(
    "commands",
    metadata,
    Column("id", Text, primary_key=True),
    Column("migration_id", Text, ForeignKey("migrations.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("gate", Text),
    Column("evidence_hash", Text),
    Column("preview_hash", Text),
    Column("accept_loss", JSON, nullable=False, server_default="[]"),
    Column("reason", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("via", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("delivered_at", UtcDateTime),
    Column("refused_because", Text),
    Column("expires_at", UtcDateTime),
    Column("consumed_at", UtcDateTime),
    Column("consumed_by", Text),
    Column("closed_at", UtcDateTime),
    Column("closed_as", Text),
    Column("closed_because", Text),
    Column("waits_for_others", Boolean, nullable=False, server_default=false()),
    Column("break_glass", Boolean, nullable=False, server_default=false()),
    Index("ix_commands_migration_id_at", "migration_id", "at"),
)

# Published once: who reads a report twice reads the same.
reports = Table(
    "reports",
    metadata,
    Column("id", Text, primary_key=True),
    Column("cluster", Text, ForeignKey("clusters.name"), nullable=False),
    Column("migration_id", Text, ForeignKey("migrations.id")),
    Column("check", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("ended_at", UtcDateTime, nullable=False),
    Column(
        "report", ModelJson(DriftReport), nullable=False, comment="the whole; the other columns are parts of it, to search by"
    ),
    Index("ix_reports_cluster_check_ended_at_id", "cluster", "check", "ended_at", "id"),
    Index("ix_reports_migration_id_ended_at_id", "migration_id", "ended_at", "id"),
)

# Published once, too.
plans = Table(
    "plans",
    metadata,
    Column("id", Text, primary_key=True),
    Column("cluster", Text, ForeignKey("clusters.name"), nullable=False),
    Column("made_at", UtcDateTime, nullable=False),
    Column("plan_hash", Text, nullable=False),
    Column("plan", ModelJson(Plan), nullable=False, comment="the whole; the other columns are parts of it, to search by"),
    Index("ix_plans_cluster_made_at_id", "cluster", "made_at", "id"),
)

# What people are told of changes is made from these; no decision is.
machine_notes = Table(
    "machine_notes",
    metadata,
    Column("migration_id", Text, ForeignKey("migrations.id"), primary_key=True),
    Column("about", Text, primary_key=True),
    Column("identity", Text),
    Column("at", UtcDateTime, nullable=False),
    Column(
        "note", ModelJson(MachineNote), nullable=False, comment="the whole; the other columns are parts of it, to search by"
    ),
)

# Never a secret: what is kept of one is its SHA-256.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("secret_hash", Text, nullable=False),
    Column("roles", JSON, nullable=False),
    Column("clusters", JSON(none_as_null=True)),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("revoked_at", UtcDateTime),
    Column("revoked_by", Text),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("roles", JSON, nullable=False),
    Column("clusters", JSON(none_as_null=True)),
    Column("key_id", Text, ForeignKey("api_keys.id")),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
)

# What calls with an Idempotency-Key were answered. No answer yet: the call is under way, or its process died.
answered_calls = Table(
    "answered_calls",
    metadata,
    Column("key", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("request_hash", Text, nullable=False, comment="of method, path and body"),
    Column("at", UtcDateTime, nullable=False),
    Column("status", Integer),
    Column("location", Text),
    Column("body", Text),
)

# What is plotted: thinned out where there would be too many (`ledger.samples`).
samples = Table(
    "samples",
    metadata,
    Column("migration_id", Text, ForeignKey("migrations.id"), primary_key=True),
    Column("at", UtcDateTime, primary_key=True),
    Column("sample", ModelJson(Sample), nullable=False, comment="the whole; the other column is part of it, to search by"),
)

# One row for each worker process. No foreign keys: a worker belongs to no migration.
worker_health = Table(
    "worker_health",
    metadata,
    Column("id", Text, primary_key=True),
    Column("program", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("release", Text, nullable=False),
    Column("settings_fingerprint", Text, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("beat_at", UtcDateTime, nullable=False),
    Column("last_error", Text),
    Column("last_error_at", UtcDateTime),
    Column("stopped_at", UtcDateTime, comment="set by a clean stop only"),
)

# No foreign keys: a refused call about something that does not exist is told here too.
events = Table(
    "events",
    metadata,
    Column("seq", SEQUENCE, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("cluster", Text, nullable=False),
    Column("migration_id", Text),
    Column("at", UtcDateTime, nullable=False),
    Column("data", JSON, nullable=False),
    Column("prev_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Index("ix_events_migration_id_seq", "migration_id", "seq"),
    Index("ix_events_cluster_kind_seq", "cluster", "kind", "seq"),
)

# One row: the newest event's place and hash. Who appends locks it; who cuts the log's end off is betrayed by it.
chain_head = Table(
    "chain_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", SEQUENCE, nullable=False),
    Column("hash", Text, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
)
