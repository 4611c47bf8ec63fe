"""A file that somebody has edited, and whose node was not restarted since: what runs decides, unless a roll of ours wrote it.

The table: who runs what, whose file says what, and what follows.
"""

from dataclasses import dataclass, replace

import pytest

from domain.contracts import Assessment
from domain.decisions import Refuse, Severity, Step, Wait
from domain.observed.observation import MigrationGauge, Observation
from domain.rulings import GivenApproval, Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess, is_survey_needed
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.planning.plan import findings_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import preflight
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from domain.zk_to_kraft.waits import ZkWait
from tests.unit.blocked import found
from tests.unit.conftest import (
    Point,
    cluster_spec,
    mark_of,
    observation,
    report_of,
    seen_file,
    stopped,
    text_at,
    with_file,
    with_metrics,
    with_part,
)

SPEC, POLICY = cluster_spec(), ZkToKraftPolicy()
ZK, HYBRID, KRAFT = NodeStage.ZOOKEEPER, NodeStage.MIGRATION, NodeStage.KRAFT
BEFORE, UP, DUAL, SOAK = (observation(p) for p in (Point.BEFORE, Point.CONTROLLERS_UP, Point.DUAL_WRITE, Point.SOAK))
CONSUMED = Ruling(approvals={GateName.FINALIZE: GivenApproval(evidence_hash="any", is_consumed=True)})


def by_hand(seen: Observation, node_id: int, stage: NodeStage) -> Observation:
    """Edited, and nothing of ours tells of it."""
    return with_file(seen, node_id, text_at(SPEC, node_id, stage))


def by_us(seen: Observation, node_id: int, stage: NodeStage) -> Observation:
    """Written by a roll of ours that has not restarted the node yet."""
    text = text_at(SPEC, node_id, stage)
    mark = mark_of(seen_file(text).sha256, before_identity=f"pid-{node_id}")
    return with_file(seen, node_id, text, mark.model_copy(update={"stage": stage}))


def down(seen: Observation, node_id: int) -> Observation:
    return with_part(seen, node_id, process=stopped(f"pid-{node_id}"), metrics=None)


def half_edited(seen: Observation, node_id: int) -> Observation:
    return with_file(seen, node_id, text_at(SPEC, node_id, ZK) + "\ncontroller.listener.names=CONTROLLER\n")


def judged(seen: Observation, ruling: Ruling | None = None) -> Assessment:
    ruling = replace(ruling or Ruling(), reports=(report_of(seen),))
    return assess(seen, SPEC, POLICY, ruling, "artefact")


def rolls(node_id: int, stage: NodeStage, gate: GateName | None = None) -> Step:
    return Step(action=StepAction.ROLL_NODE, node_id=node_id, stage=stage, gate=gate)


@dataclass(frozen=True)
class Row:
    """`follows`: a step, a wait's reason, or `None` for the preflight's refusal with PF37."""

    seen: Observation
    phase: Phase | None
    follows: Step | WaitReason | None
    ruling: Ruling | None = None


FINAL_EARLY = with_metrics(DUAL, 3001, migration_gauge=MigrationGauge.POST_MIGRATION)
TABLE = {
    # Nothing has begun, and an edit of a file does not begin it.
    "ZooKeeper mode, edited to hybrid": Row(by_hand(BEFORE, 1, HYBRID), Phase.PREFLIGHT, None),
    "ZooKeeper mode, edited to KRaft": Row(by_hand(BEFORE, 1, KRAFT), Phase.PREFLIGHT, None),
    "ZooKeeper mode, half-edited": Row(half_edited(BEFORE, 1), Phase.PREFLIGHT, None),
    "all in ZooKeeper mode, all edited": Row(
        by_hand(by_hand(by_hand(BEFORE, 1, HYBRID), 2, HYBRID), 3, HYBRID), Phase.PREFLIGHT, None
    ),
    "edited to KRaft, and it did not come up": Row(down(by_hand(BEFORE, 1, KRAFT), 1), Phase.PREFLIGHT, None),
    "a roll of ours wrote it, and the quorum is gone": Row(
        by_us(BEFORE, 1, HYBRID), Phase.BROKERS_TO_HYBRID, ZkWait.HALF_REVERTED
    ),
    # Roll 1
    "controllers up, edited to hybrid": Row(by_hand(UP, 1, HYBRID), Phase.CONTROLLERS_UP, WaitReason.FILE_CHANGED),
    "controllers up, edited to KRaft": Row(by_hand(UP, 1, KRAFT), Phase.CONTROLLERS_UP, WaitReason.FILE_CHANGED),
    "controllers up, edited to KRaft, and it did not come up": Row(
        down(by_hand(UP, 1, KRAFT), 1), Phase.CONTROLLERS_UP, WaitReason.NODE_DOWN
    ),
    "controllers up, a roll of ours wrote it": Row(by_us(UP, 1, HYBRID), Phase.BROKERS_TO_HYBRID, rolls(1, HYBRID)),
    "a hand stopped it for its roll": Row(down(by_hand(UP, 1, HYBRID), 1), Phase.BROKERS_TO_HYBRID, WaitReason.NODE_DOWN),
    # Dual write
    "hybrid, edited to KRaft": Row(by_hand(DUAL, 1, KRAFT), Phase.DUAL_WRITE, WaitReason.FILE_CHANGED),
    "hybrid, put back to ZooKeeper": Row(by_hand(DUAL, 1, ZK), Phase.DUAL_WRITE, WaitReason.FILE_CHANGED),
    "hybrid, a roll of ours wrote it": Row(by_us(DUAL, 1, KRAFT), Phase.BROKERS_TO_KRAFT, rolls(1, KRAFT)),
    "hybrid, a rollback of ours wrote it and is gone": Row(by_us(DUAL, 1, ZK), Phase.DUAL_WRITE, rolls(1, HYBRID)),
    # Soak
    "KRaft, put back to hybrid": Row(by_hand(SOAK, 1, HYBRID), Phase.SOAK, WaitReason.FILE_CHANGED),
    "KRaft, half-edited": Row(half_edited(SOAK, 1), Phase.SOAK, WaitReason.FILE_CHANGED),
    "KRaft, a rollback of ours wrote it and is gone": Row(by_us(SOAK, 1, HYBRID), Phase.BROKERS_TO_KRAFT, rolls(1, KRAFT)),
    "soak, a controller's flag taken from its file": Row(by_hand(SOAK, 3001, KRAFT), Phase.SOAK, rolls(3001, HYBRID)),
    "soak, the same, and it is down": Row(down(by_hand(SOAK, 3001, KRAFT), 3001), Phase.SOAK, rolls(3001, HYBRID)),
    "soak, an approved end of ours wrote the controller's file": Row(
        by_us(SOAK, 3001, KRAFT), Phase.FINALIZING, rolls(3001, KRAFT, GateName.FINALIZE), CONSUMED
    ),
    # Final too early: the way out does not wait for a file that says what is wanted.
    "hybrid after the end, edited to KRaft": Row(by_hand(FINAL_EARLY, 1, KRAFT), Phase.FINALIZED_EARLY, rolls(1, KRAFT)),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE.keys())
