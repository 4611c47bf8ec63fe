"""PF44: edits that wait in a broker's file for the next restart, which is a migration's."""

from functools import partial

import pytest

from activities.ports.nodes import FileContent
from domain.checks.unapplied import HIDDEN, differing, unapplied
from domain.observed.survey import StartedWith, Unapplied
from domain.zk_to_kraft.node_config import node_file
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from tests.unit.fake_walk import Scene
from tests.unit.test_startable import accepting, rolled, scene_of_a_roll
from tests.unit.test_surveying import surveyed, write

SPEC = fake_spec()
BROKER = SPEC.brokers[0]
FILE = {
    "broker.id": str(BROKER.id),
    "listeners": "PLAINTEXT://:9092",
    "zookeeper.connect": SPEC.ensemble.connect,
    "num.io.threads": "8",
    "ssl.keystore.password": "s3cret",
}
SECRETS = frozenset({"ssl.keystore.password"})


def started(**others: str) -> StartedWith:
    values = {**FILE, **{key.replace("_", "."): value for key, value in others.items()}}
    public = frozenset(values) - SECRETS | {"log.retention.hours"}
    return StartedWith(values={k: v if k in public else None for k, v in values.items()}, public=public)


def found(file: dict[str, str], runs: StartedWith | None = None, stage: NodeStage = NodeStage.MIGRATION) -> set[str]:
    edits = unapplied(partial(node_file, spec=SPEC, node=BROKER, stage=stage), file, runs or started())
    return {f"{one.key}: {one.runs} -> {one.says}" for one in edits}


@pytest.mark.parametrize("stage", [NodeStage.MIGRATION, NodeStage.KRAFT])
def test_a_file_that_is_as_it_was_started_with_has_none(stage: NodeStage) -> None:
    assert not found(FILE, stage=stage)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ({"num.io.threads": "0"}, "num.io.threads: 8 -> 0"),
        ({"log.retention.hours": "1"}, "log.retention.hours: None -> 1"),
        ({"listeners": "PLAINTEXT://:9093"}, "listeners: PLAINTEXT://:9092 -> PLAINTEXT://:9093"),
        ({"what.nobody.knows": "s3cret"}, f"what.nobody.knows: None -> {HIDDEN}"),
    ],
)
def test_a_line_that_was_edited_or_added_is_told(edit: dict[str, str], told: str) -> None:
    assert found(FILE | edit) == {told}


def test_a_line_that_was_taken_out_is_told() -> None:
    without = {key: value for key, value in FILE.items() if key != "num.io.threads"}
    assert found(without) == {"num.io.threads: 8 -> None"}


def test_of_a_secret_nobody_tells_whether_it_is_the_same_but_that_it_is_gone() -> None:
    assert not found(FILE | {"ssl.keystore.password": "another"}), "Kafka tells no value of it"
    without = {key: value for key, value in FILE.items() if key not in SECRETS}
    assert found(without) == {f"ssl.keystore.password: {HIDDEN} -> None"}


@pytest.mark.parametrize(
    "same",
    [
        {"listeners": " PLAINTEXT://:9092 "},
        {"num.io.threads": "${file:/etc/kafka/threads:n}"},
    ],
)
def test_blanks_and_what_a_provider_gives_are_no_edits(same: dict[str, str]) -> None:
    assert not found(FILE | same)


