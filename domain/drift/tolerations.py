"""Differences that people have accepted."""

import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Toleration(BaseModel):
    """A difference that is accepted. Empty text matches any. `by` and `reason` stand in every report that it touches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    record: Annotated[str, Field(min_length=1, description="Kind of row, such as topic-config.")]
    key: Annotated[str, Field(description="The row's key as a report shows it; empty for all rows of the kind.")] = ""
    field: Annotated[str, Field(description="The field; empty for all, and for rows that are missing on one side.")] = ""
    by: Annotated[str, Field(min_length=1)]
    reason: Annotated[str, Field(min_length=1)]

    @property
    def named(self) -> str:
        """Of which rows, by whom and why. Key and field are quoted, so that no other toleration has the same text."""
        key = f"key {json.dumps(self.key)}" if self.key else "any key"
        field = f"field {json.dumps(self.field)}" if self.field else "any field"
        return f"{key}, {field}: {self.by}: {self.reason}"
