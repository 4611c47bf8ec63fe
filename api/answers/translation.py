"""How errors of ours, of FastAPI and of Starlette become problems. Decided by class, never by text."""

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from api.answers.findings import ArtefactsUnavailable
from api.answers.links import migration_url
from api.answers.problems import FieldError, Problem, ProblemKind, answer_of, invalid_request, retry_later
from api.running.audit import call_of
from api.running.observing import NoWorker, ObservationFailed
from api.running.runs import ClusterHeld
from api.running.starting import RunUnknown
from api.running.temporal import TemporalRefused, TemporalUnavailable
from ledger.errors import (
    ActiveMigration,
    ClusterIdTaken,
    LedgerUnavailable,
    MigrationHasEnded,
    NoSuchCluster,
    NoSuchMigration,
    SpecHasChanged,
)

KIND_OF_STATUS = {
    404: ProblemKind.NOT_FOUND,
    405: ProblemKind.METHOD_NOT_ALLOWED,
    413: ProblemKind.BODY_TOO_LARGE,
}
MOST_BODY_MIB = 8
"""A specification has about a thousand bytes for each node."""
WHAT_TO_DO = {
    400: "The body cannot be read: send JSON in UTF-8, nested no deeper than its form asks. /openapi.json has the form.",
    413: f"Send no more than {MOST_BODY_MIB} MiB: no specification of a cluster, and nothing else sent here, is larger.",
}

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


@singledispatch
def problem_of(error: Exception) -> Problem:
    """What a caller is told about an error. The log has the rest."""
    return Problem(
        ProblemKind.INTERNAL_ERROR, "This is a fault of Keeperless. Its log has an entry with this answer's X-Request-Id."
    )


@problem_of.register
def _(error: Problem) -> Problem:
    return error


@problem_of.register
def _(error: RequestValidationError) -> Problem:
    return invalid_request(field_errors(error.errors()))


@problem_of.register
def _(error: HTTPException) -> Problem:
    kind = KIND_OF_STATUS.get(error.status_code, ProblemKind.BAD_REQUEST)
    detail = WHAT_TO_DO.get(error.status_code, "See /openapi.json for the addresses that exist, and how to call them.")
    return Problem(kind, detail, headers=error.headers)


@problem_of.register
def _(_: ClientDisconnect) -> Problem:
    return Problem(ProblemKind.BAD_REQUEST, "The caller disconnected before its body had arrived, so nothing was done.")


@problem_of.register
def _(error: LedgerUnavailable) -> Problem:
    said = str(error)
    told = f"{said[:1].upper()}{said[1:]}. {error.fix} Then repeat the call; it may have been carried out."
    return retry_later(ProblemKind.LEDGER_UNAVAILABLE, told)


@problem_of.register
def _(error: TemporalUnavailable) -> Problem:
    return retry_later(
        ProblemKind.TEMPORAL_UNAVAILABLE, "Temporal does not answer in time. Nothing was started: repeat the call."
    )


@problem_of.register
def _(error: TemporalRefused) -> Problem:
    return Problem(ProblemKind.TEMPORAL_REFUSED, str(error))


@problem_of.register
def _(error: NoSuchCluster) -> Problem:
    return Problem(ProblemKind.CLUSTER_NOT_FOUND, "Register the cluster first: PUT /clusters/{name}.")


@problem_of.register
def _(error: NoSuchMigration) -> Problem:
    return Problem(
        ProblemKind.MIGRATION_NOT_FOUND,
        "The ledger of this API has no such migration. GET /migrations lists those that exist, and GET "
        "/migrations/{id}/blockers shows whether another ledger has it.",
    )


@problem_of.register
def _(error: ActiveMigration | ClusterHeld) -> Problem:
    return cluster_busy(error.migration_id)


@problem_of.register
def _(error: RunUnknown) -> Problem:
    return Problem(ProblemKind.CLUSTER_BUSY, str(error), links={"migration": migration_url(error.migration_id)})


@problem_of.register
def _(error: ClusterIdTaken) -> Problem:
    return Problem(
        ProblemKind.CLUSTER_ID_TAKEN,
        f"This cluster_id is registered as cluster {error.holder}: use that name. Two names would allow two migrations of "
        "one cluster.",
        links={"cluster": f"/clusters/{error.holder}"},
    )


@problem_of.register
def _(error: SpecHasChanged) -> Problem:
    return Problem(ProblemKind.CLUSTER_CHANGED, f"It is at revision {error.revision} now. Read it, and repeat the call.")


@problem_of.register
def _(error: MigrationHasEnded) -> Problem:
    return Problem(ProblemKind.MIGRATION_ENDED, f"It ended as {error.state} and accepts no more commands.")


@problem_of.register
def _(error: NoWorker) -> Problem:
    return Problem(ProblemKind.NO_WORKER, str(error))


@problem_of.register
def _(error: ObservationFailed) -> Problem:
    return Problem(ProblemKind.OBSERVATION_FAILED, f"{str(error).rstrip('.')}. {error.fix}")


@problem_of.register
def _(error: ArtefactsUnavailable) -> Problem:
    return retry_later(ProblemKind.ARTEFACTS_UNAVAILABLE, str(error))


def cluster_busy(migration_id: str | None) -> Problem:
    """`None`: a run that does not say which migration it belongs to."""
    links = {} if migration_id is None else {"links": {"migration": migration_url(migration_id)}}
    return Problem(
        ProblemKind.CLUSTER_BUSY,
        "A cluster has one operation at a time, and its spec cannot change until that has ended.",
        **links,
    )


def register_translation(app: FastAPI) -> None:
    """Every expected error becomes a problem. The unexpected ones are caught at the edge, which logs them."""
    for kind in problem_of.registry.keys() - {object}:
        app.add_exception_handler(kind, _answer)


async def _answer(request: Request, error: Exception) -> JSONResponse:
    problem = problem_of(error)
    call_of(request).problem = problem.kind
    return answer_of(problem)


def field_errors(findings: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    """Pydantic's findings in words that say what is expected. No value is ever repeated: a request may hold a secret in the
    wrong place.

    As FastAPI gives them: `type`, `loc`, `msg`, `input`, and `ctx` where there is more to say.

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
