"""Who answers at a simulated controller's address: its process, or a stranger's."""

from playground.fakes.cluster import FakeCluster


class FakeListeners:
    """`Listeners`. `strangers`: controllers beside whose pid file somebody has started another process."""

    def __init__(self, cluster: FakeCluster, strangers: tuple[int, ...] = ()) -> None:
        self._cluster, self.strangers = cluster, strangers

    async def is_answering(self, host: str, port: int) -> bool:
        node = next(c for c in self._cluster.spec.controllers if (c.host, c.port) == (host, port))
        return node.id in self.strangers or self._cluster.nodes[node.id].process is not None
