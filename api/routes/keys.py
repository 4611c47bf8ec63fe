"""`/keys`: API keys of people and programs, made and revoked by admins."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Self

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field, model_validator

from api.answers.outgoing import Outgoing
from api.answers.problems import Problem, ProblemKind
from api.people.access import may, principal_of
from api.people.credentials import new_key
from api.requests import ClusterName, Incoming
from api.running.audit import call_of
from api.wiring import UsableWiring
from domain.policy import Duration
from domain.principals import ApiKey, Permission, Role
from domain.records import EventDraft

KeyId = Annotated[str, Path(alias="key_id", pattern=r"^[0-9a-f]{12}$")]

router = APIRouter(prefix="/keys", tags=["people"], dependencies=[may(Permission.ADMINISTER)])


class KeyOrder(Incoming):
    """`POST /keys`. Two keys of one `principal` are one person: what one asks for, the other cannot approve."""

    principal: str = Field(pattern=r"^[a-z0-9][a-z0-9._@+-]{0,99}$", description="The owner, as events name it.")
    roles: list[Role] = Field(min_length=1, max_length=len(Role))
    clusters: Annotated[list[ClusterName], Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="The only clusters that it may see and change. `null`: all."
    )
    expires_after: Duration = Field(default=timedelta(days=90), gt=timedelta(0), le=timedelta(days=366))

    @model_validator(mode="after")
    def _refuse_admins_of_some_clusters(self) -> Self:
        if Role.ADMIN in self.roles and self.clusters is not None:
            raise ValueError("An admin makes keys for all clusters: leave clusters out, or the role admin")
        return self


class KeyAnswer(Outgoing):
    """A key, without its secret. `id` is how it begins: `keeperless_<id>_…`."""

    id: str
    principal: str
    roles: list[Role]
    clusters: list[str] | None
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None
    revoked_by: str | None

    @classmethod
    def of(cls, key: ApiKey) -> "KeyAnswer":
        return cls.model_validate(key.model_dump(exclude={"secret_hash"}))


class NewKeyAnswer(KeyAnswer):
    """With the key itself, which is shown this once."""

    key: str


class KeyList(Outgoing):
    """Newest first."""

    items: list[KeyAnswer]


@router.post("", status_code=201)
async def make_key(asked: KeyOrder, request: Request, response: Response, wiring: UsableWiring) -> NewKeyAnswer:
    """Make an API key. It is shown once, in this answer, which `Idempotency-Key` does not repeat."""
    now, by = datetime.now(UTC), principal_of(request).name
    clusters = None if asked.clusters is None else tuple(sorted(set(asked.clusters)))
    made = new_key(asked.principal, tuple(asked.roles), clusters, by, now, asked.expires_after)
    await wiring.people.add_key(made.record, key_made(made.record))
    response.headers["Cache-Control"] = "no-store"
    return NewKeyAnswer(key=made.text, **KeyAnswer.of(made.record).model_dump())


@router.get("")
async def list_keys(wiring: UsableWiring) -> KeyList:
    """All keys, newest first, revoked and expired ones too."""
    return KeyList(items=[KeyAnswer.of(key) for key in await wiring.people.all_keys()])


@router.delete("/{key_id}")
async def revoke_key(key_id: KeyId, request: Request, wiring: UsableWiring) -> KeyAnswer:
    """Revoke a key, and with it the sessions that it was exchanged for. Immediately and permanently."""
    call_of(request).about = key_id
    key = await wiring.people.revoke(key_id, principal_of(request).name)
    if key is None:
        raise Problem(ProblemKind.KEY_NOT_FOUND, "GET /keys lists those that exist.")
    return KeyAnswer.of(key)


def key_made(key: ApiKey) -> EventDraft:
    """The event that says who made a key, for whom."""
    data = KeyAnswer.of(key).model_dump(
        mode="json", include={"id", "principal", "roles", "clusters", "expires_at", "created_by"}
    )
    return EventDraft(key=f"key/{key.id}", kind="key-made", cluster="", at=key.created_at, data=data)
