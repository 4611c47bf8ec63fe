"""PF45, of the text of files: what Java cannot read, and what it reads otherwise than people do."""

from collections.abc import Iterator

from domain.checks.check import Surveyed, some
from domain.cluster import ControllerSpec, NodeSpec
from domain.configuration.odd_characters import CharacterKind, OddCharacter
from domain.decisions import Finding, Severity
from domain.errors import Obstacle
from domain.observed.observation import Observation

CODE = "PF45"
READABLE = "a file that Java can read: four hexadecimal digits after every \\u"
CORRECT = (
    "Write each backslash of a path twice (C:\\\\users), or use /. Correct it also in whatever writes the file. Then make a "
    "new plan: the finding is gone."
)


def malformed(observation: Observation) -> tuple[Finding, ...]:
    """Files without which an observation cannot be whole. They stay as they are until a person corrects them."""
    found = [part for part in observation.unanswered if part.obstacle is Obstacle.MALFORMED]
    return tuple(_of_malformed(part.what, part.why) for part in found)


def _of_malformed(what: str, why: str) -> Finding:
    return Finding(code=CODE, object=what, observed=why, expected=READABLE, fix=CORRECT)


def of_survey(seen: Surveyed) -> Iterator[Finding]:
    for node in seen.spec.nodes:
        found = seen.node(node.id)
        if found.malformed:
            yield _of_malformed(f"files of {seen.name(node.id)}", found.malformed)
        for kind in CharacterKind:
            for is_refused in (True, False):
                same = [one for one in found.odd_characters if (one.kind, one.is_refused) == (kind, is_refused)]
                if same:
                    yield _finding(f"{seen.name(node.id)} {_path(node)}", same)


def _path(node: NodeSpec) -> str:
    own = node.base_properties if isinstance(node, ControllerSpec) else None
    return own or node.properties_file


def _finding(where: str, same: list[OddCharacter]) -> Finding:
    kind, is_refused = same[0].kind, same[0].is_refused
    told, expected, fix = _WORDS[kind]
    refused = " Kafka does not start with it." if is_refused else ""
    return Finding(
        code=CODE,
        severity=Severity.BLOCKER if is_refused else Severity.WARNING,
        object=f"{where} {kind}",
        observed=some(f"line {one.line}: {told.format(key=one.key, other=one.other)}" for one in same) + refused,
        expected=expected,
        fix=fix,
    )


_WORDS = {
    CharacterKind.BYTE_ORDER_MARK: (
        "a byte order mark is part of the first name, so {key} is not set",
        "a file without a byte order mark",
        "Remove it: sed -i '1s/^\\xEF\\xBB\\xBF//' FILE, or save the file as UTF-8 without BOM. Then make a new plan.",
    ),
    CharacterKind.COMMENT: (
        "the # and what follows are part of the value of {key}",
        "comments on lines of their own, not behind a value or inside one",
        "Move the comment to a line of its own, above the property. Restart the node. Make a new plan. If the # belongs to "
        "the value, leave it.",
    ),
    CharacterKind.LAST_BLANK: (
        "the value of {key} ends in a blank",
        "no blank at the end of a value",
        "Remove the blank. Kafka drops it from its own properties, but plug-ins and other tools do not.",
    ),
    CharacterKind.SWALLOWED_LINE: (
        "the backslash at the end makes the next line part of the value of {key}, so {other} is not set there",
        "a backslash at the end of a line only if the value continues on the next",
        "Remove the backslash. In a path of Windows write each backslash twice, or use /. Then make a new plan.",
    ),
}
"""By kind: what it is, what is expected, and what to do."""
