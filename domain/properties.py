"""Line-preserving edits of Java properties files: the diff is what a careful reviewer would have typed.

Comments, blank lines, order, spacing and continuation lines of everything that is not named in an edit stay byte for byte.
Java reads the *last* of repeated keys, and so do we; an edit leaves one occurrence, in the place of the last.
"""

import difflib
import io
import re
from collections.abc import Mapping

import javaproperties

from domain.errors import Permanent

ENCODING = "latin-1"
"""`java.util.Properties` reads streams as ISO-8859-1; bytes above 127 survive an edit unchanged."""


def parse(text: str) -> dict[str, str]:
    """Keys and values as Java sees them: escapes resolved, the last of repeated keys wins."""
    try:
        return {str(key): str(value) for key, value in javaproperties.loads(text).items()}
    except ValueError as error:
        raise Permanent("a properties file holds \\u without four hexadecimal digits after it: Java refuses it too") from error


def edit(text: str, assignments: Mapping[str, str], removals: frozenset[str] = frozenset()) -> str:
    """Set and remove keys. A key that is there already keeps its line's place; new keys go to the end, in order.

    Setting a key to the value that it has leaves its line alone. Idempotent.
    """
    elements = list(javaproperties.parse(io.StringIO(text)))
    last_line = {e.key: i for i, e in enumerate(elements) if isinstance(e, javaproperties.KeyValue)}
    newline = "\r\n" if "\r\n" in text else "\n"
    lines: list[str] = []
    for i, element in enumerate(elements):
        if not isinstance(element, javaproperties.KeyValue) or element.key not in assignments.keys() | removals:
            lines.append(element.source)
        elif element.key in assignments and i == last_line[element.key]:
            is_same = element.value == assignments[element.key]
            lines.append(element.source if is_same else _line(element.key, assignments[element.key], newline))
    appended = [key for key in assignments if key not in last_line]
    if appended and lines:
        lines.append(_ending(lines[-1], newline))
    return "".join([*lines, *(_line(key, assignments[key], newline) for key in appended)])


def rename(text: str, old: str, new: str, value: str) -> str:
    """Give a key another name in its place, e.g. `broker.id` → `node.id`. Without `old`, `new` is set as `edit` does."""
    elements = list(javaproperties.parse(io.StringIO(text)))
    names = {e.key for e in elements if isinstance(e, javaproperties.KeyValue)}
    if old not in names or new in names:
        return edit(text, {new: value}, frozenset({old}))
    newline = "\r\n" if "\r\n" in text else "\n"
    renamed = [
        _line(new, value, newline) if isinstance(e, javaproperties.KeyValue) and e.key == old else e.source for e in elements
    ]
    return edit("".join(renamed), {new: value})


def _line(key: str, value: str, newline: str) -> str:
    """Escaped where Java needs it. javaproperties escapes `:`, `=`, `#` and `!` in values too, which nobody types."""
    start = javaproperties.join_key_value(key, "")
    escaped = javaproperties.join_key_value(key, value).removeprefix(start)
    return start + re.sub(r"\\(.)", lambda pair: pair[1] if pair[1] in ":=#!" else pair[0], escaped) + newline


def _ending(last: str, newline: str) -> str:
    """What the last element needs so that an appended line is one of its own: a backslash at the end would swallow it."""
    end = "" if last.endswith(("\n", "\r")) else newline
    is_comment = last.lstrip().startswith(("#", "!"))
    is_continued = re.search(r"(?<!\\)(\\\\)*\\[\r\n]*\Z", last) is not None
    return end + newline if is_continued and not is_comment else end


SECRET_KEY = re.compile(
    r"pass(word|phrase|wd)|pwd|secret|jaas|credential|token|private|user\.?info|licen[cs]e|key$", re.IGNORECASE
)
"""Keys whose values are never shown: rather one too many. What comes back from an archive may be of any plugin's."""

SECRET_VALUE = re.compile(r"://[^/\s]*@|(^|[\s;])password\s*=", re.IGNORECASE)
"""Values that are not shown either: an address with a password in it, an entry for a login."""


def changes(before: str, after: str) -> tuple[str, ...]:
    """What an edit changed, key by key, as `- key=value` and `+ key=value`, without the value of any secret."""
    old, new = parse(before), parse(after)
    removed = [f"- {key}={_shown(key, value)}" for key, value in old.items() if new.get(key) != value]
    added = [f"+ {key}={_shown(key, value)}" for key, value in new.items() if old.get(key) != value]
    return (*removed, *added)


def unified(before: str, after: str) -> tuple[str, ...]:
    """A unified diff, with a line of context, as a reviewer would read it; no secret's value is in it, not in comments either.

    A secret that changes from one value to another shows no difference.
    """
    old, new = (_redacted(text).splitlines() for text in (before, after))
    return tuple(line for line in list(difflib.unified_diff(old, new, lineterm="", n=1))[2:])


def _redacted(text: str) -> str:
    return "".join(_line_without_secret(element) for element in javaproperties.parse(io.StringIO(text)))


def _line_without_secret(element: javaproperties.PropertiesElement) -> str:
    """A comment may be a line that somebody has taken out."""
    if isinstance(element, javaproperties.KeyValue):
        is_shown = _shown(element.key, element.value) == element.value
        return str(element.source) if is_shown else f"{element.key}=***\n"
    is_secret = SECRET_KEY.search(element.source) or SECRET_VALUE.search(element.source)
    return "# ***\n" if is_secret else str(element.source)


def _shown(key: str, value: str) -> str:
    return "***" if SECRET_KEY.search(key) or SECRET_VALUE.search(value) else value
