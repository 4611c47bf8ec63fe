"""What happens before and after calls of a port: faults, other people, the death of a worker."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

from activities.ports.nodes import NodeDrivers
from activities.ports.zookeeper import ZooKeepers
from domain.cluster import NodeSpec
from domain.records import ClusterRecord

Hook = Callable[[], Awaitable[None]]
Hooks = Mapping[str, Hook]


class Killed(BaseException):
    """The worker is gone: nobody catches this."""


class Hooked:
    """A port with something that happens before and after its calls, by their names."""

    def __init__(self, port: object, before: Hooks, after: Hooks) -> None:
        self._port, self._before, self._after = port, before, after

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the port has
        found = getattr(self._port, name)
        return partial(self._call, name, found) if asyncio.iscoroutinefunction(found) else found

    async def _call(self, name: str, method: Callable[..., Awaitable[object]], *arguments: object) -> object:
        if name in self._before:
            await self._before[name]()
        answer = await method(*arguments)
        if name in self._after:
            await self._after[name]()
        return answer

    async def connect(self, cluster: ClusterRecord) -> "Hooked":
        return Hooked(await cast("ZooKeepers", self._port).connect(cluster), self._before, self._after)

    def driver(self, node: NodeSpec) -> "Hooked":
        return Hooked(cast("NodeDrivers", self._port).driver(node), self._before, self._after)


def once(hook: Hook) -> Hook:
    """A hook that happens once; calls at the same time wait until it has."""
    begun: list[asyncio.Task[None]] = []

    async def shared() -> None:
        if not begun:
            begun.append(asyncio.ensure_future(hook()))
        await begun[0]

    return shared
