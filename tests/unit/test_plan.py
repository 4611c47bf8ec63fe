"""What a plan says of a cluster, what it rests on, and that nothing starts that has moved away from it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.configuration.file_changes import unified
from domain.configuration.properties import parse
from domain.decisions import Acceptance, Refuse, Step, Wait
from domain.observed.observation import ControllerZnode, Observation, SharedPartitions, Unanswered
from domain.of_kind import Wanted
from domain.plans import IN_THE_WAY, MOVED, NOTHING_ANSWERS, Asked, Basis, MeasuredStep, Plan, moved_since
from domain.rehearsal import RehearsalReport
from domain.rolling.change import NodeFile
from domain.rulings import Ruling
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.node_config import STAGED_KEYS, STORAGE_KEYS
from domain.zk_to_kraft.planning.basis import basis_of
from domain.zk_to_kraft.planning.plan import plan_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.rehearsal.outcome import not_made, refusal
from domain.zk_to_kraft.steps import GateName, NodeStage
from tests.unit.conftest import (
    NOW,
    ZOOKEEPER_CONTROLLER,
    Point,
    broker_text,
    cluster_spec,
    observation,
    running,
    stopped,
    text_at,
    with_file,
    with_kafka,
    with_metrics,
    with_part,
    with_zookeeper,
)
from tests.unit.surveys import surveyed, with_servers, with_tree

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy()
HEALTHY = observation(Point.BEFORE)
SECRET = "password.encoder.secret=hunter2\n"
ALL = [SPEC.node_name(node.id) for node in SPEC.nodes]


def files_at(point: Point) -> dict[int, NodeFile]:
    """As they lie on the nodes, nothing archived."""
    stage = {Point.BEFORE: NodeStage.ZOOKEEPER, Point.DUAL_WRITE: NodeStage.MIGRATION, Point.SOAK: NodeStage.KRAFT}[point]
    files = {b.id: NodeFile(text_at(SPEC, b.id, stage), None, "/archive") for b in SPEC.brokers}
    created = None if point is Point.BEFORE else NodeStage.MIGRATION
    controllers = {
        c.id: NodeFile(None if created is None else text_at(SPEC, c.id, created), None, "/archive") for c in SPEC.controllers
    }
    return files | controllers


def plan(
    seen: Observation = HEALTHY,
    files: dict[int, NodeFile] | None = None,
    measured: Sequence[MeasuredStep] = (),
    **asked: Any,
) -> Plan:
    given = {"id": "plan-1", "kind": "zk-to-kraft", "policy": POLICY, "requested_by": "ann", "requested_at": NOW}
    given |= {"wanted": Wanted()} | asked
    return plan_of(seen, SPEC, files or files_at(Point.BEFORE), Asked(measured=measured, **given), "observation")


def with_base(base: str) -> dict[int, NodeFile]:
    return files_at(Point.BEFORE) | {3001: NodeFile(None, None, "/archive", base)}


def test_it_lists_the_keys_of_a_base_file_that_are_dropped_and_why() -> None:
    base = "inter.broker.protocol.version=3.6-IV2\nlog.dirs=/d1,/d2\nzookeeper.set.acl=true\nnum.io.threads=4\n"
    made = plan(files=with_base(base + "control.plane.listener.name=X\n"))
    found = {node.name: node.dropped for node in made.nodes if node.dropped}
    assert list(found) == ["controller-3001"]
    assert [(one.key, one.stage, one.is_replaced) for one in found["controller-3001"]] == [
        ("inter.broker.protocol.version", NodeStage.MIGRATION, False),
        ("log.dirs", NodeStage.MIGRATION, True),
        ("zookeeper.set.acl", NodeStage.KRAFT, False),
        ("control.plane.listener.name", NodeStage.MIGRATION, False),
    ]
    assert all(one.why.endswith(".") for one in found["controller-3001"])


@pytest.mark.parametrize(
    "key", sorted({*STAGED_KEYS, *STORAGE_KEYS, "listeners", "zookeeper.connect", "password.encoder.secret"})
)
def test_every_key_that_is_dropped_has_a_reason(key: str) -> None:
    made = plan(files=with_base(f"{key}=kafka.security.authorizer.AclAuthorizer\n"))
    (dropped,) = [node.dropped for node in made.nodes if node.name == "controller-3001"]
    kept = {"log.dir", "metadata.log.dir", "controller.quorum.bootstrap.servers"}
    assert [one.key for one in dropped] == ([] if key in kept else [key])


def told(p: Plan) -> list[tuple[str, list[tuple[str, ...]]]]:
    return [(roll.what.partition(":")[0], [wave.nodes for wave in roll.waves]) for roll in p.rolls]


def test_it_names_every_restart_in_its_order_with_the_zookeeper_controller_last() -> None:
    made = plan()
    assert told(made) == [
        ("Start the controllers", [("controller-3001", "controller-3002", "controller-3003")]),
        ("Roll 1", [("broker-1",), ("broker-3",), (f"broker-{ZOOKEEPER_CONTROLLER}",)]),
        ("Roll 2", [("broker-1",), ("broker-2",), ("broker-3",)]),
        ("Finalize", [("controller-3001",), ("controller-3002",), ("controller-3003",)]),
    ]
    assert made.restarts == {name: 2 if name.startswith("broker") else 1 for name in ALL}
    assert all(wave.reason for roll in made.rolls for wave in roll.waves)
    assert (made.phase, made.is_blocked, made.findings, made.unknown) == ("PREFLIGHT", False, (), ())
    assert (made.gates, [point.gate for point in made.irreversible]) == ((GateName.FINALIZE,), [GateName.FINALIZE])


def test_the_last_of_a_roll_has_the_real_reason() -> None:
    start, roll_1, roll_2, finalize = ([wave.reason for wave in roll.waves] for roll in plan().rolls)
    begins = "its registration is the last one of this roll, and starts Kafka's copy"
    assert roll_1[-1] == f"broker-2 goes last, and alone: it is the ZooKeeper controller, and {begins}"
    assert {*roll_1[:-1], *roll_2} == {"one broker at a time, as the policy says"}
    assert start == ["all at the same time: none of them serves yet"]
    assert [reason.partition(":")[0] for reason in finalize] == [*["a standby"] * 2, "the quorum's leader at that moment"]
    assert "POST_MIGRATION" in finalize[-1]
    nobody = with_metrics(with_zookeeper(HEALTHY, controller=None), ZOOKEEPER_CONTROLLER, active_controller_count=0)
    assert plan(nobody).rolls[1].waves[-1].reason == f"broker-3 goes last, and alone: {begins}"


def test_brokers_that_share_no_partition_go_together_where_the_policy_allows_it() -> None:
    spec = cluster_spec(brokers=4)
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    across = tuple(SharedPartitions(brokers=pair, count=3, example="orders-0") for pair in ((1, 3), (1, 4), (2, 3), (2, 4)))
    seen = with_kafka(observation(Point.BEFORE, brokers=4), shared=across, racks=racks)
    asked = Asked("plan-1", "zk-to-kraft", ZkToKraftPolicy(max_parallel=2), Wanted(), "ann", NOW)
    made = plan_of(seen, spec, {}, asked, "observation")
    roll_2 = made.rolls[2]
    assert [wave.nodes for wave in roll_2.waves] == [("broker-1",), ("broker-3", "broker-4"), ("broker-2",)]
    assert "share no partition" in roll_2.waves[1].reason
    assert made.rolls[1].waves[-1].nodes == (f"broker-{ZOOKEEPER_CONTROLLER}",)
    assert made.estimate.seconds < plan_of(seen, spec, {}, replace(asked, policy=POLICY), "observation").estimate.seconds
    needing = with_kafka(seen, needs={1: (), 2: (), 3: ("clicks-1",), 4: ()})
    waves = plan_of(needing, spec, {}, asked, "observation").rolls[2].waves
    assert [wave.cannot_spare for wave in waves if "broker-3" in wave.nodes] == [("clicks-1",)]


def test_it_announces_what_will_be_made_to_try_clients_ways() -> None:
    assert plan().canaries == ()
    made = plan(policy=ZkToKraftPolicy(canaries=True, max_client_pause=timedelta(seconds=5)))
    assert any("keeperless-canary-<migration>-<broker> " in line and "broker-1" in line for line in made.canaries)
    assert any("-pause" in line and "5 s" in line for line in made.canaries)
    assert made.plan_hash != plan().plan_hash, "who has read the one has not read the other"


def test_its_files_are_what_the_rolls_will_write() -> None:
    made = {node.name: node for node in plan().nodes}
    broker, controller = made["broker-1"], made["controller-3001"]
    assert [file.stage for file in broker.files] == [NodeStage.MIGRATION, NodeStage.KRAFT]
    assert "+zookeeper.metadata.migration.enable=true" in broker.files[0].diff
    assert "-zookeeper.metadata.migration.enable=true" in broker.files[1].diff
    assert "+process.roles=broker" in broker.files[1].diff
    assert [file.stage for file in controller.files] == [NodeStage.MIGRATION, NodeStage.KRAFT]
    assert "+process.roles=controller" in controller.files[0].diff
    hybrid = with_file(HEALTHY, 1, text_at(SPEC, 1, NodeStage.MIGRATION))
    disk = hybrid.node(1).disk
    assert disk is not None
    assert disk.file is not None
    assert broker.files[0].sha256 == disk.file.sha256


def test_no_secret_is_in_it() -> None:
    files = files_at(Point.BEFORE)
    text = f"{broker_text(1)}# old.password=hunter2\n{SECRET}"
    made = plan(files=files | {1: NodeFile(text, None, "/archive")})
    assert parse(text)["password.encoder.secret"] == "hunter2"
    assert "hunter2" not in made.model_dump_json()
    controller = next(node for node in made.nodes if node.name == "controller-3001")
    assert "+password.encoder.secret=***" in controller.files[0].diff, "that it is handed on is seen"


def test_a_diff_reads_as_a_reviewer_would_read_it() -> None:
    before = "broker.id=1\nnum.io.threads=2\nlog.dirs=/data,\\\n  /more\n"
    after = before.replace("threads=2", "threads=4")
    told = ("@@ -1,3 +1,3 @@", " broker.id=1", "-num.io.threads=2", "+num.io.threads=4", " log.dirs=/data,\\")
    assert unified(before, after) == told
    assert unified(before, before) == ()
    assert unified("", "node.id=1\n") == ("@@ -0,0 +1 @@", "+node.id=1")
    assert unified("x.password=one\n", "x.password=two\n") == ("@@ -1 +1 @@", "-x.password=***", "+x.password=***")


def test_of_a_migration_that_has_begun_it_tells_what_is_left() -> None:
    dual_write = plan(observation(Point.DUAL_WRITE), files_at(Point.DUAL_WRITE))
    assert [what for what, _ in told(dual_write)] == ["Roll 2", "Finalize"]
    assert told(dual_write)[1][1][-1] == ("controller-3002",), "who leads goes last"
    assert dual_write.restarts == dict.fromkeys(ALL, 1)
    soak = plan(observation(Point.SOAK), files_at(Point.SOAK))
    assert [what for what, _ in told(soak)] == ["Finalize"]


def test_it_names_the_migration_that_is_in_the_way() -> None:
    made = plan(migration="01a1f903")
    (finding,) = made.findings
    assert (made.is_blocked, finding.code, finding.object) == (True, IN_THE_WAY, "migration 01a1f903")
    assert "GET /migrations/01a1f903" in finding.fix


def test_a_copy_that_is_over_is_no_part_of_the_estimate() -> None:
    def copies(point: Point, files: Point) -> bool:
        parts = plan(observation(point), files_at(files)).estimate.parts
        return "Kafka's copy" in [part.what for part in parts]

    assert copies(Point.BEFORE, Point.BEFORE)
    assert copies(Point.HYBRID, Point.DUAL_WRITE)
    assert not copies(Point.DUAL_WRITE, Point.DUAL_WRITE)
    assert not copies(Point.SOAK, Point.SOAK)


def test_a_file_that_could_not_be_read_has_no_texts_and_neither_have_those_that_are_made_from_it() -> None:
    files = files_at(Point.BEFORE)
    del files[1]
    made = {node.name: node.files for node in plan(files=files).nodes}
    assert made["broker-1"] == made["controller-3001"] == ()
    assert made["broker-2"]


def test_of_a_cluster_of_which_nothing_answers_nothing_is_planned() -> None:
    silent = HEALTHY.model_copy(
        update={"zookeeper": None, "kafka": None, "unanswered": (Unanswered(what="kafka", why="timeout"),)}
    )
    for broker in SPEC.brokers:
        silent = with_part(silent, broker.id, process=stopped("pid"), metrics=None)
    made = plan(silent)
    assert [finding.code for finding in made.findings] == [NOTHING_ANSWERS]
    assert (made.is_blocked, made.rolls, made.nodes, made.restarts, made.irreversible) == (True, (), (), {}, ())
    assert (made.estimate.parts, made.estimate.basis) == ((), Basis.GUESS)
    one_runs = with_part(silent, 1, process=running(1), metrics=HEALTHY.node(1).metrics)
    assert plan(one_runs).rolls, "what is seen of one is something to plan from"


def test_what_did_not_answer_blocks_it() -> None:
    silent = HEALTHY.model_copy(update={"unanswered": (Unanswered(what="kafka", why="timeout"),)})
    made = plan(silent)
    assert (made.is_blocked, made.unknown) == (True, ("kafka: timeout",))


def test_an_accepted_blocker_blocks_nothing_and_is_still_shown() -> None:
    dead = with_zookeeper(HEALTHY, assigned_broker_ids=(1, 2, 3, 9))
    assert plan(dead).is_blocked
    accepting = ZkToKraftPolicy.model_validate(
        {"accepted_findings": [{"code": "PF12", "object": "*", "by": "ann", "reason": "it is going to be removed"}]}
    )
    made = plan(dead, policy=accepting)
    (finding,) = made.findings
    assert (made.is_blocked, finding.code) == (False, "PF12")
    assert finding.accepted == Acceptance(by="ann", reason="it is going to be removed")
    assert [found.accepted for found in plan(dead).findings] == [None]


def test_what_is_accepted_comes_after_what_blocks() -> None:
    seen = with_zookeeper(HEALTHY, assigned_broker_ids=(1, 2, 3, 9), pending_deletions=("t",))
    accepting = {"accepted_findings": [{"code": "PF12", "object": "broker 9", "by": "ann", "reason": "gone"}]}
    made = plan(seen, policy=ZkToKraftPolicy.model_validate(accepting))
    assert [(f.code, f.accepted is not None) for f in made.findings] == [("PF13", False), ("PF12", True)]


def moved_file(seen: Observation) -> Observation:
    return with_file(seen, 1, broker_text(1) + "num.partitions=7\n")


@pytest.mark.parametrize(
    ("moved", "what"),
    [
        (moved_file(HEALTHY), "broker-1: properties file"),
        (with_metrics(HEALTHY, 2, kafka_version="3.9.1"), "broker-2: Kafka"),
        (HEALTHY.model_copy(update={"spec_revision": 2}), "the cluster's specification"),
        (
            with_zookeeper(HEALTHY, controller=ControllerZnode(broker_id=3001, kraft_epoch=3, is_ephemeral=False)),
            "/controller",
        ),
        (with_zookeeper(HEALTHY, migration=observation(Point.CONTROLLERS_UP).zookeeper.migration), "/migration"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whoever_changes_what_it_rests_on_moves_the_cluster_away_from_it(moved: Observation, what: str) -> None:
    now = basis_of(moved, SPEC, situation_of(moved, SPEC, POLICY))
    found = moved_since(plan().basis, now)
    assert [(finding.code, finding.object) for finding in found] == [(MOVED, what)]
    assert found[0].expected != found[0].observed
    assert plan(moved).plan_hash != plan().plan_hash


def test_what_moves_by_itself_moves_nothing() -> None:
    later = with_kafka(HEALTHY, topic_count=6, partition_count=30).model_copy(update={"ended_at": NOW + timedelta(hours=1)})
    elected = with_zookeeper(
        later, controller=ControllerZnode(broker_id=1, kraft_epoch=None, is_ephemeral=True), controller_epoch=5
    )
    assert plan(elected, id="plan-2", requested_by="ben").plan_hash == plan().plan_hash
    assert moved_since(plan().basis, plan(elected).basis) == ()


def test_what_is_found_only_for_a_moment_is_shown_and_is_no_part_of_the_hash() -> None:
    calm = surveyed(HEALTHY, SPEC)
    claim = ControllerZnode(broker_id=2, kraft_epoch=None, is_ephemeral=True, claimed_at=calm.ended_at - timedelta(seconds=56))
    elected = with_zookeeper(calm, controller=claim)
    busy = with_servers(calm, lambda server: server.model_copy(update={"outstanding": 5000}))
    for moment, code in ((elected, "PF23"), (busy, "PF09")):
        assert code in {finding.code for finding in plan(moment).findings}
        assert plan(moment).plan_hash == plan(calm).plan_hash
    lasting = with_tree(calm, single_replica_topics=("alone",))
    assert plan(lasting).plan_hash != plan(calm).plan_hash


def test_dynamic_passwords_that_will_be_plain_text_are_told() -> None:
    calm = surveyed(HEALTHY, SPEC)
    keys = ("listener.name.internal.ssl.keystore.password", "log.cleaner.threads")
    (told_more,) = set(plan(with_tree(calm, broker_configs={"1": keys})).changes_for_people) - set(
        plan(calm).changes_for_people
    )
    assert "/config/brokers/1 listener.name.internal.ssl.keystore.password" in told_more
    assert "plain text" in told_more
    assert "log.cleaner" not in told_more


def test_another_policy_is_another_plan() -> None:
    assert plan(policy=ZkToKraftPolicy(stable_samples=7)).plan_hash != plan().plan_hash


def test_a_migration_that_names_a_plan_begins_only_where_the_cluster_is_as_it_was() -> None:
    ruling = Ruling(plan_basis=plan().basis)

    def decided(seen: Observation) -> object:
        return assess(seen, SPEC, POLICY, ruling, "observation").decision

    assert isinstance(decided(HEALTHY), Step)
    refused = decided(moved_file(HEALTHY))
    assert isinstance(refused, Refuse)
    assert [finding.object for finding in refused.findings] == ["broker-1: properties file"]
    silent = moved_file(HEALTHY).model_copy(update={"unanswered": (Unanswered(what="kafka", why="timeout"),)})
    assert isinstance(decided(silent), Wait), "who does not answer is waited for"
    assert isinstance(decided(observation(Point.CONTROLLERS_UP)), Step), "what we have changed ourselves is no move"


def test_a_rehearsal_says_what_only_it_can_know() -> None:
    poison = not_made("x").model_copy(update={"code": "RH06", "object": "/kafka-acl/Topic/a%2Fb", "is_unverifiable": False})
    rehearsed = plan(rehearsal=RehearsalReport(findings=(poison,), seconds_without_controller=10.7, rounds=2))
    assert (rehearsed.is_blocked, rehearsed.findings) == (True, (poison,))
    assert rehearsed.model_dump(mode="json")["findings"][0]["docs"] == "docs/plans.md#rh06"
    assert rehearsed.plan_hash != plan().plan_hash
    passed = plan(rehearsal=RehearsalReport(has_passed=True, seconds_without_controller=10.7, records={"TopicRecord": 7}))
    assert (passed.is_blocked, passed.plan_hash) == (False, plan().plan_hash)
    assert passed.estimate.parts[-1].seconds == 10.7


def test_a_rehearsal_that_could_not_be_made_is_no_pass() -> None:
    refused = plan(rehearsal=refusal("no ZooKeeper member is described"))
    assert refused.is_blocked
    assert [(f.code, f.is_unverifiable, f.observed) for f in refused.findings] == [
        ("RH00", True, "no ZooKeeper member is described")
    ]
    accepting = {"accepted_findings": [{"code": "RH00", "object": "*", "by": "ann", "reason": "there is no room for it"}]}
    policy = ZkToKraftPolicy.model_validate(accepting)
    made = plan(rehearsal=refusal("no room"), policy=policy)
    assert not made.is_blocked
    assert [f.accepted for f in made.findings] == [Acceptance(by="ann", reason="there is no room for it")]


def measured(role: str, stage: NodeStage, *seconds: float) -> list[MeasuredStep]:
    return [MeasuredStep(action="roll-node", role=role, stage=stage, seconds=s) for s in seconds]


def test_without_history_the_estimate_says_that_it_is_a_guess() -> None:
    estimate = plan().estimate
    assert (estimate.basis, {part.restarts_measured for part in estimate.parts}) == (Basis.GUESS, {0})
    assert estimate.seconds == pytest.approx(sum(part.seconds for part in estimate.parts))


def test_an_estimate_rests_on_this_clusters_own_restarts() -> None:
    history = [
        *measured("broker", NodeStage.MIGRATION, 10, 30, 20),
        *measured("broker", NodeStage.KRAFT, 40),
        *measured("controller", NodeStage.KRAFT, 5),
        MeasuredStep(action="provision-controller", role="controller", stage=NodeStage.MIGRATION, seconds=7),
        MeasuredStep(action="fail-over", role="controller", stage=NodeStage.KRAFT, seconds=500),
    ]
    estimate = plan(measured=history).estimate
    assert [(part.seconds, part.restarts_measured) for part in estimate.parts[:4]] == [(7, 1), (60, 3), (120, 1), (15, 1)]
    assert estimate.basis is Basis.MEASURED
    assert plan(measured=history[:3]).estimate.basis is Basis.GUESS
