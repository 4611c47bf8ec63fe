"""How long certificates have to be valid."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from domain.decisions import Finding

LEAST_VALIDITY = timedelta(days=30)
"""A certificate has to outlive the migration and its soak."""


def until_finding(code: str, what: str, until: datetime, now: datetime) -> Iterator[Finding]:
    """One where it ends too soon."""
    if until - now < LEAST_VALIDITY:
        yield Finding(
            code=code,
            object=what,
            observed=f"its certificate is valid until {until:%Y-%m-%d %H:%M}",
            expected=f"{LEAST_VALIDITY.days} days or more from now",
            fix="Renew it first: the migration must not end with an expired certificate.",
        )
