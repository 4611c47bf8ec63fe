"""What people are told before they consent to the way back, and what their consent is bound to."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from domain.decisions import Done, Intent, Step
from domain.health.files import Restoration, restoration_of
from domain.observed.observation import MigrationGauge, NodeView, Observation, Suspect
from domain.rolling.change import Files, NodeFile
from domain.zk_to_kraft.conditions import Terms
from domain.zk_to_kraft.decide import decide
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preview import (
    FLUSH_SECONDS,
    WINDOW_SECONDS,
    has_something_to_undo,
    preview_of,
    restorations_of,
    steps_of,
)
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import (
    BrokerSituation,
    Claim,
    ControllerSituation,
    DualWrite,
    QuorumState,
    Registration,
    Replication,
    Situation,
)
from domain.zk_to_kraft.steps import NodeStage, StepAction
from tests.unit.conftest import (
    BROKER_STAGE,
    CLUSTER_ID,
    LEADER,
    NOW,
    Point,
    broker_text,
    broker_view,
    cluster_spec,
    mark_of,
    observation,
    stopped,
    text_at,
    with_file,
    with_kafka,
    with_metrics,
    with_node,
    with_part,
    with_zookeeper,
)

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy()
BROKERS = ("broker-1", "broker-2", "broker-3")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("latin-1")).hexdigest()


def archived(seen: Observation) -> Observation:
    """Every broker with the archived original beside its file, and the mark of the roll that wrote the file."""

    def change(node: NodeView) -> NodeView:
        assert node.disk is not None
        assert node.disk.file is not None
        mark = mark_of(node.disk.file.sha256, sha256(broker_text(node.id)), is_proven=True)
        file = node.disk.file.model_copy(update={"original_sha256": sha256(broker_text(node.id)), "mark": mark})
        return node.model_copy(update={"disk": node.disk.model_copy(update={"file": file})})

    for broker in SPEC.brokers:
        seen = with_node(seen, broker.id, change)
    return seen


def files_at(stages: dict[int, NodeStage], *, is_archived: bool = True, controllers: NodeStage | None = None) -> Files:
    """Files as the product makes them. `controllers`: the stage of theirs; `None`: they have none."""
    found: dict[int, NodeFile] = {}
    for node_id, stage in stages.items():
        original = broker_text(node_id) if is_archived and stage is not NodeStage.ZOOKEEPER else None
        archive = f"/etc/kafka/.keeperless/{node_id}.properties.original-{sha256(broker_text(node_id))}"
        found[node_id] = NodeFile(text_at(SPEC, node_id, stage), original, archive)
    for controller in SPEC.controllers:
        text = text_at(SPEC, controller.id, controllers) if controllers is not None else None
        found[controller.id] = NodeFile(text, None, f"/etc/kafka/.keeperless/{controller.id}.properties.original")
    return found


def files_of(point: Point, **how: Any) -> Files:
    controllers = None if point is Point.BEFORE else NodeStage.KRAFT if point is Point.FINAL else NodeStage.MIGRATION
    return files_at(dict.fromkeys((1, 2, 3), BROKER_STAGE[point]), controllers=controllers, **how)


def a_broker_at(seen: Observation, node_id: int, stage: NodeStage, hybrid: int, in_kraft: int) -> Observation:
    """One broker in another stage than the rest, and the registrations that go with it."""
    seen = with_node(seen, node_id, lambda _: broker_view(SPEC, node_id, stage))
    return with_metrics(seen, LEADER, migrating_broker_count=hybrid, active_broker_count=hybrid + in_kraft)


BACK_TO_ZOOKEEPER = [(name, "ZooKeeper mode") for name in BROKERS]
BACK_TO_HYBRID = [(name, "hybrid mode") for name in BROKERS]
WINDOW = (None, "return /controller to ZooKeeper")
WIPE = (None, "Remove the controllers' storage")


@pytest.mark.parametrize(
    ("point", "expected", "restarts", "seconds"),
    [
        (Point.CONTROLLERS_UP, [WINDOW, WIPE], 0, 0.0),
        (Point.HYBRID, [WINDOW, ("broker-1", ""), ("broker-3", ""), ("broker-2", ""), WIPE], 1, 0.0),
        (Point.DUAL_WRITE, [WINDOW, *BACK_TO_ZOOKEEPER, WIPE], 1, WINDOW_SECONDS),
        (Point.SOAK, [*BACK_TO_HYBRID, WINDOW, *BACK_TO_ZOOKEEPER, WIPE], 2, WINDOW_SECONDS),
    ],
)
def test_the_steps_from_every_point(
    point: Point, expected: list[tuple[str | None, str]], restarts: int, seconds: float
) -> None:
    preview = preview_of(archived(observation(point)), SPEC, POLICY, files_of(point))
    assert preview.is_possible
    assert [step.node for step in preview.steps] == [node for node, _ in expected]
    for step, (_, words) in zip(preview.steps, expected, strict=True):
        assert words in step.what
    assert preview.restarts == (dict.fromkeys([n for n, _ in expected if n], restarts) if restarts else {})
    assert preview.controllerless_seconds == seconds
    assert preview.losses == ()


def test_one_broker_in_kraft_mode_is_the_only_one_that_restarts_twice() -> None:
    seen = a_broker_at(observation(Point.DUAL_WRITE), 1, NodeStage.KRAFT, hybrid=2, in_kraft=1)
    stages = {1: NodeStage.KRAFT, 2: NodeStage.MIGRATION, 3: NodeStage.MIGRATION}
    preview = preview_of(archived(seen), SPEC, POLICY, files_at(stages, controllers=NodeStage.MIGRATION))
    assert preview.restarts == {"broker-1": 2, "broker-2": 1, "broker-3": 1}
    assert [step.node for step in preview.steps] == ["broker-1", None, "broker-1", "broker-2", "broker-3", None]


def test_a_lost_flag_comes_back_before_anything_else() -> None:
    seen = with_metrics(archived(observation(Point.SOAK)), 3001, write_behind_lag=None)
    seen = with_file(seen, 3001, text_at(SPEC, 3001, NodeStage.KRAFT))
    preview = preview_of(seen, SPEC, POLICY, files_of(Point.SOAK))
    assert preview.steps[0].node == "controller-3001"
    assert "flag back" in preview.steps[0].what
    assert preview.restarts["controller-3001"] == 1


@pytest.mark.parametrize("point", [Point.CONTROLLERS_UP, Point.HYBRID, Point.DUAL_WRITE, Point.SOAK])
def test_the_first_step_that_is_told_is_the_first_that_is_decided(point: Point) -> None:
    situation = situation_of(archived(observation(point)), SPEC, POLICY)
    decided = decide(situation, Terms(intent=Intent.REVERT))
    assert isinstance(decided, Step)
    told = steps_of(situation, SPEC)[0]
    assert told.node == (SPEC.node_name(decided.node_id) if decided.node_id is not None else None)
    assert told.restarts == (decided.action == StepAction.ROLL_NODE)


brokers = st.builds(
    BrokerSituation,
    id=st.just(0),
    mode=st.sampled_from([mode for mode in BrokerMode if mode is not BrokerMode.UNKNOWN]),
    stage=st.sampled_from([None, *NodeStage]),
    is_zookeeper_controller=st.booleans(),
    has_metadata_log=st.booleans(),
)
controllers = st.builds(
    ControllerSituation,
    id=st.just(0),
    mode=st.sampled_from([mode for mode in ControllerMode if mode is not ControllerMode.UNKNOWN]),
    stage=st.sampled_from([None, NodeStage.MIGRATION, NodeStage.KRAFT]),
    is_leader=st.booleans(),
    is_caught_up=st.booleans(),
    is_flag_in_file=st.booleans(),
    is_startable=st.booleans(),
)
situations = st.builds(
    Situation,
    brokers=st.tuples(brokers, brokers).map(lambda found: tuple(replace(b, id=i) for i, b in enumerate(found, 1))),
    controllers=st.tuples(controllers, controllers, controllers).map(
        lambda found: tuple(replace(c, id=i) for i, c in enumerate(found, 3001))
    ),
    quorum=st.sampled_from([state for state in QuorumState if state is not QuorumState.POST_MIGRATION]),
    claim=st.sampled_from([claim for claim in Claim if claim is not Claim.UNKNOWN]),
    dual_write=st.sampled_from(DualWrite),
    registration=st.sampled_from(Registration),
    replication=st.sampled_from(Replication),
    is_copy_stale=st.booleans(),
    is_copy_failed=st.booleans(),
    has_migration_znode=st.booleans(),
    is_release_due=st.booleans(),
).map(
    lambda s: s if s.claim is Claim.KRAFT and s.has_migration_znode else replace(s, is_copy_stale=False, is_copy_failed=False)
)
STEP_WORDS: dict[str, str] = {
    StepAction.LEAVE_KRAFT: WINDOW[1],
    StepAction.WIPE: WIPE[1],
    StepAction.RELEASE_CONFIGURATION: "Resume the configuration management",
}


@settings(max_examples=600, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(situation=situations)
def test_in_any_situation_the_first_step_that_is_told_is_the_one_that_is_decided(situation: Situation) -> None:
    """With every loss accepted. Where it is waited, what is told is what comes afterwards."""
    decided = decide(situation, Terms(intent=Intent.REVERT, accepts_metadata_loss=True))
    if isinstance(decided, Done):
        assert not has_something_to_undo(situation)
    if not isinstance(decided, Step):
        return
    assert has_something_to_undo(situation)
    told = steps_of(situation, SPEC)[0]
    assert told.node == (SPEC.node_name(decided.node_id) if decided.node_id is not None else None), (decided, told)
    assert told.restarts == (decided.action == StepAction.ROLL_NODE)
    assert STEP_WORDS.get(decided.action, "") in told.what


def test_more_time_is_expected_where_zookeeper_is_behind() -> None:
    seen = archived(with_metrics(observation(Point.DUAL_WRITE), LEADER, zookeeper_session="CONNECTING"))
    preview = preview_of(seen, SPEC, POLICY, files_of(Point.DUAL_WRITE))
    assert preview.controllerless_seconds == WINDOW_SECONDS + FLUSH_SECONDS
    assert [loss.name for loss in preview.losses] == ["metadata-changes"]


def test_a_broker_that_does_not_run_is_told_with_what_becomes_of_it() -> None:
    seen = with_part(observation(Point.DUAL_WRITE), 2, process=stopped("77@1"), metrics=None)
    told = preview_of(seen, SPEC, POLICY, files_of(Point.DUAL_WRITE))
    assert told.is_possible
    (obstacle,) = told.obstacles
    assert obstacle.startswith("broker-2 does not run")
    assert "KRaft without it" in obstacle


def test_a_broker_that_nobody_described_is_told_with_what_is_lost_of_it() -> None:
    kafka = observation(Point.SOAK).kafka
    assert kafka is not None
    seen = with_kafka(observation(Point.SOAK), broker_ids=(*kafka.broker_ids, 4))
    (obstacle,) = preview_of(seen, SPEC, POLICY, files_of(Point.SOAK)).obstacles
    assert obstacle.startswith("broker 4 is registered")
    assert "lost" in obstacle


def test_an_obstacle_to_the_hand_over_is_none_where_there_is_none_to_be() -> None:
    suspects = (Suspect(what="/feature", why="is no JSON"),)
    assert preview_of(observation(Point.DUAL_WRITE), SPEC, POLICY, {}, unelectable=suspects).obstacles
    assert not preview_of(observation(Point.CONTROLLERS_UP), SPEC, POLICY, {}, unelectable=suspects).obstacles


def test_why_there_is_no_way_back() -> None:
    def why(seen: Observation, point: Point) -> str:
        preview = preview_of(seen, SPEC, POLICY, files_of(point))
        assert not preview.is_possible
        assert preview.steps == ()
        assert preview.restarts == {}
        return preview.why_not

    assert "final" in why(observation(Point.FINAL), Point.FINAL)
    assert "ZooKeeper" in why(observation(Point.SOAK).model_copy(update={"zookeeper": None}), Point.SOAK)
    assert "broker-2" in why(with_part(observation(Point.SOAK), 2, metrics=None), Point.SOAK)
    assert "controller-3003" in why(with_part(observation(Point.SOAK), 3003, process=None), Point.SOAK)
    late = with_metrics(observation(Point.SOAK), 3001, migration_gauge=MigrationGauge.POST_MIGRATION)
    assert "final" in why(late, Point.SOAK), "one controller that says so is enough"


def test_where_nothing_was_touched_nothing_is_done_and_that_can_be_consented_to() -> None:
    """What lies in a controller's place is not ours: nothing is said of it, because nothing becomes of it."""
    files = {**files_of(Point.BEFORE), 3001: NodeFile("process.roles=controller\n", None, "/a")}
    preview = preview_of(observation(Point.BEFORE), SPEC, POLICY, files)
    assert (preview.phase, preview.is_possible, preview.why_not) == ("PREFLIGHT", True, "")
    assert (preview.steps, preview.restarts, preview.losses, preview.files) == ((), {}, (), ())
    assert (len(preview.preview_hash), preview.controllerless_seconds) == (64, 0.0)


