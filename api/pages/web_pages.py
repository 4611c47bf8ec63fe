"""Pages on which a person decides, and what they load: one script and one stylesheet of our own, and nothing from elsewhere."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.answers.negotiation import form_for
from api.answers.problems import MEDIA_TYPE
from api.pages.markdown import HTML, JSON

ASSETS = Path(__file__).parent / "web" / "assets"
ASSETS_URL = "/web"
SESSION_URL = "/session"
KEPT = frozenset({"retry-after", "x-request-id"})
"""Headers of a problem that its page has, too."""

PAGE_HEADERS = {
    "Vary": "Accept",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
"""A page shows what others wrote. It is escaped; and should it not be, nothing of it would run or be loaded."""


def _asset(name: str) -> str:
    """Its address, which changes with its content: no browser keeps an old one."""
    return f"{ASSETS_URL}/{name}?{sha256((ASSETS / name).read_bytes()).hexdigest()[:12]}"


TEMPLATES = Environment(
    loader=PackageLoader("api.pages", "web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
TEMPLATES.globals["asset"] = _asset


def web_page(template: str, status: int = 200, **values: Any) -> Response:  # noqa: ANN401 - what the template shows
    return Response(
        TEMPLATES.get_template(template).render(values),
        status_code=status,
        media_type=f"{HTML}; charset=utf-8",
        headers=PAGE_HEADERS,
    )


def is_for_browser(request: Request) -> bool:
    """Whether the caller likes a page better than JSON. A caller that says nothing gets JSON."""
    return form_for(request, (JSON, HTML)) == HTML


def assets() -> StaticFiles:
    return StaticFiles(directory=ASSETS)


class ProblemPages:
    """ASGI middleware: shows a problem as a page if a browser asked for one; after a 401 it leads to the page to sign in.

    A client that asks for JSON gets the problem as it is.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and is_for_browser(Request(scope)):
            send = _Showing(scope, receive, send)
        await self._app(scope, receive, send)


class _Showing:
    """Holds a problem back until its body is there."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_problem(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._page(self._start)(self._scope, self._receive, self._send)

    def _page(self, start: Message) -> Response:
        request, status = Request(self._scope), start["status"]
        if status == 401 and request.url.path != SESSION_URL:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"{SESSION_URL}?{urlencode({'next': request.url.path + query})}", status_code=303)
        answer = web_page("problem.html", status, problem=json.loads(self._body))
        kept = {name: value for name, value in MutableHeaders(scope=start).items() if name in KEPT}
        answer.headers.update(kept)
        return answer


def _is_problem(start: Message) -> bool:
    return MutableHeaders(scope=start).get("content-type", "").startswith(MEDIA_TYPE)
