"""Each check fires on a cluster made for it, with its own code and nothing else, and none fires on a healthy one."""

import re

import pytest

from domain.checks.acceptance import IDENTITY_CODES, blockers_in
from domain.checks.check import Check, OfLook, Seen
from domain.cluster import ZooKeeperSpec
from domain.configuration.properties import edit
from domain.decisions import Acceptance, Finding, Refuse, Severity, Wait
from domain.observed.observation import (
    ControllerZnode,
    LogDir,
    MigrationZnode,
    NodeView,
    Observation,
    PartitionFault,
    StorageState,
    Unanswered,
)
from domain.policy import AcceptedFinding
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.checks.catalogue import CATALOGUE
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import preflight
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import (
    CLUSTER_ID,
    Point,
    broker_text,
    cluster_spec,
    observation,
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
HEALTHY = observation(Point.BEFORE)


def found(seen: Observation, policy: ZkToKraftPolicy = POLICY) -> tuple[Finding, ...]:
    return preflight(seen, SPEC, policy)


def with_setting(node_id: int, line: str) -> Observation:
    return with_file(HEALTHY, node_id, broker_text(node_id) + line + "\n")


def with_log_dir(broker_id: int, /, **parts: object) -> Observation:
    def change(node: NodeView) -> NodeView:
        assert node.disk is not None
        kept = LogDir(path=f"/data/{broker_id}", state=StorageState.OURS, cluster_id=CLUSTER_ID, node_id=broker_id)
        disk = node.disk.model_copy(update={"log_dirs": (kept.model_copy(update=parts),)})
        return node.model_copy(update={"disk": disk})

    return with_node(HEALTHY, broker_id, change)


def without_file(node_id: int) -> Observation:
    def change(node: NodeView) -> NodeView:
        assert node.disk is not None
        return node.model_copy(update={"disk": node.disk.model_copy(update={"file": None})})

    return with_node(HEALTHY, node_id, change)


KRAFT_CLAIM = ControllerZnode(broker_id=9, kraft_epoch=1, is_ephemeral=False)
LEFT_OVER = MigrationZnode(controller_id=9, controller_epoch=1, offset=105)

CASES: dict[str, tuple[Observation, set[str]]] = {
    "an older release": (with_metrics(HEALTHY, 2, kafka_version="3.8.1"), {"PF01"}),
    "a release that sounds alike": (with_metrics(HEALTHY, 2, kafka_version="3.91.0"), {"PF01"}),
    "a release that metrics do not tell": (with_metrics(HEALTHY, 2, kafka_version=None), {"PF01"}),
    "protocol versions that differ": (with_setting(1, "inter.broker.protocol.version=3.8"), {"PF02"}),
    "another cluster's ensemble": (with_zookeeper(HEALTHY, cluster_id="other"), {"PF03"}),
    "an ensemble without a cluster": (with_zookeeper(HEALTHY, cluster_id=None), {"PF03"}),
    "another cluster's brokers": (with_kafka(HEALTHY, cluster_id="other"), {"PF03"}),
    "another cluster's storage": (with_log_dir(1, cluster_id="other"), {"PF03"}),
    "a controller id that is assigned": (with_zookeeper(HEALTHY, assigned_broker_ids=(1, 2, 3, 3001)), {"PF04", "PF12"}),
    "a broker id that is generated": (with_file(HEALTHY, 1, broker_text(1).replace("broker.id", "#broker.id")), {"PF05"}),
    "two ids in one file": (with_setting(1, "node.id=7"), {"PF05"}),
    "a node.id unlike its storage": (
        with_file(HEALTHY, 1, re.sub(r"broker.id(\W+)1", r"node.id\g<1>7", broker_text(1))),
        {"PF05"},
    ),
    "a broker id unlike its storage": (with_log_dir(1, node_id=7), {"PF05"}),
    "a controller's directory with data": (
        with_part(
            HEALTHY, 3001, disk=with_log_dir(1, state=StorageState.FOREIGN).node(1).disk.model_copy(update={"file": None})
        ),  # type: ignore[union-attr]
        {"PF07"},
    ),
    "a controller's directory of an earlier attempt": (
        with_part(HEALTHY, 3001, disk=HEALTHY.node(1).disk.model_copy(update={"file": None})),  # type: ignore[union-attr]
        {"PF07"},
    ),
    "a controller's file that is there": (with_file(HEALTHY, 3001, text_at(SPEC, 3001, NodeStage.MIGRATION)), {"PF07"}),
    "an earlier attempt": (with_zookeeper(HEALTHY, migration=LEFT_OVER), {"PF10"}),
    "no controller": (with_zookeeper(HEALTHY, controller=None), {"PF11"}),
    "a controller that is KRaft's": (with_zookeeper(HEALTHY, controller=KRAFT_CLAIM), {"PF11"}),
    "no controller epoch": (with_zookeeper(HEALTHY, controller_epoch=None), {"PF11"}),
    "a dead broker in an assignment": (with_zookeeper(HEALTHY, assigned_broker_ids=(1, 2, 3, 9)), {"PF12"}),
    "a broker that nobody described": (
        with_kafka(with_zookeeper(HEALTHY, broker_ids=(1, 2, 3, 4)), broker_ids=(1, 2, 3, 4)),
        {"PF12"},
    ),
    "a described broker that is not live": (with_zookeeper(HEALTHY, broker_ids=(1, 2)), {"PF12"}),
    "a topic that is being deleted": (with_zookeeper(HEALTHY, pending_deletions=("t",)), {"PF13"}),
    "a reassignment": (with_zookeeper(HEALTHY, reassignments=("t-0",)), {"PF14"}),
    "an election of preferred leaders": (with_zookeeper(HEALTHY, is_preferred_election_pending=True), {"PF14"}),
    "a topic without id": (with_zookeeper(HEALTHY, topics_without_id=("old",)), {"PF17"}),
    "another chroot": (with_setting(1, "zookeeper.connect=127.0.0.1:2181/elsewhere"), {"PF20"}),
    "a chroot that ZooKeeper refuses": (with_setting(1, "zookeeper.connect=127.0.0.1:2181/kafka/"), {"PF20"}),
    "a chroot after every server": (with_setting(1, "zookeeper.connect=127.0.0.1:2181/kafka,h:2181/kafka"), {"PF20"}),
    "a listener with the controllers' name": (
        with_setting(1, "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9095"),
        {"PF28"},
    ),
    "a map that says otherwise of the controllers' listener": (
        with_setting(1, "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:SSL"),
        {"PF28"},
    ),
    "two patch releases": (with_metrics(HEALTHY, 2, kafka_version="3.9.3"), {"PF01"}),
    "a replica out of sync": (
        with_kafka(HEALTHY, under_replicated=(PartitionFault(partition="t-0", missing=(2,)),)),
        {"PF22"},
    ),
    "a partition without leader": (with_kafka(HEALTHY, offline=("t-0",)), {"PF22"}),
    "a partition that can spare nobody": (with_kafka(HEALTHY, needs={1: ("t-0",), 2: (), 3: ()}), {"PF22"}),
    "an authorizer that KRaft does not have": (with_setting(1, "authorizer.class.name=com.example.Mine"), {"PF31"}),
    "a broker that is hybrid already": (with_metrics(HEALTHY, 1, raft_epoch=3), {"PF37"}),
    "a broker that does not serve": (with_metrics(HEALTHY, 1, broker_state=1), {"PF37"}),
    "half-made settings": (with_setting(1, "controller.listener.names=CONTROLLER"), {"PF37"}),
}


def every_broker_of(version: str) -> Observation:
    seen = HEALTHY
    for broker in SPEC.brokers:
        seen = with_metrics(seen, broker.id, kafka_version=version)
    return seen


WARNED: dict[str, tuple[Observation, str]] = {
    "an old patch release": (every_broker_of("3.9.0"), "PF01"),
    "other names for the servers": (with_setting(1, "zookeeper.connect=other-name:2181/kafka"), "PF20"),
}


def test_a_healthy_cluster_has_no_findings() -> None:
    assert found(HEALTHY) == ()
    assert found(with_file(HEALTHY, 1, broker_text(1).replace("broker.id", "node.id"))) == (), "Kafka takes either"
    assert found(with_setting(1, "broker.id=1 ")) == (), "blanks at the end of a line are no part of an id"
    bare = with_file(HEALTHY, 1, broker_text(1).replace("inter.broker.protocol.version=3.9\n", ""))
    assert found(bare) == (), "without the key it is the release"


@pytest.mark.parametrize("case", CASES)
def test_a_check_fires_with_its_code_and_no_other(case: str) -> None:
    seen, codes = CASES[case]
    findings = found(seen)
    assert {f.code for f in findings} == codes
    assert all(f.object and f.observed and f.expected and f.fix for f in findings)


FUNCTIONS = [(check, function) for check in CATALOGUE for function in check.of_look]


@pytest.mark.parametrize(("check", "function"), FUNCTIONS, ids=lambda value: getattr(value, "code", None))
def test_every_function_of_a_check_has_a_case_in_which_it_fires(check: Check, function: OfLook) -> None:
    """One that no case needs could be deleted unnoticed."""
    fired: list[Finding] = []
    for seen, _ in (*CASES.values(), *WARNED.values()):
        assert seen.zookeeper is not None
        assert seen.kafka is not None
        fired += function(Seen(SPEC, POLICY, seen, seen.zookeeper, seen.kafka))
    assert {f.code for f in fired} == {check.code}


def test_the_catalogue_is_whole_in_order_and_says_what_each_check_means() -> None:
    assert [check.code for check in CATALOGUE] == [f"PF{number:02}" for number in range(1, 49)]
    for check in CATALOGUE:
        assert check.of_look or check.of_survey
        assert check.holds
        assert check.because
        assert check.source


@pytest.mark.parametrize("case", WARNED)
def test_a_warning_is_told_and_stops_nothing(case: str) -> None:
    seen, code = WARNED[case]
    findings = found(seen)
    assert {f.code for f in findings} == {code}
    assert blockers_in(findings, POLICY) == ()


def test_topics_that_the_policy_gives_up_are_no_finding() -> None:
    seen, _ = CASES["a partition that can spare nobody"]
    assert found(seen, ZkToKraftPolicy(may_be_unavailable=("t",))) == ()


def test_findings_come_in_the_order_of_the_checks_and_all_at_once() -> None:
    seen = with_zookeeper(with_metrics(HEALTHY, 2, kafka_version="3.8.1"), migration=LEFT_OVER, controller=None)
    assert [f.code for f in found(seen)] == ["PF01", "PF10", "PF11"]


# The preflight inside an assessment


# With a hybrid broker something has been touched already, and the preflight is over.
@pytest.mark.parametrize("case", sorted(CASES.keys() - {"a broker that is hybrid already"}))
def test_a_finding_refuses_before_anything_is_touched(case: str) -> None:
    seen, codes = CASES[case]
    decision = assess(seen, SPEC, POLICY, Ruling(), "name").decision
    assert isinstance(decision, Refuse)
    assert {f.code for f in decision.findings} == codes


@pytest.mark.parametrize("part", ["zookeeper", "kafka", "process", "disk", "metrics"])
@pytest.mark.parametrize("case", [None, *CASES])
def test_what_did_not_answer_has_not_passed(part: str, case: str | None) -> None:
    """Neither a refusal nor a step: a check that could not look says nothing, and nothing is touched."""
    seen = CASES[case][0] if case else HEALTHY
    is_whole = part in {"zookeeper", "kafka"}
    seen = seen.model_copy(update={part: None}) if is_whole else with_part(seen, 2, **{part: None})
    blind = seen.model_copy(update={"unanswered": (Unanswered(what=f"{part} of something", why="timed out"),)})
    assessment = assess(blind, SPEC, POLICY, Ruling(), "name")
    assert isinstance(assessment.decision, Wait)
    assert assessment.decision.reason == WaitReason.PART_UNKNOWN
    assert assessment.decision.objects == (f"{part} of something",)


def test_nothing_at_all_may_be_unanswered() -> None:
    """Also what no rule of `decide` looks at: a check might have."""
    blind = HEALTHY.model_copy(update={"unanswered": (Unanswered(what="output of controller-3001", why="refused"),)})
    decision = assess(blind, SPEC, POLICY, Ruling(), "name").decision
    assert isinstance(decision, Wait)
    assert decision.reason == WaitReason.PART_UNKNOWN


def test_a_controller_node_that_does_not_answer_is_no_sign_of_a_begun_migration() -> None:
    seen = with_part(HEALTHY, 3001, process=None, disk=None)
    blind = seen.model_copy(update={"unanswered": (Unanswered(what="process of controller-3001", why="refused"),)})
    assessment = assess(blind, SPEC, POLICY, Ruling(), "name")
    assert assessment.phase is None, "it may have been provisioned, or not"
    assert isinstance(assessment.decision, Wait)
    assert assessment.decision.reason == WaitReason.PART_UNKNOWN


def test_the_preflight_is_not_asked_again_once_something_was_touched() -> None:
    seen = with_zookeeper(observation(Point.CONTROLLERS_UP), pending_deletions=("t",))
    assert not isinstance(assess(seen, SPEC, POLICY, Ruling(), "name").decision, Refuse)


def test_held_before_the_preflight_is_held() -> None:
    decision = assess(CASES["an older release"][0], SPEC, POLICY, Ruling(is_held=True), "name").decision
    assert isinstance(decision, Wait)
    assert decision.reason == WaitReason.HELD


def test_a_healthy_cluster_begins_with_the_first_controller() -> None:
    assessment = assess(HEALTHY, SPEC, POLICY, Ruling(), "name")
    assert assessment.phase == Phase.PREFLIGHT
    assert assessment.decision.decision == "step"


def test_without_a_file_a_broker_is_found() -> None:
    assert {f.code for f in found(without_file(1))} >= {"PF05", "PF20", "PF37"}


def test_a_blocker_that_is_accepted_by_name_stops_nothing_and_others_do() -> None:
    dead = with_zookeeper(HEALTHY, assigned_broker_ids=(1, 2, 3, 9))
    accepted = AcceptedFinding(code="PF12", object="broker 9", by="ann", reason="its partitions are going to be removed")
    assert [f.object for f in blockers_in(found(dead), POLICY)] == ["broker 9"]
    assert blockers_in(found(dead), ZkToKraftPolicy(accepted_findings=(accepted,))) == ()
    other = accepted.model_copy(update={"object": "broker 8"})
    assert blockers_in(found(dead), ZkToKraftPolicy(accepted_findings=(other,))) == found(dead)
    every = accepted.model_copy(update={"object": "*"})
    assert blockers_in(found(dead), ZkToKraftPolicy(accepted_findings=(every,))) == ()


@pytest.mark.parametrize("case", ["another cluster's ensemble", "another cluster's brokers", "another chroot"])
def test_which_cluster_it_is_nobody_can_accept(case: str) -> None:
    """The lock of a migration is its cluster's id: with another one there would be two locks for the same nodes."""
    seen, (code,) = CASES[case]
    accepted = AcceptedFinding(code=code, object="*", by="ann", reason="it is mine")
    policy = ZkToKraftPolicy(accepted_findings=(accepted,), compare_copy=False, compare_messages=False)
    assert blockers_in(found(seen), policy) == found(seen) != ()
    assert isinstance(assess(seen, SPEC, policy, Ruling(), "name").decision, Refuse)
    assert isinstance(assess(with_blocker_of(code), SPEC, policy, Ruling(), "name").decision, Wait)


def with_blocker_of(code: str) -> Observation:
    """Where somebody else has set up the controllers: right before the first broker is touched."""
    seen = observation(Point.CONTROLLERS_UP)
    if code == "PF03":
        return with_kafka(seen, cluster_id="other")
    return with_file(seen, 1, broker_text(1) + "zookeeper.connect=127.0.0.1:2181/elsewhere\n")


def test_what_is_accepted_says_so_where_something_else_refuses() -> None:
    accepted = AcceptedFinding(code="PF12", object="broker 9", by="ann", reason="gone")
    seen = with_zookeeper(HEALTHY, assigned_broker_ids=(1, 2, 3, 9), pending_deletions=("t",))
    decision = assess(seen, SPEC, ZkToKraftPolicy(accepted_findings=(accepted,)), Ruling(), "name").decision
    assert isinstance(decision, Refuse)
    assert [(f.code, f.accepted) for f in decision.findings] == [
        ("PF13", None),
        ("PF12", Acceptance(by="ann", reason="gone")),
    ]


def test_what_cannot_be_accepted_is_a_property_of_the_check() -> None:
    assert {check.code for check in CATALOGUE} >= IDENTITY_CODES


def test_a_listener_whose_name_ends_like_the_controllers_is_another() -> None:
    seen = with_setting(1, "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,MYCONTROLLER:SSL,")
    assert found(seen) == ()


def test_ids_that_disagree_are_shown_directory_by_directory() -> None:
    text = edit(broker_text(1), {"process.roles": "broker,controller", "node.id": "100"}, frozenset({"broker.id"}))
    disk = HEALTHY.node(1).disk
    assert disk is not None
    (own,) = disk.log_dirs
    others = (
        own.model_copy(update={"path": "/data/b", "node_id": 1390}),
        own.model_copy(update={"path": "/c", "node_id": None}),
    )
    seen = with_file(HEALTHY, 1, text)
    file = seen.node(1).disk
    assert file is not None
    seen = with_part(seen, 1, disk=file.model_copy(update={"log_dirs": (own, *others)}))
    told = {finding.code: finding.observed for finding in found(seen)}
    who = "process.roles=broker,controller, node.id=100"
    assert told["PF05"] == f"its file has {who}; meta.properties: {own.path}: 1, /data/b: 1390, /c: no id"
    assert who in told["PF37"]


def test_connect_strings_are_compared_by_meaning() -> None:
    """Order, blanks, and brokers that write no chroot as `/`; another name for a server is a warning."""
    spec = SPEC.model_copy(update={"zookeeper": ZooKeeperSpec(connect="z1:2181,z2:2181,z3:2181")})
    lines = {1: "z1:2181,z2:2181,z3:2181", 2: "z3:2181, z1:2181,z2:2181/", 3: "z1.example.com:2181,z2:2181,z3:2181"}
    seen = HEALTHY
    for broker_id, connect in lines.items():
        seen = with_file(seen, broker_id, broker_text(broker_id) + f"zookeeper.connect={connect}\n")
    findings = [f for f in preflight(seen, spec, ZkToKraftPolicy()) if f.code == "PF20"]
    assert [(f.object, f.severity) for f in findings] == [("broker-3", Severity.WARNING)]


@pytest.mark.parametrize("chroot", ["/kafka", "/kafka/", "/elsewhere"])
def test_a_comment_behind_a_connect_string_is_not_quoted(chroot: str) -> None:
    """ZooKeeper takes the comment as a part of the chroot."""
    (finding,) = found(with_setting(1, f"zookeeper.connect=127.0.0.1:2181{chroot} # creds admin:sesame"))
    assert (finding.code, finding.severity) == ("PF20", Severity.BLOCKER)
    assert "sesame" not in finding.model_dump_json()


def test_a_misread_connect_string_names_what_to_write() -> None:
    (finding,) = found(with_setting(1, "zookeeper.connect=127.0.0.1:2181/kafka,h:2181/kafka"))
    assert "Write the chroot once, after the last server: 127.0.0.1:2181,h:2181/kafka." in finding.fix


def test_a_warning_stops_nothing() -> None:
    warnings = [finding.model_copy(update={"severity": Severity.WARNING}) for finding in found(without_file(1))]
    assert warnings
    assert blockers_in(warnings, POLICY) == ()
