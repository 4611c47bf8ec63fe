"""What a properties file says to Java and not to people: told by line and key, never by value."""

import pytest

from domain.configuration.odd_characters import CharacterKind, odd_characters
from tests.unit.properties_cases import SHAPES

Told = tuple[CharacterKind, int, str, str, bool]
K = CharacterKind

TOLD: dict[str, list[Told]] = {
    "S3 as in a wiki": [(K.COMMENT, 2, "broker.id", "", True), (K.LAST_BLANK, 7, "allow.everyone.if.no.acl.found", "", False)],
    "S4 Windows, and a line that is swallowed": [(K.SWALLOWED_LINE, 1, "log.dirs", "broker.id", False)],
    "S5 a login in the file": [(K.COMMENT, 7, "ssl.cipher.suites", "", False)],
    "S6 a byte order mark, and keys in other spellings": [(K.BYTE_ORDER_MARK, 1, "broker.id", "", False)],
}
"""All other shapes have none."""


def told(text: str) -> list[Told]:
    return [(one.kind, one.line, one.key, one.other, one.is_refused) for one in odd_characters(text)]


@pytest.mark.parametrize("name", SHAPES)
def test_each_shape_has_what_it_has(name: str) -> None:
    assert told(SHAPES[name].text) == TOLD.get(name, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("num.partitions=3 # x", [(K.COMMENT, 1, "num.partitions", "", True)]),
        ("auto.leader.rebalance.enable=true\t#x", [(K.COMMENT, 1, "auto.leader.rebalance.enable", "", True)]),
        ("broker.rack=1 # x", [(K.COMMENT, 1, "broker.rack", "", False)]),
        ("my.plug.in=1 # x", [(K.COMMENT, 1, "my.plug.in", "", False)]),
        ("log.dirs=/a,\\\n  /b # x", [(K.COMMENT, 2, "log.dirs", "", False)]),
        ('ssl.key.password="a # b"', []),
        ("ssl.key.password=a#b", []),
        ("# a comment # in a comment \n! and  # another \na=1", []),
        ("log.dirs=/a \\\n", [(K.LAST_BLANK, 1, "log.dirs", "", False)]),
        ("\r\n\r\nlog.dirs=/a\t\r\n", [(K.LAST_BLANK, 3, "log.dirs", "", False)]),
        ("a=1\rlog.dirs=/a \r", [(K.LAST_BLANK, 2, "log.dirs", "", False)]),
        ("\xef\xbb\xbf# a comment\na=1", [(K.BYTE_ORDER_MARK, 1, "***", "", False)]),
        ("a=1\n\xef\xbb\xbfb=1", []),
        ("log.dirs=/a,\\\n/b,\\\n/c", []),
        ("log.dirs=/a\\\n  num.partitions : 3\n", [(K.SWALLOWED_LINE, 1, "log.dirs", "num.partitions", False)]),
    ],
)
def test_a_character_is_told_with_its_line(text: str, expected: list[Told]) -> None:
    assert told(text) == expected


def test_no_value_is_kept() -> None:
    secret = "ssl.keystore.password=sesame # tahini\nx=\nhalva # sesame \n"
    assert not [word for word in ("sesame", "tahini", "halva") if word in repr(odd_characters(secret))]
