"""The longest pause: how long a client's write waits for its acknowledgement while a broker restarts.

A topic of ours has replicas on the broker that restarts and on others. Each of its partitions is written to ten times a second,
acks=all, as clients do: at the leader, who is looked up again whenever a write fails, until it is acknowledged. The longest
that one has waited is the pause, good to a tenth of a second.

Begun after the mark is there, which owes the topic's removal (`canaries`), and before the file is written; it counts only once
every partition has been written to. A step that finds the node stopped, by another attempt or otherwise, has nothing to
measure: unknown.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from activities.claims import ensure_not_superseded
from activities.ports.kafka import KafkaClient
from activities.ports.ports import Ports
from activities.rolling.marking import Target
from domain.canaries import WAY_ON, pause_assignment, pause_min_isr, pause_topic_of
from domain.cluster import Role
from domain.contracts import StepRequest
from domain.errors import Permanent, Transient

EVERY_SECONDS = 0.1
RETRY_SECONDS = 0.02
BEGIN_SECONDS = 10.0
"""Until every partition of the new topic is written to: half of what a look may be old."""
MIN_ISR = "min.insync.replicas"
MESSAGE = b"keeperless"


class PauseMeter:
    """Leave it, and nothing of it goes on; the topic stays until `try_canaries`."""

    def __init__(self, request: StepRequest, ports: Ports, clock: Callable[[], float] = time.monotonic) -> None:
        self._request, self._ports, self._clock = request, ports, clock
        self._client: KafkaClient | None = None
        self._writers: list[asyncio.Task[None]] = []
        self._topic = pause_topic_of(request.migration_id, request.step.node)
        self._leaders: dict[int, int | None] = {}
        """As the last look told them."""
        self._longest = 0.0
        self._waiting: dict[int, float] = {}
        """Since when a partition's write has been waiting."""
        self._is_over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        await asyncio.gather(*self._writers, return_exceptions=True)
        await self._close()

    async def _close(self) -> None:
        if self._client is not None:
            await self._client.close()
        self._client = None

    async def begin(self, targets: Sequence[Target]) -> str | None:
        """Why it cannot be measured; `None` once it is, or where nobody asked. `targets`: those that restart together."""
        is_of_brokers = all(target.cluster.spec.role(target.node.id) is Role.BROKER for target in targets)
        if self._request.policy.max_client_pause is None or self._request.revert is not None or not is_of_brokers:
            return None
        if not all([(await target.driver.process()).is_running for target in targets]):
            return None
        try:
            self._client = await self._ports.kafka.open_client(targets[0].cluster)
            deadline = time.monotonic() + BEGIN_SECONDS
            await self._make_topic(self._client, [target.node.id for target in targets], deadline)
            await self._await_first_writes(self._client, deadline)
        except (Transient, Permanent) as error:
            await self._close()
            why = f"the longest pause of clients cannot be measured on topic {self._topic}: {error}"
            return f"{why}. Nothing was restarted. {WAY_ON}"
        self._writers = [asyncio.create_task(self._write_on(self._client, number)) for number in self._leaders]
        return None

    def measured(self) -> float | None:
        """Seconds, what is waited for now included; `None` where nothing is measured."""
        if not self._writers:
            return None
        for writer in self._writers:
            if writer.done():
                writer.result()
        now = self._clock()
        return max([self._longest, *(now - since for since in self._waiting.values())])

    def why_hold(self, targets: Sequence[Target]) -> str | None:
        """Why a person has to look before the next restart."""
        measured, allowed = self.measured(), self._request.policy.max_client_pause
        if measured is None or allowed is None or measured <= allowed.total_seconds():
            return None
        names = ", ".join(target.name for target in targets)
        return (
            f"clients waited {measured:.1f} s for an acknowledgement while {names} restarted, and the policy allows "
            f"{allowed.total_seconds():g} s. Find what was slow: a controlled shutdown, a follower, an election. Then "
            f"resume, and the next node follows ({names} is not restarted again), or roll back."
        )

    async def _make_topic(self, client: KafkaClient, together: Sequence[int], deadline: float) -> None:
        """One that an earlier attempt has left may have other replicas than are needed now: nothing would be measured on it. It
        is deleted, and made anew once no broker knows it. One that is still being deleted counts as there to whoever creates
        it: so it is created until somebody knows it.
        """
        alive, broker = await client.alive(), together[0]
        if not set(together) <= set(alive):
            raise Transient(f"brokers {together} are not all among those that serve: {alive}")
        assignment = pause_assignment(alive, together)
        default = int(await client.broker_config(broker, MIN_ISR) or "1")
        configs = {MIN_ISR: str(pause_min_isr(len(assignment[0]), default))}
        wanted = dict(enumerate(assignment))
        known = await self._known(client, alive)
        while not known or any(replicas != wanted for replicas in known):
            if time.monotonic() > deadline:
                raise Transient(f"in {BEGIN_SECONDS:g} s no broker knew it with the replicas {list(assignment)}")
            await ensure_not_superseded(self._request, self._ports)
            if known:
                await client.delete_topic(broker, self._topic)
            else:
                await client.create_topic(broker, self._topic, assignment, configs)
            await asyncio.sleep(RETRY_SECONDS)
            known = await self._known(client, alive)

    async def _known(self, client: KafkaClient, brokers: Sequence[int]) -> list[dict[int, tuple[int, ...]]]:
        """The topic's replicas, as each broker says that knows it."""
        told = [await client.led(self._topic, broker) for broker in brokers]
        return [led.replicas for led in told if led is not None]

    async def _await_first_writes(self, client: KafkaClient, deadline: float) -> None:
        written: set[int] = set()
        failed: str | None = f"no broker knows topic {self._topic} yet"
        while not self._leaders or written < self._leaders.keys():
            await self._look_up(client)
            for number in self._leaders.keys() - written:
                failed = await self._write(client, number)
                written |= {number} if failed is None else set()
            if failed is not None and time.monotonic() > deadline:
                raise Transient(f"no acknowledgement in {BEGIN_SECONDS:g} s: {failed}")
            await asyncio.sleep(RETRY_SECONDS)

    async def _write_on(self, client: KafkaClient, partition: int) -> None:
        while not self._is_over:
            since = self._waiting[partition] = self._clock()
            while not self._is_over:
                if await self._write(client, partition) is None:
                    break
                await asyncio.sleep(RETRY_SECONDS)
                await self._look_up(client)
            del self._waiting[partition]
            took = self._clock() - since
            self._longest = max(self._longest, took)
            await asyncio.sleep(max(0.0, EVERY_SECONDS - took))

    async def _look_up(self, client: KafkaClient) -> None:
        """Who leads. Nobody can tell for a moment: then it stays as it was told last."""
        try:
            led = await client.led(self._topic)
        except (Transient, Permanent):
            led = None
        if led is not None:
            self._leaders.update(led.leaders)

    async def _write(self, client: KafkaClient, partition: int) -> str | None:
        """One attempt at one message: why it was not acknowledged."""
        leader = self._leaders[partition]
        if leader is None:
            return f"{self._topic}-{partition} has no leader"
        try:
            await client.produce(leader, self._topic, partition, MESSAGE)
        except (Transient, Permanent) as error:
            return str(error)
        return None
