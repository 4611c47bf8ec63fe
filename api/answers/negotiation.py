"""Which of the forms that we have a caller likes best, by its `Accept` header (RFC 9110, section 12.5.1)."""

import re
from collections.abc import Sequence

from starlette.requests import Request

WEIGHT = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")


def form_for(request: Request, offered: Sequence[str]) -> str:
    """What `preferred` says of its `Accept`; of a request without one the first."""
    return preferred(request.headers.get("accept", "*/*"), offered)


def preferred(accept: str, offered: Sequence[str]) -> str:
    """The best liked; of those that are liked equally the one that is named most exactly, else the first. The first, too, where
    none is liked: a page is better than a refusal."""
    likings = [_liking(part) for part in accept.split(",") if part.strip()]
    return max(offered, key=lambda media_type: _quality(media_type, likings))


def _liking(part: str) -> tuple[str, float]:
    pattern, *parameters = (piece.strip().lower() for piece in part.split(";"))
    weights = [_number(value) for name, _, value in (p.partition("=") for p in parameters) if name.strip() == "q"]
    return pattern, weights[0] if weights else 1.0


def _number(text: str) -> float:
    """A weight that cannot be read is none."""
    return float(text) if WEIGHT.fullmatch(text.strip()) else 0.0


def _quality(media_type: str, likings: Sequence[tuple[str, float]]) -> tuple[float, int]:
    """By the most exact pattern that fits, and how exact that is."""
    patterns = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
    for vagueness, pattern in enumerate(patterns):
        weights = [weight for named, weight in likings if named == pattern]
        if weights:
            return max(weights), -vagueness
    return 0.0, -len(patterns)
