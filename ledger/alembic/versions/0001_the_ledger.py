"""The ledger: clusters, migrations, commands, and the chain of events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
GENESIS_HASH = "0" * 64


def upgrade() -> None:
    _create_clusters()
    _create_migrations()
    _create_commands()
    _create_events()
    if op.get_bind().dialect.name == "sqlite":
        _protect_events_on_sqlite()
    else:
        _protect_events_on_postgresql()


def _create_clusters() -> None:
    op.create_table(
        "clusters",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("cluster_id", sa.Text, nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_clusters"),
        sa.UniqueConstraint("cluster_id", name="uq_clusters_cluster_id"),
    )
    op.create_table(
        "cluster_revisions",
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("cluster", "revision", name="pk_cluster_revisions"),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.name"], name="fk_cluster_revisions_cluster_clusters"),
    )


def _create_migrations() -> None:
    op.create_table(
        "migrations",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("cluster_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False, comment="progress.state again, to search by"),
        sa.Column("policy", sa.JSON, nullable=False),
        sa.Column("spec_revision", sa.Integer, nullable=False),
        sa.Column("generation", sa.Integer),
        sa.Column("requested_by", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("ended_at", MOMENT),
        sa.Column("workflow_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text),
        sa.Column("progress", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_migrations"),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.name"], name="fk_migrations_cluster_clusters"),
    )
    op.create_index("ix_migrations_created_at_id", "migrations", ["created_at", "id"])
    op.create_index("ix_migrations_cluster_created_at", "migrations", ["cluster", "created_at"])
    only_active = sa.text("ended_at IS NULL")
    op.create_index(
        "uq_migrations_active",
        "migrations",
        ["cluster"],
        unique=True,
        sqlite_where=only_active,
        postgresql_where=only_active,
    )


def _create_commands() -> None:
    op.create_table(
        "commands",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("migration_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("gate", sa.Text),
        sa.Column("evidence_hash", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("delivered_at", MOMENT),
        sa.Column("refused_because", sa.Text),
        sa.Column("consumed_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_commands"),
        sa.ForeignKeyConstraint(["migration_id"], ["migrations.id"], name="fk_commands_migration_id_migrations"),
    )
    op.create_index("ix_commands_migration_id_at", "commands", ["migration_id", "at"])


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("seq", SEQUENCE, autoincrement=False, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("migration_id", sa.Text),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
        sa.Column("prev_hash", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
        sa.UniqueConstraint("key", name="uq_events_key"),
    )
    op.create_index("ix_events_migration_id_seq", "events", ["migration_id", "seq"])
    head = op.create_table(
        "chain_head",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("seq", SEQUENCE, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_chain_head"),
        sa.CheckConstraint("id = 1", name="ck_chain_head_one_row"),
    )
    op.bulk_insert(head, [{"id": 1, "seq": 0, "hash": GENESIS_HASH}])


def _protect_events_on_sqlite() -> None:
    for change in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER events_no_{change.lower()} BEFORE {change} ON events "
            "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
        )
    # INSERT OR REPLACE deletes without the delete trigger, so it has to be caught before.
    op.execute(
        "CREATE TRIGGER events_no_replace BEFORE INSERT ON events "
        "WHEN EXISTS (SELECT 1 FROM events WHERE seq = NEW.seq OR key = NEW.key) "
        "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
    )


def _protect_events_on_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION events_are_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'restrict_violation'; END $$"
    )
    op.execute(
        "CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION events_are_append_only()"
    )
