"""Which page of the documentation explains a code."""

BLOCKERS = "docs/blockers.md"
PAGE_OF = {"GF": "docs/guards.md", "PF": "docs/checks.md", "RH": "docs/plans.md", "PL": "docs/plans.md"}
"""By the code's first letters: guards, checks, rehearsals, and what has moved since a plan. All others are waits."""


def docs_of(code: str) -> str:
    """Page and anchor."""
    return f"{PAGE_OF.get(code[:2], BLOCKERS)}#{code.lower()}"
