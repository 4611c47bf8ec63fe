"""FastAPI's own OpenAPI document, made more exact in four ways.

A call's title is how its description begins, and not the name of a function. Errors are `application/problem+json`. And a model
with defaults that goes both in and out gets a second schema for going out, in which every field is required: an answer always
has them all. Where an answer has a part whose fields depend on the kind of migration, those of all kinds are named.
"""

import re
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from api.answers.problems import MEDIA_TYPE
from domain.kinds import Kinds
from domain.of_kind import Wanted
from domain.policy import MigrationPolicy

SCHEMAS = "#/components/schemas/"
OUTGOING = "Answer"
"""Appended to the name of a model that goes out, where its schema differs from the one that comes in."""

PROBLEM = "ProblemBody"
TITLE_ENDS = re.compile(r"[.:;](?:\s|$)")

Json = dict[str, Any]


def describe_outputs(app: FastAPI, kinds: Kinds) -> None:
    """Make the app give the exact document."""
    plain = app.openapi

    def openapi() -> Json:
        if app.openapi_schema is None:
            app.openapi_schema = exact(plain(), kinds)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def exact(document: Json, kinds: Kinds) -> Json:
    """The document with titles of calls, problems and outgoing models as they are."""
    own = {
        MigrationPolicy.__name__: [kind.policy.__name__ for kind in kinds.values()],
        Wanted.__name__: [kind.wanted.__name__ for kind in kinds.values()],
    }
    document = _with_own(document, own)
    for base in own:
        document["components"]["schemas"].pop(base, None)
    for operation in _operations(document):
        operation["summary"] = TITLE_ENDS.split(operation["description"], maxsplit=1)[0]
    for response in _responses(document):
        content = response.get("content", {})
        if _names_in(content) == {PROBLEM}:
            content[MEDIA_TYPE] = content.pop("application/json")
    _split_outgoing(document)
    return document


def _with_own(part: Any, own: dict[str, list[str]]) -> Any:  # noqa: ANN401 - JSON
    """A copy in which the kinds' own schemas take the place of a base. `own`: by the base's name."""
    if isinstance(part, list):
        return [_with_own(value, own) for value in part]
    if not isinstance(part, dict):
        return part
    base = str(part.get("$ref", "")).removeprefix(SCHEMAS)
    if base not in own:
        return {key: _with_own(value, own) for key, value in part.items()}
    named = [{"$ref": f"{SCHEMAS}{name}"} for name in own[base]]
    return named[0] if len(named) == 1 else {"anyOf": named}


def _split_outgoing(document: Json) -> None:
    schemas: Json = document["components"]["schemas"]
    going_out = _reached_from(list(_responses(document)), schemas) - {PROBLEM}
    coming_in = _reached_from(list(_requests(document)), schemas)
    differing = {name for name in going_out if _has_optional(schemas[name])}
    # Who holds a model that differs, differs too.
    while more := {name for name in going_out - differing if _names_in(schemas[name]) & differing}:
        differing |= more
    twins = differing & coming_in
    for name in sorted(differing):
        schemas[f"{name}{OUTGOING}" if name in twins else name] = _outgoing(schemas[name], twins)
    for response in _responses(document):
        response.update(_renamed(response, twins))


def _operations(document: Json) -> Iterator[Json]:
    for operations in document["paths"].values():
        yield from operations.values()


def _responses(document: Json) -> Iterator[Json]:
    for operation in _operations(document):
        yield from operation["responses"].values()


def _requests(document: Json) -> Iterator[Json]:
    for operation in _operations(document):
        yield {key: part for key, part in operation.items() if key != "responses"}


def _names_in(part: object) -> set[str]:
    """The schemas that a part of the document refers to."""
    if isinstance(part, str):
        return {part.removeprefix(SCHEMAS)} if part.startswith(SCHEMAS) else set()
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return set().union(*(_names_in(value) for value in inner))


def _reached_from(parts: list[Json], schemas: Json) -> set[str]:
    reached: set[str] = set()
    while more := _names_in([*parts, *(schemas[name] for name in reached)]) - reached:
        reached |= more
    return reached


def _has_optional(schema: Json) -> bool:
    return set(schema.get("properties", {})) != set(schema.get("required", []))


def _outgoing(schema: Json, renamed: set[str]) -> Json:
    """All fields required, none with a default."""
    properties = {name: _without_default(field) for name, field in schema["properties"].items()}
    outgoing: Json = _renamed({**schema, "properties": properties, "required": list(properties)}, renamed)
    return outgoing


def _without_default(field: Json) -> Json:
    return {key: value for key, value in field.items() if key != "default"}


def _renamed(part: Any, names: set[str]) -> Any:  # noqa: ANN401 - JSON
    """A copy in which references to these schemas, those of discriminators too, are to their outgoing twins."""
    if isinstance(part, dict):
        return {key: _renamed(value, names) for key, value in part.items()}
    if isinstance(part, list):
        return [_renamed(value, names) for value in part]
    is_reference = isinstance(part, str) and part.startswith(SCHEMAS) and part.removeprefix(SCHEMAS) in names
    return f"{part}{OUTGOING}" if is_reference else part
