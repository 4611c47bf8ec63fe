"""Taking the survey: what does not answer is waited for, what is not to be had is named, and nothing secret is kept."""

from datetime import timedelta
from typing import Any, cast

import pytest

from activities.observing.observe import observe
from activities.ports.nodes import Completed, FileContent
from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from activities.zk_to_kraft.surveying import with_survey
from domain.canaries import canary_of, is_reserved
from domain.checks.acceptance import blockers_in
from domain.decisions import Severity
from domain.errors import Permanent, Transient
from domain.observed.observation import Observation
from domain.rulings import Ruling
from domain.zk_to_kraft.assessment import is_survey_needed
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import preflight
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster

POLICY = ZkToKraftPolicy()
PASSWORD = "s3cret"


def ports_of(cluster: FakeCluster, **others: Any) -> Ports:
    given = {"drivers": cluster, "zookeepers": cluster, "kafka": cluster, "metrics": cluster, **others}
    return Ports(ledger=cast("Any", None), artefacts=FakeArtefacts(), **given, kinds=SHIPPED_KINDS)


async def surveyed(cluster: FakeCluster, policy: ZkToKraftPolicy = POLICY, **others: Any) -> Observation:
    ports = ports_of(cluster, **others)
    return await with_survey(await observe(cluster.record(), ports), cluster.record(), policy, ports)


def write(cluster: FakeCluster, node_id: int, line: str) -> None:
    node = cluster.nodes[node_id]
    file = node.machine.read(node.spec.properties_file)
    assert file is not None
    text = file.content + line.encode() + b"\n"
    node.machine.write(node.spec.properties_file, FileContent(text, file.mode, file.uid, file.gid))


async def test_a_simulated_cluster_has_no_blockers_and_answers_wholly() -> None:
    cluster = FakeCluster()
    seen = await surveyed(cluster)
    assert seen.unanswered == ()
    assert seen.survey is not None
    assert seen.survey.missing == ()
    assert [node.id for node in seen.survey.nodes] == [node.id for node in cluster.spec.nodes]
    assert blockers_in(preflight(seen, cluster.spec, POLICY), POLICY) == ()


async def test_secrets_are_kept_as_digests_that_no_two_surveys_share() -> None:
    cluster = FakeCluster()
    for broker in cluster.spec.brokers:
        write(cluster, broker.id, f"ssl.keystore.password={PASSWORD}")
    first, second = await surveyed(cluster), await surveyed(cluster)
    assert PASSWORD not in first.model_dump_json()
    digests: list[str] = []
    for seen in (first, second):
        assert seen.survey is not None
        of_brokers = {seen.survey.node(b.id).digests["ssl.keystore.password"] for b in cluster.spec.brokers}
        assert len(of_brokers) == 1, "the same value is the same within one survey"
        digests += of_brokers
    assert digests[0] != digests[1]


async def test_what_does_not_answer_is_waited_for() -> None:
    class Silent:
        def __init__(self) -> None:
            self.view, self.started_with = cluster.view, cluster.started_with

        async def log_dirs(self, record: Any) -> Any:
            raise Transient("log directories: no answer")

    cluster = FakeCluster()
    seen = await surveyed(cluster, kafka=Silent())
    assert [part.what for part in seen.unanswered] == ["log directories"]
    assert preflight(seen, cluster.spec, POLICY) == ()


class Refusing:
    """Drivers on whose machines nothing can be run."""

    def __init__(self, cluster: FakeCluster, answer: Completed | Exception) -> None:
        self._cluster, self._answer = cluster, answer

    def driver(self, node: Any) -> Any:
        driver = self._cluster.driver(node)

        async def run(*_: Any) -> Completed:
            if isinstance(self._answer, Exception):
                raise self._answer
            return self._answer

        cast("Any", driver).run = run
        return driver


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Permanent("python3: no such program on this machine"), "no such program"),
        (Completed(1, "", "Traceback\nSyntaxError: invalid syntax\n"), "SyntaxError"),
    ],
)
async def test_what_cannot_be_run_makes_checks_unverifiable(answer: Completed | Exception, told: str) -> None:
    cluster = FakeCluster()
    seen = await surveyed(cluster, drivers=Refusing(cluster, answer))
    assert seen.survey is not None
    assert seen.unanswered == ()
    assert all(told in part.why for part in seen.survey.missing)
    blind = [f for f in blockers_in(preflight(seen, cluster.spec, POLICY), POLICY) if f.is_unverifiable]
    assert {f.code for f in blind} == {"PF01", "PF07", "PF25", "PF29", "PF34", "PF40", "PF43", "PF47"}
    assert all(told in finding.observed for finding in blind)


