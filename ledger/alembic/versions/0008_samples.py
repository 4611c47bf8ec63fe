"""The numbers of a migration over time."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "samples",
        sa.Column("migration_id", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sample", sa.JSON, nullable=False, comment="the whole; the other column is part of it, to search by"),
        sa.PrimaryKeyConstraint("migration_id", "at", name="pk_samples"),
        sa.ForeignKeyConstraint(["migration_id"], ["migrations.id"], name="fk_samples_migration_id_migrations"),
    )
