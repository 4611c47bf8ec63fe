"""PostgreSQL's row-level security, which hides rows without a word: who finds nothing there has not found out that nothing is.

A role that the tables do not belong to sees of a table on which somebody has switched it on only what policies let through.
"""

from sqlalchemy import Connection, text

from ledger.errors import LedgerUnavailable
from ledger.fixes import ROW_SECURITY
from ledger.tables import chain_head, clusters, commands, metadata, migrations

VERSION = "alembic_version"
READ, CHANGED = "r", "w"
"""As `pg_policy.polcmd` has it: SELECT, and UPDATE, which is asked for locks too."""

NEEDED = (
    *((name, READ) for name in (*metadata.tables, VERSION)),
    *((table.name, CHANGED) for table in (clusters, migrations, commands, chain_head)),
)

# It is active whatever the policies: one that lets every row through hides none, unless a restrictive one is beside it.
HIDING = text("""
    SELECT DISTINCT current_user AS role, needed.name AS name
    FROM unnest(CAST(:names AS text[]), CAST(:commands AS text[])) AS needed (name, command)
    WHERE row_security_active(CAST(to_regclass(needed.name) AS oid)) AND (
        SELECT bool_or(polpermissive AND shows_all) AND bool_and(polpermissive OR shows_all)
        FROM pg_policy, LATERAL (SELECT pg_get_expr(polqual, polrelid) = 'true') AS judged (shows_all)
        WHERE polrelid = to_regclass(needed.name) AND CAST(polcmd AS text) IN ('*', needed.command)
        AND EXISTS (SELECT FROM unnest(polroles) AS member (of) WHERE member.of = 0 OR pg_has_role(member.of, 'USAGE'))
    ) IS NOT TRUE
    ORDER BY name
""")


def ensure_all_is_seen(connection: Connection) -> None:
    """Raise `LedgerUnavailable` where rows may be hidden from us. For whoever has found nothing. SQLite hides none."""
    if connection.dialect.name != "postgresql":
        return
    names, needed = (list(column) for column in zip(*NEEDED, strict=True))
    hiding = connection.execute(HIDING, {"names": names, "commands": needed}).all()
    if hiding:
        tables = ", ".join(row.name for row in hiding)
        said = f"row-level security may hide rows of the ledger's tables from its role {hiding[0].role}: of {tables}"
        raise LedgerUnavailable(said, ROW_SECURITY)
