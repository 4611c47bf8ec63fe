"""What each worker process writes down of itself with its heartbeat."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "worker_health",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("program", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("settings_fingerprint", sa.Text, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("beat_at", MOMENT, nullable=False),
        sa.Column("last_error", sa.Text),
        sa.Column("last_error_at", MOMENT),
        sa.Column("stopped_at", MOMENT, comment="set by a clean stop only"),
        sa.PrimaryKeyConstraint("id", name="pk_worker_health"),
    )
