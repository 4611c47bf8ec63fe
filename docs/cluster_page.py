"""The page of a cluster's specification, made from its model."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from domain.cluster import ClusterSpec
from domain.shipped_kinds import SHIPPED_KINDS

HEAD = """\
# A cluster's specification

Made from `domain/cluster.py` by `make docs`. Do not edit.

The specification is the JSON body of `PUT /clusters/{name}`. It says which nodes a cluster has, and how Keeperless reaches
them.

1. Copy [`examples/cluster.json`](../examples/cluster.json), which is complete, and replace every address, path and id.
2. Register it under the `name` that it has. Registering contacts nothing. An unknown field is an error, so a misspelt one is
   never ignored.
3. `GET /clusters/{name}/observation` shows what Keeperless reaches, and what did not answer.

The specification says what the cluster is. What a migration creates goes into `wanted` of `POST /plans` and `POST /migrations`:
for `zk-to-kraft` [the controllers](#zktokraftwanted), as in [`examples/zk-to-kraft.json`](../examples/zk-to-kraft.json). A
migration that succeeds writes the next revision of the specification: with the quorum, and without ZooKeeper. Its summary
names that revision.

Paths are paths on the node. Secrets are references: `env:NAME` is a variable of the program that needs the secret,
`file:/path` a file that it can read.
"""


def cluster() -> str:
    """One table for each object, in the order in which a reader meets them."""
    models: dict[str, Any] = {}
    outermost: list[type[BaseModel]] = [ClusterSpec, *(kind.wanted for kind in SHIPPED_KINDS.values())]
    for model in outermost:
        schema = model.model_json_schema()
        models |= {model.__name__: schema, **schema["$defs"]}
    return "\n".join([HEAD, *(_section(name, models[name]) for name in _met(models) if "properties" in models[name])])


def _met(models: dict[str, Any]) -> list[str]:
    """The names of all objects, from the outermost inwards."""
    met = ["ClusterSpec", *(kind.wanted.__name__ for kind in SHIPPED_KINDS.values())]
    for name in met:
        met += [each for each in _named(models[name].get("properties", {})) if each not in met]
    return met


def _named(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        yield from [str(part["$ref"]).rpartition("/")[2]] if "$ref" in part else []
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _named(inner)


def _section(name: str, model: dict[str, Any]) -> str:
    rows = [
        f"| `{field}` | {_type(part)} | {_given(field, part, model)} | {part.get('description') or _only(part)} |"
        for field, part in model["properties"].items()
    ]
    table = ["| field | value | default | meaning |", "|---|---|---|---|", *rows]
    return f"## {name}\n\n{model['description']}\n\n" + "\n".join(table) + "\n"


def _only(part: dict[str, Any]) -> str:
    """A field with one possible value says what kind of object this is."""
    return f"Always `{part['const']}`: the kind of this object."


def _given(field: str, part: dict[str, Any], model: dict[str, Any]) -> str:
    if field in model.get("required", ()):
        return "required"
    default = part.get("default")
    if isinstance(default, dict):
        return ", ".join(f"`{key}`: `{value}`" for key, value in default.items())
    return "-" if default in (None, []) else f"`{default}`"


def _type(part: dict[str, Any]) -> str:
    """The shape of a value in JSON, in words."""
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in part:
        return " or ".join(f"`{value}`" for value in part["enum"])
    if "const" in part:
        return f"`{part['const']}`"
    either = part.get("oneOf") or [each for each in part.get("anyOf", ()) if each.get("type") != "null"]
    if either:
        return " or ".join(map(_type, either))
    if part["type"] == "array":
        return f"list of {_type(part['items'])}"
    return "object of strings" if part["type"] == "object" else str(part["type"])