CANARIES = ZkToKraftPolicy(canaries=True)


async def told_of_canaries(cluster: FakeCluster, policy: ZkToKraftPolicy) -> list[str]:
    seen = await surveyed(cluster, policy)
    assert seen.unanswered == ()
    return [f"{f.code} {f.severity} {f.observed}" for f in preflight(seen, cluster.spec, policy) if f.code in {"PF41", "PF42"}]


async def test_what_canaries_may_not_do_is_a_blocker_where_the_policy_asks_for_them() -> None:
    cluster = FakeCluster()
    assert await told_of_canaries(cluster, CANARIES) == []
    assert not [topic for topic in cluster.topics if is_reserved(topic.name)], "nothing was made to see that"
    cluster.faults.forbidden_canaries = {"removal", "messages"}
    told = await told_of_canaries(cluster, CANARIES)
    assert len([line for line in told if line.startswith("PF41 blocker delete.topic.enable is false at broker-")]) == 3
    of_rights = ("change ACLs", "change users' credentials", "write to topics", "delete topics")
    assert [line.split(": ")[0] for line in told[3:]] == [f"PF41 blocker {right}" for right in of_rights]
    pausing = ZkToKraftPolicy(max_client_pause=timedelta(seconds=5))
    assert len(await told_of_canaries(cluster, pausing)) == 5, "no ACLs, and no users"
    assert await told_of_canaries(cluster, POLICY) == [], "nobody asks for any"


@pytest.mark.parametrize("what", ["config", "messages", "topic", "removal"])
async def test_what_kafka_does_not_say_about_canaries_is_waited_for(what: str) -> None:
    cluster = FakeCluster()
    cluster.faults.failing_canaries = {what}
    seen = await surveyed(cluster, CANARIES)
    assert [part.what for part in seen.unanswered] == ["canaries"]


async def test_what_a_migration_left_that_is_gone_is_a_warning_whatever_the_policy() -> None:
    cluster = FakeCluster()
    client = await cluster.open_client(cluster.record())
    name = canary_of("gone", 1)
    await client.create_topic(1, name, [[1]], {})
    await client.deny_group(1, name)
    await client.give_scram(1, name)
    seen = await surveyed(cluster)
    found = [f for f in preflight(seen, cluster.spec, POLICY) if f.code == "PF42"]
    assert {f.severity for f in found} == {Severity.WARNING}
    assert [f.object for f in found] == [f"topic {name}", f"ACL of group {name}", f"user {name}"]
    assert all(f.fix.startswith("Remove it: ") for f in found)


async def test_half_an_answer_is_no_answer() -> None:
    cluster = FakeCluster()
    seen = await surveyed(cluster, drivers=Refusing(cluster, Completed(0, '{"memory": 1', "")))
    assert len(seen.unanswered) == len(cluster.spec.nodes)


async def test_a_server_of_the_ensemble_that_is_down_is_found() -> None:
    cluster = FakeCluster()
    cluster.faults.silent_servers.add("zk-2:2181")
    found = blockers_in(preflight(await surveyed(cluster), cluster.spec, POLICY), POLICY)
    assert [(f.code, f.object) for f in found] == [("PF09", "ZooKeeper zk-2:2181")]


