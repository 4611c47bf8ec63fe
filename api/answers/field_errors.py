"""Pydantic's findings about a request, in words that say what is expected there. Told by their kind, never by their text.

No value is ever repeated: a request may hold a secret in the wrong place.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from api.answers.problems import FieldError

EXAMPLES = {
    "a duration: PT5M (five minutes, ISO 8601), or seconds as a number: 300": ("time_delta_type", "time_delta_parsing"),
    'a list: ["one", "another"]': ("tuple_type", "list_type"),
    'an object: {"name": "value"}': ("model_attributes_type", "model_type", "dict_type"),
    'text: "orders"': ("string_type",),
    "a whole number: 3": ("int_type", "int_parsing", "int_parsing_size", "int_from_float"),
    "true or false": ("bool_type", "bool_parsing"),
    "an id (UUID): 01a1f903-3505-72c4-97b0-3c79d6c47662": ("uuid_type", "uuid_parsing"),
}
"""What is expected, with the kinds of findings that say that it is not there."""

EXAMPLE_OF = {kind: f"Expected {what}" for what, kinds in EXAMPLES.items() for kind in kinds}

EXPECTED = {
    "missing": "It is missing",
    "extra_forbidden": "There is no such field: see /openapi.json for the fields that exist",
    "enum": "Expected {expected}",
    "literal_error": "Expected {expected}",
    "union_tag_invalid": "Expected one of {expected_tags} as {discriminator}",
    "union_tag_not_found": "Expected {discriminator}, which says what it is",
    "string_pattern_mismatch": "Expected text that matches {pattern}",
    "greater_than_equal": "Expected {ge} or more",
    "greater_than": "Expected more than {gt}",
    "less_than_equal": "Expected {le} or less",
    "less_than": "Expected less than {lt}",
    "value_error": "{error}",
}
"""The names in braces are what pydantic tells of a finding of that kind."""

SIZES = {
    "too_short": ("min_length", "item", "more"),
    "too_long": ("max_length", "item", "less"),
    "string_too_short": ("min_length", "character", "more"),
    "string_too_long": ("max_length", "character", "less"),
}

NOT_JSON = "The body is not JSON, at its character {at}: {error}"
NOT_SAID_TO_BE_JSON = "The body is not read as JSON: send it with the header Content-Type: application/json"
NO_BODY = "The body is missing: send a JSON object, with the header Content-Type: application/json"


def field_errors(findings: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    """Of pydantic's findings as FastAPI gives them: `type`, `loc`, `msg`, `input`, and `ctx` where there is more to say.

    A list is not told as too short where its items are wrong: pydantic counts only good ones.
    """
    above = {tuple(found["loc"][:depth]) for found in findings for depth in range(len(found["loc"]))}
    return [_field_error(found) for found in findings if found["type"] != "too_short" or tuple(found["loc"]) not in above]


def _field_error(found: Mapping[str, Any]) -> FieldError:
    where, *path = found["loc"]
    if found["type"] == "json_invalid":
        error = found["ctx"]["error"].removesuffix(" at")
        return FieldError(where=where, field="", message=NOT_JSON.format(error=error, at=path[0] + 1))
    is_whole_body = where == "body" and not path
    message = _of_body(found) if is_whole_body else _message(found)
    return FieldError(where=where, field=_dotted(path), message=message)


def _of_body(found: Mapping[str, Any]) -> str:
    """FastAPI reads only what is said to be JSON: all else stays bytes."""
    if found["type"] == "missing":
        return NO_BODY
    return NOT_SAID_TO_BE_JSON if isinstance(found["input"], bytes) else _message(found)


def _message(found: Mapping[str, Any]) -> str:
    kind, told = found["type"], found.get("ctx", {})
    if kind in SIZES:
        limit, what, more = SIZES[kind]
        return f"Expected {told[limit]} {what}{'s' if told[limit] != 1 else ''} or {more}"
    if kind in EXPECTED:
        return EXPECTED[kind].format_map(told)
    return EXAMPLE_OF.get(kind) or str(found["msg"])


def _dotted(path: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in path)
