"""Bytes of the quorum's log, as Kafka would write them: batches built by another implementation than our reader's."""

import struct
from collections.abc import Sequence

from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.util import calc_crc32c

from domain.quorum_log.record_types import RecordType

CONTROL = 0x20
SOME_TIME = 1_700_000_000_000


def batch(base: int, records: Sequence[tuple[int, bytes]], frame: int = 1) -> bytes:
    """A batch of metadata records, each an api key and a message of version 0."""
    return raw_batch(base, [(None, value(key, body, frame=frame)) for key, body in records])


def registration(controller_id: int) -> tuple[int, bytes]:
    """A `RegisterControllerRecord`: id, incarnation, ready to migrate, no endpoints, no features, no tags."""
    return RecordType.REGISTER_CONTROLLER.value, struct.pack(">i16s?bbb", controller_id, bytes(range(16)), True, 1, 1, 0)


def control(base: int, kind: int) -> bytes:
    """A control batch of one record, e.g. 2 LEADER_CHANGE, 3 SNAPSHOT_HEADER, 4 SNAPSHOT_FOOTER."""
    return raw_batch(base, [(struct.pack(">hh", 0, kind), b"\0\0")], CONTROL)


def value(api_key: int, body: bytes, *, version: int = 0, frame: int = 1) -> bytes:
    """A record's value: frame version, api key, version, message."""
    return bytes((frame, api_key, version)) + body


def raw_batch(base: int, records: Sequence[tuple[bytes | None, bytes]], attributes: int = 0) -> bytes:
    """A batch of keys and values, with a checksum that is right for these attributes."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 24)
    for delta, (key, content) in enumerate(records):
        builder.append(delta, SOME_TIME + delta, key, content, [])
    built = bytearray(builder.build())
    struct.pack_into(">q", built, 0, base)
    struct.pack_into(">h", built, 21, attributes)
    struct.pack_into(">I", built, 17, calc_crc32c(bytes(built[21:])))
    return bytes(built)
