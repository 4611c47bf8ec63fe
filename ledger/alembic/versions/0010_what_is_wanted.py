"""What a migration wants, apart from what its cluster is: controllers leave specifications for migrations and plans.

Rows are updated in place, column by column: a copy of a table that others refer to would lose their rows and its triggers. A
specification keeps its revision, so that plans and evidence that name one still stand. That a cluster has left ZooKeeper is
said by a new revision only: the next migration writes its own, and of one that has ended before, an operator registers it.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

FIELDS = {"controllers": "controllers", "controller_listener": "listener", "controller_security_protocol": "security_protocol"}
"""What a specification had in its own right, with what its quorum calls it."""

clusters = sa.table("clusters", sa.column("name"), sa.column("revision"), sa.column("spec", sa.JSON))
revisions = sa.table("cluster_revisions", sa.column("cluster"), sa.column("revision"), sa.column("spec", sa.JSON))
migrations = sa.table(
    "migrations", sa.column("id"), sa.column("cluster"), sa.column("spec_revision"), sa.column("wanted", sa.JSON)
)
plans = sa.table("plans", sa.column("id"), sa.column("plan", sa.JSON))

Wanted = dict[tuple[str, int], dict[str, Any]]
"""By cluster and revision."""


def upgrade() -> None:
    op.add_column("migrations", sa.Column("wanted", sa.JSON, nullable=False, server_default="{}"))
    wanted: Wanted = {}
    for cluster, number, spec in _rows(revisions):
        wanted[cluster, number] = {field: spec.pop(field) for field in FIELDS if field in spec}
        _set(revisions, {"cluster": cluster, "revision": number}, spec=spec)
    for name, _, spec in _rows(clusters):
        _set(clusters, {"name": name}, spec={key: value for key, value in spec.items() if key not in FIELDS})
    for key, cluster, number, _ in _rows(migrations):
        _set(migrations, {"id": key}, wanted=wanted.get((cluster, number), {}))
    for key, plan in _plans():
        _set(plans, {"id": key}, plan=plan | {"wanted": wanted.get((plan["cluster"], plan["spec_revision"]), {})})


def downgrade() -> None:
    """Raises `ValueError`, and nothing is changed, where a cluster cannot be said in the old form."""
    wanted: Wanted = {(cluster, number): kept for _, cluster, number, kept in _rows(migrations)}
    for key, plan in _plans():
        wanted.setdefault((plan["cluster"], plan["spec_revision"]), plan.pop("wanted"))
        _set(plans, {"id": key}, plan={name: part for name, part in plan.items() if name != "wanted"})
    for cluster, number, spec in _rows(revisions):
        _set(revisions, {"cluster": cluster, "revision": number}, spec=_in_old_form(cluster, number, spec, wanted))
    for name, number, spec in _rows(clusters):
        _set(clusters, {"name": name}, spec=_in_old_form(name, number, spec, wanted))
    op.drop_column("migrations", "wanted")


def _in_old_form(cluster: str, number: int, spec: dict[str, Any], wanted: Wanted) -> dict[str, Any]:
    """With the controllers that it has; else with those that were wanted for it, or else last for any revision of it."""
    quorum = spec.pop("quorum", None)
    had = {field: quorum[name] for field, name in FIELDS.items()} if quorum else wanted.get((cluster, number))
    others = [known for (name, _), known in sorted(wanted.items()) if name == cluster and known]
    controllers = had or (others[-1] if others else None)
    if controllers is None or spec.get("zookeeper") is None:
        raise ValueError(
            f"revision {number} of cluster {cluster} has no ZooKeeper, or the ledger does not have its controllers: an older "
            "release cannot read it. Restore the ledger from its backup of before the upgrade"
        )
    return spec | controllers


def _rows(table: sa.TableClause) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in op.get_bind().execute(sa.select(table))]


def _plans() -> Iterator[tuple[str, dict[str, Any]]]:
    """One after the other: they are large."""
    for (key,) in list(op.get_bind().execute(sa.select(plans.c.id))):
        yield key, op.get_bind().execute(sa.select(plans.c.plan).where(plans.c.id == key)).scalar_one()


def _set(table: sa.TableClause, key: dict[str, Any], **values: Any) -> None:  # noqa: ANN401 - JSON
    is_this = [table.c[name] == value for name, value in key.items()]
    op.get_bind().execute(sa.update(table).where(*is_this).values(**values))