def test_truth_has_any_case_and_lists_have_blanks() -> None:
    runs = started(auto_create_topics_enable="true", sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-512")
    assert not found(FILE | {"auto.create.topics.enable": "TRUE", "sasl.enabled.mechanisms": "PLAIN, SCRAM-SHA-512"}, runs)


def test_what_the_stage_writes_itself_is_no_edit() -> None:
    """Somebody has begun by hand: what is in the file is what we would write."""
    begun = FILE | {
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": SPEC.quorum_voters,
        "controller.listener.names": SPEC.controller_listener,
    }
    assert not found(begun)


def test_what_the_command_line_gives_counts_before_the_file() -> None:
    runs = started(num_io_threads="16")
    hybrid = partial(node_file, spec=SPEC, node=BROKER, stage=NodeStage.MIGRATION)
    assert unapplied(hybrid, FILE, runs)
    assert not unapplied(hybrid, FILE, runs, {"num.io.threads"})


def test_the_finding_has_both_values() -> None:
    finding = differing("broker-1", "/etc/kafka/server.properties", [Unapplied(key="num.io.threads", runs="8", says="0")])
    assert finding is not None
    assert "num.io.threads: runs with 8, the file has 0" in finding.observed
    assert "restart broker-1 yourself" in finding.fix
    assert differing("broker-1", "/etc/kafka/server.properties", []) is None


def started_by(cluster: FakeCluster, node_id: int, *options: str) -> None:
    """The command line of its process."""
    process = cluster.nodes[node_id].process
    assert process is not None
    command = "\0".join(["java", "kafka.Kafka", "/etc/kafka/server.properties", *options, ""])
    cluster.nodes[node_id].machine.write(f"/proc/{process.pid}/cmdline", FileContent(command.encode(), 0o444, 0, 0))


async def test_the_survey_finds_them_and_leaves_out_what_the_command_line_gives() -> None:
    cluster = FakeCluster()
    first, second = (broker.id for broker in cluster.spec.brokers[:2])
    write(cluster, first, "num.io.threads=0")
    write(cluster, second, "num.io.threads=0")
    started_by(cluster, second, "--override", "num.io.threads=8")
    survey = (await surveyed(cluster)).survey
    assert survey is not None
    edits = {node.id: node.unapplied for node in survey.nodes}
    assert [one.key for one in edits[first] or ()] == ["num.io.threads"]
    assert edits[second] == ()
    assert all(edits[controller.id] is None for controller in cluster.spec.controllers)


def edited(scene: Scene) -> tuple[FakeCluster, int]:
    cluster = scene.copy()
    node = cluster.spec.node(scene.request.step.node)
    write(cluster, node.id, "num.io.threads=0")
    return cluster, node.id


async def test_a_broker_whose_file_was_edited_before_its_roll_runs_on() -> None:
    scene = await scene_of_a_roll()
    cluster, node_id = edited(scene)
    before = cluster.restarts[cluster.spec.node_name(node_id)]
    outcome = await rolled(cluster, scene)
    assert "num.io.threads: runs with no such line, the file has " in (outcome.blocked or "")
    assert "Nothing was stopped: the restart would apply that" in (outcome.blocked or "")
    assert cluster.restarts[cluster.spec.node_name(node_id)] == before


async def test_who_restarts_it_himself_has_put_it_into_force() -> None:
    scene = await scene_of_a_roll()
    cluster, node_id = edited(scene)
    cluster.nodes[node_id].start()
    cluster.advance(10)
    assert (await rolled(cluster, scene)).blocked is None


async def test_a_broker_that_was_restarted_with_an_override_of_a_staged_key_runs_on() -> None:
    scene = await scene_of_a_roll()
    cluster = scene.copy()
    node_id = scene.request.step.node
    started_by(cluster, node_id, "--override", "log.dirs=/elsewhere", "--override", "num.io.threads=8")
    before = cluster.restarts[cluster.spec.node_name(node_id)]
    outcome = await rolled(cluster, scene)
    assert "`--override log.dirs=/elsewhere`" in (outcome.blocked or "")
    assert "Take `--override log.dirs` out of whatever starts it" in (outcome.blocked or "")
    assert cluster.restarts[cluster.spec.node_name(node_id)] == before
    assert (await rolled(cluster, accepting("PF44", scene))).blocked is None


async def test_an_edit_that_somebody_has_accepted_is_put_into_force() -> None:
    scene = await scene_of_a_roll()
    cluster, _ = edited(scene)
    assert (await rolled(cluster, accepting("PF44", scene))).blocked is None
