"""Pages of ours in Markdown, in the form that a caller likes best: as they are, or for a browser."""

import re
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from starlette.responses import JSONResponse, Response

from api.answers.outgoing import Outgoing
from domain.html_page import html_page

JSON, TEXT, MARKDOWN, HTML = "application/json", "text/plain", "text/markdown", "text/html"
HEADERS = {
    "Vary": "Accept",
    # A page has values that others wrote. They are escaped; and should they not be, nothing of them would run or be loaded.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
STRONG = re.compile(r"(?<!\S)\*\*([A-Za-z][^*\n]{0,300})\*\*")
"""How our pages emphasise words. All other stars and underscores belong to somebody's values."""

BACKTICKS = re.compile(r"`{3,}")


def _strong(state: StateInline, silent: bool) -> bool:
    found = STRONG.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("strong_open", "strong", 1)
        state.push("text", "", 0).content = found[1]
        state.push("strong_close", "strong", -1)
    state.pos = found.end()
    return True


RENDERER = MarkdownIt("commonmark", {"html": False}).enable("table")
RENDERER.inline.ruler.before("emphasis", "strong", _strong)
RENDERER.disable(["emphasis", "escape", "entity", "image", "link", "autolink"])


def described(*forms: str) -> dict[int | str, dict[str, Any]]:
    """For the OpenAPI document: the forms that there are beside JSON."""
    return {200: {"content": {form: {"schema": {"type": "string"}} for form in forms}}}


def page(markdown: str, form: str) -> Response:
    """`form`: Markdown or HTML. The title is the page's first heading."""
    return in_form(markdown if form == MARKDOWN else as_html(markdown), form)


def in_form(text: str, form: str) -> Response:
    return Response(text, media_type=f"{form}; charset=utf-8", headers=HEADERS)


def as_json(answer: Outgoing) -> Response:
    """What has a page, too, as JSON: so that no cache gives the one for the other."""
    return JSONResponse(answer.model_dump(mode="json", by_alias=True), headers={"Vary": "Accept"})


def fenced(text: str, language: str) -> str:
    """A block that no line of the text can end before its time."""
    fence = "`" * max([3, *(len(found) + 1 for found in BACKTICKS.findall(text))])
    return f"{fence}{language}\n{text}\n{fence}"


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def as_html(markdown: str) -> str:
    return html_page(escape(markdown.partition("\n")[0].lstrip("# ")), RENDERER.render(markdown))
