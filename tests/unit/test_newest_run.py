"""A migration continues in a new run after each phase: what is shown of it names the newest."""

from datetime import UTC, datetime

from api.answers.links import temporal_ui_url
from domain.of_kind import Wanted
from domain.records import InHand, MigrationRecord, MigrationState, Progress
from domain.zk_to_kraft.policy import ZkToKraftPolicy

NOW = datetime(2026, 11, 28, tzinfo=UTC)
STARTED = Progress(state=MigrationState.PLANNING, in_hand=InHand.observing(NOW))


def record_of(progress: Progress, ended_at: datetime | None = None) -> MigrationRecord:
    return MigrationRecord(
        id="m",
        cluster="orders",
        cluster_id="c",
        kind="zk-to-kraft",
        policy=ZkToKraftPolicy(),
        wanted=Wanted(),
        spec_revision=1,
        requested_by="ann",
        created_at=NOW,
        ended_at=ended_at,
        workflow_id="cluster/c",
        run_id="first",
        progress=progress,
    )


def test_the_newest_run_is_the_one_that_recorded_last() -> None:
    assert record_of(STARTED).newest_run_id == "first"
    later = STARTED.model_copy(update={"run_id": "last"})
    assert record_of(later).newest_run_id == "last"
    assert temporal_ui_url("http://ui", "default", record_of(later, NOW)) == (
        "http://ui/namespaces/default/workflows/cluster%2Fc/last"
    )


def test_nothing_is_in_hand_at_the_end() -> None:
    ended = STARTED.ended(MigrationState.FAILED, "why")
    assert (ended.in_hand, ended.waiting, ended.gate, ended.outcome) == (None, None, None, "why")
