"""Pages of ours in Markdown, in the form that a caller likes best: as they are, or for a browser."""

from html import escape
from typing import Any

from markdown_it import MarkdownIt
from starlette.responses import Response

from domain.html_page import html_page

JSON, TEXT, MARKDOWN, HTML = "application/json", "text/plain", "text/markdown", "text/html"
HEADERS = {
    "Vary": "Accept",
    # A page has values that others wrote. They are escaped; and should they not be, nothing of them would run or be loaded.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
RENDERER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "link", "autolink"])


def described(*forms: str) -> dict[int | str, dict[str, Any]]:
    """For the OpenAPI document: the forms that there are beside JSON."""
    return {200: {"content": {form: {"schema": {"type": "string"}} for form in forms}}}


def page(markdown: str, form: str) -> Response:
    """`form`: Markdown or HTML. The title is the page's first heading."""
    return in_form(markdown if form == MARKDOWN else as_html(markdown), form)


def in_form(text: str, form: str) -> Response:
    return Response(text, media_type=f"{form}; charset=utf-8", headers=HEADERS)


def as_html(markdown: str) -> str:
    return html_page(escape(markdown.partition("\n")[0].lstrip("# ")), RENDERER.render(markdown))
