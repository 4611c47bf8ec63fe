"""Line-preserving edits of Java properties files: the diff is what a careful reviewer would have typed.

Comments, blank lines, order, spacing and continuation lines of everything that is not named in an edit stay byte for byte.
Java reads the *last* of repeated keys, and so do we; an edit leaves one occurrence, in the place of the last.
"""

import io
import re
from collections.abc import Mapping

import javaproperties

from domain.errors import Malformed

ENCODING = "latin-1"
"""`java.util.Properties` reads streams as ISO-8859-1; bytes above 127 survive an edit unchanged."""


def parse(text: str, path: str = "") -> dict[str, str]:
    """Keys and values as Java sees them: escapes resolved, the last of repeated keys wins. `path`: for the error's words.

    Raises `Malformed`.
    """
    try:
        return _loaded(text)
    except ValueError as error:
        place = f"{f'{path}, ' if path else ''}{_place_of_escape(text)}"
        what = "\\u without four hexadecimal digits after it. Java refuses the whole file for it"
        raise Malformed(f"{place}: {what}") from error


def _loaded(text: str) -> dict[str, str]:
    return {str(key): str(value) for key, value in javaproperties.loads(text).items()}


def lines_of(text: str) -> list[str]:
    """With their ends, as Java tells them: a line feed, a carriage return, or both."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text)


def _place_of_escape(text: str) -> str:
    """Line and character of the first unreadable escape: Java cannot read the text up to that line."""
    lines = lines_of(text)
    number = next(n for n in range(1, len(lines) + 1) if not _is_readable("".join(lines[:n])))
    found = re.search(r"(?<!\\)(?:\\\\)*(\\u)(?![0-9a-fA-F]{4})", lines[number - 1])
    return f"line {number}" + (f", character {found.start(1) + 1}" if found else "")


def _is_readable(text: str) -> bool:
    try:
        _loaded(text)
    except ValueError:
        return False
    return True


def edit(text: str, assignments: Mapping[str, str], removals: frozenset[str] = frozenset()) -> str:
    """Set and remove keys. A key that is there already keeps its line's place; new keys go to the end, in order.

    Setting a key to the value that it has leaves its line alone. Idempotent.
    """
    elements = list(javaproperties.parse(io.StringIO(text)))
    last_line = {e.key: i for i, e in enumerate(elements) if isinstance(e, javaproperties.KeyValue)}
    newline = _newline(text)
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
    newline = _newline(text)
    renamed = [
        _line(new, value, newline) if isinstance(e, javaproperties.KeyValue) and e.key == old else e.source for e in elements
    ]
    return edit("".join(renamed), {new: value})


def _newline(text: str) -> str:
    """The line end that the file has."""
    if "\r\n" in text:
        return "\r\n"
    return "\r" if "\r" in text and "\n" not in text else "\n"


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