def test_a_fenced_quorum_is_something_to_undo() -> None:
    seen = observation(Point.BEFORE)
    fenced = observation(Point.CONTROLLERS_UP).node(3001)
    assert fenced.disk is not None
    dirs = tuple(d.model_copy(update={"is_fenced": True}) for d in fenced.disk.log_dirs)
    disk = fenced.disk.model_copy(update={"log_dirs": dirs})
    seen = with_node(seen, 3001, lambda _: fenced.model_copy(update={"process": stopped("x"), "metrics": None, "disk": disk}))
    preview = preview_of(seen, SPEC, POLICY, files_of(Point.BEFORE))
    assert preview.is_possible
    assert [step.what for step in preview.steps] == [
        "Remove the controllers' storage, and the brokers' copies of the quorum's log"
    ]


@pytest.mark.parametrize("stage", [NodeStage.MIGRATION, NodeStage.KRAFT])
def test_files_come_back_from_the_archive_byte_for_byte(stage: NodeStage) -> None:
    found = {r.node: r for r in restorations_of(SPEC, files_at(dict.fromkeys((1, 2, 3), stage)))}
    assert set(found) == set(BROKERS)
    for i in (1, 2, 3):
        assert found[f"broker-{i}"].how == "archive"
        assert found[f"broker-{i}"].sha256 == sha256(broker_text(i))
        assert f"/etc/kafka/{i}.properties" == found[f"broker-{i}"].path
    if stage is NodeStage.KRAFT:
        assert "+ broker.id=1" in found["broker-1"].changes


