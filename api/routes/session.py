"""`/session`: a key or a token is exchanged for a cookie, so that a browser need not keep it."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response
from pydantic import Field, SecretStr

from api.answers.outgoing import Outgoing
from api.pages.markdown import HTML, as_json, described
from api.pages.web_pages import is_for_browser, web_page
from api.people.access import IDENTIFIED, forbidden, may, principal_of
from api.people.credentials import SESSION_LIFE, digest, new_cookie, new_session
from api.people.identity import COOKIE
from api.requests import Incoming
from api.running.audit import call_of
from api.wiring import UsableWiring
from domain.principals import Permission, Principal, Role, Via

router = APIRouter(prefix="/session", tags=["people"])


class SessionOrder(Incoming):
    """`POST /session`."""

    key: SecretStr = Field(min_length=1, max_length=8192, description="An API key, or a token of the OIDC provider.")


class SessionAnswer(Outgoing):
    """The principal of the call. `is_authenticated`: false if authentication is off; then all callers are one principal."""

    principal: str
    roles: list[Role]
    clusters: list[str] | None
    via: Via
    is_authenticated: bool

    @classmethod
    def of(cls, principal: Principal) -> "SessionAnswer":
        return cls(
            principal=principal.name,
            roles=sorted(principal.roles),
            clusters=None if principal.clusters is None else sorted(principal.clusters),
            via=principal.via,
            is_authenticated=principal.via is not Via.LOCAL,
        )


@router.post("", status_code=201, openapi_extra={"security": []})
async def sign_in(asked: SessionOrder, request: Request, response: Response, wiring: UsableWiring) -> SessionAnswer:
    """Exchange an API key or a token for a cookie, for eight hours. It ends with its key, or at `DELETE /session`."""
    if not wiring.identity.is_on:
        raise forbidden("Authentication is off (KEEPERLESS_AUTH): every caller may do everything, so there is no session.")
    principal = await wiring.identity.holder_of(asked.key.get_secret_value())
    call_of(request).principal = principal
    cookie = new_cookie()
    await wiring.people.add_session(new_session(cookie, principal, datetime.now(UTC)))
    life = int(SESSION_LIFE.total_seconds())
    is_secure = wiring.settings.is_served_by_https
    response.set_cookie(COOKIE, cookie, max_age=life, httponly=True, samesite="strict", secure=is_secure)
    response.headers["Cache-Control"] = "no-store"
    return SessionAnswer.of(principal)


@router.get("", response_model=SessionAnswer, responses=described(HTML), dependencies=IDENTIFIED)
async def get_session(request: Request) -> Response:
    """Return the principal of this call, with its roles. In a browser the page to sign in."""
    if is_for_browser(request):
        return web_page("session.html")
    return as_json(SessionAnswer.of(principal_of(request)))


@router.delete("", status_code=204, dependencies=[may(Permission.READ)])
async def sign_out(request: Request, wiring: UsableWiring) -> Response:
    """End the session of this cookie."""
    if cookie := request.cookies.get(COOKIE):
        await wiring.people.end_session(digest(cookie))
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=wiring.settings.is_served_by_https)
    return response
