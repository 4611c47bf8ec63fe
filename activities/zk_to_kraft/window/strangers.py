"""Who answers at the controllers' addresses, and is not the process of a pid file: somebody has started one another way."""

import asyncio
import time

from activities.concurrently import all_of
from activities.ports.kafka import Listeners
from domain.cluster import ClusterSpec, ControllerSpec
from domain.errors import Obstacle, Transient


async def answering(spec: ClusterSpec, listeners: Listeners) -> list[tuple[int, str]]:
    """Controllers at whose address somebody answers, by id and name."""
    answers = await all_of(*(_is_answering(c, listeners) for c in spec.controllers))
    return [(c.id, spec.node_name(c.id)) for c, is_there in zip(spec.controllers, answers, strict=True) if is_there]


async def _is_answering(controller: ControllerSpec, listeners: Listeners) -> bool:
    """A name that nobody resolves any more, as of a host that is lost, keeps nobody from the way back."""
    try:
        return await listeners.is_answering(controller.host, controller.port)
    except Transient as error:
        if error.obstacle is not Obstacle.UNRESOLVED:
            raise
        return False


async def still_answering(spec: ClusterSpec, listeners: Listeners, settle: float, poll: float) -> list[str]:
    """Who answers although every process is gone. Their sockets can live a moment longer than they did: `settle` seconds."""
    end = time.monotonic() + settle
    while True:
        found = [name for _, name in await answering(spec, listeners)]
        if not found or time.monotonic() > end:
            return found
        await asyncio.sleep(poll)


def complaint(names: list[str]) -> str:
    return (
        f"a process answers at the address of {', '.join(names)}, and it is not the one in the pid file. A controller that "
        "was started another way could claim the cluster again: stop it."
    )
