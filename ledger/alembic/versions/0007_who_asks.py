"""Keys, sessions and answered calls; and of approvals, whether they wait for others and whether glass was broken."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """The first key that is written turns authentication on for this ledger: from then on only identities approve."""
    for name in ("waits_for_others", "break_glass"):
        op.add_column("commands", sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("secret_hash", sa.Text, nullable=False),
        sa.Column("roles", sa.JSON, nullable=False),
        sa.Column("clusters", sa.JSON(none_as_null=True)),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("revoked_at", MOMENT),
        sa.Column("revoked_by", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("roles", sa.JSON, nullable=False),
        sa.Column("clusters", sa.JSON(none_as_null=True)),
        sa.Column("key_id", sa.Text),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.id"], name="fk_sessions_key_id_api_keys"),
    )
    op.create_table(
        "answered_calls",
        sa.Column("key", sa.Text),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("request_hash", sa.Text, nullable=False, comment="of method, path and body"),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("location", sa.Text),
        sa.Column("body", sa.Text),
        sa.PrimaryKeyConstraint("key", name="pk_answered_calls"),
    )
