"""Edits of properties files: what they change means the same to Java, and every other byte stays."""

import difflib

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.configuration.file_changes import changes
from domain.configuration.properties import edit, parse, rename
from domain.errors import Malformed
from tests.unit.properties_cases import SHAPES, UNREADABLE, Shape

FILE = """\
# Broker 1 -- ask in #kafka before you edit
! an old style comment, with key=value in it

broker.id=1
listeners : PLAINTEXT://h:9092
   log.dirs   =   /data/1 \n\
num.partitions 3
zookeeper.connect = a:2181,\\
    b:2181,\\
    c:2181/kafka
super.users=User:CN\\=kafka;User:\\u00e9l
bare.key
log.retention.hours=1
# the next line wins
log.retention.hours=2
"""


def lines_of(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def touched(before: str, after: str) -> tuple[list[str], list[str]]:
    """Lines removed and lines added, as a diff shows them."""
    diff = list(difflib.ndiff(lines_of(before), lines_of(after)))
    return [d[2:] for d in diff if d.startswith("- ")], [d[2:] for d in diff if d.startswith("+ ")]


def test_java_reads_the_last_of_repeated_keys() -> None:
    assert parse(FILE)["log.retention.hours"] == "2"
    assert parse(FILE)["zookeeper.connect"] == "a:2181,b:2181,c:2181/kafka"
    assert parse(FILE)["super.users"] == "User:CN=kafka;User:él"
    assert parse(FILE)["num.partitions"] == "3"
    assert parse(FILE)["bare.key"] == ""
    assert parse(FILE)["log.dirs"] == "/data/1 ", "Java keeps blanks at the end"


def test_a_changed_key_keeps_its_place_and_all_else_stays() -> None:
    after = edit(FILE, {"num.partitions": "6"})
    assert touched(FILE, after) == (["num.partitions 3\n"], ["num.partitions=6\n"])
    assert lines_of(after).index("num.partitions=6\n") == lines_of(FILE).index("num.partitions 3\n")


@pytest.mark.parametrize(("key", "value"), [("broker.id", "1"), ("listeners", "PLAINTEXT://h:9092"), ("bare.key", "")])
def test_the_value_that_is_there_already_leaves_the_line_alone(key: str, value: str) -> None:
    assert edit(FILE, {key: value}) == FILE


def test_a_continued_value_is_replaced_whole() -> None:
    after = edit(FILE, {"zookeeper.connect": "z:2181"})
    assert touched(FILE, after)[0] == ["zookeeper.connect = a:2181,\\\n", "    b:2181,\\\n", "    c:2181/kafka\n"]
    assert parse(after)["zookeeper.connect"] == "z:2181"


def test_a_removed_key_leaves_no_line_and_comments_stay() -> None:
    after = edit(FILE, {}, frozenset({"log.retention.hours", "zookeeper.connect"}))
    assert touched(FILE, after)[1] == []
    assert "# the next line wins\n" in lines_of(after)
    assert parse(FILE).keys() - parse(after).keys() == {"log.retention.hours", "zookeeper.connect"}


def test_of_repeated_keys_one_is_left_in_the_place_of_the_last() -> None:
    after = edit(FILE, {"log.retention.hours": "9"})
    assert [line for line in lines_of(after) if line.startswith("log.retention")] == ["log.retention.hours=9\n"]
    assert lines_of(after)[-1] == "log.retention.hours=9\n"


def test_new_keys_go_to_the_end_in_order() -> None:
    assert edit(FILE, {"b": "1", "a": "2"}) == FILE + "b=1\na=2\n"


def test_values_are_written_as_a_person_writes_them() -> None:
    """Java needs no escapes for `:`, `=` and `#` in a value, and nobody types them."""
    after = edit("", {"controller.quorum.voters": "1@h:9093,2@h:9094", "listeners": "A://h:1", "o": "x=y # z!"})
    assert after == "controller.quorum.voters=1@h:9093,2@h:9094\nlisteners=A://h:1\no=x=y # z!\n"


@pytest.mark.parametrize(
    "end",
    ["a=1", "a=1\n", "a=1\\", "a=1\\\n", "a=1,\\\n  ", "# comment", "# comment \\", "# comment \\\n", "a=1\\\\", "", "\n"],
)
def test_what_is_appended_starts_a_line_of_its_own(end: str) -> None:
    """A file may end without a newline, or in a backslash that would swallow the next line."""
    after = edit(end, {"new": "x"})
    assert parse(after)["new"] == "x"
    assert {key: value for key, value in parse(after).items() if key != "new"} == parse(end)
    assert after.startswith(end)


def test_a_file_with_windows_line_ends_keeps_them() -> None:
    before = FILE.replace("\n", "\r\n")
    after = edit(before, {"num.partitions": "6", "new": "x"}, frozenset({"broker.id"}))
    assert "\n" not in after.replace("\r\n", "")
    assert touched(before, after) == (["broker.id=1\r\n", "num.partitions 3\r\n"], ["num.partitions=6\r\n", "new=x\r\n"])


def test_rename_keeps_the_place() -> None:
    after = rename(FILE, "broker.id", "node.id", "1")
    assert touched(FILE, after) == (["broker.id=1\n"], ["node.id=1\n"])
    assert lines_of(after).index("node.id=1\n") == lines_of(FILE).index("broker.id=1\n")


def test_rename_without_the_old_key_sets_the_new_one() -> None:
    assert rename("a=1\n", "broker.id", "node.id", "1") == "a=1\nnode.id=1\n"


def test_rename_where_both_are_there_leaves_one() -> None:
    assert rename("node.id=1\nbroker.id=1\n", "broker.id", "node.id", "1") == "node.id=1\n"
    assert rename("broker.id=1\nx=2\nbroker.id=1\n", "broker.id", "node.id", "1") == "x=2\nnode.id=1\n"


def test_a_key_written_with_escapes_is_the_same_key() -> None:
    assert edit("\\u0061\\u002eb=1\nc=2\n", {"a.b": "3"}) == "a.b=3\nc=2\n"


def test_bytes_above_127_survive() -> None:
    text = b"# caf\xe9\nname=caf\xe9\n".decode("latin-1")
    assert edit(text, {"x": "1"}).encode("latin-1").startswith(b"# caf\xe9\nname=caf\xe9\n")
    assert parse(edit(text, {"x": "é→\t \\"}))["x"] == "é→\t \\"
    edit(text, {"x": "→"}).encode("latin-1")


ADDED = {"zookeeper.metadata.migration.enable": "true", "controller.quorum.voters": "3001@h:9093,3002@h:9094"}
OF_ZOOKEEPER = ("zookeeper.", "inter.broker.protocol.version")


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_shape_is_read_as_java_reads_it(shape: Shape) -> None:
    assert parse(shape.text) == shape.decoded


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_shape_keeps_its_other_bytes_there_and_back(shape: Shape) -> None:
    """Keys are added, ZooKeeper's are taken out, and all is put back."""
    hybrid = edit(shape.text, ADDED)
    assert hybrid.startswith(shape.text)
    assert parse(hybrid) == shape.decoded | ADDED
    assert ("\r\n" in shape.text) == ("\r\n" in hybrid.removeprefix(shape.text))
    gone = frozenset(key for key in parse(hybrid) if key.startswith(OF_ZOOKEEPER))
    rest = shape.text
    for part in shape.zookeeper:
        rest = rest.replace(part, "")
    kraft = edit(hybrid, {}, gone)
    assert kraft.startswith(rest), "no byte but those of ZooKeeper's lines"
    assert parse(kraft) == {key: value for key, value in (shape.decoded | ADDED).items() if key not in gone}
    back = edit(kraft, {key: shape.decoded[key] for key in gone & shape.decoded.keys()}, frozenset(ADDED))
    assert parse(back) == shape.decoded
    assert back.startswith(rest)


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_shape_that_java_refuses_is_not_edited(text: str) -> None:
    with pytest.raises(Malformed, match="four hexadecimal digits"):
        parse(text)


KEYS = st.text(st.sampled_from("ab.:= #!\\é\n\t"), min_size=1, max_size=6)
VALUES = st.text(st.sampled_from("ab,:= #!\\é→\n\r\t\f"), max_size=8)
LINES = st.lists(
    st.one_of(
        st.builds(lambda k, v, sep: javaproperties.join_key_value(k, v, separator=sep), KEYS, VALUES, st.sampled_from("=: ")),
        st.sampled_from(["# comment", "! a=b", "", "   ", "cont=a,\\", "    b", "cont2 = x\\", "tail\\\\", "a", "b :c", "\\"]),
    ),
    max_size=8,
)
TEXTS = st.builds(
    lambda lines, newline, end: newline.join(lines) + end, LINES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n"])
)


@given(text=TEXTS, assignments=st.dictionaries(KEYS, VALUES, max_size=3), removals=st.frozensets(KEYS, max_size=3))
def test_any_edit_means_what_it_says_and_is_idempotent(
    text: str, assignments: dict[str, str], removals: frozenset[str]
) -> None:
    removals -= assignments.keys()
    after = edit(text, assignments, removals)
    expected = {key: value for key, value in parse(text).items() if key not in removals} | assignments
    assert parse(after) == expected
    assert edit(after, assignments, removals) == after


@given(text=TEXTS)
def test_an_edit_of_nothing_changes_nothing(text: str) -> None:
    assert edit(text, {}) == text
    assert edit(text, {}, frozenset({"is.not.there"})) == text


def test_changes_are_shown_without_secrets() -> None:
    secrets = {
        "ssl.key.password": "s1",
        "sasl.jaas.config": "s2",
        "password.encoder.secret": "s3",
        "ssl.keystore.key": "s4",
        "delegation.token.master.key": "s5",
        "listener.name.a.ssl.keystore.key": "s6",
    }
    before = edit("broker.id=1\nnum.io.threads=2\n", secrets)
    shown = changes(before, edit("broker.id=1\nnum.io.threads=3\n", {}))
    assert shown[0] == "- num.io.threads=2"
    assert shown[-1] == "+ num.io.threads=3"
    assert not any(value in line for line in shown for value in secrets.values())
    assert "- ssl.keystore.key=***" in shown


def test_a_file_that_java_cannot_read_is_refused_in_our_own_words() -> None:
    """An unfinished unicode escape: Java's reader throws, and so the node would not start. The value is not shown."""
    with pytest.raises(Malformed, match="four hexadecimal digits") as refused:
        parse("ssl.keystore.password=C:\\users\n")
    assert "users" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a=1\nlog.dirs=C:\\users\n", "line 2, character 12"),
        ("a=1\r\n# \\u12\r\nb=\\\r\n  x\\u1\r\n", "line 4, character 4"),
        ("a=1\rb\\u00zz=1", "line 2, character 2"),
        ("x=\\\\u12\ny=\\\\\\u12", "line 2, character 5"),
    ],
)
def test_a_malformed_escape_is_told_with_its_place(text: str, place: str) -> None:
    with pytest.raises(Malformed, match=f"^/etc/kafka/f, {place}: "):
        parse(text, "/etc/kafka/f")
