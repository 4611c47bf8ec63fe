"""Column types that mean the same on both databases: times in UTC, and models as JSON."""

import json
from datetime import UTC, datetime
from typing import Generic, TypeVar

from pydantic import BaseModel
from sqlalchemy import JSON, DateTime, Dialect
from sqlalchemy.types import TypeDecorator

Model = TypeVar("Model", bound=BaseModel)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, always aware and in UTC, to the microsecond. SQLite has no time zones: there the UTC text is stored.

    A naive time is refused: nobody knows which moment it is.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"the time {value} has no time zone: give an aware one")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class ModelJson(TypeDecorator[Model], Generic[Model]):
    """A pydantic model as JSON text. Not `jsonb`: that would rewrite numbers, and refuse the character NUL."""

    impl = JSON
    cache_ok = True

    def __init__(self, model: type[Model]) -> None:
        super().__init__()
        self.model = model

    def process_bind_param(self, value: Model | None, dialect: Dialect) -> object:
        # By way of text, because pydantic turns NaN (no JSON at all) into null only there.
        return None if value is None else json.loads(value.model_dump_json())

    def process_result_value(self, value: object, dialect: Dialect) -> Model | None:
        return None if value is None else self.model.model_validate(value)
