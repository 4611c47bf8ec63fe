"""What lines of logs mean: `log_patterns/*.toml` of this room, and of each kind of migration that has patterns of its own.

A file is a topic. `said`, `by` and `releases` at its top hold for each pattern below that does not say otherwise. Of one line
the first pattern counts: the order in a file, and of the files in a search, is part of what they mean. `{name}` stands for a
text of `[snippets]`, which all files of a room share. White space in a text counts as one space.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field
from importlib.resources import files
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

THEN_START = " Then start it."
"""How most fixes end that are for the dead."""
SNIPPET = re.compile(r"\{([a-z_]+)\}")
"""No quantifier of an expression looks like it."""

When = Literal["dying", "running", "connecting", "serving-member"]
Who = Literal["broker", "controller", "member", "jvm"]
"""`member`: a server of ZooKeeper. `jvm`: any of these."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Told:
    """A kind of line: what it means, what would be right, and what to do. `name` is its `id`, which is stable.

    `releases`: of Kafka, ZooKeeper or Java, whichever says it. `sample`: a line that it fits; ` | ` stands before what was
    thrown there.
    `instead_of`: code takes it in the place of that one, where it knows more than the line; no search finds it.
    `is_vague`: it follows from something else, which counts if it is known too, although this is said after it.
    `is_lasting`: said once, and true until the process ends, or says something that `over_with` fits, however old the line is.
    `is_root`: what is said after it follows from it.
    `least`: seconds in which it was said of the same, from which it counts; fewer are what any peer that ends leaves.
    `fix_of_member`: what a server of ZooKeeper needs instead.
    """

    name: str
    said: When
    by: tuple[Who, ...]
    releases: str
    pattern: re.Pattern[str]
    expected: str
    fix: str
    sample: str
    instead_of: str = ""
    is_vague: bool = False
    is_lasting: bool = False
    is_root: bool = False
    over_with: re.Pattern[str] | None = None
    least: int = 1
    fix_of_member: str = ""

    @property
    def cure(self) -> str:
        """What mends it, without the start of a process that has died of it."""
        return self.fix.removesuffix(THEN_START)


TOLD = TypeAdapter(Told)


@dataclass(frozen=True)
class Catalogue:
    """The patterns of one room by topic, and its snippets."""

    topics: Mapping[str, tuple[Told, ...]] = field(default_factory=dict)
    snippets: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Told]:
        return (told for topic in self.topics.values() for told in topic)

    def __getitem__(self, name: str) -> Told:
        return next(told for told in self if told.name == name)

    def of(self, said: When, *topics: str) -> tuple[Told, ...]:
        """Those that a search may find, in the order of these topics; of all topics without any."""
        found = (told for topic in topics or self.topics for told in self.topics[topic])
        return tuple(told for told in found if told.said == said and not told.instead_of)


def read(package: str) -> Catalogue:
    """The catalogue of a room. Raises where a file is not what it should be."""
    folder = files(package).joinpath("log_patterns")
    tables = {file.name.removesuffix(".toml"): tomllib.loads(file.read_text("utf-8")) for file in folder.iterdir()}
    snippets = {name: _plain(text) for table in tables.values() for name, text in table.pop("snippets", {}).items()}
    return Catalogue({topic: tuple(_patterns(tables[topic], snippets)) for topic in sorted(tables)}, snippets)


def _patterns(table: dict[str, Any], snippets: Mapping[str, str]) -> Iterator[Told]:
    rows = table.pop("pattern")
    matches = {row["id"]: row["match"] for row in rows if "match" in row}
    for row in rows:
        whole = table | row | {"match": "|".join(row.get("match") or matches[row["instead_of"]])}
        filled = {key: _filled(value, snippets) if isinstance(value, str) else value for key, value in whole.items()}
        yield TOLD.validate_python(filled | {"name": filled.pop("id"), "pattern": filled.pop("match")})


def _filled(text: str, snippets: Mapping[str, str]) -> str:
    return SNIPPET.sub(lambda one: snippets[one[1]], _plain(text))


def _plain(text: str) -> str:
    return " ".join(text.split())


KAFKA = read("domain.diagnosis")
"""What Kafka, ZooKeeper, Java and Linux say, whatever is migrated."""
