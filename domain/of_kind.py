"""`OfKind`: a part of a request or a record whose fields depend on the kind of migration.

Payloads and records are declared with the base, and keep the fields of the kind unread, as JSON: their own reader needs no
registry, so that workflow histories and ledger rows can be read for a kind that was registered after this module was loaded.
Who knows the kind reads them with `of`. Requests are read with the kind's own type, which refuses unknown fields.
"""

from typing import Self

from pydantic import BaseModel, ConfigDict, SerializeAsAny


class OfKind(BaseModel):
    """Frozen. The base keeps unknown fields; a kind's own type sets `extra="forbid"`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    def __eq__(self, other: object) -> bool:
        """Read with the kind's own type or not: the same fields are the same."""
        return isinstance(other, OfKind) and self.model_dump(mode="json") == other.model_dump(mode="json")

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @classmethod
    def of(cls, carried: "OfKind") -> Self:
        """The same, with the fields of this kind. Raises `ValidationError` if it is another kind's."""
        return carried if isinstance(carried, cls) else cls.model_validate_json(carried.model_dump_json())


class Wanted(OfKind):
    """What a migration leads to: the part of a cluster that is not there before it."""


AnyWanted = SerializeAsAny[Wanted]
"""A field for what any kind wants: written with all that it has."""
