"""Whether a quorum stays while controllers restart: the others have to be reached, and not only to follow.

A controller whose listener is shut fetches from the leader, has every record, and looks well by all of its gauges. It cannot be
asked for its vote, and nobody can follow it: it does not count in the majority that has to stay (promise 5).
"""

import asyncio
from collections.abc import Collection

from activities.ports.kafka import Listeners
from domain.cluster import ClusterSpec, ControllerSpec
from domain.errors import Transient


async def why_no_quorum_would_stay(spec: ClusterSpec, stopped: Collection[int], listeners: Listeners) -> str | None:
    """`stopped`: controllers that are to be. `None` where the others that are reached are a majority of all, or there is none.

    Where none accepts us, those to be stopped neither, it is our own way that is shut, and nothing is said of theirs.
    """
    others = [c for c in spec.controllers if c.id not in stopped]
    names = ", ".join(spec.node_name(i) for i in stopped)
    try:
        answers = await asyncio.gather(*(listeners.is_answering(c.host, c.port) for c in spec.controllers))
    except Transient as error:
        return f"{names}: whether the other controllers can be reached is not known: {error}"
    reached = {c.id for c, answers_us in zip(spec.controllers, answers, strict=True) if answers_us}
    shut = [c for c in others if c.id not in reached]
    if not others or not reached or 2 * (len(others) - len(shut)) > len(spec.controllers):
        return None
    return (
        f"{_places(spec, shut)}: no connection is accepted there within two seconds. Without {names} no majority of the "
        "controllers could vote and be followed. Nothing was stopped. Open the network path: a firewall, an IPsec policy, "
        "the listener's address"
    )


def _places(spec: ClusterSpec, shut: Collection[ControllerSpec]) -> str:
    return ", ".join(f"{spec.node_name(c.id)} at {c.host}:{c.port}" for c in shut)
