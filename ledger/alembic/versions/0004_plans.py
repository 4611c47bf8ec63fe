"""What would be done, and which migration was started with it."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "plans",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("plan_hash", sa.Text, nullable=False),
        sa.Column("plan", sa.JSON, nullable=False, comment="the whole; the other columns are parts of it, to search by"),
        sa.PrimaryKeyConstraint("id", name="pk_plans"),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.name"], name="fk_plans_cluster_clusters"),
    )
    op.create_index("ix_plans_cluster_made_at_id", "plans", ["cluster", "made_at", "id"])
    op.add_column("migrations", sa.Column("plan_id", sa.Text))
    op.create_index("ix_events_cluster_kind_seq", "events", ["cluster", "kind", "seq"])
