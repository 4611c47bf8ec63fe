"""A clean stop that takes longer than it may."""

from domain.errors import Transient, Unsafe
from domain.policy import RollPolicy


def does_not_stop(name: str, policy: RollPolicy, error: Transient) -> Unsafe:
    """Nobody kills it: it may be about to end."""
    limit = f"policy.stop_deadline, {policy.stop_deadline.total_seconds():g} s"
    return Unsafe(
        f"{name} does not stop within {limit}, and is never killed: {error}. Wait until it has ended, or stop it, then "
        "resume. If other nodes need longer too, that policy is too short for this cluster"
    )
