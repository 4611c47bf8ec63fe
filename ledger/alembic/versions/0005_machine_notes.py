"""How machines were set when all was well."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "machine_notes",
        sa.Column("migration_id", sa.Text, nullable=False),
        sa.Column("about", sa.Text, nullable=False),
        sa.Column("identity", sa.Text),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("note", sa.JSON, nullable=False, comment="the whole; the other columns are parts of it, to search by"),
        sa.PrimaryKeyConstraint("migration_id", "about", name="pk_machine_notes"),
        sa.ForeignKeyConstraint(["migration_id"], ["migrations.id"], name="fk_machine_notes_migration_id_migrations"),
    )
