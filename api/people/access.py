"""What a call needs: a permission, and a cluster in the principal's scope. Without either it is refused, and audited."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyCookie, HTTPBearer

from api.answers.problems import Problem, ProblemKind
from api.people.identity import COOKIE, unknown
from api.running.audit import call_of
from api.wiring import Wiring, wiring_of
from domain.principals import PERMISSIONS, Permission, Principal, Via

BEARER = HTTPBearer(auto_error=False, description="An API key (`POST /keys`), or a token of the OIDC provider.")
SESSION = APIKeyCookie(name=COOKIE, auto_error=False, description="A browser's session (`POST /session`).")

IDENTIFIED = [Security(BEARER), Security(SESSION)]
"""Dependencies of a route that checks permissions itself."""


def may(permission: Permission) -> Any:  # noqa: ANN401 - what FastAPI calls a dependency
    """A route's dependency: only principals with this permission, for clusters in their scope, get further."""
    return Depends(_ensurer(permission))


def _ensurer(permission: Permission) -> Callable[..., Coroutine[Any, Any, None]]:
    async def ensure(request: Request, _bearer: object = Security(BEARER), _session: object = Security(SESSION)) -> None:
        principal = principal_of(request)
        if not principal.may(permission):
            raise forbidden(f"{principal.name} may not {permission}: {_who_may(permission)}")
        cluster = await _cluster_of(request, wiring_of(request)) if principal.clusters is not None else None
        if cluster is not None:
            ensure_in_scope(principal, cluster)

    return ensure


def principal_of(request: Request) -> Principal:
    """Return the call's principal. Raises `Problem` if the call brings no credentials, or none that count."""
    call = call_of(request)
    if call.denied is not None:
        raise call.denied
    if call.principal is None:
        raise unknown("This call needs credentials.")
    return call.principal


def ensure_in_scope(principal: Principal, cluster: str) -> None:
    if not principal.is_in_scope(cluster):
        raise forbidden(f"{principal.name} may not see or change this cluster. Ask an admin for a key with it in its scope.")


def is_own_request(requested_by: str, principal: Principal) -> bool:
    """Whether this principal asked for it. Without authentication all callers are one principal, so it never is."""
    return principal.via is not Via.LOCAL and principal.name == requested_by


def forbidden(detail: str) -> Problem:
    return Problem(ProblemKind.FORBIDDEN, detail)


def _who_may(permission: Permission) -> str:
    return f"the roles that may are {', '.join(role for role, granted in PERMISSIONS.items() if permission in granted)}"


async def _cluster_of(request: Request, wiring: Wiring) -> str | None:
    """The cluster that a path or a query names, or whose migration or plan it names."""
    named = request.path_params
    if (migration_id := named.get("migration_id")) is not None:
        migration = await wiring.ledger.migration(str(migration_id))
        return None if migration is None else migration.cluster
    if (plan_id := named.get("plan_id")) is not None:
        plan = await wiring.ledger.plan(str(plan_id))
        return None if plan is None else plan.cluster
    cluster: str | None = named.get("name", request.query_params.get("cluster"))
    return cluster
