"""Writes of the active controller that have failed at ZooKeeper, by its log: in which words, and how that is mended. Pure.

Kafka 3.9 writes states of partitions and topics in batches, and of a batch that fails it logs neither error nor znode
(ZkTopicMigrationClient: a MigrationClientException without a cause, of which KRaftMigrationDriver logs the cause only). Nor are
brokers in migration mode told of that change: that comes after the write.
"""

from collections.abc import Collection, Iterable, Sequence

from domain.diagnosis.logs.catalogue import Told
from domain.diagnosis.logs.complaints import with_thrown
from domain.diagnosis.logs.lines import Found, all_lasting, first_of, found_in, of_this_process
from domain.observed.observation import Suspect
from domain.zk_to_kraft.migration_lines import (
    CHECK_OP_FAILED,
    CLAIM_REFUSED,
    STEP_OF_MIGRATION,
    UNHANDLED,
    UNKNOWN_CONFIG,
    WRITE_FAILED,
    WRITE_REFUSED,
)

GIVEN_UP = (WRITE_REFUSED, WRITE_FAILED, UNHANDLED)
"""What the driver does not try again."""
TOLD_BY_WHAT_WAS_THROWN = (CHECK_OP_FAILED, CLAIM_REFUSED, UNKNOWN_CONFIG)
"""Kinds of their own below UNHANDLED."""
OF_A_CHANGE = "MetadataChangeEvent"


def is_of_a_change(found: Found) -> bool:
    return OF_A_CHANGE in found.quote


def failed_in(lines: Sequence[str], kinds: Sequence[Told]) -> tuple[Found, ...]:
    """Of each kind what counts last, but for errors that are told by what was thrown."""
    lasting = all_lasting(lines, [kind for kind in kinds if kind.is_lasting])
    last = {found.told.name: found for found in lasting if not _is_told_by_what_was_thrown(found)}
    last |= {found.told.name: found for found in found_in(lines, [kind for kind in kinds if not kind.is_lasting])}
    return tuple(last[kind.name] for kind in kinds if kind.name in last)


def _is_told_by_what_was_thrown(found: Found) -> bool:
    return found.told is UNHANDLED and any(first_of(line, TOLD_BY_WHAT_WAS_THROWN) is not None for line in found.thrown)


def in_words(found: Found) -> str:
    """With what was thrown there; where Kafka has left that out, with what it is about."""
    words = with_thrown(found)
    if not is_without_error(found):
        return words
    where = f" (up to offset {found.named[0]} of the quorum's log)" if found.named else ""
    return f"{words}{where}, and not which: of a batch, as of topics and states of partitions, Kafka leaves that out"


def refused_in(lines: Sequence[str], strays: Collection[int]) -> Found | None:
    """What a controller has said of a change that ZooKeeper did not take, since it leads: the first that is not of what it
    cannot hold. `strays`: offsets of that in the quorum's log."""
    failed = (
        found for found in all_lasting(lines, GIVEN_UP) if is_of_a_change(found) and not _is_told_by_what_was_thrown(found)
    )
    return next((found for found in failed if not is_of_a_stray(found, strays)), None)


def has_begun_to_write(lines: Sequence[str]) -> bool:
    """Whether a controller's log has its step into dual write: what it could not write since stands below."""
    return any(map(STEP_OF_MIGRATION.search, of_this_process(lines)))


def offsets_of(strays: Iterable[Suspect]) -> list[int]:
    """Of what ZooKeeper cannot hold, where its being written has failed."""
    return [stray.offset for stray in strays if stray.is_lost_change]


TOLD_TOGETHER = 100
"""Records of the quorum's log: those that have come since the last event are one."""


def is_of_a_stray(found: Found, strays: Collection[int]) -> bool:
    """Whether that event had the record of something that ZooKeeper cannot hold: of it Kafka logs no error, and it is told."""
    if not found.named or not is_without_error(found):
        return False
    last = int(found.named[0])
    return any(0 <= last - offset < TOLD_TOGETHER for offset in strays)


def is_without_error(found: Found) -> bool:
    return found.told is WRITE_FAILED and is_of_a_change(found) and with_thrown(found) == found.quote
