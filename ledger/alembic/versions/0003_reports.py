"""What checks found."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reports",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("migration_id", sa.Text),
        sa.Column("check", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("content_hash", sa.Text, nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("report", sa.JSON, nullable=False, comment="the whole; the other columns are parts of it, to search by"),
        sa.PrimaryKeyConstraint("id", name="pk_reports"),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.name"], name="fk_reports_cluster_clusters"),
        sa.ForeignKeyConstraint(["migration_id"], ["migrations.id"], name="fk_reports_migration_id_migrations"),
    )
    op.create_index("ix_reports_cluster_check_ended_at_id", "reports", ["cluster", "check", "ended_at", "id"])
    op.create_index("ix_reports_migration_id_ended_at_id", "reports", ["migration_id", "ended_at", "id"])
