"""`Blocker`: one cause why nothing happens, in the operator's words, with what to do."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from domain.pages import docs_of


class Blocker(BaseModel):
    """`code`: a wait's reason, a guard (GF..), a check (PF..) or one of `blockers.md`; stable. `object`: what it is about.

    `since`: when it was first known; where nobody has written that down, the look that found it.
    """

    model_config = ConfigDict(frozen=True)

    code: str
    object: str
    observed: str
    expected: str
    fix: str
    since: datetime
    docs: str


def blocker(code: str, about: str, *, observed: str, expected: str, fix: str, since: datetime) -> Blocker:
    return Blocker(code=code, object=about, observed=observed, expected=expected, fix=fix, since=since, docs=docs_of(code))
