"""Amounts as people say them."""

EXACT_BELOW_SECONDS = 90


def counted(count: int, one: str, many: str = "") -> str:
    """`1 blocker`, `2 blockers`, `51,253 record batches`; `many` where it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def roughly(seconds: float) -> str:
    """`about 40 seconds`, `about 2 minutes`: as exact as a guess can be."""
    if seconds < EXACT_BELOW_SECONDS:
        return f"about {max(10, round(seconds, -1)):.0f} seconds"
    return f"about {round(seconds / 60)} minutes"
