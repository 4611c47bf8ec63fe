"""Of which changes a controller says that it could not write them."""

import pytest

from domain.zk_to_kraft.causes.failed_writes import GIVEN_UP, failed_in, refused_in
from domain.zk_to_kraft.migration_lines import CHECK_OP_FAILED

STARTED = "[2026-11-26 05:00:00,000] INFO Registered `kafka:type=kafka.Log4jController` MBean (kafka.utils.Log4jController$)"
EVENT = "MetadataChangeEvent{provenance=MetadataProvenance(lastContainedOffset=%s, lastContainedEpoch=1), isSnapshot=false}"
FAILED = f"[2026-11-26 05:5%s:00,000] INFO Encountered ZooKeeper error during event {EVENT}. Will retry. (k.X)"
REFUSED = (
    f"[2026-11-26 05:5%s:30,000] ERROR Encountered zk migration fault: Encountered ZooKeeper authentication in {EVENT} (k.X)"
)
UNHANDLED = f"[2026-11-26 05:5%s:40,000] ERROR Encountered zk migration fault: Unhandled error in {EVENT} (k.X)"
THROWN = "java.lang.IllegalStateException: Topic foo not in image"
CHECKED = "java.lang.RuntimeException: Check op on KRaft Migration ZNode failed. Sent zkVersion = 812. This indicates"
OVER = "[2026-11-26 05:58:00,000] INFO 3001 transitioning from SYNC_KRAFT_TO_ZK to DUAL_WRITE state"


@pytest.mark.parametrize(
    ("lines", "strays", "at"),
    [
        ((), (), None),
        ((FAILED % (1, 900),), (), "900"),
        ((FAILED % (1, 900),), (890,), None),
        ((FAILED % (1, 500), FAILED % (2, 900)), (890,), "500"),
        ((FAILED % (1, 900), REFUSED % (2, 1000)), (890,), "1000"),
        ((REFUSED % (1, 500), OVER), (), None),
        ((REFUSED % (1, 500), STARTED), (), None),
        ((UNHANDLED % (1, 900), THROWN), (), "900"),
        ((UNHANDLED % (1, 900), CHECKED), (), None),
        ((UNHANDLED % (1, 900), "java.lang.RuntimeException: Unknown config resource type CLIENT_METRICS"), (), None),
        ((FAILED.replace("MetadataChangeEvent", "PollEvent") % (1, 5),), (), None),
    ],
)
def test_each_change_that_was_not_written_counts_but_for_what_zookeeper_cannot_hold(
    lines: tuple[str, ...], strays: tuple[int, ...], at: str | None
) -> None:
    """One of those, which somebody has been asked about, hides no other."""
    found = refused_in((STARTED, *lines), strays)
    assert (found and f"lastContainedOffset={at}," in found.block[0]) == (None if at is None else True)


def test_a_change_that_was_not_written_is_told_although_one_came_after_it_that_is_told_otherwise() -> None:
    lines = (STARTED, UNHANDLED % (1, 10), THROWN, UNHANDLED % (2, 11), CHECKED)
    found = {one.told: one for one in failed_in(lines, (CHECK_OP_FAILED, *GIVEN_UP))}
    assert [*found] == [CHECK_OP_FAILED, GIVEN_UP[-1]]
    assert found[GIVEN_UP[-1]] == refused_in(lines, ())
    assert failed_in((STARTED, UNHANDLED % (2, 11), CHECKED), GIVEN_UP) == ()
