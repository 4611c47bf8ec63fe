"""Phases at rest, half-way, and where little or something odd is seen."""

import pytest

from domain.observed.observation import ControllerZnode, MigrationGauge, MigrationZnode, Observation
from domain.zk_to_kraft.phases import Phase, phase_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import (
    LEADER,
    Point,
    cluster_spec,
    mark_of,
    observation,
    seen_file,
    stopped,
    text_at,
    with_file,
    with_metrics,
    with_part,
    with_zookeeper,
)

SPEC = cluster_spec()
KRAFT_CLAIM = ControllerZnode(broker_id=LEADER, kraft_epoch=7, is_ephemeral=False)


def phase(seen: Observation) -> Phase | None:
    return phase_of(situation_of(seen, SPEC, ZkToKraftPolicy()))


def silent(seen: Observation, *node_ids: int) -> Observation:
    for node_id in node_ids:
        seen = with_part(seen, node_id, process=None, disk=None, metrics=None)
    return seen


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        (Point.BEFORE, Phase.PREFLIGHT),
        (Point.CONTROLLERS_UP, Phase.CONTROLLERS_UP),
        (Point.HYBRID, Phase.COPYING),
        (Point.DUAL_WRITE, Phase.DUAL_WRITE),
        (Point.SOAK, Phase.SOAK),
        (Point.FINAL, Phase.KRAFT),
    ],
)
def test_a_healthy_cluster_at_rest(point: Point, expected: Phase) -> None:
    assert phase(observation(point)) is expected


def test_half_way_the_furthest_thing_begun_names_the_phase() -> None:
    one_hybrid = with_part(observation(Point.CONTROLLERS_UP), 1, **vars_of(Point.HYBRID, 1))
    assert phase(one_hybrid) is Phase.BROKERS_TO_HYBRID
    text = text_at(SPEC, 1, NodeStage.MIGRATION)
    written = with_file(observation(Point.CONTROLLERS_UP), 1, text, mark_of(seen_file(text).sha256))
    assert phase(written) is Phase.BROKERS_TO_HYBRID, "a roll of ours changes a file only just before its node restarts"
    one_in_kraft = with_part(observation(Point.DUAL_WRITE), 1, **vars_of(Point.SOAK, 1))
    assert phase(one_in_kraft) is Phase.BROKERS_TO_KRAFT
    one_final = with_part(observation(Point.SOAK), 3001, **vars_of(Point.FINAL, 3001))
    assert phase(with_metrics(one_final, 3001, migration_gauge=MigrationGauge.MIGRATION)) is Phase.FINALIZING
    assert phase(one_final) is Phase.FINALIZING
    assert phase(with_zookeeper(observation(Point.HYBRID), controller=KRAFT_CLAIM)) is Phase.COPYING


def test_dual_write_that_falls_behind_is_the_same_phase() -> None:
    """A phase that came and went with every burst of changes would begin a run of the workflow each time."""
    behind = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=1)
    seen = observation(Point.DUAL_WRITE)
    assert phase(with_zookeeper(seen, migration=behind)) is Phase.DUAL_WRITE
    assert phase(with_zookeeper(seen, controller=None)) is Phase.DUAL_WRITE
    assert phase(with_metrics(seen, LEADER, zookeeper_session="CONNECTING")) is Phase.DUAL_WRITE
    assert phase(seen.model_copy(update={"zookeeper": None})) is Phase.DUAL_WRITE


@pytest.mark.parametrize("has_standby_its_gauge", [True, False], ids=["by-the-log", "by-the-offset"])
def test_a_copy_that_is_made_is_no_copy_again_while_nobody_leads(has_standby_its_gauge: bool) -> None:
    """The seconds of a failover, or the minutes of a disk that no controller can write to."""
    seen = observation(Point.DUAL_WRITE)
    for controller in SPEC.controllers:
        gauge = MigrationGauge.MIGRATION if has_standby_its_gauge else MigrationGauge.BOOTING
        seen = with_metrics(seen, controller.id, active_controller_count=0, raft_leader=None, migration_gauge=gauge)
    assert phase(seen) is Phase.DUAL_WRITE
    begun = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=-1)
    if not has_standby_its_gauge:
        assert phase(with_zookeeper(seen, migration=begun)) is Phase.COPYING


def test_the_offset_of_an_earlier_copy_is_none_where_the_leader_says_so() -> None:
    earlier = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=4000)
    seen = with_zookeeper(observation(Point.HYBRID), controller=KRAFT_CLAIM, migration=earlier)
    assert phase(seen) is Phase.COPYING


def test_a_broker_that_does_not_answer_in_the_soak_leaves_the_phase_open() -> None:
    """Its file says that it was rolled, and not whether it has been restarted since: one look too late is no phase back."""
    assert phase(with_part(observation(Point.SOAK), 2, metrics=None)) is None


def vars_of(point: Point, node_id: int) -> dict[str, object]:
    node = observation(point).node(node_id)
    return {"process": node.process, "disk": node.disk, "metrics": node.metrics}


def test_final_while_a_broker_is_not_is_final_too_early() -> None:
    seen = with_metrics(observation(Point.DUAL_WRITE), 3001, migration_gauge=MigrationGauge.POST_MIGRATION)
    assert phase(seen) is Phase.FINALIZED_EARLY


def test_what_nobody_can_see_has_no_phase() -> None:
    assert phase(silent(observation(Point.SOAK), 1, 2, 3)) is None
    assert phase(silent(observation(Point.BEFORE), 3001, 3002, 3003)) is None
    assert phase(silent(observation(Point.CONTROLLERS_UP), 3001, 3002, 3003)) is None
    assert phase(silent(observation(Point.CONTROLLERS_UP), 3001)) is Phase.CONTROLLERS_UP, "the others have been provisioned"


def test_files_speak_where_processes_do_not_answer() -> None:
    assert phase(with_part(observation(Point.CONTROLLERS_UP), 3001, metrics=None)) is Phase.CONTROLLERS_UP
    half_way = with_part(observation(Point.SOAK), 3, **vars_of(Point.DUAL_WRITE, 3))
    assert phase(with_part(half_way, 1, metrics=None)) is Phase.BROKERS_TO_KRAFT


def test_a_claim_without_any_controller_of_ours_is_somebody_elses() -> None:
    """The preflight has to refuse it, so it has to be asked."""
    assert phase(with_zookeeper(observation(Point.BEFORE), controller=KRAFT_CLAIM)) is Phase.PREFLIGHT


def test_the_way_back_ends_where_everything_began() -> None:
    """The window over, brokers hybrid; then all back, controllers fenced; then wiped."""
    after_window, all_back = observation(Point.HYBRID), observation(Point.CONTROLLERS_UP)
    for each in SPEC.controllers:
        after_window = fenced(after_window, each.id)
        all_back = fenced(all_back, each.id)
    assert phase(with_zookeeper(after_window, migration=None)) is Phase.BROKERS_TO_HYBRID
    assert phase(with_zookeeper(all_back, migration=None)) is Phase.CONTROLLERS_UP
    assert phase(observation(Point.BEFORE)) is Phase.PREFLIGHT


def fenced(seen: Observation, node_id: int) -> Observation:
    disk = seen.node(node_id).disk
    assert disk is not None
    dirs = tuple(log_dir.model_copy(update={"is_fenced": True}) for log_dir in disk.log_dirs)
    return with_part(seen, node_id, process=stopped("pid"), metrics=None, disk=disk.model_copy(update={"log_dirs": dirs}))
