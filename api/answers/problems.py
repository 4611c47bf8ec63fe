"""Every error that a caller can get: RFC 9457 `application/problem+json`.

`type` is stable and names a page in `docs/problems/`; `code` is its last part. No input value is ever repeated: a request
may hold a secret in the wrong place.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:problem-type:keeperless:"
RETRY_AFTER_SECONDS = 2


class ProblemKind(Enum):
    """Status and title. The code is the member's name."""

    BAD_REQUEST = (400, "The request cannot be read")
    UNAUTHENTICATED = (401, "The call has no credentials")
    FORBIDDEN = (403, "This principal may not do that")
    OWN_REQUEST = (403, "Another person has to approve")
    FOREIGN_ORIGIN = (403, "The call comes from a page of another site")
    NOT_FOUND = (404, "There is nothing at this address")
    CLUSTER_NOT_FOUND = (404, "There is no such cluster")
    MIGRATION_NOT_FOUND = (404, "There is no such migration")
    REPORT_NOT_FOUND = (404, "There is no such report")
    PLAN_NOT_FOUND = (404, "There is no such plan")
    KEY_NOT_FOUND = (404, "There is no such API key")
    METHOD_NOT_ALLOWED = (405, "This address does not answer to this method")
    CLUSTER_BUSY = (409, "The cluster has an operation that has not ended")
    CLUSTER_CHANGED = (409, "The cluster's specification has just been changed")
    CLUSTER_ID_TAKEN = (409, "The Kafka cluster is registered under another name")
    PLAN_NOT_MADE = (409, "The plan has not been made")
    MIGRATION_ENDED = (409, "The migration has ended")
    BEGIN_NOT_NAMED = (409, "A resume would begin what cannot be undone")
    COMMAND_REFUSED = (409, "The migration refused the command")
    ROLLBACK_REFUSED = (409, "The migration refused the rollback")
    NO_WAY_BACK = (409, "A rollback is not possible now")
    CALL_UNDER_WAY = (409, "The same call is still running")
    BODY_TOO_LARGE = (413, "The body is too large")
    WRONG_HOST = (421, "The request is meant for another host")
    INVALID_REQUEST = (422, "The request is not valid")
    IDEMPOTENCY_KEY_REUSED = (422, "The idempotency key belongs to another call")
    PLAN_BLOCKED = (422, "The plan has blockers")
    PLAN_OUTDATED = (422, "The plan is outdated")
    INTERNAL_ERROR = (500, "The server failed")
    TEMPORAL_REFUSED = (502, "Temporal refused the call")
    OBSERVATION_FAILED = (502, "The cluster could not be observed")
    LEDGER_UNAVAILABLE = (503, "The ledger does not answer")
    TEMPORAL_UNAVAILABLE = (503, "Temporal does not answer")
    IDENTITY_UNAVAILABLE = (503, "The identity provider does not answer")
    ARTEFACTS_UNAVAILABLE = (503, "The rows of the report cannot be read")
    NOT_READY = (503, "A part that is needed is missing")
    NO_WORKER = (504, "No worker answered")

    @property
    def code(self) -> str:
        return self.name.lower().replace("_", "-")

    @property
    def status(self) -> int:
        return self.value[0]

    @property
    def title(self) -> str:
        return self.value[1]


class FieldError(BaseModel):
    """One field that is not valid. `field` is dotted, e.g. `brokers.0.host`; empty for the whole."""

    where: str = Field(description="`body`, `path`, `query` or `header`")
    field: str
    message: str


class ProblemBody(BaseModel):
    """The body of every error. Members that say nothing about a problem are left out."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description=f"`{TYPE_PREFIX}<code>`: explained in docs/problems/<code>.md")
    title: str
    status: int
    code: str
    docs: str = Field(description="Its page in the documentation, as in blockers and findings.")
    detail: str = Field(description="What was found, and what to do.")
    errors: list[FieldError] | None = Field(default=None, description="With `invalid-request`: which fields.")
    links: dict[str, str] | None = Field(default=None, description="What blocks it, e.g. `migration`.")
    gate: str | None = Field(default=None, description="With `begin-not-named`: the gate whose approval is armed.")
    missing: list[str] | None = Field(default=None, description="With `not-ready`: what is missing.")


class Problem(Exception):
    """Raise it anywhere below a route: it becomes the answer."""

    def __init__(
        self,
        kind: ProblemKind,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **members: Any,  # noqa: ANN401 - whatever JSON a problem's page describes
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.members = members


def retry_later(kind: ProblemKind, detail: str, **members: Any) -> Problem:  # noqa: ANN401 - as above
    """A problem that may have passed when the caller comes back."""
    return Problem(kind, detail, headers={"Retry-After": str(RETRY_AFTER_SECONDS)}, **members)


def invalid_request(errors: Sequence[FieldError]) -> Problem:
    fields = ", ".join(error.field or error.where for error in errors)
    return Problem(
        ProblemKind.INVALID_REQUEST,
        f"Correct these fields and send it again: {fields}",
        errors=[error.model_dump() for error in errors],
    )


def answer_of(problem: Problem) -> JSONResponse:
    """The response that tells a problem."""
    kind = problem.kind
    body = {
        "type": f"{TYPE_PREFIX}{kind.code}",
        "title": kind.title,
        "status": kind.status,
        "code": kind.code,
        "docs": f"docs/problems/{kind.code}.md",
        "detail": problem.detail,
        **problem.members,
    }
    return JSONResponse(body, status_code=kind.status, headers=problem.headers, media_type=MEDIA_TYPE)