async def test_partitions_of_another_topic_are_found_by_the_ids_of_zookeeper() -> None:
    cluster = FakeCluster()
    node = cluster.nodes[1]
    path = f"{node.spec.log_dirs[0]}/orders-0/partition.metadata"
    node.machine.write(path, FileContent(b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n", 0o644, 0, 0))
    found = blockers_in(preflight(await surveyed(cluster), cluster.spec, POLICY), POLICY)
    assert [(f.code, f.severity) for f in found] == [("PF25", Severity.BLOCKER)]


async def test_poison_is_found_before_anything_starts() -> None:
    cluster = FakeCluster()
    cluster.znodes["/kafka-acl/Topic/orders"] = b"{"
    cluster.znodes["/config/topics/orders"] = b"{"
    found = blockers_in(preflight(await surveyed(cluster), cluster.spec, POLICY), POLICY)
    assert [f.code for f in found] == ["PF15", "PF17"]


async def test_a_tree_that_may_not_be_changed_is_found_without_changing_it() -> None:
    cluster = FakeCluster()
    cluster.faults.forbidden_znodes.add("/controller_epoch")
    before = dict(cluster.znodes)
    found = blockers_in(preflight(await surveyed(cluster), cluster.spec, POLICY), POLICY)
    assert {f.code for f in found} == {"PF16"}
    assert [f.is_unverifiable for f in found] == [False, True, True, True]
    assert dict(cluster.znodes) == before


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_base_file_is_read_or_missed(is_there: bool) -> None:
    cluster = FakeCluster()
    path = "/etc/kafka/base.properties"
    first = cluster.spec.controllers[0].model_copy(update={"base_properties": path})
    cluster.spec = cluster.spec.with_quorum_changed(controllers=(first, *cluster.spec.controllers[1:]))
    if is_there:
        cluster.nodes[first.id].machine.write(path, FileContent(b"num.partitions=7\n", 0o644, 0, 0))
    seen = await surveyed(cluster)
    assert seen.survey is not None
    assert seen.survey.node(first.id).settings == ({"num.partitions": "7"} if is_there else {})
    assert ("PF07" in {f.code for f in preflight(seen, cluster.spec, POLICY)}) != is_there


def with_start_command(cluster: FakeCluster, node_id: int, *more: str) -> None:
    def changed(node: Any) -> Any:
        service = node.driver.service.model_copy(update={"start_command": (*node.driver.service.start_command, *more)})
        return node.model_copy(update={"driver": node.driver.model_copy(update={"service": service})})

    spec = cluster.spec
    brokers, controllers = (
        tuple(changed(n) if n.id == node_id else n for n in nodes) for nodes in (spec.brokers, spec.controllers)
    )
    cluster.spec = spec.model_copy(update={"brokers": brokers}).with_quorum_changed(controllers=controllers)


async def test_overrides_of_start_commands_are_found_on_every_node() -> None:
    cluster = FakeCluster()
    with_start_command(cluster, 1, "--override", "num.io.threads=8")
    with_start_command(cluster, 3001, "--override", "process.roles=broker,controller")
    found = blockers_in(preflight(await surveyed(cluster), cluster.spec, POLICY), POLICY)
    assert [(f.code, f.object) for f in found] == [("PF44", "controller-3001 process.roles")]


async def test_a_controllers_file_is_put_to_kafka_before_it_is_made() -> None:
    cluster = FakeCluster()
    cluster.nodes[3001].machine.trial = {"refused": "early.start.listeners contains listener PLAINTEXT"}
    seen = await surveyed(cluster)
    assert seen.survey is not None
    trials = {node.id: [trial.stage for trial in node.look.trials] for node in seen.survey.nodes if node.look is not None}
    assert {tuple(stages) for stages in trials.values()} == {(NodeStage.MIGRATION, NodeStage.KRAFT)}
    (finding,) = blockers_in(preflight(seen, cluster.spec, POLICY), POLICY)
    path = cluster.spec.node(3001).properties_file
    assert (finding.code, finding.object) == ("PF45", f"controller-3001 {path}")
    assert "the file that the stage migration makes for it: early.start.listeners" in finding.observed
    assert finding.fix.startswith("Correct the key that it names in the first broker's file")


async def test_without_its_base_file_no_controllers_file_is_tried() -> None:
    cluster = FakeCluster()
    first = cluster.spec.controllers[0].model_copy(update={"base_properties": "/etc/kafka/base.properties"})
    cluster.spec = cluster.spec.with_quorum_changed(controllers=(first, *cluster.spec.controllers[1:]))
    survey = (await surveyed(cluster)).survey
    assert survey is not None
    assert [len(node.look.trials) for node in survey.nodes if node.look is not None] == [2, 2, 2, 0, 2, 2]


async def test_a_survey_is_taken_only_where_something_could_start() -> None:
    cluster = FakeCluster()
    seen = await observe(cluster.record(), ports_of(cluster))
    assert is_survey_needed(seen, cluster.spec, POLICY, Ruling())
    assert not is_survey_needed(seen, cluster.spec, POLICY, Ruling(is_held=True))
    assert not is_survey_needed(seen, cluster.spec, POLICY, Ruling(accepted_losses=()))
    cluster.faults.silent_kafka = True
    blind = await observe(cluster.record(), ports_of(cluster))
    assert not is_survey_needed(blind, cluster.spec, POLICY, Ruling())


def test_a_class_path_is_that_of_environment_and_command() -> None:
    node = FakeCluster().spec.controllers[0]
    service = node.driver.service.model_copy(
        update={"start_command": ("java", "-cp", "/a/*:/b.jar", "kafka.Kafka", "{properties}")}
    )
    driver = node.driver.model_copy(update={"service": service})
    given = node.model_copy(update={"driver": driver, "environment": {"CLASSPATH": "/c.jar:"}})
    assert given.further_classes == ["/c.jar", "/a/*", "/b.jar"]
    assert given.class_path == f"{given.kafka_home}/libs/*:/c.jar:/a/*:/b.jar"
    ours = given.model_copy(update={"environment": {"CLASSPATH": f"{given.kafka_home}/libs/*:/a/*:"}})
    assert ours.class_path == f"{given.kafka_home}/libs/*:/a/*:/b.jar"


@pytest.mark.parametrize(
    ("line", "kind", "severity"),
    [
        ("broker.rack=a # the first row", "comment", Severity.WARNING),
        ("num.partitions=3   # three", "comment", Severity.BLOCKER),
        ("broker.rack=a ", "last-blank", Severity.WARNING),
        ("log.dir=C:\\data\\\nbroker.rack=a", "swallowed-line", Severity.WARNING),
    ],
)
async def test_an_odd_character_is_told_with_its_line(line: str, kind: str, severity: Severity) -> None:
    cluster = FakeCluster()
    write(cluster, 1, line)
    file = cluster.nodes[1].machine.read(path := cluster.nodes[1].spec.properties_file)
    assert file is not None
    number = file.content.decode().splitlines().index(line.splitlines()[0]) + 1
    findings = [f for f in preflight(await surveyed(cluster), cluster.spec, POLICY) if f.code == "PF45"]
    assert [(f.object, f.severity) for f in findings] == [(f"broker-1 {path} {kind}", severity)]
    assert findings[0].observed.startswith(f"line {number}: ")
    assert line.partition("=")[0] in findings[0].observed


async def test_a_file_that_java_cannot_read_is_a_blocker_with_its_line() -> None:
    cluster = FakeCluster()
    write(cluster, 1, "log.dir=C:\\users")
    seen = await observe(cluster.record(), ports_of(cluster))
    (finding,) = preflight(seen, cluster.spec, POLICY)
    assert (finding.code, finding.severity, finding.object) == ("PF45", Severity.BLOCKER, "files of broker-1")
    assert f"{cluster.nodes[1].spec.properties_file}, line " in finding.observed
    assert "users" not in finding.observed


async def test_a_base_file_that_java_cannot_read_is_a_blocker_with_its_line() -> None:
    cluster = FakeCluster()
    controller = cluster.spec.controllers[0]
    path = "/etc/base.properties"
    based = controller.model_copy(update={"base_properties": path})
    cluster.nodes[controller.id].machine.write(path, FileContent(b"# base\na=\\u1\n", 0o600, 0, 0))
    spec = cluster.spec.with_quorum_changed(controllers=(based, *cluster.spec.controllers[1:]))
    record = cluster.record().model_copy(update={"spec": spec})
    ports = ports_of(cluster)
    seen = await with_survey(await observe(record, ports), record, POLICY, ports)
    found = [f for f in preflight(seen, spec, POLICY) if "Java refuses the whole file" in f.observed]
    assert [(f.code, f.severity) for f in found] == [("PF45", Severity.BLOCKER)]
    assert found[0].observed.startswith(f"{path}, line 2, character 3: ")