def test_without_an_archive_the_edit_is_taken_back_and_controllers_files_are_removed() -> None:
    files = files_at(dict.fromkeys((1, 2, 3), NodeStage.MIGRATION), is_archived=False, controllers=NodeStage.MIGRATION)
    found = {r.node: r for r in restorations_of(SPEC, files)}
    assert found["broker-1"].how == "inverse-edit"
    assert any(change.startswith("- zookeeper.metadata.migration.enable") for change in found["broker-1"].changes)
    assert (found["controller-3001"].how, found["controller-3001"].sha256) == ("removed", None)


def test_no_secret_is_shown() -> None:
    text = text_at(SPEC, 1, NodeStage.MIGRATION) + "ssl.keystore.password=sesame\n"
    files = {1: NodeFile(text, broker_text(1) + "ssl.keystore.password=open\n", "/archive")}
    told = str(restorations_of(SPEC, files))
    assert "sesame" not in told
    assert "open\\n" not in told
    assert "- ssl.keystore.password=***" in told


def hash_at(seen: Observation, files: Files) -> str:
    return preview_of(seen, SPEC, POLICY, files).preview_hash


def test_the_hash_stands_while_a_migration_goes_on() -> None:
    """Phase, offsets, times, gauges and every roll: none of it is material."""
    hashes = {hash_at(archived(observation(p)), files_of(p)) for p in Point if p is not Point.FINAL}
    moved = with_zookeeper(archived(observation(Point.SOAK)), controller_epoch=99)
    moved = moved.model_copy(update={"ended_at": NOW.replace(year=2027)})
    hashes.add(hash_at(moved, files_of(Point.SOAK)))
    mixed = {1: NodeStage.KRAFT, 2: NodeStage.MIGRATION, 3: NodeStage.ZOOKEEPER}
    hashes.add(hash_at(archived(observation(Point.SOAK)), files_at(mixed, controllers=NodeStage.MIGRATION)))
    assert len(hashes) == 1


