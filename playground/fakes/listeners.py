"""Who answers at a simulated controller's address: its process, or a stranger's."""

from activities.ports.kafka import LookedUp
from playground.fakes.cluster import FakeCluster


class FakeListeners:
    """`Listeners`. `strangers`: controllers beside whose pid file somebody has started another process.

    `lingering`: how often the sockets of dead processes still accept, all in all: a busy kernel closes them a moment later.
    """

    def __init__(self, cluster: FakeCluster, strangers: tuple[int, ...] = (), lingering: int = 0) -> None:
        self._cluster, self.strangers, self.lingering = cluster, strangers, lingering

    async def is_answering(self, host: str, port: int) -> bool:
        node = next(c for c in self._cluster.spec.controllers if (c.host, c.port) == (host, port))
        if node.id in self._cluster.faults.unreached:
            return False
        if node.id in self.strangers or self._cluster.nodes[node.id].process is not None:
            return True
        self.lingering -= 1
        return self.lingering >= 0

    async def is_cut_off(self, host: str, port: int) -> bool:
        return False

    async def look_up(self, host: str) -> LookedUp:
        return LookedUp()
