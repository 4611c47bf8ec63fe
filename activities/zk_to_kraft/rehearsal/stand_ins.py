"""Brokers that are none: they register with the throw-away controller as hybrid brokers do, and go on beating.

Nobody listens at their endpoints: what the controller would send them it cannot. The copy does not wait for that.
"""

import asyncio
import contextlib
import json
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from uuid import uuid4

from activities.zk_to_kraft.rehearsal import wire
from activities.zk_to_kraft.rehearsal.wire import Listener, Registration

BEAT_SECONDS = 0.5
RETRY_SECONDS = 0.1
ANSWER_SECONDS = 10.0
MOST_ANSWER_BYTES = 1_000_000
PLAINTEXT = 0
FURTHEST = 2**62
"""A stand-in claims to have read all metadata, so that it is unfenced with its first beat."""
PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
ERRORS = {
    35: "UNSUPPORTED_VERSION: its inter.broker.protocol.version is not the controllers'",
    41: "NOT_CONTROLLER",
    104: "INCONSISTENT_CLUSTER_ID",
    101: "DUPLICATE_BROKER_REGISTRATION",
    119: "INVALID_REGISTRATION",
    31: "CLUSTER_AUTHORIZATION_FAILED",
}
NOT_YET = frozenset({7, 14, 15, 41, 101})
"""Errors of a quorum that is about to elect: a timeout, loading, not available, not the controller; or of an old registration.
Errors of a quorum that is about to elect: a timeout, loading, not available, not the controller; or of an old registration."""


class Refused(Exception):
    """The controller will not have this broker, and why."""


def listeners_in(znode: bytes, name: str) -> tuple[Listener, ...]:
    """What `/brokers/ids/N` says (kafka.zk.BrokerIdZNode). The inter-broker listener `name` is added where it has none: the
    controller looks for an endpoint of that name."""
    try:
        content = json.loads(znode)
    except ValueError:
        content = {}
    protocols = content.get("listener_security_protocol_map") or {}
    found = [_listener(endpoint, protocols) for endpoint in content.get("endpoints") or ()]
    if all(one.name != name for one in found):
        found.append(Listener(name, "127.0.0.1", 9, PLAINTEXT))
    return tuple(found)


def rack_in(znode: bytes) -> str | None:
    try:
        rack = json.loads(znode).get("rack")
    except ValueError:
        return None
    return rack if isinstance(rack, str) else None


def _listener(endpoint: str, protocols: Mapping[str, str]) -> Listener:
    name, _, address = endpoint.partition("://")
    host, _, port = address.rpartition(":")
    return Listener(name, host.strip("[]") or "localhost", int(port), PROTOCOLS.get(protocols.get(name, name), PLAINTEXT))


class Link:
    """One connection to the controller; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._correlation = reader, writer, 0

    @classmethod
    async def open(cls, host: str, port: int) -> "Link":
        return cls(*await asyncio.open_connection(host, port))

    async def ask(self, api: int, version: int, body: bytes) -> bytes:
        self._correlation += 1
        self._writer.write(wire.framed(api, version, self._correlation, body))
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._writer.drain()
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            if not 0 < size <= MOST_ANSWER_BYTES:
                raise wire.Damaged(f"an answer of {size} bytes")
            return await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.close()


Asking = Callable[[Link], Awaitable[int | None]]
"""`None`: not yet."""


class StandIns:
    """The level that they support is the one that the quorum itself tells. Registers all, then beats until `leave`."""

    def __init__(self, host: str, port: int, registrations: Sequence[Registration]) -> None:
        self._host, self._port, self._registrations = host, port, registrations
        self._beats: list[asyncio.Task[None]] = []

    async def register(self) -> int:
        """Returns the level when every one is registered. Raises `Refused`. Has no deadline of its own: whoever calls has."""
        level = await self._again(self._level)
        for each in self._registrations:
            body = wire.registration(each, uuid4(), uuid4(), level)
            epoch = await self._again(partial(self._register, each.broker_id, body))
            self._beats.append(asyncio.create_task(self._beat(each.broker_id, epoch)))
        return level

    async def leave(self) -> None:
        for beat in self._beats:
            beat.cancel()
        await asyncio.gather(*self._beats, return_exceptions=True)

    async def _again(self, ask: Asking) -> int:
        """Until the controller listens, has become active, and answers."""
        while True:
            with contextlib.suppress(OSError, EOFError, TimeoutError):
                link = await Link.open(self._host, self._port)
                try:
                    if (answer := await ask(link)) is not None:
                        return answer
                finally:
                    link.close()
            await asyncio.sleep(RETRY_SECONDS)

    async def _level(self, link: Link) -> int | None:
        return wire.finalized_level(await link.ask(wire.API_VERSIONS, wire.API_VERSIONS_VERSION, wire.api_versions()))

    async def _register(self, broker_id: int, body: bytes, link: Link) -> int | None:
        answer = await link.ask(wire.REGISTRATION, wire.REGISTRATION_VERSION, body)
        error, epoch = wire.registered(answer)
        if error in NOT_YET:
            return None
        if error:
            raise Refused(f"broker-{broker_id} would not be registered: {ERRORS.get(error, f'error {error}')}")
        return epoch

    async def _beat(self, broker_id: int, epoch: int) -> None:
        while True:
            await self._again(partial(self._beat_on, broker_id, epoch))

    async def _beat_on(self, broker_id: int, epoch: int, link: Link) -> int | None:
        while True:
            await link.ask(wire.HEARTBEAT, wire.HEARTBEAT_VERSION, wire.heartbeat(broker_id, epoch, FURTHEST))
            await asyncio.sleep(BEAT_SECONDS)
