"""What Alembic runs: the versions, on the connection and in the transaction that `ledger.schema` opened."""

from alembic import context

from ledger.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite can alter a table only by copying it.
)
context.run_migrations()
