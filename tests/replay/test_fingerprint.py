"""The commands that each workflow's code can give, against the committed ones: a change of them breaks running migrations."""

import ast
import json
import os
from pathlib import Path
from typing import Any

BASELINE = Path(__file__).parent / "fingerprint.json"
WORKFLOWS = Path(__file__).parents[2] / "workflows"

COMMANDS = {
    "continue_as_new",
    "execute_activity",
    "execute_child_workflow",
    "execute_local_activity",
    "patched",
    "sleep",
    "start_activity",
    "start_child_workflow",
    "start_local_activity",
    "upsert_memo",
    "upsert_search_attributes",
    "wait_condition",
}
"""Calls of `workflow.…` that write a command into history; `wait_condition` only with a timeout."""

WHAT_TO_DO = (
    "The commands of a workflow have changed, and with them what a running migration's history must look like. If that is "
    "meant, follow tests/replay/README.md: before the first tag record anew, afterwards guard the change."
)


def commands_of(definition: ast.ClassDef) -> dict[str, list[str]]:
    """Method → its commands, in source order."""
    methods = [node for node in definition.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = {method.name: [told for node in calls_in(method) if (told := command(node))] for method in methods}
    return {name: commands for name, commands in found.items() if commands}


def calls_in(tree: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda node: (node.lineno, node.col_offset))


def command(call: ast.Call) -> str | None:
    """`workflow.execute_activity(ActivityName.CLAIM, …)` → `execute_activity ActivityName.CLAIM`."""
    function = call.func
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name) or function.value.id != "workflow":
        return None
    if function.attr not in COMMANDS:
        return None
    if function.attr == "wait_condition" and not any(keyword.arg == "timeout" for keyword in call.keywords):
        return None
    is_named = call.args and function.attr not in {"continue_as_new", "wait_condition"}
    return f"{function.attr} {ast.unparse(call.args[0])}" if is_named else function.attr


def fingerprint() -> dict[str, Any]:
    definitions = [
        (path.stem, node)
        for path in sorted(WORKFLOWS.glob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    return {f"{module}.{node.name}": commands for module, node in definitions if (commands := commands_of(node))}


def test_the_commands_are_the_committed_ones() -> None:
    found = fingerprint()
    if os.environ.get("KEEPERLESS_RECORD_HISTORIES"):
        BASELINE.write_text(json.dumps(found, indent=2) + "\n")
    assert found == json.loads(BASELINE.read_text()), WHAT_TO_DO


def test_the_extraction_sees_what_matters() -> None:
    source = """
class W:
    async def run(self):
        await workflow.sleep(5)
        await workflow.wait_condition(lambda: True)
        await workflow.wait_condition(lambda: True, timeout=3)
        await workflow.execute_activity(Name.A, x)
        other.sleep(1)
"""
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.ClassDef)
    assert commands_of(definition) == {"run": ["sleep 5", "wait_condition", "execute_activity Name.A"]}
