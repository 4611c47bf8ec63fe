"""Characters of a properties file that Java reads otherwise than people do. They are reported, never corrected. Pure.

No value is kept: of a line only its number and the name of its key.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

import javaproperties

from domain.configuration.properties import lines_of
from domain.observed.parts import ObservedPart
from domain.redaction import is_known, shown_name

BYTE_ORDER_MARKS = ("\xef\xbb\xbf", "\xff\xfe", "\xfe\xff")
OF_NUMBERS = re.compile(r"(?:[+-]?\d+|true|false)\s+#", re.IGNORECASE)
TEXTS = frozenset({"broker.rack"})
"""Known keys that may have a number and then any text."""
BEGINNING = re.compile(r"\s*([\w.-]+)\s*[=:]")


class CharacterKind(StrEnum):
    """What a person takes it for, and what it is."""

    BYTE_ORDER_MARK = "byte-order-mark"
    """Nothing to see; it is part of the first key."""
    COMMENT = "comment"
    """A comment behind a value, or between the lines of one; it is part of the value."""
    LAST_BLANK = "last-blank"
    """Nothing to see; it is part of the value."""
    SWALLOWED_LINE = "swallowed-line"
    """A property of its own; it is part of the value above, which ends in a backslash."""


class OddCharacter(ObservedPart):
    """`line`: from 1. `key`: whose value, or name, it is part of. `other`: the key that is swallowed. `is_refused`: Kafka does
    not take the value."""

    kind: CharacterKind
    line: int
    key: str
    other: str = ""
    is_refused: bool = False


def odd_characters(text: str) -> tuple[OddCharacter, ...]:
    """In the order of their lines. The text can be parsed."""
    found: list[OddCharacter] = []
    number = 1
    for element in javaproperties.parse(text):
        if isinstance(element, javaproperties.KeyValue):
            found += _of_property(element, number)
        number += len(lines_of(element.source))
    return tuple(found)


def _of_property(element: javaproperties.KeyValue, number: int) -> Iterator[OddCharacter]:
    key, lines = shown_name(element.key, element.value), lines_of(element.source)
    if number == 1 and (mark := next((m for m in BYTE_ORDER_MARKS if element.key.startswith(m)), None)):
        without = element.key.removeprefix(mark)
        yield OddCharacter(kind=CharacterKind.BYTE_ORDER_MARK, line=1, key=shown_name(without, element.value))
    for at, line in enumerate(lines[1:]):
        if line.lstrip(" \t\f").startswith("#"):
            yield OddCharacter(kind=CharacterKind.COMMENT, line=number + at + 1, key=key)
        elif (swallowed := BEGINNING.match(line)) and is_known(swallowed[1]):
            yield OddCharacter(kind=CharacterKind.SWALLOWED_LINE, line=number + at, key=key, other=swallowed[1])
    if (at_line := _line_of_comment(lines)) is not None:
        is_refused = bool(OF_NUMBERS.match(element.value)) and is_known(element.key) and element.key not in TEXTS
        yield OddCharacter(kind=CharacterKind.COMMENT, line=number + at_line, key=key, is_refused=is_refused)
    if element.value.endswith((" ", "\t", "\f")):
        yield OddCharacter(kind=CharacterKind.LAST_BLANK, line=number + len(lines) - 1, key=key)


def _line_of_comment(lines: list[str]) -> int | None:
    """Where a blank and a `#` are behind something, and not between quotes."""
    for at, line in enumerate(lines):
        for found in re.finditer(r"\S\s+#", line):
            if line[: found.start()].count('"') % 2 == 0:
                return at
    return None
