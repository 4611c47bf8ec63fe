"""What holds of every program that is sent to a machine: it runs there, whatever that has, and is whole."""

import ast
import json
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from activities import on_node
from activities.on_node import program

FOLDER = Path(on_node.__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))
"""The others are parts of these."""


def defined(text: str) -> list[str]:
    tree = ast.parse(text)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return functions + [
        found.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for found in ast.walk(target)
        if isinstance(found, ast.Name)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_on_old_machines(name: str) -> None:
    """Python 3.7, nothing that does not come with it, and short enough for a command line, of which Linux takes 128 KiB."""
    tree = ast.parse(program(name), feature_version=(3, 7))
    whole = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    parts = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {one.partition(".")[0] for one in [*whole, *parts]} <= sys.stdlib_module_names
    assert len(shlex.quote(program(name)).encode()) < 98_304, "as a shell there is given it, with room for what it is asked"


@pytest.mark.parametrize("name", NAMES)
def test_no_name_stands_for_two_things(name: str) -> None:
    """What is shared becomes a part of the same text, once."""
    whole = Counter(defined(program(name)))
    assert {one: count for one, count in whole.items() if count > 1} == {}
    assert "from activities" not in program(name)


def test_every_part_is_a_part_of_some_program() -> None:
    texts = [program(name) for name in NAMES]
    parts = [path for path in FOLDER.glob("*.py") if path.stem not in {*NAMES, "__init__"}]
    for part in parts:
        assert any(set(defined(part.read_text(encoding="utf-8"))) <= set(defined(text)) for text in texts), part.name


def test_what_is_shared_is_in_the_text_and_runs_without_this_repository() -> None:
    command = [sys.executable, "-I", "-S", "-c", program("watch_process"), json.dumps({"ports": []})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd="/", env={})
    assert json.loads(done.stdout) == {"holders": []}
