"""What people read is in plain words, as far as a program can hold it: the words and beginnings of sentences to avoid.

It reads the texts of the product (constants of four words or more that are no docstrings), Markdown under docs/, README.md and
the TOML catalogues. `not_yet_plain.toml` says how many faults a file still has; a number is never raised. Run as a program,
this file writes that list.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
ALLOWED = Path(__file__).with_name("not_yet_plain.toml")
ROOMS = ("domain", "workflows", "activities", "api", "ledger", "spark", "console", "playground")
LONGEST_FIX, LONGEST_SENTENCE = 600, 32
START = r"(?:^|[.!?:;]\s+)"
RULES = {
    "begin with the subject": re.compile(
        START + r"(?:Of (?:a|an|the|what|who|no|those|these|one|each|it|all)|Who(?:m|se|ever)?)\b(?![^.]*\?)"
    ),
    "say immediately, or at the same time": re.compile(r"\bat once\b"),
    "say report, show or log": re.compile(r"\bt(?:old|ells?)\b"),
    "say fix": re.compile(r"\bmend(?:s|ed|ing)?\b", re.IGNORECASE),
    "say again": re.compile(r"\banew\b"),
    "say who it is, by role": re.compile(r"\b(?:nobody|somebody|whom|who(?:m)?ever)\b", re.IGNORECASE),
    "say rollback": re.compile(r"\b(?:ways? back|le(?:d|ads?) back|revert(?:s|ed|ing)?)\b(?! window)", re.IGNORECASE),
    "say unresponsive, or stopped": re.compile(r"\b(?:stands?|standing|stood) still\b"),
    "say continue": re.compile(r"\bgo(?:es)? on\b"),
    "say observation": re.compile(
        r"\b(?:a|an|the|each|every|next|last|one|two|three|first|second|no|of) looks?\b(?! (?:at|like))"
    ),
    "use the manual's label": re.compile(r"^(?:Because otherwise|Not there|Held in|Shows)$", re.MULTILINE),
}
CODE = re.compile(r"`[^`]*`")
NOT_PROSE = re.compile(r"^(?:```.*?^```|<[^\n]*>)$|\]\([^)]*\)|https?://\S+", re.MULTILINE | re.DOTALL)


def faults_of(text: str) -> list[str]:
    return [f"{rule}: {found[0].strip()}" for rule, pattern in RULES.items() for found in pattern.finditer(CODE.sub("`", text))]


def said(node: ast.expr) -> str:
    """The text of a constant, with `…` for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(said(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def texts_of(node: ast.AST) -> Iterator[ast.expr]:
    """The texts below a node; docstrings are statements of their own."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Constant | ast.JoinedStr):
            yield child
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            yield from () if isinstance(child, ast.JoinedStr) else texts_of(child)


def faults_of_python(source: str) -> list[str]:
    tree = ast.parse(source)
    texts = [(text.lineno, said(text)) for text in texts_of(tree)]
    fixes = [word.value for word in ast.walk(tree) if isinstance(word, ast.keyword) and word.arg == "fix"]
    long = [f"{fix.lineno}: a fix of {len(said(fix))} characters" for fix in fixes if len(said(fix)) > LONGEST_FIX]
    faults = [
        (line, fault) for line, text in texts if len(text.split()) > 3 for fault in faults_of(text) + long_sentences(text)
    ]
    return long + [f"{line}: {fault}" for line, fault in faults]


def long_sentences(text: str) -> list[str]:
    """Those of prose: what has lines or alternatives is a program's or a pattern's text, and has no article in it."""
    sentences = re.split(r"(?<=[.!?;:])\s+", CODE.sub("`", text)) if not re.search(r"\n|\w\|\w", text) else []
    counts = [len(sentence.split()) for sentence in sentences if re.search(r"\b(?:the|a)\b", sentence)]
    return [f"a sentence of {count} words" for count in counts if count > LONGEST_SENTENCE]


def read_by_people() -> Iterator[Path]:
    for room in ROOMS:
        yield from (REPOSITORY / room).rglob("*.py")
        yield from (REPOSITORY / room).rglob("log_patterns/*.toml")
    yield from (REPOSITORY / "docs").rglob("*.md")
    yield REPOSITORY / "README.md"


def faults_in(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return faults_of_python(text) if path.suffix == ".py" else faults_of(NOT_PROSE.sub(" ", text))


def counted() -> dict[str, list[str]]:
    found = {path.relative_to(REPOSITORY).as_posix(): faults_in(path) for path in sorted(read_by_people())}
    return {path: faults for path, faults in found.items() if faults}


def test_texts_are_plain_but_for_what_is_listed() -> None:
    found, allowed = counted(), tomllib.loads(ALLOWED.read_text(encoding="utf-8"))
    worse = [f"{path}: {fault}" for path, faults in found.items() if len(faults) > allowed.get(path, 0) for fault in faults]
    assert not worse, "\n".join(worse)
    better = {path: len(found.get(path, [])) for path, number in allowed.items() if len(found.get(path, [])) < number}
    assert not better, f"lower these numbers in {ALLOWED.name}: {better}"


@pytest.mark.parametrize(
    "text",
    [
        "Of no single node, and without any effect",
        "Whose session ends is fenced.",
        "They restart at once.",
        "The broker tells which one it is.",
        "Mend the file, and start it.",
        "It has to be made anew.",
        "Nobody waits for the broker.",
        "A way back needs ZooKeeper.",
        "The broker stands still there.",
        "The migration goes on by itself.",
        "A minute lies between the two looks.",
    ],
)
def test_a_riddle_is_found(text: str) -> None:
    assert len(faults_of_python(f"WAIT = {text!r}")) == 1


def test_a_long_fix_is_found() -> None:
    assert faults_of_python(f"Finding(fix={'x' * 601!r})") == ["1: a fix of 601 characters"]


def test_a_long_sentence_is_found() -> None:
    assert faults_of_python(f"WAIT = {'the broker waits ' * 11!r}") == ["1: a sentence of 33 words"]


def test_docstrings_and_code_are_not_texts() -> None:
    assert not faults_of_python('"""It is told at once."""\nFIX = "Type `revert at once` into the shell."')


if __name__ == "__main__":
    ALLOWED.write_text("".join(f'"{path}" = {len(faults)}\n' for path, faults in counted().items()), encoding="utf-8")
