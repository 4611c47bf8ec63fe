"""`Perch`: a broker at which canaries sit for a moment, and what is asked and seen there."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from activities.claims import ensure_not_superseded
from activities.ports.kafka import KafkaClient
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperTree
from domain.canaries import to_remove
from domain.cluster import ClusterSpec
from domain.contracts import StepRequest
from domain.errors import Transient

USUAL_PAUSE = 0.1
"""Seconds between two looks at what was made, at most."""


@dataclass(frozen=True)
class Perch:
    """One broker, one attempt. `deadline`: of all waits, by `time.monotonic`. `tree`: `None` once nobody needs ZooKeeper."""

    request: StepRequest
    ports: Ports
    spec: ClusterSpec
    client: KafkaClient
    tree: ZooKeeperTree | None
    name: str
    has_authorizer: bool
    deadline: float

    @property
    def broker(self) -> int:
        return self.request.step.node

    async def allowed(self) -> KafkaClient:
        """The client, for an effect: the fence is asked right before."""
        await ensure_not_superseded(self.request, self.ports)
        return self.client

    async def until(self, is_so: Callable[[], Awaitable[bool]], what: str) -> None:
        """Stores learn of a change later: look until it is so. `Transient` at the deadline."""
        while not await is_so():
            if time.monotonic() > self.deadline:
                raise Transient(f"{what}: not seen in {self.request.policy.restart_deadline.total_seconds():g} s")
            await asyncio.sleep(min(USUAL_PAUSE, self.request.policy.poll_interval.total_seconds()))

    async def znode(self, path: str) -> bytes | None:
        found = await self.tree.get(path) if self.tree is not None else None
        return None if found is None else found.data

    async def config_in_zookeeper(self, path: str, name: str) -> str | None:
        """A config of an entity; `None` also where there is no such entity."""
        data = await self.znode(path)
        if not data:
            return None
        configs = configs_in(path, data)
        return str(configs[name]) if name in configs else None

    def ours(self, names: Iterable[str]) -> tuple[str, ...]:
        """Of the names that were found those that this attempt may remove."""
        return to_remove(names, self.request.migration_id, self.broker)


def configs_in(path: str, data: bytes) -> dict[str, Any]:
    """What a znode below `/config` says."""
    try:
        return dict(json.loads(data)["config"])
    except (ValueError, KeyError, TypeError) as error:
        raise Transient(f"{path} in ZooKeeper holds what Kafka does not write") from error
