"""The base of all that goes out."""

from pydantic import BaseModel, ConfigDict


class Outgoing(BaseModel):
    """Every field is always there: `null` says that there is nothing, absence is never an answer."""

    model_config = ConfigDict(frozen=True)
