"""Which of the forms that we have a caller likes best, by its `Accept` header (RFC 9110, section 12.5.1)."""

import re
from collections.abc import Sequence

WEIGHT = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")


def preferred(accept: str, offered: Sequence[str]) -> str:
    """The best liked; the first of those that are liked equally, and where none is liked: a page is better than a refusal."""
    likings = [_liking(part) for part in accept.split(",") if part.strip()]
    return max(offered, key=lambda media_type: _quality(media_type, likings))


def _liking(part: str) -> tuple[str, float]:
    pattern, *parameters = (piece.strip().lower() for piece in part.split(";"))
    weights = [_number(value) for name, _, value in (p.partition("=") for p in parameters) if name.strip() == "q"]
    return pattern, weights[0] if weights else 1.0


def _number(text: str) -> float:
    """A weight that cannot be read is none."""
    return float(text) if WEIGHT.fullmatch(text.strip()) else 0.0


def _quality(media_type: str, likings: Sequence[tuple[str, float]]) -> float:
    """By the most exact pattern that fits."""
    patterns = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
    for pattern in patterns:
        weights = [weight for named, weight in likings if named == pattern]
        if weights:
            return max(weights)
    return 0.0
