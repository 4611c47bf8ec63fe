"""The three requests of a stand-in broker, byte for byte: no Python client has messages between brokers and controllers.

Layouts: BrokerRegistrationRequest.json (62), BrokerHeartbeatRequest.json (63), ApiVersionsRequest.json (18) and their
responses in kafka-clients 3.9; the encoding of flexible versions: KIP-482. Lengths of compact texts and arrays count one
more; 0 is null.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

T = TypeVar("T")

API_VERSIONS, REGISTRATION, HEARTBEAT = 18, 62, 63
API_VERSIONS_VERSION, REGISTRATION_VERSION, HEARTBEAT_VERSION = 3, 4, 1
FINALIZED_FEATURES = 2
"""The tag of these in an answer to ApiVersions."""
CLIENT_ID = b"keeperless-rehearsal"
NO_TAGS = b"\0"


@dataclass(frozen=True)
class Listener:
    """`protocol`: Kafka's number, 0 for PLAINTEXT."""

    name: str
    host: str
    port: int
    protocol: int


@dataclass(frozen=True)
class Registration:
    """What a hybrid broker says of itself."""

    broker_id: int
    cluster_id: str
    listeners: tuple[Listener, ...]
    rack: str | None = None


def varint(value: int) -> bytes:
    """Unsigned."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def text(value: str | None) -> bytes:
    if value is None:
        return varint(0)
    encoded = value.encode()
    return varint(len(encoded) + 1) + encoded


def array(parts: Sequence[bytes]) -> bytes:
    return varint(len(parts) + 1) + b"".join(parts)


def framed(api: int, version: int, correlation: int, body: bytes) -> bytes:
    """With its length and a header of version 2, whose client id is still a classic text."""
    header = struct.pack(">hhih", api, version, correlation, len(CLIENT_ID)) + CLIENT_ID + NO_TAGS
    return struct.pack(">i", len(header) + len(body)) + header + body


def registration(asked: Registration, incarnation: UUID, directory: UUID, level: int) -> bytes:
    """The body, version 4. `directory`: the id of its only log directory. `level`: of `metadata.version`, the only one that it
    supports.
    """
    listeners = [
        text(one.name) + text(one.host) + struct.pack(">Hh", one.port, one.protocol) + NO_TAGS for one in asked.listeners
    ]
    feature = text("metadata.version") + struct.pack(">hh", level, level) + NO_TAGS
    return b"".join(
        (
            struct.pack(">i", asked.broker_id),
            text(asked.cluster_id),
            incarnation.bytes,
            array(listeners),
            array([feature]),
            text(asked.rack),
            b"\1",  # IsMigratingZkBroker
            array([directory.bytes]),
            struct.pack(">q", -1),  # PreviousBrokerEpoch
            NO_TAGS,
        )
    )


def heartbeat(broker_id: int, epoch: int, offset: int) -> bytes:
    """The body, version 1: wants to be unfenced, and stays. `offset`: how far it has read the metadata."""
    return struct.pack(">iqq??", broker_id, epoch, offset, False, False) + NO_TAGS


def api_versions() -> bytes:
    return text("keeperless") + text("1") + NO_TAGS


class Damaged(ValueError):
    """An answer that is not of its form."""


class Reader:
    """Takes an answer apart, from its first byte on."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def fixed(self, layout: str) -> int:
        one = struct.Struct(f">{layout}")
        (value,) = one.unpack(self.take(one.size))
        return int(value)

    def take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise Damaged(f"an answer of {len(self._data)} bytes ends where {size} more were expected")
        self._at += size
        return found

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.fixed("B")) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def text(self) -> str:
        return self.take(max(0, self.varint() - 1)).decode()

    def array(self, item: Callable[["Reader"], T]) -> list[T]:
        return [item(self) for _ in range(self.varint() - 1)]

    def tags(self) -> dict[int, bytes]:
        return {self.varint(): self.take(self.varint()) for _ in range(self.varint())}


def registered(answer: bytes) -> tuple[int, int]:
    """Error code, and the broker's epoch, of an answer without its length."""
    reader = Reader(answer)
    reader.fixed("i"), reader.tags(), reader.fixed("i")
    return reader.fixed("h"), reader.fixed("q")


def finalized_level(answer: bytes, feature: str = "metadata.version") -> int | None:
    """The level that the quorum has finalized; `None` before it says one. The header of this answer has no tags (KIP-511)."""
    reader = Reader(answer)
    reader.fixed("i"), reader.fixed("h")
    reader.array(_skip_version)
    reader.fixed("i")
    told = reader.tags().get(FINALIZED_FEATURES)
    return dict(Reader(told).array(_level)).get(feature) if told is not None else None


def _skip_version(reader: Reader) -> None:
    reader.take(6)
    reader.tags()


def _level(reader: Reader) -> tuple[str, int]:
    name, highest = reader.text(), reader.fixed("h")
    reader.fixed("h"), reader.tags()
    return name, highest
