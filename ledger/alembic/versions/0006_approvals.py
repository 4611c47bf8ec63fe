"""The life of an approval: until when it counts, which attempt consumed it, and how it was closed."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Columns are added one by one: a copy of the table would lose what refers to it, where foreign keys cascade."""
    for name, kind in (
        ("expires_at", MOMENT),
        ("consumed_by", sa.Text),
        ("closed_at", MOMENT),
        ("closed_as", sa.Text),
        ("closed_because", sa.Text),
    ):
        op.add_column("commands", sa.Column(name, kind))
