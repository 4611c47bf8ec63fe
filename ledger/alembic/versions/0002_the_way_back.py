"""What a rollback is bound to, and since when a migration's progress is true."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("commands", sa.Column("preview_hash", sa.Text))
    op.add_column("commands", sa.Column("accept_loss", sa.JSON, nullable=False, server_default="[]"))
    as_of = sa.Column(
        "progress_as_of",
        sa.DateTime(timezone=True),
        comment="when progress was true, so that nothing older replaces it",
    )
    op.add_column("migrations", as_of)
