"""Every check and every wait whose fix writes, deletes, restarts or elects has a row in decision 012, and no row is of none."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from domain.zk_to_kraft.checks.catalogue import CATALOGUE
from domain.zk_to_kraft.waits import WAITS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "decisions" / "012-fixes-that-act.md"
ACTS = re.compile(
    r"\b(delete|elect|wipe|unregister|reassign|rollback|chown)\b|"
    r"\brestart (?!of\b)(?:it|the|that|one|them|keeperless|your|now)|\b(?:and|then|now) restart\b|"
    r"\b(?:move|put) [^.:]{0,60}?\b(?:away|aside|out of|back)\b|\b(?:remove|write) (?:it|them|its|the|that)\b|"
    r"\b(?:start|stop) (?:the|them)\b|\blower min\.insync|\btolerate by name|\bmend the file",
    re.IGNORECASE,
)


def rows(part: str) -> set[str]:
    """The first cells of a part's table."""
    text = PAGE.read_text(encoding="utf-8").partition(f"### {part}\n")[2].partition("\n#")[0]
    return set(re.findall(r"^\| (\S+) \|", text, re.MULTILINE)) - {"code", "wait"}


def words(node: ast.AST, named: dict[str, ast.AST]) -> str:
    """All literal text of an expression, with that of what it names. A cure's is that of all cures."""
    found = [str(n.value) for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in named}
    names |= {"cure_of_no_id", "ASK"} if ast.unparse(node) == "cure.fix" else set()
    further = {name: each for name, each in named.items() if name not in names}
    return " ".join([*found, *(words(named[name], further) for name in sorted(names))])


def named_in(tree: ast.Module) -> dict[str, ast.AST]:
    constants = {t.id: n.value for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    return {**constants, **{n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}}


def fixes() -> Iterator[tuple[str, str]]:
    """Code and text of each fix of a check."""
    folder = ROOT / "domain"
    own = folder / "zk_to_kraft"
    paths = [
        *(folder / "checks").glob("*.py"),
        *(own / "checks").glob("*.py"),
        folder / "topic_ids.py",
        own / "znode_repairs.py",
    ]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(paths)]
    shared = {name: node for tree in trees for name, node in named_in(tree).items() if not name.startswith("_")}
    for tree in trees:
        named = shared | named_in(tree)
        for function in (n for n in tree.body if isinstance(n, ast.FunctionDef)):
            for call in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
                given = {k.arg: k.value for k in call.keywords}
                if "fix" in given:
                    fix = words(given["fix"], named)
                    codes = {words(given["code"], named)} & CODES if "code" in given else set()
                    yield from ((code, fix) for code in sorted(codes or codes_given_to(function.name, tree, named)))


def codes_given_to(function: str, tree: ast.Module, named: dict[str, ast.AST]) -> set[str]:
    """The codes of its calls. If no call gives one, those of the checks of this module."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    own = [n for n in calls if ast.unparse(n.func) == function]
    given = {words(argument, named) for call in own for argument in call.args} & CODES
    checks = [n for n in calls if ast.unparse(n.func) == "Check"]
    return given or {words(k.value, named) for n in checks for k in n.keywords if k.arg == "code"} & CODES


CODES = {check.code for check in CATALOGUE}


def test_every_check_whose_fix_acts_has_a_row() -> None:
    acting = {code for code, fix in fixes() if ACTS.search(fix)}
    assert {"PF10", "PF17", "PF23", "PF25", "PF43"} <= acting, "what is known to act is found"
    assert acting - rows("Fixes of checks") == set()


def test_every_wait_whose_fix_acts_has_a_row() -> None:
    acting = {str(reason) for reason, text in WAITS.items() if ACTS.search(text.means)}
    assert {"copy-left-over", "no-controller", "half-reverted"} <= acting, "what is known to act is found"
    assert acting - rows("Fixes of waits") == set()


def test_every_row_is_of_a_check_or_a_wait() -> None:
    assert rows("Fixes of checks") <= {check.code for check in CATALOGUE}
    assert rows("Fixes of waits") <= {str(reason) for reason in WAITS}


def test_no_fix_elects_while_a_topic_may_lack_its_id() -> None:
    """A controller that is elected in ZooKeeper makes up an id."""
    for code, fix in fixes():
        if re.search(r"delete /controller", fix) and code not in {"PF17", "PF25"}:
            assert "PF17" in fix, (code, fix)
