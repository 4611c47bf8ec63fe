"""Pages of ours for a browser: what others wrote in them is text."""

from html.parser import HTMLParser

from api.pages.markdown import HEADERS, as_html, page

NASTY = """\
# Plan for cluster <b>orders</b>

- **PF13** topic `<script>alert(1)</script>`: [fix](javascript:alert(1)) ![seen](http://elsewhere/x.png) <http://elsewhere>
  <img src=x onerror=alert(1)>

| node | file |
|---|---|
| broker-1 | `server.properties` |

```diff
-broker.id=1
+node.id=<1>
```
"""


class Tags(HTMLParser):
    """Every tag, with the places it leads to, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words += data


def test_what_others_wrote_is_no_markup_and_leads_nowhere() -> None:
    seen = Tags(as_html(NASTY))
    assert {"h1", "table", "pre", "code", "ul"} <= seen.tags
    assert not {"script", "img", "a", "b"} & seen.tags
    assert not [name for name, _ in seen.attributes if name in {"href", "src", "onerror"}]
    assert "<script>alert(1)</script>" in seen.words
    assert "node.id=<1>" in seen.words


def test_values_are_shown_as_they_are_and_only_our_own_words_are_emphasised() -> None:
    """Somebody decides by them."""
    page = (
        "# Plan\n\n**Blocked.** - RULE:^CN=(.*?),OU=(.*?)$ listeners=*:9092,*:9093 __x__ a\\_b &lt; x**y**z\n"
        "\n- **PF12** broker 9: not live. **Unavailable during it: a-0, b-1.**\n"
    )
    text = as_html(page)
    seen = Tags(text)
    for value in ("RULE:^CN=(.*?),OU=(.*?)$", "listeners=*:9092,*:9093", "__x__", "a\\_b", "&lt;", "x**y**z"):
        assert value in seen.words
    for words in ("Blocked.", "PF12", "Unavailable during it: a-0, b-1."):
        assert f"<strong>{words}</strong>" in text
    assert "em" not in seen.tags


def test_the_title_is_the_first_heading() -> None:
    assert "<title>Plan for cluster &lt;b&gt;orders&lt;/b&gt;</title>" in as_html(NASTY)


def test_a_page_runs_nothing_and_says_that_it_has_forms() -> None:
    for form in ("text/markdown", "text/html"):
        answer = page(NASTY, form)
        assert answer.headers["content-type"] == f"{form}; charset=utf-8"
        assert answer.headers["vary"] == "Accept"
        assert answer.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
    assert page(NASTY, "text/markdown").body.decode() == NASTY
