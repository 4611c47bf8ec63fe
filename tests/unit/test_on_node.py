"""What holds of every program that is sent to a machine: it runs there, whatever that has, and is whole."""

import ast
import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from activities import on_node
from activities.on_node import program

SHARED = {"kernel", "waits"}
FOLDER = Path(on_node.__file__).parent
NAMES = sorted({path.stem for path in FOLDER.glob("*.py")} - SHARED - {"__init__"})


def defined(name: str) -> set[str]:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return functions | {
        found.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for found in ast.walk(target)
        if isinstance(found, ast.Name)
    }


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_on_old_machines(name: str) -> None:
    """Python 3.7, nothing that does not come with it, and short enough for a command line, of which Linux takes 128 KiB."""
    tree = ast.parse(program(name), feature_version=(3, 7))
    whole = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    parts = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {one.partition(".")[0] for one in [*whole, *parts]} <= sys.stdlib_module_names
    assert len(program(name).encode()) < 65_536


@pytest.mark.parametrize("name", NAMES)
def test_no_name_stands_for_two_things(name: str) -> None:
    """What is shared becomes a part of the same text."""
    shared = [part for part in SHARED if f"from activities.on_node.{part} import" in (FOLDER / f"{name}.py").read_text("utf-8")]
    for one, other in combinations([name, *shared], 2):
        assert not defined(one) & defined(other)
    assert not shared or program(name).count("def text(path") == 1


def test_what_is_shared_is_in_the_text_and_runs_without_this_repository() -> None:
    command = [sys.executable, "-I", "-S", "-c", program("watch_process"), json.dumps({"ports": []})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd="/", env={})
    assert json.loads(done.stdout) == {"holders": []}
