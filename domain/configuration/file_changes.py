"""Changes of a properties file as people may see them (`domain.redaction`): key by key, or as a unified diff."""

import io
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import javaproperties

from domain.configuration.properties import parse
from domain.redaction import HIDDEN, is_shown, shown_name, shown_value

LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
OURS = re.compile(r"# Controller \d+, made by Keeperless for the migration of this cluster to KRaft\.")
"""The one comment that we write ourselves."""


def changes(before: str, after: str) -> tuple[str, ...]:
    """What an edit changed, key by key, as `- key=value` and `+ key=value`."""
    old, new = parse(before), parse(after)
    removed = [f"- {_told(key, value)}" for key, value in old.items() if new.get(key) != value]
    added = [f"+ {_told(key, value)}" for key, value in new.items() if old.get(key) != value]
    return (*removed, *added)


def unified(before: str, after: str) -> tuple[str, ...]:
    """A unified diff, with a line of context. A change that is hidden is still seen to be one."""
    old, new = list(_lines(before)), list(_lines(after))
    matcher = SequenceMatcher(None, [line for line, _ in old], [line for line, _ in new], autojunk=False)
    found: list[str] = []
    for group in matcher.get_grouped_opcodes(1):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        found.append(f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@")
        for tag, a, b, c, d in group:
            if tag == "equal":
                found += _marked(" ", old[a:b])
            else:
                found += [*_marked("-", old[a:b]), *_marked("+", new[c:d])]
    return tuple(found)


def _range(start: int, stop: int) -> str:
    """As `diff -u` writes it: a range without a line begins at the line before it."""
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + 1 if length else start},{length}"


def _marked(sign: str, lines: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{sign}{shown}" for _, shown in lines]


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Each line of a file, and what people see of it."""
    for element in javaproperties.parse(io.StringIO(text)):
        lines = [line.rstrip("\r\n") for line in LINE.findall(element.source)[:-1]]
        if _is_shown(element):
            yield from zip(lines, lines, strict=True)
        elif isinstance(element, javaproperties.KeyValue):
            first, *rest = lines
            yield first, _told(element.key, element.value)
            yield from ((line, f"    {HIDDEN}") for line in rest)
        else:
            yield from ((line, f"# {HIDDEN}") for line in lines)


def _is_shown(element: javaproperties.PropertiesElement) -> bool:
    if isinstance(element, javaproperties.KeyValue):
        return is_shown(element.key, element.value)
    return not element.source.strip() or OURS.fullmatch(element.source.strip()) is not None


def _told(key: str, value: str) -> str:
    return f"{shown_name(key, value)}={shown_value(key, value)}"