def test_what_runs_decides(row: Row) -> None:
    told = judged(row.seen, row.ruling)
    assert told.phase == row.phase
    if isinstance(row.follows, Step):
        assert told.decision == row.follows
    elif row.follows is not None:
        assert isinstance(told.decision, Wait)
        assert told.decision.reason == row.follows
    else:
        assert isinstance(told.decision, Refuse)
        assert "PF37" in {finding.code for finding in told.decision.findings}
        assert is_survey_needed(row.seen, SPEC, POLICY, Ruling()), "the whole preflight is asked"


def test_files_count_where_no_broker_says_otherwise() -> None:
    """A migration begun by hand is recognised in a cluster that is down, or whose metrics do not answer."""
    dark, silent = SOAK, SOAK
    for broker in SPEC.brokers:
        dark, silent = down(dark, broker.id), with_part(silent, broker.id, metrics=None)
    assert judged(dark).phase == Phase.BROKERS_TO_KRAFT
    assert judged(silent).phase is None


def test_the_finding_names_the_keys_and_both_ways_out() -> None:
    found = next(f for f in preflight(by_hand(BEFORE, 1, HYBRID), SPEC, POLICY) if f.code == "PF37")
    assert found.object == "broker-1"
    assert found.observed.startswith("broker-1 runs in ZooKeeper mode.")
    assert "next restart, also after a crash, would start it in hybrid mode" in found.observed
    for key in (
        "zookeeper.metadata.migration.enable=true",
        "controller.quorum.voters=",
        "controller.listener.names=CONTROLLER",
    ):
        assert key in found.observed
    assert "zookeeper.connect" not in found.observed
    assert "/etc/kafka/1.properties" in found.fix
    assert "restart broker-1" in found.fix


def test_a_file_for_kraft_mode_is_not_to_be_restarted_from() -> None:
    """Without a quorum that has a copy such a broker does not come up."""
    found = next(f for f in preflight(by_hand(BEFORE, 1, KRAFT), SPEC, POLICY) if f.code == "PF37")
    assert "would start it in KRaft mode" in found.observed
    assert "process.roles=broker" in found.observed
    assert "no zookeeper.connect" in found.observed
    assert "Do not restart broker-1" in found.fix


def test_the_wait_says_what_differs() -> None:
    wait = judged(by_hand(DUAL, 2, KRAFT)).decision
    assert isinstance(wait, Wait)
    assert wait.objects == ("broker-2",)
    assert "broker-2 runs in hybrid mode" in wait.detail
    assert "process.roles=broker" in wait.detail


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (by_hand(UP, 1, HYBRID), "restart broker-1 yourself, and check that it serves in hybrid mode"),
        (by_hand(UP, 1, KRAFT), "Do not restart broker-1"),
        (by_hand(DUAL, 1, KRAFT), "restart broker-1 yourself, and check that it serves in KRaft mode"),
        (by_hand(DUAL, 1, ZK), "ask for a rollback"),
        (by_hand(SOAK, 1, HYBRID), "ask for a rollback"),
    ],
    ids=["to hybrid", "to KRaft too early", "to KRaft", "back to ZooKeeper", "back to hybrid"],
)
def test_a_restart_is_a_way_out_only_where_the_broker_comes_up(seen: Observation, says: str) -> None:
    (entry,) = (e for e in found(seen) if (e.code, e.object) == ("file-changed", "broker-1"))
    assert "Put /etc/kafka/1.properties back as it was" in entry.fix
    assert says in entry.fix
    assert "Keys that differ: " in entry.observed


def test_a_plan_in_flight_says_so_too() -> None:
    (told,) = findings_of(by_hand(DUAL, 1, KRAFT), SPEC, POLICY)
    assert (told.code, told.object, told.severity) == ("PF37", "broker-1", Severity.WARNING)
    assert findings_of(by_us(DUAL, 1, KRAFT), SPEC, POLICY) == ()