def test_the_hash_changes_with_what_is_material() -> None:
    seen, files = archived(observation(Point.SOAK)), dict(files_of(Point.SOAK))
    hashes = [hash_at(seen, files)]
    hashes.append(hash_at(seen.model_copy(update={"spec_revision": 2}), files))
    hashes.append(hash_at(with_metrics(seen, LEADER, zookeeper_session="CONNECTING"), files))
    other = NodeFile(files[1].current, broker_text(1) + "# by hand\n", files[1].archive)
    hashes.append(hash_at(seen, files | {1: other}))
    hashes.append(hash_at(seen, {i: file for i, file in files.items() if i != 1}))
    elsewhere = SPEC.model_copy(update={"cluster_id": CLUSTER_ID[::-1]})
    hashes.append(preview_of(seen, elsewhere, POLICY, files).preview_hash)
    assert len(set(hashes)) == len(hashes)


def test_consent_to_one_topics_new_id_is_none_to_the_next() -> None:
    seen, files = archived(observation(Point.DUAL_WRITE)), files_of(Point.DUAL_WRITE)
    lacking = [with_zookeeper(seen, topics_without_id=topics) for topics in ((), ("a",), ("a", "b"))]
    assert len({hash_at(each, files) for each in lacking}) == 3
    assert [loss.name for loss in preview_of(lacking[1], SPEC, POLICY, files).losses] == ["topic-ids"]


def test_archived_says_what_this_file_believes_it_says() -> None:
    """The builder above gives files that come from the archive: else every test here would lose something."""
    for point in (Point.DUAL_WRITE, Point.SOAK):
        assert restoration_of(archived(observation(point)).node(1).disk) is Restoration.ARCHIVE
